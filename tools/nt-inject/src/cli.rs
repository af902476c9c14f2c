//! The command line.

use clap::{Parser, ValueEnum};
use nt_cli::choose::Choice;
use nt_cli::{Common, Input, Output, ProbeArgs};
use nt_ir::launch::Conditions;
use std::path::PathBuf;

/// Put a probe into PTX
///
/// Reads PTX, writes the same PTX with the probe in it, verified. Nothing that was not asked for is touched: take the
/// insertions away and the input is back, byte for byte. Needs no GPU; with NVIDIA's assembler at hand the manifest
/// has the registers before and after.
#[derive(Debug, Parser)]
#[command(
    name = "nt-inject",
    version,
    after_help = AFTER,
    mut_group("ProbeArgs", |group| group.required(false)),
)]
pub(crate) struct Args {
    /// The PTX; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: Input,

    #[command(flatten)]
    pub(crate) probe: ProbeArgs,

    /// Only kernels whose mangled or demangled name has a match for REGEX, or is NAME; may be given again
    #[arg(short, long = "kernel", value_name = "REGEX|=NAME")]
    pub(crate) kernels: Vec<Choice>,

    /// Where the woven PTX goes
    #[arg(short, long, value_name = "FILE|-", default_value = "-")]
    pub(crate) output: Output,

    /// Also write a manifest: sites, layouts, the context to launch with, registers before and after
    #[arg(long, value_name = "FILE|-")]
    pub(crate) manifest: Option<Output>,

    /// List kernels and their tracepoints instead: kernel, tracepoint, sites, places, name as in the source
    #[arg(short, long, conflicts_with_all = ["ProbeArgs", "manifest", "emit"])]
    pub(crate) list: bool,

    /// Print a stage instead of the woven PTX: the probe's closed IR, what is put where, or the inserted code
    #[arg(long, value_enum, value_name = "STAGE", conflicts_with = "manifest")]
    pub(crate) emit: Option<Stage>,

    /// Hold a woven text against its original instead; needs no probe and no manifest
    #[arg(
        long,
        num_args = 2,
        value_names = ["ORIGINAL", "PROBED"],
        conflicts_with_all = ["ProbeArgs", "list", "emit", "manifest", "kernels"],
    )]
    pub(crate) check: Option<Vec<Input>>,

    /// Say what a rule of the verifier forbids and why (V6)
    #[arg(long, value_name = "RULE", conflicts_with_all = ["ProbeArgs", "list", "emit", "manifest", "check"])]
    pub(crate) explain: Option<String>,

    /// Refuse PTX with instructions that no version so far has
    #[arg(long)]
    pub(crate) strict: bool,

    /// NVIDIA's assembler, for the manifest [default: on PATH, in CUDA_HOME, in /usr/local/cuda]
    #[arg(long, value_name = "FILE")]
    pub(crate) ptxas: Option<PathBuf>,

    /// What all launches of the kernels will be, so that less is computed: flat_grid and flat_block (y and z of grid and
    /// block are 1), whole_rows (x of the block is a multiple of 32)
    #[arg(long, value_name = "CONDITION,…", value_delimiter = ',', value_parser = condition)]
    pub(crate) assume: Vec<Conditions>,

    /// Say how long each stage took
    #[arg(long)]
    pub(crate) time: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// `flat_grid`
fn condition(name: &str) -> Result<Conditions, String> {
    Conditions::from_name(name).ok_or_else(|| {
        let all: Vec<&str> = Conditions::all_names().collect();
        format!("there is {}", all.join(", "))
    })
}

/// `--emit`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// The program as the weaver takes it: after all passes.
    Ir,
    /// Context, maps and sites of each kernel.
    Plan,
    /// The code at each site.
    Spans,
}

const AFTER: &str = "\
Examples:
  nt-inject -l kernel.ptx                                  what could be probed
  nt-inject -p block_sched kernel.ptx > probed.ptx
  nt-inject -p ./mine.nt -k gemm -o probed.ptx --manifest probed.ntm kernel.ptx
  nt-inject -p dmat --assume flat_grid,flat_block --manifest k.ntm -o probed.ptx kernel.ptx
  nt-extract --ptx app -i 0 | nt-inject -p block_sched - | ptxas -arch=sm_90 -o probed.cubin -
  nt-inject --check kernel.ptx probed.ptx                  is it the original and harmless insertions, nothing else?

Exit status:
  0 done    1 the PTX, the probe or all chosen kernels are refused    2 usage, or a file failed
  3 our own bug: a reproducer is saved    4 no kernel matched, or 0 sites: the input is given back as it was
  5 some of the chosen kernels are refused: the others are woven";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_agree_with_each_other() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_probe_is_wanted_only_where_something_is_woven() {
        for line in [
            "nt-inject -l x.ptx",
            "nt-inject --check a.ptx b.ptx",
            "nt-inject -p block_sched",
            "nt-inject --explain V6",
            "nt-inject -p dmat --assume flat_grid,whole_rows x.ptx",
        ] {
            assert!(Args::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
        assert!(Args::try_parse_from(["nt-inject", "-p", "a", "-e", "b"]).is_err());
        assert!(Args::try_parse_from(["nt-inject", "-p", "a", "--assume", "round"]).is_err());
    }
}
