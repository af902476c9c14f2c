//! `cargo run -p nt-fuzz -- TARGET FILE…`: holds files to a law; where it is broken, the run ends there.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let target = args.next().unwrap_or_default();
    for path in args {
        let result = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
        if let Err(why) = result.and_then(|bytes| nt_fuzz::run(&target.to_string_lossy(), &bytes)) {
            let _ = writeln!(std::io::stderr(), "nt-fuzz: {why}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
