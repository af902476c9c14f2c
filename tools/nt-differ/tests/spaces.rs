//! Spaces are meant, not spelled: generic addresses into every space, what is asked of them, and what stores there overwrite.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

#[path = "common/launch.rs"]
mod launch;

use launch::{Launch, words};

/// Sixteen threads load by one instruction: four global memory, five shared, two local, three constants, two parameters.
const LOADS: &str = "
.const .align 4 .u32 fixed[4] = {1000, 1001, 1002, 1003};
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<5>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.shared .align 8 .b8 tile[64];
	.local .align 8 .b8 own[8];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	mov.u64 %rd3, tile;
	add.s64 %rd3, %rd3, %rd2;
	st.shared.u32 [%rd3], %r1;
	cvta.shared.u64 %rd3, %rd3;
	mov.u64 %rd4, own;
	st.local.u32 [%rd4+4], 50;
	cvta.local.u64 %rd4, %rd4;
	mov.u64 %rd5, fixed;
	cvta.const.u64 %rd5, %rd5;
	mov.b64 %rd6, p;
	cvta.param.u64 %rd6, %rd6;
	setp.ge.u32 %p1, %r1, 4;
	selp.b64 %rd7, %rd3, %rd1, %p1;
	setp.ge.u32 %p2, %r1, 9;
	selp.b64 %rd7, %rd4, %rd7, %p2;
	setp.ge.u32 %p3, %r1, 11;
	selp.b64 %rd7, %rd5, %rd7, %p3;
	setp.ge.u32 %p4, %r1, 14;
	selp.b64 %rd7, %rd6, %rd7, %p4;
	ld.u32 %r2, [%rd7+4];
	ret;
}
";

fn loads(head: &str) -> String {
    format!("{head}{LOADS}")
}

const SM_90: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";
const SM_80: &str = ".version 7.0\n.target sm_80\n.address_size 64\n";

fn launch(ptx: &str) -> Launch<'_> {
    Launch { ptx, threads: 16, buffer: words((0..20).map(|i| 100 + i)) }
}

#[test]
fn each_space_is_asked_for() {
    let ptx = loads(SM_90);
    let check = |space: &str, expected: &[(&str, i64)]| {
        launch(&ptx).check(&format!("inst:load.{space} {{ @[op] = count(); }}"), expected);
    };
    // A kernel's parameters are in global memory, as the manual has it.
    check("global", &[("@[ld.u32]", 6)]);
    check("shared", &[("@[ld.u32]", 5)]);
    check("local", &[("@[ld.u32]", 2)]);
    check("const", &[("@[ld.u32]", 3)]);
    check("param", &[("@[ld.u32]", 2), ("@[ld.param.u64]", 16)]);
    check("cluster", &[]);
    check("shared|cluster", &[("@[ld.u32]", 5)]);
    check("global|local", &[("@[ld.u32]", 8)]);
    check("global|param", &[("@[ld.u32]", 6), ("@[ld.param.u64]", 16)]);
    check("generic", &[("@[ld.u32]", 16)]);
    check("generic|global", &[("@[ld.u32]", 16)]);
    launch(&ptx).check("inst:load.tensor { @ = count(); } kernel:entry { @one = count(); }", &[("@one", 16)]);
}

#[test]
fn what_one_point_of_a_list_leaves_out_another_may_mean() {
    let ptx = loads(SM_90);
    launch(&ptx).check("inst:load.local, inst:load.shared { @ = count(); }", &[("@", 7)]);
    launch(&ptx).check("inst:load.local, ptx:\"ld.u32\" { @ = count(); }", &[("@", 16)]);
    launch(&ptx).check(
        "inst:load.local:after, inst:load.shared:after { @ = sum(out as u64); }",
        &[
            // i + 1 was stored by the next thread.
            ("@", (5 + 6 + 7 + 8 + 9) + 2 * 50),
        ],
    );
}

#[test]
fn which_space_it_is() {
    let ptx = loads(SM_90);
    let known = [("@[const]", 3), ("@[global]", 6), ("@[local]", 2), ("@[shared]", 5)];
    launch(&ptx).check("inst:load.generic { @[space] = count(); }", &known);
    launch(&ptx).check("inst:load.local|const { @[space] = count(); }", &[("@[local]", 2), ("@[const]", 3)]);
    launch(&ptx).check("inst:load /op == \"ld.u32\" && space == \"sh*\"/ { @ = count(); }", &[("@", 5)]);
    launch(&ptx).check(
        "state n: u64; inst:load.generic { if space == \"shared\" { n += 1; } else { n += 100; } } kernel:exit { @ = sum(n); }",
        &[("@", 5 + 1100)],
    );
    launch(&ptx).check(
        "warp inst:load.generic { @[space] = count(); }",
        &[("@[const]", 1), ("@[global]", 1), ("@[local]", 1), ("@[shared]", 1)],
    );
    launch(&ptx).check(
        "inst:load.generic:after { @[space] = sum(out as u64); }",
        &[
            ("@[const]", 3 * 1001),
            // 101 + … + 104, and the upper half of the parameter, the buffer's address.
            ("@[global]", 410 + 2 * upper(&ptx)),
            ("@[local]", 100),
            ("@[shared]", 35),
        ],
    );
}

