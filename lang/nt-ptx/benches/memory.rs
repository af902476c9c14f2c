//! Memory of the reader on 16 MB of real PTX: `cargo bench -p nt-ptx --bench memory`; the line `max alloc` is what it
//! held at once. docs/performance.md tells multiples of the input.

#![allow(clippy::panic, reason = "a missing file ends the run")]

mod large;

use divan::{AllocProfiler, Bencher};
use large::{FILES, large};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench(args = FILES, sample_count = 1, sample_size = 1)]
fn parse(bencher: Bencher<'_, '_>, file: &str) {
    let text = large(file);
    bencher.bench_local(|| nt_ptx::parse(&text));
}

#[divan::bench(args = FILES, sample_count = 1, sample_size = 1)]
fn parse_and_resolve(bencher: Bencher<'_, '_>, file: &str) {
    let text = large(file);
    bencher.bench_local(|| {
        let (module, mut found) = nt_ptx::parse(&text);
        nt_ptx::resolve(&module, &mut found).functions.len()
    });
}
