//! What an instruction gives: sums and products of what is known, and what follows from comparisons.
//!
//! ```text
//! setp.lt.and.u64 %nt_p, %nt_i, %nt_cap, %nt_q;     where %nt_p: %nt_i < cap(heat), and all that follows from %nt_q
//! ```

use super::{During, Judge};
use crate::opcode::{Act, Comparison, Form, Slot};
use crate::span::Instruction;
use crate::value::{Fact, Facts, Known, Linear, Predicate, Unknown};

impl<'w> Judge<'_, 'w> {
    /// What the instruction gives.
    pub(super) fn result(
        &mut self,
        form: &Form,
        instruction: &Instruction<'w>,
        values: &[Known],
        during: &During,
    ) -> Known {
        let lines: Vec<Linear> = match form.act {
            Act::Other | Act::CompareOther | Act::And | Act::Or | Act::Not | Act::ActiveMask => Vec::new(),
            _ => values.iter().map(|value| self.linear(value)).collect(),
        };
        let bits = match form.slots.first() {
            Some(Slot::To(width)) => form.bits(*width),
            Some(Slot::ToPredicates) => 1,
            _ => 0,
        };
        let number = match (form.act, lines.as_slice()) {
            (Act::Mask, [a, b]) => {
                let both = self.bits(a) & self.bits(b);
                Some(self.derived(both, if a.as_some().is_some() { a } else { b }))
            }
            (Act::ShiftRight, [a, b]) => {
                let by = b.as_constant().and_then(|by| u32::try_from(by).ok());
                let left = match by {
                    Some(by) => self.bits(a).checked_shr(by).unwrap_or(0),
                    None => u64::MAX >> (64 - form.last),
                };
                Some(self.derived(left, a))
            }
            // A count of 32 bits is at most 32, of 64 at most 64.
            (Act::Count, [a]) => Some(self.derived(u64::from(form.last) * 2 - 1, a)),
            (Act::Low, [a]) => Some(self.narrow(Some(a.clone()))),
            (_, lines) => match self.sum_of(form, lines) {
                Some(sum) if bits == 32 => Some(self.narrow(sum)),
                Some(sum) => Some(sum.unwrap_or_else(|| self.unknown(u64::MAX))),
                None => None,
            },
        };
        match number {
            Some(number) if bits == 32 => return Known::Half(number),
            Some(number) if bits == 64 => return Known::Word(number),
            _ => {}
        }
        match (form.act, values) {
            (Act::Copy | Act::Load, [Known::Lanes { .. }]) => self.fresh(32),
            (Act::Copy | Act::Load, [known]) => known.clone(),
            (Act::ActiveMask, _) => {
                Known::Lanes { stretch: self.stretch, guard: during.guard.as_ref().map(Predicate::own) }
            }
            (Act::Not, [Known::Predicate(a)]) => Known::Predicate(a.not()),
            (Act::And, [Known::Predicate(a), Known::Predicate(b)]) => {
                Known::Predicate(self.predicate(&a.if_true.and(&b.if_true), &a.if_false.or(&b.if_false)))
            }
            (Act::Or, [Known::Predicate(a), Known::Predicate(b)]) => {
                Known::Predicate(self.predicate(&a.if_true.or(&b.if_true), &a.if_false.and(&b.if_false)))
            }
            (Act::Compare(comparison), _) => {
                let (if_true, if_false) = match lines.as_slice() {
                    [a, b, ..] => compared(comparison, a, b),
                    _ => (Facts::default(), Facts::default()),
                };
                self.joined(instruction.opcode, if_true, if_false, values.get(2))
            }
            (Act::CompareOther, _) => {
                self.joined(instruction.opcode, Facts::default(), Facts::default(), values.get(2))
            }
            _ => self.fresh(bits),
        }
    }

    /// Of an instruction that adds or multiplies, the sum, `None` within if it is none of constant multiples.
    fn sum_of(&mut self, form: &Form, lines: &[Linear]) -> Option<Option<Linear>> {
        let product = |a: &Linear, b: &Linear| match (a.as_constant(), b.as_constant()) {
            (Some(factor), _) => Linear::constant(0).plus(b, factor),
            (_, Some(factor)) => Linear::constant(0).plus(a, factor),
            (None, None) => None,
        };
        Some(match (form.act, lines) {
            (Act::Add, [a, b]) => a.plus(b, 1),
            (Act::Subtract, [a, b]) => a.plus(b, u64::MAX),
            (Act::Multiply | Act::MultiplyWide, [a, b]) => product(a, b),
            (Act::MultiplyAdd | Act::MultiplyAddWide, [a, b, c]) => {
                let product = product(a, b).unwrap_or_else(|| self.unknown(u64::MAX));
                product.plus(c, 1)
            }
            (Act::ShiftLeft, [a, b]) => match b.as_constant() {
                Some(by) if by < u64::from(form.last) => Linear::constant(0).plus(a, 1 << by),
                _ => None,
            },
            (Act::ZeroExtend, [a]) => Some(a.clone()),
            _ => return None,
        })
    }

    /// A comparison, joined by `.and` or `.or` to a third operand if there is one.
    pub(super) fn joined(
        &mut self,
        opcode: &str,
        if_true: Facts,
        if_false: Facts,
        third: Option<&Known>,
    ) -> Known {
        let word = |wanted| opcode.split('.').any(|word| word == wanted);
        let (if_true, if_false) = match third {
            Some(Known::Predicate(c)) if word("and") => (if_true.and(&c.if_true), if_false.or(&c.if_false)),
            Some(Known::Predicate(c)) if word("or") => (if_true.or(&c.if_true), if_false.and(&c.if_false)),
            Some(_) => (Facts::default(), Facts::default()),
            None => (if_true, if_false),
        };
        Known::Predicate(self.predicate(&if_true, &if_false))
    }
}

/// What follows from a comparison of two values being true, and from its being false.
fn compared(comparison: Comparison, a: &Linear, b: &Linear) -> (Facts, Facts) {
    let below = |small: &Linear, large: &Linear| match large.as_unknown() {
        Some(Unknown::Room(room) | Unknown::Low(room)) => Facts::of(vec![Fact::Below(small.clone(), room)]),
        _ => Facts::default(),
    };
    let zero = || match (a.as_constant(), b.as_constant()) {
        (Some(0), _) => b.as_some(),
        (_, Some(0)) => a.as_some(),
        _ => None,
    };
    let zero = || Facts::of(zero().map(Fact::Zero).into_iter().collect());
    match comparison {
        Comparison::Equal => (zero(), Facts::default()),
        Comparison::NotEqual => (Facts::default(), zero()),
        Comparison::Less => (below(a, b), Facts::default()),
        Comparison::LessEqual => (Facts::default(), below(b, a)),
        Comparison::Greater => (below(b, a), Facts::default()),
        Comparison::GreaterEqual => (Facts::default(), below(a, b)),
    }
}
