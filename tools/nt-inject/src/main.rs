//! Puts a probe into PTX.

mod check;
mod cli;
mod emit;
mod list;
mod manifest;
mod reproduce;
mod run;
mod time;
mod unmatched;

fn main() -> std::process::ExitCode {
    nt_cli::main(|args| run::run(&args))
}
