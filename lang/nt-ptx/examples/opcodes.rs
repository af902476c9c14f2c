//! Every opcode of some PTX: its class, how often it stands there, and its name; what the table lacks comes last.
//!
//! ```text
//! cargo run -p nt-ptx --example opcodes -- testdata/ptx/*/*.ptx
//! load          560  ld.shared.f32
//! …
//! unknown         1  foo.bar
//! ```
//!
//! With `--missing` what the table lacks is all that is printed. Exits with 1 if there is any, with 2 if a file cannot be
//! read.

use nt_ptx::syntax::Kind;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Classes have their order in the table, and what has no class is last.
    let mut counts: BTreeMap<(usize, String), (&'static str, u64)> = BTreeMap::new();
    let mut is_unknown = false;
    let (options, paths): (Vec<_>, Vec<_>) = std::env::args_os().skip(1).partition(|arg| arg == "--missing");
    for path in paths {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "opcodes: {}: {error}", path.display());
                return ExitCode::from(2);
            }
        };
        let (module, _) = nt_ptx::parse(&text);
        for statement in &module.statements {
            let Kind::Instruction(instruction) = statement.kind else { continue };
            let class = module.facts(&instruction).map(|facts| facts.class);
            is_unknown |= class.is_none();
            let (place, name) = class.map_or((usize::MAX, "unknown"), |class| (class as usize, class.name()));
            let opcode = module.at(instruction.opcode).to_owned();
            counts.entry((place, opcode)).or_insert((name, 0)).1 += 1;
        }
    }
    let mut out = std::io::stdout().lock();
    for ((place, opcode), (class, count)) in &counts {
        if !options.is_empty() && *place != usize::MAX {
            continue;
        }
        // A reader that has seen enough may leave.
        if writeln!(out, "{class:<11} {count:>6}  {opcode}").is_err() {
            break;
        }
    }
    ExitCode::from(u8::from(is_unknown))
}
