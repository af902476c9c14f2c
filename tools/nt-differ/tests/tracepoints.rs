//! Every tracepoint and operand, on kernels small enough that what a probe must find is worked out by hand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

#[path = "common/launch.rs"]
mod launch;

use launch::{Launch, words};

/// 64 threads; thread i loads 3·i, of the first 40 of which 100 more are stored, and goes round three times.
const ROUNDS: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.loc 1 10 0
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	.loc 1 11 0
	ld.global.u32 %r2, [%rd1];
	setp.lt.u32 %p1, %r1, 40;
	.loc 1 12 0
	@%p1 add.u32 %r2, %r2, 100;
	mov.u32 %r3, 0;
$L_round:
	.pragma \"nt.mark round.begin\";
	.loc 1 13 0
	add.u32 %r3, %r3, 1;
	// nt.mark turn
	setp.lt.u32 %p2, %r3, 3;
	@%p2 bra $L_round;
	.loc 1 12 0
	@%p1 st.global.u32 [%rd1], %r2;
	ret;
}
";

fn rounds() -> Launch<'static> {
    Launch { ptx: ROUNDS, threads: 64, buffer: words((0..64).map(|i| 3 * i)) }
}

#[test]
fn what_instructions_give_and_take() {
    // 3 · (0 + … + 63), and 3 · (0 + … + 39).
    rounds().check("inst:load.global:after { @a = sum(out as u64); }", &[("@a", 6048)]);
    rounds().check(
        "ptx:\"add.u32\":after { @out[line] = sum(out as u64); @in[line] = sum(in1 as u64); @by[line] = sum(in2 as u64); }",
        &[
            ("@out[src/k.cu:12]", 2340 + 4000),
            ("@in[src/k.cu:12]", 2340),
            ("@by[src/k.cu:12]", 4000),
            ("@out[src/k.cu:13]", 64 * (1 + 2 + 3)),
            ("@in[src/k.cu:13]", 64 * (1 + 2)),
            ("@by[src/k.cu:13]", 64 * 3),
        ],
    );
    rounds().check(
        "ptx:\"add.u32\" { @in[line] = sum(in1 as u64); }",
        &[("@in[src/k.cu:12]", 2340), ("@in[src/k.cu:13]", 64 * (1 + 2))],
    );
    rounds().check("inst:store.global { @a = sum(in1 as u64); }", &[("@a", 6340)]);
    rounds().check(
        "inst:compare:after { @a[line] = sum(out as u64); }",
        &[("@a[src/k.cu:11]", 40), ("@a[src/k.cu:13]", 128)],
    );
    rounds().check(
        "inst:*:after { if has(out) && class == \"load\" { @a[op] = count(); } }",
        &[("@a[ld.param.u64]", 64), ("@a[ld.global.u32]", 64)],
    );
}

#[test]
fn branches_guards_and_placements() {
    rounds().check(
        "inst:branch { @taken = sum(taken as u64); @all = count(); }",
        &[("@taken", 128), ("@all", 192)],
    );
    rounds().check("inst:branch:before { @n = count(); }", &[("@n", 128)]);
    rounds().check("inst:branch { @guard = sum(pred as u64); }", &[("@guard", 128)]);
    // One probe for all lanes, one for those whose guard holds, at one instruction.
    rounds().check(
        "inst:branch { @all = count(); } ptx:\"bra\" { @some = count(); }",
        &[("@all", 192), ("@some", 128)],
    );
    rounds()
        .check("inst:store { @n = count(); } inst:store:after { @m = count(); }", &[("@n", 40), ("@m", 40)]);
    // Nothing runs behind what jumps or ends.
    rounds().check(
        "inst:*:after { @n[class] = count(); }",
        &[
            ("@n[load]", 128),
            ("@n[move]", 128),
            ("@n[int]", 64 + 64 + 40 + 192),
            ("@n[compare]", 64 + 192),
            ("@n[store]", 40),
        ],
    );
    // In warps: the second has eight lanes whose guard holds.
    rounds().check("warp inst:store:after { @n = count(); }", &[("@n", 2)]);
}

