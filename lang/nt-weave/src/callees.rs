//! Finds what probes want of the functions that a kernel calls, and what comes of their states there.
//!
//! ```text
//! .entry k  { … call f; … }      f has a site, so k calls a clone of it, which knows the context
//! .func  f  { … call g; … }      g has none, and calls none: it stays
//! ```
//!
//! A state goes into a clone by value. What the clone assigns does not come back; so a state that is only increased, and
//! whose sum alone is asked for when lanes leave, is added to its table by the clone itself where it returns: by as much as
//! the clone has increased it. Any other state that a function assigns must not be read by its caller behind the call.
//!
//! Functions that are reached through pointers are not followed. docs/injection.md, Functions.

use crate::Refused;
use crate::bodies::{Body, Site};
use crate::choose::{Names, name};
use crate::emit::increases;
use crate::plan::Keep;
use crate::sites::{Found, Kind};
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Func, Inst, Key, Op, Probe, Program, SiteKey, StateId, Unit, ValueId};
use nt_ptx::syntax::{Instruction, Kind as StatementKind, Module, OperandKind};
use nt_ptx::{ModuleInfo, flow};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A direct call of a function that has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// The statement.
    pub(crate) statement: u32,
    /// The function, by index of its definition.
    pub(crate) callee: usize,
    /// Is it called by its own name, and not by an alias?
    pub(crate) is_by_name: bool,
}

/// Who calls whom, of a kernel and what it reaches by direct calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The calls in each function, by index of its definition; the kernel is among them.
    of: BTreeMap<usize, Vec<Call>>,
}

impl Calls {
    /// The calls of a kernel and of all that it reaches.
    pub(crate) fn of(module: &Module<'_>, info: &ModuleInfo<'_>, names: &Names<'_>, kernel: usize) -> Calls {
        let mut calls = Calls::default();
        let mut waiting = vec![kernel];
        while let Some(function) = waiting.pop() {
            if calls.of.contains_key(&function) {
                continue;
            }
            let found = calls_in(module, info, names, function);
            waiting.extend(found.iter().map(|call| call.callee));
            calls.of.insert(function, found);
        }
        calls
    }

    /// The calls in a function, in text order.
    pub(crate) fn within(&self, function: usize) -> &[Call] {
        self.of.get(&function).map_or(&[], Vec::as_slice)
    }

    /// What is reached beside the kernel, in text order.
    pub(crate) fn callees(&self, kernel: usize) -> Vec<usize> {
        self.of.keys().copied().filter(|&function| function != kernel).collect()
    }

    /// These functions and all that lead to them, but the kernel.
    fn leading_to(&self, mut some: BTreeSet<usize>, kernel: usize) -> BTreeSet<usize> {
        loop {
            let before = some.len();
            for (&function, calls) in &self.of {
                if function != kernel && calls.iter().any(|call| some.contains(&call.callee)) {
                    some.insert(function);
                }
            }
            if some.len() == before {
                return some;
            }
        }
    }
}

fn calls_in(module: &Module<'_>, info: &ModuleInfo<'_>, names: &Names<'_>, function: usize) -> Vec<Call> {
    let Some(known) = info.functions.get(function).filter(|known| !known.calls.is_empty()) else {
        return Vec::new();
    };
    let Some(declared) = module.functions.get(function) else { return Vec::new() };
    let start = declared.body.as_ref().map_or(0, |body| body.statements.start);
    let mut calls = Vec::new();
    for (statement, one) in (start..).zip(module.body(declared)) {
        let StatementKind::Instruction(instruction) = one.kind else { continue };
        let Some(called) = callee(module, &instruction).filter(|called| known.calls.contains(called)) else {
            continue;
        };
        let is_defined = |&index: &usize| {
            module.functions.get(index).is_some_and(|function| function.body.is_some() && !function.is_entry)
        };
        let defined = |name: &str| names.all(name).iter().copied().find(is_defined);
        let own = defined(called);
        if let Some(callee) = own.or_else(|| defined(names.target(called)?)) {
            calls.push(Call { statement, callee, is_by_name: own.is_some() });
        }
    }
    calls
}

