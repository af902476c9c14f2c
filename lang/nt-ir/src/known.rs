//! Which values of a probe are known when a kernel is woven: constants after `close`, at every site.
//!
//! ```text
//! %0: u32 uniform = site line          known
//! %1: u64 uniform = cast %0            known
//! %2: u64 uniform = clock              not
//! ```

use crate::program::{Op, Operand, Probe, Type, Unit};

/// For each value, by number, whether it is known.
pub(crate) fn known_when_woven(probe: &Probe) -> Vec<bool> {
    let mut known = vec![false; probe.values.len()];
    for inst in &probe.code {
        let Some(result) = inst.result else { continue };
        let value = |known: &[bool], id: crate::program::ValueId| {
            let ty = probe.values.get(id.0 as usize).map(|value| value.ty);
            // Floats are not computed here (`eval`).
            known.get(id.0 as usize) == Some(&true) && !matches!(ty, Some(Type::F32 | Type::F64) | None)
        };
        let is_float =
            probe.values.get(result.0 as usize).is_none_or(|value| matches!(value.ty, Type::F32 | Type::F64));
        let holds = match &inst.op {
            Op::Const(_) | Op::Site(_) | Op::Has(_) | Op::Match { .. } => true,
            // Of what the text leaves open, `close` refuses to speak where lanes may not differ.
            Op::Operand(Operand::Bytes) => {
                probe.unit != Unit::Thread
                    && probe.values.get(result.0 as usize).is_some_and(|value| value.uniform)
            }
            Op::Unary(..) | Op::Binary(..) | Op::Compare(..) | Op::Cast(_) | Op::Bits(_) | Op::Select(..) => {
                !is_float && inst.op.operands().into_iter().all(|id| value(&known, id))
            }
            Op::Builtin(_)
            | Op::ReadState(_)
            | Op::Operand(_)
            | Op::CastOperand(_)
            | Op::BitsOperand(_)
            | Op::CompareOperands(..)
            | Op::ClockAfter(..)
            | Op::ClockAfterOperand(..)
            | Op::WriteState(..)
            | Op::Save { .. }
            | Op::Aggregate { .. } => false,
        };
        if let Some(slot) = known.get_mut(result.0 as usize) {
            *slot = holds;
        }
    }
    known
}