#[test]
fn lines_marks_and_blocks() {
    rounds().check("line:\"k.cu\":12 { @[line] = count(); }", &[("@[src/k.cu:12]", 40 + 40)]);
    rounds().check(
        "line:\"src/k.cu\":10-11, line:\"k.cu\":13 { @[line] = count(); }",
        &[("@[src/k.cu:10]", 64), ("@[src/k.cu:11]", 64), ("@[src/k.cu:13]", 192)],
    );
    rounds().check("line:\"c/k.cu\":10 { @ = count(); } kernel:entry { @one = count(); }", &[("@one", 64)]);
    rounds().check(
        "mark:\"t*\"|\"*.begin\" { @[mark] = count(); }",
        &[("@[turn]", 192), ("@[round.begin]", 192)],
    );
    rounds().check("bb:entry { @ = count(); } bb:loop { @loop = count(); }", &[("@", 320), ("@loop", 192)]);
}

#[test]
fn clocks_wait_for_values() {
    let probe = "state t: u64; inst:load.global { t = clock(); } \
                 inst:load.global:after { @waited = sum((clock(out) > t) as u64); @low = sum((clock32(out) == clock32(out)) as u64 * 0 + 1); }";
    rounds().check(probe, &[("@waited", 64), ("@low", 64)]);
}

#[test]
fn what_is_overwritten_is_what_it_was() {
    // The address is overwritten by what it led to, which is where it led; buffers begin at multiples of 256.
    let ptx = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	setp.lt.u32 %p1, %r1, 10;
	@%p1 ld.global.u32 %rd1, [%rd1+4];
	@!%p1 setp.lt.u32 %p1, %r1, 12;
	selp.b32 %r2, 1, 0, %p1;
	ret;
}
";
    let launch = Launch { ptx, threads: 16, buffer: words(0..17) };
    launch.check(
        "ptx:\"ld.global*\":after { @at = sum(addr as u64 & 255); @out = sum(out as u64); }",
        &[("@at", 4 * 45 + 40), ("@out", 45 + 10)],
    );
    // The guard is its own result: six lanes run it, of which two set it.
    launch.check("inst:compare:after /class == \"compare\" && has(out)/ { @n[line] = count(); @set[line] = sum(out as u64); }", &[
        ("@n[ptx:15]", 16),
        ("@set[ptx:15]", 10),
        ("@n[ptx:17]", 6),
        ("@set[ptx:17]", 2),
        ("@n[ptx:18]", 16),
        ("@set[ptx:18]", 12),
    ]);
}

