//! Runs a command with probes in its kernels.
//!
//! This process is the parent: it prepares kernels, and answers the hooks (`nt-hook`) that it puts into the command and
//! its children. `run.rs` is the order of things; `docs/architecture.md` tells why there are two processes.

mod aggregations;
mod child;
mod cli;
mod counts;
mod coverage;
mod dry;
mod environment;
mod folder;
mod guard;
mod hook;
mod ledger;
mod list;
mod log;
mod run;
mod save;
mod server;
mod session;
mod summary;
mod talk;
mod target;
mod vgpu;

fn main() -> std::process::ExitCode {
    nt_cli::main_for_another(run::FAILED, |args| run::run(&args))
}
