//! How many global accesses of kernels in the corpora are proved, are indirect, and are not known: less may become of
//! none, and more is told here and in `docs/affine.md`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first thing that is wrong")]

use nt_affine::{Proof, addresses};
use nt_ir::launch::Conditions;
use nt_ptx::opcode::Space;
use nt_ptx::syntax::Kind;
use std::path::Path;

fn check(file: &str, expected: [usize; 3]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let (module, mut found) = nt_ptx::parse(&text);
    let info = nt_ptx::resolve(&module, &mut found);
    let mut counts = [0; 3];
    for function in 0..module.functions.len() {
        for access in addresses(&module, &info, function, Conditions::ALL) {
            let Kind::Instruction(instruction) = module.statements[access.statement as usize].kind else {
                continue;
            };
            let facts = module.facts(&instruction).unwrap();
            if [facts.space, facts.other_space].contains(&Some(Space::Global)) {
                counts[match access.proof {
                    Proof::Bits { .. } => 0,
                    Proof::Indirect => 1,
                    Proof::Unknown => 2,
                }] += 1;
            }
        }
    }
    assert_eq!(counts, expected, "{file}: proved, indirect, unknown");
}

#[test]
fn proved_indirect_unknown() {
    // Of the 8 the lanes have no stride: those of a warp leave the remainder loop in different turns.
    check("nvcc/kernels.sm_80.ptx", [96, 5, 8]);
    check("nvcc/kernels.sm_90.ptx", [96, 5, 8]);
    check("nvcc/kernels.sm_100.ptx", [130, 29, 34]);
    check("nvcc/features.sm_90.ptx", [83, 0, 0]);
    check("clang/kernels.sm_80.ptx", [43, 1, 0]);
    for arch in ["sm_80", "sm_90a", "sm_120a"] {
        check(&format!("triton/vector_add.{arch}.ptx"), [6, 0, 0]);
        check(&format!("triton/softmax.{arch}.ptx"), [8, 0, 0]);
        check(&format!("triton/attention.{arch}.ptx"), [32, 0, 0]);
        check(&format!("triton/matmul.{arch}.ptx"), [32, 0, 0]);
    }
    check("triton/attention.sm_100a.ptx", [44, 0, 0]);
    check("triton/matmul.sm_100a.ptx", [40, 0, 0]);
}
