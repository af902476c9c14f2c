//! Arrays with a capacity: data built word by word, and what each unit must be said to have saved.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod arrays;

use arrays::{Left, last as map, some, threads, warps};
use nt_trace::Manifest;
use nt_trace::ntm::{ContextSlot, Error, Fill, Kernel, Map, Policy, Probe, SCHEMA, Slots, Unit};
use nt_trace::ntt::{Cursor, Event, FileWriter, Saves, Tally, Trace, Value};
use nt_wire::frame::{self, Data};

/// Cursor, number and value of each save of a unit.
fn saved(saves: &Saves<'_>, unit: u64) -> Vec<(Cursor, Option<u64>, u64)> {
    saves.of(unit).map(|save| (save.cursor, save.sequence, save.row.unsigned(0).unwrap())).collect()
}

fn own(first: u64, values: &[u64]) -> Vec<(Cursor, Option<u64>, u64)> {
    (first..).zip(values).map(|(number, &value)| (Cursor::Own, Some(number), value)).collect()
}

#[test]
fn a_full_array_that_drops_keeps_the_first() {
    let (capacity, data) = warps(&[
        // Lane 0 saved 10, 11, 12; other lanes 90.
        Left { own: 4, other: 1, records: vec![Some(10), Some(11), Some(12), None, Some(90)] },
        // Seven of lane 0, of which three had no room; five of others, of which two are there.
        Left { own: 8, other: 5, records: some(&[20, 21, 22, 23, 91, 92]) },
        // Nothing.
        Left { own: 1, other: 0, records: vec![] },
    ]);
    let saves = Saves::new(&map(Unit::Warp, Policy::Drop), 3, capacity, &data).unwrap();
    let mut expected = own(0, &[10, 11, 12]);
    expected.push((Cursor::Other, Some(0), 90));
    assert_eq!(saved(&saves, 0), expected);
    assert_eq!(saves.tally(0), Tally { counted: true, taken: 4, stored: 4 });
    let mut expected = own(0, &[20, 21, 22, 23]);
    expected.extend([(Cursor::Other, Some(0), 91), (Cursor::Other, Some(1), 92)]);
    assert_eq!(saved(&saves, 1), expected);
    assert_eq!(saves.tally(1), Tally { counted: true, taken: 12, stored: 6 });
    assert_eq!(saves.tally(1).lost(), 6);
    assert_eq!((saved(&saves, 2), saves.tally(2)), (vec![], Tally { counted: true, taken: 0, stored: 0 }));
    // Beyond them there is nothing, and nobody has counted it.
    assert_eq!((saved(&saves, 3), saved(&saves, u64::MAX / 8)), (vec![], vec![]));
}

#[test]
fn a_full_array_that_wraps_keeps_the_newest_in_order() {
    let (capacity, data) = warps(&[
        // Six of lane 0: 4 and 5 in the place of 0 and 1. Three of others: 2 in the place of 0.
        Left { own: 7, other: 3, records: some(&[14, 15, 12, 13, 92, 91]) },
        // Four: full, and none is overwritten.
        Left { own: 5, other: 0, records: some(&[30, 31, 32, 33]) },
    ]);
    let saves = Saves::new(&map(Unit::Warp, Policy::Wrap), 2, capacity, &data).unwrap();
    let mut expected = own(2, &[12, 13, 14, 15]);
    expected.extend([(Cursor::Other, Some(1), 91), (Cursor::Other, Some(2), 92)]);
    assert_eq!(saved(&saves, 0), expected);
    assert_eq!(saves.tally(0), Tally { counted: true, taken: 9, stored: 6 });
    assert_eq!(saved(&saves, 1), own(0, &[30, 31, 32, 33]));
    assert_eq!(saves.tally(1).lost(), 0);
}

/// Record s of thread t is number s·units + t, in columns.
#[test]
fn threads_stand_side_by_side() {
    let all = [
        Left { own: 3, other: 0, records: some(&[1, 2]) },
        Left { own: 1, other: 0, records: vec![] },
        Left { own: 9, other: 0, records: some(&[15, 16, 17, 18]) },
    ];
    let (capacity, data) = threads(&all);
    assert_eq!((capacity, data.len()), (16, 64 + 16 * 5));
    let saves = Saves::new(&map(Unit::Thread, Policy::Wrap), 3, capacity, &data).unwrap();
    assert!(!saves.has_others());
    assert_eq!(saved(&saves, 0), own(0, &[1, 2]));
    assert_eq!(saved(&saves, 1), []);
    // Eight saves of four places: two rounds.
    assert_eq!(saved(&saves, 2), own(4, &[15, 16, 17, 18]));
    assert_eq!(saves.tally(2), Tally { counted: true, taken: 8, stored: 4 });
    let saves = Saves::new(&map(Unit::Thread, Policy::Drop), 3, capacity, &data).unwrap();
    assert_eq!(saved(&saves, 2), own(0, &[15, 16, 17, 18]));
}

