//! What all programs share: where text comes from, where it goes, how faults are told, and exit codes.
//!
//! A program is `main.rs` (a call of [`main`]), `cli.rs` (its command line, with [`Common`] flattened in) and `run.rs`
//! (its stages in order, returning an [`Outcome`]). The manners, which `docs/manners.md` states for users:
//!
//! * Data on stdout, words on stderr. `-` is stdin or stdout; stdin is read once a command line.
//! * A file is written beside its place and renamed, so nobody ever sees half of it.
//! * A reader that leaves (`| head`) ends the program in silence, with success.
//! * Faults of the user's text are drawn with their line; `--diagnostics=json` gives one JSON object a line.
//! * Exit codes are [`Outcome`]'s, alike in all programs.

mod args;
pub mod choose;
mod files;
mod generate;
mod outcome;
mod probe;
mod report;

pub use args::{Colour, Common, Form};
pub use files::{Input, Output, Stdin, Text};
pub use outcome::{Bug, Ending, Outcome, main, main_for_another};
pub use probe::{Loaded, ProbeArgs};
pub use report::Report;