/// The name that a call goes to.
fn callee<'s>(module: &Module<'s>, instruction: &Instruction) -> Option<&'s str> {
    if module.opcode(instruction).base != "call" {
        return None;
    }
    let operands = module.operands(instruction);
    let target = operands.iter().find(|operand| !matches!(operand.kind, OperandKind::List(_)))?;
    match target.kind {
        OperandKind::Name(name) => Some(module.at(name)),
        _ => None,
    }
}

/// The functions that are cloned for a kernel, and what each must be given.
#[derive(Debug, Default)]
pub(crate) struct Cloned {
    /// By index of their definitions, in text order.
    pub(crate) list: Vec<Needs>,
}

/// What a clone uses, itself or by what it calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The function, by index of its definition.
    pub(crate) function: usize,
    pub(crate) states: BTreeSet<StateId>,
    /// Indices into the program's maps and tables.
    pub(crate) maps: BTreeSet<usize>,
    pub(crate) tables: BTreeSet<usize>,
    /// The number of the launch, and the zero.
    pub(crate) launch: bool,
    pub(crate) zero: bool,
}

impl Needs {
    fn add(&mut self, other: &Needs) {
        self.states.extend(&other.states);
        self.maps.extend(&other.maps);
        self.tables.extend(&other.tables);
        self.launch |= other.launch;
        self.zero |= other.zero;
    }

    fn of_site(&mut self, site: &Site<'_>, keep: &[Keep]) {
        use nt_ir::program::Builtin;
        for inst in site.bodies.iter().flat_map(|body| &body.code.code) {
            match &inst.op {
                Op::ReadState(state) | Op::WriteState(state, _)
                    if keep.get(state.0 as usize) == Some(&Keep::Register) =>
                {
                    self.states.insert(*state);
                }
                Op::Save { map, .. } => _ = self.maps.insert(map.0 as usize),
                Op::Aggregate { table, .. } => _ = self.tables.insert(table.0 as usize),
                Op::Builtin(Builtin::Launch) => self.launch = true,
                Op::ClockAfter(..) => self.zero = true,
                _ => {}
            }
        }
    }
}

impl Cloned {
    /// What has to be cloned, `sites` being those of the kernel and of all that it reaches.
    ///
    /// # Errors
    /// A state would have to come back out of a function, or a function is called by another name.
    pub(crate) fn of(
        module: &Module<'_>,
        info: &ModuleInfo<'_>,
        program: &Program,
        calls: &Calls,
        kernel: usize,
        keep: &[Keep],
        sites: &mut Vec<Site<'_>>,
    ) -> Result<Cloned, Refused> {
        let with_sites: BTreeSet<usize> =
            sites.iter().map(|site| site.found.function).filter(|&function| function != kernel).collect();
        if with_sites.is_empty() {
            return Ok(Cloned::default());
        }
        let clones = calls.leading_to(with_sites, kernel);
        check_names(module, calls, &clones)?;
        let added = states_out(module, info, program, calls, kernel, &clones, keep, sites)?;
        for (function, state_sites) in added {
            insert(sites, function, state_sites);
        }
        let mut needs: BTreeMap<usize, Needs> =
            clones.iter().map(|&function| (function, Needs { function, ..Needs::default() })).collect();
        for site in sites.iter() {
            if let Some(needs) = needs.get_mut(&site.found.function) {
                needs.of_site(site, keep);
            }
        }
        loop {
            let before = needs.clone();
            for (function, own) in &mut needs {
                for call in calls.within(*function) {
                    if let Some(other) = before.get(&call.callee) {
                        own.add(other);
                    }
                }
            }
            if before == needs {
                return Ok(Cloned { list: needs.into_values().collect() });
            }
        }
    }

    /// The functions, and the kernel that they are cloned for.
    pub(crate) fn functions(&self, kernel: usize) -> impl Iterator<Item = (usize, usize)> {
        self.list.iter().map(move |needs| (needs.function, kernel))
    }

