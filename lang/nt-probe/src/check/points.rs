//! Tracepoints: providers, classes, qualifiers, placements. Language reference, Tracepoints.
//!
//! `kernel:` points become tracepoints of the IR here, those of instructions in `instructions.rs`, all others in `places.rs`.
//! `gcn:` is refused by name: it is not compiled yet.

use super::{Checker, instructions, places};
use crate::ast::{Atom, Part, Point, Unit};
use crate::literal::unescape;
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::Tracepoint;

const PROVIDERS: &[&str] = &["kernel", "func", "bb", "inst", "ptx", "gcn", "line", "mark"];
pub(super) const PLACEMENTS: &[&str] = &["before", "after", "reach"];
pub(super) const EVENTS: &[&str] = &["entry", "exit"];

/// What the points of a probe came to.
#[derive(Debug, Default)]
pub(super) struct Points {
    pub(super) list: Vec<Tracepoint>,
    /// Was one refused, so that nothing more can be said about the body?
    pub(super) refused: bool,
}

pub(super) fn check(checker: &mut Checker<'_, '_>, unit: Option<Unit<'_>>, points: &[Point<'_>]) -> Points {
    let mut checked = Points::default();
    for point in points {
        let points = match point.provider.text {
            "kernel" => kernel(checker, point),
            "inst" => instructions::by_class(checker, point),
            "ptx" => instructions::text(checker, point),
            "gcn" => later(checker, point, "`gcn:` tracepoints"),
            "bb" => places::blocks(checker, point),
            "func" => places::functions(checker, point),
            "line" => places::lines(checker, point),
            "mark" => places::marks(checker, point),
            other => {
                let message = format!("unknown kind of tracepoint `{other}:`");
                let diagnostic = Diagnostic::error("unknown-class", point.provider.span, message)
                    .suggest(other, PROVIDERS.iter().copied())
                    .note("kinds are kernel: func: bb: inst: ptx: gcn: line: mark:");
                checker.found.push(diagnostic);
                None
            }
        };
        checked.refused |= points.is_none();
        checked.list.extend(points.into_iter().flatten());
        // Block probes stand where blocks begin and end.
        if let Some(Unit { unit: nt_ir::program::Unit::Block, word }) = unit
            && PROVIDERS.contains(&point.provider.text)
            && point.provider.text != "kernel"
        {
            let diagnostic = Diagnostic::error(
                "block-probe",
                point.span,
                "block probes run at kernel:entry and kernel:exit",
            )
            .note_at(word.span, "the probe runs once a block")
            .help("make it a `warp` or `thread` probe");
            checker.found.push(diagnostic);
            checked.refused = true;
        }
    }
    checked
}

/// A kind of points that is not compiled yet.
fn later(checker: &mut Checker<'_, '_>, point: &Point<'_>, what: &'static str) -> Option<Vec<Tracepoint>> {
    checker.not_yet(point.span, what);
    None
}

/// `kernel:entry`, `kernel:"GLOB":exit`. `None` if it is refused.
fn kernel(checker: &mut Checker<'_, '_>, point: &Point<'_>) -> Option<Vec<Tracepoint>> {
    let example = "kernel:\"*reduce*\":entry";
    let (globs, event) = match point.parts.as_slice() {
        [event] => (vec![None], event),
        [name, event] if !(is_word(name, EVENTS) && is_word(event, PLACEMENTS)) => {
            (globs(checker, name, "a kernel's name", example)?, event)
        }
        [_, more] | [_, _, more, ..] => {
            let help = "`kernel:entry` is the first thing that runs, `kernel:exit` the last";
            refuse(checker, part_span(more), "bad-placement", "`kernel:` points have no placement", help);
            return None;
        }
        [] => return None,
    };
    let mut list = Vec::new();
    let Part::Path(path) = event else { return unknown_event(checker, part_span(event), "") };
    let [events] = path.as_slice() else { return unknown_event(checker, part_span(event), "") };
    for event in events {
        for kernel in &globs {
            let kernel = kernel.clone();
            match event {
                Atom::Word(Word { text: "entry", .. }) => list.push(Tracepoint::KernelEntry { kernel }),
                Atom::Word(Word { text: "exit", .. }) => list.push(Tracepoint::KernelExit { kernel }),
                Atom::Any(_) => {
                    list.push(Tracepoint::KernelEntry { kernel: kernel.clone() });
                    list.push(Tracepoint::KernelExit { kernel });
                }
                Atom::Word(word) => return unknown_event(checker, word.span, word.text),
                Atom::Glob(word) => return unknown_event(checker, word.span, word.text.trim_matches('"')),
            }
        }
    }
    Some(list)
}

fn unknown_event(checker: &mut Checker<'_, '_>, span: Span, name: &str) -> Option<Vec<Tracepoint>> {
    let diagnostic = Diagnostic::error("unknown-class", span, "kernels have the points `entry` and `exit`")
        .suggest(name, EVENTS.iter().copied())
        .help("the kernel's name comes first: kernel:\"*reduce*\":entry");
    checker.found.push(diagnostic);
    None
}

/// The globs of a kernel's name or an opcode, which is `what`; `*` alone is `None`, any.
pub(super) fn globs(
    checker: &mut Checker<'_, '_>,
    part: &Part<'_>,
    what: &str,
    example: &str,
) -> Option<Vec<Option<String>>> {
    if let Part::Param(_) = part {
        checker.not_yet(part_span(part), super::exprs::ARGUMENTS);
        return None;
    }
    let Part::Path(path) = part else {
        let message = format!("{what} is a word or a glob in quotes");
        refuse(checker, part_span(part), "unknown-class", &message, example);
        return None;
    };
    let [atoms] = path.as_slice() else {
        let message = format!("{what} with a `.` stands in quotes");
        let quoted = format!("write \"{}\"", part_span(part).of(checker.text));
        refuse(checker, part_span(part), "unknown-class", &message, &quoted);
        return None;
    };
    let glob = |atom: &Atom<'_>| match atom {
        Atom::Any(_) => None,
        Atom::Word(word) => Some(word.text.to_owned()),
        // Escapes were checked with the tokens.
        Atom::Glob(word) => Some(unescape(word.text).unwrap_or_default()),
    };
    Some(atoms.iter().map(glob).collect())
}

pub(super) fn refuse(
    checker: &mut Checker<'_, '_>,
    span: Span,
    slug: &'static str,
    message: &str,
    help: &str,
) {
    checker.found.push(Diagnostic::error(slug, span, message).help(help));
}

/// Is the part one word, of these?
fn is_word(part: &Part<'_>, words: &[&str]) -> bool {
    let Part::Path(path) = part else { return false };
    matches!(path.iter().flatten().collect::<Vec<_>>().as_slice(), [Atom::Word(word)] if words.contains(&word.text))
}

/// The text of a part.
pub(super) fn part_span(part: &Part<'_>) -> Span {
    let atom = |atom: &Atom<'_>| match atom {
        Atom::Word(word) | Atom::Glob(word) => word.span,
        Atom::Any(span) => *span,
    };
    match part {
        Part::Path(path) => {
            let mut spans = path.iter().flatten().map(atom);
            let first = spans.next().unwrap_or_default();
            spans.fold(first, Span::to)
        }
        Part::Lines(first, last) => last.map_or(first.span, |last| first.span.to(last.span)),
        Part::Param(word) => word.span,
    }
}
