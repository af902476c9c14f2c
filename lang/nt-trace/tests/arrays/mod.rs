//! Arrays with a capacity as a device would leave them, word by word.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a module of several tests, each of which takes a part of it"
)]
#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use nt_trace::ntm::{Column, Field, Map, Policy, Presence, Slots, Source, Type, Unit};

/// `array<warp>[4]` or `array<thread>[4]` of `{ at: u32 }`, with a byte for presence.
pub fn last(unit: Unit, policy: Policy) -> Map {
    let columnar = unit == Unit::Thread;
    let others = if columnar { 0 } else { 2 };
    Map {
        name: "last".to_owned(),
        unit,
        columnar,
        stride: if columnar { 5 } else { 16 },
        fields: vec![Field { name: "at".to_owned(), ty: Type::U32, offset: 0, size: 4 }],
        presence: Presence::Byte { offset: 4 },
        columns: vec![Column { name: "at".to_owned(), ty: Type::U32, source: Source::Field(0) }],
        stream: None,
        slots: Some(Slots { capacity: 4, others, policy }),
    }
}

/// What one unit leaves: its count and its records, by slot; `None` was never written.
pub struct Left {
    pub own: u32,
    pub other: u32,
    pub records: Vec<Option<u32>>,
}

/// Of warps: a count of 8 bytes each, padded to 64; then six records of 16 bytes each, and up to a multiple of 16 records.
pub fn warps(all: &[Left]) -> (u64, Vec<u8>) {
    let mut data = Vec::new();
    for left in all {
        data.extend([left.own.to_le_bytes(), left.other.to_le_bytes()].concat());
    }
    data.resize(data.len().next_multiple_of(64), 0);
    let records = all.iter().flat_map(|left| (0..6).map(|slot| left.records.get(slot).copied().flatten()));
    for record in records {
        let mut bytes = [0; 16];
        if let Some(at) = record {
            bytes[..4].copy_from_slice(&at.to_le_bytes());
            bytes[4] = 1;
        }
        data.extend(bytes);
    }
    let capacity = (all.len() * 6).next_multiple_of(16);
    data.resize((all.len() * 8).next_multiple_of(64) + capacity * 16, 0);
    (capacity as u64, data)
}

/// Of threads: a count of 4 bytes each, padded to 64; then a column of u32 and one of bytes, slot by slot.
pub fn threads(all: &[Left]) -> (u64, Vec<u8>) {
    let mut data: Vec<u8> = all.iter().flat_map(|left| left.own.to_le_bytes()).collect();
    data.resize(data.len().next_multiple_of(64), 0);
    let capacity = (all.len() * 4).next_multiple_of(16);
    let of = |n: usize| {
        let left = all.get(n % all.len()).unwrap();
        left.records.get(n / all.len()).copied().flatten()
    };
    data.extend((0..capacity).flat_map(|n| of(n).unwrap_or(0).to_le_bytes()));
    data.extend((0..capacity).map(|n| u8::from(of(n).is_some())));
    (capacity as u64, data)
}

pub fn some(values: &[u32]) -> Vec<Option<u32>> {
    values.iter().map(|&value| Some(value)).collect()
}
