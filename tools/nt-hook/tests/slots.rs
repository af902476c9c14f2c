//! Arrays with a capacity: counts and records lie where the context block says, are handed out clean and come home as one
//! frame, and what had no room is counted.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

mod common;

use common::{Fate, Run, Scene};
use nt_wire::PROTOCOL;
use nt_wire::message::{Fill, MapShape, Settings, Slot, SlotsShape, Twin, Unit};
use nt_wire::slots;

/// Four records of lane 0, and two of other lanes.
const SHAPE: SlotsShape = SlotsShape { per_unit: 6, others: 2, count_bytes: 8 };

/// An array of warps behind a map of blocks; the stub's effects look at the second and the third word.
fn array(twin: &mut Twin, second: Fill, third: Fill) {
    twin.maps.push(MapShape { slots: Some(SHAPE), ..MapShape::records(Unit::Warp, 16) });
    twin.slots = vec![
        Slot { offset: 8, size: 8, fill: second },
        Slot { offset: 16, size: 8, fill: third },
        Slot { offset: 24, size: 4, fill: Fill::Units(1) },
    ];
}

fn run(launches: u32, fault: &str, pool_bytes: u64, bend: fn(&mut Twin)) -> Run {
    let settings = Settings { protocol: PROTOCOL, wait_ms: 5000, exit_ms: 5000, pool_bytes, launch_bytes: 0 };
    let mut scene = Scene::with(Fate { settings, bend, ..Fate::default() });
    scene.fault = fault.into();
    let app = scene.app();
    let run = scene.run(&app, &["dlsym", "one", &launches.to_string()]);
    run.ok();
    assert_eq!((run.logged("dirty"), run.logged("wild")), (0, 0), "{fault}");
    run
}

/// 32 warps: 256 bytes of counts, and 192 records.
fn frames(run: &Run) -> Vec<(&[u8], &[u8])> {
    let data = run.trace().data.iter().filter(|(fixed, _)| fixed.map == 1);
    let frames = data.map(|(fixed, data)| {
        assert_eq!((fixed.units, fixed.capacity, fixed.bytes), (32, 192, 256 + 192 * 16));
        slots::split(data, fixed.units, SHAPE).unwrap()
    });
    frames.collect()
}

/// `add` adds one to each cell of 8 bytes: to the counts, all of which were 0.
#[test]
fn counts_are_handed_out_clean() {
    let run = run(40, "add", 1 << 20, |twin| array(twin, Fill::Counts(1), Fill::Units(1)));
    assert_eq!(run.trace().count("chosen"), (40, 40, 40));
    let frames = frames(&run);
    assert_eq!(frames.len(), 40);
    for (counts, records) in frames {
        assert!(counts.chunks(8).all(|count| count == 1u64.to_le_bytes()));
        assert!(records.iter().all(|&byte| byte == 0));
    }
    assert_eq!(run.trace().notes, Vec::<String>::new());
}

/// `scribble` writes 0x6e74 and the launch into all records of 16 bytes, and sees whether they were clean.
#[test]
fn records_lie_behind_the_counts() {
    let run = run(40, "scribble", 1 << 20, |twin| array(twin, Fill::Base(1), Fill::Capacity(1)));
    let frames = frames(&run);
    assert_eq!(frames.len(), 40);
    for (launch, (counts, records)) in (0u64..).zip(frames) {
        assert!(counts.iter().all(|&byte| byte == 0));
        let record = [0x6e74u64.to_le_bytes(), launch.to_le_bytes()].concat();
        assert!(records.chunks(16).all(|found| found == record), "launch {launch}");
    }
}

/// The same over the counts, which are half as long as what it writes: of each pair one is 0x6e74, which stands for
/// 28,275 saves of which four have room, and the other the launch's number.
#[test]
fn what_finds_no_room_is_said() {
    let run = run(8, "scribble", 1 << 20, |twin| array(twin, Fill::Counts(1), Fill::Units(1)));
    assert_eq!(frames(&run).len(), 8);
    // The launches 6 and 7 say 5 and 6 saves.
    let lost = 16 * (8 * (0x6e74 - 5) + 1 + 2);
    let note =
        format!("{lost} saves found no room in their arrays, and were dropped or overwritten by later ones");
    assert_eq!(run.trace().notes, [note]);
}

/// 32 warps of 65,536 records are 32 MiB and more: the launch runs as it is, and the coverage says why.
#[test]
fn an_array_that_does_not_fit_the_pool_leaves_its_launch_alone() {
    let run = run(3, "", 4 << 20, |twin| {
        array(twin, Fill::Counts(1), Fill::Units(1));
        let slots = Some(SlotsShape { per_unit: 65_536 + 16_385, others: 16_385, count_bytes: 8 });
        twin.maps.last_mut().unwrap().slots = slots;
    });
    assert_eq!(run.trace().count("chosen"), (3, 0, 0));
    assert_eq!(
        run.trace().reason("chosen"),
        "3 whose maps take more than half of the pool; --pool makes it larger"
    );
}

/// What the launch path relies on is looked at when a twin comes.
#[test]
fn a_layout_that_contradicts_itself_is_refused() {
    let refused = |bend: fn(&mut Twin), why: &str| {
        let run = run(2, "", 4 << 20, bend);
        assert_eq!(run.trace().reason("chosen"), why);
    };
    let large = "its layout is larger than the hook can hold";
    // Map 0 has a record a block: no counts, and no units to be known.
    refused(|twin| array(twin, Fill::Counts(0), Fill::Zero), large);
    refused(|twin| array(twin, Fill::Units(0), Fill::Zero), large);
    refused(|twin| array(twin, Fill::Counts(9), Fill::Zero), large);
    refused(
        |twin| {
            twin.maps =
                vec![MapShape { persistent: true, slots: Some(SHAPE), ..MapShape::records(Unit::Sm, 16) }];
            twin.slots.clear();
        },
        "it has a capacity where no records are",
    );
}
