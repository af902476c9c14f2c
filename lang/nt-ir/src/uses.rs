//! Which values an operation uses: the one place that knows where they stand.

use crate::program::{Inst, Op, Operand, ValueId};

impl Op {
    /// The values it uses, in order.
    pub fn operands(&self) -> Vec<ValueId> {
        let mut operands = Vec::new();
        // A visit that changes nothing, of a copy.
        self.clone().for_each_operand(&mut |id| operands.push(*id));
        operands
    }

    /// Visits the values it uses, which may be replaced.
    pub fn for_each_operand(&mut self, visit: &mut dyn FnMut(&mut ValueId)) {
        match self {
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
            | Op::Match { .. } => {}
            Op::Unary(_, a) | Op::Cast(a) | Op::Bits(a) | Op::ClockAfter(_, a) | Op::WriteState(_, a) => {
                visit(a);
            }
            Op::Binary(_, a, b) | Op::Compare(_, a, b) => {
                visit(a);
                visit(b);
            }
            Op::Select(c, a, b) => {
                visit(c);
                visit(a);
                visit(b);
            }
            Op::Aggregate { value, .. } => value.iter_mut().for_each(visit),
            Op::Save { values, .. } => values.iter_mut().for_each(|(_, value)| visit(value)),
        }
    }

    /// Is the value that it defines the same in every lane of a group, where all that it uses is? Whether the bytes of an
    /// access are is told by its class, and whether a state is by all assignments of it: `None`.
    pub fn keeps_lanes_alike(&self) -> Option<bool> {
        match self {
            Op::Operand(Operand::Bytes) | Op::ReadState(_) => None,
            Op::Builtin(builtin) => Some(builtin.is_uniform()),
            Op::Operand(_) | Op::CastOperand(_) | Op::BitsOperand(_) | Op::CompareOperands(..) => Some(false),
            _ => Some(true),
        }
    }

    /// Is it an effect, or a state's assignment, rather than a value?
    pub fn is_effect(&self) -> bool {
        matches!(self, Op::WriteState(..) | Op::Save { .. } | Op::Aggregate { .. })
    }
}

impl Inst {
    /// Visits the values it uses, its guard among them.
    pub fn for_each_use(&mut self, visit: &mut dyn FnMut(&mut ValueId)) {
        self.op.for_each_operand(visit);
        self.guard.iter_mut().for_each(visit);
    }
}
