//! Which instructions a probe means: `inst:load.global`, `ptx:"ld.global.nc*"`.
//!
//! ```text
//! inst:access.global     ld.global.f32 %f1, [%rd1];     is one
//!                        ld.shared.f32 %f1, [%rd1];     is none
//!                        ld.f32 %f1, [%rd1+4];          is one where `isspacep.global` holds of the address
//! ```
//!
//! A space is meant, not spelled: where the text does not say where an address leads, the body asks when it runs. A
//! symbol tells by its declaration. What no way leads to, as behind an unconditional `trap`, is no site.
//!
//! A probe stands before the instruction, for the lanes whose guard holds or (`reach`) for all that get there, or behind it
//! (`after`). Where some probes stand before a guarded instruction for all lanes and others do not, the latter ask for the
//! guard themselves.
//!
//! Language reference, Tracepoints; what is known of opcodes is `nt_ptx::opcode`'s.

mod spaces;

use crate::Refused;
use crate::operands::waits::Pending;
use crate::operands::{Access, Element, Reader, Source, waits};
use crate::sites::{Found, Guard, Kind, Match, Point};
use nt_diag::{Diagnostic, Span};
use nt_ir::glob_matches;
use nt_ir::program::{Placement, Tracepoint};
use nt_ptx::opcode::{Class, Facts, Space};
use nt_ptx::syntax::{Function, Instruction, Kind as StatementKind, Module, OperandKind, Statement};
use nt_ptx::{Flow, ModuleInfo, flow};
use std::cell::OnceCell;

pub(crate) use spaces::question;

/// What one tracepoint of a probe asks for, of those that stand before an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted<'p> {
    /// `ret` and `exit`: a lane leaves the kernel, or the function that the site is in.
    Exit,
    /// `exit`: a lane leaves the kernel, from a function.
    Leave,
    /// Every instruction.
    Any,
    /// What a tracepoint of instructions says.
    Point(&'p Tracepoint),
}

/// Looks at the instructions of one function.
pub(crate) struct Matcher<'a, 's> {
    module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    function: usize,
    points: &'a [Point<'a>],
    flow: OnceCell<Flow>,
    pending: OnceCell<Pending<'s>>,
}

/// An instruction that is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here<'t> {
    pub(crate) number: u32,
    pub(crate) statement: Statement,
    pub(crate) instruction: Instruction,
    /// The source line whose instructions begin here, in the order of the text; `None` within such a run.
    pub(crate) begins: Option<(&'t str, u32)>,
}

/// Where the body of a probe stands, and in which spaces an address must be found when it runs.
type Selected = (Placement, Vec<Space>);

