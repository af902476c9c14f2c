//! Streams: what a device leaves by the rules of `docs/formats.md`, here made by a machine of lanes, is read back.
//!
//! The machine below knows nothing of the reader. It has a cursor a lane, claims chunks, and writes words, as woven
//! kernels do; what it was told to save is kept beside, in the order of each lane.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod device;

use device::{Device, Saved, Values};
use nt_trace::ntm::{
    Code, Column, Field, Form, Kernel, Lanes, Linear, Map, Param, Presence, Site, Source, Stream, Term, Told,
    Type, Unit,
};
use nt_trace::ntt::{Cursors, Reader, Unfit, Value};
use nt_wire::frame::Launch;
use nt_wire::stream::Head;

const CODES: usize = 8;

/// `{ site: u32 (told), at: u32, addr: lanes<ptr>, bytes: lanes<s16>, wide: lanes<u64> }`
fn map(chunk: u32) -> Map {
    let field = |name: &str, ty: Type, offset| Field { name: name.to_owned(), ty, offset, size: ty.size() };
    let column = |name: &str, ty, field| Column { name: name.to_owned(), ty, source: Source::Field(field) };
    let number = |constant| Linear { constant, terms: Vec::new() };
    let pitch = |factor| Term { param_offset: 8, size: 4, signed: true, factor };
    let code = |line: u32, addr, bytes, wide| Code {
        site: 10 + line,
        told: vec![Told { field: 0, value: u64::from(line) }],
        lanes: vec![
            Lanes { field: 2, form: addr },
            Lanes { field: 3, form: bytes },
            Lanes { field: 4, form: wide },
        ],
        assumes: vec![],
    };
    let bits = |strides: [i64; 5]| Form::Bits(strides.map(number));
    let tiled = Form::Bits([
        number(4),
        number(8),
        number(-16),
        Linear { constant: 1, terms: vec![pitch(2)] },
        Linear { constant: 0, terms: vec![pitch(4), pitch(-1)] },
    ]);
    Map {
        name: "trace".to_owned(),
        unit: Unit::Warp,
        columnar: false,
        stride: 16,
        fields: vec![
            field("site", Type::U32, 0),
            field("at", Type::U32, 12),
            field("addr", Type::Ptr, 0),
            field("bytes", Type::S16, 0),
            field("wide", Type::U64, 0),
        ],
        presence: Presence::Mask,
        columns: vec![
            column("at", Type::U64, 1),
            column("site", Type::U32, 0),
            column("addr", Type::Ptr, 2),
            column("bytes", Type::S32, 3),
            column("wide", Type::U64, 4),
        ],
        slots: None,
        stream: Some(Stream {
            chunk,
            header: 1,
            bytes: 1 << 20,
            lanes: vec![2, 3, 4],
            told: vec![0],
            codes: vec![
                code(0, bits([4, 8, 16, 32, 64]), Form::Known(4), Form::Known(1 << 40)),
                code(1, tiled, Form::Known(-2i64 as u64), Form::Known(0)),
                code(2, Form::Stride, Form::Known(8), Form::Known(0)),
                code(2, Form::List32, Form::Known(8), Form::Known(0)),
                code(2, Form::List64, Form::Known(8), Form::Known(0)),
                code(3, Form::Stride, Form::List32, Form::Known(7)),
                code(4, Form::List32, Form::List64, Form::List64),
                code(5, bits([0; 5]), Form::List32, Form::List64),
            ],
        }),
    }
}

fn kernel(map: Map) -> Kernel {
    let site = |id| Site {
        id,
        kind: "inst:load".to_owned(),
        opcode: "ld.global.f32".to_owned(),
        line: 40 + id,
        column: 2,
        file: None,
        source_line: None,
    };
    Kernel {
        name: "fill".to_owned(),
        params: vec![Param { offset: 0, size: 8 }, Param { offset: 8, size: 4 }],
        maps: vec![map],
        sites: (10..16).map(site).collect(),
        ..Kernel::default()
    }
}

/// 3 blocks of 40 threads: 6 warps, every other of which has 8 lanes.
fn launch(pitch: i32) -> Launch {
    let mut params = vec![0; 12];
    params[8..].copy_from_slice(&pitch.to_le_bytes());
    Launch { number: 7, grid: [3, 1, 1], block: [40, 1, 1], sms: 4, params, ..Launch::default() }
}

