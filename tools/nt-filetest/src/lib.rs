//! Tests that are files: drop one into `testdata/cli/`, bless its output, review the diff.
//!
//! A test file is any text whose comments (`//` or `#`) hold directives:
//!
//! ```text
//! // RUN: nt-probec --emit=ir %          run this; it must succeed
//! // EXIT: 1                             the next RUN must end with this code instead
//! // RUN: nt-inject -p block_sched %     several RUNs are run in order, in one temporary folder
//! // REQUIRES: ptxas                     skipped, and counted as skipped, where the program is not on PATH
//!
//! warp kernel:exit {
//!     heats.save(clock());   // error: unknown map `heats`
//! }
//! ```
//!
//! In a RUN line `%` is the test file's name (the programs run in its folder), `%t` a temporary folder, `|` joins
//! programs, `> FILE` and `< FILE` redirect, words may be quoted; there is no shell. The exit code is the last program's.
//! What the last RUN's programs print lies beside the file as `.stdout` and `.stderr`; no file means that nothing may be
//! printed. `BLESS=1` writes these files.
//!
//! Two judges besides the goldens:
//! * Every `// error: TEXT` (or `warning:`, `note:`) must be told on that very line, and every error told must be
//!   expected, if the file has any such comment.
//! * Output that is PTX goes through `ptxas` where there is one, and is not blessed without it: a golden of our own
//!   output proves nothing alone.

mod case;
mod judge;
mod pipe;

pub use case::{Case, Step};
pub use judge::{Verdict, find_on_path};
pub use pipe::Printed;

use std::path::{Path, PathBuf};

/// Where the programs under test are, and whether to write goldens.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Folder of the built programs.
    pub programs: PathBuf,
    /// Write what was printed instead of comparing?
    pub bless: bool,
}

impl Setup {
    /// From the running test's own place (`target/PROFILE/deps/…`) and the environment variable `BLESS`.
    ///
    /// # Errors
    /// The programs were not built: `cargo test` builds those of other packages only if they have tests.
    pub fn from_environment() -> anyhow::Result<Setup> {
        let own = std::env::current_exe()?;
        let folder = own.ancestors().nth(2).unwrap_or(Path::new(".")).to_owned();
        anyhow::ensure!(
            folder.join("nt-probec").exists(),
            "no nt-probec in {}: run `cargo build --bins` first",
            folder.display()
        );
        Ok(Setup { programs: folder, bless: std::env::var_os("BLESS").is_some_and(|v| v == "1") })
    }
}

/// Runs one test file.
///
/// # Errors
/// Whatever differs from what the file and its goldens say, drawn for people.
pub fn run(file: &Path, setup: &Setup) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file)?;
    let case = Case::parse(&text)?;
    let temporary = tempfile::tempdir()?;
    let mut last = Printed::default();
    for step in &case.steps {
        last = pipe::run(step, file, temporary.path(), setup)?;
        anyhow::ensure!(
            last.code == Some(step.exit),
            "line {}: `{}` ended with {}, expected {}\n{}",
            step.line,
            step.words.join(" "),
            last.code.map_or("a signal".to_owned(), |code| code.to_string()),
            step.exit,
            String::from_utf8_lossy(&last.stderr)
        );
    }
    judge::expected_faults(&case, file, &last)?;
    judge::assembler(&last, setup.bless)?;
    judge::goldens(file, &last, setup.bless)?;
    Ok(())
}
