//! Scopes of a function: what its names mean at a place.
//!
//! ```text
//! { .reg .b32 %r<9>; { .reg .b64 %r1; here } there }
//! ```
//!
//! `%r1` is 64 bits wide *here* and 32 *there*, `%r2` is 32 in both. Registers must be declared before they are used
//! and the nearest scope wins, over special registers too. Labels are seen in all of their scope, before and behind,
//! and from the scopes inside it, but not from outside.
//!
//! A range `%r<9>` declares `%r0` to `%r8`. ptxas looks a numbered name up by all of its last digits, so `%x1<3>`
//! declares names that nothing can reach, and `%r07` is `%r7`.

use super::{Declared, MOST_FOUND};
use crate::constant::constant;
use crate::syntax::{Function, Kind, Module};
use crate::token::TokenKind;
use nt_diag::{Diagnostic, Found, Span};

/// The scopes of one function and the names in them.
#[derive(Debug, Clone, Default)]
pub(super) struct Scopes<'s> {
    /// By start; the first is the function with its parameters.
    scopes: Vec<Scope>,
    /// By name, then scope.
    names: Vec<Name<'s>>,
    /// By name, then scope.
    labels: Vec<Label<'s>>,
}

#[derive(Debug, Clone, Copy)]
struct Scope {
    span: Span,
    /// Its own index for the first.
    parent: usize,
}

#[derive(Debug, Clone, Copy)]
struct Name<'s> {
    scope: usize,
    /// `Some(9)` of `%r<9>`.
    count: Option<u64>,
    declared: Declared<'s>,
}

#[derive(Debug, Clone, Copy)]
struct Label<'s> {
    name: &'s str,
    scope: usize,
    statement: u32,
    at: Span,
}

/// One name of a declaration: of `.global .u32 a = 1, b[2];` two.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declarator<'s> {
    pub(super) declared: Declared<'s>,
    /// Of `%r<9>`.
    pub(super) count: Option<u64>,
    /// What stands behind `=`; empty if nothing does.
    pub(super) initialiser: Span,
}

impl<'s> Scopes<'s> {
    /// Reads the declarations and labels of a function.
    pub(super) fn of(module: &Module<'s>, function: &Function, found: &mut Found) -> Self {
        let mut all = Scopes {
            scopes: vec![Scope { span: function.span, parent: 0 }],
            names: Vec::new(),
            labels: Vec::new(),
        };
        for list in [function.returns, function.list].into_iter().flatten() {
            let inside = Span::new(list.start + 1, list.end);
            for part in declarators_of_parameters(module, inside) {
                all.names.push(Name { scope: 0, count: None, declared: part });
            }
        }
        let first = function.body.as_ref().map_or(0, |body| body.statements.start);
        let mut scope = 0;
        for (index, statement) in (first..).zip(module.body(function)) {
            match statement.kind {
                Kind::Open => {
                    // Ends with the function until its brace is met.
                    let span = Span::new(statement.span.start, function.span.end);
                    all.scopes.push(Scope { span, parent: scope });
                    scope = all.scopes.len() - 1;
                }
                Kind::Close => {
                    // The reader gives no `Close` without its `Open`, so this is never the function's own scope.
                    if let Some(closed) = all.scopes.get_mut(scope) {
                        closed.span.end = statement.span.end;
                        scope = closed.parent;
                    }
                }
                Kind::Declaration(_) => {
                    for Declarator { declared, count, .. } in declarators(module, statement.span) {
                        all.names.push(Name { scope, count, declared });
                    }
                }
                Kind::Label(at) => {
                    all.labels.push(Label { name: module.at(at), scope, statement: index, at });
                }
                _ => (),
            }
        }
        // Stable, so that of two of a name the first declared comes first.
        all.names.sort_by_key(|name| (name.declared.name, name.scope));
        all.labels.sort_by_key(|label| (label.name, label.scope));
        all.report_duplicates(found);
        all
    }

    fn report_duplicates(&self, found: &mut Found) {
        let mut report = |what: &str, name: &str, first: Span, second: Span| {
            let d = format!("{what} `{name}` is declared twice in a scope");
            if found.len() < MOST_FOUND {
                let d = Diagnostic::error("duplicate-name", second, d);
                found.push(d.note_at(first, "the first declaration"));
            }
        };
        for pair in self.names.windows(2) {
            if let [a, b] = pair
                && (a.declared.name, a.scope) == (b.declared.name, b.scope)
                && a.count.is_some() == b.count.is_some()
                && b.declared.name != "_"
            {
                report("the name", b.declared.name, a.declared.at, b.declared.at);
            }
        }
        for pair in self.labels.windows(2) {
            if let [a, b] = pair
                && (a.name, a.scope) == (b.name, b.scope)
            {
                report("the label", b.name, a.at, b.at);
            }
        }
    }

