//! `-p` and `-e`: which probe program.

use crate::{Ending, Input, Report, Stdin};
use clap::Args;
use nt_ir::program::Program;
use nt_probe::Named;

/// Flattened into the command lines of programs that weave.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub struct ProbeArgs {
    /// The probe: a shipped name (see `nt-probec --list`), a file (.nt or .ntp), or `-` for standard input
    #[arg(short, long, value_name = "PROBE")]
    pub probe: Option<String>,
    /// The text of a probe program
    #[arg(short = 'e', long = "program", value_name = "TEXT")]
    pub text: Option<String>,
}

/// A probe program, ready to be prepared for a back end.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it does.
    pub program: Program,
    /// What messages call its source.
    pub source_name: String,
    /// Its source text, whose lines later messages draw.
    pub source: String,
}

impl ProbeArgs {
    /// Finds and compiles the probe. `None` if its text is refused, which has been told.
    ///
    /// # Errors
    /// It cannot be read, or is a damaged or foreign `.ntp`, or there is no shipped probe of that name.
    pub fn load(&self, stdin: &mut Stdin, report: &Report) -> anyhow::Result<Option<Loaded>> {
        let (name, source_name, source) = match (&self.probe, &self.text) {
            (_, Some(text)) => ("probe".to_owned(), "<-e>".to_owned(), text.clone()),
            (Some(word), None) => match Named::by(word) {
                Named::Stdin | Named::File => {
                    let text = word.parse::<Input>()?.read(stdin)?;
                    if nt_trace::ntp::is_ntp(&text.bytes) {
                        let compiled = nt_trace::ntp::decode(&text.bytes)
                            .map_err(|error| Ending::refused(format!("{}: {error}", text.name)))?;
                        return Ok(Some(Loaded {
                            program: compiled.program,
                            source_name: compiled.source_name,
                            source: compiled.source,
                        }));
                    }
                    (stem(word), text.name.clone(), text.utf8()?.to_owned())
                }
                Named::Shipped(probe) => (word.clone(), format!("{word}.nt"), probe.text.to_owned()),
                Named::Unknown(near) => {
                    let hint = near.map_or_else(
                        || "`nt-probec --list` names them; a file needs a `/` or an ending".to_owned(),
                        |near| format!("did you mean `{near}`?"),
                    );
                    return Err(
                        Ending::nothing(format!("no shipped probe is called `{word}`: {hint}")).into()
                    );
                }
            },
            (None, None) => anyhow::bail!("no probe given: use `-p PROBE` or `-e TEXT`"),
        };
        let (program, found) = nt_probe::compile(&source, &name);
        let refused = report.tell(&source_name, &source, &found);
        Ok(program.filter(|_| !refused).map(|program| Loaded { program, source_name, source }))
    }
}

/// `dir/heat.nt` is called `heat`.
fn stem(word: &str) -> String {
    let path = std::path::Path::new(word);
    path.file_stem().map_or_else(|| "probe".to_owned(), |stem| stem.to_string_lossy().into_owned())
}
