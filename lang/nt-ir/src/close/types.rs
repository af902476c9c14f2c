//! Gives operands the type that they have at a site, and what is done with them the operations that this takes.
//!
//! ```text
//! %0: u32 = cast out[0]                of a site that gives f32:   %1: f32 = operand out[0]
//! state s = %0                                                     %0: u32 = cast %1
//!                                                                  state s = %0
//!
//! %0: bool = eq old[0], in1[0]         of one that stores s16:     %1: s16 = operand old[0]    %2: s32 = cast %1
//!                                                                  %3: s16 = operand in1[0]    %4: s32 = cast %3
//!                                                                  %0: bool = eq %2, %4
//! ```
//!
//! What cannot be done with the type stays as it is: whether it is an error depends on whether it is needed, which is known
//! when the rest is folded.

use super::{CloseErrorKind, Facts, SiteType};
use crate::program::{BinaryOp, CompareOp, Inst, Op, Operand, Probe, Type, UnaryOp, Value, ValueId};
use nt_diag::Span;

/// Rewrites what `probe` does with operands whose type the instruction has.
pub(super) fn give(probe: &mut Probe, facts: &Facts<'_>) {
    let asks = |op: &Op| {
        matches!(
            op,
            Op::CastOperand(_) | Op::BitsOperand(_) | Op::CompareOperands(..) | Op::ClockAfterOperand(..)
        )
    };
    if !probe.code.iter().any(|inst| asks(&inst.op)) {
        return;
    }
    let mut writer = Writer { probe, span: Span::default() };
    for mut inst in std::mem::take(&mut writer.probe.code) {
        writer.span = inst.span;
        if let Some(op) = writer.with_types(&inst, facts) {
            inst.op = op;
        }
        writer.probe.code.push(inst);
    }
}

/// What keeps `op`, which uses `operand`, from being done at a site, and with which operand.
pub(super) fn obstacle(op: &Op, operand: Operand, facts: &Facts<'_>) -> (CloseErrorKind, Operand) {
    let second = if let Op::CompareOperands(_, _, second) = op { Some(*second) } else { None };
    let operands = [Some(operand), second].into_iter().flatten();
    let absent = operands.clone().find(|operand| facts.site_type(*operand).is_none());
    match absent {
        Some(absent) => (CloseErrorKind::Absent, absent),
        None => {
            // The second, if there is one, does not go with the first.
            let last = operands.last().unwrap_or(operand);
            let found = facts.site_type(last).unwrap_or(SiteType::Is(Type::U32));
            (CloseErrorKind::Type(found), last)
        }
    }
}

struct Writer<'p> {
    probe: &'p mut Probe,
    span: Span,
}

impl Writer<'_> {
    /// The operation in the place of `inst`'s, behind what this needs; `None` where there is none.
    fn with_types(&mut self, inst: &Inst, facts: &Facts<'_>) -> Option<Op> {
        let to = inst.result.and_then(|id| self.probe.values.get(id.0 as usize)).map(|value| value.ty)?;
        match inst.op {
            Op::CastOperand(operand) => match facts.site_type(operand)? {
                SiteType::Is(from) if from == to => Some(Op::Operand(operand)),
                SiteType::Is(from) => Some(Op::Cast(self.emit(from, Op::Operand(operand)))),
                // Half floats become values by a conversion that the language makes to f32 alone.
                SiteType::F16 | SiteType::Bf16 => None,
            },
            Op::BitsOperand(operand) => {
                let from = facts.site_type(operand)?.held_in();
                if from == to {
                    return Some(Op::Operand(operand));
                }
                let fits = from != Type::Bool && from.bits() == to.bits();
                fits.then(|| Op::Bits(self.emit(from, Op::Operand(operand))))
            }
            Op::CompareOperands(op, a, b) => {
                let types = (facts.site_type(a)?, facts.site_type(b)?);
                let (SiteType::Is(from_a), SiteType::Is(from_b)) = types else { return None };
                self.compare(op, (a, from_a), (b, from_b))
            }
            Op::ClockAfterOperand(builtin, operand) => {
                let from = facts.site_type(operand)?.held_in();
                Some(Op::ClockAfter(builtin, self.emit(from, Op::Operand(operand))))
            }
            _ => None,
        }
    }

    fn compare(&mut self, op: CompareOp, a: (Operand, Type), b: (Operand, Type)) -> Option<Op> {
        let ty = common(a.1, b.1)?;
        if ty == Type::Bool && !matches!(op, CompareOp::Eq | CompareOp::Ne) {
            return None;
        }
        let [a, b] = [a, b].map(|(operand, from)| {
            let read = self.emit(from, Op::Operand(operand));
            if from == ty { read } else { self.emit(ty, Op::Cast(read)) }
        });
        if ty != Type::Bool {
            return Some(Op::Compare(op, a, b));
        }
        if op == CompareOp::Ne {
            return Some(Op::Binary(BinaryOp::Xor, a, b));
        }
        let differ = self.emit(Type::Bool, Op::Binary(BinaryOp::Xor, a, b));
        Some(Op::Unary(UnaryOp::Not, differ))
    }

    /// A value of what varies.
    fn emit(&mut self, ty: Type, op: Op) -> ValueId {
        let id = ValueId(self.probe.values.len() as u32);
        self.probe.values.push(Value { ty, uniform: false });
        self.probe.code.push(Inst { result: Some(id), op, guard: None, span: self.span });
        id
    }
}

/// The narrowest type that holds both, of those in which is computed; `None` for numbers of different kinds and for 64 bits
/// with and without a sign.
fn common(a: Type, b: Type) -> Option<Type> {
    let number = |ty: Type| if ty == Type::Ptr { Type::U64 } else { ty };
    let (a, b) = (number(a), number(b));
    let bits = a.bits().max(b.bits()).max(32);
    match (a, b) {
        _ if a == b && (a.bits() >= 32 || a == Type::Bool) => Some(a),
        (Type::F32, Type::F64) | (Type::F64, Type::F32) => Some(Type::F64),
        _ if !(a.is_integer() && b.is_integer()) => None,
        _ if a.is_signed() == b.is_signed() => Some(integer(a.is_signed(), bits)),
        _ => {
            let unsigned = if a.is_signed() { b } else { a };
            let signed = if a.is_signed() { a } else { b };
            let wider = if unsigned.bits() < 32 { 32 } else { 64 };
            (unsigned.bits() < 64).then(|| integer(true, wider.max(signed.bits())))
        }
    }
}

fn integer(signed: bool, bits: u32) -> Type {
    match (signed, bits) {
        (true, 64) => Type::S64,
        (true, _) => Type::S32,
        (false, 64) => Type::U64,
        (false, _) => Type::U32,
    }
}
