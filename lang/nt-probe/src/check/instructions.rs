//! Tracepoints of instructions, `inst:CLASS.QUALIFIER:PLACEMENT` and `ptx:"GLOB":PLACEMENT`, and which operands they offer.
//! Language reference, Tracepoints and Operands.

use super::Checker;
use super::points::{PLACEMENTS, globs, part_span, refuse};
use crate::ast::{Atom, Part, Point};
use crate::classes::{self, Class};
use crate::token::Word;
use nt_diag::Diagnostic;
use nt_ir::program::{Placement, Tracepoint};

const LISTS: &str = "`nt-probec --list` names them; opcodes by their text: ptx:\"ld.global.*\"";

/// `ptx:"ld.global.nc*":reach`. `None` if it is refused.
pub(super) fn text(checker: &mut Checker<'_, '_>, point: &Point<'_>) -> Option<Vec<Tracepoint>> {
    let part = point.parts.first()?;
    let globs = globs(checker, part, "an opcode", "ptx:\"ld.global.*\"")?;
    let rest = point.parts.get(1..).unwrap_or_default();
    let placement = placement(checker, rest, &[])?.unwrap_or(Placement::Before);
    let point =
        |glob: Option<String>| Tracepoint::Ptx { glob: glob.unwrap_or_else(|| "*".into()), placement };
    Some(globs.into_iter().map(point).collect())
}

/// `inst:load|store.global.v4:reach`. `None` if it is refused.
pub(super) fn by_class(checker: &mut Checker<'_, '_>, point: &Point<'_>) -> Option<Vec<Tracepoint>> {
    let Some(Part::Path(path)) = point.parts.first() else {
        let help = "inst:load.global, inst:*";
        refuse(checker, point.span, "unknown-class", "`inst:` wants a class of instructions", help);
        return None;
    };
    let mut steps = path.iter();
    let classes = words(checker, steps.next()?)?;
    for word in classes.iter().filter(|word| word.text != "*") {
        if classes::meant_by(word.text).next().is_none() {
            unknown(checker, *word, "class of instructions");
            return None;
        }
    }
    let meant = |word: &Word<'_>| classes::meant_by(word.text).collect::<Vec<_>>();
    let all: Vec<&Class> = classes.iter().flat_map(meant).collect();

    let (mut spaces, mut quals) = (Vec::new(), Vec::new());
    for step in steps {
        let step = words(checker, step)?;
        let mut are_spaces = None;
        for word in step.iter().filter(|word| word.text != "*") {
            let is_space = qualifier(checker, *word, &all)?;
            if *are_spaces.get_or_insert(is_space) != is_space {
                let help = "qualifiers of different sorts are joined by `.`: load.global.b32";
                let message = format!("`{}` is of another sort than what it is an alternative to", word.text);
                refuse(checker, word.span, "unknown-class", &message, help);
                return None;
            }
        }
        let list = step.iter().map(|word| word.text.to_owned());
        match (are_spaces, step.first()) {
            // `*` among alternatives leaves nothing out.
            _ if step.iter().any(|word| word.text == "*") => {}
            (Some(true), Some(first)) if !spaces.is_empty() => {
                let help = "alternatives are joined by `|`: load.global|shared";
                refuse(checker, first.span, "unknown-class", "an access goes to one space", help);
                return None;
            }
            (Some(true), _) => spaces.extend(list),
            _ => quals.push(list.collect()),
        }
    }

    let placement = placement(checker, point.parts.get(1..).unwrap_or_default(), &classes)?;
    let point = |classes: Vec<String>, placement| Tracepoint::Inst {
        classes,
        spaces: spaces.clone(),
        quals: quals.clone(),
        placement,
    };
    let names =
        |words: Vec<&Word<'_>>| words.into_iter().map(|word| word.text.to_owned()).collect::<Vec<_>>();
    if placement == Some(Placement::After) && classes.iter().any(|word| word.text == "*") {
        // All but those that nothing runs after.
        let all = classes::CLASSES.iter().map(|class| class.name);
        let others = all.filter(|name| !classes::NOTHING_AFTER.contains(name)).map(str::to_owned);
        return Some(vec![point(others.collect(), Placement::After)]);
    }
    if let Some(placement) = placement {
        return Some(vec![point(names(classes.iter().collect()), placement)]);
    }
    // Jumps are reached, all else is run: a list that names both is two points, of which the first that matches counts.
    let (jumps, others): (Vec<&Word<'_>>, Vec<&Word<'_>>) =
        classes.iter().partition(|word| classes::REACHED.contains(&word.text));
    let mut points = Vec::new();
    if others.iter().any(|word| word.text == "*") {
        points.push(point(classes::REACHED.iter().map(|&word| word.to_owned()).collect(), Placement::Reach));
    } else if !jumps.is_empty() {
        points.push(point(names(jumps), Placement::Reach));
    }
    if !others.is_empty() {
        points.push(point(names(others), Placement::Before));
    }
    Some(points)
}

/// The words of one step of a path; `*` is a word here.
fn words<'s>(checker: &mut Checker<'_, '_>, step: &[Atom<'s>]) -> Option<Vec<Word<'s>>> {
    let mut words = Vec::new();
    for atom in step {
        match atom {
            Atom::Word(word) => words.push(*word),
            Atom::Any(span) => words.push(Word { text: "*", span: *span }),
            Atom::Glob(glob) => {
                let message = "`inst:` selects by meaning: classes and qualifiers are words";
                let help = "opcodes by their text: ptx:\"ld.global.*\"";
                refuse(checker, glob.span, "unknown-class", message, help);
                return None;
            }
        }
    }
    Some(words)
}

