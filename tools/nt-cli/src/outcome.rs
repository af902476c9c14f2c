//! How a program ends.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit codes of all programs (nt-run passes its command's status through instead).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Done; also when the reader of a pipe leaves.
    Done = 0,
    /// The input is refused: text, kernel, container, or several entries where one is needed.
    Refused = 1,
    /// Usage, or a file or the system failed.
    Failed = 2,
    /// Our own bug: the pass is named and a reproducer saved.
    Bug = 3,
    /// Nothing there: no entry, no kernel matched, no site, an empty selection; the nearest are named.
    Nothing = 4,
    /// Done in part: input cut or damaged, or part of the chosen refused; what is sound is written, the rest named.
    Partial = 5,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        ExitCode::from(outcome as u8)
    }
}

/// Our own fault: a stage's output was refused by the stage that checks it, or a promise did not hold.
#[derive(Debug)]
pub struct Bug {
    /// The pass that is to blame: `weave`, `verify`, `narrow`.
    pub pass: &'static str,
    /// What went wrong, with the place.
    pub detail: String,
    /// The input and options that show it again, saved for a report.
    pub reproducer: Option<PathBuf>,
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is a bug in nt, in pass `{}`: {}", self.pass, self.detail)?;
        if let Some(path) = &self.reproducer {
            write!(f, "\n  note: what shows it again is saved in {}", path.display())?;
        }
        write!(f, "\n  help: please report it with that folder; nothing was written")
    }
}

impl std::error::Error for Bug {}

/// An error that ends the program with an outcome of its own instead of [`Outcome::Failed`].
#[derive(Debug)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Why: lower case, no full stop.
    pub why: String,
}

impl Ending {
    /// The input is no good.
    pub fn refused(why: impl Into<String>) -> Self {
        Ending { outcome: Outcome::Refused, why: why.into() }
    }

    /// What was asked for is not there.
    pub fn nothing(why: impl Into<String>) -> Self {
        Ending { outcome: Outcome::Nothing, why: why.into() }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Ending {}

/// Parses the command line, runs the program and turns what comes of it into an exit code.
///
/// Help, version and `--generate` answer before anything that could fail. An error is printed once, with its chain of
/// causes, as `NAME: what failed: why`.
pub fn main<A: clap::Parser>(run: impl FnOnce(A) -> anyhow::Result<Outcome>) -> ExitCode {
    start(run, None)
}

/// [`main`] for a program that passes another's exit code through: its own failures, whatever their kind and usage
/// included, all end in `failed`, which is to be a code that others do not use.
pub fn main_for_another<A: clap::Parser>(
    failed: u8,
    run: impl FnOnce(A) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    start(run, Some(failed))
}

fn start<A: clap::Parser, C: Into<ExitCode>>(
    run: impl FnOnce(A) -> anyhow::Result<C>,
    failed: Option<u8>,
) -> ExitCode {
    let code = |own: u8| ExitCode::from(if own == 0 { 0 } else { failed.unwrap_or(own) });
    if let Some(done) = crate::generate::asked(&mut A::command()) {
        return code(done.unwrap_or(Outcome::Failed) as u8);
    }
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // A closed pipe under `--help` is nobody's fault.
            let _ = error.print();
            return code(u8::try_from(error.exit_code()).unwrap_or(Outcome::Failed as u8));
        }
    };
    match run(args) {
        Ok(outcome) => outcome.into(),
        Err(error) if left(&error) => Outcome::Done.into(),
        Err(error) => {
            let name = A::command().get_name().to_owned();
            let _ = writeln!(std::io::stderr().lock(), "{name}: {error:#}");
            code(outcome_of(&error) as u8)
        }
    }
}

/// How an error ends the program.
fn outcome_of(error: &anyhow::Error) -> Outcome {
    match error.downcast_ref::<Ending>() {
        Some(ending) => ending.outcome,
        None if error.downcast_ref::<Bug>().is_some() => Outcome::Bug,
        None => Outcome::Failed,
    }
}

/// Did the reader of our output leave?
fn left(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}
