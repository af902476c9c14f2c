//! Computes the same thing once.
//!
//! ```text
//! %0: u64 uniform = state start       %0: u64 uniform = state start
//! %1: u64 uniform = clock             %1: u64 uniform = clock
//! %2: u64 uniform = state start  ->   %3: u64 uniform = sub %1, %0
//! %3: u64 uniform = sub %1, %2
//! ```
//!
//! What is not the same though it reads the same: clocks, which go on; `active`, since the machine may have parted the
//! lanes between; a state, across an assignment. A state read right after it was assigned in every active lane is the value
//! that was assigned.

use crate::program::{BinaryOp, CompareOp, Op, Probe, Program, Type, ValueId};
use std::collections::HashMap;

pub(super) fn run(program: &mut Program) {
    program.probes.iter_mut().for_each(share);
}

fn share(probe: &mut Probe) {
    // Looked up by key alone, so the map's order never shows.
    let mut known: HashMap<(Op, Type), ValueId> = HashMap::new();
    let mut same: Vec<ValueId> = (0..probe.values.len() as u32).map(ValueId).collect();
    for inst in &mut probe.code {
        inst.for_each_use(&mut |id| *id = same[id.0 as usize]);
        if let Op::WriteState(state, value) = inst.op {
            let ty = probe.values[value.0 as usize].ty;
            let key = (Op::ReadState(state), ty);
            // Lanes outside of the predicate are not active: what they would read does not matter.
            if inst.guard.is_none() || inst.guard == probe.predicate {
                known.insert(key, value);
            } else {
                known.remove(&key);
            }
        }
        let (Some(result), Some(op)) = (inst.result, key(&inst.op)) else { continue };
        let value = probe.values[result.0 as usize];
        match known.get(&(op.clone(), value.ty)) {
            // The first may be known to be less.
            Some(first) if probe.values[first.0 as usize].uniform >= value.uniform => {
                same[result.0 as usize] = *first;
            }
            _ => {
                known.insert((op, value.ty), result);
            }
        }
    }
    if let Some(predicate) = &mut probe.predicate {
        *predicate = same[predicate.0 as usize];
    }
}

/// What two equal computations share; `None` for what is never the same twice.
fn key(op: &Op) -> Option<Op> {
    match *op {
        Op::Builtin(builtin) if !builtin.is_stable() => None,
        Op::ClockAfter(..) | Op::ClockAfterOperand(..) => None,
        ref effect if effect.is_effect() => None,
        Op::Binary(op, a, b) if commutes(op) => Some(Op::Binary(op, a.min(b), a.max(b))),
        Op::Compare(op @ (CompareOp::Eq | CompareOp::Ne), a, b) => Some(Op::Compare(op, a.min(b), a.max(b))),
        ref other => Some(other.clone()),
    }
}

fn commutes(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Add
            | BinaryOp::Mul
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Min
            | BinaryOp::Max
    )
}
