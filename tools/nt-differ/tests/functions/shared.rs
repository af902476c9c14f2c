//! Functions that several kernels of a module call: each kernel counts its own.

use crate::launch::{HEAD, Launch, weave, words};
use nt_differ::device::Text;

/// `odd` and `even` call each other down from what they are given, and `even` of 0 calls `leaf`. Thread i of `one` calls
/// `even` of i mod 4; of `two`, `odd` of i mod 8, where that is not below 3; of `three`, `leaf`, and `even` of 1 through
/// a pointer.
const MUTUAL: &str = "
.func (.param .b32 r) odd(.param .b32 a);
.func (.param .b32 r) leaf(.param .b32 a)
{
	.reg .b32 %r<3>;
	.loc 2 3 0
	ld.param.b32 %r1, [a];
	xor.b32 %r2, %r1, 5;
	st.param.b32 [r], %r2;
	ret;
}
.func (.param .b32 r) even(.param .b32 a)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	.loc 2 12 0
	ld.param.b32 %r1, [a];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra $L_leaf;
	sub.u32 %r2, %r1, 1;
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r2;
	call.uni (y), odd, (x);
	ld.param.b32 %r3, [y];
	}
	st.param.b32 [r], %r3;
	ret;
$L_leaf:
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r1;
	call.uni (y), leaf, (x);
	ld.param.b32 %r3, [y];
	}
	st.param.b32 [r], %r3;
	ret;
}
.visible .entry one(.param .u64 p)
{
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.loc 1 7 0
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	and.b32 %r2, %r1, 3;
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r2;
	call.uni (y), even, (x);
	ld.param.b32 %r3, [y];
	}
	st.global.u32 [%rd1], %r3;
	ret;
}
.visible .entry two(.param .u64 p)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	and.b32 %r2, %r1, 7;
	setp.lt.u32 %p1, %r2, 3;
	@%p1 bra $L_out;
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r2;
	call.uni (y), odd, (x);
	ld.param.b32 %r3, [y];
	}
	st.global.u32 [%rd1], %r3;
$L_out:
	ret;
}
.visible .entry three(.param .u64 p)
{
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r1;
	call.uni (y), leaf, (x);
	ld.param.b32 %r3, [y];
	}
	st.global.u32 [%rd1], %r3;
	ret;
}
.func (.param .b32 r) odd(.param .b32 a)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	.loc 2 30 0
	ld.param.b32 %r1, [a];
	mov.u32 %r3, %r1;
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra $L_end;
	add.u32 %r2, %r1, -1;
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r2;
	call.uni (y), even, (x);
	ld.param.b32 %r3, [y];
	}
$L_end:
	st.param.b32 [r], %r3;
	ret;
}
";

fn launch(kernel: &'static str) -> Launch<'static> {
    Launch { ptx: MUTUAL, kernel, blocks: 1, threads: 64, buffer: words(0..64) }
}

#[test]
fn each_kernel_counts_its_own() {
    // Of `even` 0, 1, 2, 3, and 16 threads each: it is entered with 0; 1; 2 and 0; 3 and 1, `odd` with 0; 1; 2 and 0.
    // `leaf` is entered where `even` is with 0.
    let probe = "func:\"*\":entry { @in[func] = count(); } func:\"*\":exit { @out[kernel] = count(); }";
    launch("one").check(
        probe,
        &[("@in[even]", 16 * 6), ("@in[odd]", 16 * 4), ("@in[leaf]", 16 * 2), ("@out[one]", 16 * 12)],
    );
    // Of `odd` 3 to 7, 8 threads each: `odd` with 3, 1; 4, 2, 0; 5, 3, 1; 6, 4, 2, 0; 7, 5, 3, 1, and `even` with
    // 2, 0; 3, 1; 4, 2, 0; 5, 3, 1; 6, 4, 2, 0.
    launch("two").check(
        probe,
        &[("@in[even]", 8 * 14), ("@in[odd]", 8 * 16), ("@in[leaf]", 8 * 3), ("@out[two]", 8 * 33)],
    );
    launch("three").check(probe, &[("@in[leaf]", 64), ("@out[three]", 64)]);
}

#[test]
fn instructions_lines_and_operands() {
    let probe = "ptx:\"sub.u32\", ptx:\"add.u32\" { @[func, op] = sum(in1 as u64); }";
    launch("one")
        .check(probe, &[("@[even, sub.u32]", 16 * (1 + 2 + 3 + 1)), ("@[odd, add.u32]", 16 * (1 + 2))]);
    let probe = "inst:logic { @[line] = count(); }";
    launch("one").check(probe, &[("@[src/f.h:3]", 32), ("@[src/k.cu:7]", 64)]);
    launch("three").check(probe, &[("@[src/f.h:3]", 64)]);
}

#[test]
fn states_go_in_and_sums_come_out() {
    let probe = "state n: u64; ptx:\"sub.u32\"|\"add.u32\" { n += 7; } kernel:exit { @total = sum(n); }";
    launch("one").check(probe, &[("@total", 7 * 16 * 6)]);
    launch("two").check(probe, &[("@total", 7 * 8 * (3 + 4 + 5 + 6 + 7))]);
    // Nothing of it is in the third.
    let ptx = format!("{HEAD}{MUTUAL}");
    let text = Text::load(&ptx).unwrap();
    assert!(weave(&text, probe).kernel("three").is_none());
    let probe = "state t: u64; inst:logic { t = 3; } func:\"leaf\":entry { @ = sum(t); }";
    launch("one").check(probe, &[("@", 3 * 32)]);
}
