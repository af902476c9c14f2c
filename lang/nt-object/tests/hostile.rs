//! Whatever the bytes: no panic, no memory beyond the limit, and every fault has a place.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use nt_object::{Container, Fault, Kind, LIMIT};
use proptest::prelude::*;
use std::path::Path;

const NAMES: [&str; 4] = ["tiny.raw.fatbin", "tiny.lz4.fatbin", "tiny.zstd.fatbin", "tiny.group.fatbin"];

fn read(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fatbin").join(name)).unwrap()
}

/// Does to a container all that a tool does, and says how many images came out.
fn drain(bytes: &[u8]) -> usize {
    let drain = |container: &Container<'_>| {
        let mut sound = 0;
        for entry in &container.entries {
            let Ok(payload) = entry.payload(1 << 20) else { continue };
            assert!(payload.len() <= 1 << 20 || payload.len() <= bytes.len(), "the limit holds");
            let Ok(contents) = entry.contents(&payload) else { continue };
            let _ = entry.disagreement(contents);
            sound += usize::from(entry.kernels(contents).is_ok());
        }
        let _ = nt_object::best_ptx(&container.entries, 90);
        for fault in &container.faults {
            assert!(!fault.field.is_empty() && !fault.to_string().is_empty());
            assert!(fault.at <= bytes.len() as u64 + 8, "{fault} lies in a file of {}", bytes.len());
        }
        sound
    };
    let searched = drain(&nt_object::search(bytes));
    let opened = nt_object::open(bytes).map_or(0, |container| drain(&container));
    assert!(opened <= searched);
    opened
}

#[test]
fn cut_at_every_byte() {
    for name in NAMES {
        let whole = read(name);
        for len in 0..whole.len() {
            let cut = &whole[..len];
            let sound = drain(cut);
            assert!(sound < 3, "{name}: of {len} bytes all images came out");
            // Between containers there is no saying that one more was meant; inside of one there is.
            if len >= 16 {
                let container = nt_object::open(cut).unwrap();
                assert!(!container.faults.is_empty(), "{name}: nothing is wrong with {len} bytes?");
            }
        }
        assert_eq!(drain(&whole), 3);
    }
}

#[test]
fn what_is_before_the_cut_comes_out() {
    let whole = read("tiny.raw.fatbin");
    let container = nt_object::open(&whole).unwrap();
    let last = container.entries.last().unwrap();
    let cut = nt_object::open(&whole[..usize::try_from(last.at()).unwrap() + 10]).unwrap();
    assert_eq!(cut.entries.len(), 2);
    assert_eq!(cut.faults.len(), 1, "{:?}", cut.faults);
    assert_eq!(cut.faults[0].field, "payload size");
    assert!(matches!(cut.faults[0].fault, Fault::Cut { there: 10, .. }), "{}", cut.faults[0]);
}

