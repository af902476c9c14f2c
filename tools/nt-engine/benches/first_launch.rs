//! Our own part of a kernel's first launch: reading the image, choosing, pruning, weaving, verifying; the assembler
//! apart. The aim is 10 ms.

#![allow(clippy::unwrap_used, reason = "a bench stops at the first thing that is wrong")]

use nt_engine::cache::Cache;
use nt_engine::{Engine, Probe};
use nt_ir::launch::Conditions;
use std::path::Path;

const PROGRAM: &str = r#"program "warps"
map warps: array<warp> { start: u64, elapsed: u64, cu: u32 }
state start: u64 = 0
probe warp kernel:entry {
  %0: u64 uniform = clock
  state start = %0
}
probe warp kernel:exit {
  %0: u64 uniform = state start
  %1: u64 uniform = clock
  %2: u64 uniform = sub %1, %0
  %3: u32 uniform = cu
  save warps(start = %0, elapsed = %2, cu = %3)
}
"#;

fn main() {
    divan::main();
}

#[divan::bench(args = [
    "nvcc/kernels.sm_90.ptx",
    "nvcc/kernels.lineinfo.sm_90.ptx",
    "nvcc/kernels.debug.sm_90.ptx",
    "triton/vector_add.sm_90a.ptx",
    "triton/matmul.sm_90a.ptx",
    "triton/matmul.sm_100a.ptx",
    "triton/attention.sm_90a.ptx",
])]
fn first_launch(bencher: divan::Bencher<'_, '_>, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx").join(name);
    let image = std::fs::read(path).unwrap();
    let device = if name.contains("100a") { 100 } else { 90 };
    let program = nt_ir::text::parse(PROGRAM).0.unwrap();
    let engine = || Engine::new(Probe::new(program.clone(), b"").unwrap(), Vec::new(), None, Cache::none());
    bencher.counter(divan::counter::BytesCount::of_slice(&image)).with_inputs(engine).bench_values(
        |engine| {
            let found = engine.inspect(&image);
            engine.prepare(found.image, &found.selected[0], device, Conditions::NONE).unwrap()
        },
    );
}
