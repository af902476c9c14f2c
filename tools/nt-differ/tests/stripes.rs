//! Streams of launches that claim through all words of a cursor: every event is where it should be, or counted, whatever
//! part of the warps saves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_differ::device::{self, Given, Job, Ran, Text};
use nt_differ::events::{self, Events};
use nt_differ::probed::{self, Probed, Room};
use nt_differ::sidecar::Shape;
use nt_ir::launch::Conditions;
use nt_vgpu::Options;

/// A record of one slot at each store. Of the 64 slots of a chunk 63 are for events, so that 70 take two.
const PROGRAM: &str = "
map seen: stream<warp> { unit: u64, site: u32 }
warp inst:store.global { seen.save(warp, site); }
";

/// Lane 0 of each `every`th warp stores 70 times, in a loop or without one.
fn kernel(straight: bool) -> String {
    let store = "\tst.global.u32 [%rd1], %r1;\n";
    let stores = match straight {
        true => store.repeat(70),
        false => format!(
            "$L_more:\n{store}\tadd.u32 %r6, %r6, 1;\n\tsetp.lt.u32 %p2, %r6, 70;\n\t@%p2 bra $L_more;\n"
        ),
    };
    format!(
        ".version 7.0
.target sm_80
.address_size 64
.visible .entry save(.param .u64 out, .param .u32 every)
{{
\t.reg .pred %p<3>;
\t.reg .b32 %r<8>;
\t.reg .b64 %rd<3>;
\tld.param.u64 %rd1, [out];
\tld.param.u32 %r2, [every];
\tmov.u32 %r3, %ctaid.x;
\tmov.u32 %r4, %ntid.x;
\tmov.u32 %r5, %tid.x;
\tmad.lo.u32 %r1, %r3, %r4, %r5;
\tmul.wide.u32 %rd2, %r1, 4;
\tadd.u64 %rd1, %rd1, %rd2;
\tmov.u32 %r6, 0;
\tshr.u32 %r7, %r1, 5;
\trem.u32 %r7, %r7, %r2;
\tand.b32 %r5, %r1, 31;
\tor.b32 %r7, %r7, %r5;
\tsetp.ne.u32 %p1, %r7, 0;
\t@%p1 bra $L_done;
{stores}$L_done:
\tret;
}}
"
    )
}

struct Scene<'t> {
    text: Text<'t>,
    probed: Probed,
}

/// Events of a warp that saves.
const TIMES: u64 = 70;
/// Those of them in its second chunk.
const BEHIND: u64 = 7;