    pub(crate) fn has(&self, function: usize) -> bool {
        self.list.iter().any(|needs| needs.function == function)
    }
}

fn refusal(module: &Module<'_>, at: Span, slug: &'static str, function: usize, label: String) -> Refused {
    let name = name(module, function);
    Box::new(Diagnostic::error(slug, at, format!("instructions cannot be probed in `{name}`")).label(label))
}

fn check_names(module: &Module<'_>, calls: &Calls, clones: &BTreeSet<usize>) -> Result<(), Refused> {
    for (&function, list) in &calls.of {
        if let Some(call) = list.iter().find(|call| !call.is_by_name && clones.contains(&call.callee)) {
            let at = module.statements.get(call.statement as usize).map_or(Span::at(0), |one| one.span);
            let label = format!("`{}` is probed, and called by an alias here", name(module, call.callee));
            return Err(refusal(module, at, "call-by-alias", function, label));
        }
    }
    Ok(())
}

/// Puts the sites at which a clone returns behind the others at the same place.
fn insert<'p>(sites: &mut Vec<Site<'p>>, function: usize, added: Vec<Site<'p>>) {
    for site in added {
        let is_of = |other: &Site<'_>| other.found.function == function;
        let last = sites.iter().rposition(|other| is_of(other) && other.found.offset <= site.found.offset);
        let first = || sites.iter().position(is_of).unwrap_or(sites.len());
        let at = last.map_or_else(first, |last| last + 1);
        sites.insert(at, site);
    }
}

/// The sites at which clones add up what they increased.
#[allow(clippy::too_many_arguments, reason = "all that is known of a kernel")]
fn states_out<'p>(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    program: &Program,
    calls: &Calls,
    kernel: usize,
    clones: &BTreeSet<usize>,
    keep: &[Keep],
    sites: &[Site<'p>],
) -> Result<BTreeMap<usize, Vec<Site<'p>>>, Refused> {
    // Who assigns which state.
    let mut writers: BTreeMap<StateId, BTreeSet<usize>> = BTreeMap::new();
    for site in sites {
        for inst in site.bodies.iter().flat_map(|body| &body.code.code) {
            if let Op::WriteState(state, _) = inst.op
                && keep.get(state.0 as usize) == Some(&Keep::Register)
                && site.found.function != kernel
            {
                writers.entry(state).or_default().insert(site.found.function);
            }
        }
    }
    let mut sums: BTreeMap<usize, BTreeSet<StateId>> = BTreeMap::new();
    for (state, functions) in writers {
        if is_sum(program, sites, state) {
            functions.iter().for_each(|&function| _ = sums.entry(function).or_default().insert(state));
            continue;
        }
        let assigning = calls.leading_to(functions, kernel);
        for &function in clones.iter().chain([&kernel]) {
            if let Some(at) = read_behind(module, info, calls, &assigning, function, sites, state) {
                let declared = program.states.get(state.0 as usize).map_or("", |state| state.name.as_str());
                let label = format!(
                    "`{declared}` is read here, and may have been assigned in a function called before"
                );
                return Err(refusal(module, at, "state-out-of-callee", function, label));
            }
        }
    }
    let mut added: BTreeMap<usize, Vec<Site<'p>>> = BTreeMap::new();
    for (function, states) in sums {
        added.insert(function, returns(module, info, program, sites, function, kernel, &states)?);
    }
    Ok(added)
}

