//! Diagnostics on stderr, in the form that was asked for.

use crate::{Common, Form};
use nt_diag::{Found, Severity, Source};
use std::io::Write;

/// Tells what stages found in texts.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    common: Common,
}

impl Report {
    /// Tells as the options say.
    pub fn new(common: Common) -> Self {
        Report { common }
    }

    /// Writes all of `found`, which speaks of `text`, to stderr. True if anything in it refuses the input.
    /// Under `--quiet` only errors are told; notes are told under `--verbose` alone, unless they come with an error.
    pub fn tell(&self, name: &str, text: &str, found: &Found) -> bool {
        let refused = found.has_errors();
        let mut shown = Found::new();
        for diagnostic in found.iter() {
            let least = match diagnostic.severity {
                Severity::Error => true,
                Severity::Warning => !self.common.quiet,
                Severity::Note => self.common.verbose,
            };
            if least {
                shown.push(diagnostic.clone());
            }
        }
        let source = Source::new(name, text);
        let text = match self.common.diagnostics {
            Form::Text => nt_diag::render(&source, shown, &self.common.paint()),
            Form::Json => {
                let lines = shown.sorted();
                lines.iter().map(|d| nt_diag::to_json_line(&source, d) + "\n").collect()
            }
        };
        // Nobody can be told that stderr is closed.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
        refused
    }

    /// Writes a line of words to stderr, unless `--quiet`.
    pub fn say(&self, line: impl std::fmt::Display) {
        if !self.common.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
    }

    /// Writes a line of words to stderr under `--verbose`.
    pub fn detail(&self, line: impl std::fmt::Display) {
        if self.common.verbose {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
    }

    /// Writes a line of words to stderr, always.
    pub fn warn(&self, line: impl std::fmt::Display) {
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
}
