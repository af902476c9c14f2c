//! V13 and V14: the edits. One parameter for each kernel that has spans, one version for the module, nothing else.
//!
//! ```text
//! /*nt:edit 2e76657273696f6e20372e38{*/.version 8.0/*}nt:edit*/      the whole directive: ptxas wants no comment in it
//! .entry k(.param .u64 p/*nt:edit {*/, .param .align 8 .b8 nt_ctx[32] /*nt:ctx …*//*}nt:edit*/)
//! .entry z/*nt:edit {*/(.param .align 8 .b8 nt_ctx[32] /*nt:ctx …*/)/*}nt:edit*/ .maxntid 128 { … }
//! ```

use crate::claim::Claim;
use crate::lex::{TokenKind, tokens, trivia};
use crate::names::{begins_with, identifiers};
use crate::undo::{Inserted, Undone};
use crate::{Report, Rule};
use nt_diag::Span;
use nt_ptx::syntax::{Function, ItemKind, Kind, Module};
use std::collections::{BTreeMap, HashMap};

/// The functions that got the context, by index in [`Module::functions`].
pub(crate) type Kernels = BTreeMap<usize, Context>;

/// What a parameter edit gave to a function.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) claim: Claim,
    /// The edit, in the woven text.
    pub(crate) span: Span,
}

/// What the edits say.
#[derive(Debug)]
pub(crate) struct Edits {
    pub(crate) kernels: Kernels,
    /// `.version` as it is in the woven text.
    pub(crate) version: (u16, u16),
    /// The edits that are neither of the header nor of a kernel's parameters: of pins, if of anything.
    pub(crate) others: Vec<Inserted>,
}

/// Checks the edits of the header and of parameter lists.
pub(crate) fn edits(module: &Module<'_>, woven: &str, undone: &Undone, report: &mut Report) -> Edits {
    let mut kernels = Kernels::new();
    let mut others = Vec::new();
    let mut raised = module.version.map_or((0, 0), nt_ptx::syntax::Version::pair);
    let mut versions = 0;
    let number = module.version.map(|version| version.number);
    let directive = number.and_then(|number| module.items.iter().find(|item| item.span.contains(number)));
    let headers = module.items.iter().filter(|item| matches!(item.kind, ItemKind::Header));
    let headers: Vec<Span> = headers.map(|item| item.span).collect();
    // Heads by where they end: at the body, or with the declaration.
    let mut heads: Vec<(Span, usize)> = Vec::new();
    for (index, function) in module.functions.iter().enumerate() {
        let end = function.body.as_ref().map_or(function.span.end, |body| body.span.start);
        heads.push((Span::new(function.span.start, end), index));
    }
    heads.sort();
    for edit in undone.inserted.iter().filter(|inserted| inserted.is_edit) {
        if directive.is_some_and(|directive| directive.span == edit.old) {
            versions += 1;
            raised = version(module, woven, edit, versions, report).unwrap_or(raised);
            continue;
        }
        if touches(&headers, edit.old) {
            report.add(
                Rule::V14,
                edit.whole,
                "an edit of the header that does not replace the whole of `.version`",
            );
            continue;
        }
        let before = heads.partition_point(|(head, _)| head.start < edit.old.start);
        let head = before
            .checked_sub(1)
            .and_then(|last| heads.get(last))
            .filter(|(head, _)| head.start < edit.old.start && head.contains(edit.old));
        let Some(&(_, index)) = head else {
            others.push(*edit);
            continue;
        };
        // Indices come from the list itself.
        let Some(function) = module.functions.get(index) else { continue };
        match parameter(module, function, woven, edit, false) {
            Ok(claim) => {
                if !claim.states.is_empty() {
                    report.add(Rule::V13, edit.whole, "a kernel has no caller whose states it could get");
                }
                if kernels.insert(index, Context { claim, span: edit.whole }).is_some() {
                    report.add(Rule::V13, edit.whole, "a second context parameter");
                }
            }
            Err((span, message)) => report.add(Rule::V13, span, message),
        }
    }
    agree(module, undone, &kernels, report);
    Edits { kernels, version: raised, others }
}

/// V14: the number only rises. Gives it.
fn version(
    module: &Module<'_>,
    woven: &str,
    edit: &Inserted,
    nth: u32,
    report: &mut Report,
) -> Option<(u16, u16)> {
    let number = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        let part = |digits: &str| {
            let plain = !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit());
            if plain { digits.parse::<u16>().ok() } else { None }
        };
        Some((part(major)?, part(minor)?))
    };
    let new = edit.inner.of(woven).strip_prefix(".version ").and_then(number);
    match new {
        _ if nth > 1 => report.add(Rule::V14, edit.whole, "the version is edited twice"),
        None => report.add(Rule::V14, edit.inner, "this is not `.version` and a number"),
        Some(new) if module.version.is_none_or(|old| new < old.pair()) => {
            report.add(Rule::V14, edit.inner, "the version is lowered");
        }
        Some(_) => {}
    }
    new
}

/// Does a range touch one of `.version`, `.target` and `.address_size`?
///
/// What is inserted right behind one touches it too: `sm_90` might go on with it.
fn touches(headers: &[Span], old: Span) -> bool {
    headers.iter().any(|header| old.start <= header.end && header.start < old.end.max(old.start + 1))
}

