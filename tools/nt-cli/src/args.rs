//! Options that mean one thing in all programs.

use clap::{Args, ValueEnum};
use std::io::IsTerminal;

/// Flattened into every command line: `#[command(flatten)] common: Common`.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Messages")]
pub struct Common {
    /// Colour messages; `auto` does so on a terminal where NO_COLOR is not set
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", global = true)]
    pub color: Colour,
    /// How faults of a text are told: drawn for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t, value_name = "FORM", global = true)]
    pub diagnostics: Form,
    /// Say only what refuses the input
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
}

/// `--color`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Also into files and pipes.
    Always,
    /// Nowhere.
    Never,
}

/// `--diagnostics`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Form {
    /// Drawn, with the line and carets.
    #[default]
    Text,
    /// JSON lines.
    Json,
}

impl Common {
    /// How to paint what goes to stderr.
    pub fn paint(&self) -> nt_diag::Paint {
        let on = match self.color {
            Colour::Always => true,
            Colour::Never => false,
            // https://no-color.org: set and not empty.
            Colour::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::io::stderr().is_terminal()
            }
        };
        if on { nt_diag::Paint::COLOURED } else { nt_diag::Paint::PLAIN }
    }
}
