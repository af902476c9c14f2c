//! Tracepoints that are places rather than kinds of instructions: `func:`, `bb:`, `line:`, `mark:`.
//! Language reference, Tracepoints.

use super::Checker;
use super::instructions::placement;
use super::points::{EVENTS, globs, part_span, refuse};
use crate::ast::{Atom, Part, Point};
use crate::literal::{integer, unescape};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Placement, Tracepoint};

/// `func:"warp_sum*":entry`. `None` if it is refused.
pub(super) fn functions(checker: &mut Checker<'_, '_>, point: &Point<'_>) -> Option<Vec<Tracepoint>> {
    let help = "func:\"*reduce*\":entry, func:*:exit";
    let (name, event) = match point.parts.as_slice() {
        [name, event] => (name, event),
        [_, _, more, ..] => {
            let message = "`func:` points have no placement";
            refuse(checker, part_span(more), "bad-placement", message, help);
            return None;
        }
        _ => {
            let message = "`func:` wants the name of functions, and `entry` or `exit`";
            refuse(checker, point.span, "unknown-class", message, help);
            return None;
        }
    };
    let globs = globs(checker, name, "a function's name", help)?;
    let mut list = Vec::new();
    for event in one_step(event) {
        let (entry, exit) = match event {
            Atom::Word(Word { text: "entry", .. }) => (true, false),
            Atom::Word(Word { text: "exit", .. }) => (false, true),
            Atom::Any(_) => (true, true),
            Atom::Word(_) | Atom::Glob(_) => {
                list.clear();
                break;
            }
        };
        for glob in globs.iter().map(|glob| glob.clone().unwrap_or_else(|| "*".to_owned())) {
            list.extend(entry.then(|| Tracepoint::FuncEntry { glob: glob.clone() }));
            list.extend(exit.then_some(Tracepoint::FuncExit { glob }));
        }
    }
    if list.is_empty() {
        let message = "functions have the points `entry` and `exit`";
        unknown(checker, part_span(event), message, EVENTS, help);
        return None;
    }
    Some(list)
}

/// `bb:entry`, `bb:loop`. `None` if it is refused.
pub(super) fn blocks(checker: &mut Checker<'_, '_>, point: &Point<'_>) -> Option<Vec<Tracepoint>> {
    let help = "`bb:entry` is each basic block, `bb:loop` those that a backward branch enters: once a round";
    let part = match point.parts.as_slice() {
        [part] => part,
        [_, more, ..] => {
            refuse(checker, part_span(more), "bad-placement", "`bb:` points have no placement", help);
            return None;
        }
        [] => return None,
    };
    let mut list = Vec::new();
    for event in one_step(part) {
        match event {
            Atom::Word(Word { text: "entry", .. }) | Atom::Any(_) => {
                list.push(Tracepoint::Block { looped: false });
            }
            Atom::Word(Word { text: "loop", .. }) => list.push(Tracepoint::Block { looped: true }),
            Atom::Word(_) | Atom::Glob(_) => {
                list.clear();
                break;
            }
        }
    }
    if list.is_empty() {
        let message = "basic blocks have the points `entry` and `loop`";
        unknown(checker, part_span(part), message, &["entry", "loop"], help);
        return None;
    }
    Some(list)
}

/// `line:"gemm.cu":120-140:after`. `None` if it is refused.
pub(super) fn lines(checker: &mut Checker<'_, '_>, point: &Point<'_>) -> Option<Vec<Tracepoint>> {
    let help = "line:\"gemm.cu\":120, line:\"src/gemm.cu\":120-140:after";
    let [name, numbers, rest @ ..] = point.parts.as_slice() else {
        let message = "`line:` wants a file and lines of it";
        refuse(checker, point.span, "unknown-class", message, help);
        return None;
    };
    let mut files = Vec::new();
    for file in one_step(name) {
        match file {
            // Escapes were checked with the tokens.
            Atom::Glob(word) => files.push(unescape(word.text).unwrap_or_default()),
            Atom::Word(_) | Atom::Any(_) => {
                files.clear();
                break;
            }
        }
    }
    if let Part::Param(_) = name {
        checker.not_yet(part_span(name), super::exprs::ARGUMENTS);
        return None;
    }
    if files.is_empty() || files.iter().any(String::is_empty) {
        let message = "the file is what a path ends in, in quotes";
        refuse(checker, part_span(name), "unknown-class", message, help);
        return None;
    }
    let Part::Lines(first, last) = numbers else {
        refuse(checker, part_span(numbers), "unknown-class", "lines are numbers: 120 or 120-140", help);
        return None;
    };
    let first_line = line(checker, *first)?;
    let last_line = match last {
        Some(last) => line(checker, *last)?,
        None => first_line,
    };
    if last_line < first_line {
        let message = "the last line comes before the first";
        refuse(checker, part_span(numbers), "unknown-class", message, help);
        return None;
    }
    let placement = placement(checker, rest, &[])?.unwrap_or(Placement::Before);
    let point = |file| Tracepoint::Line { file, first: first_line, last: last_line, placement };
    Some(files.into_iter().map(point).collect())
}

fn line(checker: &mut Checker<'_, '_>, word: Word<'_>) -> Option<u32> {
    match integer(word.text).map(u32::try_from) {
        Ok(Ok(line)) if line > 0 => Some(line),
        Err(message) => {
            checker.wrong("bad-number", word.span, message);
            None
        }
        Ok(_) => {
            checker.wrong("bad-number", word.span, "lines are counted from 1, in 32 bits".to_owned());
            None
        }
    }
}

/// `mark:"*.begin"`. `None` if it is refused.
pub(super) fn marks(checker: &mut Checker<'_, '_>, point: &Point<'_>) -> Option<Vec<Tracepoint>> {
    let help =
        "mark:\"*.begin\" is where the kernel has `.pragma \"nt.mark NAME\";` or a comment `// nt.mark NAME`";
    if let [_, more, ..] = point.parts.as_slice() {
        refuse(checker, part_span(more), "bad-placement", "`mark:` points have no placement", help);
        return None;
    }
    let globs = globs(checker, point.parts.first()?, "a mark's name", help)?;
    let point = |glob: Option<String>| Tracepoint::Mark { glob: glob.unwrap_or_else(|| "*".to_owned()) };
    Some(globs.into_iter().map(point).collect())
}

/// The alternatives of a part that has no dots; none of one that has.
fn one_step<'p, 's>(part: &'p Part<'s>) -> &'p [Atom<'s>] {
    match part {
        Part::Path(path) if path.len() == 1 => path.first().map_or(&[], Vec::as_slice),
        _ => &[],
    }
}

fn unknown(checker: &mut Checker<'_, '_>, span: Span, message: &str, known: &[&'static str], help: &str) {
    let given = span.of(checker.text).trim_matches('"');
    let diagnostic =
        Diagnostic::error("unknown-class", span, message).suggest(given, known.iter().copied()).help(help);
    checker.found.push(diagnostic);
}