/// V13 for one edit: a context parameter, last in the list of an entry, or of a function's clone.
pub(crate) fn parameter(
    module: &Module<'_>,
    function: &Function,
    woven: &str,
    edit: &Inserted,
    is_clone: bool,
) -> Result<Claim, (Span, String)> {
    let fail = |span: Span, message: &str| Err((span, message.to_owned()));
    if !function.is_entry && !is_clone {
        return fail(
            edit.whole,
            "a function is given a parameter, and calls through pointers would not know",
        );
    }
    if !edit.old.is_empty() {
        return fail(edit.whole, "an edit of a signature that replaces something");
    }
    // What the text must begin with, and where it may stand.
    let at = edit.old.start;
    let (opening, from, to) = match (function.list, function.params.last()) {
        (None, _) => (Some(b'('), function.name.end, function.name.end),
        (Some(list), None) => (None, list.start + 1, list.end.saturating_sub(1)),
        (Some(list), Some(last)) => (Some(b','), last.span.end, list.end.saturating_sub(1)),
    };
    let whole = |from: u32, to: u32| trivia(module.at(Span::new(from, to))) as u32 == to.saturating_sub(from);
    if at < from || to < at || !whole(from, at) || !whole(at, to) {
        return fail(edit.whole, "the context parameter is not the last of its list");
    }

    let text = edit.inner.of(woven);
    let all = tokens(text, edit.inner.start).map_err(|error| (error.span, error.message.to_owned()))?;
    let (comments, code): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|token| token.kind == TokenKind::Comment);
    let [claim] = comments.as_slice() else {
        return fail(edit.whole, "the context parameter does not have exactly one claim beside it");
    };
    let claim = Claim::parse(claim.text, claim.span.start).map_err(|error| (error.span, error.message))?;

    let name = format!("{}ctx", claim.prefix);
    let size = claim.size.to_string();
    let mut wanted: Vec<&str> = match opening {
        Some(b'(') => vec!["("],
        Some(_) => vec![","],
        None => vec![],
    };
    wanted.extend([".param", ".align", "8", ".b8", name.as_str(), "[", size.as_str(), "]"]);
    if opening == Some(b'(') {
        wanted.push(")");
    }
    for (index, expected) in wanted.iter().enumerate() {
        match code.get(index) {
            Some(found) if found.text == *expected => {}
            Some(found) => {
                return Err((found.span, format!("expected `{expected}` here, as the claim says")));
            }
            None => return Err((edit.whole, format!("expected `{expected}` at the end of this edit"))),
        }
    }
    match code.get(wanted.len()) {
        Some(more) => fail(more.span, "more than the one context parameter"),
        None => Ok(claim),
    }
}

/// V13 and V4 for the module: all declarations of an entry alike, no symbol an operand, one prefix and it is free.
fn agree(module: &Module<'_>, undone: &Undone, kernels: &Kernels, report: &mut Report) {
    let Some(first) = kernels.values().next() else { return };
    let prefix = &first.claim.prefix;
    for context in kernels.values().filter(|context| context.claim.prefix != *prefix) {
        report.add(
            Rule::V4,
            context.span,
            format!("another prefix than `{prefix}`, which other kernels have"),
        );
    }

    let mut probed: HashMap<&str, &Context> = HashMap::new();
    for (&index, context) in kernels {
        let Some(function) = module.functions.get(index) else { continue };
        let other = probed.entry(module.at(function.name)).or_insert(context);
        if other.claim != context.claim {
            report.add(Rule::V13, context.span, "another declaration of this kernel has another claim");
        }
    }
    // Where the names of probed kernels stand as names, and not as operands.
    let mut declared: Vec<u32> = Vec::new();
    for (index, function) in module.functions.iter().enumerate() {
        let name = module.at(function.name);
        if probed.contains_key(name) {
            declared.push(function.name.start);
            if !kernels.contains_key(&index) {
                let message =
                    format!("a declaration of `{name}` without the context parameter that another one has");
                report.add(Rule::V13, undone.woven(function.name), message);
            }
        }
    }
    declared.sort_unstable();
    let sections = sections(module);
    let lengths: u128 = probed.keys().fold(0, |lengths, name| lengths | 1 << name.len().min(127));
    identifiers(module.text, |at, name| {
        let here = Span::from(at..at + name.len());
        if begins_with(name, prefix) {
            let message = format!("`{name}` of the original begins with the prefix `{prefix}`");
            report.add(Rule::V4, undone.woven(here), message);
        }
        if lengths >> name.len().min(127) & 1 == 1
            && probed.contains_key(name)
            && declared.binary_search(&here.start).is_err()
            // A kernel may be called `add`, as an opcode is. A symbol is never followed by a dot.
            && module.text.as_bytes().get(at + name.len()) != Some(&b'.')
            && !sections.iter().any(|section| section.contains(here))
        {
            let message = format!("`{name}` is an operand here, so that its signature must stay");
            report.add(Rule::V13, undone.woven(here), message);
        }
    });
}

/// Debug sections: what they name is no operand.
fn sections(module: &Module<'_>) -> Vec<Span> {
    let outer =
        module.items.iter().filter(|item| matches!(item.kind, ItemKind::Section)).map(|item| item.span);
    let inner = module.statements.iter().filter(|statement| {
        matches!(statement.kind, Kind::Directive) && module.at(statement.span).starts_with(".section")
    });
    outer.chain(inner.map(|statement| statement.span)).collect()
}
