//! Decodes the traces that nt-run leaves: lists them, dumps their records, reports what they mean.
//!
//! `nt-map dump | sort -k8n | head` shows the warps that started first; `docs/report.md` defines each number of
//! `nt-map report`, `docs/formats.md` the files.

mod basis;
mod catalogue;
mod cli;
mod coverage;
mod dmat;
mod dump;
mod input;
mod ls;
mod names;
mod report;
mod run;
mod tell;
mod text;
mod timeline;
mod walk;

fn main() -> std::process::ExitCode {
    nt_cli::main(|opts: cli::Opts| run::run(&opts))
}
