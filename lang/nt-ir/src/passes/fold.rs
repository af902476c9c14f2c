//! Computes what is known, and takes simpler forms of what is not.
//!
//! ```text
//! %0: u64 uniform = const 4096        %0: u64 uniform = const 4096
//! %1: u64 = thread               ->   %1: u64 = thread
//! %2: u64 = div %1, %0                %4: u32 uniform = const 12
//! save m(x = %2)                      %2: u64 = shr %1, %4
//!                                     save m(x = %2)
//! ```
//!
//! A state that nothing assigns is its initial value; an effect whose guard is false is dropped, a guard that is true too.
//! Divisions by powers of two become shifts, which is what allows them on 64 bits. Values are called uniform where all they
//! are made of is. What is left without a use is for `dead`.

use crate::check::varying_states;
use crate::eval;
use crate::program::{BinaryOp, CompareOp, Inst, Op, Operand, Probe, Program, Type, UnaryOp, Value, ValueId};

pub(super) fn run(program: &mut Program) {
    let mut initial: Vec<Option<u64>> = program.states.iter().map(|state| Some(state.init)).collect();
    for probe in &program.probes {
        for inst in &probe.code {
            if let Op::WriteState(state, _) = inst.op {
                initial[state.0 as usize] = None;
            }
        }
    }
    let varying = varying_states(program);
    for probe in &mut program.probes {
        run_on(probe, &initial, &varying);
    }
}

/// Folds one probe; `initial` and `varying` are of the program's states, by [`StateId`](crate::program::StateId): the value
/// of each that is known to have its first, and whether its lanes may differ.
pub(crate) fn run_on(probe: &mut Probe, initial: &[Option<u64>], varying: &[bool]) {
    let code = std::mem::take(&mut probe.code);
    let count = probe.values.len() as u32;
    let mut folder = Folder {
        probe,
        initial,
        varying,
        ops: vec![Op::Const(0); count as usize],
        same: (0..count).map(ValueId).collect(),
    };
    folder.fold(code);
}

/// What an operation comes to.
enum Simpler {
    /// Itself.
    Not,
    /// Another operation.
    Op(Op),
    /// A value that is there already.
    Value(ValueId),
}

struct Folder<'p> {
    probe: &'p mut Probe,
    /// The value of each state that nothing assigns.
    initial: &'p [Option<u64>],
    varying: &'p [bool],
    /// The operation that defines each value so far.
    ops: Vec<Op>,
    /// The value to use for each.
    same: Vec<ValueId>,
}

