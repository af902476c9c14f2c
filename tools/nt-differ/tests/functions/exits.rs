//! Lanes that leave the kernel in a function: probes of both that function's exit and the kernel's stand at one `exit`.

use crate::launch::{Launch, words};

/// Thread i calls `part` of i, where those above 19 leave; the others come back and call `last`, where all leave.
const LEAVE: &str = "
.func part(.param .align 4 .b8 a[8])
{
	.reg .pred %p<2>;
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a+4];
	setp.gt.u32 %p1, %r1, 19;
	@%p1 exit;
	or.b32 %r2, %r1, 1;
	ret;
}
.func last(.param .b32 a) .noreturn
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	xor.b32 %r2, %r1, 1;
	exit;
}
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	{
	.param .align 4 .b8 x[8];
	st.param.b32 [x], 7;
	st.param.b32 [x+4], %r1;
	call.uni part, (x);
	}
	st.global.u32 [%rd1], %r1;
	{
	.param .b32 y;
	st.param.b32 [y], %r1;
	call.uni last, (y);
	}
	st.global.u32 [%rd1], 0;
	ret;
}
";

fn leave() -> Launch<'static> {
    Launch { ptx: LEAVE, kernel: "k", blocks: 2, threads: 40, buffer: words(0..40) }
}

#[test]
fn of_the_function_and_of_the_kernel() {
    // Of 40 threads in each of two blocks 20 leave in `part`, and 20 in `last`.
    leave().check(
        "func:\"*\":exit { @out[func] = count(); } kernel:exit { @left = count(); }",
        &[("@out[part]", 80), ("@out[last]", 40), ("@left", 80)],
    );
    // By warps: of a block, the first comes back from `part` in part and leaves there in part, the second leaves there
    // wholly; so that of `part` three groups go, and of `last` one. The kernel's probe is of lanes.
    leave().check(
        "warp func:\"last\":exit { @groups[func] = count(); } kernel:exit { @left = count(); }",
        &[("@groups[last]", 2), ("@left", 80)],
    );
    let probe = "state n: u64; inst:logic { n += 3; } func:\"*\":exit { @out[func] = count(); } \
                 warp func:\"last\":exit { @lasts = sum(5); } kernel:exit { @total = sum(n); }";
    let expected = [("@out[part]", 80), ("@out[last]", 40), ("@lasts", 10), ("@total", 3 * (40 + 40))];
    leave().check(probe, &expected);
}

#[test]
fn counters_of_lanes_in_a_function_that_does_not_return() {
    leave().check("inst:logic { @[func] = count(); }", &[("@[part]", 40), ("@[last]", 40)]);
    leave().check(
        "state n: u64; inst:logic { n += 3; } kernel:exit { @total = sum(n); }",
        &[("@total", 3 * (40 + 40))],
    );
    let clocks = "state t: u64; kernel:entry { t = clock(); } \
                  kernel:exit { @late = sum((clock() > t) as u64); } func:\"last\":exit { @in = sum((clock() > t) as u64); }";
    leave().check(clocks, &[("@late", 80), ("@in", 40)]);
}
