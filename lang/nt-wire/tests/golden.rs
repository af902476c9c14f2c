//! The bytes of every message and frame, held by `testdata/wire/*.hex`.
//!
//! Those files were made by a few lines of another language from the tables in the documentation, not by this crate. A
//! change here is a change of the protocol: raise [`nt_wire::PROTOCOL`] and write the file anew.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

use std::path::Path;

use nt_wire::frame::{self, padding};
use nt_wire::message::{self, Constant, Fill, MapShape, Param, Pin, Slot, SlotsShape, StreamShape, Unit};
use nt_wire::stream;
use nt_wire::{PROTOCOL, Reader};

/// Hex digits of every line up to its `#`.
fn golden(name: &str) -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/wire").join(name).with_extension("hex");
    let text = std::fs::read_to_string(path).unwrap();
    let digits = text.lines().flat_map(|line| line.split('#').next().unwrap().split_whitespace());
    digits.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect()
}

fn check_message<B: message::Body + PartialEq + std::fmt::Debug>(name: &str, serial: u32, body: &B) {
    let bytes = golden(name);
    assert_eq!(body.message(serial), bytes, "{name}");
    let (head, rest) = bytes.split_first_chunk().unwrap();
    let head = message::Head::decode(head).unwrap();
    assert_eq!((head.kind, head.len as usize, head.serial), (B::KIND, rest.len(), serial), "{name}");
    let mut reader = Reader::new(rest);
    assert_eq!(B::decode(&mut reader).as_ref(), Ok(body), "{name}");
    assert!(reader.rest().is_empty(), "{name}");
}

fn check_frame<B: frame::Body + PartialEq + std::fmt::Debug>(name: &str, sequence: u64, body: &B) {
    let bytes = golden(name);
    assert_eq!(body.frame(sequence), bytes, "{name}");
    let head = frame::Head::decode(&bytes).unwrap();
    assert_eq!((head.kind, head.sequence, head.stride()), (B::KIND, sequence, bytes.len() as u64), "{name}");
    let mut reader = Reader::new(&bytes[frame::Head::SIZE..][..head.len as usize]);
    assert_eq!(B::decode(&mut reader).as_ref(), Ok(body), "{name}");
    assert!(reader.rest().is_empty(), "{name}");
}

#[test]
fn the_goldens_are_of_this_protocol() {
    assert_eq!(PROTOCOL, 4);
}

#[test]
fn messages() {
    check_message(
        "hello",
        1,
        &message::Hello { protocol: 4, pid: 4321, start: 987_654, exe: b"/bin/app".to_vec() },
    );
    check_message(
        "settings",
        1,
        &message::Settings {
            protocol: 4,
            wait_ms: 1000,
            exit_ms: 2000,
            pool_bytes: 1 << 30,
            launch_bytes: 256 << 20,
        },
    );
    check_message("image", 2, &message::Image { size: 70_000, options: "-maxrregcount=32".into() });
    let selected = vec!["_Z1a".to_owned(), "b".to_owned()];
    check_message("kernels", 2, &message::Kernels { image: 3, reason: "no PTX".into(), selected });
    check_message("need", 3, &message::Need { image: 3, arch: 90, kernel: "_Z1a".into(), holds: 5 });
    check_message(
        "twin",
        3,
        &message::Twin {
            size: 5000,
            params: vec![Param { offset: 0, size: 8 }, Param { offset: 8, size: 4 }],
            context: 64,
            slots: vec![
                Slot { offset: 0, size: 8, fill: Fill::Zero },
                Slot { offset: 8, size: 8, fill: Fill::Base(1) },
                Slot { offset: 16, size: 4, fill: Fill::Capacity(1) },
                Slot { offset: 24, size: 8, fill: Fill::Launch },
                Slot { offset: 32, size: 8, fill: Fill::Cursor(4) },
                Slot { offset: 40, size: 8, fill: Fill::Drops(4) },
                Slot { offset: 48, size: 4, fill: Fill::Units(4) },
                Slot { offset: 56, size: 8, fill: Fill::Counts(5) },
            ],
            maps: vec![
                MapShape::records(Unit::Thread, 5),
                MapShape::records(Unit::Warp, 16),
                MapShape::records(Unit::Block, 32),
                MapShape { persistent: true, ..MapShape::records(Unit::Sm, 24) },
                MapShape {
                    stream: Some(StreamShape { chunk: 16, bytes: 64 << 20 }),
                    ..MapShape::records(Unit::Warp, 16)
                },
                MapShape {
                    slots: Some(SlotsShape { per_unit: 41, others: 9, count_bytes: 8 }),
                    ..MapShape::records(Unit::Warp, 32)
                },
            ],
            pins: vec![
                Pin { symbol: "total".into(), index: 0 },
                Pin { symbol: "_ZL5queue".into(), index: 3 },
            ],
            constants: vec![Constant { symbol: "weights".into(), size: 65_536 }],
            assumes: 3,
            wants_params: true,
            manifest: b"{}".to_vec(),
        },
    );
    check_message("refused", 3, &message::Refused { reason: "texrefs".into() });
    check_message(
        "bye",
        4,
        &message::Bye { launches: 30, probed: 20, collected: 19, notes: vec!["1 lost".into()] },
    );
}