fn unknown(checker: &mut Checker<'_, '_>, word: Word<'_>, what: &str) {
    let message = format!("unknown {what} `{}`", word.text);
    let known = classes::words().chain(classes::qualifiers());
    let diagnostic =
        Diagnostic::error("unknown-class", word.span, message).suggest(word.text, known).help(LISTS);
    checker.found.push(diagnostic);
}

/// Is a qualifier that narrows one of `classes` a space? `None` if it narrows none.
fn qualifier(checker: &mut Checker<'_, '_>, word: Word<'_>, classes: &[&Class]) -> Option<bool> {
    if classes::ELSEWHERE.contains(&word.text) {
        checker.not_yet(word.span, "qualifiers of AMD's instructions (`scalar`)");
        return None;
    }
    if !classes.iter().any(|class| class.takes(word.text)) {
        if classes::qualifiers().any(|known| known == word.text) {
            let names: Vec<&str> = classes.iter().map(|class| class.name).take(4).collect();
            let message = format!("`{}` does not narrow {}", word.text, names.join(", "));
            let mut sorts: Vec<&str> =
                classes.iter().flat_map(|class| class.qualifiers).copied().flatten().copied().collect();
            sorts.sort_unstable();
            sorts.dedup();
            let help = match sorts.as_slice() {
                [] => "nothing does".to_owned(),
                sorts => format!("what does: {}", sorts.join(" ")),
            };
            refuse(checker, word.span, "unknown-class", &message, &help);
        } else {
            unknown(checker, word, "qualifier");
        }
        return None;
    }
    let of_memory = classes.iter().any(|class| class.qualifiers.contains(&classes::SPACES));
    Some(of_memory && classes::SPACES.contains(&word.text))
}

/// The placement in what is left of a point's parts: outer `None` if it is refused, inner if there is nothing.
#[allow(clippy::option_option, reason = "refused, absent and given are three answers")]
pub(super) fn placement(
    checker: &mut Checker<'_, '_>,
    parts: &[Part<'_>],
    classes: &[Word<'_>],
) -> Option<Option<Placement>> {
    let part = match parts {
        [] => return Some(None),
        [part] => part,
        [_, more, ..] => {
            let message = "a tracepoint has one placement, and it comes last";
            refuse(checker, part_span(more), "bad-placement", message, "inst:load.global:after");
            return None;
        }
    };
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
    match word.map(|word| (word, Placement::from_word(word.text))) {
        Some((word, Some(Placement::After))) => {
            let jump = classes.iter().find(|class| classes::NOTHING_AFTER.contains(&class.text));
            let Some(class) = jump else { return Some(Some(Placement::After)) };
            let message = format!("nothing runs directly after a `{}`", class.text);
            let help = "`reach` is before it, for all lanes that get there";
            refuse(checker, word.span, "bad-placement", &message, help);
            None
        }
        Some((_, Some(placement))) => Some(Some(placement)),
        other => {
            let message = "placements are `before`, `after` and `reach`";
            let text = other.map_or("", |(word, _)| word.text);
            let diagnostic = Diagnostic::error("bad-placement", part_span(part), message)
                .suggest(text, PLACEMENTS.iter().copied());
            checker.found.push(diagnostic);
            None
        }
    }
}

/// Why an operand cannot be there at some of a probe's tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// No instruction of the class has it.
    Class(&'static str),
    /// The points are no instructions; what has none.
    NoInstruction(&'static str),
    /// It is there once the instruction has run.
    Early,
    /// It is there before the instruction runs.
    Late,
}

/// Why the operand `name` can never be there at one of `points`. Of classes nothing is known at `ptx:` and `line:` points.
pub(super) fn lacks(points: &[Tracepoint], name: &str) -> Option<Lack> {
    points.iter().find_map(|point| {
        let (classes, placement) = match point {
            Tracepoint::KernelEntry { .. } | Tracepoint::KernelExit { .. } => {
                return Some(Lack::NoInstruction("the kernel's entry and exit have"));
            }
            Tracepoint::FuncEntry { .. } | Tracepoint::FuncExit { .. } => {
                return Some(Lack::NoInstruction("a function's entry and exit have"));
            }
            Tracepoint::Block { .. } => return Some(Lack::NoInstruction("a basic block has")),
            Tracepoint::Mark { .. } => return Some(Lack::NoInstruction("a mark has")),
            Tracepoint::Inst { classes, placement, .. } => (classes.as_slice(), placement),
            Tracepoint::Ptx { placement, .. } | Tracepoint::Line { placement, .. } => (&[][..], placement),
        };
        let mut meant = classes.iter().flat_map(|word| classes::meant_by(word));
        let class = meant.find(|class| !class.offers(name)).map(|class| Lack::Class(class.name));
        let misplaced = match (name, placement) {
            ("out" | "done", Placement::Before | Placement::Reach) => Some(Lack::Early),
            ("old" | "taken", Placement::After) => Some(Lack::Late),
            _ => None,
        };
        class.or(misplaced)
    })
}

/// May the bytes at these points differ between the lanes of a warp?
pub(super) fn bytes_vary(points: &[Tracepoint]) -> bool {
    points.iter().any(|point| match point {
        Tracepoint::Inst { classes, .. } => classes
            .iter()
            .flat_map(|word| classes::meant_by(word))
            .any(|class| classes::DYNAMIC_BYTES.contains(&class.name)),
        _ => false,
    })
}
