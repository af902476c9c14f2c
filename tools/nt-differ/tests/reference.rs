//! Every class, qualifier and operand of the language reference on one kernel whose every instruction is known.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

#[path = "common/launch.rs"]
mod launch;

use launch::{Launch, words};
use std::collections::BTreeMap;

/// 32 threads, each of which executes all of it but what `%p0` guards, which is thread 0's.
const ALL: &str = "\
.version 8.0
.target sm_90
.address_size 64
.func (.param .b32 twice_r) twice(.param .b32 twice_0)
{
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [twice_0];
	shl.b32 %r2, %r1, 1;
	st.param.b32 [twice_r], %r2;
	ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<9>;
	.reg .b16 %rs<9>;
	.reg .b32 %r<32>;
	.reg .f32 %f<9>;
	.reg .f64 %fd<3>;
	.reg .b64 %rd<9>;
	.shared .align 128 .b8 tile[1024];
	.shared .align 8 .b64 bar;
	.local .align 4 .b8 own[8];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	setp.eq.u32 %p0, %r1, 0;
	mul.wide.u32 %rd2, %r1, 16;
	add.s64 %rd3, %rd1, %rd2;
	mov.u32 %r2, tile;
	mad.lo.u32 %r3, %r1, 16, %r2;
	mov.u32 %r4, bar;
	@%p0 mbarrier.init.shared.b64 [%r4], 1;
	bar.sync 0;
	ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd3];
	ld.global.v2.f32 {%f1, %f2}, [%rd3];
	ld.global.nc.f64 %fd1, [%rd3+8];
	ld.global.u8 %rs1, [%rd3];
	ld.volatile.global.s16 %r9, [%rd3];
	st.shared.v2.b32 [%r3], {%r5, %r6};
	st.local.u32 [own], %r5;
	atom.global.add.u32 %r10, [%rd1+512], 1;
	red.global.add.u32 [%rd1+516], 2;
	cp.async.ca.shared.global [%r3], [%rd3], 16;
	cp.async.commit_group;
	cp.async.wait_group 0;
	prefetch.global.L2 [%rd3];
	bar.warp.sync 0xffffffff;
	@%p0 mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r4], 64;
	@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 64, [%r4];
$L_wait:
	mbarrier.try_wait.parity.shared.b64 %p1, [%r4], 0;
	@!%p1 bra $L_wait;
	fence.acq_rel.gpu;
	membar.cta;
	nanosleep.u32 20;
	ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r11, %r12}, [%r3];
	mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f3, %f4, %f5, %f6}, {%r11, %r12}, {%r11}, {%f1, %f1, %f1, %f1};
	stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r3], {%r11, %r12};
	shfl.sync.bfly.b32 %r13, %r1, 1, 31, 0xffffffff;
	vote.sync.ballot.b32 %r14, %p0, 0xffffffff;
	activemask.b32 %r15;
	redux.sync.add.u32 %r16, %r1, 0xffffffff;
	ex2.approx.f32 %f7, %f1;
	cvt.u64.u32 %rd5, %r1;
	add.f32 %f8, %f1, %f2;
	fma.rn.f32 %f8, %f8, %f1, %f2;
	and.b32 %r17, %r1, 7;
	selp.b32 %r18, %r17, 9, %p0;
	mov.u32 %r19, 0;
$L_round:
	add.u32 %r19, %r19, 1;
	setp.lt.u32 %p2, %r19, 3;
	@%p2 bra $L_round;
	bra.uni $L_on;
$L_on:
	{
	.param .b32 param0;
	.param .b32 retval0;
	st.param.b32 [param0], %r1;
	call.uni (retval0), twice, (param0);
	ld.param.b32 %r20, [retval0];
	}
	pmevent 1;
	st.global.u32 [%rd3], %r20;
	ret;
}
";

fn all() -> Launch<'static> {
    // Threads read 16 bytes each; two counters behind them.
    Launch { ptx: ALL, threads: 32, buffer: words((0..160).map(|i| if i % 4 == 0 { 0 } else { i })) }
}

/// Counts by opcode of what a tracepoint means, each once a lane.
#[track_caller]
fn check(point: &str, expected: &[(&str, i64)]) {
    let cells = all().cells(&format!("{point} {{ @[op] = count(); }}"));
    let expected: BTreeMap<String, i64> =
        expected.iter().map(|(op, count)| (format!("@[{op}]"), *count)).collect();
    assert_eq!(cells, expected, "{point}");
}

