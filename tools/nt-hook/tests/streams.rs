//! Streams of events: what the stub's `events=N` saves comes home whole, and what found no room is counted.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

mod common;

use common::{Fate, Run, Scene, Trace};
use nt_wire::PROTOCOL;
use nt_wire::message::{Fill, MapShape, Settings, Slot, StreamShape, Twin, Unit};
use nt_wire::stream::Head;

/// As the stub reads it.
const CHUNK: u32 = 4;

/// A stream of `bytes`, as map number `map`.
fn stream(twin: &mut Twin, map: u32, bytes: u64) {
    let stream = Some(StreamShape { chunk: CHUNK, bytes });
    twin.maps.truncate(map as usize);
    twin.maps.push(MapShape { stream, ..MapShape::records(Unit::Warp, 16) });
    twin.slots = vec![
        Slot { offset: 0, size: 8, fill: Fill::Base(map) },
        Slot { offset: 8, size: 4, fill: Fill::Capacity(map) },
        Slot { offset: 12, size: 4, fill: Fill::Units(map) },
        Slot { offset: 16, size: 8, fill: Fill::Cursor(map) },
        Slot { offset: 24, size: 8, fill: Fill::Drops(map) },
    ];
}

fn run(life: &str, launches: u32, fault: &str, pool_bytes: u64, bend: fn(&mut Twin)) -> Run {
    let settings = Settings { protocol: PROTOCOL, wait_ms: 5000, exit_ms: 5000, pool_bytes, launch_bytes: 0 };
    let mut scene = Scene::with(Fate { settings, bend, ..Fate::default() });
    scene.fault = fault.into();
    let app = scene.app();
    let run = scene.run(&app, &["dlsym", life, &launches.to_string()]);
    run.ok();
    assert_eq!((run.logged("dirty"), run.logged("wild")), (0, 0));
    run
}

