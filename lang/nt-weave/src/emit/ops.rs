//! Arithmetic: IR operations as PTX, meaning exactly what the language says.
//!
//! | IR | PTX | why |
//! |---|---|---|
//! | `add u8 a, b` | `add.u32`, then `and.b32 …, 255` | narrow values are kept extended, so a result is cut |
//! | `shl a, n` | `shl.b32` | PTX clamps the amount, so the width or more gives 0, or the sign |
//! | `ne f32` | `setp.eq.f32`, then `not.pred` | `!=` is true of NaN, all other comparisons false |
//! | `mul f32` | `mul.rn.f32` | `.rn` keeps ptxas from fusing it with an addition |
//! | `cast f64 -> s32` | `cvt.rzi.s32.f64`, NaN by a select | PTX makes the least number of a NaN here, the language 0 |
//! | `select bool` | `and`, `not`, `or` | `selp` knows no predicates |
//!
//! Source: PTX ISA 9.0, sections 9.7.1 to 9.7.9; language reference, "Types and expressions".

use super::operand::{Class, Operand};
use super::{Refusal, Span};
use nt_ir::program::{self, BinaryOp, CompareOp, Inst, Op, Type, UnaryOp, ValueId};

impl<'a> Span<'a> {
    /// The value of a pure instruction whose operands are there.
    pub(super) fn compute(&mut self, p: usize, inst: &Inst, result: ValueId) -> Result<Operand<'a>, Refusal> {
        let ty = self.ty(p, result);
        match inst.op {
            Op::Const(bits) => Ok(Operand::number(ty, bits)),
            Op::Builtin(builtin) => self.builtin(builtin),
            Op::Unary(op, a) => {
                let a = self.value(p, a)?;
                self.unary(op, ty, a)
            }
            Op::Binary(op, a, b) => {
                let (a, b) = (self.value(p, a)?, self.value(p, b)?);
                self.binary(op, ty, a, b)
            }
            Op::Compare(op, a, b) => {
                let operands = self.ty(p, a);
                let (a, b) = (self.value(p, a)?, self.value(p, b)?);
                self.compare(op, operands, a, b)
            }
            Op::Cast(a) => {
                let from = self.ty(p, a);
                let a = self.value(p, a)?;
                self.cast(from, ty, a)
            }
            Op::Bits(a) => {
                let a = self.value(p, a)?;
                Ok(self.same_bits(ty, a))
            }
            Op::Select(c, a, b) => {
                let (c, a, b) = (self.value(p, c)?, self.value(p, a)?, self.value(p, b)?);
                Ok(self.select(ty, c, a, b))
            }
            Op::ReadState(state) if self.plan.bounds.counter(state).is_some() => {
                Ok(self.read_state(state, false))
            }
            Op::ReadState(_) | Op::WriteState(..) | Op::Save { .. } | Op::Aggregate { .. } => {
                Err("its program reads a state too late".into())
            }
            Op::Operand(program::Operand::Addr) => self.address(),
            Op::Operand(program::Operand::Bytes) => self.size(),
            Op::Operand(program::Operand::Pred) => self.guard_of_site(),
            Op::Operand(program::Operand::Saddr) => self.shared_address(),
            Op::Operand(program::Operand::Taken) => self.taken(),
            Op::Operand(program::Operand::Done) => Ok(self.done()),
            Op::Operand(program::Operand::Out(index)) => self.given(index, ty),
            Op::Operand(program::Operand::In(number, index)) => self.taken_in(number, index, ty),
            Op::Operand(program::Operand::Old(index)) => {
                let old = self.old.get(usize::from(index)).copied();
                old.ok_or_else(|| "its program asks for what a store overwrites where there is none".into())
            }
            Op::ClockAfter(..) => Err("its program reads a clock too late".into()),
            Op::Site(_)
            | Op::Has(_)
            | Op::Match { .. }
            | Op::CastOperand(_)
            | Op::BitsOperand(_)
            | Op::CompareOperands(..)
            | Op::ClockAfterOperand(..) => Err("its program asks for what the site was to decide".into()),
        }
    }

    fn unary(&mut self, op: UnaryOp, ty: Type, a: Operand<'a>) -> Result<Operand<'a>, Refusal> {
        let a = self.register(a, ty);
        let opcode = match (op, ty) {
            (UnaryOp::Not, Type::Bool) => "not.pred",
            (UnaryOp::Neg, Type::F32) => "neg.f32",
            (UnaryOp::Neg, Type::F64) => "neg.f64",
            (_, Type::F32 | Type::F64) | (UnaryOp::Neg, Type::Bool) => {
                return Err(format!("`{op:?}` of a {ty:?} has no meaning"));
            }
            (UnaryOp::Not, _) if Class::of(ty) == Class::B64 => "not.b64",
            (UnaryOp::Not, _) => "not.b32",
            (UnaryOp::Neg, _) if Class::of(ty) == Class::B64 => "neg.s64",
            (UnaryOp::Neg, _) => "neg.s32",
        };
        let wide = self.op(Class::of(ty), opcode, &[a]);
        Ok(self.cut(ty, wide))
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        ty: Type,
        a: Operand<'a>,
        b: Operand<'a>,
    ) -> Result<Operand<'a>, Refusal> {
        if matches!(op, BinaryOp::Div | BinaryOp::Rem) {
            let wide = self.divide(op, ty, a, b)?;
            return Ok(self.cut(ty, wide));
        }
        let kind = Kind::of(ty);
        let opcode = match (op, kind) {
            (BinaryOp::Add, Kind::U32 | Kind::S32) => "add.u32",
            (BinaryOp::Add, Kind::U64 | Kind::S64) => "add.u64",
            (BinaryOp::Add, Kind::F32) => "add.rn.f32",
            (BinaryOp::Add, Kind::F64) => "add.rn.f64",
            (BinaryOp::Sub, Kind::U32 | Kind::S32) => "sub.u32",
            (BinaryOp::Sub, Kind::U64 | Kind::S64) => "sub.u64",
            (BinaryOp::Sub, Kind::F32) => "sub.rn.f32",
            (BinaryOp::Sub, Kind::F64) => "sub.rn.f64",
            (BinaryOp::Mul, Kind::U32 | Kind::S32) => "mul.lo.u32",
            (BinaryOp::Mul, Kind::U64 | Kind::S64) => "mul.lo.u64",
            (BinaryOp::Mul, Kind::F32) => "mul.rn.f32",
            (BinaryOp::Mul, Kind::F64) => "mul.rn.f64",
            (BinaryOp::And, Kind::Bool) => "and.pred",
            (BinaryOp::Or, Kind::Bool) => "or.pred",
            (BinaryOp::Xor, Kind::Bool) => "xor.pred",
            (BinaryOp::And, Kind::U32 | Kind::S32) => "and.b32",
            (BinaryOp::Or, Kind::U32 | Kind::S32) => "or.b32",
            (BinaryOp::Xor, Kind::U32 | Kind::S32) => "xor.b32",
            (BinaryOp::And, Kind::U64 | Kind::S64) => "and.b64",
            (BinaryOp::Or, Kind::U64 | Kind::S64) => "or.b64",
            (BinaryOp::Xor, Kind::U64 | Kind::S64) => "xor.b64",
            (BinaryOp::Shl, Kind::U32 | Kind::S32) => "shl.b32",
            (BinaryOp::Shl, Kind::U64 | Kind::S64) => "shl.b64",
            (BinaryOp::Shr, Kind::U32) => "shr.u32",
            (BinaryOp::Shr, Kind::S32) => "shr.s32",
            (BinaryOp::Shr, Kind::U64) => "shr.u64",
            (BinaryOp::Shr, Kind::S64) => "shr.s64",
            (BinaryOp::Min, Kind::U32) => "min.u32",
            (BinaryOp::Min, Kind::S32) => "min.s32",
            (BinaryOp::Min, Kind::U64) => "min.u64",
            (BinaryOp::Min, Kind::S64) => "min.s64",
            (BinaryOp::Min, Kind::F32) => "min.f32",
            (BinaryOp::Min, Kind::F64) => "min.f64",
            (BinaryOp::Max, Kind::U32) => "max.u32",
            (BinaryOp::Max, Kind::S32) => "max.s32",
            (BinaryOp::Max, Kind::U64) => "max.u64",
            (BinaryOp::Max, Kind::S64) => "max.s64",
            (BinaryOp::Max, Kind::F32) => "max.f32",
            (BinaryOp::Max, Kind::F64) => "max.f64",
            _ => return Err(format!("`{op:?}` of {ty:?} has no meaning")),
        };
        let a = self.register(a, ty);
        let b = if kind == Kind::Bool { self.register(b, ty) } else { b };
        let wide = self.op(Class::of(ty), opcode, &[a, b]);
        // Bitwise, smaller, larger and shifted to the right: within the type if the operands are.
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Shl => Ok(self.cut(ty, wide)),
            _ => Ok(wide),
        }
    }

    fn compare(
        &mut self,
        op: CompareOp,
        ty: Type,
        a: Operand<'a>,
        b: Operand<'a>,
    ) -> Result<Operand<'a>, Refusal> {
        let a = self.register(a, ty);
        if ty == Type::Bool {
            let b = self.register(b, ty);
            let differ = self.op(Class::Pred, "xor.pred", &[a, b]);
            return match op {
                CompareOp::Ne => Ok(differ),
                CompareOp::Eq => Ok(self.op(Class::Pred, "not.pred", &[differ])),
                _ => Err("it orders two bools".into()),
            };
        }
        let kind = Kind::of(ty);
        if op == CompareOp::Ne && matches!(kind, Kind::F32 | Kind::F64) {
            let equal = self.compare(CompareOp::Eq, ty, a, b)?;
            return Ok(self.op(Class::Pred, "not.pred", &[equal]));
        }
        let word = match op {
            CompareOp::Eq => "eq",
            CompareOp::Ne => "ne",
            CompareOp::Lt => "lt",
            CompareOp::Le => "le",
            CompareOp::Gt => "gt",
            CompareOp::Ge => "ge",
        };
        Ok(self.op(Class::Pred, &format!("setp.{word}.{}", kind.suffix()), &[a, b]))
    }

    fn select(&mut self, ty: Type, c: Operand<'a>, a: Operand<'a>, b: Operand<'a>) -> Operand<'a> {
        let c = self.register(c, Type::Bool);
        let opcode = match (ty, Class::of(ty)) {
            (Type::F32, _) => "selp.f32",
            (Type::F64, _) => "selp.f64",
            (_, Class::B16 | Class::B32) => "selp.b32",
            (_, Class::B64) => "selp.b64",
            (_, Class::Pred) => {
                let (a, b) = (self.register(a, ty), self.register(b, ty));
                let one = self.op(Class::Pred, "and.pred", &[c, a]);
                let not = self.op(Class::Pred, "not.pred", &[c]);
                let other = self.op(Class::Pred, "and.pred", &[not, b]);
                return self.op(Class::Pred, "or.pred", &[one, other]);
            }
        };
        self.op(Class::of(ty), opcode, &[a, b, c])
    }

    /// A value as another type of its width: registers have bits, not types. Narrow ones are extended anew.
    fn same_bits(&mut self, to: Type, a: Operand<'a>) -> Operand<'a> {
        match a {
            Operand::Number { bits, .. } => Operand::number(to, bits),
            a => self.cut(to, a),
        }
    }

    fn cast(&mut self, from: Type, to: Type, a: Operand<'a>) -> Result<Operand<'a>, Refusal> {
        let (kind_from, kind_to) = (Kind::of(from), Kind::of(to));
        if from == to {
            return Ok(a);
        }
        match (kind_from, kind_to) {
            (_, Kind::Bool) => Err(format!("a {from:?} is no condition")),
            (Kind::Bool, _) => {
                let one = if matches!(kind_to, Kind::F32 | Kind::F64) {
                    return Err(format!("a bool is cast to {to:?}"));
                } else {
                    Operand::number(to, 1)
                };
                Ok(self.select(to, a, one, Operand::number(to, 0)))
            }
            (Kind::F32, Kind::F64) => {
                let a = self.register(a, from);
                Ok(self.op(Class::B64, "cvt.f64.f32", &[a]))
            }
            (Kind::F64, Kind::F32) => {
                let a = self.register(a, from);
                Ok(self.op(Class::B32, "cvt.rn.f32.f64", &[a]))
            }
            (Kind::F32 | Kind::F64, _) => Ok(self.float_to_integer(kind_from, from, to, a)),
            (_, Kind::F32 | Kind::F64) => {
                let a = self.register(a, from);
                let opcode = format!("cvt.rn.{}.{}", kind_to.suffix(), kind_from.suffix());
                Ok(self.op(Class::of(to), &opcode, &[a]))
            }
            _ => Ok(self.integer_to_integer(from, to, a)),
        }
    }

    /// Cut, or extended by the sign of the source.
    fn integer_to_integer(&mut self, from: Type, to: Type, a: Operand<'a>) -> Operand<'a> {
        if let Operand::Number { bits, .. } = a {
            return Operand::number(to, bits);
        }
        match (Class::of(from), Class::of(to)) {
            (Class::B64, Class::B64) => a,
            (Class::B64, _) => {
                let low = self.op(Class::B32, "cvt.u32.u64", &[a]);
                self.cut(to, low)
            }
            (_, Class::B64) if Kind::of(from) == Kind::S32 => self.op(Class::B64, "cvt.s64.s32", &[a]),
            (_, Class::B64) => self.op(Class::B64, "cvt.u64.u32", &[a]),
            _ if holds(to, from) => a,
            _ => self.cut(to, a),
        }
    }

    /// Toward zero, clamped to the type; NaN gives 0.
    fn float_to_integer(&mut self, kind: Kind, from: Type, to: Type, a: Operand<'a>) -> Operand<'a> {
        let a = self.register(a, from);
        // To 8 and 16 bits by way of s32, which holds their bounds.
        let bounds: Option<(i64, i64)> = match to {
            Type::U8 => Some((0, 0xff)),
            Type::U16 => Some((0, 0xffff)),
            Type::S8 => Some((-0x80, 0x7f)),
            Type::S16 => Some((-0x8000, 0x7fff)),
            _ => None,
        };
        let target = if bounds.is_some() { Kind::S32 } else { Kind::of(to) };
        let class = Class::of(to);
        let mut value = self.op(class, &format!("cvt.rzi.{}.{}", target.suffix(), kind.suffix()), &[a]);
        if let Some((least, greatest)) = bounds {
            value = self.op(class, "max.s32", &[value, Operand::number(Type::S32, least as u64)]);
            value = self.op(class, "min.s32", &[value, Operand::number(Type::S32, greatest as u64)]);
        }
        // PTX has 0 for NaN only from f32 to 32 bits and less (PTX ISA, `cvt`).
        if kind == Kind::F64 || class == Class::B64 {
            let number = self.op(Class::Pred, &format!("setp.eq.{}", kind.suffix()), &[a, a]);
            let opcode = if class == Class::B64 { "selp.b64" } else { "selp.b32" };
            value = self.op(class, opcode, &[value, Operand::word(0), number]);
        }
        value
    }

    /// Brings a value of 32 bits into its narrow type.
    pub(super) fn cut(&mut self, ty: Type, a: Operand<'a>) -> Operand<'a> {
        match ty {
            Type::U8 => self.op(Class::B32, "and.b32", &[a, Operand::word(0xff)]),
            Type::U16 => self.op(Class::B32, "and.b32", &[a, Operand::word(0xffff)]),
            Type::S8 => self.op(Class::B32, "bfe.s32", &[a, Operand::word(0), Operand::word(8)]),
            Type::S16 => self.op(Class::B32, "bfe.s32", &[a, Operand::word(0), Operand::word(16)]),
            _ => a,
        }
    }
}

/// Does `to` hold every value of `from`, both of up to 32 bits, as it stands in its register?
fn holds(to: Type, from: Type) -> bool {
    match (from, to) {
        (_, Type::U32 | Type::S32) | (Type::U8, Type::U16 | Type::S16) | (Type::S8, Type::S16) => true,
        (from, to) => from == to,
    }
}

/// How an instruction takes a type: narrow ones in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    U32,
    S32,
    U64,
    S64,
    F32,
    F64,
    Bool,
}

impl Kind {
    pub(super) fn of(ty: Type) -> Kind {
        match ty {
            Type::U8 | Type::U16 | Type::U32 => Kind::U32,
            Type::S8 | Type::S16 | Type::S32 => Kind::S32,
            Type::U64 | Type::Ptr => Kind::U64,
            Type::S64 => Kind::S64,
            Type::F32 => Kind::F32,
            Type::F64 => Kind::F64,
            Type::Bool => Kind::Bool,
        }
    }

    pub(super) fn suffix(self) -> &'static str {
        match self {
            Kind::U32 => "u32",
            Kind::S32 => "s32",
            Kind::U64 => "u64",
            Kind::S64 => "s64",
            Kind::F32 => "f32",
            Kind::F64 => "f64",
            Kind::Bool => "pred",
        }
    }
}
