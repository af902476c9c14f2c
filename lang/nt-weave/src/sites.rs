//! Finds the sites: the places of a kernel at which probes run.
//!
//! ```text
//! .entry k() {
//!     .reg .pred %p<2>;
//!                          <- entry: behind the leading declarations, before the first label (a loop may begin there)
//! $L__BB0_1:
//!     …
//!                          <- exit, under %p1
//!     @%p1 ret;
//!     …
//!                          <- exit: the closing brace, if it can be reached
//! }
//! ```
//!
//! `ret` and `exit` of an entry both end the lane. `trap` is no exit, and what follows an unconditional one is never
//! run. A span goes before the guard of an instruction, behind labels, `.loc` and pragmas.

use nt_diag::Span;
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::{ItemKind, Kind as StatementKind, Module};
use std::collections::BTreeMap;

/// Which points of a kernel a probe wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    /// Index into the program's probes.
    pub(crate) probe: usize,
    pub(crate) entry: bool,
    pub(crate) exit: bool,
}

/// A place at which probes run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    /// The byte before which a span goes.
    pub(crate) offset: u32,
    /// The index of the statement behind it; at the closing brace, the end of the body's.
    pub(crate) next: u32,
    /// The instruction that it is about; `None` at the entry and at the closing brace.
    pub(crate) statement: Option<u32>,
    /// The guard of that instruction.
    pub(crate) guard: Option<Guard>,
    /// Indices into the program's probes, in program order.
    pub(crate) probes: Vec<usize>,
    /// The last `.loc` before it in the kernel; at the entry, the first of all if no instruction precedes it.
    loc: Option<Span>,
}

/// What kind of point a site is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The kernel begins.
    Entry,
    /// A lane leaves.
    Exit,
}

impl Kind {
    /// The tracepoint as the probe language has it.
    pub fn tracepoint(self) -> &'static str {
        match self {
            Kind::Entry => "kernel:entry",
            Kind::Exit => "kernel:exit",
        }
    }
}

/// The predicate under which the instruction at a site runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Its register, with the `%`.
    pub register: String,
    /// Does the instruction run where it is false?
    pub negated: bool,
}

/// What is told of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The number of its span, as in the text's `/*nt:N{*/`.
    pub id: u32,
    /// What kind of point it is.
    pub kind: Kind,
    /// The opcode of the instruction that it is about: `ret`; empty at the entry and at a closing brace.
    pub opcode: String,
    /// Line in the input, from 1.
    pub line: u32,
    /// Column in the input, from 1, in characters.
    pub column: u32,
    /// Source file and line, where `.loc` tells.
    pub source: Option<(String, u32)>,
    /// The guard of the instruction at it.
    pub guard: Option<Guard>,
}

/// The sites of a kernel that the points ask for, in text order.
pub(crate) fn find(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    points: &[Point],
    function: usize,
) -> Vec<Found> {
    let (Some(entry), Some(known)) = (module.functions.get(function), info.functions.get(function)) else {
        return Vec::new();
    };
    let Some(body) = &entry.body else { return Vec::new() };
    let brace = body.span.end.saturating_sub(1);
    let at_entry: Vec<usize> = points.iter().filter(|p| p.entry).map(|p| p.probe).collect();
    let at_exit: Vec<usize> = points.iter().filter(|p| p.exit).map(|p| p.probe).collect();

    let mut found = Vec::new();
    if !at_entry.is_empty() {
        let first = (known.first < body.statements.end).then_some(known.first);
        let first = first.and_then(|first| module.statements.get(first as usize));
        let offset = first.map_or(brace, |statement| statement.span.start);
        let loc = first_loc(module, entry);
        let next = known.first;
        found.push(Found {
            kind: Kind::Entry,
            offset,
            next,
            statement: None,
            guard: None,
            probes: at_entry,
            loc,
        });
    }
    if at_exit.is_empty() {
        return found;
    }

    let mut loc = None;
    for (number, statement) in (body.statements.start..).zip(module.body(entry)) {
        match statement.kind {
            StatementKind::Loc => loc = Some(statement.span),
            StatementKind::Instruction(instruction)
                if matches!(module.opcode(&instruction).base, "ret" | "exit") =>
            {
                let guard = instruction.guard.map(|guard| Guard {
                    register: module.at(guard.register).to_owned(),
                    negated: guard.negated,
                });
                let (offset, next, statement) = (statement.span.start, number, Some(number));
                found.push(Found {
                    kind: Kind::Exit,
                    offset,
                    next,
                    statement,
                    guard,
                    probes: at_exit.clone(),
                    loc,
                });
            }
            _ => {}
        }
    }
    if known.end_reachable {
        found.push(Found {
            kind: Kind::Exit,
            offset: brace,
            next: body.statements.end,
            statement: None,
            guard: None,
            probes: at_exit,
            loc,
        });
    }
    found
}

/// All sites of a kernel, whatever a program asks for, for listings. The numbers count within the kernel.
pub fn list_sites(module: &Module<'_>, info: &ModuleInfo<'_>, function: usize) -> Vec<Site> {
    list_sites_of(module, info, &[function]).pop().unwrap_or_default()
}