const V4: (&str, i64) = ("ld.global.v4.u32", 32);
const V2: (&str, i64) = ("ld.global.v2.f32", 32);
const NC: (&str, i64) = ("ld.global.nc.f64", 32);
const U8: (&str, i64) = ("ld.global.u8", 32);
const S16: (&str, i64) = ("ld.volatile.global.s16", 32);
const ST_V2: (&str, i64) = ("st.shared.v2.b32", 32);
const ST_LOCAL: (&str, i64) = ("st.local.u32", 32);
const ST_GLOBAL: (&str, i64) = ("st.global.u32", 32);
const ATOM: (&str, i64) = ("atom.global.add.u32", 32);
const RED: (&str, i64) = ("red.global.add.u32", 32);
const LDMATRIX: (&str, i64) = ("ldmatrix.sync.aligned.m8n8.x2.shared.b16", 32);
const STMATRIX: (&str, i64) = ("stmatrix.sync.aligned.m8n8.x2.shared.b16", 32);
const MMA: (&str, i64) = ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 32);
const CP_ASYNC: (&str, i64) = ("cp.async.ca.shared.global", 32);
const BULK: (&str, i64) = ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", 1);
const INIT: (&str, i64) = ("mbarrier.init.shared.b64", 1);
const EXPECT: (&str, i64) = ("mbarrier.arrive.expect_tx.shared.b64", 1);
const TRY_WAIT: (&str, i64) = ("mbarrier.try_wait.parity.shared.b64", 32);
const COMMIT: (&str, i64) = ("cp.async.commit_group", 32);
const WAIT: (&str, i64) = ("cp.async.wait_group", 32);
const BAR: (&str, i64) = ("bar.sync", 32);
const BAR_WARP: (&str, i64) = ("bar.warp.sync", 32);
const PARAMS: [(&str, i64); 3] = [("ld.param.u64", 32), ("ld.param.u32", 32), ("ld.param.b32", 32)];

#[test]
fn classes_of_memory() {
    check("inst:load.global", &[V4, V2, NC, U8, S16]);
    check("inst:load", &[&[V4, V2, NC, U8, S16, LDMATRIX][..], &PARAMS].concat());
    check("inst:store", &[ST_V2, ST_LOCAL, ST_GLOBAL, STMATRIX, ("st.param.b32", 64)]);
    check("inst:atomic", &[ATOM]);
    check("inst:reduce", &[RED]);
    check("inst:access.global", &[V4, V2, NC, U8, S16, ATOM, RED, ST_GLOBAL]);
    check("inst:async_copy", &[CP_ASYNC]);
    check("inst:bulk_copy", &[BULK]);
    check("inst:copy", &[CP_ASYNC, BULK]);
    check("inst:prefetch", &[("prefetch.global.L2", 32)]);
}

#[test]
fn classes_of_synchronisation() {
    check("inst:barrier", &[BAR, BAR_WARP]);
    check("inst:mbarrier", &[INIT, EXPECT]);
    check("inst:commit", &[COMMIT]);
    // All lanes find it over at once.
    check("inst:wait", &[WAIT, TRY_WAIT]);
    check("inst:fence", &[("fence.acq_rel.gpu", 32), ("membar.cta", 32)]);
    check("inst:sleep", &[("nanosleep.u32", 32)]);
    let both = [("fence.acq_rel.gpu", 32), ("membar.cta", 32)];
    check("inst:sync", &[&[BAR, BAR_WARP, INIT, EXPECT, COMMIT, WAIT, TRY_WAIT][..], &both].concat());
}

#[test]
fn classes_of_control() {
    check("inst:branch", &[("bra", 32 + 96), ("bra.uni", 32)]);
    check("inst:split", &[("bra", 32 + 96)]);
    check("inst:branch:before", &[("bra", 64), ("bra.uni", 32)]);
    check("inst:call", &[("call.uni", 32)]);
    check("inst:exit", &[("ret", 64)]);
    check("inst:branch.backward", &[("bra", 32 + 96)]);
    check("inst:branch.uniform", &[("bra.uni", 32)]);
    check("inst:branch.conditional", &[("bra", 32 + 96)]);
    check("inst:split.uniform", &[]);
    check("inst:call:after", &[("call.uni", 32)]);
}

