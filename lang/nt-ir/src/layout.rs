//! Where the fields of a record lie in memory, and how a reader knows that a record was written.
//!
//! * `array<thread>` is a structure of arrays: all lanes store, side by side, so that their stores coalesce. Column
//!   `i` begins at `base + offset(i) × capacity`, its element `n` at `n × size(i)` behind that; `capacity` (units) is
//!   a multiple of [`CAPACITY_STEP`], so every column is aligned.
//! * `array<warp>` and `array<block>` are packed records, each stored by one lane: fields by falling size, the record
//!   padded to a multiple of 16 bytes, so that a store of 16 bytes in one sector is the common case.
//!
//! A record that was never written must read as absent, and zeros do not tell. One bit does: the spare top bit of a
//! field whose values cannot reach it (`cu`), or else a byte more. Segments are handed out cleared.

use crate::program::{Map, Type, Unit};

/// Capacities in units are multiples of this, so that columns of an `array<thread>` stay 16-byte aligned.
pub const CAPACITY_STEP: u64 = 16;

/// The layout of one map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Structure of arrays (thread) or packed records?
    pub columnar: bool,
    /// Bytes a unit takes in a segment: packed, the record's stride; columnar, the sum of the columns.
    pub stride: u32,
    /// One a field of the map, in the map's field order.
    pub slots: Vec<Slot>,
    /// How presence is told.
    pub presence: Presence,
}

/// Where a field lies: packed, in the record; columnar, to be multiplied by the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Offset in bytes.
    pub offset: u32,
    /// Size in bytes: 1, 2, 4 or 8.
    pub size: u32,
}

/// How a reader knows that a record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// This bit of this field is set by every save; the field's own value has it clear.
    Bit {
        /// Index of the field.
        field: u32,
        /// Which bit, from 0.
        bit: u32,
    },
    /// A byte of its own, like a field: 1 once written.
    Byte(Slot),
}

/// The size of a type in memory, in bytes.
pub fn size(ty: Type) -> u32 {
    match ty {
        Type::U8 | Type::S8 | Type::Bool => 1,
        Type::U16 | Type::S16 => 2,
        Type::U32 | Type::S32 | Type::F32 => 4,
        Type::U64 | Type::S64 | Type::F64 | Type::Ptr => 8,
    }
}

/// Lays out `map`. `bounded` names the field, if any, whose top bit no value that is ever saved can reach (every save
/// of it is a builtin such as `cu`, or a cast from a narrower type); the pass that narrows knows it.
pub fn lay_out(map: &Map, bounded: Option<u32>) -> Layout {
    let columnar = map.unit == Unit::Thread;
    let mut order: Vec<u32> = (0..map.fields.len() as u32).collect();
    order.sort_by_key(|&field| std::cmp::Reverse(size(map.fields[field as usize].ty)));
    let mut slots = vec![Slot { offset: 0, size: 0 }; map.fields.len()];
    let mut end = 0;
    for field in order {
        let size = size(map.fields[field as usize].ty);
        slots[field as usize] = Slot { offset: end, size };
        end += size;
    }
    let presence = match bounded {
        Some(field) => Presence::Bit { field, bit: size(map.fields[field as usize].ty) * 8 - 1 },
        None => {
            let byte = Slot { offset: end, size: 1 };
            end += 1;
            Presence::Byte(byte)
        }
    };
    let stride = if columnar { end } else { end.next_multiple_of(16) };
    Layout { columnar, stride, slots, presence }
}