impl<'t> Scene<'t> {
    fn new(ptx: &'t str) -> Scene<'t> {
        let text = Text::load(ptx).unwrap();
        let probe = probed::compile(PROGRAM, "stripes").unwrap();
        let probed = Probed::weave(&text, &probe, Conditions::NONE).unwrap();
        Scene { text, probed }
    }

    /// Runs so many warps, of which each so many saves, and looks after every event.
    fn run(&mut self, warps: u64, every: u64, room: Room) -> (Ran, Events) {
        let threads = 64;
        let shape = Shape {
            grid: [(warps * 32 / threads) as u32, 1, 1],
            block: [threads as u32, 1, 1],
            shared: 0,
            cooperative: false,
        };
        let args = vec![
            Given::Buffer(vec![0xff; warps as usize * 128]),
            Given::Value((every as u32).to_le_bytes().to_vec()),
        ];
        let job = Job { kernel: "save".to_owned(), shape, args, variables: Vec::new() };
        let options = Options { seed: None, sms: 3, max_steps: 1 << 26 };
        let plain = device::run(&self.text.program, &job, &options, None).unwrap();
        self.probed.room = room;
        let ran = device::run(&self.probed.program, &job, &options, Some(&self.probed)).unwrap();
        device::same(&plain, &ran).unwrap();
        let events = events::read(&self.probed, &job, &ran, "seen", 3).unwrap();
        let mut stored = vec![0; warps as usize];
        for event in &events.stored {
            assert_eq!(event.values[0], Some(i128::from(event.warp)));
            assert_eq!((event.lane, event.sequence), (0, stored[event.warp as usize]));
            stored[event.warp as usize] += 1;
        }
        for (warp, (stored, dropped)) in (0..).zip(stored.iter().zip(&events.dropped)) {
            let saves = warp % every == 0;
            assert_eq!(stored + dropped, if saves { TIMES } else { 0 }, "warp {warp} of {warps}");
        }
        (ran, events)
    }

    /// The owners of the chunks behind the first ones: by chunk, a warp's number.
    fn owners(&self, ran: &Ran) -> Vec<(u64, u64)> {
        let chunk = self.probed.kernel("save").unwrap().maps[0].stream.as_ref().unwrap().chunk as usize;
        let [segment] = &ran.segments[..] else { panic!("one map") };
        let chunks = segment.bytes.chunks(chunk * 16).skip(segment.units as usize);
        let owner = |bytes: &[u8]| u64::from_le_bytes(*bytes.first_chunk().unwrap());
        (0..)
            .zip(chunks.map(owner))
            .filter(|(_, owner)| *owner != 0)
            .map(|(at, o)| (at, (o - 1) / 32))
            .collect()
    }
}

/// As the rule says, written down once more.
fn stripe(warp: u64) -> u64 {
    ((warp * 0x9e37_79b9) & 0xffff_ffff) >> 26
}

#[test]
fn a_claim_is_at_the_word_of_its_warp() {
    let ptx = kernel(true);
    let mut scene = Scene::new(&ptx);
    for (warps, every) in [(2048, 1), (2050, 2), (4096, 8), (2048, 64)] {
        let (ran, events) = scene.run(warps, every, Room::More(1 << 13));
        assert!(events.dropped.iter().all(|&dropped| dropped == 0));
        let owners = scene.owners(&ran);
        assert_eq!(owners.len() as u64, warps.div_ceil(every));
        assert!(owners.iter().all(|&(chunk, warp)| chunk % 64 == stripe(warp)));
        let last = owners.iter().map(|&(chunk, _)| chunk).max().unwrap();
        assert_eq!(ran.segments[0].claims, last + 1);
        // Within a word they are given out one after the other.
        for word in 0..64 {
            let of_word: Vec<u64> =
                owners.iter().map(|&(chunk, _)| chunk).filter(|chunk| chunk % 64 == word).collect();
            let expected: Vec<u64> = (0..of_word.len() as u64).map(|count| count * 64 + word).collect();
            assert_eq!(of_word, expected);
        }
    }
}

#[test]
fn smaller_launches_claim_at_one_word() {
    let ptx = kernel(true);
    let mut scene = Scene::new(&ptx);
    let (ran, _) = scene.run(2046, 2, Room::More(1 << 12));
    assert_eq!(ran.segments[0].claims, 1023);
    assert_eq!(
        scene.owners(&ran).iter().map(|&(chunk, _)| chunk).collect::<Vec<_>>(),
        (0..1023).collect::<Vec<_>>()
    );
}

/// Warps at any distance from each other share what there is about evenly: a cursor is full when the stream is, about.
#[test]
fn words_fill_evenly() {
    let ptx = kernel(true);
    let mut scene = Scene::new(&ptx);
    for every in [2, 4, 8] {
        let savers = 4096 / every;
        let (ran, events) = scene.run(4096, every, Room::More(2 * savers));
        assert!(events.dropped.iter().all(|&dropped| dropped == 0));
        let claims = ran.segments[0].claims;
        assert!((savers..savers + savers / 2).contains(&claims), "{claims} chunks for {savers}");
    }
}

#[test]
fn what_finds_no_room_in_its_word_is_counted() {
    let ptx = kernel(true);
    let mut scene = Scene::new(&ptx);
    // Not one claim, the first words' alone, two of each word, and not even the first chunks.
    for (room, chunks) in [(Room::More(0), 0), (Room::More(10), 10), (Room::More(128), 128)] {
        let (ran, events) = scene.run(2048, 1, room);
        assert_eq!(scene.owners(&ran).len(), chunks);
        assert_eq!(events.dropped.iter().sum::<u64>(), BEHIND * (2048 - chunks as u64));
    }
    let (_, events) = scene.run(2048, 1, Room::Fewer(2));
    // The upper half has nothing at all, the lower half its own chunks.
    let expected: Vec<u64> = (0..2048).map(|warp| if warp < 1024 { BEHIND } else { TIMES }).collect();
    assert_eq!(events.dropped, expected);
}

#[test]
fn warps_that_go_round_claim_again_and_again() {
    let ptx = kernel(false);
    let mut scene = Scene::new(&ptx);
    let (ran, events) = scene.run(2048, 16, Room::More(1 << 10));
    assert!(events.dropped.iter().all(|&dropped| dropped == 0));
    assert_eq!(scene.owners(&ran).len(), 128);
    let (_, events) = scene.run(2048, 16, Room::More(64));
    // One chunk each word.
    let words: std::collections::BTreeSet<u64> = (0..2048).step_by(16).map(stripe).collect();
    assert_eq!(events.dropped.iter().sum::<u64>(), BEHIND * (128 - words.len() as u64));
}
