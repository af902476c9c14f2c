//! Programs that hold every operation of the IR on every type, each result saved in a field of its own.
//!
//! The operands differ from thread to thread and run over the edges: 0, 1, -1, the least and the greatest number,
//! shifts by more than the width, division by 0, NaN and infinities. One program a type, so that none is outlandishly
//! large; a thread's record holds all its results, in the order of the code.

use nt_diag::Span;
use nt_ir::program::{
    BinaryOp, Builtin, Column, CompareOp, Config, Field, Inst, Map, MapId, MapKind, Op, Probe, Program,
    Source, Tracepoint, Type, UnaryOp, Unit, Value, ValueId,
};

const NOWHERE: Span = Span { start: 0, end: 0 };

/// All of them.
pub(crate) fn programs() -> Vec<Program> {
    Type::ALL.iter().map(|&ty| operations(ty)).collect()
}

/// A probe while it is put together.
#[derive(Default)]
struct Builder {
    values: Vec<Value>,
    code: Vec<Inst>,
    results: Vec<ValueId>,
}

impl Builder {
    fn push(&mut self, ty: Type, op: Op) -> ValueId {
        let result = ValueId(self.values.len() as u32);
        self.values.push(Value { ty, uniform: false });
        self.code.push(Inst { result: Some(result), op, guard: None, span: NOWHERE });
        result
    }

    fn constant(&mut self, ty: Type, bits: u64) -> ValueId {
        self.push(ty, Op::Const(ty.canonical(bits)))
    }

    fn binary(&mut self, op: BinaryOp, ty: Type, a: ValueId, b: ValueId) -> ValueId {
        self.push(ty, Op::Binary(op, a, b))
    }

    /// A result that is saved.
    fn keep(&mut self, ty: Type, op: Op) {
        let result = self.push(ty, op);
        self.results.push(result);
    }

    /// `number == n ? value : otherwise`
    fn when(&mut self, number: ValueId, n: u64, ty: Type, value: ValueId, otherwise: ValueId) -> ValueId {
        let n = self.constant(Type::U32, n);
        let c = self.push(Type::Bool, Op::Compare(CompareOp::Eq, number, n));
        self.push(ty, Op::Select(c, value, otherwise))
    }

    /// Something different in every thread, with all bits in play.
    fn noise(&mut self, factor: u64) -> ValueId {
        let thread = self.push(Type::U64, Op::Builtin(Builtin::Thread));
        let factor = self.constant(Type::U64, factor);
        let product = self.binary(BinaryOp::Mul, Type::U64, thread, factor);
        let shift = self.constant(Type::U32, 29);
        let high = self.binary(BinaryOp::Shr, Type::U64, product, shift);
        self.binary(BinaryOp::Xor, Type::U64, product, high)
    }

    /// An operand of a type: noise, and in some lanes (by `number`, from 0 on) an edge.
    fn operand(&mut self, ty: Type, factor: u64, number: ValueId) -> ValueId {
        let noise = self.noise(factor);
        let low = self.push(Type::U32, Op::Cast(noise));
        let (mut value, edges) = match ty {
            Type::Bool => {
                let one = self.constant(Type::U32, 1);
                let bit = self.binary(BinaryOp::And, Type::U32, low, one);
                (self.push(Type::Bool, Op::Compare(CompareOp::Eq, bit, one)), vec![])
            }
            Type::F32 => {
                let bits = [0f32, -0.0, f32::NAN, f32::INFINITY, 1.5, f32::MIN_POSITIVE / 4.0, -3e9, 300.5];
                (self.push(ty, Op::Bits(low)), bits.map(|f| u64::from(f.to_bits())).to_vec())
            }
            Type::F64 => {
                let bits =
                    [0f64, -0.0, f64::NAN, f64::NEG_INFINITY, 1.5, f64::MIN_POSITIVE / 4.0, -1e19, 70000.25];
                (self.push(ty, Op::Bits(noise)), bits.map(f64::to_bits).to_vec())
            }
            integer => {
                let top = 1 << (integer.bits() - 1);
                (self.push(ty, Op::Cast(noise)), vec![0, 1, u64::MAX, top, top - 1, 7])
            }
        };
        for (n, bits) in (0..).zip(edges) {
            let edge = self.constant(ty, bits);
            value = self.when(number, n, ty, edge, value);
        }
        value
    }
}

