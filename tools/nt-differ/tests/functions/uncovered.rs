//! Calls through pointers: what is called by name is counted, what is called through a pointer is not, and that is said.

use crate::launch::{HEAD, Launch, weave, words};
use nt_differ::device::Text;

/// Thread i calls `f` of i; then, through a pointer out of `table`, `f` where i is even and `g` where it is odd; then,
/// through an address of its own, `f` again. `g` calls `f`.
const POINTERS: &str = "
.func (.param .b32 r) f(.param .b32 a)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	xor.b32 %r2, %r1, 5;
	st.param.b32 [r], %r2;
	ret;
}
.func (.param .b32 r) g(.param .b32 a)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r1;
	call.uni (y), f, (x);
	ld.param.b32 %r2, [y];
	}
	st.param.b32 [r], %r2;
	ret;
}
.global .align 8 .u64 table[2] = {f, g};
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r1;
	call.uni (y), f, (x);
	ld.param.b32 %r3, [y];
	}
	and.b32 %r2, %r1, 1;
	mul.wide.u32 %rd3, %r2, 8;
	mov.u64 %rd4, table;
	add.s64 %rd4, %rd4, %rd3;
	ld.global.u64 %rd5, [%rd4];
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r3;
	proto : .callprototype (.param .b32 _) _ (.param .b32 _);
	call (y), %rd5, (x), proto;
	ld.param.b32 %r4, [y];
	}
	mov.u64 %rd6, f;
	{
	.param .b32 x;
	.param .b32 y;
	st.param.b32 [x], %r4;
	own : .callprototype (.param .b32 _) _ (.param .b32 _);
	call (y), %rd6, (x), own;
	ld.param.b32 %r5, [y];
	}
	st.global.u32 [%rd1], %r5;
	ret;
}
";

#[test]
fn what_is_called_by_name_is_counted_and_no_more() {
    let launch = Launch { ptx: POINTERS, kernel: "k", blocks: 2, threads: 48, buffer: words(0..48) };
    // `f` runs three times a thread, once of them called by its name.
    launch.check("ptx:\"xor.b32\" { @[func] = count(); }", &[("@[f]", 96)]);
    launch.check("func:\"*\":entry { @[func] = count(); }", &[("@[f]", 96)]);
    let ptx = format!("{HEAD}{POINTERS}");
    let text = Text::load(&ptx).unwrap();
    let told = |probe: &str| -> Vec<String> {
        weave(&text, probe).woven.uncovered.iter().map(nt_weave::Uncovered::what).collect()
    };
    let expected = ["calls through a pointer", "calls through a pointer, to `f`"];
    assert_eq!(told("ptx:\"xor.b32\" { @[func] = count(); }"), expected);
    // Also where there is no site but what might be called.
    assert_eq!(told("inst:atomic { @ = count(); }"), expected);
    assert_eq!(told("kernel:entry { @ = count(); }"), [""; 0]);
    // A lane could leave in what the table holds, for all that the text of the kernel says.
    let woven = weave(&text, "kernel:exit { @ = count(); }").woven;
    let slugs: Vec<&str> = woven.refused.iter().map(|(_, why)| why.slug).collect();
    assert_eq!(slugs, ["indirect-call"]);
}
