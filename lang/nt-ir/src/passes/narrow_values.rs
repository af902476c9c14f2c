//! Computes and keeps 32 bits where no more are used.
//!
//! ```text
//! state start: u64 = 0                state start: u32 = 0
//! %0: u64 uniform = clock             %0: u32 uniform = clock32
//! state start = %0                    state start = %0
//!   ...                          ->     ...
//! %0: u64 uniform = clock             %0: u32 uniform = clock32
//! %1: u64 uniform = state start       %1: u32 uniform = state start
//! %2: u64 uniform = sub %0, %1        %2: u32 uniform = sub %0, %1
//! %3: u32 uniform = cast %2           %3: u32 uniform = cast %2
//! ```
//!
//! The low half of a sum, difference, product, bitwise operation or left shift depends on the low halves of its operands
//! alone. So a value whose every use is cut to 32 bits, through any number of these, needs no upper half; a state needs none
//! if no read of it does. Nothing is assumed: results are the same bit for bit.

use crate::program::{BinaryOp, Builtin, Inst, Op, Probe, Program, Type, Value, ValueId};
use nt_diag::Span;

pub(super) fn run(program: &mut Program) {
    // Begin with every wide state narrow, and widen those that a whole read forbids, which may forbid more.
    let mut narrow: Vec<bool> = program.states.iter().map(|state| narrowed(state.ty).is_some()).collect();
    loop {
        let before = narrow.clone();
        for probe in &program.probes {
            let whole = whole(probe, &before);
            for inst in &probe.code {
                if let (Some(result), Op::ReadState(state)) = (inst.result, &inst.op)
                    && whole[result.0 as usize]
                {
                    narrow[state.0 as usize] = false;
                }
            }
        }
        if narrow == before {
            break;
        }
    }
    for probe in &mut program.probes {
        let whole = whole(probe, &narrow);
        rewrite(probe, &whole, &narrow);
    }
    for (state, narrow) in program.states.iter_mut().zip(narrow) {
        if let (true, Some(ty)) = (narrow, narrowed(state.ty)) {
            state.ty = ty;
            state.init = ty.canonical(state.init);
        }
    }
}

/// The 32-bit type of the same sign, of an integer type with 64 bits.
fn narrowed(ty: Type) -> Option<Type> {
    match ty {
        Type::U64 | Type::Ptr => Some(Type::U32),
        Type::S64 => Some(Type::S32),
        _ => None,
    }
}

/// Which values have a use of more than their low 32 bits. Of a value that has no uses, none is.
fn whole(probe: &Probe, narrow: &[bool]) -> Vec<bool> {
    let mut whole = vec![false; probe.values.len()];
    for inst in probe.code.iter().rev() {
        if let Some(guard) = inst.guard {
            whole[guard.0 as usize] = true;
        }
        let result = inst.result.is_none_or(|result| {
            whole[result.0 as usize] || narrowed(probe.values[result.0 as usize].ty).is_none()
        });
        let mut needs = |id: ValueId, all: bool| whole[id.0 as usize] |= all;
        match &inst.op {
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
            // All of it is waited for.
            Op::ClockAfter(_, a) => needs(*a, true),
            Op::Unary(_, a) | Op::Bits(a) => needs(*a, result),
            Op::Binary(op, a, b) => match op {
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor => {
                    needs(*a, result);
                    needs(*b, result);
                }
                BinaryOp::Shl => {
                    needs(*a, result);
                    needs(*b, true);
                }
                BinaryOp::Shr | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Min | BinaryOp::Max => {
                    needs(*a, true);
                    needs(*b, true);
                }
            },
            Op::Compare(_, a, b) => {
                needs(*a, true);
                needs(*b, true);
            }
            Op::Cast(a) => {
                let ty = inst.result.map_or(Type::U64, |result| probe.values[result.0 as usize].ty);
                let cuts = ty.is_integer() && ty.bits() <= 32;
                needs(*a, !cuts && result);
            }
            Op::Select(c, a, b) => {
                needs(*c, true);
                needs(*a, result);
                needs(*b, result);
            }
            Op::WriteState(state, value) => needs(*value, !narrow[state.0 as usize]),
            Op::Aggregate { value, .. } => value.iter().for_each(|value| needs(*value, true)),
            Op::Save { values, .. } => values.iter().for_each(|(_, value)| needs(*value, true)),
        }
    }
    whole
}

/// Gives each instruction whose result has no whole use its 32-bit form, if it has one.
fn rewrite(probe: &mut Probe, whole: &[bool], states: &[bool]) {
    for mut inst in std::mem::take(&mut probe.code) {
        if let Op::WriteState(state, value) = inst.op
            && states[state.0 as usize]
            && let Some(ty) = narrowed(probe.values[value.0 as usize].ty)
        {
            inst.op = Op::WriteState(state, low(probe, value, ty, inst.span));
        }
        if let Some(result) = inst.result
            && !whole[result.0 as usize]
            && let Some(ty) = narrowed(probe.values[result.0 as usize].ty)
            && let Some(op) = narrow_op(probe, &inst, ty, states)
        {
            inst.op = op;
            probe.values[result.0 as usize].ty = ty;
        }
        probe.code.push(inst);
    }
}

/// The operation that gives the low half of what `inst` gives, as `ty`; `None` where that comes in 64 bits only, and is cut
/// by those who use it.
fn narrow_op(probe: &mut Probe, inst: &Inst, ty: Type, states: &[bool]) -> Option<Op> {
    let span = inst.span;
    let is_integer = |probe: &Probe, id: ValueId| {
        let ty = probe.values[id.0 as usize].ty;
        ty.is_integer() || ty == Type::Bool
    };
    match inst.op {
        Op::Const(bits) => Some(Op::Const(ty.canonical(bits))),
        Op::Builtin(Builtin::Clock) => Some(Op::Builtin(Builtin::ClockLow)),
        Op::ClockAfter(Builtin::Clock, a) => Some(Op::ClockAfter(Builtin::ClockLow, a)),
        Op::ClockAfterOperand(Builtin::Clock, operand) => {
            Some(Op::ClockAfterOperand(Builtin::ClockLow, operand))
        }
        Op::ReadState(state) if states[state.0 as usize] => Some(Op::ReadState(state)),
        Op::Unary(op, a) => Some(Op::Unary(op, low(probe, a, ty, span))),
        Op::Binary(
            op @ (BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor),
            a,
            b,
        ) => {
            let (a, b) = (low(probe, a, ty, span), low(probe, b, ty, span));
            Some(Op::Binary(op, a, b))
        }
        Op::Binary(BinaryOp::Shl, a, amount) => {
            Some(Op::Binary(BinaryOp::Shl, low(probe, a, ty, span), amount))
        }
        Op::Select(c, a, b) => {
            let (a, b) = (low(probe, a, ty, span), low(probe, b, ty, span));
            Some(Op::Select(c, a, b))
        }
        // Widening and cutting again, or cutting alone, is one cast.
        Op::Cast(a) | Op::Bits(a) if is_integer(probe, a) => Some(Op::Cast(a)),
        _ => None,
    }
}

/// The low half of `id` as `ty`: itself, if it was narrowed already.
fn low(probe: &mut Probe, id: ValueId, ty: Type, span: Span) -> ValueId {
    let Value { ty: from, uniform } = probe.values[id.0 as usize];
    if from == ty {
        return id;
    }
    let result = ValueId(probe.values.len() as u32);
    probe.values.push(Value { ty, uniform });
    probe.code.push(Inst { result: Some(result), op: Op::Cast(id), guard: None, span });
    result
}