/// Numbers by chance, the same ones each time (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// An event of one of the codes, with values as its form can hold them.
fn event(chance: &mut Chance, warp: u64, pitch: i32) -> Saved {
    let lanes = if warp.is_multiple_of(2) { u32::MAX } else { 0xff };
    let mask = match chance.below(4) {
        0 | 1 => lanes,
        2 => (chance.next() as u32 & lanes).max(1),
        _ => 1 << chance.below(u64::from(lanes.count_ones())),
    };
    let code = chance.below(CODES as u64) as usize;
    let leader = mask.trailing_zeros();
    // Addresses from both halves of the 48 bits that a base holds.
    let base =
        chance.next() & 0x7fff_ffff_ff00 | if chance.below(2) == 0 { 0 } else { 0xffff_8000_0000_0000 };
    let pitch = i64::from(pitch);
    let strides = match code {
        1 => [4, 8, -16, 1 + 2 * pitch, 3 * pitch],
        7 => [0; 5],
        _ => [4, 8, 16, 32, 64],
    };
    let bits = |lane: u32| (0..5).map(|bit| i64::from(lane >> bit & 1) * strides[bit as usize]).sum::<i64>();
    let stride = chance.next() as i32 as i64;
    let mut addr = [0; 32];
    let mut bytes = [0; 32];
    let mut wide = [0; 32];
    for lane in 0..32u32 {
        let i = lane as usize;
        addr[i] = match code {
            0 | 1 | 7 => base.wrapping_add((bits(lane) - bits(leader)) as u64),
            2 | 5 => base.wrapping_add(((i64::from(lane) - i64::from(leader)) * stride) as u64),
            3 | 6 if lane != leader => base.wrapping_add(chance.next() as i32 as i64 as u64),
            4 if lane != leader => chance.next(),
            _ => base,
        };
        bytes[i] = match code {
            0 => 4,
            1 => -2,
            5..=7 => i64::from(chance.next() as i16),
            _ => 8,
        };
        wide[i] = match code {
            0 => 1 << 40,
            5 => 7,
            6 | 7 => chance.next(),
            _ => 0,
        };
    }
    let addr_values = match code {
        0 | 1 | 7 => Values::Nothing,
        2 | 5 => Values::Stride(stride as i32),
        4 => Values::Longs(addr),
        _ => Values::Words(addr.map(|addr| addr.wrapping_sub(base) as u32)),
    };
    let bytes_values = match code {
        5 | 7 => Values::Words(bytes.map(|bytes| bytes as i32 as u32)),
        6 => Values::Longs(bytes.map(|bytes| bytes as u64)),
        _ => Values::Nothing,
    };
    let wide_values = if code > 5 { Values::Longs(wide) } else { Values::Nothing };
    Saved {
        warp,
        mask,
        code: code as u16,
        base,
        at: chance.next() as u32,
        sections: vec![addr_values, bytes_values, wide_values],
        addr,
        bytes,
        wide,
    }
}

/// What a reader gives, as the machine keeps it: the lane's cursor and number, and the event.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Read {
    warp: u64,
    lane: u32,
    sequence: u64,
    mask: u32,
    at: u64,
    line: u64,
    addr: Vec<u64>,
    bytes: Vec<i64>,
    wide: Vec<u64>,
}

fn read(reader: &Reader, parts: &[Vec<u8>]) -> (Vec<Read>, u64) {
    let mut cursors = Cursors::default();
    let (mut all, mut torn, mut lines) = (Vec::new(), 0, 0);
    for data in parts {
        let part = reader.part(data).unwrap();
        for piece in reader.pieces(&part, &mut cursors, 1 << 14) {
            torn += piece.torn;
            let before = all.len();
            for event in reader.events(&piece) {
                let lanes = |column: usize| {
                    let mut bits = [0; 32];
                    assert!(event.put_lanes(column, &mut bits));
                    event.lanes().map(|lane| reader.typed(column, bits[lane as usize])).collect::<Vec<_>>()
                };
                let integer = |value: Value| value.to_integer().unwrap();
                let line = integer(event.value(1).unwrap()) as u64;
                assert_eq!(event.site(), Some(line as usize));
                for column in 2..5 {
                    if let Some((first, step)) = event.line(column) {
                        let mut bits = [0; 32];
                        event.put_lanes(column, &mut bits);
                        for lane in event.lanes() {
                            let run = i64::from(lane) - i64::from(event.lane());
                            let expected = first.wrapping_add(run.wrapping_mul(step) as u64);
                            assert_eq!(bits[lane as usize], expected);
                        }
                        lines += 1;
                    }
                }
                assert!(event.value(2).is_none() && !event.put_lanes(0, &mut [0; 32]));
                all.push(Read {
                    warp: event.warp(),
                    lane: event.lane(),
                    sequence: event.sequence(),
                    mask: event.mask(),
                    at: integer(event.value(0).unwrap()) as u64,
                    line,
                    addr: lanes(2).into_iter().map(|v| integer(v) as u64).collect(),
                    bytes: lanes(3).into_iter().map(|v| integer(v) as i64).collect(),
                    wide: lanes(4).into_iter().map(|v| integer(v) as u64).collect(),
                });
            }
            assert_eq!(piece.stored, (all.len() - before) as u64);
        }
    }
    // Half of the codes have addresses on a line, and most have constants.
    assert!(lines >= all.len() || all.len() < 20);
    (all, torn)
}

