//! Compiles probe programs.

mod cli;
mod list;
mod run;

fn main() -> std::process::ExitCode {
    nt_cli::main(|args| run::run(&args))
}