/// A trap: what was saved is there, how much it was is not.
#[test]
fn a_unit_without_a_count_is_told_by_presence() {
    let all = || {
        [
            Left { own: 0, other: 1, records: vec![Some(5), Some(6), None, None, Some(90)] },
            Left { own: 0, other: 0, records: some(&[5, 6, 7, 8]) },
        ]
    };
    let (capacity, data) = warps(&all());
    let saves = Saves::new(&map(Unit::Warp, Policy::Wrap), 2, capacity, &data).unwrap();
    let mut expected = own(0, &[5, 6]);
    expected.push((Cursor::Other, Some(0), 90));
    assert_eq!(saved(&saves, 0), expected);
    assert_eq!(saves.tally(0), Tally { counted: false, taken: 3, stored: 3 });
    // All of its room is taken: it may have gone round, so the numbers are not known.
    let unnumbered = [5, 6, 7, 8].map(|value| (Cursor::Own, None, value));
    assert_eq!(saved(&saves, 1), unnumbered);
    // One that drops has kept the first.
    let saves = Saves::new(&map(Unit::Warp, Policy::Drop), 2, capacity, &data).unwrap();
    assert_eq!(saved(&saves, 1), own(0, &[5, 6, 7, 8]));
}

/// A count says that a record is there, and it is not: it is left out.
#[test]
fn what_was_claimed_and_never_written_is_no_save() {
    let (capacity, data) = warps(&[Left { own: 3, other: 1, records: vec![Some(1)] }]);
    let saves = Saves::new(&map(Unit::Warp, Policy::Drop), 1, capacity, &data).unwrap();
    assert_eq!(saved(&saves, 0), own(0, &[1]));
    assert_eq!(saves.tally(0), Tally { counted: true, taken: 3, stored: 3 });
}

#[test]
fn false_sizes_are_refused() {
    let drop = map(Unit::Warp, Policy::Drop);
    let (capacity, data) = warps(&[Left { own: 1, other: 0, records: vec![] }]);
    assert!(Saves::new(&drop, 1, capacity, &data).is_ok());
    let refuse = |units, capacity, data: &[u8]| assert!(Saves::new(&drop, units, capacity, data).is_err());
    refuse(1, capacity, &data[..64 + 5 * 16]);
    refuse(1, capacity, &data[..63]);
    // Room for fewer records than the units have.
    refuse(3, capacity, &[0; 4096]);
    for units in [u64::MAX, u64::MAX / 6, 1 << 61, 1 << 32] {
        refuse(units, u64::MAX, &data);
        refuse(units, capacity, &data);
    }
    assert!(Saves::new(&Map { slots: None, ..drop }, 1, capacity, &data).is_err());
    // And a map with a capacity is not read as one without.
    assert!(nt_trace::ntt::Records::new(&map(Unit::Warp, Policy::Drop), 1, 16, &[0; 4096]).is_err());
}

/// Whatever the counts say, reading ends, and gives no more than there is room for.
#[test]
fn any_bytes_are_read() {
    let mut word = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..2000 {
        let mut data = vec![0u8; 64 + 16 * 16];
        for byte in data.chunks_mut(8) {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            let few = if word & 1 == 0 { word } else { word & 0x0107_0000_0107 };
            byte.copy_from_slice(&few.to_le_bytes());
        }
        for policy in [Policy::Drop, Policy::Wrap] {
            for unit in [Unit::Warp, Unit::Thread] {
                let saves = Saves::new(&map(unit, policy), 2, 16, &data).unwrap();
                for unit in 0..2 {
                    let (count, tally) = (saves.of(unit).count() as u64, saves.tally(unit));
                    assert!(count <= tally.stored && tally.stored <= 6 && tally.stored <= tally.taken);
                    assert!(saves.of(unit).all(|save| matches!(save.row.value(0), Some(Value::Unsigned(_)))));
                }
            }
        }
    }
}

fn manifest(map: Map) -> Manifest {
    let slot = |offset, size, fill| ContextSlot { offset, size, fill };
    let kernel = Kernel {
        name: "k".to_owned(),
        context: nt_trace::ntm::Context {
            size: 32,
            slots: vec![
                slot(0, 8, Fill::Base { map: 0 }),
                slot(8, 8, Fill::Capacity { map: 0 }),
                slot(16, 8, Fill::Counts { map: 0 }),
                slot(24, 4, Fill::Units { map: 0 }),
            ],
        },
        maps: vec![map],
        ..Kernel::default()
    };
    Manifest {
        schema: SCHEMA,
        tool: String::new(),
        probe: Probe { name: String::new(), hash: String::new() },
        original: String::new(),
        target: String::new(),
        woven_bytes: 0,
        kernels: vec![kernel],
        refused: Vec::new(),
    }
}