/// Which line a code is at.
const LINES: [u64; CODES] = [0, 1, 2, 2, 2, 3, 4, 5];

fn expected(saved: &Saved, sequence: u64) -> Read {
    let lanes = || (0..32usize).filter(|lane| saved.mask >> lane & 1 == 1);
    Read {
        warp: saved.warp,
        lane: saved.mask.trailing_zeros(),
        sequence,
        mask: saved.mask,
        at: u64::from(saved.at),
        line: LINES[usize::from(saved.code)],
        addr: lanes().map(|lane| saved.addr[lane]).collect(),
        bytes: lanes().map(|lane| saved.bytes[lane]).collect(),
        wide: lanes().map(|lane| saved.wide[lane]).collect(),
    }
}

#[test]
fn what_lanes_have_saved_is_read_back_in_their_order() {
    for seed in 1..22u64 {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let pitch = chance.next() as i32;
        // Room for all, for few, for less than the first chunks.
        let cap = [64 * 64 * 64, 64 * 20, 64 * 4][seed as usize % 3];
        let mut device = Device::new(64, 6, cap);
        let mut kept: Vec<Read> = Vec::new();
        for number in 0..chance.below(2000) {
            // Between chunks that have an owner there may be some that have none.
            if seed % 2 == 0 && number % 16 == 0 {
                device.abandon();
            }
            let warp = chance.below(6);
            let saved = event(&mut chance, warp, pitch);
            if let Some(sequence) = device.save(&saved) {
                kept.push(expected(&saved, sequence));
            }
        }
        let map = map(64);
        let reader = Reader::new(&kernel(map.clone()), &map, &launch(pitch)).unwrap();
        for parts in [1, 3] {
            let data = device.parts(parts);
            let (mut all, torn) = read(&reader, &data);
            // Within a cursor they come in order.
            let mut last = std::collections::BTreeMap::new();
            for event in &all {
                let next = last.entry((event.warp, event.lane)).or_insert(0);
                assert_eq!(event.sequence, *next);
                *next += 1;
            }
            all.sort();
            kept.sort();
            assert_eq!((all, torn), (kept.clone(), 0), "seed {seed}");
            let head = Head::decode(&data[0]).unwrap();
            let words = head.drops.as_chunks::<4>().0;
            let drops: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let lost = device.drops.iter().any(|&lost| lost > 0);
            assert!(if lost { drops == device.drops } else { drops.iter().all(|&lost| lost == 0) });
        }
    }
}

