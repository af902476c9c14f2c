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
//! run. A span goes before the guard of an instruction, behind labels, `.loc` and pragmas of blocks; a pragma that
//! speaks of the very next instruction (`used_bytes_mask`) stays with it. Which instructions a probe means,
//! `instructions.rs` tells.

mod describe;
mod source;

use crate::Refused;
use crate::instructions::{self, Here, Wanted};
use crate::lines::Runs;
use crate::operands::Access;
use crate::{blocks, marks};
use nt_diag::Span;
use nt_ptx::ModuleInfo;
use nt_ptx::opcode::{Class, Facts, Space};
use nt_ptx::syntax::{Function, Kind as StatementKind, Module};
use std::borrow::Cow;

pub(crate) use describe::describe;
pub use describe::{Site, list_sites, list_sites_of};
pub(crate) use source::{Places, SourceFiles, move_to};

/// Which points of a kernel a probe wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point<'p> {
    /// Index into the program's probes.
    pub(crate) probe: usize,
    pub(crate) entry: bool,
    /// Before an instruction, by the order of its tracepoints.
    pub(crate) wanted: Vec<Wanted<'p>>,
    /// At the closing brace.
    pub(crate) exit: bool,
    /// At which basic blocks.
    pub(crate) blocks: Option<Blocks>,
    /// Globs of the marks.
    pub(crate) marks: Vec<&'p str>,
    /// Does it ask for what the instruction takes or gives?
    pub(crate) values: bool,
    /// Does it ask for what it gives?
    pub(crate) out: bool,
    /// Does it ask in which space it does that?
    pub(crate) space: bool,
}

/// Which basic blocks a probe wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocks {
    All,
    /// Those that a backward branch enters.
    Looped,
}

impl Point<'_> {
    /// Of a probe that wants nothing.
    pub(crate) fn of(probe: usize) -> Self {
        Point {
            probe,
            entry: false,
            wanted: Vec::new(),
            exit: false,
            blocks: None,
            marks: Vec::new(),
            values: false,
            out: false,
            space: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.entry && self.wanted.is_empty() && self.blocks.is_none() && self.marks.is_empty()
    }
}

/// A place at which probes run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The function that it is in, as an index into [`Module::functions`].
    pub(crate) function: usize,
    pub(crate) kind: Kind,
    /// The byte before which a span goes.
    pub(crate) offset: u32,
    /// The index of the statement behind it; at the closing brace, the end of the body's.
    pub(crate) next: u32,
    /// The instruction that it is about, or that follows it; `None` at the entry and at the closing brace.
    pub(crate) statement: Option<u32>,
    /// The guard of that instruction.
    pub(crate) guard: Option<Guard>,
    /// What is known of that instruction, if a probe of instructions runs here.
    pub(crate) facts: Option<Facts>,
    /// Its address and its size, as far as they are told by operands.
    pub(crate) access: Access,
    /// Do the probes run for all lanes that get there, whatever the guard?
    pub(crate) reach: bool,
    /// The name of the mark that it is.
    pub(crate) mark: Option<String>,
    /// The function that its instruction calls.
    pub(crate) callee: Option<String>,
    /// The probes that run here, in program order.
    pub(crate) probes: Vec<Match>,
    /// Line and column in the input, from 1.
    pub(crate) position: (u32, u32),
    /// Source file and line, where `.loc` tells.
    pub(crate) source: Option<(String, u32)>,
}

impl Found {
    /// The instruction that it stands at: of what is behind a wait, the wait.
    pub(crate) fn stands_at(&self) -> Option<u32> {
        self.access.wait.or(self.statement)
    }
}

/// A probe that runs at a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    /// Index into the program's probes.
    pub(crate) probe: usize,
    /// Is it the instruction that it asked for, and not that the kernel begins or ends?
    pub(crate) of_instruction: bool,
    /// Is it that a lane leaves the kernel, as `kernel:exit` has it?
    pub(crate) leaves: bool,
    /// Does it run for all lanes that get there, whatever the guard?
    pub(crate) reach: bool,
    /// Does it run for the lanes whose guard holds, where others run for all?
    pub(crate) under_guard: bool,
    /// Where the text does not say where an address leads: the body runs where it leads into one of these. Empty
    /// where that is no question.
    pub(crate) within: Vec<Space>,
    /// The space of the access, where this says more of it than the text.
    pub(crate) space: Option<Space>,
}

impl Match {
    /// Of a probe, at what is no instruction.
    pub(crate) fn of(probe: usize) -> Match {
        let (of_instruction, leaves, reach, under_guard) = (false, false, false, false);
        Match { probe, of_instruction, leaves, reach, under_guard, within: Vec::new(), space: None }
    }
}

/// What kind of point a site is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The kernel begins.
    Entry,
    /// Before an instruction; `None` where no table knows it.
    Instruction(Option<Class>),
    /// Behind one.
    After(Option<Class>),
    /// A basic block begins.
    Block {
        /// Was it asked for because a backward branch enters it?
        looped: bool,
    },
    /// A mark that the author left.
    Mark,
    /// A function that the kernel calls begins.
    FuncEntry,
    /// A lane leaves such a function.
    FuncExit,
    /// The same, where what was counted in it is added up.
    Return,
    /// A lane leaves.
    Exit,
}

impl Kind {
    /// Does it lie between the kernel's beginning and its ends?
    pub(crate) fn is_inside(self) -> bool {
        !matches!(self, Kind::Entry | Kind::Exit)
    }

