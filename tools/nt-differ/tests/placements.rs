//! Where probes stand, and for which lanes: `reach`, marks, lines and blocks before instructions with guards.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

#[path = "common/launch.rs"]
mod launch;

use launch::{Launch, words};

/// 64 threads; thread i takes 3·(i + 1) where i is below 40, adds 1 to i where it is not, and leaves early above 19.
const GUARDED: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<5>;
	.reg .b16 %rs<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	setp.lt.u32 %p1, %r1, 40;
	@%p1 mov.u64 %rd4, %rd3;
	.loc 1 11 0
	@%p1 ld.global.u32 %r2, [%rd4+4];
	// nt.mark comment
	.pragma \"nt.mark pragma\";
	.loc 1 12 0
	@!%p1 add.u32 %r3, %r1, 1;
	@%p1 setp.lt.u32 %p3, %r1, 7;
	@%p1 selp.b32 %r4, 1, 0, %p3;
	.loc 1 13 0
	@%p1 st.global.u32 [%rd3], %r2;
	setp.gt.u32 %p4, %r1, 19;
	@%p4 exit;
	ret;
}
";

fn guarded() -> Launch<'static> {
    Launch { ptx: GUARDED, threads: 64, buffer: words((0..65).map(|i| 3 * i)) }
}

#[test]
fn all_lanes_get_to_a_guarded_instruction() {
    // The address is no address in the 24 lanes that load nothing: 4·i + 4 in the others.
    guarded().check(
        "inst:load.global:reach { @n = count(); @on = sum(pred as u64); @at = sum(addr as u64 & 255); @b = sum(bytes as u64); }",
        &[("@n", 64), ("@on", 40), ("@at", 4 * 780 + 160), ("@b", 256)],
    );
    // 40 + … + 63.
    guarded().check(
        "ptx:\"add.u32\":reach { @n = count(); @on = sum(pred as u64); @in = sum(in1 as u64); }",
        &[("@n", 64), ("@on", 24), ("@in", 1236)],
    );
    // A predicate that is read, which only a guarded instruction assigned.
    guarded()
        .check("ptx:\"selp.b32\":reach { @n = count(); @in = sum(in3 as u64); }", &[("@n", 64), ("@in", 7)]);
    guarded().check(
        "ptx:\"st.global.u32\":reach { @n = count(); @old = sum(old as u64); @in = sum(in1 as u64); @same = sum((old == in1) as u64); }",
        &[("@n", 64), ("@old", 3 * 780), ("@in", 3 * 820), ("@same", 24)],
    );
    guarded().check(
        "line:\"k.cu\":12:reach { @reach = count(); } line:\"k.cu\":12 { @before = count(); }",
        &[("@reach", 64), ("@before", 24)],
    );
}

#[test]
fn probes_of_every_placement_meet() {
    guarded().check(
        "inst:store:reach { @reach = count(); } inst:store { @before = count(); @in = sum(in1 as u64); } \
         inst:store:after { @after = count(); }",
        &[("@reach", 64), ("@before", 40), ("@in", 3 * 820), ("@after", 40)],
    );
    // All get to the exit, where 44 lanes leave; the others return.
    guarded().check(
        "ptx:\"exit\":reach { @n = count(); @on = sum(pred as u64); } kernel:exit { @left = count(); }",
        &[("@n", 64), ("@on", 44), ("@left", 64)],
    );
    guarded().check(
        "inst:exit:reach { @n[op] = count(); } inst:exit { @m[op] = count(); }",
        &[("@n[exit]", 64), ("@n[ret]", 20), ("@m[exit]", 44), ("@m[ret]", 20)],
    );
    // Lanes 0 to 31 are a warp that has none to add to.
    guarded().check(
        "warp ptx:\"add.u32\":reach { @reach = count(); } warp ptx:\"add.u32\" { @before = count(); }",
        &[("@reach", 2), ("@before", 1)],
    );
}

