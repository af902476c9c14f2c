//! Streams of kernels whose accesses are in functions: what `dmat` saves there, held to what the software GPU saw.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_differ::counted::Counted;
use nt_differ::device::{self, Given, Job, Text};
use nt_differ::events::Access;
use nt_differ::judge::{self, Case};
use nt_differ::probed::{self, Probed, Room};
use nt_differ::sidecar::Shape;
use nt_ir::launch::Conditions;
use nt_vgpu::Options;

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Functions of all kinds: `f` returns a value and calls itself, `g` returns nothing, is called under a guard and lets some
/// lanes leave, `h` has neither parameters nor accesses of its own, and its end is its way out.
const FUNCTIONS: &str = "
.visible .func (.param .b32 f_r) f(.param .b64 f_0, .param .b32 f_1);
.func g(.param .b64 g_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	ld.param.b64 %rd1, [g_0];
	ld.global.u32 %r1, [%rd1+8];
	setp.gt.u32 %p1, %r1, 41;
	@%p1 exit;
	st.global.u32 [%rd1+8], %r1;
	setp.gt.u32 %p1, %r1, 36;
	@%p1 ret;
	add.u32 %r1, %r1, 1;
	st.global.u32 [%rd1+8], %r1;
}
.visible .func (.param .b32 f_r) f(.param .b64 f_0, .param .b32 f_1)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<3>;
	ld.param.b64 %rd1, [f_0];
	ld.param.b32 %r1, [f_1];
	ld.global.u32 %r2, [%rd1];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra $L_end;
	sub.u32 %r3, %r1, 1;
	{
	.param .b64 a;
	.param .b32 b;
	st.param.b64 [a], %rd1;
	st.param.b32 [b], %r3;
	.param .b32 c;
	call (c), f, (a, b);
	ld.param.b32 %r4, [c];
	}
	add.u32 %r2, %r2, %r4;
	st.global.u32 [%rd1+4], %r2;
$L_end:
	st.param.b32 [f_r+0], %r2;
	ret;
}
.func (.param .align 8 .b8 h_r[16]) h()
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	mov.u32 %r1, %tid.x;
	mov.b64 %rd1, 5;
	st.param.b64 [h_r+0], %rd1;
	st.param.b32 [h_r+8], %r1;
	{
	.param .b64 a;
	mov.u64 %rd2, words;
	mul.wide.u32 %rd1, %r1, 32;
	add.s64 %rd2, %rd2, %rd1;
	st.param.b64 [a], %rd2;
	call g, (a);
	}
}
.visible .global .align 8 .u32 words[1024];
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mov.u32 %r8, %ctaid.x;
	mov.u32 %r7, %ntid.x;
	mad.lo.u32 %r7, %r8, %r7, %r1;
	mul.wide.u32 %rd2, %r7, 32;
	add.s64 %rd1, %rd1, %rd2;
	and.b32 %r2, %r1, 3;
	ld.global.u32 %r3, [%rd1];
	setp.lt.u32 %p1, %r3, 100;
	{
	.param .b64 a;
	st.param.b64 [a], %rd1;
	@%p1 call g, (a);
	}
	mov.u32 %r6, 0;
$L_round:
	{
	.param .b64 a;
	.param .b32 b;
	st.param.b64 [a], %rd1;
	st.param.b32 [b], %r2;
	.param .b32 retval0;
	call.uni (retval0), f, (a, b);
	ld.param.b32 %r3, [retval0+0];
	}
	st.global.u32 [%rd1+12], %r3;
	add.u32 %r6, %r6, 1;
	setp.lt.u32 %p2, %r6, %r2;
	@%p2 bra $L_round;
	{
	.param .align 8 .b8 both[16];
	call (both), h, ();
	ld.param.v2.b32 {%r4, %r5}, [both];
	ld.param.b32 %r5, [both+8];
	}
	st.global.v2.u32 [%rd1+16], {%r4, %r5};
	ret;
}
";

fn judge(ptx: &str, probe: &str, source: &str, words: impl Fn(u32) -> u32) {
    let text = Text::load(ptx).unwrap_or_else(|why| panic!("{why}"));
    let prepared = probed::compile(source, probe).unwrap_or_else(|why| panic!("{why}"));
    for (grid, block) in [([2, 1, 1], [64, 1, 1]), ([3, 1, 1], [40, 1, 1]), ([1, 1, 1], [1, 1, 1])] {
        let count = grid[0] * block[0] * 8;
        let memory = (0..count).flat_map(|index| words(index).to_le_bytes()).collect();
        let job = Job {
            kernel: "k".into(),
            shape: Shape { grid, block, shared: 0, cooperative: false },
            args: vec![Given::Buffer(memory)],
            variables: Vec::new(),
        };
        for seed in [None, Some(5), Some(11), Some(12)] {
            let assume = seed.map_or(Conditions::NONE, |_| Conditions::of(grid, block));
            let mut woven = Probed::weave(&text, &prepared, assume).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(woven.woven.refused, []);
            let options = Options { seed, sms: 3, max_steps: 1 << 22 };
            let mut accesses = Vec::new();
            let mut watch =
                |_: &[u8], seen: &nt_vgpu::Accessed<'_>| accesses.extend(Access::of(&text, &job, seen));
            let plain = device::run_watched(&text.program, &job, &options, None, &mut watch).unwrap();
            let counted = Counted::new(&text, &job, &plain);
            for room in [Room::More(1 << 11), Room::More(0), Room::Fewer(2), Room::Fewer(u64::MAX)] {
                woven.room = room;
                let at = format!("{probe}, {grid:?} x {block:?}, seed {seed:?}, {room:?}");
                let ran = device::run(&woven.program, &job, &options, Some(&woven));
                let ran = ran.unwrap_or_else(|why| panic!("{at}: {why}\n{}", woven.woven.text));
                device::same(&plain, &ran).unwrap_or_else(|why| panic!("{at}: {why}"));
                let case = Case {
                    text: &text,
                    job: &job,
                    counted: &counted,
                    accesses: &accesses,
                    assume,
                    sms: options.sms,
                    probed: &woven,
                    ran: &ran,
                    is_plain: seed.is_none(),
                };
                let judged = judge::judge(probe, &case).unwrap();
                judged.unwrap_or_else(|why| panic!("{at}: {why}\n{}", woven.woven.text));
            }
        }
    }
}