#[test]
fn classes_of_arithmetic() {
    check("inst:mma", &[MMA]);
    check("inst:shuffle", &[("shfl.sync.bfly.b32", 32)]);
    check("inst:vote", &[("vote.sync.ballot.b32", 32), ("activemask.b32", 32), ("redux.sync.add.u32", 32)]);
    check("inst:sfu", &[("ex2.approx.f32", 32)]);
    check("inst:convert", &[("cvt.u64.u32", 32)]);
    let int = [("mul.wide.u32", 32), ("add.s64", 32), ("mad.lo.u32", 32), ("add.u32", 96)];
    check("inst:int", &int);
    check("inst:float", &[("add.f32", 32), ("fma.rn.f32", 32)]);
    check("inst:logic", &[("and.b32", 32), ("shl.b32", 32)]);
    check("inst:compare", &[("setp.eq.u32", 32), ("setp.lt.u32", 96), ("selp.b32", 32)]);
    check("inst:move", &[("mov.u32", 4 * 32)]);
    check("inst:other", &[("pmevent", 32)]);
    check("inst:texture|tensor_copy", &[]);
}

#[test]
fn qualifiers() {
    check("inst:load.shared", &[LDMATRIX]);
    check("inst:store.local", &[ST_LOCAL]);
    check("inst:load.param", &PARAMS);
    check("inst:load.const", &[]);
    check("inst:load.generic", &[]);
    check("inst:bulk_copy.cluster", &[BULK]);
    check("inst:copy.global", &[CP_ASYNC, BULK]);
    check("inst:async_copy.shared", &[CP_ASYNC]);
    // Two matrices are four elements a lane.
    check("inst:load.v4", &[V4, LDMATRIX]);
    check("inst:access.v2", &[V2, ST_V2]);
    check("inst:load.global.b8|b16", &[U8, S16]);
    check("inst:load.global.b32", &[V4, V2]);
    check("inst:load.b64.global", &[NC]);
    check("inst:load.b128", &[]);
    check("inst:load.f32|f64", &[V2, NC]);
    check("inst:access.global.u32", &[V4, ATOM, RED, ST_GLOBAL]);
    check("inst:load.s16", &[S16]);
    check("inst:load|store.matrix", &[LDMATRIX, STMATRIX]);
    check("inst:barrier.block", &[BAR]);
    check("inst:barrier.warp", &[BAR_WARP]);
    check("inst:barrier.sync", &[BAR, BAR_WARP]);
    check("inst:barrier.arrive|cluster", &[]);
    check("inst:mbarrier.init", &[INIT]);
    check("inst:mbarrier.expect", &[EXPECT]);
    check("inst:mbarrier.arrive", &[EXPECT]);
    check("inst:int.b64", &[("add.s64", 32)]);
    check("inst:float|sfu.f32", &[("add.f32", 32), ("fma.rn.f32", 32), ("ex2.approx.f32", 32)]);
    check("inst:mma.f16", &[MMA]);
    check("ptx:\"*.sync.aligned.*\"", &[LDMATRIX, MMA, STMATRIX]);
    check("ptx:\"ld.global.?8\"|\"bra*\"", &[U8, ("bra", 64), ("bra.uni", 32)]);
}

