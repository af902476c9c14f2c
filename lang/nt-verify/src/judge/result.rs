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
        let product = |a: &Linear, b: &Linear| match (a.as_constant(), b.as_constant()) {
            (Some(factor), _) => Linear::constant(0).plus(b, factor),
            (_, Some(factor)) => Linear::constant(0).plus(a, factor),
            (None, None) => None,
        };
        let word = match (form.act, lines.as_slice()) {
            (Act::Add, [a, b]) => a.plus(b, 1),
            (Act::Subtract, [a, b]) => a.plus(b, u64::MAX),
            (Act::Multiply | Act::MultiplyWide, [a, b]) => product(a, b),
            (Act::MultiplyAdd | Act::MultiplyAddWide, [a, b, c]) => {
                let product = product(a, b).unwrap_or_else(|| self.unknown());
                product.plus(c, 1)
            }
            (Act::ShiftLeft, [a, b]) => match b.as_constant() {
                Some(bits) if bits < 64 => Linear::constant(0).plus(a, 1 << bits),
                _ => None,
            },
            (Act::ZeroExtend, [a]) => Some(a.clone()),
            _ => None,
        };
        if let Some(word) = word {
            return Known::Word(word);
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
            _ => {
                let bits = match form.slots.first() {
                    Some(Slot::To(width)) => form.bits(*width),
                    Some(Slot::ToPredicates) => 1,
                    _ => 0,
                };
                self.fresh(bits)
            }
        }
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
        Some(Unknown::Cap(map) | Unknown::LowCap(map)) => Facts::of(vec![Fact::Below(small.clone(), map)]),
        _ => Facts::default(),
    };
    match comparison {
        Comparison::Less => (below(a, b), Facts::default()),
        Comparison::LessEqual => (Facts::default(), below(b, a)),
        Comparison::Greater => (below(b, a), Facts::default()),
        Comparison::GreaterEqual => (Facts::default(), below(a, b)),
    }
}
