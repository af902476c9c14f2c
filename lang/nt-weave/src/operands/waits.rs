//! Finds the wait behind which what an asynchronous instruction gives is there.
//!
//! ```text
//! tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r9];
//! add.u32 %r8, %r8, 1;
//! tcgen05.wait::ld.sync.aligned;
//!                                          <- a body behind the load that asks for `out`
//! ```
//!
//! Matrix instructions (`wgmma`) are waited for by `commit_group` and `wait_group 0`: behind `wait_group 1` ptxas waits for
//! the later groups too if a register is read. All lanes that execute the instruction come to the wait if nothing between
//! them jumps, ends, calls or has a label; its registers hold what it gave if nothing between writes them: of several that
//! go on with one accumulator the last alone has an `out`. PTX ISA 9.0, 9.7.15.7 and 9.7.16.8.

use nt_diag::Span;
use nt_ptx::ModuleInfo;
use nt_ptx::opcode::{Class, Completion, Facts};
use nt_ptx::syntax::{Instruction, Kind, Module, Operand, OperandKind};
use std::ops::Range;

/// More statements between an instruction and its wait are looked over by nobody.
const FAR: usize = 4096;

/// Does it give something that is there only behind a wait?
pub(crate) fn is_late(facts: &Facts) -> bool {
    matches!(facts.completes, Completion::MatrixGroup | Completion::TensorLoad)
        && !facts.writes.is_empty()
        && facts.class.info().operands.contains(&"out")
}

/// The wait of an instruction that gives something late, as a statement; else where and why there is none.
pub(crate) fn find(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    function: usize,
    (number, instruction): (u32, Instruction),
    facts: &Facts,
) -> Result<u32, (Span, &'static str)> {
    let at = instruction.opcode;
    if instruction.guard.is_some() {
        return Err((at, "`out` is there only behind a wait, where its guard may be another"));
    }
    let operands = module.operands(&instruction);
    let mut given = Vec::new();
    facts
        .writes
        .iter()
        .filter_map(|place| operands.get(place))
        .for_each(|one| names(module, one, &mut given));
    let body = module.functions.get(function).and_then(|function| function.body.as_ref());
    let end = body.map_or(number, |body| body.statements.end);
    let mut is_promised = facts.completes == Completion::TensorLoad;
    for index in (number + 1..end).take(FAR) {
        let Some(statement) = module.statements.get(index as usize) else { break };
        let other = match statement.kind {
            Kind::Instruction(other) => other,
            Kind::Label(_) => {
                return Err((statement.span, "before the wait for `out` other lanes may come in here"));
            }
            _ => continue,
        };
        let base = module.opcode(&other).base;
        if matches!(base, "bra" | "brx" | "ret" | "exit" | "trap" | "call") {
            return Err((other.opcode, "before the wait for `out` lanes may go elsewhere here"));
        }
        let known = module.facts(&other);
        let opcode = module.at(other.opcode);
        if other.guard.is_none() {
            let is_all = waits_for_all(module, &other, facts.completes);
            match known {
                Some(known) if known.awaits == Some(facts.completes) && is_promised && is_all => {
                    let declared = |at: Span, name: &str| info.declared_at(function, at.start, name);
                    let same = given.iter().all(|name| declared(at, name) == declared(other.opcode, name));
                    return if same {
                        Ok(index)
                    } else {
                        Err((at, "at the wait for `out` its registers are out of scope"))
                    };
                }
                Some(known) if known.class == Class::Commit && opcode.starts_with("wgmma.") => {
                    is_promised = true;
                }
                _ => {}
            }
        }
        let mut written = Vec::new();
        let operands = module.operands(&other);
        match known {
            Some(known) => {
                let places = known.writes.iter().filter_map(|place| operands.get(place));
                places.for_each(|one| names(module, one, &mut written));
            }
            None => operands.iter().for_each(|one| names(module, one, &mut written)),
        }
        if written.iter().any(|name| given.contains(name)) {
            return Err((other.opcode, "before the wait for `out` it is overwritten here"));
        }
    }
    Err((at, "`out` is there only behind a wait, and none follows before control may come or go elsewhere"))
}

/// Where in a function registers hold what is not there yet: from an asynchronous instruction to the wait for it, in the
/// order of the text. What a loop brings round before its wait is not seen here; the verifier follows every way.
#[derive(Debug, Default)]
pub(crate) struct Pending<'s> {
    stretches: Vec<(Range<u32>, Vec<&'s str>)>,
}

impl<'s> Pending<'s> {
    /// Looks through a function.
    pub(crate) fn find(module: &Module<'s>, function: usize) -> Self {
        let body = module.functions.get(function).and_then(|function| function.body.as_ref());
        let Some(body) = body else { return Pending::default() };
        let (mut open, mut stretches) = (Vec::new(), Vec::new());
        for number in body.statements.start..body.statements.end {
            let statement = module.statements.get(number as usize).map(|statement| statement.kind);
            let Some(Kind::Instruction(instruction)) = statement else { continue };
            if !matches!(module.opcode(&instruction).base, "wgmma" | "tcgen05") {
                continue;
            }
            let Some(facts) = module.facts(&instruction) else { continue };
            if is_late(&facts) {
                let operands = module.operands(&instruction);
                let mut given = Vec::new();
                let places = facts.writes.iter().filter_map(|place| operands.get(place));
                places.for_each(|one| names(module, one, &mut given));
                open.push((number + 1, facts.completes, given));
            } else if let Some(awaited) = facts.awaits
                && waits_for_all(module, &instruction, awaited)
            {
                let (over, still): (Vec<_>, Vec<_>) =
                    open.into_iter().partition(|(_, kind, _)| *kind == awaited);
                open = still;
                stretches.extend(over.into_iter().map(|(from, _, given)| (from..number + 1, given)));
            }
        }
        let end = body.statements.end;
        stretches.extend(open.into_iter().map(|(from, _, given)| (from..end, given)));
        Pending { stretches }
    }

    /// Is what that register holds still on its way where the statement stands?
    pub(crate) fn holds(&self, statement: u32, register: &str) -> bool {
        self.stretches
            .iter()
            .any(|(stretch, given)| stretch.contains(&statement) && given.contains(&register))
    }
}

/// Does a wait surely happen, and wait for all that it could?
fn waits_for_all(module: &Module<'_>, wait: &Instruction, awaited: Completion) -> bool {
    wait.guard.is_none() && (awaited == Completion::TensorLoad || module.at(wait.operands).trim() == "0")
}

/// The names in an operand.
fn names<'s>(module: &Module<'s>, operand: &Operand, into: &mut Vec<&'s str>) {
    match &operand.kind {
        OperandKind::Name(name) => into.push(module.at(*name)),
        OperandKind::Vector(list) | OperandKind::List(list) => {
            list.iter().for_each(|one| names(module, one, into));
        }
        OperandKind::Pair(one, other) => [one, other].into_iter().for_each(|one| names(module, one, into)),
        _ => {}
    }
}
