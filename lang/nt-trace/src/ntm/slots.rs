//! What a manifest says of an array with a capacity: how many records a unit has room for, and what a full one does.
//!
//! ```text
//! array<warp>[8] drop     { "capacity": 8, "others": 3, "policy": "drop" }    11 records a warp
//! array<thread>[8] wrap   { "capacity": 8, "others": 0, "policy": "wrap" }    record s of thread t is number s·units + t
//! ```
//!
//! A warp's records are `capacity` of those that lane 0 stored and `others` of those that its other lanes did, where a
//! branch had left lane 0 behind: the former in order, the latter in the order in which they came to a counter.

use serde::{Deserialize, Serialize};

use super::Map;

/// Room for several records a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Records of a thread, or of a warp's lane 0.
    pub capacity: u32,
    /// Records that a warp's other lanes share; of threads, 0.
    pub others: u32,
    /// What is done with a record that finds no room.
    pub policy: Policy,
}

/// What a full array does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Keeps the first records.
    Drop,
    /// Keeps the newest.
    Wrap,
}

impl Slots {
    /// The largest capacity.
    pub const MOST: u32 = 1 << 16;

    /// Those of a map of the IR; `None` if it has no capacity.
    pub fn of(map: &nt_ir::program::Map) -> Option<Slots> {
        use nt_ir::program::{MapKind, Policy as Full, Unit};
        let MapKind::Slots { capacity, policy } = map.kind else { return None };
        let others = if map.unit == Unit::Warp { capacity / 4 + 1 } else { 0 };
        let policy = match policy {
            Full::Drop => Policy::Drop,
            Full::Wrap => Policy::Wrap,
        };
        Some(Slots { capacity, others, policy })
    }

    /// Records a unit.
    pub fn per_unit(&self) -> u32 {
        self.capacity.saturating_add(self.others)
    }

    /// Bytes of a unit's count, of a map of this kind.
    pub fn count_bytes(&self) -> u8 {
        if self.others == 0 { 4 } else { 8 }
    }
}

impl Policy {
    /// Its word in the language and in the files.
    pub fn word(self) -> &'static str {
        match self {
            Policy::Drop => "drop",
            Policy::Wrap => "wrap",
        }
    }
}

impl Map {
    /// Its shape on the wire, of a map with a capacity.
    pub(crate) fn slots_shape(&self) -> Option<nt_wire::message::SlotsShape> {
        let slots = self.slots?;
        Some(nt_wire::message::SlotsShape {
            per_unit: slots.per_unit(),
            others: slots.others,
            count_bytes: slots.count_bytes(),
        })
    }
}