/// Is the state only increased, and is nothing asked of it but its sum where lanes leave?
fn is_sum(program: &Program, sites: &[Site<'_>], state: StateId) -> bool {
    sites.iter().all(|site| {
        site.bodies.iter().all(|body| {
            let by = increases(&body.code);
            let code = &body.code.code;
            let sums: Vec<ValueId> = code
                .iter()
                .zip(&by)
                .filter_map(|(inst, by)| match inst.op {
                    Op::WriteState(to, sum) if to == state && by.is_some() => Some(sum),
                    _ => None,
                })
                .collect();
            let is_in_sum = |value: Option<ValueId>| {
                let sum = code.iter().find(|inst| inst.result.is_some_and(|sum| sums.contains(&sum)));
                sum.is_some_and(|sum| sum.op.operands().iter().any(|&used| Some(used) == value))
            };
            let is_of_exit = site.found.kind == Kind::Exit && !body.of_instruction;
            code.iter().zip(&by).all(|(inst, by)| match inst.op {
                Op::WriteState(to, _) if to == state => by.is_some(),
                Op::ReadState(from) if from == state => {
                    is_in_sum(inst.result)
                        || (is_of_exit
                            && body.code.unit == Unit::Thread
                            && inst.result.is_some_and(|value| is_summed(program, &body.code, value)))
                }
                _ => true,
            })
        })
    })
}

/// Is a value used for nothing but to be added to tables, widened maybe?
fn is_summed(program: &Program, probe: &Probe, value: ValueId) -> bool {
    let bits = |value: ValueId| probe.values.get(value.0 as usize).map_or(0, |value| value.ty.bits());
    probe.code.iter().all(|inst| {
        if inst.guard == Some(value) || probe.predicate == Some(value) {
            return false;
        }
        if !inst.op.operands().contains(&value) {
            return true;
        }
        match (&inst.op, inst.result) {
            (Op::Cast(_), Some(result)) => bits(value) <= bits(result) && is_summed(program, probe, result),
            (Op::Aggregate { table, .. }, _) => program.tables.get(table.0 as usize).is_some_and(|table| {
                // Which exit it is must not tell the cell: the clone does not know it.
                let is_free = |key: &Key| match key {
                    Key::Site(key) => *key == SiteKey::Kernel,
                    Key::Unit(_) | Key::Bounded(_) => true,
                };
                table.func == Func::Sum && table.keys.iter().all(is_free)
            }),
            _ => false,
        }
    })
}

/// The sites before each `ret` of a function, and at its end, at which it adds to tables what it increased `states` by.
fn returns<'p>(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    program: &Program,
    sites: &[Site<'p>],
    function: usize,
    kernel: usize,
    states: &BTreeSet<StateId>,
) -> Result<Vec<Site<'p>>, Refused> {
    let exit = sites
        .iter()
        .find(|site| site.found.kind == Kind::Exit && site.bodies.iter().any(|body| !body.of_instruction));
    let Some(exit) = exit else {
        let at = module.functions.get(kernel).map_or(Span::at(0), |kernel| kernel.name);
        let label = "no lane leaves it where what its functions count could be added".to_owned();
        return Err(refusal(module, at, "state-out-of-callee", kernel, label));
    };
    let bodies: Vec<Body<'p>> = exit
        .bodies
        .iter()
        .filter(|body| !body.of_instruction)
        .filter_map(|body| summing(program, body, states))
        .collect();
    let (Some(declared), Some(known)) = (module.functions.get(function), info.functions.get(function)) else {
        return Ok(Vec::new());
    };
    let Some(body) = &declared.body else { return Ok(Vec::new()) };
    let flow = flow(module, info, function);
    let mut found = Vec::new();
    for (number, statement) in (body.statements.start..).zip(module.body(declared)) {
        let StatementKind::Instruction(instruction) = statement.kind else { continue };
        if module.opcode(&instruction).base != "ret" || !(flow.is_cut || flow.is_reachable(number)) {
            continue;
        }
        let (offset, next) =
            crate::instructions::place(module, number).unwrap_or((statement.span.start, number));
        let guard = crate::instructions::guard(module, &instruction);
        found.push(Found { statement: Some(number), guard, ..Found::at(Kind::Return, offset, next) });
    }
    if known.end_reachable {
        let offset = body.span.end.saturating_sub(1);
        found.push(Found::at(Kind::Return, offset, body.statements.end));
    }
    let probes = exit.found.probes.clone();
    let site = |found: Found| {
        let found = Found { function, probes: probes.clone(), position: exit.found.position, ..found };
        Site { found, bodies: bodies.clone(), turn: crate::streams::Turn::Alone }
    };
    Ok(found.into_iter().map(site).collect())
}

