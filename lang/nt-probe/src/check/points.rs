//! Tracepoints: providers, classes, qualifiers, placements. Language reference, Tracepoints.
//!
//! `kernel:entry` and `kernel:exit` become tracepoints of the IR. The others are held to their shape and words, then
//! refused by name: they are not compiled yet.

use super::Checker;
use crate::ast::{Atom, Part, Point, Unit};
use crate::literal::unescape;
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::Tracepoint;

/// Kinds of instructions, as `inst:` takes them, and what they are.
pub(crate) const CLASSES: &[(&str, &str)] = &[
    ("load", "reads memory"),
    ("store", "writes memory"),
    ("atomic", "reads and writes memory at once, and gives the old value"),
    ("reduce", "the same without a result"),
    ("access", "load, store, atomic or reduce"),
    ("async_copy", "copies into shared memory, a lane at a time"),
    ("bulk_copy", "copies a run of bytes"),
    ("tensor_copy", "copies a box of a tensor"),
    ("copy", "the three copies"),
    ("prefetch", "asks for memory early"),
    ("texture", "textures and surfaces"),
    ("mma", "matrix multiply-add"),
    ("barrier", "barriers of blocks, warps and clusters"),
    ("mbarrier", "barriers in memory"),
    ("commit", "ends a group of asynchronous work"),
    ("wait", "waits for asynchronous work"),
    ("fence", "orders memory"),
    ("sync", "barrier, mbarrier, commit, wait or fence"),
    ("sleep", "does nothing for a while"),
    ("branch", "jumps"),
    ("split", "jumps that may part a warp"),
    ("call", "calls a function"),
    ("exit", "returns or ends"),
    ("shuffle", "moves values between lanes"),
    ("vote", "asks all lanes"),
    ("sfu", "sines, roots, logarithms …"),
    ("convert", "changes types"),
    ("int", "integer arithmetic"),
    ("float", "floating-point arithmetic"),
    ("logic", "bits"),
    ("compare", "sets predicates"),
    ("move", "moves values"),
    ("other", "what is none of these"),
];

/// What narrows a class.
pub(crate) const QUALIFIERS: &[&str] = &[
    "global",
    "shared",
    "local",
    "const",
    "param",
    "generic",
    "cluster",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "v2",
    "v4",
    "v8",
    "f16",
    "bf16",
    "f32",
    "f64",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "matrix",
    "tensor",
    "block",
    "warp",
    "arrive",
    "sync",
    "init",
    "expect",
    "conditional",
    "uniform",
    "backward",
    "scalar",
];

const PROVIDERS: &[&str] = &["kernel", "func", "bb", "inst", "ptx", "gcn", "line", "mark"];
const PLACEMENTS: &[&str] = &["before", "after", "reach"];
const EVENTS: &[&str] = &["entry", "exit"];
/// Classes whose instructions have no place behind them.
const NOTHING_AFTER: &[&str] = &["branch", "split", "exit"];

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
        let before = checker.found.len();
        match point.provider.text {
            "kernel" => kernel(checker, point, &mut checked.list),
            "inst" => {
                instruction(checker, point);
                if checker.found.len() == before {
                    checker.not_yet(point.span, "`inst:` tracepoints");
                }
            }
            "bb" => checker.not_yet(point.span, "`bb:` tracepoints"),
            "func" => checker.not_yet(point.span, "`func:` tracepoints"),
            "ptx" | "gcn" => checker.not_yet(point.span, "`ptx:` and `gcn:` tracepoints"),
            "line" => checker.not_yet(point.span, "`line:` tracepoints"),
            "mark" => checker.not_yet(point.span, "`mark:` tracepoints"),
            other => {
                let message = format!("unknown kind of tracepoint `{other}:`");
                let diagnostic = Diagnostic::error("unknown-class", point.provider.span, message)
                    .suggest(other, PROVIDERS.iter().copied())
                    .note("kinds are kernel: func: bb: inst: ptx: gcn: line: mark:");
                checker.found.push(diagnostic);
            }
        }
        checked.refused |= checker.found.len() > before || point.provider.text != "kernel";
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
        }
    }
    checked
}

/// `kernel:entry`, `kernel:"GLOB":exit`
fn kernel(checker: &mut Checker<'_, '_>, point: &Point<'_>, list: &mut Vec<Tracepoint>) {
    let (globs, event) = match point.parts.as_slice() {
        [event] => (vec![None], event),
        [name, event] if !(is_word(name, EVENTS) && is_word(event, PLACEMENTS)) => match globs(checker, name)
        {
            Some(globs) => (globs, event),
            None => return,
        },
        [_, more] | [_, _, more, ..] => {
            return refuse(
                checker,
                part_span(more),
                "bad-placement",
                "`kernel:` points have no placement",
                "`kernel:entry` is the first thing that runs, `kernel:exit` the last",
            );
        }
        [] => return,
    };
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
}

