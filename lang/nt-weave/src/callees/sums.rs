//! States come back out of functions as sums: a clone adds what it has counted to the tables itself, where it returns.
//!
//! ```text
//! state n; inst:load { n += 4; } kernel:exit { @a = sum(n); }
//!
//! .func f__nt__k(…, n)  { … n += 4; …  @a += n - what n was at the entry;  ret; }
//! ```
//!
//! A state goes into a clone by value. One that is only increased, and
//! whose sum alone is asked for when lanes leave, is added to its table by the clone itself where it returns: by as much as
//! the clone has increased it. Any other that a function assigns, and that is read behind a call of it, comes back out beside
//! the function's own result (`returns.rs`).

use super::Calls;
use super::cloned::refusal;
use super::stale::read_behind;
use crate::Refused;
use crate::bodies::{Body, Site};
use crate::emit::increases;
use crate::plan::Keep;
use crate::sites::{Found, Kind};
use nt_diag::Span;
use nt_ir::program::{Func, Inst, Key, Op, Probe, Program, SiteKey, StateId, Unit, ValueId};
use nt_ptx::syntax::{Kind as StatementKind, Module};
use nt_ptx::{ModuleInfo, flow};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Puts the sites at which a clone returns behind the others at the same place.
pub(super) fn insert<'p>(sites: &mut Vec<Site<'p>>, function: usize, added: Vec<Site<'p>>) {
    for site in added {
        let is_of = |other: &Site<'_>| other.found.function == function;
        let last = sites.iter().rposition(|other| is_of(other) && other.found.offset <= site.found.offset);
        let first = || sites.iter().position(is_of).unwrap_or(sites.len());
        let at = last.map_or_else(first, |last| last + 1);
        sites.insert(at, site);
    }
}

/// What becomes of states that functions assign.
#[derive(Default)]
pub(super) struct StatesOut<'p> {
    /// The sites at which clones add up what they increased.
    pub(super) added: BTreeMap<usize, Vec<Site<'p>>>,
    /// The states that come back, by the functions that lead to an assignment.
    pub(super) back: BTreeMap<usize, BTreeSet<StateId>>,
}

/// Which states come out of functions, and how.
#[allow(clippy::too_many_arguments, reason = "all that is known of a kernel")]
pub(super) fn states_out<'p>(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    program: &Program,
    calls: &Calls,
    kernel: usize,
    clones: &BTreeSet<usize>,
    keep: &[Keep],
    sites: &[Site<'p>],
) -> Result<StatesOut<'p>, Refused> {
    let mut out = StatesOut::default();
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
        let mut readers = clones.iter().chain([&kernel]);
        if readers.any(|&function| read_behind(module, info, calls, &assigning, function, sites, state)) {
            assigning.iter().for_each(|&function| _ = out.back.entry(function).or_default().insert(state));
        }
    }
    for (function, states) in sums {
        out.added.insert(function, returns(module, info, program, sites, function, kernel, &states)?);
    }
    Ok(out)
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
            code.iter().zip(&by).all(|(inst, by)| match inst.op {
                Op::WriteState(to, _) if to == state => by.is_some(),
                Op::ReadState(from) if from == state => {
                    is_in_sum(inst.result)
                        || (body.leaves
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
    let exit = sites.iter().find(|site| site.bodies.iter().any(|body| body.leaves));
    let Some(exit) = exit else {
        let at = module.functions.get(kernel).map_or(Span::at(0), |kernel| kernel.name);
        let label = "no lane leaves it where what its functions count could be added".to_owned();
        return Err(refusal(module, at, "state-out-of-callee", kernel, label));
    };
    let bodies: Vec<Body<'p>> = exit
        .bodies
        .iter()
        .filter(|body| body.leaves)
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
