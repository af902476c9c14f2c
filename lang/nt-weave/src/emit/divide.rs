//! Division: `x / 0` is all ones, `x % 0` is x, and nothing may become a call.
//!
//! ptxas makes straight code of 32-bit division, and of one by a constant no less: 17 instructions and five registers for
//! `rem.u32 %r1, %r2, 3` on sm_90. It makes a *call* of 64-bit division and of `div.rn`, which would serialise asynchronous
//! matrix instructions. So 64 bits are divided by constants only, and unsigned numbers by constants as a multiplication and
//! shifts:
//!
//! ```text
//! q = ((n - t) >> 1) + t >> (l - 1),   t = high half of m·n,   l = ⌈log2 d⌉,   m = ⌊2^64·(2^l - d) / d⌋ + 1
//! ```
//!
//! which holds for every n and every d from 2 on (Granlund and Montgomery, "Division by invariant integers using
//! multiplication", 1994, figure 4.1).

use super::operand::{Class, Operand};
use super::ops::Kind;
use super::{Refusal, Span};
use nt_ir::program::{BinaryOp, Type};

impl<'a> Span<'a> {
    pub(super) fn divide(
        &mut self,
        op: BinaryOp,
        ty: Type,
        a: Operand<'a>,
        b: Operand<'a>,
    ) -> Result<Operand<'a>, Refusal> {
        let a = self.register(a, ty);
        match (Kind::of(ty), b) {
            (Kind::U32, Operand::Number { bits, .. }) => Ok(self.divide_u32_by(op, a, bits as u32)),
            (Kind::S32, Operand::Number { bits, .. }) => Ok(self.divide_s32_by(op, a, bits as i32)),
            (Kind::U64, Operand::Number { bits, .. }) => Ok(self.divide_u64_by(op, a, bits)),
            (Kind::S64, Operand::Number { bits, .. }) => Ok(self.divide_s64_by(op, a, bits as i64)),
            (Kind::U32, b) => Ok(self.divide_u32(op, a, b)),
            (Kind::S32, b) => Ok(self.divide_s32(op, a, b)),
            (Kind::F32, b) if op == BinaryOp::Div => Ok(self.op(Class::B32, "div.full.f32", &[a, b])),
            (Kind::F64, Operand::Number { bits, .. }) if op == BinaryOp::Div => {
                self.divide_f64_by(a, f64::from_bits(bits))
            }
            (Kind::U64 | Kind::S64, _) => Err("64-bit division by a variable would be a call".into()),
            (Kind::F64, _) if op == BinaryOp::Div => Err("f64 division by a variable would be a call".into()),
            _ => Err(format!("`{op:?}` of {ty:?} has no meaning")),
        }
    }

    fn divide_u32_by(&mut self, op: BinaryOp, a: Operand<'a>, d: u32) -> Operand<'a> {
        match (op, d) {
            (BinaryOp::Div, 0) => Operand::word(u32::MAX),
            (BinaryOp::Div, 1) | (_, 0) => a,
            (_, 1) => Operand::word(0),
            (BinaryOp::Div, _) => self.quotient_u32(a, d),
            _ => self.remainder_u32(a, d),
        }
    }

    /// `n % d`, of 32 bits.
    pub(super) fn remainder_u32(&mut self, n: Operand<'a>, d: u32) -> Operand<'a> {
        if d.is_power_of_two() {
            return self.op(Class::B32, "and.b32", &[n, Operand::word(d - 1)]);
        }
        let quotient = self.quotient_u32(n, d);
        // n + q · -d, modulo 2^32
        self.op(Class::B32, "mad.lo.u32", &[quotient, Operand::word(d.wrapping_neg()), n])
    }

    /// `n / d`, of 32 bits, where d is not 0.
    fn quotient_u32(&mut self, n: Operand<'a>, d: u32) -> Operand<'a> {
        if d.is_power_of_two() {
            return self.op(Class::B32, "shr.u32", &[n, Operand::word(d.trailing_zeros())]);
        }
        match multiplier_u32(d) {
            Multiplier::Whole { m, shift } => {
                let high = self.op(Class::B32, "mul.hi.u32", &[n, Operand::word(m)]);
                match shift {
                    0 => high,
                    shift => self.op(Class::B32, "shr.u32", &[high, Operand::word(shift)]),
                }
            }
            Multiplier::Less { m, shift } => {
                let high = self.op(Class::B32, "mul.hi.u32", &[n, Operand::word(m)]);
                let rest = self.op(Class::B32, "sub.u32", &[n, high]);
                let half = self.op(Class::B32, "shr.u32", &[rest, Operand::word(1)]);
                let sum = self.op(Class::B32, "add.u32", &[half, high]);
                self.op(Class::B32, "shr.u32", &[sum, Operand::word(shift - 1)])
            }
        }
    }

    fn divide_s32_by(&mut self, op: BinaryOp, a: Operand<'a>, d: i32) -> Operand<'a> {
        let divisor = Operand::number(Type::S32, i64::from(d) as u64);
        match (op, d) {
            (BinaryOp::Div, 0) => Operand::number(Type::S32, u64::MAX),
            // The least number over -1 is itself, as negation has it; the manual does not define `div.s32` there.
            (BinaryOp::Div, -1) => self.op(Class::B32, "neg.s32", &[a]),
            (BinaryOp::Div, _) => self.op(Class::B32, "div.s32", &[a, divisor]),
            (_, 0) => a,
            (_, 1 | -1) => Operand::number(Type::S32, 0),
            _ => self.op(Class::B32, "rem.s32", &[a, divisor]),
        }
    }

    /// By a variable. What the machine makes of 0 is not specified, so it is selected.
    fn divide_u32(&mut self, op: BinaryOp, a: Operand<'a>, b: Operand<'a>) -> Operand<'a> {
        let zero = self.op(Class::Pred, "setp.eq.u32", &[b, Operand::word(0)]);
        if op == BinaryOp::Div {
            let quotient = self.op(Class::B32, "div.u32", &[a, b]);
            self.op(Class::B32, "selp.b32", &[Operand::word(u32::MAX), quotient, zero])
        } else {
            let remainder = self.op(Class::B32, "rem.u32", &[a, b]);
            self.op(Class::B32, "selp.b32", &[a, remainder, zero])
        }
    }

    fn divide_s32(&mut self, op: BinaryOp, a: Operand<'a>, b: Operand<'a>) -> Operand<'a> {
        let zero = self.op(Class::Pred, "setp.eq.s32", &[b, Operand::word(0)]);
        let minus_one = self.op(Class::Pred, "setp.eq.s32", &[b, Operand::number(Type::S32, u64::MAX)]);
        if op == BinaryOp::Div {
            let quotient = self.op(Class::B32, "div.s32", &[a, b]);
            let negated = self.op(Class::B32, "neg.s32", &[a]);
            let quotient = self.op(Class::B32, "selp.b32", &[negated, quotient, minus_one]);
            self.op(Class::B32, "selp.b32", &[Operand::number(Type::S32, u64::MAX), quotient, zero])
        } else {
            let remainder = self.op(Class::B32, "rem.s32", &[a, b]);
            let remainder = self.op(Class::B32, "selp.b32", &[Operand::word(0), remainder, minus_one]);
            self.op(Class::B32, "selp.b32", &[a, remainder, zero])
        }
    }

    fn divide_u64_by(&mut self, op: BinaryOp, a: Operand<'a>, d: u64) -> Operand<'a> {
        if op == BinaryOp::Div {
            return if d == 0 { Operand::long(u64::MAX) } else { self.quotient(a, d) };
        }
        match d {
            0 => a,
            d if d.is_power_of_two() => self.op(Class::B64, "and.b64", &[a, Operand::long(d - 1)]),
            d => {
                let quotient = self.quotient(a, d);
                self.remainder(a, quotient, Operand::long(d))
            }
        }
    }

    /// By way of magnitudes: |n| / |d|, then the sign. The least number's magnitude is itself, read as unsigned.
    fn divide_s64_by(&mut self, op: BinaryOp, a: Operand<'a>, d: i64) -> Operand<'a> {
        match (op, d) {
            (BinaryOp::Div, 0) => return Operand::number(Type::S64, u64::MAX),
            (BinaryOp::Div, 1) | (BinaryOp::Rem, 0) => return a,
            (BinaryOp::Div, -1) => return self.op(Class::B64, "neg.s64", &[a]),
            _ => {}
        }
        let sign = self.op(Class::B64, "shr.s64", &[a, Operand::word(63)]);
        let flipped = self.op(Class::B64, "xor.b64", &[a, sign]);
        let magnitude = self.op(Class::B64, "sub.u64", &[flipped, sign]);
        let quotient = self.quotient(magnitude, d.unsigned_abs());
        let sign = if d < 0 { self.op(Class::B64, "not.b64", &[sign]) } else { sign };
        let flipped = self.op(Class::B64, "xor.b64", &[quotient, sign]);
        let quotient = self.op(Class::B64, "sub.u64", &[flipped, sign]);
        if op == BinaryOp::Div {
            quotient
        } else {
            self.remainder(a, quotient, Operand::number(Type::S64, d as u64))
        }
    }

    /// n / d for d > 0.
    fn quotient(&mut self, n: Operand<'a>, d: u64) -> Operand<'a> {
        if d.is_power_of_two() {
            return match d.trailing_zeros() {
                0 => n,
                shift => self.op(Class::B64, "shr.u64", &[n, Operand::word(shift)]),
            };
        }
        let (multiplier, log) = magic(d);
        let high = self.op(Class::B64, "mul.hi.u64", &[n, Operand::long(multiplier)]);
        let rest = self.op(Class::B64, "sub.u64", &[n, high]);
        let half = self.op(Class::B64, "shr.u64", &[rest, Operand::word(1)]);
        let sum = self.op(Class::B64, "add.u64", &[half, high]);
        self.op(Class::B64, "shr.u64", &[sum, Operand::word(log - 1)])
    }

    /// n - q·d
    fn remainder(&mut self, n: Operand<'a>, q: Operand<'a>, d: Operand<'a>) -> Operand<'a> {
        let product = self.op(Class::B64, "mul.lo.u64", &[q, d]);
        self.op(Class::B64, "sub.u64", &[n, product])
    }

    /// A multiplication by the reciprocal: exact where that is (powers of two), else within 2 ulp.
    fn divide_f64_by(&mut self, a: Operand<'a>, d: f64) -> Result<Operand<'a>, Refusal> {
        let reciprocal = 1.0 / d;
        if !reciprocal.is_normal() && d.is_normal() {
            return Err(format!("f64 division by {d:e} has no reciprocal to multiply with"));
        }
        Ok(self.op(Class::B64, "mul.rn.f64", &[a, Operand::number(Type::F64, reciprocal.to_bits())]))
    }
}

/// m and l of the formula above, for d that is no power of two.
fn magic(d: u64) -> (u64, u32) {
    let log = 64 - (d - 1).leading_zeros();
    // 2^l - d is below d, so the dividend is below 2^64·d and the quotient below 2^64.
    let dividend = ((1u128 << log) - u128::from(d)) << 64;
    ((dividend / u128::from(d)) as u64 + 1, log)
}

/// What n is multiplied with to be divided by d, in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Multiplier {
    /// `(m·n >> 32) >> shift`
    Whole { m: u32, shift: u32 },
    /// The formula at the head of this file with its m, of 32 bits; l is the shift.
    Less { m: u32, shift: u32 },
}

/// Of `m = ⌈2^(32+s) / d⌉` the quotient of every n is right where `m·d - 2^(32+s) ≤ 2^s` (the same article, theorem 4.2).
fn multiplier_u32(d: u32) -> Multiplier {
    let wide = u64::from(d);
    // ⌈log2 d⌉: d is no power of two.
    let log = d.ilog2() + 1;
    for shift in 0..log {
        let power = 1u64 << (32 + shift);
        let m = power.div_ceil(wide);
        if let (Ok(m), true) = (u32::try_from(m), m * wide - power <= 1 << shift) {
            return Multiplier::Whole { m, shift };
        }
    }
    let m = (((1u64 << log) - wide) << 32) / wide + 1;
    // Below 2^32, since 2^log is below 2·d.
    Multiplier::Less { m: m as u32, shift: log }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the machine computes it.
    fn quotient(n: u32, d: u32) -> u32 {
        let high = |m: u32| ((u64::from(n) * u64::from(m)) >> 32) as u32;
        match multiplier_u32(d) {
            Multiplier::Whole { m, shift } => high(m) >> shift,
            Multiplier::Less { m, shift } => (((n - high(m)) >> 1) + high(m)) >> (shift - 1),
        }
    }

    #[test]
    fn multiplication_divides_32_bits() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut chance = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u32
        };
        let known =
            [3, 5, 6, 7, 9, 11, 13, 641, 16385, 81921, (1 << 31) - 1, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        let by_chance: Vec<u32> = (0..2000).map(|_| chance() >> (chance() % 31)).collect();
        for d in known.into_iter().chain(by_chance).filter(|d| 2 < *d && !d.is_power_of_two()) {
            let last = u32::MAX - u32::MAX % d;
            let near = [0, 1, d - 1, d, last - 1, last, u32::MAX, 1 << 31, (1 << 31) - 1];
            for n in near.into_iter().chain((0..20).map(|_| chance())) {
                assert_eq!(quotient(n, d), n / d, "{n} / {d}");
            }
        }
    }

    /// The emitted sequence, with Rust's own division as the judge.
    #[test]
    fn multiplication_divides() {
        let divisors =
            [3, 5, 6, 7, 9, 10, 641, 1_000_000_007, (1 << 32) - 1, (1 << 32) + 1, (1 << 63) + 1, u64::MAX];
        for d in divisors {
            let (multiplier, log) = magic(d);
            let near =
                [0, 1, d - 1, d, d.wrapping_add(1), 2 * (d / 2), u64::MAX - 1, u64::MAX, u64::MAX / d * d];
            let below = near.map(|n| n.wrapping_sub(1));
            for n in near.into_iter().chain(below).chain([1 << 63, 0x0123_4567_89ab_cdef]) {
                let high = ((u128::from(n) * u128::from(multiplier)) >> 64) as u64;
                let quotient = (((n - high) >> 1) + high) >> (log - 1);
                assert_eq!(quotient, n / d, "{n} / {d}");
            }
        }
    }
}
