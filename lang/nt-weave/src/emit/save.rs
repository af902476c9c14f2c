//! Saves: where to, and in which stores.
//!
//! ```text
//!     @!%nt_p0 bra $nt_L1;                 not the elected lane
//!     …                                    %nt_d1 = index of the unit
//!     ld.param.u64 %nt_d2, [nt_ctx+16];
//!     setp.ge.u64 %nt_p1, %nt_d1, %nt_d2;
//!     @%nt_p1 bra $nt_L1;                  no room for this unit
//!     ld.param.u64 %nt_d3, [nt_ctx+8];
//!     shl.b64 %nt_d4, %nt_d1, 4;
//!     add.u64 %nt_d5, %nt_d4, %nt_d3;
//!     st.global.b64 [%nt_d5], %nt_d0;
//!     st.global.v2.b32 [%nt_d5+8], {%nt_r1, %nt_r2};
//! ```
//!
//! The address is made at the save and not kept from the entry on: a live pair of registers costs more than the
//! arithmetic. At an exit stores of plain values stand under a predicate, see [`super::effects`]; elsewhere a branch costs
//! fewer registers. Two stores of 8 bytes cost less than one of 16, which wants four registers in a row (+1.45 against +2.1).

use super::index::Known;
use super::operand::{Class, Operand};
use super::{Refusal, Span};
use crate::context::Fill;
use nt_ir::layout::{Layout, Presence};
use nt_ir::program::{MapId, Type, ValueId};

/// One `save` of a probe.
#[derive(Clone, Copy)]
pub(super) struct Save<'a> {
    pub(super) probe: usize,
    pub(super) map: MapId,
    pub(super) values: &'a [(u32, ValueId)],
}

/// A piece of a record: its place, its bytes, its value.
pub(super) struct Piece<'a> {
    pub(super) offset: u32,
    pub(super) size: u32,
    pub(super) value: Operand<'a>,
}

/// The most bytes of one store of a record.
const WIDEST: u32 = 8;

/// The same of an event in a stream.
pub(super) const SLOT_STORE: u32 = 16;

impl<'a> Span<'a> {
    /// How the context counts a map.
    pub(super) fn map_number(&self, map: MapId) -> Result<u32, Refusal> {
        let number = self.plan.maps.iter().position(|&used| used == map.0 as usize);
        number.and_then(|n| u32::try_from(n).ok()).ok_or_else(|| "its context has no such map".into())
    }

    /// Stores a record for the unit of an index, `under` a guard if no branch is around it.
    pub(super) fn save(
        &mut self,
        save: Save<'a>,
        number: u32,
        index: Operand<'a>,
        under: &str,
    ) -> Result<(), Refusal> {
        let (p, map) = (save.probe, save.map.0 as usize);
        let (program, layouts) = (&self.probe.program, &self.probe.layouts);
        let (Some(declared), Some(layout)) = (program.maps.get(map), layouts.get(map)) else {
            return Err("its program has no such map".into());
        };
        // The address first: where it is made last, ptxas takes more registers (+1.55 instead of +1.36 on sm_90).
        let record = match layout.columnar {
            true => None,
            false => Some(self.record(save.map, index)?),
        };
        let roots: Vec<ValueId> = save.values.iter().map(|&(_, value)| value).collect();
        self.demand(p, &roots)?;

        let mut pieces = Vec::with_capacity(save.values.len() + 1);
        for &(field, value) in save.values {
            let (Some(slot), Some(stored)) =
                (layout.slots.get(field as usize), declared.fields.get(field as usize))
            else {
                return Err("its program has no such field".into());
            };
            let value = self.value(p, value)?;
            let value = self.as_stored(layout, field, stored.ty, value);
            pieces.push(Piece { offset: slot.offset, size: slot.size, value });
        }
        if let Presence::Byte(slot) = layout.presence {
            pieces.push(Piece { offset: slot.offset, size: slot.size, value: Operand::word(1) });
        }
        pieces.sort_by_key(|piece| piece.offset);

        match record {
            Some(address) => self.store_record(address, &pieces, WIDEST, under),
            None => self.store_columns(number, index, &pieces, under)?,
        }
        Ok(())
    }