#[test]
fn records_without_lanes_are_packed() {
    let field = |name: &str, ty: Type, offset| Field { name: name.to_owned(), ty, offset, size: ty.size() };
    let column = |name: &str, ty, field| Column { name: name.to_owned(), ty, source: Source::Field(field) };
    let map = Map {
        name: "progress".to_owned(),
        unit: Unit::Warp,
        columnar: false,
        stride: 32,
        fields: vec![field("at", Type::U64, 0), field("site", Type::U32, 8), field("x", Type::S8, 12)],
        presence: Presence::Byte { offset: 16 },
        columns: vec![column("at", Type::U64, 0), column("site", Type::U32, 1), column("x", Type::S64, 2)],
        slots: None,
        stream: Some(Stream {
            chunk: 4,
            header: 2,
            bytes: 1 << 20,
            lanes: Vec::new(),
            told: Vec::new(),
            codes: Vec::new(),
        }),
    };
    let launch = Launch { params: Vec::new(), ..launch(0) };
    let reader = Reader::new(&kernel(map.clone()), &map, &launch).unwrap();
    // Chunks of 4 slots hold one record of two. Warp 5 saves twice: its own chunk, and the second behind the first ones; the
    // first is nobody's.
    let mut slots = vec![0u8; 8 * 64];
    let record = |at: u64, site: u32, x: i8| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&at.to_le_bytes());
        bytes[8..12].copy_from_slice(&site.to_le_bytes());
        bytes[12] = x as u8;
        bytes[16] = 1;
        bytes
    };
    slots[5 * 64 + 16..][..32].copy_from_slice(&record(100, 2, -3));
    slots[7 * 64..][..8].copy_from_slice(&(5 * 32u64 + 1).to_le_bytes());
    slots[7 * 64 + 16..][..32].copy_from_slice(&record(200, 99, 3));
    let head = Head { claims: 2, units: 6, cap: 32, slots: 32, chunk: 4, parts: 1, ..Head::default() };
    let data = [head.encode().to_vec(), slots].concat();
    let part = reader.part(&data).unwrap();
    let mut cursors = Cursors::default();
    let mut rows = Vec::new();
    for piece in reader.pieces(&part, &mut cursors, 1 << 14) {
        assert_eq!((piece.stored, piece.torn), (2, 0));
        for event in reader.events(&piece) {
            assert_eq!((event.warp(), event.lane(), event.mask(), event.lanes().count()), (5, 0, 0, 0));
            assert!(!event.put_lanes(0, &mut [0; 32]));
            rows.push((event.sequence(), event.site(), [0, 1, 2].map(|column| event.value(column).unwrap())));
        }
    }
    let first = [Value::Unsigned(100), Value::Unsigned(2), Value::Signed(-3)];
    let second = [Value::Unsigned(200), Value::Unsigned(99), Value::Signed(3)];
    // The column counts the kernel's sites from 0; there are not so many as 100.
    assert_eq!(rows, [(0, Some(2), first), (1, None, second)]);
}

#[test]
fn parts_are_held_against_map_and_launch() {
    let map = map(64);
    let reader = Reader::new(&kernel(map.clone()), &map, &launch(1)).unwrap();
    let check = |head: Head, bytes: usize, expected: &str| {
        let data = [head.encode().to_vec(), vec![0; bytes]].concat();
        assert_eq!(reader.part(&data).unwrap_err().to_string(), expected);
    };
    let head = Head { units: 6, cap: 128, slots: 64, chunk: 64, parts: 1, ..Head::default() };
    assert!(reader.part(&[head.encode().to_vec(), vec![0; 1024]].concat()).is_ok());
    check(head, 1023, "the part of a stream contradicts itself");
    check(Head { chunk: 32, ..head }, 1024, "chunks of 32 slots, and the manifest tells of 64");
    check(Head { units: 7, ..head }, 1024, "7 units, and launch 7 has 6");
    let params = Launch { params: vec![0; 11], ..launch(1) };
    assert_eq!(Reader::new(&kernel(map.clone()), &map, &params).unwrap_err(), Unfit::Params { bytes: 11 });
    let map = Map { stream: None, ..map };
    assert_eq!(Reader::new(&kernel(map.clone()), &map, &launch(1)).unwrap_err(), Unfit::NoStream);
}

/// Each change is one that no save leaves.
#[test]
fn chunks_that_cannot_be_are_counted_and_read_up_to_there() {
    let map = map(64);
    let reader = Reader::new(&kernel(map.clone()), &map, &launch(3)).unwrap();
    let mut chance = Chance(5);
    let mut device = Device::new(64, 6, 64 * 64);
    let mut in_first = 0;
    for _ in 0..400 {
        let saved = event(&mut chance, 0, 3);
        if device.save(&saved).is_some() && saved.mask & 1 == 1 {
            in_first += 1;
        }
    }
    assert!(in_first > 100);
    let sound = device.parts(1).remove(0);
    let (all, torn) = read(&reader, std::slice::from_ref(&sound));
    assert_eq!(torn, 0);
    let slots = 64 + sound.len() - Head::decode(&sound).unwrap().slots.len() - 64;
    let check = |at: usize, bytes: &[u8], what: &str| {
        let mut data = sound.clone();
        data[slots + at..][..bytes.len()].copy_from_slice(bytes);
        let (left, torn) = read(&reader, &[data]);
        assert_eq!(torn, 1, "{what}");
        assert!(left.len() < all.len(), "{what}");
    };
    check(0, &[1], "an owner in a chunk of a warp's own");
    check(6 * 1024, &[0; 8], "no owner");
    check(6 * 1024, &(6 * 32u64 + 1).to_le_bytes(), "an owner beyond the launch");
    check(6 * 1024, &u64::MAX.to_le_bytes(), "an owner beyond all launches");
    check(16 + 6, &[CODES as u8, 0], "a code that is not listed");
    check(16 + 8, &2u32.to_le_bytes(), "another lane's event");
    check(16 + 8, &[0; 4], "an event behind none");
}

