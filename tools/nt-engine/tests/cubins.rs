//! Cubins that keep their PTX, as Triton's do, through the whole engine with the shipped probe block_sched.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test stops at the first thing that is wrong")]

use nt_engine::assemble::Assembler;
use nt_engine::cache::Cache;
use nt_engine::{Engine, Probe};
use nt_ir::launch::Conditions;
use std::path::Path;

fn read(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cubin").join(name)).unwrap()
}

fn engine(assembler: Option<Assembler>) -> Engine {
    engine_of("block_sched", assembler)
}

fn engine_of(probe: &str, assembler: Option<Assembler>) -> Engine {
    let (program, found) = nt_probe::compile(nt_probe::shipped(probe).unwrap(), probe);
    assert!(!found.has_errors(), "{found:?}");
    Engine::new(Probe::new(program.unwrap(), b"").unwrap(), Vec::new(), assembler, Cache::none())
}

/// `parameters`: the offset and size of each, two of Triton's own at the end among them.
fn check(file: &str, kernel: &str, device: u32, target: &str, parameters: &[(u32, u32)]) {
    let assembler = Assembler::find(None).unwrap();
    if assembler.is_none() {
        eprintln!("not assembled: there is no ptxas on PATH (make deps)");
    }
    let is_cubin = assembler.is_some();
    let engine = engine(assembler);
    let found = engine.inspect(&read(file));
    assert_eq!((found.reason.as_str(), found.faults.as_slice()), ("", &[][..]), "{file}");
    assert!(found.selected.iter().any(|name| name == kernel), "{file}: {:?}", found.selected);
    let prepared = engine.prepare(found.image, kernel, device, Conditions::NONE).unwrap();
    assert_eq!(prepared.is_cubin, is_cubin);
    assert!(prepared.original.contains(&format!(".target {target}\n")), "{file}");
    let params: Vec<_> = prepared.twin().params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(params, parameters, "{file}");
    if is_cubin {
        let twin = nt_object::cubin::read(&prepared.image, 0).unwrap();
        assert_eq!((twin.arch.sm, twin.kernels.len()), (device, 1), "{file}");
    }
}

#[test]
fn triton_kernels_are_prepared_from_their_cubins() {
    let vector_add = [(0, 8), (8, 8), (16, 8), (24, 4), (32, 8), (40, 8)];
    check("vector_add.sm_90a.cubin", "vector_add", 90, "sm_90a", &vector_add);
    check("vector_add.sm_100a.cubin", "vector_add", 100, "sm_100a", &vector_add);
    check("vector_add.sm_80.cubin", "vector_add", 86, "sm_80", &vector_add);
    // wgmma. Six sizes and strides are an i32 each.
    let matmul =
        [(0, 8), (8, 8), (16, 8), (24, 4), (28, 4), (32, 4), (36, 4), (40, 4), (44, 4), (48, 8), (56, 8)];
    check("matmul.sm_90a.cubin", "matmul", 90, "sm_90a", &matmul);
}

/// `i = …`, `inside = …`, `tl.store(…)` stand in lines 20 to 22 of kernels.py.
#[test]
fn instructions_of_triton_are_counted_by_lines_of_python() {
    let engine = engine_of("hot_lines", None);
    let found = engine.inspect(&read("vector_add.sm_90a.cubin"));
    let prepared = engine.prepare(found.image, "vector_add", 90, Conditions::NONE).unwrap();
    let cells: Vec<&str> =
        prepared.manifest.kernels[0].tables[0].cells.iter().map(|cell| cell[0].as_str()).collect();
    for line in 20..=22 {
        let line = format!("/tmp/nt-corpora/kernels.py:{line}");
        assert!(cells.contains(&line.as_str()), "{line}: {cells:?}");
    }
}

#[test]
fn of_a_linked_cubin_the_text_that_holds_the_kernel() {
    check("linked.sm_90.cubin", "_Z6secondPi", 90, "sm_90", &[(0, 8)]);
}

#[test]
fn where_the_cubin_does_not_run_its_text_is_not_taken() {
    let engine = engine(None);
    let found = engine.inspect(&read("vector_add.sm_90a.cubin"));
    let refusal = engine.prepare(found.image, "vector_add", 100, Conditions::NONE).unwrap_err();
    assert!(refusal.reason.starts_with("no PTX for sm_100: "), "{}", refusal.reason);
}