    /// Where the record of a unit lies in a map of records.
    pub(super) fn record(&mut self, map: MapId, index: Operand<'a>) -> Result<Operand<'a>, Refusal> {
        let number = self.map_number(map)?;
        let base = self.context_word(Fill::Base(number))?;
        let layout = self.probe.layouts.get(map.0 as usize).ok_or("its program has no such map")?;
        let stride = layout.stride;
        Ok(self.once(Known::Record(number), |span| span.scaled(index, stride, base)))
    }

    /// A value as it lies in memory: a bool is a byte, and one field may carry the bit that says "written".
    pub(super) fn as_stored(
        &mut self,
        layout: &Layout,
        field: u32,
        ty: Type,
        value: Operand<'a>,
    ) -> Operand<'a> {
        let flag = match layout.presence {
            Presence::Bit { field: marked, bit } if marked == field => 1u64.checked_shl(bit).unwrap_or(0),
            _ => 0,
        };
        if ty == Type::Bool {
            let [yes, no] = [flag | 1, flag].map(|bits| Operand::number(Type::U8, bits));
            return match value {
                Operand::Number { bits: 0, .. } => no,
                Operand::Number { .. } => yes,
                value => self.op(Class::B32, "selp.b32", &[yes, no, value]),
            };
        }
        if flag == 0 {
            return value;
        }
        match (value, Class::of(ty)) {
            (Operand::Number { ty, bits }, _) => Operand::number(ty, bits | flag),
            (value, Class::B64) => self.op(Class::B64, "or.b64", &[value, Operand::long(flag)]),
            (value, _) => self.op(Class::B32, "or.b32", &[value, Operand::word(flag as u32)]),
        }
    }

    /// The record at an address, in stores of up to `widest` bytes, each `under` a guard.
    pub(super) fn store_record(
        &mut self,
        address: Operand<'a>,
        pieces: &[Piece<'a>],
        widest: u32,
        under: &str,
    ) {
        let mut rest = pieces;
        while let Some(first) = rest.first() {
            let count = joined(rest, widest);
            let (now, later) = rest.split_at(count);
            let values: Vec<Operand<'a>> = now.iter().map(|piece| self.stored_register(piece)).collect();
            self.store(address, first.offset, first.size, &values, under);
            rest = later;
        }
    }

    /// Column by column: `base + offset·capacity + index·size`.
    fn store_columns(
        &mut self,
        map: u32,
        index: Operand<'a>,
        pieces: &[Piece<'a>],
        under: &str,
    ) -> Result<(), Refusal> {
        for piece in pieces {
            let mut column = self.context_word(Fill::Base(map))?;
            if piece.offset != 0 {
                let capacity = self.context_word(Fill::Capacity(map))?;
                column = self.scaled(capacity, piece.offset, column);
            }
            let address = self.scaled(index, piece.size, column);
            let value = self.stored_register(piece);
            self.store(address, 0, piece.size, &[value], under);
        }
        Ok(())
    }

    /// `base + n·factor`. A shift and an addition where that does: ptxas then takes fewer registers than for one
    /// `mad.lo.u64` (block_sched over the eleven bench kernels on sm_80, sm_90 and sm_100: +1.64, +1.36 and +1.09
    /// instead of +1.91, +1.45 and +1.18).
    pub(super) fn scaled(&mut self, n: Operand<'a>, factor: u32, base: Operand<'a>) -> Operand<'a> {
        match factor {
            1 => self.op(Class::B64, "add.u64", &[base, n]),
            _ if factor.is_power_of_two() => {
                let scaled = self.op(Class::B64, "shl.b64", &[n, Operand::word(factor.trailing_zeros())]);
                self.op(Class::B64, "add.u64", &[scaled, base])
            }
            _ => self.op(Class::B64, "mad.lo.u64", &[n, Operand::long(u64::from(factor)), base]),
        }
    }

    /// The piece in a register of its width; 8 bits have none and are stored out of 32.
    fn stored_register(&mut self, piece: &Piece<'a>) -> Operand<'a> {
        let ty = match piece.value {
            Operand::Number { ty, .. } => ty,
            _ => Type::U32,
        };
        let register = self.register(piece.value, ty);
        if piece.size == 2 { self.op(Class::B16, "cvt.u16.u32", &[register]) } else { register }
    }

    fn store(&mut self, address: Operand<'a>, offset: u32, size: u32, values: &[Operand<'a>], under: &str) {
        let bits = size * 8;
        let place = if offset == 0 { format!("[{address}]") } else { format!("[{address}+{offset}]") };
        match values {
            [value] => self.line(format_args!("{under}st.global.b{bits} {place}, {value};")),
            values => {
                let list: Vec<String> = values.iter().map(ToString::to_string).collect();
                let (count, list) = (values.len(), list.join(", "));
                self.line(format_args!("{under}st.global.v{count}.b{bits} {place}, {{{list}}};"));
            }
        }
    }
}

/// How many of the first pieces go into one store: side by side, of one size, aligned, at most `widest` bytes.
fn joined(pieces: &[Piece<'_>], widest: u32) -> usize {
    let Some(first) = pieces.first() else { return 0 };
    let fits = |&count: &usize| {
        let width = first.size * count as u32;
        width <= widest
            && first.offset % width == 0
            && pieces.len() >= count
            && (0..)
                .zip(pieces)
                .take(count)
                .all(|(i, p)| p.size == first.size && p.offset == first.offset + i * first.size)
    };
    [4, 2].into_iter().find(fits).unwrap_or(1)
}
