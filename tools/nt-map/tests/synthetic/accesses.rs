//! Streams of accesses to memory, as `dmat` leaves them: one map, five forms at four sites.

#![allow(dead_code, unreachable_pub, reason = "a module of several tests, each of which takes a part of it")]

#[path = "../../../../lang/nt-trace/tests/device/mod.rs"]
mod device;

#[allow(unused_imports, reason = "as above")]
pub use device::{Device, Saved, Values};
use nt_trace::ntm::{
    Assumption, Code, Column, Field, Form, Lanes, Linear, Map, Presence, Site, Source, Stream, Told, Type,
    Unit,
};

/// Code of a load of 4 bytes a lane, side by side.
pub const LOAD: u16 = 0;
/// A load of 16 bytes a lane, the stride stored.
pub const STRIDED: u16 = 1;
/// The same instruction, all addresses stored.
pub const GATHER: u16 = 2;
/// A store of 4 bytes a lane, side by side.
pub const STORE: u16 = 3;
/// An atomic at one address.
pub const ATOMIC: u16 = 4;

/// `{ at: u32, site: u32, addr: lanes<ptr>, bytes: lanes<u32> }`
pub fn dmat(chunk: u32) -> Map {
    let field = |name: &str, ty: Type, offset| Field { name: name.to_owned(), ty, offset, size: ty.size() };
    let column = |name: &str, ty, field| Column { name: name.to_owned(), ty, source: Source::Field(field) };
    // The store's addresses are proved if 32 bits do not overflow, the atomic's if lanes also meet where ways join.
    let assumes = |site| match site {
        11 => vec![Assumption::Wraps],
        12 => vec![Assumption::Wraps, Assumption::Joins],
        _ => vec![],
    };
    let code = |site: u32, addr, bytes| Code {
        site,
        told: vec![Told { field: 1, value: u64::from(site) }],
        lanes: vec![Lanes { field: 2, form: addr }, Lanes { field: 3, form: Form::Known(bytes) }],
        assumes: assumes(site),
    };
    let by = |stride: i64| {
        Form::Bits([0, 1, 2, 3, 4].map(|bit| Linear { constant: stride << bit, terms: Vec::new() }))
    };
    Map {
        name: "dmat".to_owned(),
        unit: Unit::Warp,
        columnar: false,
        stride: 16,
        fields: vec![
            field("at", Type::U32, 12),
            field("site", Type::U32, 0),
            field("addr", Type::Ptr, 0),
            field("bytes", Type::U32, 0),
        ],
        presence: Presence::Mask,
        columns: vec![
            column("at", Type::U32, 0),
            column("site", Type::U32, 1),
            column("addr", Type::Ptr, 2),
            column("bytes", Type::U32, 3),
        ],
        slots: None,
        stream: Some(Stream {
            chunk,
            header: 1,
            bytes: 1 << 20,
            lanes: vec![2, 3],
            told: vec![1],
            codes: vec![
                code(7, by(4), 4),
                code(9, Form::Stride, 16),
                code(9, Form::List32, 16),
                code(11, by(4), 4),
                code(12, by(0), 4),
            ],
        }),
    }
}

/// The sites that the codes name.
pub fn sites() -> Vec<Site> {
    let site = |id, class: &str, opcode: &str, line: u32, source: Option<u32>| Site {
        id,
        kind: format!("inst:{class}"),
        opcode: opcode.to_owned(),
        line,
        column: 2,
        file: source.map(|_| "a.cu".to_owned()),
        source_line: source,
    };
    vec![
        site(7, "load", "ld.global.f32", 40, Some(12)),
        site(9, "load", "ld.global.v4.f32", 44, Some(13)),
        site(11, "store", "st.global.f32", 48, None),
        site(12, "atomic", "atom.global.add.u32", 50, None),
    ]
}

/// An event of one of the codes; `values` are the section of addresses.
pub fn access(warp: u64, mask: u32, code: u16, at: u32, base: u64, values: Values) -> Saved {
    let none = [0; 32];
    let sections = vec![values, Values::Nothing];
    Saved { warp, mask, code, base, at, sections, addr: none, bytes: [0; 32], wide: none }
}
