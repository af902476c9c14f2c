//! Maps of records: what is saved, how many of it there is room for, and what a reader shows.
//!
//! ```text
//! map block_sched: array<warp> { end: u64, elapsed: u32, cu: u32 }         one record a warp
//!   show { start: u64 = end - elapsed, elapsed: u64 = elapsed, cu: u32 = cu }
//! map last: array<thread>[8] wrap { at: u64 }                              the newest eight of a thread
//! map dmat: stream<warp> { at: u32, site: u32 told, addr: lanes<ptr> }     as many events as there is room for
//! ```
//!
//! `layout.rs` says where the fields lie, and which record of an array with a capacity is whose. Language reference, Maps.

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
    /// Of an array with a capacity, the records that a unit has room for.
    pub fn room(&self) -> Option<UnitRoom> {
        match self.kind {
            MapKind::Slots { capacity, .. } => {
                let others = if self.unit == Unit::Warp { capacity / 4 + 1 } else { 0 };
                Some(UnitRoom { own: capacity, others })
            }
            MapKind::Array | MapKind::Stream => None,
        }
    }

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

/// The most records that `array<U>[CAP]` may have room for, of a thread or of a warp's lane 0.
pub const MOST_RECORDS: u32 = 1 << 16;

/// The records of a unit of an array with a capacity.
///
/// A warp that has not parted saves by its lane 0, which counts in a register. Where lane 0 is elsewhere another lane saves;
/// all of those share `others` more records and a count in memory, of which none is needed as long as a warp stays together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitRoom {
    /// Those of a thread, or of a warp's lane 0: the first of the unit's.
    pub own: u32,
    /// Those of the other lanes of a warp, behind them; none of a thread.
    pub others: u32,
}

impl UnitRoom {
    /// All of them.
    pub fn records(self) -> u32 {
        self.own.saturating_add(self.others)
    }

    /// Bytes of a unit's count in memory. Of a warp 8: one more than lane 0 saved, and what other lanes did. Of a thread 4:
    /// one more than it saved. The counts of those that have not left are 0.
    pub fn count_bytes(self) -> u32 {
        if self.others == 0 { 4 } else { 8 }
    }
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
