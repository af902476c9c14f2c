//! V7 and V12: what is written is the span's own, and effects happen when their site does.
//!
//! ```text
//! @%p1 add.u32 %nt_n, %nt_n, 4;     of state, before `@%p1 ld.global.f32 …`
//! ```

use super::read::has_room;
use super::{During, Judge};
use crate::Rule;
use crate::opcode::{Form, Slot};
use crate::span::{Instruction, Operand, Shape};
use crate::value::{Content, Fact, Known};
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
                (Slot::Loaded, Shape::Vector(parts)) => {
                    for part in parts {
                        let part_of = self.fresh(form.last);
                        self.write(part, form.last, part_of, during);
                    }
                }
                (Slot::Loaded, _) => {
                    let loaded = self.fresh(form.last);
                    self.write(operand, form.last, loaded, during);
                }
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
        if register.state.is_some() {
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
    ///
    /// At a branch no guard is asked for: a lane that does not take it has come to it, and did what a branch does. Nor is
    /// one where the span says that it is for all lanes that get there. The kernel cannot tell, since effects reach maps
    /// and state alone. A span's own `bra` is no effect: where it leads, what holds is what holds on every way there ([`Judge::join`]), so it takes no effect out from under its guard.
    /// Lanes that part at one execute what follows the span all the same, which is all that `.aligned` asks for.
    pub(super) fn effect(&mut self, span: Span, during: &During) {
        if let Some((guard, negated)) = self.site.guard
            && !self.site.is_entry
            && !self.site.for_all
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
}