#[test]
fn frames() {
    check_frame(
        "start",
        0,
        &frame::Start {
            protocol: 4,
            pid: 4321,
            start: 987_654,
            wall_ns: 1_796_000_000_000_000_000,
            monotonic_ns: 5_000_000_000,
            host: "node".into(),
            boot: "af16".into(),
            exe: "/bin/app".into(),
            command: vec!["app".into(), "-x".into()],
            version: "nt 1".into(),
        },
    );
    check_frame(
        "kernel",
        1,
        &frame::Kernel { id: 7, arch: 90, name: "_Z1a".into(), manifest: b"{}".to_vec() },
    );
    check_frame(
        "launch",
        2,
        &frame::Launch {
            number: 5,
            kernel: 7,
            device: 1,
            grid: [4, 3, 2],
            block: [32, 8, 1],
            shared: 49_152,
            sms: 132,
            stream: 0x7f00_0000_1000,
            context: 0x7f00_0000_2000,
            launched_ns: 6_000_000_000,
            complete_ns: 6_000_100_000,
            clock_khz: 1_980_000,
            params: vec![1, 2, 3],
        },
    );
    let (kernel, reason) = ("_Z1a".to_owned(), "fell".to_owned());
    check_frame("count", 4, &frame::Count { kernel, launches: 30, probed: 20, collected: 19, reason });
    check_frame("note", 5, &frame::Note { text: "hell".into() });
    check_frame("end", 6, &frame::End { launches: 30, probed: 20, collected: 19 });
}

fn check_data(name: &str, fixed: frame::Data, data: &[u8]) {
    let bytes = golden(name);
    let mut written = fixed.begin(3, data);
    written.extend_from_slice(data);
    written.resize(written.len() + padding(frame::Data::SIZE + data.len()), 0);
    assert_eq!(written, bytes, "{name}");
    let head = frame::Head::decode(&bytes).unwrap();
    let body = &bytes[frame::Head::SIZE..][..head.len as usize];
    assert_eq!(frame::Data::decode(body), Ok((fixed, data)), "{name}");
}

#[test]
fn data() {
    let (context, device) = (0x7f00_0000_2000, 1);
    let records =
        frame::Data { launch: 5, map: 1, kernel: 7, units: 6, capacity: 6, bytes: 96, context, device };
    check_data("data", records, &(0..96).collect::<Vec<u8>>());
    let launch = frame::Data::PERSISTENT;
    let cells = frame::Data { launch, map: 2, kernel: 7, units: 3, capacity: 4, bytes: 32, context, device };
    let words = [4096u64, 0, u64::MAX, 0].map(u64::to_le_bytes);
    check_data("persistent", cells, &words.concat());
}

#[test]
fn parts_of_streams() {
    let head = stream::Head {
        claims: 7,
        units: 3,
        cap: 64,
        first_slot: 32,
        slots: 16,
        drops_bytes: 12,
        chunk: 16,
        part: 1,
        parts: 2,
    };
    let bytes = golden("stream");
    assert_eq!(head.encode(), bytes[..stream::Head::SIZE]);
    let drops = [0u32, 5, 0x01_00_00].map(u32::to_le_bytes).concat();
    let slots: Vec<u8> = (0..=255).collect();
    assert_eq!(stream::Head::decode(&bytes), Ok(stream::Part { head, drops: &drops, slots: &slots }));
}
