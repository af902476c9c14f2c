//! What the GPU of the golden results does not have, by hand: pairs of f32, three operands, `redux` of f32; and the size
//! of this crate.

use crate::common::{Device, read};
use std::path::Path;

/// What the one lane leaves in `%r1`.
fn one(body: &str) -> u32 {
    Device::with_body(&format!("{body}\nst.global.u32 [%out], %r1;"))
        .words(1, 1, 1)
        .unwrap_or_else(|f| panic!("{body}: {f}"))[0]
}

#[test]
fn pairs_of_f32() {
    let pair = "mov.b64 %rd1, {0f3F800000, 0f40000000}; mov.b64 %rd2, {0f40400000, 0f40800000};"; // (1, 2), (3, 4)
    let of = |op: &str, half: &str| {
        f32::from_bits(one(&format!("{pair} {op} mov.b64 {{%r2, %r3}}, %rd3; mov.b32 %r1, {half};")))
    };
    for (op, low, high) in [
        ("add.f32x2 %rd3, %rd1, %rd2;", 4.0, 6.0),
        ("sub.rn.f32x2 %rd3, %rd1, %rd2;", -2.0, -2.0),
        ("mul.ftz.f32x2 %rd3, %rd1, %rd2;", 3.0, 8.0),
        ("fma.rn.f32x2 %rd3, %rd1, %rd2, %rd2;", 6.0, 12.0),
    ] {
        assert_eq!((of(op, "%r2"), of(op, "%r3")), (low, high), "{op}");
    }
}

#[test]
fn the_largest_of_three() {
    let of = |op: &str| {
        f32::from_bits(one(&format!("{op} %f1, 0f3F800000, 0f40400000, 0f40000000; mov.b32 %r1, %f1;")))
    };
    assert_eq!(of("max.f32"), 3.0);
    assert_eq!(of("min.ftz.f32"), 1.0);
    assert!(of("max.NaN.f32").eq(&3.0));
}

#[test]
fn reductions_of_f32() {
    let body = "cvt.rn.f32.u32 %f1, %i; sub.f32 %f1, %f1, 0f41200000; mov.b32 %r2, %f1; redux.sync.OP.f32 %r1, %r2, 0xffffffff;
        mul.wide.u32 %rd1, %i, 4; add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], %r1;";
    // Of -10 to 21.
    for (op, want) in [("max", 21.0f32), ("min", -10.0), ("min.abs", 0.0), ("max.abs.NaN", 21.0)] {
        let words = Device::with_body(&body.replace("OP", op)).words(1, 32, 32).unwrap();
        assert_eq!(words, [want.to_bits(); 32], "{op}");
    }
}

#[test]
fn programs_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<nt_vgpu::Program>();
    shared::<nt_vgpu::Grid<'_>>();
}

fn lines(folder: &Path) -> usize {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            if path.is_dir() { lines(&path) } else { std::fs::read_to_string(path).unwrap().lines().count() }
        })
        .sum()
}

#[test]
fn size() {
    assert!(read("lang/nt-vgpu/README.md").contains("at most 8250 lines"));
    let lines = lines(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(lines <= 8250, "{lines} lines");
}
