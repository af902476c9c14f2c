//! How many of the global and generic accesses of PTX files are proved: a row a file, or with `-v` a row an access.
//!
//!     cargo run --release -p nt-affine --example affine -- testdata/ptx/*/*.ptx

use nt_affine::{Proof, addresses};
use nt_ir::launch::Conditions;
use nt_ptx::opcode::Space;
use nt_ptx::syntax::Kind;
use std::io::Write;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Row {
    uniform: u32,
    strided: u32,
    bits: u32,
    parameters: u32,
    indirect: u32,
    unknown: u32,
    wraps: u32,
    joins: u32,
    time: Duration,
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let is_verbose = std::env::args().any(|arg| arg == "-v");
    writeln!(
        out,
        "{:52} {:>8} {:>7} {:>7} {:>6} {:>6} {:>8} {:>7} {:>5} {:>5} {:>7}",
        "file",
        "accesses",
        "uniform",
        "stride",
        "bits",
        "params",
        "indirect",
        "unknown",
        "wraps",
        "joins",
        "ms"
    )?;
    for file in std::env::args().skip(1).filter(|arg| arg != "-v") {
        let text = std::fs::read_to_string(&file)?;
        let (module, mut found) = nt_ptx::parse(&text);
        let info = nt_ptx::resolve(&module, &mut found);
        let mut row = Row::default();
        let start = Instant::now();
        for function in 0..module.functions.len() {
            for access in addresses(&module, &info, function, Conditions::ALL) {
                let statement = module.statements[access.statement as usize];
                let Kind::Instruction(instruction) = statement.kind else { continue };
                let facts = module.facts(&instruction);
                let is_outside = |space: Option<Space>| matches!(space, Some(Space::Global | Space::Generic));
                let is_global =
                    facts.is_some_and(|facts| is_outside(facts.space) || is_outside(facts.other_space));
                if !is_global {
                    continue;
                }
                row.add(&access.proof);
                if is_verbose {
                    let line = text[..statement.span.start as usize].lines().count();
                    writeln!(out, "{file}:{line}: {}\n    {:?}", module.at(statement.span), access.proof)?;
                }
            }
        }
        row.time = start.elapsed();
        let all = row.uniform + row.strided + row.bits + row.parameters + row.indirect + row.unknown;
        writeln!(
            out,
            "{:52} {all:>8} {:>7} {:>7} {:>6} {:>6} {:>8} {:>7} {:>5} {:>5} {:>7}",
            file.trim_start_matches("testdata/ptx/"),
            row.uniform,
            row.strided,
            row.bits,
            row.parameters,
            row.indirect,
            row.unknown,
            row.wraps,
            row.joins,
            row.time.as_millis()
        )?;
    }
    Ok(())
}

impl Row {
    fn add(&mut self, proof: &Proof) {
        match proof {
            Proof::Indirect => self.indirect += 1,
            Proof::Unknown => self.unknown += 1,
            Proof::Bits { strides, wraps, joins, .. } => {
                let numbers: Option<Vec<i64>> = strides.iter().map(nt_affine::Linear::as_constant).collect();
                match numbers.as_deref() {
                    None => self.parameters += 1,
                    Some([0, 0, 0, 0, 0]) => self.uniform += 1,
                    Some([s, rest @ ..]) if (1..).zip(rest).all(|(bit, other)| *other == s << bit) => {
                        self.strided += 1;
                    }
                    Some(_) => self.bits += 1,
                }
                self.wraps += u32::from(*wraps);
                self.joins += u32::from(*joins);
            }
        }
    }
}
