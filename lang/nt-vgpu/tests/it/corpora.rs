//! Which instructions of the corpora are not executed: a list that may shrink.

use nt_vgpu::Program;
use std::collections::BTreeSet;

fn missing(path: &str) -> BTreeSet<String> {
    let path = format!("{}/../../testdata/ptx/{path}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (module, mut found) = nt_ptx::parse(&text);
    let info = nt_ptx::resolve(&module, &mut found);
    let program = Program::load(&module, &info).unwrap_or_else(|found| panic!("{found:?}"));
    program.missing().map(|(place, why)| format!("{}: {why}", place.opcode)).collect()
}

#[test]
fn what_nvcc_writes_is_executed() {
    for name in [
        "features.debug.sm_90",
        "features.rdc.sm_90",
        "features.sm_100",
        "features.sm_80",
        "features.sm_90",
        "kernels.debug.sm_90",
        "kernels.lineinfo.sm_90",
        "kernels.sm_100",
        "kernels.sm_80",
        "kernels.sm_90",
    ] {
        assert_eq!(missing(&format!("nvcc/{name}.ptx")), BTreeSet::new(), "{name}");
    }
}

#[test]
fn of_triton_the_tensor_cores_from_hopper_on_are_missing() {
    for kernel in ["attention", "matmul", "softmax", "vector_add"] {
        assert_eq!(missing(&format!("triton/{kernel}.sm_80.ptx")), BTreeSet::new(), "{kernel}");
        for arch in ["sm_90a", "sm_100a"] {
            let missing = missing(&format!("triton/{kernel}.{arch}.ptx"));
            let others: Vec<_> = missing
                .iter()
                .filter(|op| !op.starts_with("wgmma.") && !op.starts_with("tcgen05."))
                .collect();
            assert!(others.is_empty(), "{kernel} {arch}: {others:?}");
        }
    }
}