impl<'a, 's> Matcher<'a, 's> {
    pub(crate) fn new(
        module: &'a Module<'s>,
        info: &'a ModuleInfo<'s>,
        function: usize,
        points: &'a [Point<'a>],
    ) -> Self {
        Matcher { module, info, function, points, flow: OnceCell::new(), pending: OnceCell::new() }
    }

    /// The sites at an instruction, before it and behind it, if probes run there. Their place in the source is for the
    /// caller to fill in.
    pub(crate) fn at(&self, here: Here<'_>) -> Result<Vec<Found>, Refused> {
        let Here { number, instruction, .. } = here;
        let base = self.module.opcode(&instruction).base;
        let is_exit = matches!(base, "ret" | "exit");
        let facts = OnceCell::new();
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let is_kernel = self.entry().is_some_and(|function| function.is_entry);
        for point in self.points {
            let mut first: Option<Match> = None;
            let mut stands = Placement::Before;
            for &wanted in &point.wanted {
                let selected = match wanted {
                    Wanted::Exit if is_exit => Some((Placement::Before, Vec::new())),
                    Wanted::Leave if base == "exit" => Some((Placement::Before, Vec::new())),
                    Wanted::Exit | Wanted::Leave => None,
                    wanted => self.selects(wanted, here, &facts)?,
                };
                let Some((placement, within)) = selected else { continue };
                let of_instruction = !matches!(wanted, Wanted::Exit | Wanted::Leave);
                // Does a lane leave the kernel here, and not a function alone?
                let leaves = wanted == Wanted::Leave || (wanted == Wanted::Exit && is_kernel);
                let reach = placement == Placement::Reach && instruction.guard.is_some();
                match &mut first {
                    // As the first of its tracepoints says, and once, wherever one of them means that it leads.
                    Some(one) if stands == placement && !within.is_empty() => {
                        one.within.extend(within);
                        one.within.sort_unstable();
                        one.within.dedup();
                    }
                    Some(one) if stands == placement => one.within.clear(),
                    Some(_) => {}
                    None => {
                        let probe = point.probe;
                        stands = placement;
                        first = Some(Match { of_instruction, leaves, reach, within, ..Match::of(probe) });
                    }
                }
                if first.as_ref().is_some_and(|one| one.within.is_empty()) {
                    break;
                }
            }
            let all = first.map(|one| self.by_space(point, one, &instruction, &facts)).unwrap_or_default();
            match stands {
                Placement::After => behind.extend(all),
                Placement::Before | Placement::Reach => before.extend(all),
            }
        }
        if before.iter().chain(&behind).any(|one| one.of_instruction) && !self.is_reachable(number) {
            before.retain(|one| !one.of_instruction);
            behind.clear();
        }
        let mut found = Vec::new();
        if !before.is_empty() {
            let reach = before.iter().any(|one| one.reach);
            before.iter_mut().for_each(|one| one.under_guard = reach && !one.reach);
            let of_instructions = before.iter().all(|one| one.of_instruction);
            let kind = match (of_instructions, before.iter().any(|one| one.leaves)) {
                (true, _) => Kind::Instruction,
                (false, true) => |_| Kind::Exit,
                (false, false) => |_| Kind::FuncExit,
            };
            found.push(self.site(here, &facts, reach, before, kind));
        }
        if behind.is_empty() {
            return Ok(found);
        }
        // What asks for a result that is there only later stands behind the wait for it.
        let known = facts.get_or_init(|| self.module.facts(&instruction)).filter(waits::is_late);
        let wait = known
            .map(|known| waits::find(self.module, self.info, self.function, (number, instruction), &known));
        let is_of = |one: &Match| self.points.iter().any(|point| point.probe == one.probe && point.out);
        let (late, behind): (Vec<Match>, Vec<Match>) =
            behind.into_iter().partition(|one| matches!(wait, Some(Ok(_))) && is_of(one));
        if !behind.is_empty() {
            let mut site = self.site(here, &facts, false, behind, Kind::After);
            site.access.late = wait.and_then(Result::err);
            found.push(site);
        }
        if let (Some(Ok(wait)), Some(known)) = (wait, known)
            && !late.is_empty()
        {
            let mut site = self.site(here, &facts, false, late, Kind::After);
            let reader = Reader::new(self.module, self.info, self.function, &instruction);
            site.access = reader.waited(&known, wait);
            let end = self.module.statements.get(wait as usize).map_or(site.offset, |one| one.span.end);
            (site.offset, site.next) = (end, wait + 1);
            found.push(site);
        }
        Ok(found)
    }

    fn site(
        &self,
        here: Here<'_>,
        facts: &OnceCell<Option<Facts>>,
        reach: bool,
        probes: Vec<Match>,
        kind: impl Fn(Option<Class>) -> Kind,
    ) -> Found {
        let Here { number, statement, instruction, .. } = here;
        let of_instruction = probes.iter().any(|one| one.of_instruction);
        let facts = of_instruction.then(|| *facts.get_or_init(|| self.module.facts(&instruction))).flatten();
        let class = facts.map(|facts| facts.class);
        let kind = kind(class);
        let is_after = matches!(kind, Kind::After(_));
        let is_of = |probe: usize| self.points.iter().any(|point| point.probe == probe && point.values);
        let values = probes.iter().any(|one| is_of(one.probe));
        let access = facts.map_or_else(Access::default, |facts| {
            let reader = Reader::new(self.module, self.info, self.function, &instruction);
            let mut access = reader.access(&facts, is_after, values);
            // Compilers read results before their wait where no value moves (`mov.b64 %rd1, {%r1, %r2};`). A body's read does.
            access
                .inputs
                .iter_mut()
                .for_each(|one| drop(one.take_if(|taken| self.is_pending(number, taken))));
            access
        });
        let (offset, next) = match is_after {
            true => (statement.span.end, number + 1),
            false => place(self.module, number).unwrap_or((statement.span.start, number)),
        };
        Found {
            function: self.function,
            kind,
            offset,
            next,
            statement: Some(number),
            guard: guard(self.module, &instruction),
            callee: class.filter(|&class| class == Class::Call).and_then(|_| self.callee(&instruction)),
            access,
            facts,
            reach,
            probes,
            mark: None,
            position: (0, 0),
            source: None,
        }
    }

    /// Is one of these values still on its way where the statement stands?
    fn is_pending(&self, statement: u32, values: &[Element]) -> bool {
        let pending = self.pending.get_or_init(|| Pending::find(self.module, self.function));
        values.iter().any(|value| match &value.source {
            Source::Register { name, .. } => pending.holds(statement, name),
            Source::Number(_) => false,
        })
    }

    /// The function that a direct call goes to.
    fn callee(&self, instruction: &Instruction) -> Option<String> {
        let operands = self.module.operands(instruction);
        let target = operands.iter().find(|operand| !matches!(operand.kind, OperandKind::List(_)))?;
        let OperandKind::Name(name) = target.kind else { return None };
        let name = self.module.at(name);
        let is_register = self.info.declared_at(self.function, instruction.opcode.start, name).is_some();
        (!is_register).then(|| name.to_owned())
    }

    fn entry(&self) -> Option<&'a Function> {
        self.module.functions.get(self.function)
    }

    /// The first statements of the basic blocks that begin with a label.
    pub(crate) fn starts(&self) -> Vec<u32> {
        let blocks = self.flow().blocks.iter().map(|block| block.statements.start);
        let is_label = |&at: &u32| {
            let statement = self.module.statements.get(at as usize);
            statement.is_some_and(|one| matches!(one.kind, StatementKind::Label(_)))
        };
        blocks.filter(is_label).collect()
    }

    pub(crate) fn flow(&self) -> &Flow {
        self.flow.get_or_init(|| flow(self.module, self.info, self.function))
    }

    pub(crate) fn is_reachable(&self, number: u32) -> bool {
        self.flow().is_cut || self.flow().is_reachable(number)
    }

    /// Does a tracepoint mean this instruction?
    fn selects(
        &self,
        wanted: Wanted<'_>,
        here: Here<'_>,
        facts: &OnceCell<Option<Facts>>,
    ) -> Result<Option<Selected>, Refused> {
        let Here { number, instruction, .. } = here;
        let (placement, within) = match wanted {
            Wanted::Any => return Ok(Some((Placement::Before, Vec::new()))),
            Wanted::Point(Tracepoint::Ptx { glob, placement }) => {
                if !glob_matches(glob, self.module.at(instruction.opcode)) {
                    return Ok(None);
                }
                (*placement, Vec::new())
            }
            Wanted::Point(Tracepoint::Line { file, first, last, placement }) => {
                let is_meant = here.begins.is_some_and(|(name, line)| {
                    (*first..=*last).contains(&line) && crate::lines::is_end_of(file, name)
                });
                if !is_meant {
                    return Ok(None);
                }
                (*placement, Vec::new())
            }
            Wanted::Point(Tracepoint::Inst { classes, spaces, quals, placement }) => {
                let facts = facts.get_or_init(|| self.module.facts(&instruction));
                let Some(facts) = facts else {
                    // No table knows it: it is none of these, but it is an instruction.
                    let is_any = classes.iter().any(|class| class == "*");
                    let is_meant = is_any && spaces.is_empty() && quals.is_empty();
                    return Ok(is_meant.then(|| (*placement, Vec::new())));
                };
                let holds = |word: &String| {
                    if word == "backward" {
                        return self.flow().backward.iter().any(|&(branch, _)| branch == number);
                    }
                    facts.qualifies(word) == Some(true)
                };
                if !classes.iter().any(|class| facts.class.is(class))
                    || !quals.iter().all(|list| list.iter().any(holds))
                {
                    return Ok(None);
                }
                match self.spaces(spaces, &instruction, facts)? {
                    Some(within) => (*placement, within),
                    None => return Ok(None),
                }
            }
            Wanted::Exit | Wanted::Leave | Wanted::Point(_) => return Ok(None),
        };
        let base = self.module.opcode(&instruction).base;
        // Nothing runs behind what jumps or ends.
        if placement == Placement::After && matches!(base, "bra" | "brx" | "ret" | "exit" | "trap") {
            return Ok(None);
        }
        if placement == Placement::Reach && instruction.guard.is_some() && !within.is_empty() {
            let what =
                "where this leads is asked when it runs, and lanes whose guard does not hold lead nowhere";
            let why = self.refusal("unclear-address", instruction.opcode, what);
            return Err(Box::new(
                why.help("probe it `before`, or all that do not say where they go: `generic:reach`"),
            ));
        }
        Ok(Some((placement, within)))
    }

    pub(crate) fn refusal(&self, slug: &'static str, at: Span, what: impl Into<String>) -> Refused {
        let name = self.entry().map_or("", |entry| self.module.at(entry.name));
        Box::new(Diagnostic::error(slug, at, format!("kernel `{name}` cannot be probed")).label(what))
    }
}

