//! Which values an effect depends on.

use super::operand::Operand;
use crate::plan::Keep;
use nt_ir::program::{Inst, Op, Probe, ValueId};

/// Marks, by [`ValueId`], what the effects of a probe depend on: saves, sums, and assignments of states that are kept.
pub(crate) fn mark(probe: &Probe, states: &[Keep]) -> Vec<bool> {
    let mut roots = Vec::new();
    for inst in &probe.code {
        match &inst.op {
            Op::Save { values, .. } => roots.extend(values.iter().map(|&(_, value)| value)),
            Op::WriteState(state, value) if states.get(state.0 as usize) == Some(&Keep::Register) => {
                roots.push(*value);
            }
            Op::Aggregate { value, .. } => roots.extend(*value),
            _ => continue,
        }
        roots.extend(inst.guard);
        roots.extend(probe.predicate);
    }
    let mut live = needed(&probe.code, &roots, &[]);
    live.resize(probe.values.len(), false);
    live
}

/// Marks what has to be computed for `roots`, given the values that are `known` already.
///
/// One walk backwards suffices: a value is defined once, before its uses.
pub(crate) fn needed(code: &[Inst], roots: &[ValueId], known: &[Option<Operand<'_>>]) -> Vec<bool> {
    let count =
        code.iter().filter_map(|inst| inst.result).map(|value| value.0 as usize + 1).max().unwrap_or(0);
    let mut needed = vec![false; count];
    let need = |needed: &mut Vec<bool>, value: ValueId| {
        let is_known = known.get(value.0 as usize).is_some_and(Option::is_some);
        if let Some(slot) = needed.get_mut(value.0 as usize) {
            *slot |= !is_known;
        }
    };
    roots.iter().for_each(|&root| need(&mut needed, root));
    for inst in code.iter().rev() {
        if inst.result.is_some_and(|value| needed.get(value.0 as usize) == Some(&true)) {
            for used in uses(&inst.op).into_iter().flatten() {
                need(&mut needed, used);
            }
        }
    }
    needed
}

/// The values that a pure instruction reads.
fn uses(op: &Op) -> [Option<ValueId>; 3] {
    match *op {
        Op::Unary(_, a) | Op::Cast(a) | Op::Bits(a) | Op::ClockAfter(_, a) => [Some(a), None, None],
        Op::Binary(_, a, b) | Op::Compare(_, a, b) => [Some(a), Some(b), None],
        Op::Select(c, a, b) => [Some(c), Some(a), Some(b)],
        Op::Const(_)
        | Op::Builtin(_)
        | Op::ReadState(_)
        | Op::Site(_)
        | Op::Operand(_)
        | Op::CastOperand(_)
        | Op::BitsOperand(_)
        | Op::CompareOperands(..)
        | Op::ClockAfterOperand(..)
        | Op::Has(_)
        | Op::Match { .. }
        | Op::WriteState(..)
        | Op::Save { .. }
        | Op::Aggregate { .. } => [None; 3],
    }
}