/// [`list_sites`] of several kernels, in one walk of the text if they come in its order.
pub fn list_sites_of(module: &Module<'_>, info: &ModuleInfo<'_>, functions: &[usize]) -> Vec<Vec<Site>> {
    let (files, mut places) = (SourceFiles::of(module), Places::new(module.text));
    let mut list = |&function: &usize| {
        let found = find(module, info, &[Point { probe: 0, entry: true, exit: true }], function);
        let numbers: Vec<(usize, u32)> = (0..).take(found.len()).zip(0..).collect();
        describe(module, &found, &numbers, &files, &mut places)
    };
    functions.iter().map(&mut list).collect()
}

/// The `.loc` of a kernel's first instruction.
fn first_loc(module: &Module<'_>, entry: &nt_ptx::syntax::Function) -> Option<Span> {
    let mut loc = None;
    for statement in module.body(entry) {
        match statement.kind {
            StatementKind::Loc => loc = Some(statement.span),
            StatementKind::Instruction(_) => break,
            _ => {}
        }
    }
    loc
}

/// What is told of those sites that have a span, given as index and number.
pub(crate) fn describe(
    module: &Module<'_>,
    found: &[Found],
    numbers: &[(usize, u32)],
    files: &SourceFiles<'_>,
    places: &mut Places<'_>,
) -> Vec<Site> {
    let describe = |&(index, id): &(usize, u32)| {
        let site = found.get(index)?;
        let opcode = match site.statement.and_then(|at| module.statements.get(at as usize)).map(|s| s.kind) {
            Some(StatementKind::Instruction(instruction)) => module.at(instruction.opcode).to_owned(),
            _ => String::new(),
        };
        let (line, column) = places.position(site.offset);
        let source = site.loc.and_then(|loc| files.place(module.at(loc)));
        Some(Site { id, kind: site.kind, opcode, line, column, source, guard: site.guard.clone() })
    };
    numbers.iter().filter_map(describe).collect()
}

/// Lines and columns of rising offsets, found in one walk: a module of megabytes may be one line.
pub(crate) struct Places<'t> {
    text: &'t str,
    offset: usize,
    line: u32,
    column: u32,
}

impl<'t> Places<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Places { text, offset: 0, line: 1, column: 1 }
    }

    /// Line and column of a byte, from 1. A lone `\r` ends a line too. An offset before the last one starts anew.
    pub(crate) fn position(&mut self, offset: u32) -> (u32, u32) {
        let bytes = self.text.as_bytes();
        let offset = (offset as usize).min(bytes.len());
        if offset < self.offset {
            *self = Places::new(self.text);
        }
        for (at, &byte) in bytes.iter().enumerate().take(offset).skip(self.offset) {
            if byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                (self.line, self.column) = (self.line + 1, 1);
            } else if byte & 0xc0 != 0x80 {
                // Bytes 10xxxxxx go on with a character that has been counted.
                self.column += 1;
            }
        }
        self.offset = offset;
        (self.line, self.column)
    }
}

/// The `.file` table of a module.
pub(crate) struct SourceFiles<'s> {
    names: BTreeMap<u32, &'s str>,
}

impl<'s> SourceFiles<'s> {
    pub(crate) fn of(module: &Module<'s>) -> Self {
        let items = module.items.iter().filter(|item| item.kind == ItemKind::File).map(|item| item.span);
        // Legal inside bodies too.
        let statements =
            module.statements.iter().filter(|s| s.kind == StatementKind::Directive).map(|s| s.span);
        SourceFiles { names: items.chain(statements).filter_map(|span| file(module.at(span))).collect() }
    }

    /// File and line of `.loc 1 12 0`.
    fn place(&self, loc: &str) -> Option<(String, u32)> {
        let mut words = loc.strip_prefix(".loc")?.split_ascii_whitespace();
        let file = words.next()?.parse().ok()?;
        let line = words.next()?.parse().ok()?;
        Some(((*self.names.get(&file)?).to_owned(), line))
    }
}

/// `.file 1 "kernels.cu", 1700000000, 4711`
fn file(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(".file")?;
    let (number, rest) = rest.split_once('"')?;
    let (name, _) = rest.split_once('"')?;
    Some((number.trim().parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_source() {
        let text = "a\r\nbü\rc\nd";
        let source = nt_diag::Source::new("x", text);
        let mut places = Places::new(text);
        for offset in [0, 1, 3, 4, 6, 7, 9, 10, 2] {
            let expected = source.position(offset);
            assert_eq!(places.position(offset), (expected.line, expected.column), "at {offset}");
        }
    }

    #[test]
    fn a_file_line() {
        assert_eq!(file(".file\t12 \"/src/k.cu\""), Some((12, "/src/k.cu")));
        assert_eq!(file(".file 1 \"a b.cu\", 17, 4"), Some((1, "a b.cu")));
        assert_eq!(file(".file"), None);
    }
}
