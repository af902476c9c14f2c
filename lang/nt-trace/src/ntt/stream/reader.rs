//! How the events of one map of one launch are read: made once, so that an event costs a few loads.

use nt_wire::frame::Launch;
use nt_wire::stream::{Head, Part};

use super::super::records::{Load, Value, extend};
use super::super::trace::agree;
use super::{Unfit, site_index};
use crate::ntm::{self, Assumption, Form, Kernel, Map, Presence, Source, Type};

/// How events are read.
#[derive(Debug, Clone)]
pub struct Reader {
    /// Bytes a chunk.
    pub(super) chunk: usize,
    /// Bytes of an event's header.
    pub(super) header: usize,
    /// Of a record without lanes: not 0 in one that was written.
    pub(super) presence: Option<Load>,
    pub(super) codes: Vec<Code>,
    pub(super) units: u64,
    launch: Launch,
    unit: ntm::Unit,
    columns: Vec<Column>,
    types: Vec<(Type, Type)>,
    /// How many sites the kernel has.
    sites: usize,
    site_column: Option<usize>,
}

/// What a code means.
#[derive(Debug, Clone)]
pub(super) struct Code {
    /// Its index.
    pub(super) number: usize,
    /// Index into the kernel's sites.
    pub(super) site: Option<usize>,
    told: Vec<u64>,
    lanes: Vec<Values>,
    /// How the addresses are had, if any are.
    pub(super) addresses: Option<How>,
    /// Slots behind the header if no list is stored.
    fixed: u32,
    /// Lists of words, and of words of 8 bytes.
    lists: (u32, u32),
}

/// See [`super::Addresses`].
#[derive(Debug, Clone)]
pub(super) enum How {
    Proved(Vec<Assumption>),
    Tested,
    Listed,
}

/// How a field a lane is had.
#[derive(Debug, Clone)]
enum Values {
    Known(u64),
    /// base + this at the lane − this at the leader; beside it the stride, if there is one for all lanes.
    Offsets(Box<[u64; 32]>, Option<i64>),
    Stride,
    /// Distances from the base?
    List32 {
        from_base: bool,
    },
    List64,
}

/// Where a column's value comes from.
#[derive(Debug, Clone, Copy)]
enum Column {
    One(Operand),
    Difference(Operand, Operand),
    /// Which of the fields a lane.
    Lanes(usize),
}

/// A value for all lanes.
#[derive(Debug, Clone, Copy)]
enum Operand {
    Header(Load),
    /// Which of the told fields.
    Told(usize),
}

/// Bytes of a slot.
pub(super) const SLOT: usize = nt_ir::layout::SLOT as usize;

impl Reader {
    /// For one of the kernel's maps, in a launch of it.
    ///
    /// # Errors
    /// The map is no stream, or strides are made of parameters that the launch does not tell.
    pub fn new(kernel: &Kernel, map: &Map, launch: &Launch) -> Result<Reader, Unfit> {
        let stream = map.stream.as_ref().ok_or(Unfit::NoStream)?;
        let units = map.unit.count(launch.grid, launch.block, launch.sms).ok_or(Unfit::Malformed)?;
        let load = |index: u32| -> Result<Load, Unfit> {
            let field = map.fields.get(index as usize).ok_or(Unfit::NoStream)?;
            let flag = match map.presence {
                Presence::Bit { field, bit } if field == index => 1u64.checked_shl(bit).unwrap_or(0),
                _ => 0,
            };
            Ok(Load { first: field.offset as usize, step: 0, ty: field.ty, mask: !flag })
        };
        let operand = |index: u32| match stream.told.iter().position(|&told| told == index) {
            Some(told) => Ok(Operand::Told(told)),
            None => load(index).map(Operand::Header),
        };
        let column = |source: Source| match source {
            Source::Field(index) => match stream.lanes.iter().position(|&lanes| lanes == index) {
                Some(lanes) => Ok(Column::Lanes(lanes)),
                None => Ok(Column::One(operand(index)?)),
            },
            Source::Difference(a, b) => Ok(Column::Difference(operand(a)?, operand(b)?)),
        };
        let from = |source: Source| match source {
            Source::Field(index) => map.fields.get(index as usize).map_or(Type::U64, |field| field.ty),
            Source::Difference(..) => Type::U64,
        };
        let presence = match map.presence {
            Presence::Mask => None,
            Presence::Byte { offset } => {
                Some(Load { first: offset as usize, step: 0, ty: Type::U8, mask: u64::MAX })
            }
            Presence::Bit { field, .. } => {
                let load = load(field)?;
                Some(Load { mask: !load.mask, ..load })
            }
        };
        let codes = stream.codes.iter().enumerate();
        let codes =
            codes.map(|(number, code)| Code::new(kernel, map, stream, (number, code), &launch.params));
        Ok(Reader {
            chunk: stream.chunk as usize * SLOT,
            header: stream.header as usize * SLOT,
            presence,
            codes: codes.collect::<Result<_, _>>()?,
            units,
            launch: Launch { params: Vec::new(), ..launch.clone() },
            unit: map.unit,
            columns: map.columns.iter().map(|c| column(c.source)).collect::<Result<_, Unfit>>()?,
            types: map.columns.iter().map(|c| (c.ty, from(c.source))).collect(),
            sites: kernel.sites.len(),
            site_column: map.columns.iter().position(|column| column.name == "site"),
        })
    }