fn unknown_event(checker: &mut Checker<'_, '_>, span: Span, name: &str) {
    let diagnostic = Diagnostic::error("unknown-class", span, "kernels have the points `entry` and `exit`")
        .suggest(name, EVENTS.iter().copied())
        .help("the kernel's name comes first: kernel:\"*reduce*\":entry");
    checker.found.push(diagnostic);
}

/// The globs of a kernel's name; `*` is any kernel.
fn globs(checker: &mut Checker<'_, '_>, part: &Part<'_>) -> Option<Vec<Option<String>>> {
    if let Part::Param(_) = part {
        checker.not_yet(part_span(part), super::exprs::ARGUMENTS);
        return None;
    }
    let Part::Path(path) = part else {
        refuse(
            checker,
            part_span(part),
            "unknown-class",
            "a kernel's name is a word or a glob in quotes",
            "kernel:\"*reduce*\":entry",
        );
        return None;
    };
    let [atoms] = path.as_slice() else {
        refuse(
            checker,
            part_span(part),
            "unknown-class",
            "a kernel's name with a `.` stands in quotes",
            "kernel:\"a.b\":entry",
        );
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

/// Words of `inst:CLASS.QUALIFIER:PLACEMENT`.
fn instruction(checker: &mut Checker<'_, '_>, point: &Point<'_>) {
    let mut parts = point.parts.iter();
    let Some(Part::Path(path)) = parts.next() else {
        refuse(
            checker,
            point.span,
            "unknown-class",
            "`inst:` wants a class of instructions",
            "inst:load.global, inst:*",
        );
        return;
    };
    let mut classes = Vec::new();
    for (at, atoms) in path.iter().enumerate() {
        for atom in atoms {
            let Atom::Word(word) = atom else {
                if let Atom::Glob(glob) = atom {
                    refuse(
                        checker,
                        glob.span,
                        "unknown-class",
                        "`inst:` selects by meaning: classes and qualifiers are words",
                        "opcodes by their text: ptx:\"ld.global.*\"",
                    );
                }
                continue;
            };
            let known = |word: &str| match at {
                0 => CLASSES.iter().any(|(class, _)| *class == word),
                _ => QUALIFIERS.contains(&word),
            };
            if at == 0 {
                classes.push(word.text);
            }
            if !known(word.text) {
                let what = if at == 0 { "class of instructions" } else { "qualifier" };
                let diagnostic =
                    Diagnostic::error("unknown-class", word.span, format!("unknown {what} `{}`", word.text))
                        .suggest(
                            word.text,
                            CLASSES.iter().map(|(class, _)| *class).chain(QUALIFIERS.iter().copied()),
                        )
                        .help("`nt-probec --list` names them; opcodes by their text: ptx:\"ld.global.*\"");
                checker.found.push(diagnostic);
            }
        }
    }
    if let Some(part) = parts.next() {
        placement(checker, part, &classes);
    }
    if let Some(more) = parts.next() {
        refuse(
            checker,
            part_span(more),
            "bad-placement",
            "a tracepoint has one placement, and it comes last",
            "inst:load.global:after",
        );
    }
}

fn placement(checker: &mut Checker<'_, '_>, part: &Part<'_>, classes: &[&str]) {
    let word = match part {
        Part::Path(path) => match path.as_slice() {
            [atoms] => match atoms.as_slice() {
                [Atom::Word(word)] => Some(*word),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    match word {
        Some(word) if word.text == "after" => {
            if let Some(class) = classes.iter().find(|class| NOTHING_AFTER.contains(class)) {
                let message = format!("nothing runs directly after a `{class}`");
                refuse(
                    checker,
                    word.span,
                    "bad-placement",
                    &message,
                    "`reach` is before it, for all lanes that get there",
                );
            }
        }
        Some(word) if PLACEMENTS.contains(&word.text) => {}
        other => {
            let diagnostic = Diagnostic::error(
                "bad-placement",
                part_span(part),
                "placements are `before`, `after` and `reach`",
            )
            .suggest(other.map_or("", |word| word.text), PLACEMENTS.iter().copied());
            checker.found.push(diagnostic);
        }
    }
}

fn refuse(checker: &mut Checker<'_, '_>, span: Span, slug: &'static str, message: &str, help: &str) {
    checker.found.push(Diagnostic::error(slug, span, message).help(help));
}

/// Is the part one word, of these?
fn is_word(part: &Part<'_>, words: &[&str]) -> bool {
    let Part::Path(path) = part else { return false };
    matches!(path.iter().flatten().collect::<Vec<_>>().as_slice(), [Atom::Word(word)] if words.contains(&word.text))
}

/// The text of a part.
fn part_span(part: &Part<'_>) -> Span {
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