/// Everything that can be done with a type.
fn operations(ty: Type) -> Program {
    let mut b = Builder::default();
    let lane = b.push(Type::U32, Op::Builtin(Builtin::Lane));
    // Edges of the one operand in runs, of the other in turn, so that all pairs come up.
    let three = b.constant(Type::U32, 3);
    let eleven = b.constant(Type::U32, 11);
    let run = b.binary(BinaryOp::Div, Type::U32, lane, three);
    let turn = b.binary(BinaryOp::Rem, Type::U32, lane, eleven);
    let (x, y) = (b.operand(ty, 0x9e37_79b9_7f4a_7c15, run), b.operand(ty, 0xd1b5_4a32_d192_ed03, turn));
    b.results.extend([x, y]);

    for &op in BinaryOp::ALL {
        let is_float = matches!(ty, Type::F32 | Type::F64);
        let legal = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max => ty != Type::Bool,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => !is_float,
            // Divided by constants below; 64 bits by nothing else.
            BinaryOp::Div => ty == Type::F32 || (ty.is_integer() && ty.bits() <= 32),
            BinaryOp::Rem => ty.is_integer() && ty.bits() <= 32,
            BinaryOp::Shl | BinaryOp::Shr => false,
        };
        if legal {
            b.keep(ty, Op::Binary(op, x, y));
        }
    }
    if ty.is_integer() {
        let five = b.constant(Type::U32, 5);
        let amount = b.binary(BinaryOp::Mul, Type::U32, lane, five);
        let fixed = b.constant(Type::U32, 7);
        let beyond = b.constant(Type::U32, 64);
        for amount in [amount, fixed, beyond] {
            b.keep(ty, Op::Binary(BinaryOp::Shl, x, amount));
            b.keep(ty, Op::Binary(BinaryOp::Shr, x, amount));
        }
        let least = 1u64 << (ty.bits() - 1);
        for divisor in [0, 1, 2, 3, 7, 64, 100, u64::MAX, 7u64.wrapping_neg(), least, least | 1] {
            let divisor = b.constant(ty, divisor);
            b.keep(ty, Op::Binary(BinaryOp::Div, x, divisor));
            b.keep(ty, Op::Binary(BinaryOp::Rem, x, divisor));
        }
    }
    if ty == Type::F64 {
        for divisor in [4.0f64, 3.0, -0.1] {
            let divisor = b.constant(ty, divisor.to_bits());
            b.keep(ty, Op::Binary(BinaryOp::Div, x, divisor));
        }
    }
    for &op in CompareOp::ALL {
        if ty != Type::Bool || matches!(op, CompareOp::Eq | CompareOp::Ne) {
            b.keep(Type::Bool, Op::Compare(op, x, y));
        }
    }
    if ty != Type::Bool {
        b.keep(ty, Op::Unary(UnaryOp::Neg, x));
    }
    if ty.is_integer() || ty == Type::Bool {
        b.keep(ty, Op::Unary(UnaryOp::Not, x));
    }
    let odd = b.push(Type::Bool, Op::Compare(CompareOp::Gt, turn, three));
    b.keep(ty, Op::Select(odd, x, y));
    for &to in Type::ALL {
        let cast = match (ty, to) {
            (_, Type::Bool) => false,
            (Type::Bool, to) => to.is_integer(),
            (from, to) => from != to,
        };
        if cast {
            b.keep(to, Op::Cast(x));
        }
        if to != ty && to.bits() == ty.bits() && ty != Type::Bool {
            b.keep(to, Op::Bits(x));
        }
    }
    program(&format!("operations_{}", ty.word()), b)
}

/// A thread probe at the entry that saves all results.
fn program(name: &str, mut b: Builder) -> Program {
    let named = |(number, value): (usize, &ValueId)| Field {
        name: format!("f{number}"),
        ty: b.values[value.0 as usize].ty,
        lanes: false,
    };
    let fields: Vec<Field> = b.results.iter().enumerate().map(named).collect();
    let column = |(number, field): (usize, &Field)| Column {
        name: field.name.clone(),
        ty: field.ty,
        source: Source::Field(number as u32),
    };
    let columns = fields.iter().enumerate().map(column).collect();
    let map = Map {
        name: "results".into(),
        unit: Unit::Thread,
        kind: MapKind::Array,
        fields,
        told: Vec::new(),
        columns,
        span: NOWHERE,
    };
    let values = (0..).zip(b.results.iter().copied()).collect();
    b.code.push(Inst { result: None, op: Op::Save { map: MapId(0), values }, guard: None, span: NOWHERE });
    Program {
        name: name.into(),
        states: Vec::new(),
        maps: vec![map],
        tables: Vec::new(),
        probes: vec![Probe {
            unit: Unit::Thread,
            points: vec![Tracepoint::KernelEntry { kernel: None }],
            predicate: None,
            values: b.values,
            code: b.code,
            span: NOWHERE,
        }],
        limits: Vec::new(),
        config: Config::default(),
    }
}
