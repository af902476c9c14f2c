//! States that are true or false go into functions and come back.

use crate::launch::{Launch, words};

/// Thread i calls `f` of i, which calls `g` of i + 1 where i is even.
const CALLS: &str = "
.func g(.param .b32 a)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	xor.b32 %r2, %r1, 1;
	ret;
}
.func (.param .b32 r) f(.param .b32 a)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	ld.param.b32 %r1, [a];
	and.b32 %r2, %r1, 1;
	setp.eq.u32 %p1, %r2, 1;
	@%p1 bra $L_end;
	add.u32 %r3, %r1, 1;
	{
	.param .b32 x;
	st.param.b32 [x], %r3;
	call.uni g, (x);
	}
$L_end:
	st.param.b32 [r], %r2;
	ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<5>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r1;
	call.uni (y), f, (x);
	ld.param.b32 %r2, [y];
	}
	st.global.u32 [%rd1], %r2;
	ret;
}
";

fn calls() -> Launch<'static> {
    Launch { ptx: CALLS, kernel: "k", blocks: 1, threads: 40, buffer: words(0..40) }
}

#[test]
fn they_go_in() {
    // What is known at the kernel's entry is known in `g`, by way of `f`: 20 even threads call it, of which those below 12
    // are 6.
    let probe = "state low: bool; kernel:entry { low = tid.x < 12; } \
                 func:\"g\":entry { @low = sum(low as u32 as u64); @all = count(); }";
    calls().check(probe, &[("@low", 6), ("@all", 20)]);
    let fixed = "state on: bool; kernel:entry { on = true; } func:\"g\":entry /on/ { @ = count(); }";
    calls().check(fixed, &[("@", 20)]);
    let off = "state off: bool; inst:store.global { off = true; } func:\"g\":entry /!off/ { @ = count(); }";
    calls().check(off, &[("@", 20)]);
}

#[test]
fn they_come_back() {
    // `g` says that it was there; the kernel asks behind the call of `f`.
    let probe = "state seen: bool; func:\"g\":entry { seen = true; } \
                 inst:store.global { @seen = sum(seen as u32 as u64); @all = count(); }";
    calls().check(probe, &[("@seen", 20), ("@all", 40)]);
    // Under a condition, and in both directions.
    let probe = "state s: bool; kernel:entry { s = tid.x >= 20; } func:\"g\":entry { if tid.x > 5 { s = !s; } } \
                 inst:store.global { @s = sum(s as u32 as u64); }";
    // Threads 20 to 39 begin with it; of the even ones above 5 all turn: 7 below 20 get it, 10 above lose it.
    calls().check(probe, &[("@s", 20 + 7 - 10)]);
}
