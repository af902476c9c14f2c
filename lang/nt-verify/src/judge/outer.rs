//! V12 and V16: what a span declares outside of its braces, for the instruction behind it and the spans after that.
//!
//! ```text
//! .reg .b64 %nt_g7; { ld.const.b64 %nt_g7, [nt_pin]; }            for a pinned operand
//! .reg .b64 %nt_v7; { @%p1 mov.b64 %nt_v7, %rd4; }                for a span after it: it has a value where %p1 holds
//! ```

use super::{Argument, Gave, Judge, Took};
use crate::value::{Content, Fact, Facts, Known, Predicate};
use nt_diag::Span;

/// What a span declares outside of its braces.
#[derive(Debug, Default)]
pub(crate) struct Outer<'w> {
    pub(crate) registers: Vec<Carried<'w>>,
    pub(crate) arguments: Vec<Argument<'w>>,
    /// What it gives back to the caller of its function.
    pub(crate) gave: Vec<Gave<'w>>,
    /// What it takes of what the call before it gave back.
    pub(crate) took: Vec<Took<'w>>,
}

/// A register that a span declares outside of its braces, for an edit of the instruction behind it (V16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carried<'w> {
    pub(crate) name: &'w str,
    pub(crate) span: Span,
    /// Where the span ends, it holds the address of this pin, and this much more.
    pub(crate) pin: Option<(u32, u64)>,
    /// The same for spans after the instruction.
    pub(crate) saved: Saved<'w>,
}

/// A register that a span before an instruction declares outside of its braces, for spans after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Saved<'w> {
    pub(super) name: &'w str,
    pub(super) bits: u32,
    pub(super) when: When,
}

/// When a saved register has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// Where the guard of the instruction holds.
    Guarded,
    /// It is that guard's register, or, negated, the opposite of it.
    Guard {
        negated: bool,
    },
    Never,
}

impl Judge<'_, '_> {
    /// When a register that is saved with this content has a value.
    pub(super) fn when(&self, content: &Content) -> When {
        let guard = self.site.guard.map(|(_, negated)| Fact::Held(0, !negated));
        match content {
            Content::Assigned(Known::Predicate(predicate)) if predicate.number == 0 => {
                When::Guard { negated: predicate.negated }
            }
            Content::Assigned(_) => When::Always,
            Content::Where(fact, _) if Some(fact) == guard.as_ref() => When::Guarded,
            Content::Where(..) | Content::Unassigned => When::Never,
        }
    }

    /// What is known of a saved register behind the instruction.
    pub(super) fn restored(&mut self, when: When, bits: u32) -> Content {
        match (when, self.site.guard) {
            (When::Always, _) => Content::Assigned(self.fresh(bits)),
            (When::Guard { negated }, _) => {
                let guard = Predicate::new(0, &Facts::default(), &Facts::default());
                Content::Assigned(Known::Predicate(if negated { guard.not() } else { guard }))
            }
            (When::Guarded, Some((_, negated))) => Content::Where(Fact::Held(0, !negated), self.fresh(bits)),
            (When::Guarded, None) | (When::Never, _) => Content::Unassigned,
        }
    }
}
