//! The typed view of one data frame of a map: a row a unit, a column a column of the map.
//!
//! ```text
//! fields   end: u64 @0   elapsed: u32 @8   cu: u32 @12, bit 31 tells presence      stride 16
//! columns  start = end - elapsed           elapsed           cu
//! row 7    1042                            31                5
//! ```
//!
//! All checks are made once, in [`Records::new`]; behind it a row costs a few loads.

use crate::ntm::{Map, Presence, Source, Type};
use std::fmt;

/// A data frame that does not fit the map it claims to be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{bytes} bytes of data cannot hold {units} units of a map with {stride} bytes a unit, room for {capacity}"
)]
pub struct Mismatch {
    /// Bytes there are.
    pub bytes: u64,
    /// Units that are said to be in them.
    pub units: u64,
    /// Units that they are said to have room for.
    pub capacity: u64,
    /// Bytes a unit.
    pub stride: u32,
}

/// A data frame as rows and columns.
#[derive(Debug, Clone)]
pub struct Records<'b> {
    data: &'b [u8],
    units: u64,
    stored: u64,
    presence: Load,
    columns: Vec<(Type, Recipe)>,
}

/// Where the elements of a field lie: element `n` at `first + n·step`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) first: usize,
    pub(super) step: usize,
    /// How to read the element; [`Type::U8`] for a presence byte.
    pub(super) ty: Type,
    /// Bits that belong to the value (or, of [`Records::presence`], that tell presence).
    pub(super) mask: u64,
}

/// How a column is made.
#[derive(Debug, Clone, Copy)]
enum Recipe {
    One(Load),
    Difference(Load, Load),
}

/// A value of a column's type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// `u8` to `u64`.
    Unsigned(u64),
    /// `s8` to `s64`.
    Signed(i64),
    /// `f32`
    Single(f32),
    /// `f64`
    Double(f64),
    /// `bool`
    Bool(bool),
    /// `ptr`
    Address(u64),
}

impl<'b> Records<'b> {
    /// `units` and `capacity` are the data frame's.
    ///
    /// # Errors
    /// `data` is too short for them, or the map has more than a record a unit.
    pub fn new(map: &Map, units: u64, capacity: u64, data: &'b [u8]) -> Result<Self, Mismatch> {
        if map.slots.is_some() {
            return Err(Mismatch { bytes: data.len() as u64, units, capacity, stride: map.stride });
        }
        Records::within(map, units, capacity, data)
    }

    /// The same of any map: `units` records, however many a unit has.
    pub(super) fn within(map: &Map, units: u64, capacity: u64, data: &'b [u8]) -> Result<Self, Mismatch> {
        let mismatch = Mismatch { bytes: data.len() as u64, units, capacity, stride: map.stride };
        // Units beyond the capacity had no slot: the device's guard dropped their saves.
        let stored = units.min(capacity);
        let room = if map.columnar { capacity } else { stored };
        let needed = room.checked_mul(u64::from(map.stride));
        if map.stride == 0 || needed.is_none_or(|needed| (data.len() as u64) < needed) {
            return Err(mismatch);
        }
        // With the product inside the data's length, so is every offset below.
        let load = |offset: u32, size: u32, ty: Type| {
            let (first, step) = if map.columnar {
                (u64::from(offset).saturating_mul(capacity), size)
            } else {
                (u64::from(offset), map.stride)
            };
            Load {
                first: usize::try_from(first).unwrap_or(usize::MAX),
                step: step as usize,
                ty,
                mask: u64::MAX,
            }
        };
        let fields: Vec<Load> = map.fields.iter().map(|f| load(f.offset, f.size, f.ty)).collect();
        let field = |index: u32| fields.get(index as usize).copied().ok_or(mismatch);
        let flag = |index: u32| match map.presence {
            Presence::Bit { field, bit } if field == index => 1u64.checked_shl(bit).unwrap_or(0),
            _ => 0,
        };
        let presence = match map.presence {
            Presence::Bit { field: index, .. } => Load { mask: flag(index), ..field(index)? },
            Presence::Byte { offset } => load(offset, 1, Type::U8),
            // Events of streams alone have one, and are read otherwise.
            Presence::Mask => return Err(mismatch),
        };
        let value = |index: u32| Ok(Load { mask: !flag(index), ..field(index)? });
        let mut columns = Vec::with_capacity(map.columns.len());
        for column in &map.columns {
            let recipe = match column.source {
                Source::Field(index) => Recipe::One(value(index)?),
                Source::Difference(a, b) => Recipe::Difference(value(a)?, value(b)?),
            };
            columns.push((column.ty, recipe));
        }
        Ok(Records { data, units, stored, presence, columns })
    }

    /// Units that the launch has.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Units that had a slot: the first so many.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Units that had no slot: the first is [`Self::units`] less this.
    pub fn dropped(&self) -> u64 {
        self.units - self.stored
    }

    /// Rows, in order of units, those that were never written left out.
    pub fn rows<'t>(&'t self) -> Rows<'t, 'b> {
        Rows { records: self, next: 0, absent: 0 }
    }

    /// The row of one unit, if it was written.
    pub fn row<'t>(&'t self, unit: u64) -> Option<Row<'t, 'b>> {
        (unit < self.stored && self.presence.bits(self.data, unit) != 0)
            .then_some(Row { records: self, unit })
    }
}

/// Iterates over the rows that were written.
#[derive(Debug, Clone)]
pub struct Rows<'t, 'b> {
    records: &'t Records<'b>,
    next: u64,
    absent: u64,
}

