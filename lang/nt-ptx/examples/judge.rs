//! Reads PTX, holds the reader to its laws, and asks assemblers whether an edit that should change nothing does.
//!
//! ```text
//! cargo run --release -p nt-ptx --example judge -- --ptxas .tools/bin/ptxas testdata/ptx/*/*.ptx
//! 64 files, 1.9 MB, 34568 instructions: no opcode without an entry, 0 notes, 0 errors
//! ptxas 13.0.88: 46 taken, 18 refused, all as before the edit
//! ```
//!
//! `--ptxas FILE` may be given more than once, and is asked about files of up to `--below BYTES` (all, if not given): for
//! the text as it is and for the edited one, its answer, what it prints and the object must be the same. A version
//! that is too new for an assembler is lowered; a text that is refused nevertheless must be refused in the same words.
//!
//! Exits with 1 if the reader finds an error, an opcode has no entry, a law is broken, or an edit changed anything.

#![allow(clippy::panic, reason = "the laws are assertions")]

#[path = "../tests/assembler/mod.rs"]
mod assembler;
#[path = "../tests/laws/mod.rs"]
mod laws;

use assembler::Ptxas;
use nt_diag::{Paint, Severity, Source, render};
use nt_ptx::syntax::{Kind, Module};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An assembler and its answers so far.
struct Judge {
    ptxas: Ptxas,
    taken: usize,
    refused: usize,
    differ: usize,
}

impl Judge {
    fn new(file: PathBuf) -> std::io::Result<Judge> {
        Ok(Judge { ptxas: Ptxas::new(file)?, taken: 0, refused: 0, differ: 0 })
    }

    fn ask(&mut self, path: &Path, module: &Module<'_>) -> std::io::Result<()> {
        let answer = self.ptxas.compare(module, &assembler::edited_without_change(module))?;
        if answer.is_accepted {
            self.taken += 1;
        } else {
            self.refused += 1;
        }
        if !answer.is_same {
            self.differ += 1;
            let (path, version) = (path.display(), &self.ptxas.version);
            say(&format!("{path}: ptxas {version} answers otherwise after the edit\n{}", answer.printed));
        }
        Ok(())
    }
}

fn say(text: &str) {
    // A reader that has seen enough may leave.
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[derive(Default)]
struct Counts {
    files: usize,
    bytes: usize,
    instructions: usize,
    unknown: usize,
    notes: usize,
    errors: usize,
    broken: usize,
}

fn read(counts: &mut Counts, path: &Path, text: &str) {
    counts.files += 1;
    counts.bytes += text.len();
    let (module, mut found) = nt_ptx::parse(text);
    nt_ptx::resolve(&module, &mut found);
    for statement in &module.statements {
        let Kind::Instruction(instruction) = statement.kind else { continue };
        counts.instructions += 1;
        if module.facts(&instruction).is_none() {
            counts.unknown += 1;
            say(&format!("{}: no entry: {}", path.display(), module.at(instruction.opcode)));
        }
    }
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    counts.errors += errors;
    counts.notes += found.iter().count() - errors;
    if !found.is_empty() {
        say(&render(&Source::new(&path.display().to_string(), text), found, &Paint::PLAIN));
    }
    if std::panic::catch_unwind(|| laws::all(text)).is_err() {
        counts.broken += 1;
        say(&format!("{}: a law is broken", path.display()));
    }
}

fn run() -> std::io::Result<bool> {
    let (mut judges, mut files, mut below) = (Vec::new(), Vec::new(), usize::MAX);
    let mut args = std::env::args_os().skip(1);
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--ptxas") => judges.push(Judge::new(args.next().unwrap_or_default().into())?),
            Some("--below") => below = args.next().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(0),
            _ => files.push(PathBuf::from(arg)),
        }
    }
    let mut counts = Counts::default();
    for path in &files {
        let text = std::fs::read_to_string(path)?;
        read(&mut counts, path, &text);
        if text.len() <= below {
            let (module, _) = nt_ptx::parse(&text);
            for judge in &mut judges {
                judge.ask(path, &module)?;
            }
        }
    }
    let megabytes = format!("{}.{} MB", counts.bytes / 1_000_000, counts.bytes / 100_000 % 10);
    let opcodes = if counts.unknown == 0 { "no".to_owned() } else { counts.unknown.to_string() };
    say(&format!(
        "{} files, {megabytes}, {} instructions: {opcodes} opcode without an entry, {} notes, {} errors",
        counts.files, counts.instructions, counts.notes, counts.errors
    ));
    let mut is_good = counts.unknown + counts.errors + counts.broken == 0;
    for judge in &judges {
        let same = if judge.differ == 0 {
            "all as before the edit".to_owned()
        } else {
            format!("{} otherwise than before the edit", judge.differ)
        };
        say(&format!(
            "ptxas {}: {} taken, {} refused, {same}",
            judge.ptxas.version, judge.taken, judge.refused
        ));
        is_good &= judge.differ == 0;
    }
    Ok(is_good)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "judge: {error}");
            ExitCode::from(2)
        }
    }
}
