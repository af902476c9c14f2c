//! Sums of `warp` probes at `kernel:exit`: once a warp, by the last lanes to leave, however the warp parts.

use crate::launch::{HEAD, Launch, weave, words};
use nt_differ::device::Text;

/// A block of 48 threads, so that the second warp has 16. Lanes leave at four places: those below 5; of the others, those
/// with an odd number in `leave_if`; of the rest, after as many rounds as their number says, those below 40; the others at
/// the end.
const PARTS: &str = "
.func leave_if(.param .b32 a)
{
	.reg .pred %p<2>;
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [a];
	and.b32 %r2, %r1, 1;
	setp.eq.u32 %p1, %r2, 1;
	@%p1 exit;
	ret;
}
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<5>;
	.reg .b32 %r<9>;
	mov.u32 %r1, %tid.x;
	setp.lt.u32 %p1, %r1, 5;
	@%p1 ret;
	{
	.param .b32 x;
	st.param.b32 [x], %r1;
	call.uni leave_if, (x);
	}
	mov.u32 %r2, 0;
$L_round:
	add.u32 %r2, %r2, 1;
	setp.lt.u32 %p2, %r2, %r1;
	@%p2 bra $L_round;
	setp.lt.u32 %p3, %r1, 40;
	@!%p3 bra $L_end;
	exit;
$L_end:
	mov.u32 %r3, 1;
	ret;
}
";

/// All leave together.
const WHOLE: &str = "
.visible .entry k(.param .u64 p)
{
	.reg .b32 %r<3>;
	mov.u32 %r1, %tid.x;
	add.u32 %r1, %r1, 1;
	ret;
}
";

fn parts() -> Launch<'static> {
    Launch { ptx: PARTS, kernel: "k", blocks: 3, threads: 48, buffer: words(0..4) }
}

fn whole(threads: u32) -> Launch<'static> {
    Launch { ptx: WHOLE, kernel: "k", blocks: 2, threads, buffer: words(0..4) }
}

#[test]
fn once_a_warp() {
    for threads in [1u32, 31, 32, 33, 48, 96] {
        let warps = 2 * i64::from(threads.div_ceil(32));
        whole(threads).check("warp kernel:exit { @left = count(); }", &[("@left", warps)]);
    }
    // Three blocks of two warps; each warp leaves in many parts.
    parts().check("warp kernel:exit { @left = count(); }", &[("@left", 6)]);
    parts().check(
        "warp kernel:exit { @left = count(); @fives = sum(5); } kernel:exit { @lanes = count(); }",
        &[("@left", 6), ("@fives", 30), ("@lanes", 144)],
    );
    parts().check("warp kernel:exit /ctaid.x == 1/ { @left = count(); }", &[("@left", 2)]);
    parts().check(
        "warp kernel:exit { if wid == 0 { @first = count(); } @all = sum(wid as u64); }",
        &[("@first", 3), ("@all", 3)],
    );
}

#[test]
fn the_last_to_leave_are_not_told_by_what_differs_between_lanes() {
    let ptx = format!("{HEAD}{WHOLE}");
    let text = Text::load(&ptx).unwrap();
    let woven = weave(&text, "warp kernel:exit /lane < 4/ { @left = count(); }").woven;
    let (_, why) = &woven.refused[0];
    assert_eq!(why.slug, "cannot-weave");
    assert!(why.message.contains("its predicate differs between them"), "{}", why.message);
}

#[test]
fn states_of_warps_and_of_threads() {
    // What a warp probe has counted, each lane for itself: of the last to leave, the most rounds. Of the first warp these are
    // the lanes of thread 30; of the second, which has threads 32 to 47, of thread 46, with a round each for their number.
    let rounds = "state n: u64; warp ptx:\"add.u32\" { n += 1; } warp kernel:exit { @rounds = sum(n); }";
    whole(64).check(rounds, &[("@rounds", 4)]);
    // A thread's state, summed by all lanes, beside a warp's sum at the same exits.
    let both = "state n: u64; ptx:\"add.u32\" { n += 1; } \
                kernel:exit { @rounds = sum(n); } warp kernel:exit { @warps = count(); } func:\"*\":exit { @out = count(); }";
    // Threads 6, 8, … 46 go as many rounds as their number; of `leave_if` 43 come out.
    let evens: i64 = (3..24).map(|half| 2 * half).sum();
    parts().check(both, &[("@rounds", 3 * evens), ("@warps", 6), ("@out", 3 * 43)]);
    // By block and warp.
    let by = "warp kernel:exit { @of[block] = count(); }";
    parts().check(by, &[("@of", 6)]);
}
