//! Texts that are cut, doubled and shuffled: nothing panics, nothing hangs.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first thing that is wrong")]

use nt_affine::addresses;
use nt_ir::launch::Conditions;
use std::path::Path;

/// Numbers by chance (SplitMix64).
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as usize
}

fn prove_all(text: &str) {
    let (module, mut found) = nt_ptx::parse(text);
    let info = nt_ptx::resolve(&module, &mut found);
    for function in 0..module.functions.len() {
        addresses(&module, &info, function, Conditions::ALL);
    }
    addresses(&module, &info, usize::MAX, Conditions::ALL);
}

#[test]
fn spoilt_texts() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx");
    let mut state = 7;
    for file in [
        "nvcc/features.sm_90.ptx",
        "triton/matmul.sm_80.ptx",
        "numba/waves.sm_120.ptx",
        "zig/kernels.sm_80.ptx",
    ] {
        let text = std::fs::read_to_string(corpora.join(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for _ in 0..6 {
            let mut spoilt = lines.clone();
            for _ in 0..20 {
                let (a, b) = (next(&mut state) % spoilt.len(), next(&mut state) % spoilt.len());
                match next(&mut state) % 4 {
                    0 => drop(spoilt.remove(a)),
                    1 => spoilt.swap(a, b),
                    2 => spoilt.insert(a, lines[b % lines.len()]),
                    _ => {
                        let line = spoilt[a];
                        let cut = (0..=line.len())
                            .rev()
                            .find(|&at| line.is_char_boundary(at) && at <= line.len() / 2);
                        spoilt[a] = &line[..cut.unwrap_or(0)];
                    }
                }
            }
            prove_all(&spoilt.join("\n"));
        }
    }
}

#[test]
fn large_functions() {
    // Every branch parts lanes, and every register is written everywhere.
    let mut text = String::from(
        ".version 8.5 .target sm_90 .address_size 64 .entry k(.param .u64 a) {
        .reg .b32 %r<50>; .reg .b64 %d<9>; .reg .pred %p<4>; mov.u32 %r41, %tid.x; ld.param.u64 %d2, [a]; L:",
    );
    for k in 0..150 {
        let (a, b) = (k % 40, (k + 7) % 40);
        text.push_str(&format!(
            "setp.lt.u32 %p1, %r{a}, %r41; @%p1 bra A{k}; add.u32 %r{a}, %r{b}, 1; A{k}: add.u32 %r{b}, %r{a}, %r41;
            mad.wide.u32 %d1, %r{a}, 4, %d2; ld.global.u32 %r{b}, [%d1];"
        ));
    }
    text.push_str("setp.lt.u32 %p2, %r1, 9; @%p2 bra L; ret; }");
    prove_all(&text);
    // Loops in loops, deeper than is followed; blocks one behind the other.
    let open: String = (0..200).map(|k| format!("L{k}: add.u32 %r1, %r1, 1;")).collect();
    let close: String =
        (0..200).rev().map(|k| format!("setp.lt.u32 %p1, %r1, {k}; @%p1 bra L{k};")).collect();
    prove_all(&format!(
        ".version 8.5 .target sm_90 .entry k() {{ .reg .b32 %r<3>; .reg .pred %p<2>; mov.u32 %r1, 0; {open} {close} ret; }}"
    ));
    // A table of everything.
    let labels: Vec<String> = (0..120).map(|k| format!("L{k}")).collect();
    let blocks: String =
        labels.iter().map(|l| format!("{l}: add.u32 %r1, %r1, 1; brx.idx %r1, T;")).collect();
    prove_all(&format!(
        ".version 8.5 .target sm_90 .entry k() {{ .reg .b32 %r<3>; mov.u32 %r1, %tid.x; T: .branchtargets {}; {blocks} ret; }}",
        labels.join(", ")
    ));
}
