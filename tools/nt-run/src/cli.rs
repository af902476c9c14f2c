//! The command line.

use crate::vgpu::Vgpu;
use clap::{Parser, ValueEnum};
use nt_cli::choose::Choice;
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a command with probes in its GPU kernels
///
/// The command runs as it would without nt-run: same output, same exit status. What the probes saved, and what was
/// covered of the run, is in the run folder afterwards.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "nt-run",
    version,
    after_help = AFTER,
    mut_group("ProbeArgs", |group| group.required(false)),
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) probe: nt_cli::ProbeArgs,

    /// Probe kernels whose mangled or demangled name has a match for REGEX, or is NAME; may be given again
    #[arg(short, long = "kernel", value_name = "REGEX|=NAME")]
    pub(crate) kernels: Vec<Choice>,

    /// The run folder; one of an earlier run is replaced
    #[arg(short, long, value_name = "DIR", default_value = "trace.ntt")]
    pub(crate) output: PathBuf,

    /// Sets a `config` of the probe program
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,

    /// What a launch does when no memory for its records is free: wait for some, or run unprobed and be counted
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) on_full: OnFull,

    /// How long such a launch waits at most, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub(crate) wait_ms: u32,

    /// How long a process that ends may go on collecting while nothing comes in, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    pub(crate) exit_ms: u32,

    /// Device memory for records, a context (64M, 2G) [default: 1G or 16 streams, at most 1/16 of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) pool: Option<u64>,

    /// Memory of a stream of events, a launch (16M, 1G) [default: the program's `config stream`, or 64M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) stream: Option<u64>,

    /// Run the command above the software GPU, which executes PTX on the CPU; a seed shuffles its schedule
    #[arg(long, value_name = "seed=N", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) vgpu: Option<Vgpu>,

    /// NVIDIA's assembler [default: on PATH, in CUDA_HOME, in /usr/local/cuda; without one the driver assembles]
    #[arg(long, value_name = "FILE")]
    pub(crate) ptxas: Option<PathBuf>,

    /// Where assembled kernels are kept between runs, or `none` [default: nt in XDG_CACHE_HOME]
    #[arg(long, value_name = "DIR|none")]
    pub(crate) cache: Option<PathBuf>,

    /// The library that is preloaded [default: beside this program, or in ../lib/nt]
    #[arg(long, value_name = "FILE")]
    pub(crate) hook: Option<PathBuf>,

    /// As many rows of each aggregation in the summary, the largest; what is left out is counted
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) rows: usize,

    /// Keep each kernel's PTX before and after, and its cubin, in the run folder
    #[arg(long)]
    pub(crate) keep: bool,

    /// List the kernels in the command's own file and their tracepoints instead: kernel, tracepoint, sites, places, name
    #[arg(short, long, conflicts_with_all = ["ProbeArgs", "dry_run"])]
    pub(crate) list: bool,

    /// Print what would be done, and what would become of the kernels in the command's own file; do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) common: nt_cli::Common,

    /// The command and its arguments; begins at the first word that is no option, or behind `--`
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `--on-full`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OnFull {
    /// Up to `--wait-ms`, then drop.
    #[default]
    Wait,
    /// Run the original, and count it.
    Drop,
}

const AFTER: &str = "\
Examples:
  nt-run -l ./app                        what could be probed
  nt-run -p block_sched ./app            when each block ran, and where
  nt-run -p block_sched -k gemm -o /tmp/run python train.py
  nt-run --vgpu -p block_sched ./app     the same without a GPU
  nt-map report trace.ntt                what it means

Exit status: the command's own, or 128 and the signal that ended it; 125 if nt-run itself failed, 126 if the command
cannot be executed, 127 if it is not found.";

/// `64M`: a number with K, M, G or T for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size: give a number of bytes, or one with K, M or G");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().trim_end_matches("IB").trim_end_matches('B') {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_hold_together() {
        Args::command().debug_assert();
    }

    #[test]
    fn sizes() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(size(text).ok(), expected, "{text}");
        check("4096", Some(4096));
        check("64K", Some(65536));
        check("64m", Some(64 << 20));
        check("2G", Some(2 << 30));
        check("1GiB", Some(1 << 30));
        check("1MB", Some(1 << 20));
        for wrong in ["", "0", "-1", "G", "1X", "1.5G", "99999999999G"] {
            check(wrong, None);
        }
    }

    #[test]
    fn the_command_begins_at_the_first_word_that_is_no_option() {
        let parse = |words: &[&str]| Args::try_parse_from([&["nt-run"], words].concat()).unwrap();
        let args = parse(&["-p", "block_sched", "app", "-k", "--x"]);
        assert_eq!(args.command, ["app", "-k", "--x"]);
        assert!(args.kernels.is_empty());
        let args = parse(&["-p", "block_sched", "-k", "=gemm", "--", "-strange", "-p"]);
        assert_eq!(args.command, ["-strange", "-p"]);
        assert!(Args::try_parse_from(["nt-run", "-p", "x", "--no-such-option", "app"]).is_err());
        assert!(Args::try_parse_from(["nt-run", "-p", "x"]).is_err(), "no command");
        assert!(Args::try_parse_from(["nt-run", "-l", "app"]).is_ok());
        assert!(Args::try_parse_from(["nt-run", "-l", "-p", "x", "app"]).is_err(), "a list needs no probe");
        assert!(Args::try_parse_from(["nt-run", "-p", "x", "-k", "(", "app"]).is_err(), "no pattern");
    }
}