#[test]
fn types_are_those_of_the_instruction() {
    let ptx = "
.visible .entry k(.param .u64 p)
{
	.reg .b16 %rs<4>;
	.reg .b32 %r<9>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	ld.global.s8 %rs1, [%rd1];
	ld.global.u8 %r2, [%rd1];
	ld.global.s16 %r3, [%rd1];
	ld.global.v2.f32 {%f1, %f2}, [%rd1+8];
	add.f32 %f3, %f1, 0f3F800000;
	st.global.v2.b16 [%rd1], {%rs1, 7};
	ret;
}
";
    let mut buffer = vec![0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    buffer.extend([1.5f32, -2.25].iter().flat_map(|f| f.to_le_bytes()));
    let launch = Launch { ptx, threads: 32, buffer };
    launch.check(
        "ptx:\"ld.global.?8\"|\"ld.global.s16\":after { @[op] = sum(out as s64); }",
        &[("@[ld.global.s8]", -2 * 32), ("@[ld.global.u8]", 254 * 32), ("@[ld.global.s16]", -2 * 32)],
    );
    launch.check(
        "ptx:\"*v2.f32\":after { @a = sum(out as bits u32); @b = sum(out[1] as bits u32); }",
        &[("@a", 0x3fc0_0000 * 32), ("@b", 0xc010_0000 * 32)],
    );
    launch.check(
        "inst:float { @a = sum(in1 as bits u32); @b = sum(in2 as bits u32); }",
        &[("@a", 0x3fc0_0000 * 32), ("@b", 0x3f80_0000 * 32)],
    );
    launch.check(
        "inst:store { @a = sum(in1 as u64); @b = sum(in1[1] as u64); }",
        &[("@a", 0xfffe * 32), ("@b", 7 * 32)],
    );
}

#[test]
fn what_stores_overwrite() {
    let ptx = "
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<2>;
	.reg .b16 %rs<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.shared .align 8 .b8 tile[256];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 8;
	add.s64 %rd1, %rd1, %rd2;
	mov.u32 %r2, tile;
	mad.lo.u32 %r2, %r1, 8, %r2;
	setp.lt.u32 %p1, %r1, 10;
	st.shared.v2.u32 [%r2], {%r1, 3};
	@%p1 st.shared.u32 [%r2+4], 4;
	st.shared.v2.b32 [%r2], {6, 7};
	st.global.u32 [%rd1+4], 5;
	st.global.s8 [%rd1], %r1;
	mov.u16 %rs1, 9;
	st.global.b16 [%rd1+2], %rs1;
	ret;
}
";
    let launch =
        Launch { ptx, threads: 32, buffer: words((0..64).map(|i| if i % 2 == 1 { 5 } else { 0x1234_56fe })) };
    launch.check(
        "inst:store.global { @same[op] = sum((old == in1) as u64); @old[op] = sum(old as s64); }",
        &[
            ("@same[st.global.u32]", 32),
            ("@old[st.global.u32]", 5 * 32),
            ("@old[st.global.s8]", -2 * 32),
            ("@old[st.global.b16]", 0x1234 * 32),
        ],
    );
    launch.check(
        "ptx:\"st.shared.u32\" { @old = sum(old as u64); @n = count(); }",
        &[("@old", 30), ("@n", 10)],
    );
    launch.check(
        "ptx:\"st.shared.v2.b32\" { @a = sum(old as u64); @b = sum(old[1] as u64); }",
        &[("@a", 496), ("@b", 10 * 4 + 22 * 3)],
    );
}

#[test]
fn copies_have_two_sides() {
    let ptx = "
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.shared .align 16 .b8 tile[1024];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 16;
	add.s64 %rd1, %rd1, %rd2;
	mov.u32 %r2, tile;
	mad.lo.u32 %r2, %r1, 16, %r2;
	cp.async.ca.shared.global [%r2+16], [%rd1], 16;
	cp.async.commit_group;
	cp.async.wait_group 0;
	ret;
}
";
    let launch = Launch { ptx, threads: 32, buffer: vec![1; 512] };
    launch.check("inst:async_copy { @s = sum(saddr as u64 & 1023); @a = sum(addr as u64 & 255); @b = sum(bytes as u64); }", &[
        ("@s", 16 * 496 + 16 * 32),
        ("@a", 2 * 16 * 120),
        ("@b", 16 * 32),
    ]);
    launch.check("inst:wait:after { @done = sum(done as u64); }", &[("@done", 32)]);
}

/// Thread i calls `f` of i mod 4, which calls itself as often; where i is above 19 `g` lets it leave from there.
const CALLS: &str = "
.func (.param .b32 f_r) f(.param .b32 f_0);
.func g(.param .b32 g_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	ld.param.b32 %r1, [g_0];
	setp.gt.u32 %p1, %r1, 19;
	@%p1 exit;
	ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	and.b32 %r2, %r1, 3;
	{
	.param .b32 param0;
	.param .b32 retval0;
	st.param.b32 [param0], %r2;
	call.uni (retval0), f, (param0);
	ld.param.b32 %r3, [retval0];
	}
	st.global.u32 [%rd1], %r3;
	{
	.param .b32 param1;
	st.param.b32 [param1], %r1;
	call.uni g, (param1);
	}
	st.global.u32 [%rd1], %r1;
	ret;
}
.func (.param .b32 f_r) f(.param .b32 f_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	ld.param.b32 %r1, [f_0];
	mov.u32 %r3, 7;
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra $L_end;
	sub.u32 %r2, %r1, 1;
	{
	.param .b32 a;
	.param .b32 b;
	st.param.b32 [a], %r2;
	call (b), f, (a);
	ld.param.b32 %r3, [b];
	}
	add.u32 %r3, %r3, 1;
$L_end:
	st.param.b32 [f_r], %r3;
	ret;
}
";

