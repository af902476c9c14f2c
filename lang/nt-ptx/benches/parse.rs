//! Speed of the reader on real PTX: `cargo bench -p nt-ptx`. The aim is 100 MB/s a core for [`nt_ptx::parse`].
//!
//! The inputs are compilers' output from testdata, repeated under different names to some 16 MB, the size of a large
//! framework's module.

#![allow(clippy::panic, reason = "a missing file ends the run")]

use divan::Bencher;
use divan::counter::BytesCount;
use nt_diag::Span;
use nt_ptx::{Edits, ModuleInfo, TokenKind};
use std::path::Path;

const FILES: &[&str] =
    &["nvcc/kernels.sm_90.ptx", "nvcc/kernels.debug.sm_90.ptx", "triton/attention.sm_100a.ptx"];
const SIZE: usize = 16 << 20;

fn main() {
    divan::main();
}

/// `file` without its header, again and again, every name of module level with the number of its copy.
fn large(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (module, mut found) = nt_ptx::parse(&text);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors(), "{}: {found:?}", path.display());
    let header = module.items.iter().take_while(|item| item.kind == nt_ptx::syntax::ItemKind::Header).last();
    let start = header.map_or(0, |item| item.span.end);
    let mut out = text[..start as usize].to_owned();
    for copy in 0.. {
        if out.len() >= SIZE {
            break;
        }
        let mut edits = Edits::new();
        for (kind, at) in module.code(Span::from(start as usize..text.len())) {
            let is_ours =
                |info: &ModuleInfo<'_>, name| info.function(name).is_some() || info.variable(name).is_some();
            if kind == TokenKind::Name && is_ours(&info, module.at(at)) {
                edits.insert(at.end, format!("_{copy}"));
            }
        }
        let edited = edits.apply(&text).unwrap_or_else(|error| panic!("{error}"));
        out.push_str(&edited[start as usize..]);
    }
    out
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
