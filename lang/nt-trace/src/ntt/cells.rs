//! The typed view of one data frame of a table: cells of 8 bytes, as many a unit as the manifest lists.
//!
//! ```text
//! @bytes[op] = sum(bytes)    unit: SM    stride 16    cells ld.global.f32, st.global.f32
//! unit 7                     16 bytes at 112          4096           1024
//! ```
//!
//! All checks are made once, in [`Cells::new`].

use super::records::{Mismatch, Value};
use crate::ntm::{Table, Type, Unit};

/// A data frame of a table.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'b> {
    data: &'b [u8],
    units: u64,
    dropped: u64,
    stored: u64,
    stride: usize,
    count: usize,
    ty: Type,
}

impl<'b> Cells<'b> {
    /// `units` and `capacity` are the data frame's.
    ///
    /// # Errors
    /// `data` is too short for them, or the table's stride for its cells.
    pub fn new(table: &Table, units: u64, capacity: u64, data: &'b [u8]) -> Result<Self, Mismatch> {
        // Numbers of multiprocessors may have gaps, so that there are some beyond how many there are.
        let room = if table.unit == Unit::Sm { capacity } else { units.min(capacity) };
        let needed = room.checked_mul(u64::from(table.stride));
        let holds = needed.is_some_and(|needed| needed <= data.len() as u64)
            && table.cells.len() as u64 * 8 <= u64::from(table.stride);
        if !holds {
            return Err(Mismatch { bytes: data.len() as u64, units, capacity, stride: table.stride });
        }
        let (stride, count) = (table.stride as usize, table.cells.len());
        // Without cells there may be units beyond all numbers: nobody is to walk over them.
        let stored = if count == 0 { 0 } else { room };
        let dropped = units.saturating_sub(capacity);
        let mut cells = Cells { data, units, dropped, stored, stride, count, ty: table.ty };
        let none = |value: Value| value.to_integer() == Some(0);
        while cells.stored > units && cells.of(cells.stored - 1).all(none) {
            cells.stored -= 1;
        }
        Ok(cells)
    }

    /// Units of the launch, or multiprocessors of the device.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Units that had no room, so that what they added is lost: the first is [`Self::units`] less this.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Units to look at: the first so many. Of multiprocessors there may be more than [`Self::units`], since their numbers
    /// may have gaps; of a table without cells there are none.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// The cells of one unit, in the manifest's order; none if it has no cells.
    pub fn of(&self, unit: u64) -> impl Iterator<Item = Value> + use<'b> {
        // `new` has seen that the product is at most the data's length.
        let first = if unit < self.stored { unit as usize * self.stride } else { self.data.len() };
        let (cells, _) = self.data.get(first..).unwrap_or_default().as_chunks();
        let ty = self.ty;
        cells.iter().take(self.count).map(move |cell| Value::of(ty, ty, u64::from_le_bytes(*cell)))
    }
}
