//! Finds the marks that a kernel's author left: `mark:"load.*"`.
//!
//! ```text
//! .pragma "nt.mark load.begin";       a statement, which outlives compilers that drop comments
//! // nt.mark load.end                 a comment of its own, to the end of the line
//! ```
//!
//! The site is behind the mark: the next thing that runs there is the probe.

use crate::instructions::Matcher;
use crate::sites::{Found, Kind, Point, of_kernel};
use nt_diag::Span;
use nt_ir::glob_matches;
use nt_ptx::TokenKind;
use nt_ptx::syntax::{Function, Kind as StatementKind, Module};

/// What stands before the name of a mark.
pub(crate) const MARK: &str = "nt.mark ";

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark<'s> {
    name: &'s str,
    /// The byte behind it.
    end: u32,
    /// The statement behind it.
    next: u32,
}

/// The sites of marks, in text order.
pub(crate) fn find(
    module: &Module<'_>,
    points: &[Point<'_>],
    function: usize,
    matcher: &Matcher<'_, '_>,
) -> Vec<Found> {
    let mut found = Vec::new();
    let Some(entry) = module.functions.get(function) else { return found };
    if points.iter().all(|point| point.marks.is_empty()) {
        return found;
    }
    for Mark { name, end, next } in marks(module, entry) {
        let wants = |point: &Point<'_>| point.marks.iter().any(|glob| glob_matches(glob, name));
        let probes = of_kernel(points, wants);
        let is_end = entry.body.as_ref().is_some_and(|body| body.statements.end == next);
        if probes.is_empty() || !(is_end || matcher.is_reachable(next)) {
            continue;
        }
        found.push(Found {
            statement: Some(next),
            probes,
            reach: true,
            mark: Some(name.to_owned()),
            ..Found::at(Kind::Mark, end, next)
        });
    }
    found
}

/// The names of all marks of a function, in text order.
pub(crate) fn names<'s>(module: &Module<'s>, function: &Function) -> impl Iterator<Item = &'s str> + use<'s> {
    marks(module, function).into_iter().map(|mark| mark.name)
}

/// All marks of a function, in text order.
fn marks<'s>(module: &Module<'s>, function: &Function) -> Vec<Mark<'s>> {
    let mut marks = Vec::new();
    let Some(body) = function.body.as_ref().filter(|body| module.at(body.span).contains(MARK)) else {
        return marks;
    };
    // What stands between two statements may be a comment.
    let mut from = body.span.start + 1;
    for (number, statement) in (body.statements.start..).zip(module.body(function)) {
        comments(module, Span::new(from, statement.span.start), number, &mut marks);
        from = statement.span.end;
        if let StatementKind::Pragma(text) = statement.kind
            && let Some(name) = module.at(text).trim_matches('"').strip_prefix(MARK)
        {
            marks.push(Mark { name: name.trim(), end: statement.span.end, next: number + 1 });
        }
    }
    comments(module, Span::new(from, body.span.end.saturating_sub(1)), body.statements.end, &mut marks);
    marks
}

fn comments<'s>(module: &Module<'s>, gap: Span, next: u32, marks: &mut Vec<Mark<'s>>) {
    // Blanks alone, as a rule.
    if !module.at(gap).contains(MARK) {
        return;
    }
    for (_, at) in module.tokens(gap).filter(|(kind, _)| *kind == TokenKind::LineComment) {
        let text = module.at(at).trim_start_matches('/').trim_start();
        let Some(name) = text.strip_prefix(MARK) else { continue };
        // Behind the end of the line, which ends the comment.
        let rest = module.at(Span::new(at.end, gap.end));
        let line = rest.find('\n').map_or(gap.end, |end| at.end + end as u32 + 1);
        marks.push(Mark { name: name.trim(), end: line.min(gap.end), next });
    }
}