/// Sets `width` bytes at `at` to `value`, and gives the first fault or the payload's error.
fn with(name: &str, at: usize, width: usize, value: u64) -> String {
    let mut bytes = read(name);
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    drain(&bytes);
    let container = nt_object::open(&bytes).unwrap();
    if let Some(fault) = container.faults.first() {
        return fault.to_string();
    }
    match container.entries[0].payload(LIMIT) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The container's header is 16 bytes, its first entry follows: see `fatbin.rs`.
#[test]
fn sizes_that_lie() {
    let zstd = "tiny.zstd.fatbin";
    let huge = 1 << 63;
    let check = |at, width, value, expected: &str| {
        let told = with(zstd, at, width, value);
        assert!(told.starts_with(expected), "{at}: {told}");
    };
    check(6, 2, 3, "fatbin header size at 0x6: 0x3, expected 16 or more");
    check(4, 2, 9, "fatbin version at 0x4: 0x9, expected 1");
    check(8, 8, huge, "fatbin size at 0x8: 9223372036854775808 bytes needed, 1512 are there");
    check(8, 8, u64::MAX, "fatbin size at 0x8: 18446744073709551615 bytes needed, 1512 are there");
    check(18, 2, 7, "entry version at 0x12: 0x7, expected 0x101");
    check(20, 4, 3, "entry header size at 0x14: 0x3, expected 64 or more");
    check(20, 4, 0xffff_ffff, "entry header size at 0x14: 4294967295 bytes needed, 1512 are there");
    check(24, 8, huge, "payload size at 0x18: 9223372036854775808 bytes needed, 1432 are there");
    check(24, 8, u64::MAX, "payload size at 0x18: 18446744073709551615 bytes needed, 1432 are there");
    check(32, 4, 0xffff_ffff, "compressed size at 0x20: 4294967295 bytes needed, 200 are there");
    check(36, 4, 0xffff_ffff, "descriptor offset at 0x24: 4 bytes needed, 0 are there");
    check(48, 4, 0xffff_0000, "source name at 0x30: 0 bytes needed, 0 are there");
    check(52, 4, 0xffff_0000, "nothing");
    check(72, 8, huge, "uncompressed size at 0x60: 9223372036854775808 bytes are declared, but");
    check(
        72,
        8,
        100_000,
        "payload at 0x60: zstd stream is damaged: a frame of 305 bytes instead of the declared 100000",
    );
    check(56, 8, 0x1011, "payload at 0x60: compressed in an old way (flag 0x1000)");
    check(56, 8, 0x1_8011, "payload at 0x60: compressed LTO-IR (flag 0x10000)");
    let told = with("tiny.lz4.fatbin", 72, 8, 300);
    assert!(told.starts_with("payload at 0x60: LZ4 stream is damaged"), "{told}");
}

#[test]
fn a_group_that_lies() {
    let bytes = read("tiny.group.fatbin");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut header = 16;
    while word(header) & 0xffff != 0x100 {
        header += word(header + 4) + word(header + 8);
    }
    // Instead of options its descriptor, at 64, holds u32 count, u32 size of the table, then a header an image.
    let check = |at: usize, value: u64, expected: &str| {
        let told = with("tiny.group.fatbin", header + at, 4, value);
        assert!(told.starts_with(expected), "{at}: {told}");
    };
    check(64, 0xffff_ffff, "entry header at");
    check(68, 3, &format!("group's table size at {:#x}: 0x3, expected 8 or more", header + 68));
    check(68, 0xffff_ffff, "group's table size at");
    check(72 + 4, 0xffff_fff0, &format!("image size at {:#x}", header + 80));
    check(20, 0xffff_ffff, &format!("descriptor offset at {:#x}", header + 20));
}

/// Ten KiB of zstd that give 128 MiB of zeros, as an entry that says so truly.
#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    // RLE blocks: the header has bit 0 "last", bits 1-2 the type 1, and the size in the others (RFC 8878, 3.1.1.2).
    let blocks = 1024_u64;
    let size = blocks * (128 << 10);
    // A frame header with an eight byte content size and a window of 128 KiB: magic, descriptor, window.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0x38];
    frame.extend(size.to_le_bytes());
    for block in 0..blocks {
        let header = u32::from(block + 1 == blocks) | 1 << 1 | (128 << 10) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    let mut bytes = read("tiny.zstd.fatbin");
    let header = 80;
    bytes.truncate(16 + header);
    let compressed = frame.len();
    frame.resize(compressed.next_multiple_of(8), 0);
    bytes[8..16].copy_from_slice(&((header + frame.len()) as u64).to_le_bytes());
    bytes[24..32].copy_from_slice(&(frame.len() as u64).to_le_bytes());
    bytes[32..36].copy_from_slice(&u32::try_from(compressed).unwrap().to_le_bytes());
    bytes[72..80].copy_from_slice(&size.to_le_bytes());
    bytes.extend(&frame);

    let container = nt_object::open(&bytes).unwrap();
    assert_eq!(container.faults, []);
    let entry = &container.entries[0];
    // Whoever allows as much gets it.
    assert_eq!(entry.payload(LIMIT).unwrap().len() as u64, size);
    let error = entry.payload(1 << 20).unwrap_err();
    assert_eq!(error.fault, Fault::Limit { needed: size, limit: 1 << 20 });

    // A stream that gives more than both headers say is stopped at what they say.
    bytes[72..80].copy_from_slice(&1000_u64.to_le_bytes());
    bytes[16 + header + 6..16 + header + 14].copy_from_slice(&1000_u64.to_le_bytes());
    let container = nt_object::open(&bytes).unwrap();
    assert!(matches!(container.entries[0].payload(LIMIT).unwrap_err().fault, Fault::Stream { .. }));
}

/// Files made of nothing but beginnings: work stays linear in their length, and what is found is bounded by it.
#[test]
fn beginnings_of_everything() {
    let mut head = vec![0; 64];
    head[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    head[18] = 190;
    let mut lying = head.clone();
    lying[0x28] = 64; // e_shoff
    lying[0x3a] = 64; // e_shentsize
    lying[0x3c..0x3e].fill(0xff); // e_shnum
    let files: [&[u8]; 6] = [
        &head,
        &lying,
        b".version /*",
        b".version 8.0 .target sm_80 ",
        b"\x50\xed\x55\xba\x01\0\x10\0",
        b"!<arch>\n\x7fELF",
    ];
    for (which, piece) in files.iter().enumerate() {
        for front in [&b""[..], b"x", b"\x7fELF\x02\x01\x01", b".version 8.0\n.target sm_80\n"] {
            let bytes = [front, &piece.repeat(500)].concat();
            let container = nt_object::search(&bytes);
            let most = bytes.len() / piece.len() + 1;
            assert!(container.entries.len() <= most, "{which}: {} entries", container.entries.len());
            assert!(container.faults.len() <= most, "{which}: {} faults", container.faults.len());
            drain(&bytes);
        }
    }
}

/// Sound containers behind a damaged one are found again.
#[test]
fn reading_goes_on_behind_damage() {
    let damaged = |at: usize, width: usize, value: u64| {
        let mut bytes = read("tiny.zstd.fatbin");
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        bytes.extend(read("tiny.lz4.fatbin"));
        drain(&bytes);
        let container = nt_object::open(&bytes).unwrap();
        assert!(!container.faults.is_empty());
        let kinds = container.entries.iter().filter(|entry| entry.kind == Kind::Ptx).count();
        (container.entries.len(), kinds)
    };
    // The size of the first container: too large by far, and so that it reaches into the second.
    assert_eq!(damaged(8, 8, 1 << 63), (6, 4));
    assert_eq!(damaged(8, 8, 1528), (6, 4));
    // Its version: nothing of it is read.
    assert_eq!(damaged(4, 2, 2), (3, 2));
    // Its first entry.
    assert_eq!(damaged(18, 2, 2), (3, 2));
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x80)]);
    let changes = prop::collection::vec(change, 1..12);
    let tail = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    (prop::sample::select(&NAMES[..]), changes, tail, any::<bool>()).prop_map(
        |(name, changes, (from, to), twice)| {
            let mut bytes = read(name);
            for (at, value) in changes {
                // Headers are few and decide most, so half of the changes hit the first one.
                let len = if value & 1 == 0 { bytes.len().min(160) } else { bytes.len() };
                bytes[at.index(len)] = value;
            }
            if twice {
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                bytes.extend_from_within(from.min(to)..from.max(to));
            }
            bytes
        },
    )
}