    /// The innermost scope at a place and those around it, the function's last.
    fn around(&self, offset: u32) -> impl Iterator<Item = usize> {
        let holds = move |scope: &Scope| scope.span.start < offset && offset < scope.span.end;
        let last = self.scopes.partition_point(|scope| scope.span.start < offset).saturating_sub(1);
        let mut next = (!self.scopes.is_empty()).then_some(last);
        std::iter::from_fn(move || {
            loop {
                let index = next?;
                let scope = self.scopes.get(index)?;
                next = (index != 0).then_some(scope.parent);
                if index == 0 || holds(scope) {
                    return Some(index);
                }
            }
        })
    }

    pub(super) fn declared_at(&self, offset: u32, name: &str) -> Option<Declared<'s>> {
        // `_` is a sink, and the name of parameters that nobody means to use.
        if name == "_" {
            return None;
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // Without digits there is no number; one too large for any range is none.
        let number: Option<u64> = name.get(stem.len()..).and_then(|digits| digits.parse().ok());
        self.around(offset).find_map(|scope| {
            let plain = self.in_scope(name, scope).find(|n| n.count.is_none() && n.declared.at.end <= offset);
            let of_range = || {
                let number = number?;
                self.in_scope(stem, scope)
                    .find(|n| n.count.is_some_and(|count| number < count) && n.declared.at.end <= offset)
            };
            plain.or_else(of_range).map(|n| n.declared)
        })
    }

    fn in_scope(&self, name: &str, scope: usize) -> impl Iterator<Item = &Name<'s>> {
        let first = self.names.partition_point(|n| (n.declared.name, n.scope) < (name, scope));
        self.names
            .get(first..)
            .unwrap_or(&[])
            .iter()
            .take_while(move |n| n.declared.name == name && n.scope == scope)
    }

    pub(super) fn label_at(&self, offset: u32, name: &str) -> Option<u32> {
        self.around(offset).find_map(|scope| {
            let first = self.labels.partition_point(|label| (label.name, label.scope) < (name, scope));
            let label = self.labels.get(first)?;
            (label.name == name && label.scope == scope).then_some(label.statement)
        })
    }

    /// The names of all labels, sorted.
    pub(super) fn labels(&self) -> impl Iterator<Item = &'s str> {
        self.labels.iter().map(|label| label.name)
    }
}

/// The names that a declaration declares, the span being that of all of it, a space its first dotted word but for
/// linkage.
pub(super) fn declarators<'s>(module: &Module<'s>, span: Span) -> Vec<Declarator<'s>> {
    let mut all: Vec<Declarator<'s>> = Vec::new();
    let (mut space, mut ty, mut lanes) = ("", "", 1u8);
    let (mut depth, mut expected) = (0u32, true);
    let mut initialiser = None;
    let mut less = None;
    for (kind, at) in module.code(span) {
        let text = module.at(at);
        match kind {
            TokenKind::OpenBrace | TokenKind::OpenBracket | TokenKind::OpenParen => depth += 1,
            TokenKind::CloseBrace | TokenKind::CloseBracket | TokenKind::CloseParen => {
                depth = depth.saturating_sub(1);
            }
            _ if depth > 0 => (),
            TokenKind::Dotted if expected => match text {
                ".visible" | ".extern" | ".weak" | ".common" | ".align" | ".attribute" | ".ptr" => (),
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                _ if space.is_empty() => space = text,
                // Of `.global .texref` the type comes second; behind it nothing that matters does.
                _ if ty.is_empty() => ty = text,
                _ => (),
            },
            TokenKind::Name if expected => {
                expected = false;
                let declared = Declared { name: text, space, ty, lanes, at };
                all.push(Declarator { declared, count: None, initialiser: Span::at(at.end) });
            }
            TokenKind::Less => less = Some(at.end),
            TokenKind::Greater => {
                if let (Some(last), Some(start)) = (all.last_mut(), less.take()) {
                    let count = constant(module.at(Span::new(start, at.start)));
                    last.count = Some(count.and_then(|n| u64::try_from(n).ok()).unwrap_or(0));
                }
            }
            TokenKind::Equal => initialiser = Some(at.end),
            TokenKind::Comma | TokenKind::Semicolon => {
                if let (Some(last), Some(start)) = (all.last_mut(), initialiser.take()) {
                    last.initialiser = Span::new(start, at.start);
                }
                expected = true;
            }
            _ => (),
        }
    }
    all
}

/// The same of a list of parameters, where every part has a space and a type of its own.
fn declarators_of_parameters<'s>(module: &Module<'s>, list: Span) -> Vec<Declared<'s>> {
    let mut all = Vec::new();
    let (mut space, mut ty, mut lanes) = ("", "", 1u8);
    let mut named = false;
    for (kind, at) in module.code(list) {
        let text = module.at(at);
        match kind {
            TokenKind::Comma => (space, ty, lanes, named) = ("", "", 1, false),
            TokenKind::Dotted if space.is_empty() => space = text,
            TokenKind::Dotted => match text {
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                _ if ty.is_empty() && crate::parse::type_size(text).is_some() => ty = text,
                _ => (),
            },
            TokenKind::Name if !named => {
                named = true;
                all.push(Declared { name: text, space, ty, lanes, at });
            }
            _ => (),
        }
    }
    all
}
