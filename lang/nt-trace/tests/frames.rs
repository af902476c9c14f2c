//! Sound frames are found in files that were cut, changed, or written over; what is lost is named.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use nt_trace::ntt::{Content, FileWriter, Frames, Item, Trouble};
use nt_wire::PROTOCOL;
use nt_wire::frame::{Data, End, Head, Kernel, Kind, Launch, Note, Start};

/// Frames of a small trace: start, kernel, launch, data of 100 bytes, note, end.
fn small() -> Vec<Vec<u8>> {
    let mut writer = FileWriter::new();
    let data: Vec<u8> = (0..100).collect();
    vec![
        writer.frame(&Start {
            protocol: PROTOCOL,
            pid: 7,
            command: vec!["app".to_owned()],
            ..Start::default()
        }),
        writer.frame(&Kernel { id: 3, arch: 90, name: "fill".to_owned(), manifest: Vec::new() }),
        writer.frame(&Launch { number: 5, kernel: 3, grid: [1; 3], block: [32, 1, 1], ..Launch::default() }),
        writer.data(
            &Data { launch: 5, kernel: 3, units: 6, capacity: 16, bytes: 100, ..Data::default() },
            &data,
        ),
        writer.frame(&Note { text: "one word".to_owned() }),
        writer.frame(&End { launches: 1, probed: 1, collected: 1 }),
    ]
}

/// Numbers of the frames found, and the troubles.
fn read(bytes: &[u8]) -> (Vec<u64>, Vec<Trouble>) {
    let (mut frames, mut troubles) = (Vec::new(), Vec::new());
    for item in Frames::new(bytes) {
        match item {
            Item::Frame(frame) => frames.push(frame.sequence),
            Item::Trouble(trouble) => troubles.push(trouble),
        }
    }
    (frames, troubles)
}

/// Where each frame begins, and the end of the last.
fn places(frames: &[Vec<u8>]) -> Vec<u64> {
    let mut at = 0;
    let mut places = vec![0];
    for frame in frames {
        at += frame.len() as u64;
        places.push(at);
    }
    places
}

/// Reproducible noise: xorshift64.
fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn a_sound_file_is_read_whole() {
    let frames = small();
    assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [128, 128, 192, 256, 128, 128]);
    assert_eq!(read(&frames.concat()), ((0..6).collect(), vec![]));
    let bytes = frames.concat();
    let data = Frames::new(&bytes).find_map(|item| match item {
        Item::Frame(frame) => match frame.content {
            Content::Data(fixed, data) => Some((frame.at, fixed.launch, data.to_vec())),
            _ => None,
        },
        Item::Trouble(_) => None,
    });
    assert_eq!(data, Some((448, 5, (0..100).collect())));
}

#[test]
fn a_file_cut_at_any_byte_is_sound_up_to_the_cut() {
    let frames = small();
    let (bytes, places) = (frames.concat(), places(&frames));
    for length in 0..bytes.len() {
        // A frame is whole once its body is; the zeros behind it are not needed.
        let body_end = |i: usize| places[i] + 64 + Head::decode(&frames[i]).unwrap().len;
        let whole = (0..frames.len()).take_while(|&i| body_end(i) <= length as u64).count();
        let (found, troubles) = read(&bytes[..length]);
        assert_eq!(found, (0..whole as u64).collect::<Vec<_>>(), "{length}");
        if whole == frames.len() {
            assert_eq!(troubles, [], "{length}");
        } else {
            let at = places[whole].min(length as u64);
            assert_eq!(troubles, [Trouble::Cut { frame: whole as u64, at }], "{length}");
        }
    }
}

#[test]
fn a_changed_byte_costs_its_frame_alone() {
    let frames = small();
    let (bytes, places) = (frames.concat(), places(&frames));
    for at in 0..bytes.len() {
        let hit = places.iter().rposition(|&place| place <= at as u64).unwrap();
        let len = 64 + Head::decode(&frames[hit]).unwrap().len;
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= change;
            let (found, troubles) = read(&bytes);
            if at as u64 - places[hit] >= len {
                assert_eq!((found.len(), troubles), (6, vec![]), "byte {at} is padding");
                continue;
            }
            assert_eq!(found, (0..6).filter(|&i| i != hit as u64).collect::<Vec<_>>(), "byte {at}");
            let (from, to, hit) = (places[hit], places[hit + 1], hit as u64);
            let expected = if hit == 5 {
                vec![Trouble::Cut { frame: 5, at: from }]
            } else {
                vec![Trouble::Damaged { from, to }, Trouble::Gap { at: to, expected: hit, found: hit + 1 }]
            };
            assert_eq!(troubles, expected, "byte {at} ^ {change:#x}");
        }
    }
}

/// CUTracer 221: 19 good records, 11 kB of noise, 365 good records.
#[test]
fn noise_between_frames_is_skipped_and_measured() {
    let mut writer = FileWriter::new();
    let mut bytes = writer.frame(&Start { protocol: PROTOCOL, ..Start::default() });
    let note = |n: u64| Note { text: format!("record {n}") };
    (0..19).for_each(|n| bytes.extend(writer.frame(&note(n))));
    let from = bytes.len();
    bytes.extend(noise(11_003, 42));
    (19..384).for_each(|n| bytes.extend(writer.frame(&note(n))));
    bytes.extend(writer.frame(&End::default()));
    let (found, troubles) = read(&bytes);
    assert_eq!(found, (0..386).collect::<Vec<_>>());
    assert_eq!(troubles, [Trouble::Damaged { from: from as u64, to: from as u64 + 11_003 }]);
}