impl Rows<'_, '_> {
    /// Units with a slot that were found unwritten so far.
    pub fn absent(&self) -> u64 {
        self.absent
    }
}

impl<'t, 'b> Iterator for Rows<'t, 'b> {
    type Item = Row<'t, 'b>;

    fn next(&mut self) -> Option<Row<'t, 'b>> {
        while self.next < self.records.stored {
            let unit = self.next;
            self.next += 1;
            match self.records.row(unit) {
                Some(row) => return Some(row),
                None => self.absent += 1,
            }
        }
        None
    }
}

/// What one unit saved.
#[derive(Debug, Clone, Copy)]
pub struct Row<'t, 'b> {
    records: &'t Records<'b>,
    unit: u64,
}

impl Row<'_, '_> {
    /// Whose record it is, counted over the launch.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// The values, a column of the map each.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.records.columns.iter().map(|&(ty, recipe)| recipe.value(ty, self.records.data, self.unit))
    }

    /// The value of one column; `None` if the map has fewer.
    pub fn value(&self, column: usize) -> Option<Value> {
        let &(ty, recipe) = self.records.columns.get(column)?;
        Some(recipe.value(ty, self.records.data, self.unit))
    }

    /// The column's bits if it is an unsigned integer.
    pub fn unsigned(&self, column: usize) -> Option<u64> {
        match self.value(column)? {
            Value::Unsigned(value) => Some(value),
            _ => None,
        }
    }
}

impl Recipe {
    fn value(self, ty: Type, data: &[u8], unit: u64) -> Value {
        match self {
            Recipe::One(load) => Value::of(ty, load.ty, load.value(data, unit)),
            Recipe::Difference(a, b) => {
                Value::of(ty, Type::U64, a.value(data, unit).wrapping_sub(b.value(data, unit)))
            }
        }
    }
}

impl Load {
    /// The masked bits of element `n`, zero-extended.
    pub(super) fn bits(self, data: &[u8], n: u64) -> u64 {
        // `Records::new` has seen that the data is long enough; the default is never taken.
        let at = self.first.saturating_add((n as usize).saturating_mul(self.step));
        let rest = data.get(at..).unwrap_or_default();
        let bits = match self.ty.size() {
            1 => rest.first_chunk().map_or(0, |b: &[u8; 1]| u64::from(b[0])),
            2 => rest.first_chunk().map_or(0, |b| u64::from(u16::from_le_bytes(*b))),
            4 => rest.first_chunk().map_or(0, |b| u64::from(u32::from_le_bytes(*b))),
            _ => rest.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)),
        };
        bits & self.mask
    }

    /// Element `n` as 64 bits, extended by its sign.
    pub(super) fn value(self, data: &[u8], n: u64) -> u64 {
        extend(self.ty, self.bits(data, n))
    }
}

/// The low bits of a value of type `ty`, extended to 64 by its sign.
pub(super) fn extend(ty: Type, bits: u64) -> u64 {
    match ty {
        Type::U8 | Type::Bool => bits & 0xff,
        Type::U16 => bits & 0xffff,
        Type::U32 | Type::F32 => bits & 0xffff_ffff,
        Type::S8 => i64::from(bits as i8) as u64,
        Type::S16 => i64::from(bits as i16) as u64,
        Type::S32 => i64::from(bits as i32) as u64,
        Type::U64 | Type::S64 | Type::F64 | Type::Ptr => bits,
    }
}

impl Value {
    /// A value of type `ty` from the 64-bit `bits` of a field of type `from`.
    pub(super) fn of(ty: Type, from: Type, bits: u64) -> Value {
        match ty {
            Type::U8 => Value::Unsigned(bits & 0xff),
            Type::U16 => Value::Unsigned(bits & 0xffff),
            Type::U32 => Value::Unsigned(bits & 0xffff_ffff),
            Type::U64 => Value::Unsigned(bits),
            Type::S8 => Value::Signed(i64::from(bits as i8)),
            Type::S16 => Value::Signed(i64::from(bits as i16)),
            Type::S32 => Value::Signed(i64::from(bits as i32)),
            Type::S64 => Value::Signed(bits as i64),
            Type::F32 => Value::Single(f32::from_bits(bits as u32)),
            Type::F64 if from == Type::F32 => Value::Double(f64::from(f32::from_bits(bits as u32))),
            Type::F64 => Value::Double(f64::from_bits(bits)),
            Type::Bool => Value::Bool(bits != 0),
            Type::Ptr => Value::Address(bits),
        }
    }

    /// An integer as such, exactly; `None` for floats.
    pub fn to_integer(self) -> Option<i128> {
        match self {
            Value::Unsigned(value) | Value::Address(value) => Some(i128::from(value)),
            Value::Signed(value) => Some(i128::from(value)),
            Value::Bool(value) => Some(i128::from(value)),
            Value::Single(_) | Value::Double(_) => None,
        }
    }

    /// The value as a number to compute with: the nearest double.
    pub fn to_f64(self) -> f64 {
        match self {
            Value::Unsigned(value) | Value::Address(value) => value as f64,
            Value::Signed(value) => value as f64,
            Value::Single(value) => f64::from(value),
            Value::Double(value) => value,
            Value::Bool(value) => f64::from(u8::from(value)),
        }
    }
}

/// As text: integers in decimal, addresses in hex, floats as the shortest text that reads back as the same.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(value) => write!(f, "{value}"),
            Value::Signed(value) => write!(f, "{value}"),
            Value::Single(value) => write!(f, "{value:?}"),
            Value::Double(value) => write!(f, "{value:?}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Address(value) => write!(f, "{value:#x}"),
        }
    }
}
