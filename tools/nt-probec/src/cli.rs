//! The command line.

use clap::{Parser, ValueEnum};
use nt_cli::{Common, Output};

/// Compile a probe program
///
/// Checks the program and writes a compiled probe (.ntp), which nt-inject and nt-run take as they take the program
/// itself. A program with errors leaves no file.
#[derive(Debug, Parser)]
#[command(name = "nt-probec", version, after_help = AFTER)]
pub(crate) struct Args {
    /// The program: a file (a word with `/` or an ending), `-` for standard input, or the name of a shipped probe
    #[arg(value_name = "FILE|-|NAME", required_unless_present_any = ["list", "show", "explain"])]
    pub(crate) input: Option<String>,

    /// Where the compiled probe, or what --emit shows, goes; `-` is standard output
    #[arg(short, long, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    pub(crate) output: Output,

    /// Show a stage of the program as text instead of compiling it
    #[arg(long, value_enum, value_name = "STAGE")]
    pub(crate) emit: Option<Stage>,

    /// List shipped probes, classes of instructions, operands and builtins: kind, name, type or state, what it is
    #[arg(short, long, conflicts_with_all = ["input", "emit", "show", "explain"])]
    pub(crate) list: bool,

    /// Show the program of a shipped probe
    #[arg(long, value_name = "NAME", conflicts_with_all = ["input", "emit", "explain"])]
    pub(crate) show: Option<String>,

    /// Explain a kind of error, by the slug that --diagnostics=json gives it
    #[arg(long, value_name = "SLUG", conflicts_with_all = ["input", "emit"])]
    pub(crate) explain: Option<String>,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// `--emit`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// A token a line: place, kind, text
    Tokens,
    /// The syntax tree, indented, with places
    Ast,
    /// The probe IR, as passes and back ends begin with it
    Ir,
}

const AFTER: &str = "\
Examples:
  nt-probec heat.nt -o heat.ntp             compile
  nt-probec --emit=ir block_sched           a shipped probe as IR
  nt-probec --show block_sched > mine.nt    begin with a shipped probe
  nt-probec -l | awk -F'\\t' '$1 == \"probe\"'
  nt-probec --explain varying-value

Exit status:
  0 done    1 the program has errors    2 usage, or a file failed    4 no shipped probe or slug of that name";

#[cfg(test)]
mod tests {
    #[test]
    fn the_definitions_agree_with_each_other() {
        <super::Args as clap::CommandFactory>::command().debug_assert();
    }
}