/// What of a body at an exit adds up these states.
fn summing<'p>(program: &Program, body: &Body<'p>, states: &BTreeSet<StateId>) -> Option<Body<'p>> {
    let code = &body.code.code;
    let reads = |value: ValueId| {
        let mut waiting = vec![value];
        while let Some(value) = waiting.pop() {
            let Some(inst) = code.iter().find(|inst| inst.result == Some(value)) else { return false };
            match inst.op {
                Op::ReadState(state) => return states.contains(&state),
                Op::Cast(of) => waiting.push(of),
                _ => return false,
            }
        }
        false
    };
    let stays = |inst: &&Inst| match inst.op {
        Op::Aggregate { table, value: Some(value) } => {
            reads(value) && program.tables.get(table.0 as usize).is_some_and(|table| table.func == Func::Sum)
        }
        _ => !inst.op.is_effect(),
    };
    let kept: Vec<Inst> = code.iter().filter(stays).cloned().collect();
    if !kept.iter().any(|inst| inst.op.is_effect()) {
        return None;
    }
    let mut summing = body.clone();
    let probe: Probe = Probe { code: kept, ..body.code.clone().into_owned() };
    summing.code = Cow::Owned(probe);
    Some(summing)
}

/// What happens to a state at a place of a function.
#[derive(Clone, Copy)]
enum Event {
    /// A call after which the caller's value is old.
    Call,
    /// It is assigned in every lane.
    Write,
    Read(Span),
}

/// Where a function may read a state that one it called before may have assigned, if anywhere.
fn read_behind(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    calls: &Calls,
    assigning: &BTreeSet<usize>,
    function: usize,
    sites: &[Site<'_>],
    state: StateId,
) -> Option<Span> {
    let mut events: Vec<((u32, u8), Event)> = Vec::new();
    for call in calls.within(function).iter().filter(|call| assigning.contains(&call.callee)) {
        events.push(((call.statement, 1), Event::Call));
    }
    if events.is_empty() {
        return None;
    }
    for site in sites.iter().filter(|site| site.found.function == function) {
        let found = &site.found;
        let order = if matches!(found.kind, Kind::After(_)) { 2 } else { 0 };
        let number = found.statement.unwrap_or(found.next);
        let span = module.statements.get(number as usize).map_or(Span::at(found.offset), |one| one.span);
        let is_whole = found.guard.is_none() || found.reach;
        for body in &site.bodies {
            for inst in &body.code.code {
                match inst.op {
                    Op::ReadState(read) if read == state => events.push(((number, order), Event::Read(span))),
                    Op::WriteState(written, _)
                        if written == state && inst.guard.is_none() && is_whole && body.asked.is_none() =>
                    {
                        events.push(((number, order), Event::Write));
                    }
                    _ => {}
                }
            }
        }
    }
    // Stable: what happens at one site stays in its order.
    events.sort_by_key(|(key, _)| *key);
    let flow = flow(module, info, function);
    let block_of = |number: u32| flow.block_of(number).unwrap_or(flow.blocks.len().saturating_sub(1));
    let mut is_old = vec![flow.is_cut; flow.blocks.len()];
    let mut waiting: Vec<usize> = (0..flow.blocks.len()).rev().collect();
    while let Some(block) = waiting.pop() {
        let mut old = is_old.get(block).copied().unwrap_or(false);
        for (_, event) in events.iter().filter(|((number, _), _)| block_of(*number) == block) {
            match event {
                Event::Call => old = true,
                Event::Write => old = false,
                Event::Read(span) if old => return Some(*span),
                Event::Read(_) => {}
            }
        }
        let next = flow.blocks.get(block).map_or(&[][..], |block| &block.successors);
        for &next in next {
            if let Some(slot) = is_old.get_mut(next as usize)
                && old
                && !*slot
            {
                *slot = true;
                waiting.push(next as usize);
            }
        }
    }
    None
}