fn calls() -> Launch<'static> {
    Launch { ptx: CALLS, threads: 32, buffer: words(0..32) }
}

#[test]
fn functions_are_probed_where_they_are_called() {
    // 8 · (1 + 2 + 3 + 4) calls of `f`, 8 · (1 + 2 + 3) of which by itself.
    calls().check(
        "func:\"f\":entry { @in[func] = count(); } func:\"*\":exit { @out[func] = count(); }",
        &[
            ("@in[f]", 80),
            ("@out[f]", 80),
            // Both ways out: `exit` of 12 lanes and `ret` of 20.
            ("@out[g]", 32),
        ],
    );
    calls().check(
        "ptx:\"sub.u32\", inst:store.global { @[func, op] = count(); }",
        &[("@[f, sub.u32]", 48), ("@[k, st.global.u32]", 32 + 20)],
    );
    calls().check(
        "inst:call { @[func, callee] = count(); }",
        &[("@[k, f]", 32), ("@[k, g]", 32), ("@[f, f]", 48)],
    );
    calls().check("ptx:\"add.u32\":after { @ = sum(out as u64); }", &[("@", 8 * (8 + 8 + 9 + 8 + 9 + 10))]);
}

#[test]
fn states_go_into_functions_and_sums_come_out() {
    let probe =
        "state n: u64; ptx:\"sub.u32\", inst:store.global { n += 3; } kernel:exit { @total = sum(n); }";
    calls().check(probe, &[("@total", 3 * (48 + 52))]);
    // What it is in the function is what it was where that was called.
    let probe = "state n: u64; inst:logic { n = 40; } ptx:\"sub.u32\" { @ = sum(n); }";
    calls().check(probe, &[("@", 40 * 48)]);
    let probe = "state t: u64; kernel:entry { t = clock(); } kernel:exit { @left = count(); @late = sum((clock() > t) as u64); }";
    calls().check(probe, &[("@left", 32), ("@late", 32)]);
    let probe = "state t: u64; ptx:\"sub.u32\" { t = clock(); } ptx:\"sub.u32\":after { @ = sum((clock() > t) as u64); }";
    calls().check(probe, &[("@", 48)]);
}

/// 24 lanes come to `sub.u32`, and with 1 in the innermost call; 12 lanes leave from `g`.
#[test]
fn states_come_back_out_of_functions() {
    calls().check("state t: u64; ptx:\"sub.u32\" { t = 5; } kernel:exit { @x = sum(t); }", &[("@x", 24 * 5)]);
    let probe = "state t: u64; ptx:\"sub.u32\" { t = in1 as u64; } kernel:exit { @x = sum(t); }";
    calls().check(probe, &[("@x", 24)]);
    // Read where `f` has called itself: what that has assigned, which is one less for each call on the way out.
    let probe = "state t: u64; ptx:\"sub.u32\" { t = in1 as u64; } ptx:\"add.u32\" { @x = sum(t); t += 10; }";
    calls().check(probe, &[("@x", 8 * (1 + (1 + 11) + (1 + 11 + 21)))]);
    // What is 32 bits wide comes back beside what is 64.
    let probe = "state t: u64; state u: u32; ptx:\"sub.u32\" { t = 7; u = in1 as u32; } kernel:exit { @x = sum(t); @y = sum(u as u64); }";
    calls().check(probe, &[("@x", 24 * 7), ("@y", 24)]);
}
