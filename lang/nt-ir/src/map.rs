//! Maps of records: what is saved, how many of it there is room for, and what a reader shows.
//!
//! ```text
//! map block_sched: array<warp> { end: u64, elapsed: u32, cu: u32 }         one record a warp
//!   show { start: u64 = end - elapsed, elapsed: u64 = elapsed, cu: u32 = cu }
//! map last: array<thread>[8] wrap { at: u64 }                              the newest eight of a thread
//! map dmat: stream<warp> { at: u32, site: u32 told, addr: lanes<ptr> }     as many events as there is room for
//! ```
//!
//! `layout.rs` says where the fields lie. Language reference, Maps.

use crate::program::{Type, Unit};
use nt_diag::Span;

/// A map of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Its name in the program.
    pub name: String,
    /// Whose slot a record is; of a stream, always the warp.
    pub unit: Unit,
    /// How many records there is room for, and what a full map does.
    pub kind: MapKind,
    /// What is saved, in declaration order; the layout (`layout.rs`) orders them in memory.
    pub fields: Vec<Field>,
    /// Of a map with `lanes<T>` fields, the fields whose value is known of each save when a kernel is woven, ascending: the
    /// code of an event tells them, and they are not stored. A pass finds them.
    pub told: Vec<u32>,
    /// What a reader shows, in declaration order. Right after lowering there is one a field; passes may store less
    /// and let the reader derive the rest.
    pub columns: Vec<Column>,
    /// Where it was declared.
    pub span: Span,
}

impl Map {
    /// Has it a field that holds a value of each lane?
    pub fn has_lanes(&self) -> bool {
        self.fields.iter().any(|field| field.lanes)
    }

    /// The field that an event's base is of: the first `lanes<ptr>`.
    pub fn base_field(&self) -> Option<u32> {
        (0..)
            .zip(&self.fields)
            .find(|(_, field)| field.lanes && field.ty == Type::Ptr)
            .map(|(index, _)| index)
    }
}

/// How many records a map has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapKind {
    /// `array<U>`: one a unit, the last save stands.
    Array,
    /// `array<U>[CAP]`: so many a unit.
    Slots {
        /// CAP.
        capacity: u32,
        /// What a full one does.
        policy: Policy,
    },
    /// `stream<warp>`: chunks of one buffer a launch, claimed as they are needed; a full one drops.
    Stream,
}

/// What a full array with a capacity does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Keeps the first records.
    Drop,
    /// Keeps the newest.
    Wrap,
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name, unique in the map.
    pub name: String,
    /// Its type in memory.
    pub ty: Type,
    /// `lanes<T>`: a value of each active lane rather than one of the elected lane. In streams alone.
    pub lanes: bool,
}

/// One column that a reader shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, as the program declared it.
    pub name: String,
    /// Its declared type.
    pub ty: Type,
    /// How to get it from what is stored.
    pub source: Source,
}

/// Where a column's value comes from; indices into [`Map::fields`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The field, widened to the column's type.
    Field(u32),
    /// `fields[0] - fields[1]`, both widened first: a start that was not stored, from an end and a length.
    Difference(u32, u32),
}
