//! V4: what the names of a span mean, and that none is declared twice.
//!
//! ```text
//! .reg .b32 %nt_r<4>;      %nt_r0 to %nt_r3
//! ```

use super::{Judge, Register, Visible};
use crate::Rule;
use crate::span::{Kind, MOST_REGISTERS, Statement};
use crate::value::Content;
use nt_diag::Span;

impl<'w> Judge<'_, 'w> {
    /// Does `name` begin with the prefix, behind an optional `%` or `$`?
    pub(super) fn is_ours(&self, name: &str) -> bool {
        let bare = name.strip_prefix(['%', '$']).unwrap_or(name);
        bare.len() > self.site.claim.prefix.len() && bare.starts_with(&self.site.claim.prefix)
    }

    pub(super) fn find_labels(&mut self, statements: &[Statement<'w>]) {
        let (mut scope, mut open) = (0, Vec::new());
        for (index, statement) in statements.iter().enumerate() {
            match &statement.kind {
                Kind::Open => {
                    scope += 1;
                    open.push(scope);
                }
                Kind::Close => {
                    open.pop();
                }
                Kind::Label(name) => {
                    if !self.is_ours(name) {
                        self.foreign(name, statement.span);
                    }
                    let place = (index, open.last().copied().unwrap_or(0));
                    if self.labels.insert(name, place).is_some() {
                        self.add(Rule::V4, statement.span, format!("label `{name}` twice in one span"));
                    }
                }
                Kind::Declaration { .. } | Kind::Argument { .. } | Kind::Instruction(_) => {}
            }
        }
    }

    pub(super) fn foreign(&mut self, name: &str, span: Span) {
        let prefix = &self.site.claim.prefix;
        let message = format!("`{name}` does not begin with the prefix `{prefix}` of the claim");
        self.add(Rule::V4, span, message);
    }

    pub(super) fn register(&mut self, name: &'w str, register: Register<'w>, content: Content) -> usize {
        let index = self.registers.len();
        self.registers.push(register);
        self.visible.insert(name, Visible { register: index, count: None });
        self.put(index, content);
        index
    }

    /// Declares one register, or `count` of them; gives the first one's index.
    pub(super) fn declare(
        &mut self,
        name: &'w str,
        count: Option<u32>,
        bits: u32,
        is_state: bool,
        span: Span,
    ) -> Option<usize> {
        // Told, and then taken as declared, so that one fault is told once.
        if name == self.context {
            self.add(Rule::V4, span, format!("`{name}` is the context and cannot be a register too"));
        } else if !self.is_ours(name) {
            self.foreign(name, span);
        }
        // `%nt_r<4>` and `%nt_r2` are one name twice, in either order.
        let numbered = |other: &&str| {
            other.strip_prefix(name).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
        };
        let clash = self.find(name).is_some()
            || self.visible.contains_key(name)
            || self.labels.contains_key(name)
            || (count.is_some() && self.visible.keys().chain(self.labels.keys()).any(numbered));
        if clash {
            self.add(Rule::V4, span, format!("`{name}` is declared already where this declaration stands"));
            return None;
        }
        let more = count.unwrap_or(1) as usize;
        if self.registers.len() + more > MOST_REGISTERS {
            self.add(Rule::V3, span, format!("a span with more than {MOST_REGISTERS} registers and states"));
            return None;
        }
        let first = self.registers.len();
        for _ in 0..more {
            self.register(name, Register { bits, state: is_state.then_some(name) }, Content::Unassigned);
        }
        self.visible.insert(name, Visible { register: first, count });
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.push(name);
        }
        Some(first)
    }

    /// The register that a name means.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        if let Some(&Visible { register, count }) = self.visible.get(name) {
            return count.is_none().then_some(register);
        }
        // `%nt_r12` of `%nt_r<16>`: every split into a name and a number is tried, the digits being few. No two splits
        // are declared ([`Judge::declare`]); the first is mostly the one.
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(4);
        (1..=digits).rev().find_map(|digits| {
            let (base, number) = name.split_at_checked(name.len() - digits)?;
            let &Visible { register, count } = self.visible.get(base)?;
            let canonical = number == "0" || !number.starts_with('0');
            let number: u32 = number.parse().ok().filter(|_| canonical)?;
            (number < count?).then_some(register + number as usize)
        })
    }
}