#[test]
fn states_of_all_lanes() {
    guarded()
        .check("state n: u64; inst:store:reach { n += 3; } kernel:exit { @ = sum(n); }", &[("@", 3 * 64)]);
    guarded().check(
        "state n: u64; inst:store:reach { if pred { n += 1; } else { n += 100; } } kernel:exit { @ = sum(n); }",
        &[("@", 40 + 2400)],
    );
    guarded().check(
        "state t: u64; inst:store:reach { t = clock(); } kernel:exit { @ = sum((clock() > t && t > 0) as u64); }",
        &[("@", 64)],
    );
}

#[test]
fn marks_before_guarded_instructions() {
    guarded().check(
        "mark:\"*\" { @[mark] = count(); } warp mark:\"pragma\" { @warps = count(); }",
        &[("@[comment]", 64), ("@[pragma]", 64), ("@warps", 2)],
    );
}

#[test]
fn blocks_that_begin_with_guarded_instructions() {
    let ptx = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, 0;
	mov.u32 %r3, 0;
	setp.lt.u32 %p1, %r1, 5;
	.loc 1 20 0
$L_round:
	.pragma \"nounroll\";
	@%p1 add.u32 %r3, %r3, 1;
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p2, %r2, 3;
	@%p2 bra $L_round;
	.loc 1 21 0
$L_early:
	@%p1 exit;
	.loc 1 22 0
$L_last:
	@!%p1 trap;
	ret;
}
";
    // No lane comes to the trap but those that it ends: so that there are none of these, all lanes are below 5.
    let launch = Launch { ptx, threads: 5, buffer: words([0]) };
    launch.check("bb:loop { @ = count(); }", &[("@", 15)]);
    launch.check(
        "bb:entry { @[line] = count(); }",
        &[("@[src/k.cu:20]", 15), ("@[src/k.cu:21]", 5), ("@[ptx:10]", 5)],
    );
    let ptx = &ptx.replace("@!%p1 trap", "@!%p1 mov.u32 %r3, 9");
    let launch = Launch { ptx, threads: 64, buffer: words([0]) };
    launch.check(
        "bb:entry { @[line] = count(); } bb:loop { @loop[line] = count(); } warp bb:loop { @warps = count(); }",
        &[
            ("@[ptx:10]", 64),
            ("@[src/k.cu:20]", 192),
            ("@[src/k.cu:21]", 64),
            ("@[src/k.cu:22]", 59),
            ("@loop[src/k.cu:20]", 192),
            ("@warps", 6),
        ],
    );
}

#[test]
fn guarded_exits_of_functions() {
    let ptx = "
.func g(.param .b32 g_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	ld.param.b32 %r1, [g_0];
	setp.gt.u32 %p1, %r1, 19;
	@%p1 exit;
	@!%p1 ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<9>;
	mov.u32 %r1, %tid.x;
	{
	.param .b32 param1;
	st.param.b32 [param1], %r1;
	call.uni g, (param1);
	}
	ret;
}
";
    let launch = Launch { ptx, threads: 32, buffer: words([0]) };
    launch.check(
        "inst:exit:reach { @[func, op] = count(); } func:\"g\":exit { @out = count(); } kernel:exit { @left = count(); }",
        &[("@[g, exit]", 32), ("@[g, ret]", 20), ("@[k, ret]", 20), ("@out", 32), ("@left", 32)],
    );
    launch.check("bb:entry { @[func] = count(); }", &[("@[g]", 32 + 20), ("@[k]", 32)]);
}

#[test]
fn lanes_that_run_nothing_lead_nowhere() {
    let ptx = &GUARDED.replace("ld.global.u32", "ld.u32");
    let launch = Launch { ptx, ..guarded() };
    launch.check(
        "inst:load.global { @ = count(); } inst:load.generic:reach { @all = count(); }",
        &[("@", 40), ("@all", 64)],
    );
    assert_eq!(
        launch.refused("inst:load.global:reach { @ = count(); }"),
        Some((
            "unclear-address",
            "ld.u32".to_owned(),
            "where this leads is asked when it runs, and lanes whose guard does not hold lead nowhere; \
             probe it `before`, or all that do not say where they go: `generic:reach`"
                .to_owned()
        ))
    );
}
