//! V17: a pruned text is its original minus whole items that nothing kept names.
//!
//! ```text
//! .global .b32 table[4];          kept
//!                                 `.global .b32 other[4096];` was here; the blanks around it stay
//! .entry wanted() { … table … }   kept, so `table` must be
//! ```
//!
//! No graph is walked: if nothing kept names anything dropped, nothing kept can reach it. All of what is kept is looked
//! through, by identifier, also where a name may be a local one or stands in a debug section: to refuse a text that is
//! sound costs the run of an original kernel, to accept one that is not costs more.

use crate::names::identifiers;
use crate::{Report, Rule};
use nt_diag::{Severity, Span};
use nt_ptx::TokenKind;
use nt_ptx::syntax::{Item, ItemKind, Module};
use std::collections::HashSet;

/// Holds a pruned text against its original.
pub(crate) fn check(original: &str, pruned: &str, report: &mut Report) {
    let (module, found) = nt_ptx::parse(original);
    if let Some(error) = found.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
        let message = format!("the original cannot be read: {}", error.message);
        return report.add(Rule::V17, Span::at(0), message);
    }
    check_module(&module, pruned, report);
}

/// Holds a pruned text against its original, which was parsed without errors.
pub(crate) fn check_module(module: &Module<'_>, pruned: &str, report: &mut Report) {
    let Some(items) = compare(module, pruned, report) else { return };

    let mut dropped = HashSet::new();
    for (item, place) in items.iter().filter(|(_, place)| !place.is_kept) {
        match item.kind {
            ItemKind::Function(index) => {
                dropped.extend(module.functions.get(index as usize).map(|function| module.at(function.name)));
            }
            ItemKind::Variable { name, .. } => declared(module, item.span, name, &mut dropped),
            // Of `.alias name, target;` it declares the name.
            ItemKind::Alias => dropped.extend(names(module, item.span).next().map(|name| module.at(name))),
            ItemKind::Header
            | ItemKind::File
            | ItemKind::Section
            | ItemKind::Pragma
            | ItemKind::Other
            | ItemKind::Unknown => {
                let text: String = module.at(item.span).chars().take_while(|&c| c != '\n').take(40).collect();
                let message = format!("`{text}` is dropped here, which is neither a function nor a variable");
                report.add(Rule::V17, Span::at(place.at), message);
            }
        }
    }
    if dropped.is_empty() {
        return;
    }
    for (item, place) in items.iter().filter(|(_, place)| place.is_kept) {
        let text = module.at(item.span);
        identifiers(text, |at, name| {
            // An opcode may be called as a symbol is: `add.f32`. No symbol is followed by a dot.
            let is_opcode = text.as_bytes().get(at + name.len()) == Some(&b'.');
            if !is_opcode && dropped.contains(name) {
                let at = place.at as usize + at;
                report.add(
                    Rule::V17,
                    Span::from(at..at + name.len()),
                    format!("`{name}` is named here, but dropped"),
                );
            }
        });
    }
}

/// What became of an item.
struct Place {
    is_kept: bool,
    /// Where it stands in the pruned text, or would.
    at: u32,
}

/// Walks through both texts. What stands between items stays as it is; each item is there whole, or gone.
fn compare<'m>(module: &'m Module<'_>, pruned: &str, report: &mut Report) -> Option<Vec<(&'m Item, Place)>> {
    let mut places = Vec::new();
    let (mut read, mut at) = (0, 0);
    let differs = |at: usize, report: &mut Report| {
        let message = "the text differs here from what the original has between its items";
        report.add(Rule::V17, Span::from(at..at), message);
    };
    let rest = |at: usize| pruned.as_bytes().get(at..).unwrap_or(&[]);
    for item in &module.items {
        let gap = module.at(Span::new(read, item.span.start)).as_bytes();
        if !rest(at).starts_with(gap) {
            differs(at, report);
            return None;
        }
        at += gap.len();
        // No item is the beginning of another one, so there is no choice in what was kept.
        let text = module.at(item.span).as_bytes();
        let is_kept = rest(at).starts_with(text);
        places.push((item, Place { is_kept, at: Span::from(at..at).start }));
        at += if is_kept { text.len() } else { 0 };
        read = item.span.end;
    }
    let gap = module.text.as_bytes().get(read as usize..).unwrap_or(&[]);
    if rest(at) != gap {
        differs(at, report);
        return None;
    }
    Some(places)
}