/// What each class has for its bodies, and that `has` tells it.
#[test]
fn operands_by_class() {
    let has = |class: &str, expected: &str| {
        let names = [
            "addr", "saddr", "bytes", "width", "elems", "space", "in1", "old", "macs", "taken", "callee",
            "pred",
        ];
        let ask = |names: &[&str], place: &str| {
            let body: String =
                names.iter().map(|name| format!("if has({name}) {{ @{name} = count(); }} ")).collect();
            all().cells(&format!("ptx:\"{class}\"{place} {{ {body} }}"))
        };
        let mut found: Vec<String> = ask(&names, "").into_keys().collect();
        if !class.starts_with("bra") && class != "ret" {
            found.extend(ask(&["out", "done"], ":after").into_keys());
        }
        let found: Vec<&str> = found.iter().map(|name| name.trim_start_matches('@')).collect();
        let mut expected: Vec<&str> = expected.split_whitespace().collect();
        let late = |name: &&str| matches!(*name, "out" | "done");
        let (mut last, mut first): (Vec<&str>, Vec<&str>) = expected.drain(..).partition(late);
        first.sort_unstable();
        last.sort_unstable();
        assert_eq!(found, [first, last].concat(), "{class}");
    };
    has("ld.global.v4.u32", "addr bytes width elems space pred out");
    has("ldmatrix*", "addr bytes width elems space pred out");
    has("st.shared.v2.b32", "addr bytes width elems space in1 old pred");
    // A variable of local memory whose address is taken could not be kept in a register.
    has("st.local.u32", "bytes width elems space in1 pred");
    has("atom*", "addr bytes width elems space in1 pred out");
    has("red.global*", "addr bytes width elems space in1 pred");
    has("cp.async.ca*", "addr saddr bytes space pred");
    has("cp.async.bulk*", "addr saddr bytes space pred");
    has("prefetch*", "addr space pred");
    has("mbarrier.init*", "addr space pred");
    has("mbarrier.arrive*", "addr bytes space pred");
    has("mbarrier.try_wait*", "pred done");
    has("cp.async.wait_group", "pred done");
    has("cp.async.commit_group", "pred");
    has("mma*", "in1 macs pred out");
    has("bar.sync", "in1 pred");
    has("nanosleep*", "in1 pred");
    has("membar*", "pred");
    has("bra", "taken pred");
    has("call.uni", "callee pred");
    has("ret", "pred");
    has("shfl*", "width elems in1 pred out");
    has("ex2*", "width elems in1 pred out");
    has("cvt*", "width elems in1 pred out");
    has("add.f32", "width elems in1 pred out");
    has("and.b32", "width elems in1 pred out");
    has("selp*", "width elems in1 pred out");
    has("pmevent", "pred");
}

/// Their values, each from the text of the kernel or by arithmetic.
#[test]
fn what_operands_hold() {
    let sum = |point: &str, what: &str, expected: i64| {
        let probe = format!("{point} {{ @ = sum({what}); @one = count(); }}");
        let cells = all().cells(&probe);
        assert_eq!(cells.get("@").copied().unwrap_or(0), expected, "{probe}");
    };
    // The row that a lane names, and the shared side of copies: 16·i each, from the tile's beginning.
    sum("ptx:\"ldmatrix*\"", "addr as u64 & 1023", 16 * 496);
    sum("inst:async_copy", "saddr as u64 & 1023", 16 * 496);
    sum("inst:bulk_copy", "bytes as u64", 64);
    sum("inst:bulk_copy", "saddr as u64 & 1023", 0);
    sum("inst:mbarrier.expect", "bytes as u64", 64);
    sum("inst:load.global", "bytes as u64", 32 * (16 + 8 + 8 + 1 + 2));
    sum("inst:load.global", "width * elems / 8", 32 * (16 + 8 + 8 + 1 + 2));
    // 8×8 matrices of 16 bits: two of them are four elements a lane.
    sum("ptx:\"ldmatrix*\"", "elems", 32 * 4);
    // 16·8·8 a warp.
    sum("inst:mma", "macs", 32 * 1024);
    sum("inst:barrier.block", "in1 as u64", 0);
    sum("inst:sleep", "in1 as u64", 20 * 32);
    sum("inst:shuffle:after", "out as u64", 496);
    sum("inst:shuffle", "in1 as u64", 496);
    sum("ptx:\"redux*\":after", "out as u64", 496 * 32);
    sum("ptx:\"vote*\":after", "out as u64", 32);
    sum("ptx:\"activemask*\":after", "out as u64 & 0xffffffff", 32 * 0xffff_ffff);
    sum("inst:call", "1", 32);
    sum("inst:wait:after", "done as u64", 64);
    sum("inst:branch", "taken as u64", 64 + 32);
    sum("inst:int.u32", "in1 as u64", 496 + 496 + 32 * (1 + 2));
    sum("ptx:\"selp*\":after", "out as u64", 31 * 9);
    // Counters that all lanes add to: 0 + … + 31 above what was there, 512 / 4 = 128, a multiple of 4.
    sum("inst:atomic:after", "out as u64", 496);
    sum("inst:atomic|reduce", "in1 as u64", 32 + 64);
}