    /// Takes a part apart and holds it against map and launch.
    ///
    /// # Errors
    /// It contradicts itself, the map, or the launch.
    pub fn part<'b>(&self, data: &'b [u8]) -> Result<Part<'b>, Unfit> {
        let part = Head::decode(data).map_err(|_| Unfit::Malformed)?;
        let expected = (self.chunk / SLOT) as u32;
        if part.head.chunk != expected {
            return Err(Unfit::Chunk { found: part.head.chunk, expected });
        }
        agree(self.unit, &self.launch, part.head.units)?;
        Ok(part)
    }

    /// Does this column have a value a lane?
    pub fn is_of_lanes(&self, column: usize) -> bool {
        matches!(self.columns.get(column), Some(Column::Lanes(_)))
    }

    /// A value of a column's type from bits of [`super::StreamEvent::put_lanes`].
    pub fn typed(&self, column: usize, bits: u64) -> Value {
        let (ty, from) = self.types.get(column).copied().unwrap_or((Type::U64, Type::U64));
        Value::of(ty, from, bits)
    }

    /// Is this column the same in all events of a code?
    pub(super) fn is_told(&self, column: usize, code: &Code) -> bool {
        let told = |operand: Operand| matches!(operand, Operand::Told(_));
        match self.columns.get(column) {
            Some(&Column::One(one)) => told(one),
            Some(&Column::Difference(a, b)) => told(a) && told(b),
            Some(&Column::Lanes(index)) => matches!(code.lanes.get(index), Some(Values::Known(_))),
            None => true,
        }
    }

    pub(super) fn site_column(&self) -> Option<usize> {
        self.site_column
    }

    /// What the builtin `site` says: the number of a site among those that the manifest lists.
    pub(super) fn site_of(&self, number: u32) -> Option<usize> {
        usize::try_from(number).ok().filter(|&number| number < self.sites)
    }

    pub(super) fn value(&self, column: usize, code: Option<&Code>, bytes: &[u8]) -> Option<Value> {
        let operand = |operand: Operand| match operand {
            Operand::Header(load) => load.value(bytes, 0),
            Operand::Told(index) => code.and_then(|code| code.told.get(index)).copied().unwrap_or(0),
        };
        let bits = match *self.columns.get(column)? {
            Column::One(one) => operand(one),
            Column::Difference(a, b) => operand(a).wrapping_sub(operand(b)),
            Column::Lanes(_) => return None,
        };
        Some(self.typed(column, bits))
    }

    pub(super) fn put_lanes(
        &self,
        column: usize,
        code: &Code,
        mask: u32,
        bytes: &[u8],
        out: &mut [u64; 32],
    ) -> bool {
        let Some(&Column::Lanes(index)) = self.columns.get(column) else { return false };
        let Some(values) = code.lanes.get(index) else { return false };
        let section = bytes.get(self.header + code.before(index, mask)..).unwrap_or_default();
        let ty = self.types.get(column).map_or(Type::U64, |&(_, from)| from);
        put(values, ty, mask, base(bytes), section, out);
        true
    }
}

impl Code {
    /// See [`super::StreamEvent::line`].
    pub(super) fn line(&self, reader: &Reader, column: usize, mask: u32, bytes: &[u8]) -> Option<(u64, i64)> {
        let Some(&Column::Lanes(index)) = reader.columns.get(column) else { return None };
        match self.lanes.get(index)? {
            Values::Known(value) => Some((*value, 0)),
            Values::Offsets(_, Some(stride)) => Some((base(bytes), *stride)),
            Values::Stride => {
                let section = bytes.get(reader.header + self.before(index, mask)..)?;
                Some((base(bytes), i64::from(i32::from_le_bytes(*section.first_chunk()?))))
            }
            Values::Offsets(_, None) | Values::List32 { .. } | Values::List64 => None,
        }
    }

    /// Bytes of the sections before that of a field. Sections come in the order of the fields.
    fn before(&self, index: usize, mask: u32) -> usize {
        let lanes = mask.count_ones();
        let slots: u32 = self.lanes.iter().take(index).map(|values| values.slots(lanes)).sum();
        slots as usize * SLOT
    }
}

/// The leader's address: 48 bits, extended by the uppermost.
pub(super) fn base(bytes: &[u8]) -> u64 {
    let word = bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    ((word << 16) as i64 >> 16) as u64
}