/// The names in a range.
fn names<'m>(module: &'m Module<'_>, span: Span) -> impl Iterator<Item = Span> + 'm {
    module.code(span).filter(|(kind, _)| *kind == TokenKind::Name).map(|(_, at)| at)
}

/// The names that a declaration of variables declares: the first, and each behind a comma outside of its brackets.
fn declared<'s>(module: &Module<'s>, span: Span, first: Span, into: &mut HashSet<&'s str>) {
    into.insert(module.at(first));
    let (mut depth, mut next) = (0_u32, false);
    for (kind, at) in module.code(Span::new(first.end, span.end)) {
        match kind {
            TokenKind::OpenBrace | TokenKind::OpenBracket | TokenKind::OpenParen => depth += 1,
            TokenKind::CloseBrace | TokenKind::CloseBracket | TokenKind::CloseParen => {
                depth = depth.saturating_sub(1);
            }
            TokenKind::Comma => next = depth == 0,
            TokenKind::Name if next => {
                into.insert(module.at(at));
                next = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    const ORIGINAL: &str = "// a module
.version 8.0
.target sm_90
.extern .func (.param .b32 r) ext(.param .b32 x);
.global .b32 table[2] = {1, 2}, // two
  more = 3;
.global .u64 pointers[1] = {helper};
.const .b32 unused;
.func helper(.param .b32 x);
.func helper(.param .b32 x) { ret; }
.func other() { ret; }
.alias again, other;
.entry wanted() { .reg .b32 %r<2>; /* unused */ ld.global.b32 %r1, [more]; ret; }
.entry unwanted() { call other; ret; }
.section .debug_str { .b8 1 }
";

    fn check(dropped: &[&str], expected: &[&str]) {
        let mut pruned = ORIGINAL.to_owned();
        for text in dropped {
            assert!(pruned.contains(text), "{text}");
            pruned = pruned.replacen(text, "", 1);
        }
        let report = crate::check_pruned(ORIGINAL, &pruned);
        let found: Vec<_> = report.violations().iter().map(|v| v.message.as_str()).collect();
        assert_eq!(found, expected, "{pruned}");
        for violation in report.violations().iter().filter(|v| !v.span.is_empty()) {
            assert!(
                violation.message.starts_with(&format!("`{}`", violation.span.of(&pruned))),
                "{violation:?}"
            );
        }
    }

    const UNUSED: &str = ".const .b32 unused;";
    const UNWANTED: &str = ".entry unwanted() { call other; ret; }";
    const OTHER: &str = ".func other() { ret; }";
    const ALIAS: &str = ".alias again, other;";
    const TABLE: &str = ".global .b32 table[2] = {1, 2}, // two\n  more = 3;";

    #[test]
    fn whole_items_that_nothing_names() {
        check(&[], &[]);
        check(&[UNUSED, UNWANTED], &[]);
        check(&[UNUSED, UNWANTED, OTHER, ALIAS, ".extern .func (.param .b32 r) ext(.param .b32 x);"], &[]);
    }

    #[test]
    fn what_is_missed() {
        check(&[OTHER, ALIAS], &["`other` is named here, but dropped"]);
        check(&[UNWANTED, OTHER], &["`other` is named here, but dropped"]);
        check(&[TABLE], &["`more` is named here, but dropped"]);
        // One declaration of two.
        let helper = "`helper` is named here, but dropped";
        check(&[".func helper(.param .b32 x);"], &[helper, helper]);
    }

    #[test]
    fn what_is_no_pruning() {
        let differs = "the text differs here from what the original has between its items";
        check(&["ret; }\n.func"], &[differs]);
        check(&["// a module"], &[differs]);
        check(&[" { ret; }"], &[differs]);
        let section =
            "`.section .debug_str { .b8 1 }` is dropped here, which is neither a function nor a variable";
        check(&[".section .debug_str { .b8 1 }"], &[section]);
        assert!(!crate::check_pruned(ORIGINAL, "").is_accepted());
        assert!(!crate::check_pruned(ORIGINAL, &format!("{ORIGINAL} x")).is_accepted());
        assert!(!crate::check_pruned("no ptx", "no ptx").is_accepted());
    }
}