fn cubin(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cubin").join(name)).unwrap()
}

#[test]
fn a_cubin_cut_at_every_byte() {
    let whole = cubin("vector_add.sm_90a.cubin");
    for len in (0..whole.len()).step_by(7) {
        drain(&whole[..len]);
    }
    assert_eq!(drain(&whole), 2);
}

/// A cubin of `count` sections that all have the name at the same place and the same bytes: names and texts that are
/// counted many times over.
fn shared(count: u16, name: &[u8], text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x41\x08");
    bytes[16] = 2;
    bytes[18] = 190;
    bytes[20] = 1;
    let strings = bytes.len() as u64;
    bytes.extend(name);
    bytes.push(0);
    let texts = bytes.len() as u64;
    bytes.extend(text);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    // sh_name and sh_type: 1 has bytes, 3 is the table of strings, without a name; sh_flags, sh_addr, sh_offset, sh_size.
    let section = |kind: u64, at: u64, size: u64| [kind << 32, 0, 0, at, size, 0, 0, 0].map(u64::to_le_bytes);
    bytes.extend(section(0, 0, 0).as_flattened());
    bytes.extend(section(3, strings, name.len() as u64 + 1).as_flattened());
    let nameless = bytes.len() - 64;
    bytes[nameless..nameless + 4].copy_from_slice(&u32::try_from(name.len()).unwrap().to_le_bytes());
    for _ in 0..count {
        bytes.extend(section(1, texts, text.len() as u64).as_flattened());
    }
    bytes[0x28..0x30].copy_from_slice(&table.to_le_bytes());
    bytes[0x3a] = 64;
    bytes[0x3c..0x3e].copy_from_slice(&(count + 2).to_le_bytes());
    bytes[0x3e] = 1;
    bytes
}

