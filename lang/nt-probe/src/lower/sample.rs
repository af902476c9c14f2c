//! `sample(N)` as code: a count in a hidden state, and a condition that holds every Nth time.
//!
//! ```text
//! /sample(16)/      %0: u32 = state sample           /sample(10)/      %0: u32 = state sample
//!                   %1: u32 = const 1                                  %1: u32 = const 1
//!                   %2: u32 = add %0, %1                               %2: u32 = add %0, %1
//!                   %3: u32 = const 15                                 %3: u32 = const 10
//!                   %4: u32 = and %2, %3                               %4: bool = ge %2, %3
//!                   %5: u32 = const 0                                  %5: u32 = const 0
//!                   %6: bool = eq %4, %5                               %6: u32 = select %4, %5, %2
//!                   state sample = %2                                  state sample = %6
//! ```
//!
//! The count begins at the number of the unit, so that units do not sample in step and short ones are sampled fairly; a probe
//! of its own at the kernel's entry sets it. Every lane that the rest of the predicate lets in counts.
//!
//! In a thread probe the condition is a part of the predicate. In a warp probe it is not: lanes that were apart may have
//! counted differently, and the lowest of those whose count is full would be elected, too often. So it guards the effects,
//! and what the elected lane counted decides.

use super::Lowering;
use crate::checked::{Probe, Sample};
use nt_ir::program::{self, BinaryOp, Builtin, CompareOp, Inst, Op, Tracepoint, Type, Unit, Value, ValueId};

impl Lowering<'_> {
    /// Counts, where `rest` holds; gives the condition.
    pub(super) fn sample(&mut self, sample: &Sample, rest: Option<ValueId>) -> ValueId {
        let Sample { every, state, span } = *sample;
        let old = self.emit(Type::U32, Op::ReadState(state), span);
        let one = self.emit(Type::U32, Op::Const(1), span);
        let count = self.emit(Type::U32, Op::Binary(BinaryOp::Add, old, one), span);
        let (hit, next) = if every.is_power_of_two() {
            let mask = self.emit(Type::U32, Op::Const(u64::from(every - 1)), span);
            let phase = self.emit(Type::U32, Op::Binary(BinaryOp::And, count, mask), span);
            let zero = self.emit(Type::U32, Op::Const(0), span);
            (self.emit(Type::Bool, Op::Compare(CompareOp::Eq, phase, zero), span), count)
        } else {
            let every = self.emit(Type::U32, Op::Const(every.into()), span);
            let hit = self.emit(Type::Bool, Op::Compare(CompareOp::Ge, count, every), span);
            let zero = self.emit(Type::U32, Op::Const(0), span);
            (hit, self.emit(Type::U32, Op::Select(hit, zero, count), span))
        };
        self.code.push(Inst { result: None, op: Op::WriteState(state, next), guard: rest, span });
        hit
    }
}

/// The probe that gives a count its first value.
pub(super) fn phase(probe: &Probe, sample: &Sample) -> program::Probe {
    let Sample { every, state, span } = *sample;
    let unit = if probe.unit == Unit::Thread { Builtin::Thread } else { Builtin::Warp };
    let uniform = unit.is_uniform();
    let mut ops = vec![(Type::U64, uniform, Op::Builtin(unit)), (Type::U32, uniform, Op::Cast(ValueId(0)))];
    let mut first = ValueId(1);
    if !every.is_power_of_two() {
        ops.push((Type::U32, true, Op::Const(every.into())));
        ops.push((Type::U32, uniform, Op::Binary(BinaryOp::Rem, ValueId(1), ValueId(2))));
        first = ValueId(3);
    }
    let values = ops.iter().map(|(ty, uniform, _)| Value { ty: *ty, uniform: *uniform }).collect();
    let code =
        (0..).zip(ops).map(|(id, (_, _, op))| Inst { result: Some(ValueId(id)), op, guard: None, span });
    let set = Inst { result: None, op: Op::WriteState(state, first), guard: None, span };
    program::Probe {
        unit: probe.unit,
        points: vec![Tracepoint::KernelEntry { kernel: None }],
        predicate: None,
        values,
        code: code.chain([set]).collect(),
        span,
    }
}
