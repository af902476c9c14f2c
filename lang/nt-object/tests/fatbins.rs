//! The committed fatbins of `testdata/fatbin/`, whose origin its script states: the same images in all of them.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use nt_object::{Compression, Container, Form, Kind, LIMIT};
use std::path::Path;

fn read(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fatbin").join(name)).unwrap()
}

/// Kind, architecture and contents of each image, by kind and architecture.
fn images(bytes: &[u8]) -> Vec<(Kind, String, Vec<u8>)> {
    let container = nt_object::open(bytes).unwrap();
    assert_eq!(container.faults, [], "a sound file");
    let mut images: Vec<_> = container
        .entries
        .iter()
        .map(|entry| {
            let payload = entry.payload(LIMIT).unwrap();
            let contents = entry.contents(&payload).unwrap();
            assert_eq!(entry.disagreement(contents), None);
            (entry.kind, entry.arch.unwrap().to_string(), contents.to_vec())
        })
        .collect();
    images.sort();
    images
}

#[test]
fn how_an_image_is_stored_does_not_matter() {
    let raw = images(&read("tiny.raw.fatbin"));
    let summary: Vec<_> = raw.iter().map(|(kind, arch, _)| format!("{kind} {arch}")).collect();
    assert_eq!(summary, ["ptx sm_80", "ptx sm_90a", "elf sm_80"]);
    assert_eq!(raw, images(&read("tiny.lz4.fatbin")));
    assert_eq!(raw, images(&read("tiny.zstd.fatbin")));
    // Made by another fatbinary from the same nvcc's images, PTX without comments in both.
    let group = images(&read("tiny.group.fatbin"));
    assert_eq!(raw, group);
}

#[test]
fn headers_say_how_images_are_stored() {
    let check = |name: &str, expected: &[Compression]| {
        let bytes = read(name);
        let found: Vec<_> =
            nt_object::open(&bytes).unwrap().entries.iter().map(|entry| entry.compression).collect();
        assert_eq!(found, expected, "{name}");
    };
    check("tiny.raw.fatbin", &[Compression::Raw; 3]);
    check("tiny.lz4.fatbin", &[Compression::Lz4; 3]);
    check("tiny.zstd.fatbin", &[Compression::Zstd; 3]);
    check("tiny.group.fatbin", &[Compression::Zstd; 3]);
}

#[test]
fn kernels_of_both_kinds() {
    let bytes = read("tiny.zstd.fatbin");
    let container = nt_object::open(&bytes).unwrap();
    for entry in &container.entries {
        let payload = entry.payload(LIMIT).unwrap();
        let mut kernels = entry.kernels(entry.contents(&payload).unwrap()).unwrap();
        kernels.sort();
        assert_eq!(kernels, ["_Z6tinierv", "tiny"], "{}", entry.kind);
    }
}

#[test]
fn text_is_for_reading_on() {
    let mut bytes = read("tiny.raw.fatbin");
    let container = nt_object::open(&bytes).unwrap();
    let entry = |kind| container.entries.iter().find(|entry| entry.kind == kind).unwrap();
    let ptx = entry(Kind::Ptx);
    let text = ptx.text(LIMIT).unwrap();
    assert!(text.contains(".version 9.0") && !text.contains('\0'));
    let error = entry(Kind::Elf).text(LIMIT).unwrap_err().to_string();
    assert!(error.ends_with("the entry is no PTX but elf"), "{error}");
    let middle = usize::try_from(ptx.at()).unwrap() + 40;
    bytes[middle] = 0xff;
    let container = nt_object::open(&bytes).unwrap();
    let ptx = container.entries.iter().find(|entry| entry.kind == Kind::Ptx).unwrap();
    assert!(ptx.text(LIMIT).unwrap_err().to_string().ends_with("byte 40 is not UTF-8"));
}

#[test]
fn a_group_tells_its_source() {
    let bytes = read("tiny.group.fatbin");
    let container = nt_object::open(&bytes).unwrap();
    assert_eq!(container.entries.iter().filter(|entry| entry.source == Some("tiny.cu")).count(), 3);
}

#[test]
fn containers_stand_back_to_back_with_zeros_between() {
    let mut bytes = read("tiny.raw.fatbin");
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    bytes.extend(read("tiny.zstd.fatbin"));
    bytes.extend(read("tiny.group.fatbin"));
    bytes.extend([0; 100]);
    let container = nt_object::open(&bytes).unwrap();
    assert_eq!((container.form, container.containers, container.entries.len()), (Form::Fatbin, 3, 9));
    assert_eq!(container.faults, []);
    let containers: Vec<u32> = container.entries.iter().map(|entry| entry.container).collect();
    assert_eq!(containers, [1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert_eq!(
        container.entries.iter().map(|entry| entry.index).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6, 7, 8, 9]
    );
}

/// The offsets of entries' headers in a container without groups.
fn headers(bytes: &[u8]) -> Vec<usize> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut headers = Vec::new();
    let mut at = 16;
    while at < bytes.len() {
        headers.push(at);
        at += word(at + 4) + word(at + 8);
    }
    headers
}

#[test]
fn an_unknown_kind_is_an_entry_too() {
    let mut bytes = read("tiny.raw.fatbin");
    let second = headers(&bytes)[1];
    bytes[second..second + 2].copy_from_slice(&77_u16.to_le_bytes());
    let container = nt_object::open(&bytes).unwrap();
    let kinds: Vec<String> = container.entries.iter().map(|entry| entry.kind.to_string()).collect();
    assert_eq!(kinds[1], "kind 77");
    assert_eq!((kinds.len(), container.faults.len()), (3, 0));
}