/// The guard of an instruction.
pub(crate) fn guard(module: &Module<'_>, instruction: &Instruction) -> Option<Guard> {
    let guard = instruction.guard?;
    Some(Guard { register: module.at(guard.register).to_owned(), negated: guard.negated })
}

/// Does an instruction with a guard follow, which is no branch? Pragmas and lines of source may stand before it.
///
/// Effects before it then stand under that guard, unless the span says that it is for all lanes. All lanes come to a branch,
/// whichever way they go.
pub(crate) fn is_guarded(module: &Module<'_>, next: u32) -> bool {
    let behind = module.statements.get(next as usize..).unwrap_or_default();
    let mut behind = behind.iter().map(|statement| statement.kind);
    match behind.find(|kind| !matches!(kind, StatementKind::Loc | StatementKind::Pragma(_))) {
        Some(StatementKind::Instruction(instruction)) => {
            instruction.guard.is_some() && !matches!(module.opcode(&instruction).base, "bra" | "brx")
        }
        _ => false,
    }
}

/// Before the guard of an instruction, and before the pragmas that speak of it: the byte, and the statement there.
pub(crate) fn place(module: &Module<'_>, number: u32) -> Option<(u32, u32)> {
    let at = module.statements.get(number as usize)?.span.start;
    let mut place = (at, number);
    let before = module.statements.get(..number as usize)?;
    for (number, before) in (0..number).rev().zip(before.iter().rev()) {
        match before.kind {
            StatementKind::Loc => {}
            StatementKind::Pragma(text) if crate::choose::is_of_next(module.at(text)) => {
                place = (before.span.start, number);
            }
            _ => break,
        }
    }
    Some(place)
}