/// What one launch's stream holds, put together from its parts.
struct Stream {
    head: Head,
    parts: u32,
    slots: Vec<[u32; 4]>,
    drops: Vec<u32>,
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn streams(trace: &Trace) -> Vec<Stream> {
    let mut streams: Vec<(u64, Stream)> = Vec::new();
    let of_streams = trace.data.iter().filter(|(fixed, _)| fixed.capacity.is_multiple_of(u64::from(CHUNK)));
    for (fixed, data) in of_streams.filter(|(fixed, _)| fixed.units != 8) {
        let part = Head::decode(data).unwrap();
        let head = part.head;
        assert_eq!((fixed.units, fixed.capacity), (head.units, head.cap));
        let slots = words(part.slots).chunks(4).map(|slot| slot.try_into().unwrap()).collect::<Vec<_>>();
        if head.part == 0 {
            let drops = words(part.drops);
            streams.push((fixed.launch, Stream { head, parts: 1, slots, drops }));
        } else {
            let (launch, stream) = streams.last_mut().unwrap();
            // Parts of one launch follow each other.
            assert_eq!((*launch, stream.parts), (fixed.launch, head.part));
            assert_eq!((stream.slots.len() as u64, head.drops_bytes), (head.first_slot, 0));
            stream.parts += 1;
            stream.slots.extend(slots);
        }
    }
    assert!(streams.iter().all(|(_, stream)| stream.parts == stream.head.parts));
    streams.into_iter().map(|(_, stream)| stream).collect()
}

impl Stream {
    /// Unit u has saved or lost `events`·(u mod 3), in order; each event is of one launch.
    fn check(&self, events: u32) {
        let units = self.head.units as usize;
        let (mut seen, mut numbers) = (vec![0; units], std::collections::BTreeSet::new());
        for (chunk, slots) in self.slots.chunks(CHUNK as usize).enumerate() {
            let owner = if chunk < units { chunk } else { (slots[0][0] as usize - 1) / 32 };
            for &[launch, unit, event, mark] in slots[1..].iter().filter(|slot| **slot != [0; 4]) {
                assert_eq!((unit as usize, event, mark), (owner, seen[owner], 0x6e74));
                seen[owner] += 1;
                numbers.insert(launch);
            }
        }
        assert_eq!(numbers.len(), usize::from(self.slots.iter().any(|slot| *slot != [0; 4])));
        for (unit, &saved) in (0..).zip(&seen) {
            let dropped = self.drops.get(unit as usize).copied().unwrap_or(0);
            assert_eq!(saved + dropped, events * (unit % 3), "unit {unit}");
        }
    }
}

/// 32 warps, of which 21 save: the first three events of each have their places, the rest claims chunks.
#[test]
fn events_come_home() {
    let run = run("one", 3, "events=10", 4 << 20, |twin| stream(twin, 0, 64 << 10));
    assert_eq!(run.trace().count("chosen"), (3, 3, 3));
    let streams = streams(run.trace());
    assert_eq!(streams.len(), 3);
    for stream in streams {
        // 10 events: 3, then three chunks of 3; 20 events: six chunks. Eleven warps of the one kind, ten of the other.
        let head = Head {
            claims: 11 * 3 + 10 * 6,
            units: 32,
            cap: 4096,
            chunk: 4,
            slots: (32 + 93) * 4,
            ..stream.head
        };
        assert_eq!((stream.head, stream.parts, stream.drops.len()), (head, 1, 0));
        stream.check(10);
    }
}

#[test]
fn what_finds_no_room_is_counted() {
    // Room for each warp's first chunk, which is more than was asked for.
    let run = run("one", 3, "events=10", 4 << 20, |twin| stream(twin, 0, 16));
    assert_eq!(run.trace().count("chosen"), (3, 3, 3));
    for stream in streams(run.trace()) {
        assert_eq!((stream.head.cap, stream.head.claims, stream.head.drops_bytes), (128, 21, 128));
        assert_eq!(stream.drops[..6], [0, 7, 17, 0, 7, 17]);
        stream.check(10);
    }
    let lost = 3 * (11 * 7 + 10 * 17);
    let note =
        format!("{lost} events found no room in the streams of their launches; --stream gives them more");
    assert_eq!(run.trace().notes, [note]);
}

/// Segments of a quarter of the pool: each is used again and again, and only what was used is cleared.
#[test]
fn segments_are_handed_out_clean() {
    for fault in ["events=7", "events=7,delay=1,uneven", "events=60,no-write-value"] {
        let run = run("threads", 40, fault, 4 << 20, |twin| stream(twin, 0, 1 << 20));
        let events = if fault.starts_with("events=60") { 60 } else { 7 };
        assert_eq!(run.trace().count("chosen"), (320, 320, 320), "{fault}");
        let streams = streams(run.trace());
        assert_eq!(streams.len(), 320);
        streams.iter().for_each(|stream| stream.check(events));
    }
}

/// 16,000 · (11 + 2 · 10) events of 16 bytes and a third more of owners: 10 MiB, in parts of 4.
#[test]
fn long_streams_come_in_parts() {
    let run = run("one", 4, "events=16000", 64 << 20, |twin| stream(twin, 0, 16 << 20));
    assert_eq!(run.trace().count("chosen"), (4, 4, 4));
    let streams = streams(run.trace());
    for stream in &streams {
        assert_eq!((stream.parts, stream.slots.len()), (3, (32 + 11 * 5333 + 10 * 10_666) * 4));
        stream.check(16_000);
    }
    assert_eq!(streams.len(), 4);
}

/// 2^20 warps: their first chunks are 64 MiB, their drops 4. What there is is used, as far as the pool goes.
#[test]
fn not_even_the_first_chunks() {
    let bend = |twin: &mut Twin| stream(twin, 0, 1 << 20);
    let part = run("large", 2, "events=1", 32 << 20, bend);
    assert_eq!(part.trace().count("chosen"), (2, 2, 2));
    for stream in streams(part.trace()) {
        // Half the pool, less cursor and drops.
        assert_eq!((stream.head.cap, stream.head.units), ((16 << 20) / 16 - 16 - (4 << 20) / 16, 1 << 20));
        assert_eq!(stream.head.drops_bytes, 4 << 20);
        stream.check(1);
    }
    let none = run("large", 2, "events=1", 4 << 20, bend);
    assert_eq!((none.trace().count("chosen"), none.launched("chosen")), ((2, 0, 0), (2, 0)));
    assert_eq!(
        none.trace().reason("chosen"),
        "2 whose maps take more than half of the pool; --pool makes it larger"
    );
}

/// Records, a stream and a table of one kernel.
#[test]
fn beside_maps_and_tables() {
    let run = run("threads", 20, "events=3", 8 << 20, |twin| {
        stream(twin, 1, 10_000);
        twin.maps.push(MapShape { persistent: true, ..MapShape::records(Unit::Sm, 8) });
    });
    assert_eq!(run.trace().count("chosen"), (160, 160, 160));
    let maps = |map: u32| run.trace().data.iter().filter(|(fixed, _)| fixed.map == map).count();
    assert_eq!((maps(0), maps(1), maps(2)), (160, 160, 1));
    for (fixed, data) in &run.trace().data {
        match fixed.map {
            0 => assert_eq!((data.len(), data.iter().any(|&byte| byte != 0)), (256, false)),
            1 => assert_eq!(Head::decode(data).unwrap().head.cap, 624),
            _ => {}
        }
    }
}

#[test]
fn every_way_out() {
    for life in ["_exit", "quick_exit", "no-wait", "contexts"] {
        let run = run(life, 20, "events=50,delay=2", 4 << 20, |twin| stream(twin, 0, 100_000));
        let launches = if life == "contexts" { 60 } else { 20 };
        assert_eq!(run.trace().count("chosen"), (launches, launches, launches), "{life}");
        streams(run.trace()).iter().for_each(|stream| stream.check(50));
    }
}

/// The values of parameters go with the launch where strides are to be read with them, packed or not.
#[test]
fn parameters_are_kept_where_they_are_wanted() {
    let wanting = |twin: &mut Twin| twin.wants_params = true;
    let bare = run("one", 3, "", 4 << 20, |twin| stream(twin, 0, 4096));
    assert!(bare.trace().launches.iter().all(|launch| launch.params.is_empty()));
    let run = run("one", 3, "", 4 << 20, wanting);
    let numbers: Vec<Vec<u8>> =
        run.trace().launches.iter().map(|launch| launch.params[8..].to_vec()).collect();
    assert_eq!(numbers, [1000u32, 1001, 1002].map(|number| number.to_le_bytes().to_vec()));
    let run = self::run("packed", 1, "", 4 << 20, wanting);
    let launch = &run.trace().launches[0];
    assert_eq!((launch.params.len(), launch.params[8..].to_vec()), (12, 7u32.to_le_bytes().to_vec()));
}

/// Copies fail: launches in flight are lost and said, the others are not probed, and the program does not notice.
#[test]
fn what_cannot_be_fetched_is_not_collected() {
    let run = run("one", 40, "events=50,copy=719,delay=1", 4 << 20, |twin| stream(twin, 0, 100_000));
    let (launches, probed, collected) = run.trace().count("chosen");
    assert_eq!((launches, collected, run.trace().data.len()), (40, 0, 0));
    let lost = format!("{probed} probed launches were not collected");
    assert!(probed > 0 && run.trace().notes.contains(&lost), "{:?}", run.trace().notes);
}

#[test]
fn streams_that_cannot_be() {
    let check = |bend: fn(&mut Twin), reason: &str| {
        let run = run("one", 2, "", 4 << 20, bend);
        assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((2, 0, 0), (2, 0)));
        assert_eq!(run.trace().reason("chosen"), reason);
    };
    let layout = "its layout is larger than the hook can hold";
    check(|twin| twin.slots[0].fill = Fill::Cursor(0), layout);
    check(|twin| twin.slots[0] = Slot { offset: 28, size: 8, fill: Fill::Zero }, layout);
    let forever = |twin: &mut Twin| {
        stream(twin, 0, 4096);
        twin.maps[0].persistent = true;
        twin.maps[0].unit = Unit::Sm;
    };
    check(forever, "it has a stream that outlives launches");
    let long = |twin: &mut Twin| (twin.wants_params, twin.params[1].offset) = (true, 40_000);
    check(long, "its parameters are larger than the hook can hold");
}
