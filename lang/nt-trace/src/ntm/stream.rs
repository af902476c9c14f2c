//! What a manifest says of a stream: how events lie in memory, and what of them the code tells.
//!
//! An event of a map with fields a lane begins with 48 bits of an address, a 16-bit code and the mask of the lanes
//! that took part; scalar fields follow, and what of the lanes' values nobody could foretell. The code is an index
//! into [`Stream::codes`]: it names the site, the fields that are the same whenever one comes there, and for each
//! field a lane how its values are had.
//!
//! ```text
//! { "chunk": 16, "header": 1, "bytes": 67108864, "lanes": [0], "told": [1], "codes": [
//!     { "site": 3, "told": [{"field": 1, "value": 41}], "lanes": [{"field": 0, "form": "list32"}], "assumes": [] } ] }
//! ```

use serde::{Deserialize, Serialize};

use super::{Map, Source, Type};

/// How the events of a [`Map`] lie: slots of 16 bytes in chunks, in the order that each warp saved them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Slots a chunk, the owner slot included: a power of two from 4 to 64.
    pub chunk: u32,
    /// Slots of an event before its sections; [`Map::stride`] is 16 times as much.
    pub header: u32,
    /// How many bytes a launch is to get.
    pub bytes: u64,
    /// The fields that have a value a lane, by index into [`Map::fields`], ascending. Their offsets mean nothing.
    pub lanes: Vec<u32>,
    /// The fields that the code tells, likewise. Their offsets mean nothing.
    pub told: Vec<u32>,
    /// What each code means. A stream without fields a lane stores no code and has none.
    pub codes: Vec<Code>,
}

/// What a code means: one form of one save at one site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// [`super::Site::id`].
    pub site: u32,
    /// The value of each of [`Stream::told`], in their order.
    pub told: Vec<Told>,
    /// How to get each of [`Stream::lanes`], in their order, which is that of the sections too.
    pub lanes: Vec<Lanes>,
    /// What is taken for granted where lanes' values are proved ([`Form::Bits`]); ascending.
    pub assumes: Vec<Assumption>,
}

/// What a proof of the lanes' addresses takes for granted, and nobody checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Assumption {
    /// The program's index arithmetic in 32 bits does not overflow within a warp.
    Wraps,
    /// Lanes that a branch parted meet again only where its ways join.
    Joins,
}

/// A field that is the same in all events of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Index into [`Map::fields`].
    pub field: u32,
    /// Its bits, extended by the sign of its type.
    pub value: u64,
}

/// How the values of a field a lane are had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lanes {
    /// Index into [`Map::fields`].
    pub field: u32,
    /// What is stored, if anything is.
    pub form: Form,
}

/// Where the lanes' values are. The leader is the lowest lane of the mask; `base` is its value of the first field of
/// addresses, cut to 48 bits in memory and extended by bit 47.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Every lane has this value, as [`Told::value`] is one.
    Known(u64),
    /// base + Σ (bit i of the lane − bit i of the leader) · stride i, of the first field of addresses.
    Bits([Linear; 5]),
    /// One slot, whose first word is a signed stride: base + (lane − leader) · stride, of the same field.
    Stride,
    /// A word a lane of the mask: of the first field of addresses the signed distance from base, else the value.
    List32,
    /// 8 bytes a lane of the mask: the value.
    List64,
}

/// A number that the launch's parameters tell: a constant, and parameters times factors, modulo 2⁶⁴.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Linear {
    /// What is there without parameters.
    pub constant: i64,
    /// What is added to it.
    pub terms: Vec<Term>,
}

/// A parameter, or a part of one, times a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Bytes into parameter space.
    pub param_offset: u32,
    /// Bytes: 4 or 8.
    pub size: u32,
    /// Are 4 bytes extended by their sign?
    pub signed: bool,
    /// What to multiply by.
    pub factor: i64,
}

impl Map {
    /// Has this column a value a lane?
    pub fn is_of_lanes(&self, column: usize) -> bool {
        match (self.columns.get(column).map(|column| column.source), &self.stream) {
            (Some(Source::Field(field)), Some(stream)) => stream.lanes.contains(&field),
            _ => false,
        }
    }
}

impl Stream {
    /// Do events begin with base, code and mask?
    pub fn has_lanes(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Is this field not in the header of events?
    pub fn is_elsewhere(&self, field: u32) -> bool {
        self.lanes.contains(&field) || self.told.contains(&field)
    }

    /// The field that the base is of: the first of addresses that has a value a lane.
    pub fn base(&self, map: &Map) -> Option<u32> {
        let is_address = |&&field: &&u32| map.fields.get(field as usize).is_some_and(|f| f.ty == Type::Ptr);
        self.lanes.iter().find(is_address).copied()
    }

    /// Does any value hang on the launch's parameters?
    pub fn wants_params(&self) -> bool {
        let wants = |lanes: &Lanes| match &lanes.form {
            Form::Bits(strides) => strides.iter().any(|stride| !stride.terms.is_empty()),
            Form::Known(_) | Form::Stride | Form::List32 | Form::List64 => false,
        };
        self.codes.iter().flat_map(|code| &code.lanes).any(wants)
    }
}

impl Form {
    /// Slots of its section in an event of `lanes` lanes.
    pub fn slots(&self, lanes: u32) -> u32 {
        match self {
            Form::Known(_) | Form::Bits(_) => 0,
            Form::Stride => 1,
            Form::List32 => lanes.div_ceil(4),
            Form::List64 => lanes.div_ceil(2),
        }
    }
}

impl Linear {
    /// Its value where the launch's parameters are `params`; `None` if they are too short.
    pub fn value(&self, params: &[u8]) -> Option<u64> {
        self.terms.iter().try_fold(self.constant as u64, |sum, term| {
            let bytes = params.get(term.param_offset as usize..)?;
            let value = match (term.size, term.signed) {
                (8, _) => u64::from_le_bytes(*bytes.first_chunk()?),
                (4, false) => u64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
                (4, true) => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)) as u64,
                _ => return None,
            };
            Some(sum.wrapping_add(value.wrapping_mul(term.factor as u64)))
        })
    }
}