/// Manifest, launch and data in a file.
#[test]
fn a_file_gives_saves_and_not_records() {
    let (capacity, data) = warps(&[Left { own: 2, other: 0, records: vec![Some(7)] }]);
    let mut writer = FileWriter::new();
    let manifest = manifest(map(Unit::Warp, Policy::Drop)).entry("k").unwrap();
    let mut file = writer.frame(&frame::Start { protocol: nt_wire::PROTOCOL, ..Default::default() });
    file.extend(writer.frame(&frame::Kernel { id: 0, arch: 90, name: "k".to_owned(), manifest }));
    let shape = ([1; 3], [32, 1, 1]);
    file.extend(writer.frame(&frame::Launch { grid: shape.0, block: shape.1, ..frame::Launch::default() }));
    let fixed = Data { units: 1, capacity, bytes: data.len() as u64, ..Data::default() };
    file.extend(writer.data(&fixed, &data));
    file.extend(writer.frame(&frame::End::default()));
    let batches: Vec<_> = Trace::new(&file)
        .filter_map(|event| match event {
            Event::Saves(batch) => Some(batch),
            Event::Batch(_) | Event::Trouble(_) => panic!("not saves"),
            _ => None,
        })
        .collect();
    let [batch] = batches.as_slice() else { panic!("one map") };
    assert_eq!(batch.agree(), Ok(()));
    assert_eq!(saved(&batch.saves().unwrap(), 0), own(0, &[7]));
    assert!(batch.records().is_err());
}

#[test]
fn the_manifest_says_it_and_the_hook_gets_it() {
    let warps = manifest(map(Unit::Warp, Policy::Wrap));
    let text = serde_json::to_string(&warps.kernels[0].maps[0]).unwrap();
    assert!(text.ends_with(r#""stream":null,"slots":{"capacity":4,"others":2,"policy":"wrap"}}"#), "{text}");
    assert_eq!(Manifest::parse(warps.to_json().as_bytes()), Ok(warps.clone()));
    let twin = warps.kernels[0].twin(1, Vec::new());
    let shape =
        |per_unit, others, count_bytes| Some(nt_wire::message::SlotsShape { per_unit, others, count_bytes });
    assert_eq!((twin.maps[0].stride, twin.maps[0].slots), (16, shape(6, 2, 8)));
    assert_eq!(twin.slots[2].fill, nt_wire::message::Fill::Counts(0));
    let threads = manifest(map(Unit::Thread, Policy::Drop));
    assert_eq!(threads.kernels[0].twin(1, Vec::new()).maps[0].slots, shape(4, 0, 4));

    let refuse = |bend: fn(&mut Map), why: &str| {
        let mut manifest = warps.clone();
        bend(&mut manifest.kernels[0].maps[0]);
        let Err(Error::Unsound(said)) = Manifest::parse(manifest.to_json().as_bytes()) else {
            panic!("{why} was taken")
        };
        assert!(said.contains(why), "{said}");
    };
    refuse(
        |map| map.slots = Some(Slots { capacity: 0, others: 1, policy: Policy::Drop }),
        "room for 0 and 1",
    );
    refuse(
        |map| map.slots = Some(Slots { capacity: 65_537, others: 1, policy: Policy::Drop }),
        "room for 65537 and 1",
    );
    refuse(
        |map| map.slots = Some(Slots { capacity: 4, others: 0, policy: Policy::Drop }),
        "room for 4 and 0 records a warp",
    );
    refuse(|map| map.slots = None, "map 0, which has no capacity");
    refuse(|map| map.columnar = true, "room for 4 and 2 records a warp");
}

/// The IR says the capacity; a warp's other lanes get a quarter as much, and one.
#[test]
fn the_ir_says_it() {
    let check = |text: &str, expected| {
        let (program, found) = nt_ir::text::parse(&format!("program \"p\"\nmap m: {text} {{ at: u32 }}\n"));
        assert!(!found.has_errors(), "{text}");
        let map = &program.unwrap().maps[0];
        assert_eq!(Slots::of(map), expected, "{text}");
    };
    let slots = |capacity, others, policy| Some(Slots { capacity, others, policy });
    check("array<warp>[8] drop", slots(8, 3, Policy::Drop));
    check("array<warp>[1] wrap", slots(1, 1, Policy::Wrap));
    check("array<thread>[64] wrap", slots(64, 0, Policy::Wrap));
    check("array<warp>", None);
    check("stream<warp>", None);
}