#[test]
fn headers_and_images_that_disagree_are_told() {
    let mut bytes = read("tiny.raw.fatbin");
    // The last digit of all architectures: 80 becomes 81, 90 becomes 91.
    for header in headers(&bytes) {
        bytes[header + 28] += 1;
    }
    let container = nt_object::open(&bytes).unwrap();
    let told: Vec<_> = container
        .entries
        .iter()
        .map(|entry| {
            let payload = entry.payload(LIMIT).unwrap();
            entry.disagreement(entry.contents(&payload).unwrap()).unwrap()
        })
        .collect();
    assert!(told.contains(&"the header says sm_81, the PTX says sm_80".to_owned()), "{told:?}");
    assert!(told.contains(&"the header says sm_81, the cubin says sm_80".to_owned()), "{told:?}");
    assert!(told.contains(&"the header says sm_91a, the PTX says sm_90a".to_owned()), "{told:?}");
}

#[test]
fn text_after_a_nul_is_no_ptx() {
    let mut bytes = read("tiny.raw.fatbin");
    let container = nt_object::open(&bytes).unwrap();
    let ptx = container.entries.iter().find(|entry| entry.kind == Kind::Ptx).unwrap();
    let middle = usize::try_from(ptx.at()).unwrap() + 40;
    bytes[middle] = 0;
    let container = nt_object::open(&bytes).unwrap();
    let ptx = container.entries.iter().find(|entry| entry.kind == Kind::Ptx).unwrap();
    let payload = ptx.payload(LIMIT).unwrap();
    let error = ptx.contents(&payload).unwrap_err().to_string();
    assert!(error.contains("interior NUL at byte 40"), "{error}");
}

/// A made container of raw PTX for `archs`.
fn ptx_for(archs: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for arch in archs {
        let arch: nt_object::Arch = arch.parse().unwrap();
        let text = format!(".version 8.5\n.target {arch}\n.entry k() {{ ret; }}\n\0");
        let flags = 0x11
            | match arch.suffix {
                nt_object::Suffix::None => 0,
                nt_object::Suffix::Family => 0x20_0000,
                nt_object::Suffix::Specific => 0x10_0000,
            };
        let mut payload = text.into_bytes();
        payload.resize(payload.len().next_multiple_of(8), 0);
        let mut header = Vec::new();
        for half in [1_u16, 0x101, 64, 0] {
            header.extend(half.to_le_bytes());
        }
        header.extend((payload.len() as u64).to_le_bytes());
        header.extend([0; 8]);
        for half in [5_u16, 8] {
            header.extend(half.to_le_bytes());
        }
        header.extend(arch.sm.to_le_bytes());
        header.extend([0; 8]);
        header.extend(u64::to_le_bytes(flags));
        header.extend([0; 16]);
        assert_eq!(header.len(), 64);
        body.extend(header);
        body.extend(payload);
    }
    let mut bytes = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0].to_vec();
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

#[track_caller]
fn check_best(archs: &[&str], device: u32, expected: &str) {
    let bytes = ptx_for(archs);
    let Container { entries, faults, .. } = nt_object::open(&bytes).unwrap();
    assert_eq!(faults, []);
    let told = match nt_object::best_ptx(&entries, device) {
        Ok(best) => best.reason,
        Err(none) => none.to_string(),
    };
    assert_eq!(told, expected);
}

/// PTX manual, `.target`: plain PTX runs on all later architectures, `a` on its own, `f` in its family.
#[test]
fn the_best_ptx_for_a_device() {
    let all = ["sm_75", "sm_80", "sm_90a"];
    check_best(&all, 86, "sm_80 is the newest of sm_75, sm_80, sm_90a that sm_86 runs");
    check_best(&all, 90, "sm_90a is made for exactly this device");
    let reason =
        "sm_80 is the newest of sm_75, sm_80, sm_90a that sm_100 runs; sm_90a is not forward compatible";
    check_best(&all, 100, reason);
    let reason =
        "sm_80 is the newest of sm_75, sm_80, sm_90a that sm_120 runs; sm_90a is not forward compatible";
    check_best(&all, 120, reason);
    check_best(&all, 70, "no PTX for sm_70; PTX for sm_75, sm_80, sm_90a present");
    check_best(&["100f", "100"], 103, "sm_100f is the newest of sm_100, sm_100f that sm_103 runs");
    check_best(
        &["100f", "90"],
        120,
        "sm_90 is the newest of sm_90, sm_100f that sm_120 runs; sm_100f is not forward compatible",
    );
    check_best(&["100a", "100f", "100"], 100, "sm_100a is made for exactly this device");
    check_best(&["80"], 90, "sm_80 is the only PTX, and sm_90 runs it");
    check_best(&["90a"], 100, "no PTX for sm_100; PTX for sm_90a present");
    check_best(&[], 80, "no PTX for sm_80");
}

#[test]
fn of_equals_the_first_is_best() {
    let bytes = ptx_for(&["80", "80"]);
    let entries = nt_object::open(&bytes).unwrap().entries;
    assert_eq!(nt_object::best_ptx(&entries, 80).unwrap().entry.index, 1);
}