impl Folder<'_> {
    fn fold(&mut self, code: Vec<Inst>) {
        for mut inst in code {
            let same = &self.same;
            inst.for_each_use(&mut |id| *id = same[id.0 as usize]);
            let Some(result) = inst.result else {
                match inst.guard.and_then(|guard| self.constant(guard)) {
                    Some(0) => continue,
                    Some(_) => inst.guard = None,
                    None => {}
                }
                self.probe.code.push(inst);
                continue;
            };
            loop {
                match self.simpler(&inst, result) {
                    Simpler::Not => break,
                    Simpler::Op(op) => inst.op = op,
                    Simpler::Value(value) => {
                        self.same[result.0 as usize] = value;
                        break;
                    }
                }
            }
            // Whether the bytes of an access differ between lanes is known where the classes are, not here.
            if inst.op != Op::Operand(Operand::Bytes) {
                self.probe.values[result.0 as usize].uniform = self.is_uniform(&inst.op);
            }
            self.ops[result.0 as usize] = inst.op.clone();
            self.probe.code.push(inst);
        }
        let predicate = self.probe.predicate.map(|id| self.same[id.0 as usize]);
        self.probe.predicate = predicate.filter(|id| self.constant(*id) != Some(1));
    }

    fn is_uniform(&self, op: &Op) -> bool {
        match (op.keeps_lanes_alike(), op) {
            (_, Op::ReadState(state)) => !self.varying[state.0 as usize],
            (_, Op::ClockAfter(..)) => true,
            (Some(true), op) => op.operands().iter().all(|id| self.probe.values[id.0 as usize].uniform),
            (Some(false) | None, _) => false,
        }
    }

    fn ty(&self, id: ValueId) -> Type {
        self.probe.values[id.0 as usize].ty
    }

    fn constant(&self, id: ValueId) -> Option<u64> {
        match self.ops[id.0 as usize] {
            Op::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// A constant of its own, put before the instruction at hand.
    fn emit(&mut self, ty: Type, op: Op, like: &Inst) -> ValueId {
        let id = ValueId(self.probe.values.len() as u32);
        let uniform = self.is_uniform(&op);
        self.probe.values.push(Value { ty, uniform });
        self.ops.push(op.clone());
        self.same.push(id);
        self.probe.code.push(Inst { result: Some(id), op, guard: None, span: like.span });
        id
    }

    fn simpler(&mut self, inst: &Inst, result: ValueId) -> Simpler {
        let ty = self.ty(result);
        match inst.op {
            Op::ReadState(state) => match self.initial[state.0 as usize] {
                Some(init) => Simpler::Op(Op::Const(init)),
                None => Simpler::Not,
            },
            Op::Unary(op, a) => self.unary(op, a, ty),
            Op::Binary(op, a, b) => self.binary(inst, op, a, b, ty),
            Op::Compare(op, a, b) => self.compare(op, a, b),
            Op::Cast(a) => self.cast(a, ty),
            Op::Bits(a) if self.ty(a) == ty => Simpler::Value(a),
            Op::Bits(a) if ty.is_integer() && self.ty(a).is_integer() => match self.constant(a) {
                Some(bits) => Simpler::Op(Op::Const(ty.canonical(bits))),
                None => Simpler::Not,
            },
            Op::Select(c, a, b) => self.select(c, a, b, ty),
            Op::Const(_)
            | Op::Builtin(_)
            | Op::Bits(_)
            | Op::Site(_)
            | Op::Operand(_)
            | Op::CastOperand(_)
            | Op::BitsOperand(_)
            | Op::CompareOperands(..)
            | Op::ClockAfter(..)
            | Op::ClockAfterOperand(..)
            | Op::Has(_)
            | Op::Match { .. }
            | Op::WriteState(..)
            | Op::Save { .. }
            | Op::Aggregate { .. } => Simpler::Not,
        }
    }

    fn unary(&self, op: UnaryOp, a: ValueId, ty: Type) -> Simpler {
        if let Some(folded) = self.constant(a).and_then(|a| eval::unary(op, ty, a)) {
            return Simpler::Op(Op::Const(folded));
        }
        match self.ops[a.0 as usize] {
            // Twice is not at all; floats included, whose sign is turned and turned back.
            Op::Unary(inner, origin) if inner == op => Simpler::Value(origin),
            _ => Simpler::Not,
        }
    }

    fn select(&self, c: ValueId, a: ValueId, b: ValueId, ty: Type) -> Simpler {
        match self.constant(c) {
            Some(0) => return Simpler::Value(b),
            Some(_) => return Simpler::Value(a),
            None if a == b => return Simpler::Value(a),
            None => {}
        }
        match (ty, self.constant(a), self.constant(b)) {
            (Type::Bool, Some(1), Some(0)) => Simpler::Value(c),
            (Type::Bool, Some(0), Some(1)) => Simpler::Op(Op::Unary(UnaryOp::Not, c)),
            _ => Simpler::Not,
        }
    }

    fn compare(&self, op: CompareOp, a: ValueId, b: ValueId) -> Simpler {
        let ty = self.ty(a);
        if !ty.is_integer() {
            return Simpler::Not;
        }
        let folded = match (self.constant(a), self.constant(b)) {
            (Some(a), Some(b)) => eval::compare(op, ty, a, b),
            _ if a == b => Some(matches!(op, CompareOp::Eq | CompareOp::Le | CompareOp::Ge)),
            // Nothing unsigned is below zero.
            (_, Some(0)) if ty.is_unsigned() && op == CompareOp::Lt => Some(false),
            (_, Some(0)) if ty.is_unsigned() && op == CompareOp::Ge => Some(true),
            _ => None,
        };
        folded.map_or(Simpler::Not, |holds| Simpler::Op(Op::Const(u64::from(holds))))
    }

    fn cast(&self, a: ValueId, ty: Type) -> Simpler {
        let from = self.ty(a);
        if from == ty {
            return Simpler::Value(a);
        }
        if let Some(folded) = self.constant(a).and_then(|a| eval::cast(from, ty, a)) {
            return Simpler::Op(Op::Const(folded));
        }
        // A cast of a cast is one cast where the first loses nothing that the second shows.
        let Op::Cast(origin) = self.ops[a.0 as usize] else { return Simpler::Not };
        let first = self.ty(origin);
        let exact = |ty: Type| ty.is_integer() || ty == Type::Bool;
        if !(exact(first) && exact(from) && exact(ty)) {
            return Simpler::Not;
        }
        let cuts_more = ty.bits() <= from.bits();
        let keeps_sign = first.bits() < from.bits() && (!first.is_signed() || from.is_signed());
        if cuts_more || keeps_sign { Simpler::Op(Op::Cast(origin)) } else { Simpler::Not }
    }

    fn binary(&mut self, inst: &Inst, op: BinaryOp, a: ValueId, b: ValueId, ty: Type) -> Simpler {
        if !(ty.is_integer() || ty == Type::Bool) {
            return Simpler::Not;
        }
        let ones = ty.canonical(u64::MAX);
        let zero = Simpler::Op(Op::Const(0));
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => {
                return eval::binary(op, ty, x, y)
                    .map_or(Simpler::Not, |folded| Simpler::Op(Op::Const(folded)));
            }
            // Constants stand on the right.
            (Some(_), None) if is_symmetric(op) => return Simpler::Op(Op::Binary(op, b, a)),
            (Some(0), None) if matches!(op, BinaryOp::Shl | BinaryOp::Shr) => return zero,
            _ => {}
        }
        if a == b {
            match op {
                BinaryOp::Sub | BinaryOp::Xor => return zero,
                BinaryOp::And | BinaryOp::Or | BinaryOp::Min | BinaryOp::Max => return Simpler::Value(a),
                _ => {}
            }
        }
        let Some(known) = self.constant(b) else { return Simpler::Not };
        let power = (known.is_power_of_two() && (!ty.is_signed() || (known as i64) > 0))
            .then(|| known.trailing_zeros());
        match (op, known) {
            (
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr,
                0,
            )
            | (BinaryOp::Mul | BinaryOp::Div, 1) => Simpler::Value(a),
            (BinaryOp::Mul | BinaryOp::And, 0) | (BinaryOp::Rem, 1) => zero,
            (BinaryOp::And, mask) if mask == ones => Simpler::Value(a),
            (BinaryOp::Or, mask) if mask == ones => Simpler::Op(Op::Const(ones)),
            (BinaryOp::Xor, 1) if ty == Type::Bool => Simpler::Op(Op::Unary(UnaryOp::Not, a)),
            (BinaryOp::Shl, amount) if amount >= u64::from(ty.bits()) => zero,
            (BinaryOp::Shr, amount) if amount >= u64::from(ty.bits()) && ty.is_unsigned() => zero,
            (BinaryOp::Min, 0) if ty.is_unsigned() => zero,
            (BinaryOp::Max, 0) if ty.is_unsigned() => Simpler::Value(a),
            (BinaryOp::Mul, _) => match power {
                Some(power) => {
                    let amount = self.emit(Type::U32, Op::Const(power.into()), inst);
                    Simpler::Op(Op::Binary(BinaryOp::Shl, a, amount))
                }
                None => Simpler::Not,
            },
            (BinaryOp::Div, _) => match power {
                Some(power) => self.divide(inst, a, power, ty),
                None => Simpler::Not,
            },
            (BinaryOp::Rem, _) => match power {
                Some(_) if ty.is_unsigned() => {
                    let mask = self.emit(ty, Op::Const(known - 1), inst);
                    Simpler::Op(Op::Binary(BinaryOp::And, a, mask))
                }
                Some(power) => {
                    // x - (x / 2^k) * 2^k, of the sign of x.
                    let quotient = match self.divide(inst, a, power, ty) {
                        Simpler::Op(op) => self.emit(ty, op, inst),
                        Simpler::Value(value) => value,
                        Simpler::Not => return Simpler::Not,
                    };
                    let amount = self.emit(Type::U32, Op::Const(power.into()), inst);
                    let whole = self.emit(ty, Op::Binary(BinaryOp::Shl, quotient, amount), inst);
                    Simpler::Op(Op::Binary(BinaryOp::Sub, a, whole))
                }
                None => Simpler::Not,
            },
            _ => Simpler::Not,
        }
    }

    /// `a / 2^power`, with `power` at least 1. A shift rounds down, division toward zero: negative numbers are first
    /// raised by 2^power - 1, which is their sign's mask cut to `power` bits.
    fn divide(&mut self, inst: &Inst, a: ValueId, power: u32, ty: Type) -> Simpler {
        let amount = self.emit(Type::U32, Op::Const(power.into()), inst);
        if ty.is_unsigned() {
            return Simpler::Op(Op::Binary(BinaryOp::Shr, a, amount));
        }
        let top = self.emit(Type::U32, Op::Const(u64::from(ty.bits() - 1)), inst);
        let sign = self.emit(ty, Op::Binary(BinaryOp::Shr, a, top), inst);
        let below = self.emit(ty, Op::Const((1 << power) - 1), inst);
        let raise = self.emit(ty, Op::Binary(BinaryOp::And, sign, below), inst);
        let raised = self.emit(ty, Op::Binary(BinaryOp::Add, a, raise), inst);
        Simpler::Op(Op::Binary(BinaryOp::Shr, raised, amount))
    }
}

fn is_symmetric(op: BinaryOp) -> bool {
    !matches!(op, BinaryOp::Sub | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr)
}