/// The upper half of the buffer's address, by the kernel's own load.
fn upper(ptx: &str) -> i64 {
    let cells = launch(ptx).cells("ptx:\"ld.param.u64\":after { @ = sum((out as u64) >> 32); }");
    cells["@"] / 16
}

#[test]
fn a_target_without_a_window_has_nothing_in_it() {
    let text = loads(SM_80).replace("cvta.param.u64 %rd6, %rd6", "mov.b64 %rd6, %rd5");
    let launch = launch(&text);
    launch.check(
        "inst:load.generic { @[space] = count(); }",
        &[("@[global]", 4), ("@[shared]", 5), ("@[local]", 2), ("@[const]", 5)],
    );
    launch.check("inst:load.cluster { @ = count(); } kernel:entry { @one = count(); }", &[("@one", 16)]);
    launch.check("inst:load.cluster|local { @ = count(); }", &[("@", 2)]);
}

#[test]
fn other_classes_ask_too() {
    let ptx = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<3>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.shared .align 8 .b8 tile[64];
	.local .align 8 .b8 own[8];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	mov.u64 %rd3, tile;
	add.s64 %rd3, %rd3, %rd2;
	st.shared.u32 [%rd3], %r1;
	cvta.shared.u64 %rd3, %rd3;
	setp.ge.u32 %p1, %r1, 4;
	selp.b64 %rd7, %rd3, %rd1, %p1;
	atom.add.u32 %r2, [%rd7], 1;
	red.add.u32 [%rd7], 1;
	prefetch.L1 [%rd7];
	mov.u64 %rd4, own;
	st.local.u32 [%rd4], 70;
	cvta.local.u64 %rd4, %rd4;
	setp.ge.u32 %p2, %r1, 9;
	selp.b64 %rd7, %rd4, %rd7, %p2;
	st.u32 [%rd7], 8;
	ret;
}
";
    let launch = Launch { ptx, threads: 12, buffer: words((0..12).map(|i| 100 + i)) };
    let of = |class: &str, global: i64, shared: i64, local: i64| {
        let both = [
            (format!("@g[{class}]"), global),
            (format!("@s[{class}]"), shared),
            (format!("@l[{class}]"), local),
        ];
        let probe = format!(
            "inst:{class}.global {{ @g[class] = count(); }} inst:{class}.shared /op != \"st.shared*\"/ {{ @s[class] = count(); }} \
             inst:{class}.local /op != \"st.local*\"/ {{ @l[class] = count(); }}"
        );
        let there = both.iter().filter(|(_, count)| *count != 0);
        let expected: Vec<(&str, i64)> = there.map(|(key, count)| (key.as_str(), *count)).collect();
        launch.check(&probe, &expected);
    };
    of("atomic", 4, 8, 0);
    of("reduce", 4, 8, 0);
    of("prefetch", 4, 8, 0);
    of("store", 4, 5, 3);
    // 100 + i + 2 each, i + 2 each from 4 to 8, and 70 in three lanes.
    launch.check(
        "inst:store.generic { @[space] = sum(old as u64); }",
        &[("@[global]", 414), ("@[shared]", 40), ("@[local]", 210)],
    );
    launch.check("inst:store.shared /op == \"st.u32\"/ { @ = sum(old as u64); }", &[("@", 40)]);
    launch.check(
        "ptx:\"st.u32\":reach { @ = sum(old as u64); @same = sum((old == in1) as u64); }",
        &[("@", 664), ("@same", 1)],
    );
}

#[test]
fn what_stores_to_variables_overwrite() {
    let ptx = "
.global .align 8 .u32 lut[4] = {7, 8, 9, 10};
.shared .align 4 .u32 word;
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<3>;
	.reg .b32 %r<9>;
	mov.u32 %r1, %tid.x;
	setp.eq.u32 %p1, %r1, 5;
	@%p1 st.global.u32 [lut+4], %r1;
	@%p1 st.global.v2.u32 [lut], {%r1, %r1};
	@%p1 st.shared.u32 [word], 3;
	@%p1 st.shared.u32 [word], 4;
	ret;
}
";
    let launch = Launch { ptx, threads: 8, buffer: words([0]) };
    launch.check("ptx:\"st.global.u32\" { @ = sum(old as u64); }", &[("@", 8)]);
    launch.check("ptx:\"*v2*\" { @a = sum(old as u64); @b = sum(old[1] as u64); }", &[("@a", 7), ("@b", 5)]);
    launch.check("inst:store.shared /line == 17/ { @ = sum(old as u64); }", &[("@", 3)]);
}