/// Any bytes: no panic, and no more events than there are slots.
#[test]
fn changed_bytes_never_panic() {
    let mut chance = Chance(11);
    let mut device = Device::new(64, 6, 64 * 16);
    for _ in 0..600 {
        let warp = chance.below(6);
        let saved = event(&mut chance, warp, 3);
        device.save(&saved);
    }
    let sound = device.parts(1).remove(0);
    for _ in 0..1500 {
        let mut data = sound.clone();
        for _ in 0..=chance.below(8) {
            let at = chance.below(data.len() as u64) as usize;
            data[at] = [0, 1, 0x7f, 0xff, chance.next() as u8][chance.below(5) as usize];
        }
        if chance.below(4) == 0 {
            data.truncate(chance.below(data.len() as u64) as usize);
        }
        law(&data);
    }
    // Kept inputs: what once went wrong goes here.
    for data in [&[][..], &[0xff; 64], &[0; 64], &[0xff; 4096]] {
        law(data);
    }
}

/// What holds for any bytes.
fn law(data: &[u8]) {
    for chunk in [4, 64] {
        let map = map(chunk);
        let reader = Reader::new(&kernel(map.clone()), &map, &launch(3)).unwrap();
        let Ok(part) = reader.part(data) else { continue };
        let mut cursors = Cursors::default();
        for piece in reader.pieces(&part, &mut cursors, 1 << 14) {
            let mut events = 0;
            for event in reader.events(&piece) {
                events += 1;
                assert!(event.warp() < 6 && event.lane() < 32 && event.mask() >> event.lane() & 1 == 1);
                for column in 0..6 {
                    let mut bits = [0; 32];
                    assert!(!(event.value(column).is_some() && event.put_lanes(column, &mut bits)));
                }
            }
            assert_eq!(events, piece.stored);
            assert!(events * 16 <= data.len() as u64);
        }
    }
}

/// Through a whole file: parts of one stream, the numbers of events going on from one to the next.
#[test]
fn parts_in_a_file_go_on_from_each_other() {
    use nt_trace::ntt::{Event, FileWriter, Streams, Trace};
    use nt_wire::frame::{self, Data};
    let mut chance = Chance(3);
    let mut device = Device::new(64, 6, 64 * 64);
    for _ in 0..900 {
        let saved = event(&mut chance, 2, 3);
        device.save(&saved);
    }
    let manifest = nt_trace::Manifest {
        schema: nt_trace::ntm::SCHEMA,
        tool: String::new(),
        probe: nt_trace::ntm::Probe { name: String::new(), hash: String::new() },
        original: String::new(),
        target: String::new(),
        woven_bytes: 0,
        kernels: vec![kernel(map(64))],
        refused: Vec::new(),
    };
    let mut writer = FileWriter::new();
    let manifest = manifest.entry("fill").unwrap();
    let mut file = writer.frame(&frame::Start { protocol: nt_wire::PROTOCOL, ..frame::Start::default() });
    file.extend(writer.frame(&frame::Kernel { id: 0, arch: 90, name: "fill".to_owned(), manifest }));
    file.extend(writer.frame(&launch(3)));
    for part in device.parts(4) {
        let fixed =
            Data { launch: 7, units: 6, capacity: 64 * 64, bytes: part.len() as u64, ..Data::default() };
        file.extend(writer.data(&fixed, &part));
    }
    file.extend(writer.frame(&frame::End::default()));
    let mut streams = Streams::default();
    let (mut next, mut parts, mut stored) = ([0; 32], 0, 0);
    for event in Trace::new(&file) {
        match event {
            Event::Stream(batch) => {
                let mut open = streams.open(&batch).unwrap();
                let reader = std::sync::Arc::clone(&open.reader);
                assert_eq!(open.part.head.part, parts);
                for piece in open.pieces(4096) {
                    for event in reader.events(&piece) {
                        assert_eq!((event.warp(), event.sequence()), (2, next[event.lane() as usize]));
                        next[event.lane() as usize] += 1;
                        stored += 1;
                    }
                }
                let dropped: Vec<(u64, u32)> = open.dropped().collect();
                let lost = device.drops[2];
                assert_eq!(dropped, if parts == 0 && lost > 0 { vec![(2, lost)] } else { vec![] });
                parts += 1;
            }
            Event::Trouble(trouble) => panic!("{trouble}"),
            Event::Batch(_) | Event::Saves(_) | Event::Cells(_) => panic!("not a stream"),
            _ => {}
        }
    }
    assert_eq!((parts, stored + u64::from(device.drops[2])), (4, 900));
}
