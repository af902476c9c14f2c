//! Where sites are: in the shapes of PTX that misled tools before, by line and column of the input.
//!
//! Each text is also woven, undone, verified, and assembled where `ptxas` is on PATH.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, obeys, probe, refusals, weave};

/// The sites of the module's kernels as `kind line:column guard opcode`, in text order.
fn check(ptx: &str, expected: &[&str]) {
    let woven = weave(ptx, &probe("block_sched"));
    assert_eq!(refusals(ptx, &woven), "");
    obeys(ptx, &woven, "woven.ptx");
    // ptxas 13.0 takes no UTF-8 in comments, 13.5 does.
    if let Some(ptxas) = Ptxas::find().filter(|_| ptx.is_ascii()) {
        ptxas.assemble(ptx).unwrap_or_else(|said| panic!("as it was: {said}"));
        ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("woven: {said}\n{}", woven.text));
    }
    let sites = woven.kernels.iter().flat_map(|kernel| &kernel.sites);
    let shown: Vec<String> = sites
        .map(|site| {
            let guard = site.guard.as_ref();
            let guard = guard.map_or_else(String::new, |g| {
                format!(" @{}{}", if g.negated { "!" } else { "" }, g.register)
            });
            let opcode = if site.opcode.is_empty() { String::new() } else { format!(" {}", site.opcode) };
            let kind = site.kind.tracepoint();
            let kind = kind.trim_start_matches("kernel:");
            format!("{kind} {}:{}{guard}{opcode}", site.line, site.column)
        })
        .collect();
    assert_eq!(shown, expected, "{ptx}");
}

const HEADER: &str = ".version 8.5\n.target sm_90\n.address_size 64\n";

/// A kernel whose body begins in line 6.
fn body(text: &str, expected: &[&str]) {
    check(&format!("{HEADER}.entry k(.param .u64 p)\n{{\n{text}\n}}\n"), expected);
}

#[test]
fn early_exits_and_traps() {
    body(
        ".reg .pred %p<4>;\nsetp.eq.u32 %p1, 1, 2;\nsetp.eq.u32 %p2, 1, 2;\nsetp.eq.u32 %p3, 1, 2;\n\
         @%p1 ret;\n  @%p2 exit;\n@!%p3 trap;\nbra.uni L;\nL: bar.sync 0;\nret;",
        &["entry 7:1", "exit 10:1 @%p1 ret", "exit 11:3 @%p2 exit", "exit 15:1 ret"],
    );
}

#[test]
fn code_behind_a_trap_is_none() {
    body(".reg .pred %p<2>;\nsetp.eq.u32 %p1, 1, 2;\n@%p1 ret;\ntrap;", &["entry 7:1", "exit 8:1 @%p1 ret"]);
}

#[test]
fn jump_tables() {
    body(
        ".reg .b32 %r<2>;\nmov.u32 %r1, %tid.x;\nT: .branchtargets A,\nB, C;\nbrx.idx %r1, T;\nA: ret;\nB: { ret; }\nC: ret;",
        &["entry 7:1", "exit 11:4 ret", "exit 12:6 ret", "exit 13:4 ret"],
    );
}

#[test]
fn labels_of_the_same_name_in_scopes() {
    body(
        ".reg .pred %p;\nsetp.eq.u32 %p, 1, 2;\n{ L: @%p bra L; }\n{ L: @%p bra L; }\nL: ret;",
        &["entry 7:1", "exit 10:4 ret"],
    );
}

#[test]
fn registers_of_inner_scopes() {
    // The guard is the inner register, a predicate; the outer one of that name is not.
    body(
        ".reg .b32 %p;\nmov.u32 %p, 5;\n{\n.reg .pred %p;\nsetp.eq.u32 %p, 1, 2;\n@%p ret;\n}\nmov.u32 %p, 6;",
        &["entry 7:1", "exit 11:1 @%p ret", "exit 14:1"],
    );
}

#[test]
fn opcodes_as_names() {
    check(
        &format!(
            "{HEADER}.entry _ZN2k$a_$_b(.param .u32 $param) {{ .reg .b32 ret, exit, mov, _y; mov.u32 exit, ret; ret; }}\n"
        ),
        &["entry 4:72", "exit 4:91 ret"],
    );
}

#[test]
fn pragmas_stay_with_their_labels() {
    body(
        ".pragma \"nounroll\";\n.reg .pred %p;\nsetp.eq.u32 %p, 1, 2;\nL:\n.pragma \"nounroll\";\n@%p bra L;\n@%p ret;\nbra L;",
        &["entry 8:1", "exit 12:1 @%p ret"],
    );
}

#[test]
fn a_label_before_the_brace() {
    // Referred to: control comes by. Not referred to, behind a return: nothing does.
    body(
        ".reg .pred %p;\nsetp.eq.u32 %p, 1, 2;\n@%p bra L;\nret;\nL:",
        &["entry 7:1", "exit 9:1 ret", "exit 11:1"],
    );
    body("ret;\nL:", &["entry 6:1", "exit 6:1 ret"]);
}

#[test]
fn only_declarations() {
    body(".reg .pred %p;\n.shared .b32 tile[4];", &["entry 8:1", "exit 8:1"]);
}

#[test]
fn exits_of_functions_are_none() {
    check(
        &format!(
            "{HEADER}.func f()\n{{\nret;\n}}\n.entry k()\n{{\ncall f, ();\nret;\n}}\n.entry hidden() {{ ret; }}\n"
        ),
        &["entry 10:1", "exit 11:1 ret", "entry 13:19", "exit 13:19 ret"],
    );
}

#[test]
fn line_ends_of_other_systems() {
    let unix = format!("{HEADER}.entry k()\n{{\n\t// ü\n\tret; // ü\n}}\n");
    check(&unix, &["entry 7:2", "exit 7:2 ret"]);
    check(&unix.replace('\n', "\r\n"), &["entry 7:2", "exit 7:2 ret"]);
}

#[test]
fn source_lines() {
    let ptx = format!(
        "{HEADER}.entry k()\n{{\n.loc 1 3 0\nbar.sync 0;\n.loc 1 9 5, function_name $L__info, inlined_at 1 4 2\nret;\n}}\n\
         .file 1 \"a/k.cu\"\n"
    );
    let woven = weave(&ptx, &probe("block_sched"));
    let sources: Vec<_> = woven.kernels[0].sites.iter().map(|site| site.source.clone()).collect();
    assert_eq!(sources, [Some(("a/k.cu".to_owned(), 3)), Some(("a/k.cu".to_owned(), 9))]);
}

#[test]
fn points_by_the_kernels_name() {
    let program = "program \"p\"\nmap m: array<warp> { at: u64 }\nprobe warp kernel:\"gemm*\":exit {\n  \
                   %0: u64 uniform = clock\n  save m(at = %0)\n}\n";
    let ptx = format!(
        "{HEADER}.entry gemm() {{ ret; }}\n.entry gemm_kernel() {{ ret; }}\n.entry sgemm() {{ ret; }}\n"
    );
    let woven = weave(&ptx, &common::prepare(program));
    let names: Vec<&str> = woven.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["gemm", "gemm_kernel"]);
    assert!(woven.text.contains(".entry sgemm() { ret; }"));
}