/// Puts the values of the lanes in `mask`; `section` is what is stored of them.
fn put(values: &Values, ty: Type, mask: u32, base: u64, section: &[u8], out: &mut [u64; 32]) {
    // `trailing_zeros` of a mask that is 0 would be 32; then there is no lane to put either.
    let leader = mask.trailing_zeros() as usize % 32;
    let full = mask == u32::MAX;
    let each = |out: &mut [u64; 32], value: &mut dyn FnMut(usize) -> u64| {
        for (lane, out) in out.iter_mut().enumerate() {
            if full || mask >> lane & 1 == 1 {
                *out = value(lane);
            }
        }
    };
    match values {
        Values::Known(value) => each(out, &mut |_| *value),
        Values::Offsets(offsets, _) => {
            let base = base.wrapping_sub(offsets[leader]);
            for (lane, (out, offset)) in out.iter_mut().zip(offsets.iter()).enumerate() {
                if full || mask >> lane & 1 == 1 {
                    *out = base.wrapping_add(*offset);
                }
            }
        }
        Values::Stride => {
            let stride = section.first_chunk().map_or(0, |b| i64::from(i32::from_le_bytes(*b)));
            each(out, &mut |lane| {
                base.wrapping_add((lane as i64 - leader as i64).wrapping_mul(stride) as u64)
            });
        }
        Values::List32 { from_base } => {
            let (words, _) = section.as_chunks::<4>();
            let mut words = words.iter();
            each(out, &mut |_| {
                let word = words.next().map_or(0, |word| u32::from_le_bytes(*word));
                if *from_base {
                    base.wrapping_add(i64::from(word as i32) as u64)
                } else {
                    extend(ty, u64::from(word))
                }
            });
        }
        Values::List64 => {
            let (words, _) = section.as_chunks::<8>();
            let mut words = words.iter();
            each(out, &mut |_| words.next().map_or(0, |word| extend(ty, u64::from_le_bytes(*word))));
        }
    }
}

impl Code {
    fn new(
        kernel: &Kernel,
        map: &Map,
        stream: &ntm::Stream,
        (number, code): (usize, &ntm::Code),
        params: &[u8],
    ) -> Result<Code, Unfit> {
        let base = stream.base(map);
        let values = |lanes: &ntm::Lanes| {
            Ok(match &lanes.form {
                Form::Known(value) => Values::Known(*value),
                Form::Bits(strides) => {
                    let offsets = offsets(strides, params)?;
                    let [_, stride, ..] = offsets;
                    let on_line = |(lane, &offset): (u64, &u64)| offset == stride.wrapping_mul(lane);
                    let plain = (0u64..).zip(&offsets).all(on_line).then_some(stride as i64);
                    Values::Offsets(Box::new(offsets), plain)
                }
                Form::Stride => Values::Stride,
                Form::List32 => Values::List32 { from_base: base == Some(lanes.field) },
                Form::List64 => Values::List64,
            })
        };
        let lanes: Vec<Values> = code.lanes.iter().map(values).collect::<Result<_, Unfit>>()?;
        let count = |what: fn(&Values) -> bool| lanes.iter().filter(|values| what(values)).count() as u32;
        let addresses =
            code.lanes.iter().find(|lanes| base == Some(lanes.field)).map(|lanes| match lanes.form {
                Form::Known(_) | Form::Bits(_) => How::Proved(code.assumes.clone()),
                Form::Stride => How::Tested,
                Form::List32 | Form::List64 => How::Listed,
            });
        Ok(Code {
            number,
            addresses,
            site: site_index(kernel, code.site),
            told: code.told.iter().map(|told| told.value).collect(),
            fixed: count(|values| matches!(values, Values::Stride)),
            lists: (
                count(|values| matches!(values, Values::List32 { .. })),
                count(|values| matches!(values, Values::List64)),
            ),
            lanes,
        })
    }

    /// Bytes behind the header in an event of so many lanes.
    pub(super) fn behind(&self, lanes: u32) -> usize {
        let (words, longs) = self.lists;
        // A manifest has few fields, and an event at most 32 lanes.
        (self.fixed + words * lanes.div_ceil(4) + longs * lanes.div_ceil(2)) as usize * SLOT
    }
}

impl Values {
    fn slots(&self, lanes: u32) -> u32 {
        match self {
            Values::Known(_) | Values::Offsets(..) => 0,
            Values::Stride => 1,
            Values::List32 { .. } => lanes.div_ceil(4),
            Values::List64 => lanes.div_ceil(2),
        }
    }
}

/// For each lane, the sum of the strides of its bits.
fn offsets(strides: &[ntm::Linear; 5], params: &[u8]) -> Result<[u64; 32], Unfit> {
    let mut of_bits = [0u64; 5];
    for (of_bit, stride) in of_bits.iter_mut().zip(strides) {
        *of_bit = stride.value(params).ok_or(Unfit::Params { bytes: params.len() })?;
    }
    let mut offsets = [0u64; 32];
    for (lane, offset) in offsets.iter_mut().enumerate() {
        let bits = of_bits.iter().enumerate().filter(|(bit, _)| lane >> bit & 1 == 1);
        *offset = bits.fold(0, |sum: u64, (_, &stride)| sum.wrapping_add(stride));
    }
    Ok(offsets)
}