/// Every lane that leaves is in one event of its warp, wherever it leaves from.
#[test]
fn groups_that_leave_are_saved() {
    let ptx = format!("{HEAD}{FUNCTIONS}");
    let text = Text::load(&ptx).unwrap();
    let source = "map left: stream<warp> { at: u32, who: lanes<u32> } warp kernel:exit { left.save(clock() as u32, lane); }";
    let probe = probed::compile(source, "left").unwrap();
    let mut woven = Probed::weave(&text, &probe, Conditions::NONE).unwrap();
    assert_eq!(woven.woven.refused, []);
    woven.room = Room::More(64);
    let shape = Shape { grid: [3, 1, 1], block: [40, 1, 1], shared: 0, cooperative: false };
    let memory = (0..120 * 8u32).flat_map(|index| (index * 7 % 45).to_le_bytes()).collect();
    let args = vec![Given::Buffer(memory)];
    let job = Job { kernel: "k".into(), shape, args, variables: Vec::new() };
    for seed in [None, Some(3), Some(4)] {
        let options = Options { seed, sms: 3, max_steps: 1 << 22 };
        let ran = device::run(&woven.program, &job, &options, Some(&woven)).unwrap();
        let events = nt_differ::events::read(&woven, &job, &ran, "left", 3).unwrap();
        // 3 blocks of two warps, of 32 lanes and of 8.
        let mut left = [0u32; 6];
        for event in &events.stored {
            let mask = &mut left[event.warp as usize];
            assert_eq!(*mask & event.mask, 0, "a lane leaves twice: {event:?}");
            *mask |= event.mask;
            let who = event.lanes[1].unwrap();
            let is_own = |lane: u32| event.mask >> lane & 1 == 0 || who[lane as usize] == u64::from(lane);
            assert!((0..32).all(is_own), "{event:?}");
        }
        assert_eq!(left, [u32::MAX, 0xff, u32::MAX, 0xff, u32::MAX, 0xff]);
    }
}

/// A masked copy in which all lanes move all, then none, then some part of it: 16 bytes, 16 bytes, and 8 slots more.
#[test]
fn sizes_of_copies_are_listed_only_where_they_differ() {
    let ptx = format!(
        "{HEAD}.visible .entry k(.param .u64 p)
{{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.shared .align 16 .b8 tile[512];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 16;
	add.s64 %rd1, %rd1, %rd2;
	mov.u32 %r2, tile;
	mad.lo.u32 %r2, %r1, 16, %r2;
	mov.u32 %r3, 16;
	cp.async.cg.shared.global [%r2], [%rd1], 16, %r3;
	mov.u32 %r3, 0;
	cp.async.cg.shared.global [%r2], [%rd1], 16, %r3;
	and.b32 %r3, %r1, 7;
	cp.async.cg.shared.global [%r2], [%rd1], 16, %r3;
	cp.async.wait_all;
	ret;
}}
"
    );
    let text = Text::load(&ptx).unwrap();
    let probe = probed::compile(shipped("dmat"), "dmat").unwrap();
    let woven = Probed::weave(&text, &probe, Conditions::ALL).unwrap();
    assert_eq!(woven.woven.refused, []);
    let shape = Shape { grid: [1, 1, 1], block: [32, 1, 1], shared: 0, cooperative: false };
    let args = vec![Given::Buffer(vec![1; 512])];
    let job = Job { kernel: "k".into(), shape, args, variables: Vec::new() };
    let options = Options { seed: None, sms: 1, max_steps: 1 << 20 };
    let ran = device::run(&woven.program, &job, &options, Some(&woven)).unwrap();
    let events = nt_differ::events::read(&woven, &job, &ran, "dmat", 1).unwrap();
    let bytes: Vec<[u64; 32]> = events.stored.iter().map(|event| event.lanes[3].unwrap()).collect();
    assert_eq!(bytes, [[16; 32], [0; 32], std::array::from_fn(|lane| lane as u64 & 7)]);
    // The chunk's first slot is whose it is; then three headers and 32 lanes of 4 bytes.
    let used = ran.segments[0].bytes.chunks(16).filter(|slot| slot.iter().any(|&byte| byte != 0)).count();
    assert_eq!(used, 3 + 8);
}

fn shipped(name: &str) -> &'static str {
    nt_probe::SHIPPED.iter().find(|one| one.name == name).unwrap().text
}

#[test]
fn every_access_in_functions_is_saved() {
    // Which lanes leave, return early and come back late differs from lane to lane.
    let ptx = format!("{HEAD}{FUNCTIONS}");
    judge(&ptx, "dmat", shipped("dmat"), |index| index * 7 % 45);
}
