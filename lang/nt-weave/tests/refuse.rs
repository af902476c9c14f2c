//! What cannot be probed is refused by name, with the place and the way out; the rest is woven all the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{prepare, probe, refusals, weave};
use expect_test::{Expect, expect};

const HEADER: &str = ".version 8.5\n.target sm_90\n.address_size 64\n";

#[allow(clippy::needless_pass_by_value, reason = "`expect!` makes a value")]
fn check_with(ptx: &str, program: &nt_ir::Prepared, expected: Expect) {
    let woven = weave(ptx, program);
    expected.assert_eq(&refusals(ptx, &woven));
    for (refused, _) in &woven.refused {
        assert!(woven.kernels.iter().all(|kernel| kernel.name != *refused));
    }
    if woven.kernels.is_empty() {
        assert_eq!(woven.text, ptx, "nothing is woven, so nothing may change");
    }
}

fn check(kernels: &str, program: &str, expected: Expect) {
    check_with(&format!("{HEADER}{kernels}"), &probe(program), expected);
}

#[test]
fn call_through_a_pointer() {
    check(
        ".func f() { ret; }\n.entry k(.param .u64 q)\n{\n\t.reg .b64 %rd1;\n\tld.param.u64 %rd1, [q];\n\tp: .callprototype ()_ ();\n\tcall %rd1, (), p;\n\tret;\n}\n",
        "block_sched",
        expect![[r#"
            in.ptx:10:2: error: `kernel:exit` cannot be probed in `k`
              10 |     call %rd1, (), p;
                 |     ^^^^^^^^^^^^^^^^^ `k` calls through a pointer
              note: what is called there may hold `exit`, past which no probe would see the lane leave
              help: probe `kernel:entry` alone, or choose other kernels with `-k`
        "#]],
    );
}

#[test]
fn entry_that_is_an_operand() {
    check(
        ".visible .entry child() { ret; }\n.visible .global .u64 table[1] = { child };\n.entry k() { ret; }\n",
        "block_sched",
        expect![[r#"
            in.ptx:4:17: error: kernel `child` cannot be probed
              4 | .visible .entry child() { ret; }
                |                 ^^^^^ its own symbol is an operand in this module
              note: whoever launches it from the device would not pass the context that probes need
        "#]],
    );
}

#[test]
fn no_room_for_the_context() {
    // 32,764 bytes are the limit: 32,740 and 24 of context are exactly that, aligned to 8 they are not.
    check(
        ".entry fits(.param .align 4 .b8 a[32736]) { ret; }\n.entry full(.param .align 4 .b8 a[32740]) { ret; }\n",
        "block_sched",
        expect![[r#"
            in.ptx:5:8: error: kernel `full` has no room for one parameter more
              5 | .entry full(.param .align 4 .b8 a[32740]) { ret; }
                |        ^^^^ 32740 bytes of parameters and 24 of context make 32768, the limit is 32764
        "#]],
    );
}

#[test]
fn more_parameters_raise_the_version() {
    let ptx =
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .align 4 .b8 a[4352]) { ret; }\n";
    let woven = weave(ptx, &probe("block_sched"));
    assert_eq!(woven.raised.map(|raised| (raised.from, raised.to)), Some(((8, 0), (8, 1))));
    let ptx =
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .align 4 .b8 a[4320]) { ret; }\n";
    assert_eq!(
        weave(ptx, &probe("block_sched")).raised,
        None,
        "4,344 and 8 are the limit, 24 fit behind 4,320"
    );
}

#[test]
fn target_without_what_a_builtin_needs() {
    let ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { ret; }\n";
    check_with(
        ptx,
        &probe("cluster"),
        expect![[r#"
        in.ptx:2:1: error: `cluster.id` needs sm_90, this module is for sm_80
          2 | .target sm_80
            | ^^^^^^^^^^^^^
          note: in.ptx:4:8: wanted in kernel `k`
          note: it needs `.version 7.8` too, of which this module says 7.0; that alone could be raised
          help: compile for sm_90 or later, or choose kernels that do without it
    "#]],
    );
}

#[test]
fn special_register_that_is_shadowed() {
    check(
        ".entry k()\n{\n\t{\n\t\t.reg .b32 %clock;\n\t\tmov.u32 %clock, 0;\n\t\tret;\n\t}\n}\n",
        "block_sched",
        expect![[r#"
            in.ptx:7:13: error: `%clock` is a name of the module's own here
              7 |         .reg .b32 %clock;
                |                   ^^^^^^ the kernel cannot be probed: inserted code would read it instead of the special register
        "#]],
    );
}

#[test]
fn module_that_was_woven() {
    let once = weave(&format!("{HEADER}.entry k() {{ ret; }}\n"), &probe("block_sched")).text;
    check_with(
        &once,
        &probe("block_sched"),
        expect![[r#"
        in.ptx:4:10: error: the module has been woven already
          4 | .entry k(/*nt:edit {*/.param .align 8 .b8 nt_ctx[24]/*nt:ctx prefix=nt_ zero@0:8 base.block_sched@8:8 cap.block_sched@16…
            |          ^^^^^
          help: weave the original, with all probes in one program
    "#]],
    );
}

#[test]
fn addresses_of_32_bits() {
    let ptx = ".version 8.5\n.target sm_90\n.address_size 32\n.entry k() { ret; }\n";
    check_with(
        ptx,
        &probe("block_sched"),
        expect![[r#"
        in.ptx:3:1: error: modules with 32-bit addresses cannot be probed
          3 | .address_size 32
            | ^^^^^^^^^^^^^
    "#]],
    );
}

#[test]
fn last_thread_of_a_block() {
    let program = "program \"p\"\nmap m: array<block> { at: u64 }\nprobe block kernel:exit {\n  %0: u64 uniform = time\n  save m(at = %0)\n}\n";
    check_with(
        &format!("{HEADER}.entry k() {{ ret; }}\n"),
        &prepare(program),
        expect![[r#"
        in.ptx:4:8: error: kernel `k` cannot be probed: a `block` probe at `kernel:exit` must know the last thread to leave, which is not supported yet; use `warp kernel:exit`
          4 | .entry k() { ret; }
            |        ^
    "#]],
    );
}

#[test]
fn nothing_to_put_anywhere() {
    let ptx = format!("{HEADER}.entry k() {{ ret; }}\n");
    // No kernel of that name, and a kernel that no lane leaves but by a trap.
    let elsewhere = "program \"p\"\nmap m: array<warp> { at: u64 }\nprobe warp kernel:\"x*\":exit {\n  %0: u64 uniform = clock\n  save m(at = %0)\n}\n";
    let woven = weave(&ptx, &prepare(elsewhere));
    assert!(woven.kernels.is_empty() && woven.refused.is_empty() && woven.text == ptx);
    let ptx = format!("{HEADER}.entry k() {{ trap; }}\n");
    let woven = weave(&ptx, &probe("block_sched"));
    assert!(woven.kernels.is_empty() && woven.refused.is_empty() && woven.text == ptx);
}

#[test]
fn callee_that_is_elsewhere() {
    check(
        ".extern .func far();\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .entry k() { call far, (); ret; }\n",
        "block_sched",
        expect![[r#"
            in.ptx:6:8: error: `kernel:exit` cannot be probed in `k`
              6 | .entry k() { call far, (); ret; }
                |        ^ it reaches `far`, which is not in this module
              note: it may hold `exit`, past which no probe would see the lane leave
              note: in.ptx:4:15: declared here
              help: probe `kernel:entry` alone, or choose other kernels with `-k`
        "#]],
    );
}

#[test]
fn places_that_are_not_understood() {
    check(
        ".entry k()\n{\n\t.frobnicate 4;\n\tret;\n}\n.entry fine() { .pragma \"nounroll\"; ret; }\n",
        "block_sched",
        expect![[r#"
            in.ptx:6:2: error: kernel `k` cannot be probed
              6 |     .frobnicate 4;
                |     ^^^^^^^^^^^^^^ what this directive before a site means is not known
        "#]],
    );
    check(
        ".entry k()\n{\n\t.pragma \"frobnicate 0xf\";\n\tret;\n}\n",
        "block_sched",
        expect![[r#"
        in.ptx:6:2: error: kernel `k` cannot be probed
          6 |     .pragma "frobnicate 0xf";
            |     ^^^^^^^^^^^^^^^^^^^^^^^^^ this pragma may speak of the very next instruction, which would be an inserted one
    "#]],
    );
    check(
        "// a\r// b\n.entry k() { ret; }\n",
        "block_sched",
        expect![[r#"
        in.ptx:4:5: error: a `//` comment with a carriage return in it: assemblers and readers disagree on its end
          4 | // a
            |     ^
    "#]],
    );
    check(
        ".entry k(.param .u32 a,) { ret; }\n",
        "block_sched",
        expect![[r#"
        in.ptx:4:23: error: the parameters of kernel `k` cannot be read to their end
          4 | .entry k(.param .u32 a,) { ret; }
            |                       ^ no parameter begins here
    "#]],
    );
}

#[test]
fn an_array_with_a_capacity_where_lanes_may_leave_out_of_sight() {
    let program = "program \"t\" map m: array<warp>[8] wrap { cu: u32 }
         probe warp kernel:entry { %0: u32 uniform = cu save m(cu = %0) }";
    check_with(
        &format!("{HEADER}.extern .func f();\n.entry k()\n{{\n\tcall f;\n\tret;\n}}\n"),
        &prepare(program),
        expect![[r#"
            in.ptx:5:8: error: an array with a capacity cannot be probed in `k`
              5 | .entry k()
                |        ^ it reaches `f`, which is not in this module
              note: it may hold `exit`, past which no probe would see the lane leave
              note: in.ptx:4:15: declared here
              help: save to a `stream<warp>`, or choose other kernels with `-k`
        "#]],
    );
}
