//! V7, V11 and V12: what is written is the span's own, and a store is proved to stay within a record.
//!
//! ```text
//! st.global.u64 [%nt_a+8], %nt_end;     %nt_a = base(heat) + 16·%nt_i, and %nt_i < cap(heat) holds here
//! ```

use super::read::has_room;
use super::{During, Judge};
use crate::Rule;
use crate::claim::{SLOT, Shape as MapShape};
use crate::opcode::{Act, Form, Slot};
use crate::span::{Instruction, Operand, Shape};
use crate::value::{Content, Fact, Known, Linear, Unknown};
use nt_diag::Span;

impl<'w> Judge<'_, 'w> {
    /// V7, and V12 for state: writes the destinations.
    pub(super) fn destinations(
        &mut self,
        form: &Form,
        instruction: &Instruction<'w>,
        result: &Known,
        during: &During,
    ) {
        for (slot, operand) in form.slots.iter().zip(&instruction.operands) {
            match (slot, &operand.shape) {
                (Slot::To(width), _) => self.write(operand, form.bits(*width), result.clone(), during),
                (Slot::ToPredicates, Shape::Pair(first, second)) => {
                    self.write(first, 1, result.clone(), during);
                    let complement = self.fresh(1);
                    self.write(second, 1, complement, during);
                }
                (Slot::ToPredicates, _) => self.write(operand, 1, result.clone(), during),
                (Slot::ToBoth(width), Shape::Vector(parts)) => {
                    for part in parts {
                        let bits = form.bits(*width);
                        let part_of = self.fresh(bits);
                        self.write(part, bits, part_of, during);
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn write(&mut self, operand: &Operand<'w>, bits: u32, known: Known, during: &During) {
        let name = match &operand.shape {
            Shape::Name(name) => *name,
            Shape::Sink => return,
            _ => return self.add(Rule::V7, operand.span, "this is nothing that a span may write"),
        };
        let Some(index) = self.find(name) else {
            return self.add(
                Rule::V7,
                operand.span,
                format!("`{name}` is neither declared in this span nor state"),
            );
        };
        let Some(&register) = self.registers.get(index) else { return };
        if !has_room(register.bits, bits) {
            let message = format!("`{name}` has {} bits where {bits} are written", register.bits);
            return self.add(Rule::V7, operand.span, message);
        }
        if register.is_state {
            self.effect(operand.span, during);
        }
        let old = self.now.as_ref().and_then(|here| here.contents.get(index)).cloned();
        let content = match (&during.guard, old) {
            (None, _) => Content::Assigned(known),
            // Assigned before, or in the other arm: assigned, with one value or the other.
            (Some(_), Some(Content::Assigned(_))) => Content::Assigned(self.fresh(register.bits)),
            (Some(guard), Some(Content::Where(fact, _))) if fact == guard.not().own() => {
                Content::Assigned(self.fresh(register.bits))
            }
            (Some(guard), _) => Content::Where(guard.own(), known),
        };
        self.put(index, content);
    }

    /// V12: an effect happens only when the instruction at the site does.
    pub(super) fn effect(&mut self, span: Span, during: &During) {
        if during.guard.is_some() {
            self.stretch += 1;
        }
        if let Some((guard, negated)) = self.site.guard
            && !self.site.is_entry
            && !self.site.is_branch
            && !self.is_site_on(during)
        {
            let not = if negated { "!" } else { "" };
            self.add(
                Rule::V12,
                span,
                format!("this effect does not stand under the guard `@{not}{guard}` of its site"),
            );
        }
    }

    /// Is it known that the instruction at the site is executed by whoever executes this?
    pub(super) fn is_site_on(&self, during: &During) -> bool {
        self.site.guard.is_none_or(|(_, negated)| during.facts.holds(&Fact::Held(0, !negated)))
    }

    /// V11: the address is that of a record, or of a table's cell, below the capacity.
    pub(super) fn effect_on_memory(&mut self, form: &Form, instruction: &Instruction<'w>, during: &During) {
        let Some(Operand { span, shape: Shape::Address { base, offset } }) = instruction.operands.first()
        else {
            return;
        };
        let span = *span;
        self.effect(span, during);
        if self.find(base).is_none() {
            return self.add(Rule::V11, span, format!("`{base}` is no address that this span computed"));
        }
        let Some(Known::Word(address)) = self.read(base, 64, span, during) else { return };
        let Some(address) = address.plus(&Linear::constant(*offset as u64), 1) else { return };
        let Some(map) = address.base() else {
            return self.add(Rule::V11, span, format!("`{base}` is not computed from the base of one map"));
        };
        let claimed = self.site.claim.maps.get(map as usize);
        let name = claimed.map_or("", |map| map.name.as_str());
        if claimed.is_some_and(|map| map.is_table() != (form.act == Act::Reduce)) {
            let message = match form.act {
                Act::Reduce => format!("`{name}` is a map, to whose records nothing is added"),
                _ => format!("`{name}` is a table, into whose cells nothing is stored"),
            };
            return self.add(Rule::V11, span, message);
        }
        let bytes = u64::from(form.last / 8 * form.lanes);
        let mut bounded = false;
        for fact in during.facts.iter() {
            if let Fact::Below(index, of) = fact
                && *of == map
            {
                bounded = true;
                if self.within(&address, map, index, bytes) {
                    return;
                }
            }
        }
        let message = if bounded {
            format!(
                "`{base}` is not the base of `{name}` plus its shape times the index that was compared, or {bytes} bytes \
                 there are not aligned within a record"
            )
        } else {
            format!("no index is known to be below the capacity of `{name}` here")
        };
        self.add(Rule::V11, span, message);
    }

    /// Do `bytes` bytes at `address` lie within record `index` of a map, aligned?
    pub(super) fn within(&self, address: &Linear, map: u32, index: &Linear, bytes: u64) -> bool {
        let Some(shape) = self.site.claim.maps.get(map as usize).map(|map| &map.shape) else { return false };
        // Where in the record: what is left of the address without base and index, if that is a constant.
        let place = |stride: u32, caps: u32| {
            address
                .plus(&Linear::unknown(Unknown::Base(map)), u64::MAX)?
                .plus(index, u64::from(stride).wrapping_neg())?
                .plus(&Linear::unknown(Unknown::Cap(map)), u64::from(caps).wrapping_neg())?
                .as_constant()
        };
        match shape {
            MapShape::Packed { .. } | MapShape::Slots => {
                let stride = match shape {
                    MapShape::Packed { stride } => *stride,
                    _ => SLOT,
                };
                place(stride, 0).is_some_and(|at| {
                    let stride = u64::from(stride);
                    at < stride
                        && bytes <= stride - at
                        && at.is_multiple_of(bytes)
                        && stride.is_multiple_of(bytes)
                })
            }
            MapShape::Columns(columns) => columns.iter().any(|column| {
                place(column.width, column.offset) == Some(0) && bytes == u64::from(column.width)
            }),
        }
    }
}