/// Texts are taken up to the size of the file, whatever its tables repeat.
#[test]
fn sections_that_share_their_bytes() {
    let text = |len: usize| [&b".version 8.0\0.target sm_80\0"[..], &b"// x\0".repeat(len / 5)].concat();
    let count = |bytes: &[u8]| {
        drain(bytes);
        let container = nt_object::open(bytes).unwrap();
        let texts: Vec<_> = container.entries.iter().filter(|entry| entry.kind == Kind::Ptx).collect();
        assert!(texts.iter().map(|entry| entry.stored_size()).sum::<u64>() <= bytes.len() as u64);
        texts.len()
    };
    let name = b".nv_debug_ptx_txt";
    assert_eq!(count(&shared(3, name, &text(0))), 3);
    // 64 bytes of headers a text, so some more than one of 100,000 fit.
    assert_eq!(count(&shared(5000, name, &text(100_000))), 4);
    // Nothing of a text that is empty, nor of a name that goes on and on.
    assert_eq!(count(&shared(1000, name, b"")), 0);
    let long = [&name[..], b".", &b"9".repeat(1 << 20)].concat();
    let bytes = shared(5000, &long, &text(0));
    let container = nt_object::open(&bytes).unwrap();
    assert!(
        container.entries.iter().all(|entry| entry.section.as_deref().is_none_or(|name| name.len() <= 64))
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn mutations_are_survived(bytes in mutated()) {
        drain(&bytes);
    }

    #[test]
    fn mutated_cubins_are_survived(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let bytes = read("tiny.raw.fatbin");
        let container = nt_object::open(&bytes).unwrap();
        let entry = container.entries.iter().find(|entry| entry.kind == Kind::Elf).unwrap();
        let mut cubin = entry.payload(LIMIT).unwrap().into_owned();
        for (at, value) in changes {
            let len = cubin.len();
            let at = at.index(len);
            cubin[at] = value;
        }
        drain(&cubin);
        let _ = nt_object::cubin::read(&cubin, 0);
    }

    #[test]
    fn mutated_cubins_with_ptx_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        linked in any::<bool>(),
    ) {
        let mut bytes = cubin(if linked { "linked.sm_90.cubin" } else { "vector_add.sm_90a.cubin" });
        for (at, value) in changes {
            // Half of the changes hit the section headers, which stand at the end.
            let from = if value & 1 == 0 { bytes.len() - bytes.len() / 8 } else { 0 };
            let at = from + at.index(bytes.len() - from);
            bytes[at] = value;
        }
        drain(&bytes);
    }

    #[test]
    fn any_section_is_restored_or_refused(
        raw in r#"([.a-z/*"{};,() \x00]|\.section |\.debug_info|\.version 8\.0\x00|\.target sm_80|, debug|/\*|\*/|//){0,60}"#
    ) {
        for raw in [raw.clone(), format!(".version 8.0\0.target sm_80{raw}")] {
            let Ok(text) = nt_object::debug_ptx::restore(raw.as_bytes(), 0) else { continue };
            prop_assert!(text.len() <= raw.len() + 1 && !text.contains('\0'));
            // Lines keep their numbers.
            for (stored, line) in raw.split('\0').zip(text.lines()) {
                prop_assert!(line.len() <= stored.len());
            }
        }
    }

    #[test]
    fn any_bytes_behind_a_magic(bytes in prop::collection::vec(any::<u8>(), 0..300), which in 0_usize..6) {
        let starts: [&[u8]; 6] = [
            b"\x50\xed\x55\xba\x01\0\x10\0", b"\x7fELF\x02\x01\x01", b"!<arch>\n", b".version 8.0 .target", b"MZ", b"",
        ];
        let mut all = starts[which].to_vec();
        all.extend(bytes);
        drain(&all);
    }

    #[test]
    fn any_text_is_scanned(text in r#"([.a-z/*"{};() \n\x00]|\.entry |\.version 8\.0|\.target sm_80|/\*|\*/|//){0,60}"#) {
        let _ = nt_object::ptx::kernels(text.as_bytes());
        let _ = nt_object::ptx::head(text.as_bytes());
        drain(text.as_bytes());
    }
}
