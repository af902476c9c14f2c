//! V5: where branches go, and what is known where ways meet.
//!
//! ```text
//! @!%p1 bra $nt_L;      there: not %p1; behind it: %p1
//! $nt_L:                what holds on both ways, and registers that both of them assigned
//! ```

use super::{During, Here, Judge};
use crate::Rule;
use crate::span::{Operand, Shape};
use crate::value::Content;
use std::rc::Rc;

impl<'w> Judge<'_, 'w> {
    /// A label: whoever branched to it comes in here.
    pub(super) fn arrive(&mut self, name: &'w str) {
        self.stretch += 1;
        if let Some(other) = self.coming.remove(name) {
            self.now = Some(match self.now.take() {
                Some(here) => self.join(here, &other),
                None => other,
            });
        }
    }

    /// What is known where two ways meet.
    fn join(&mut self, one: Here, other: &Here) -> Here {
        let facts = one.facts.or(&other.facts);
        if Rc::ptr_eq(&one.contents, &other.contents) {
            return Here { contents: one.contents, facts };
        }
        let mut contents = Vec::with_capacity(one.contents.len());
        for (index, content) in one.contents.iter().enumerate() {
            contents.push(match (content, other.contents.get(index)) {
                (a, Some(b)) if a == b => a.clone(),
                (Content::Assigned(_), Some(Content::Assigned(_))) => {
                    // Both ways assigned it, something else each.
                    let bits = self.registers.get(index).map_or(0, |register| register.bits);
                    Content::Assigned(self.fresh(bits))
                }
                _ => Content::Unassigned,
            });
        }
        Here { contents: Rc::new(contents), facts }
    }

    pub(super) fn branch(&mut self, index: usize, operand: &Operand<'w>, during: &During) {
        self.stretch += 1;
        let Shape::Name(label) = operand.shape else { return };
        match self.labels.get(label) {
            None => {
                let message = format!("`{label}` is no label of this span");
                return self.add(Rule::V5, operand.span, message);
            }
            Some(&(place, _)) if place <= index => {
                return self.add(Rule::V5, operand.span, format!("a branch back to `{label}`"));
            }
            Some(&(_, scope)) if !self.scopes.iter().any(|open| open.number == scope) => {
                return self.add(
                    Rule::V5,
                    operand.span,
                    format!("`{label}` stands in braces that do not hold this branch"),
                );
            }
            Some(_) => {}
        }
        let Some(here) = self.now.take() else { return };
        let taken = Here { contents: here.contents.clone(), facts: during.facts.clone() };
        let taken = match self.coming.remove(label) {
            Some(other) => self.join(other, &taken),
            None => taken,
        };
        self.coming.insert(label, taken);
        // Behind an unconditional branch nothing goes on; a guard that is known to hold makes it one.
        self.now = match &during.guard {
            Some(guard) => Some(Here { facts: here.facts.and(&guard.if_false), contents: here.contents }),
            None => None,
        };
    }
}
