//! Every file of `testdata/cli/` that has a RUN line is a test.

use libtest_mimic::{Arguments, Failed, Trial};
use nt_filetest::{Case, Setup, find_on_path, run};
use std::path::Path;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli");
    let setup = Setup::from_environment();
    let mut trials = Vec::new();
    for entry in walkdir::WalkDir::new(&folder).sort_by_file_name() {
        let file = entry?.into_path();
        let ending = file.extension().unwrap_or_default();
        if !file.is_file() || ending == "stdout" || ending == "stderr" {
            continue;
        }
        // Inputs of other tests lie beside them.
        if !std::fs::read(&file)?.windows(5).any(|w| w == b"RUN: ") {
            continue;
        }
        let name = file.strip_prefix(&folder)?.display().to_string();
        let missing = missing(&file);
        let setup = setup.as_ref().map(Clone::clone).map_err(ToString::to_string);
        let trial = Trial::test(name, move || {
            run(&file, &setup?).map_err(|error| Failed::from(format!("{error:#}")))
        });
        // Counted as ignored in the summary: nothing is skipped in silence.
        trials.push(trial.with_ignored_flag(missing));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Does the file require a program that is not on PATH? One that cannot be read runs, and fails.
fn missing(file: &Path) -> bool {
    let case = std::fs::read_to_string(file).ok().and_then(|text| Case::parse(&text).ok());
    case.is_some_and(|case| case.requires.iter().any(|program| find_on_path(program).is_none()))
}