#[test]
fn noise_in_the_middle_of_a_frame_costs_that_frame() {
    let frames = small();
    let (mut bytes, places) = (frames.concat(), places(&frames));
    let at = places[3] as usize + 130;
    bytes.splice(at..at, noise(11_000, 7));
    let (found, troubles) = read(&bytes);
    assert_eq!(found, [0, 1, 2, 4, 5]);
    let to = places[4] + 11_000;
    assert_eq!(
        troubles,
        [Trouble::Damaged { from: places[3], to }, Trouble::Gap { at: to, expected: 3, found: 4 }]
    );
}

#[test]
fn lost_bytes_cost_the_frame_they_were_of() {
    let frames = small();
    let (mut bytes, places) = (frames.concat(), places(&frames));
    bytes.drain(places[3] as usize + 100..places[3] as usize + 117);
    let (found, troubles) = read(&bytes);
    assert_eq!(found, [0, 1, 2, 4, 5]);
    assert_eq!(troubles[0], Trouble::Damaged { from: places[3], to: places[4] - 17 });
}

#[test]
fn a_missing_frame_shows_in_the_numbers() {
    let mut frames = small();
    frames.remove(4);
    assert_eq!(read(&frames.concat()).1, [Trouble::Gap { at: 704, expected: 4, found: 5 }]);
}

#[test]
fn what_a_newer_version_writes_is_skipped_and_said() {
    let mut frames = small();
    frames[4] = raw(Kind::Unknown(99), 4, b"from the future");
    let (found, troubles) = read(&frames.concat());
    assert_eq!(found, [0, 1, 2, 3, 5]);
    assert_eq!(troubles, [Trouble::Unknown { at: 704, sequence: 4, kind: 99 }]);

    frames[0] = FileWriter::new().frame(&Start { protocol: PROTOCOL + 1, ..Start::default() });
    assert_eq!(read(&frames.concat()), (vec![], vec![Trouble::Version { protocol: PROTOCOL + 1 }]));
}

/// A frame of any kind with right checksums.
fn raw(kind: Kind, sequence: u64, body: &[u8]) -> Vec<u8> {
    let body_crc = nt_wire::frame::checksum(body);
    let mut bytes = Head { kind, len: body.len() as u64, sequence, body_crc }.encode().to_vec();
    bytes.extend_from_slice(body);
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    bytes
}

#[test]
fn a_body_that_is_not_what_its_kind_says() {
    let mut frames = small();
    frames[2] = raw(Kind::Launch, 2, &[0; 20]);
    let (found, troubles) = read(&frames.concat());
    assert_eq!(found, [0, 1, 3, 4, 5]);
    assert_eq!(troubles, [Trouble::Malformed { at: 256, sequence: 2 }]);
}

#[test]
fn a_trace_in_the_data_of_a_trace_is_data() {
    let inner = small().concat();
    let mut writer = FileWriter::new();
    let mut bytes = writer.frame(&Start { protocol: PROTOCOL, ..Start::default() });
    let fixed = Data { units: 1, capacity: 16, bytes: inner.len() as u64, ..Data::default() };
    bytes.extend(writer.data(&fixed, &inner));
    bytes.extend(writer.frame(&End::default()));
    assert_eq!(read(&bytes), (vec![0, 1, 2], vec![]));
    // Where the outer frame is damaged, what it claims about its length is still believed first.
    bytes[128 + 64 + 16] ^= 1;
    assert_eq!(read(&bytes).0, [0, 2]);
}

#[test]
fn files_may_be_joined() {
    let whole = small().concat();
    let twice = [whole.as_slice(), &whole].concat();
    assert_eq!(read(&twice), ((0..6).chain(0..6).collect(), vec![]));
    let cut = [&whole[..704], &whole].concat();
    assert_eq!(read(&cut).1, [Trouble::Cut { frame: 4, at: 704 }]);
}

#[test]
fn skimming_leaves_map_data_alone() {
    let frames = small();
    let (mut bytes, places) = (frames.concat(), places(&frames));
    bytes[places[3] as usize + 64 + 64 + 5] ^= 1;
    assert_eq!(Frames::skim(&bytes).filter(|item| matches!(item, Item::Frame(_))).count(), 6);
    assert_eq!(read(&bytes).0.len(), 5);
}

#[test]
fn no_bytes_make_it_panic_or_run_for_long() {
    for seed in 1..200 {
        // Noise, and sound frames with noise strewn over them.
        read(&noise(4_000, seed));
        let mut bytes = small().concat();
        for chunk in noise(24, seed).chunks(3) {
            let at = usize::from(u16::from_le_bytes([chunk[0], chunk[1]])) % bytes.len();
            bytes[at] = chunk[2];
        }
        read(&bytes);
    }
    // Heads that lie in each other's bodies, none of which is sound: read one by one this were 16 GB to checksum.
    let count = 32_768u64;
    let mut bytes = Vec::new();
    for i in 0..count {
        let len = (count - i - 1) * 64;
        bytes.extend(Head { kind: Kind::Note, len, sequence: i, body_crc: 1 }.encode());
    }
    let began = std::time::Instant::now();
    let (found, _) = read(&bytes);
    assert!(found.is_empty());
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}
