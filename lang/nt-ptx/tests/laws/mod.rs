//! What must hold for every text, as plain functions: the property tests call them, and so can a fuzz target.

#![allow(clippy::panic, reason = "a broken law ends the run")]

use nt_diag::{Found, Severity, Span};
use nt_ptx::syntax::{Kind, Module};
use nt_ptx::{Edits, TokenKind};

/// All of them.
pub(crate) fn all(text: &str) {
    reading_loses_nothing(text);
    fragments_lose_nothing(text);
    tokens_cover_the_text(text);
    nodes_are_in_order(text);
    memory_is_bounded(text);
    later_stages_take_anything(text);
    insertions_can_be_taken_away(text);
}

/// `spell(parse(x)) == x`.
pub(crate) fn reading_loses_nothing(text: &str) {
    let (module, _) = nt_ptx::parse(text);
    assert_eq!(nt_ptx::spell(&module), text);
}

/// The same of statements without a function.
pub(crate) fn fragments_lose_nothing(text: &str) {
    let (module, _) = nt_ptx::parse_statements(text);
    assert_eq!(nt_ptx::spell(&module), text);
}

/// Between two tokens there are blanks and nothing else.
pub(crate) fn tokens_cover_the_text(text: &str) {
    let (module, _) = nt_ptx::parse(text);
    let mut at = 0;
    for (_, span) in module.tokens(whole(text)) {
        assert!(!span.is_empty() && span.start >= at, "{span:?} behind {at}");
        assert!(is_blank(module.at(Span::new(at, span.start))));
        at = span.end;
    }
    assert!(is_blank(module.at(Span::new(at, whole(text).end))));
}

/// Items do not overlap and rise; so do the statements of a body, inside of it; braces of scopes match.
pub(crate) fn nodes_are_in_order(text: &str) {
    let (module, found) = nt_ptx::parse(text);
    let mut at = 0;
    for item in &module.items {
        assert!(item.span.start >= at && !item.span.is_empty(), "{item:?} behind {at}");
        at = item.span.end;
    }
    assert!(at <= whole(text).end);
    for function in &module.functions {
        let body = function.body.as_ref().map_or(function.span, |body| body.span);
        assert!(function.span.contains(body));
        let (mut at, mut depth) = (body.start, 0u32);
        for statement in module.body(function) {
            assert!(statement.span.start >= at && body.contains(statement.span), "{statement:?} in {body:?}");
            at = statement.span.end;
            match statement.kind {
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.checked_sub(1).unwrap_or_else(|| panic!("{statement:?}")),
                _ => (),
            }
            parts_are_inside(&module, statement.span, statement.kind);
        }
        assert!(depth == 0 || found.has_errors(), "{} scopes are open", depth);
    }
}

/// No text is held in more memory than a fixed multiple of it: no node without a byte of its own, no vector with more than
/// twice the room that it needs, and an end to what is said of one text. (Of real texts it is one and a half times the text:
/// `benches/memory.rs`.)
pub(crate) fn memory_is_bounded(text: &str) {
    fn check<T>(nodes: &[T], capacity: usize, text: &str) {
        assert!(nodes.len() <= text.len(), "{} nodes in {} bytes", nodes.len(), text.len());
        assert!(
            capacity <= 2 * nodes.len() + 64 + text.len() / 8,
            "room for {capacity}, {} used",
            nodes.len()
        );
    }
    let (module, mut found) = nt_ptx::parse(text);
    check(&module.items, module.items.capacity(), text);
    check(&module.functions, module.functions.capacity(), text);
    check(&module.statements, module.statements.capacity(), text);
    nt_ptx::resolve(&module, &mut found);
    assert!(found.iter().count() <= 1_000, "{} findings", found.iter().count());
}

fn parts_are_inside(module: &Module<'_>, span: Span, kind: Kind) {
    let Kind::Instruction(instruction) = kind else {
        return;
    };
    let start = instruction.guard.map_or(span.start, |guard| guard.span.end);
    assert!(span.start <= start && start <= instruction.opcode.start);
    assert!(instruction.opcode.end <= instruction.operands.start && instruction.operands.end <= span.end);
    let mut at = instruction.operands.start;
    for operand in module.operands(&instruction) {
        assert!(at <= operand.span.start && operand.span.end <= instruction.operands.end);
        at = operand.span.end;
        module.address(&operand);
    }
    assert!(!module.opcode(&instruction).base.is_empty());
}

/// Resolving, flow and reach take what the reader gives, faulty as it may be.
pub(crate) fn later_stages_take_anything(text: &str) {
    let (module, mut found) = nt_ptx::parse(text);
    let info = nt_ptx::resolve(&module, &mut found);
    assert_eq!(info.functions.len(), module.functions.len());
    for (index, function) in module.functions.iter().enumerate() {
        let flow = nt_ptx::flow(&module, &info, index);
        assert_eq!(flow.end_reachable, info.functions[index].end_reachable, "{}", module.at(function.name));
        let blocks: u32 = flow.blocks.iter().map(|block| block.statements.end - block.statements.start).sum();
        assert_eq!(blocks as usize, module.body(function).len());
        for statement in module.body(function) {
            if let Kind::Instruction(instruction) = statement.kind {
                for (kind, at) in module.code(instruction.operands) {
                    if kind == TokenKind::Name {
                        info.declared_at(index, at.start, module.at(at));
                        info.label_at(index, at.start, module.at(at));
                    }
                }
            }
        }
        assert!(info.reach(&[index]).functions.contains(&u32::try_from(index).unwrap_or(0)));
    }
    nt_ptx::identifiers_with_prefix(&module, "nt_");
}

/// Text put before every statement and taken away again gives the text.
pub(crate) fn insertions_can_be_taken_away(text: &str) {
    const MARK: &str = "/*nt:0{*/ activemask.b32 %nt_m; /*}nt:0*/";
    let (module, found) = nt_ptx::parse(text);
    if text.contains("nt:0") {
        return;
    }
    let mut edits = Edits::new();
    for statement in &module.statements {
        edits.insert(statement.span.start, MARK);
    }
    let edited = edits.apply(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(edited.replace(MARK, ""), text);
    // In a sound text the insertions are statements, and nothing else is read differently.
    let (again, mut found_again) = nt_ptx::parse(&edited);
    if !found.has_errors() {
        assert_eq!(again.statements.len(), 2 * module.statements.len());
        assert!(!only_errors(&mut found_again));
    }
}

fn only_errors(found: &mut Found) -> bool {
    found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

fn whole(text: &str) -> Span {
    Span::from(0..text.len())
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}