    /// The tracepoint as the probe language has it: `kernel:entry`, `inst:load`.
    pub fn tracepoint(self) -> String {
        match self {
            Kind::Entry => "kernel:entry".to_owned(),
            Kind::Instruction(class) => format!("inst:{}", class.map_or("*", Class::name)),
            Kind::After(class) => format!("inst:{}:after", class.map_or("*", Class::name)),
            Kind::Block { looped: false } => "bb:entry".to_owned(),
            Kind::Block { looped: true } => "bb:loop".to_owned(),
            Kind::Mark => "mark".to_owned(),
            Kind::FuncEntry => "func:entry".to_owned(),
            Kind::FuncExit => "func:exit".to_owned(),
            Kind::Return => "func:return".to_owned(),
            Kind::Exit => "kernel:exit".to_owned(),
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

/// The sites of a kernel that the points ask for, in text order.
///
/// # Errors
/// Whether an instruction is asked for cannot be told.
pub(crate) fn find(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    points: &[Point<'_>],
    function: usize,
    files: &SourceFiles<'_>,
    places: &mut Places<'_>,
) -> Result<Vec<Found>, Refused> {
    let Some(entry) = module.functions.get(function) else { return Ok(Vec::new()) };
    let (Some(body), Some(known)) = (&entry.body, info.functions.get(function)) else {
        return Ok(Vec::new());
    };
    let source = |loc: Option<Span>| loc.and_then(|loc| files.place(module.at(loc)));

    let mut found = Vec::new();
    if points.iter().any(|point| point.entry)
        && let Some(mut site) = self::entry(module, info, function)
    {
        if !entry.is_entry {
            site.kind = Kind::FuncEntry;
        }
        site.probes = of_kernel(points, |point| point.entry);
        site.position = places.position(site.offset);
        site.source = source(first_loc(module, entry));
        found.push(site);
    }

    if points.iter().any(|point| !point.is_empty()) {
        let matcher = instructions::Matcher::new(module, info, function, points);
        let mut others = blocks::find(module, points, function, &matcher);
        others.extend(marks::find(module, points, function, &matcher));
        others.sort_by_key(|site| site.offset);
        let mut others = others.into_iter().peekable();
        let mut runs = Runs::of(points, || matcher.starts());
        let mut loc = None;
        for (number, statement) in (body.statements.start..).zip(module.body(entry)) {
            match statement.kind {
                StatementKind::Loc => loc = Some(statement.span),
                StatementKind::Instruction(instruction) => {
                    while let Some(mut site) = others.next_if(|site| site.offset <= statement.span.start) {
                        site.position = places.position(site.offset);
                        site.source = source(loc);
                        found.push(site);
                    }
                    let begins = runs.as_mut().and_then(|runs| {
                        let line = match source(loc) {
                            Some((file, line)) => (Cow::Owned(file), line),
                            None => (Cow::Borrowed(ASSEMBLY), places.position(statement.span.start).0),
                        };
                        runs.begins(number, line)
                    });
                    let begins = begins.as_ref().map(|(file, line)| (&**file, *line));
                    let here = Here { number, statement: *statement, instruction, begins };
                    for mut site in matcher.at(here)? {
                        site.position = places.position(statement.span.start);
                        site.source = source(loc);
                        found.push(site);
                    }
                }
                _ => {}
            }
        }
        for mut site in others {
            site.position = places.position(site.offset);
            site.source = source(loc);
            found.push(site);
        }
    }

    if known.end_reachable && points.iter().any(|point| point.exit) {
        let offset = body.span.end.saturating_sub(1);
        let last = module.body(entry).iter().rfind(|statement| statement.kind == StatementKind::Loc);
        let kind = if entry.is_entry { Kind::Exit } else { Kind::FuncExit };
        let mut probes = of_kernel(points, |point| point.exit);
        probes.iter_mut().for_each(|one| one.leaves = entry.is_entry);
        found.push(Found {
            probes,
            position: places.position(offset),
            source: source(last.map(|statement| statement.span)),
            ..Found::at(kind, offset, body.statements.end)
        });
    }
    found.iter_mut().for_each(|site| site.function = function);
    Ok(found)
}

/// What the file of a line is called where there are no lines of source: lines are then the assembly's own.
pub(crate) const ASSEMBLY: &str = "ptx";

/// What the probes of some points are at a site that is no instruction.
pub(crate) fn of_kernel(points: &[Point<'_>], wants: impl Fn(&Point<'_>) -> bool) -> Vec<Match> {
    let of = |point: &Point<'_>| Match::of(point.probe);
    points.iter().filter(|point| wants(point)).map(of).collect()
}

impl Found {
    /// A place at which no probe runs yet, and of which nothing is known.
    pub(crate) fn at(kind: Kind, offset: u32, next: u32) -> Found {
        Found {
            function: 0,
            kind,
            offset,
            next,
            statement: None,
            guard: None,
            facts: None,
            access: Access::default(),
            reach: false,
            mark: None,
            callee: None,
            probes: Vec::new(),
            position: (0, 0),
            source: None,
        }
    }
}

/// The place behind a kernel's leading declarations, at which no probe runs yet.
pub(crate) fn entry(module: &Module<'_>, info: &ModuleInfo<'_>, function: usize) -> Option<Found> {
    let (body, known) = (module.functions.get(function)?.body.as_ref()?, info.functions.get(function)?);
    let first = (known.first < body.statements.end).then_some(known.first);
    let place = first.and_then(|first| instructions::place(module, first));
    let (offset, next) = place.unwrap_or((body.span.end.saturating_sub(1), known.first));
    Some(Found::at(Kind::Entry, offset, next))
}

/// The `.loc` of a kernel's first instruction.
fn first_loc(module: &Module<'_>, entry: &Function) -> Option<Span> {
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
