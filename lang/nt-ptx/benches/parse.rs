//! Speed of the reader on real PTX: `cargo bench -p nt-ptx`. The aim is 100 MB/s a core for [`nt_ptx::parse`].

#![allow(clippy::panic, reason = "a missing file ends the run")]

mod large;

use divan::Bencher;
use divan::counter::BytesCount;
use large::{FILES, large};
use nt_diag::Span;
use nt_ptx::TokenKind;

fn main() {
    divan::main();
}

#[divan::bench(args = FILES, sample_count = 10)]
fn lexing_alone(bencher: Bencher<'_, '_>, file: &str) {
    let text = large(file);
    let (empty, _) = nt_ptx::parse("");
    let module = nt_ptx::syntax::Module { text: &text, ..empty };
    bencher.counter(BytesCount::new(text.len())).bench(|| {
        module.tokens(Span::from(0..text.len())).filter(|(kind, _)| *kind == TokenKind::Semicolon).count()
    });
}

#[divan::bench(args = FILES, sample_count = 10)]
fn parse(bencher: Bencher<'_, '_>, file: &str) {
    let text = large(file);
    bencher.counter(BytesCount::new(text.len())).bench(|| nt_ptx::parse(&text));
}

#[divan::bench(args = FILES, sample_count = 10)]
fn resolve(bencher: Bencher<'_, '_>, file: &str) {
    let text = large(file);
    let (module, _) = nt_ptx::parse(&text);
    bencher
        .counter(BytesCount::new(text.len()))
        .bench(|| nt_ptx::resolve(&module, &mut nt_diag::Found::new()));
}

/// All instructions described; the aim is 50 MB/s.
#[divan::bench(args = FILES, sample_count = 10)]
fn facts(bencher: Bencher<'_, '_>, file: &str) {
    let text = large(file);
    let (module, _) = nt_ptx::parse(&text);
    bencher.counter(BytesCount::new(text.len())).bench(|| {
        let mut known = 0u64;
        for statement in &module.statements {
            if let nt_ptx::syntax::Kind::Instruction(instruction) = statement.kind {
                known += u64::from(module.facts(&instruction).is_some());
            }
        }
        known
    });
}
