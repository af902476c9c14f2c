//! Pulls PTX and code objects out of programs and libraries.

mod choose;
mod cli;
mod images;
mod input;
mod list;
mod name;
mod run;
mod tell;
mod write;

fn main() -> std::process::ExitCode {
    nt_cli::main(|args| run::run(&args))
}
