//! Floating point of 16 bits, alone and in pairs: f16, bf16, f16x2, bf16x2.
//!
//! Every operation is computed in f64, where two factors of 11 bits and a sum leave nothing out that matters, and
//! rounded once. A NaN is 0x7fff.
//!
//! Source: PTX ISA 9.0, section 9.7.4 (half precision).

use crate::code::Op;
use crate::decode::{Decoded, Line, missing};
use crate::exec::float::choose;
use crate::round::{BF16, F16, Format, Rounding, narrow, sum_to_odd, widen};
use crate::types::Type;

/// How a 16-bit number goes in and comes out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Half {
    format: Format,
    ftz: bool,
    sat: bool,
    relu: bool,
    /// Two of them a register?
    is_pair: bool,
}

impl Half {
    /// Without modifiers, of a type that has it.
    pub(crate) fn of(ty: Type) -> Option<Half> {
        let (format, is_pair) = match ty {
            Type::Float(16) => (F16, false),
            Type::Bfloat => (BF16, false),
            Type::FloatPair => (F16, true),
            Type::BfloatPair => (BF16, true),
            _ => return None,
        };
        Some(Half { format, ftz: false, sat: false, relu: false, is_pair })
    }

    fn input(self, bits: u64) -> f64 {
        let value = widen(bits & 0xffff, self.format);
        // The least normal number of an f16; bf16 has no `.ftz`.
        if self.ftz && value.abs() < 1.0 / 16384.0 { 0f64.copysign(value) } else { value }
    }

    fn output(self, value: f64) -> u64 {
        let value = match (value, self.sat, self.relu) {
            (v, true, _) if v.is_nan() => 0.0,
            (v, true, _) => {
                if v > 0.0 {
                    v.min(1.0)
                } else {
                    0.0
                }
            }
            (v, _, true) if v <= 0.0 => 0.0,
            (v, _, _) => v,
        };
        // Below the least normal number also after rounding to 11 bits.
        let is_tiny = value.abs() < (1.0 - 1.0 / 4096.0) / 16384.0;
        narrow(if self.ftz && is_tiny { 0f64.copysign(value) } else { value }, self.format)
    }

    /// The operation on a register, or on both its halves.
    pub(crate) fn apply<const N: usize>(self, slots: [u64; N], f: impl Fn([f64; N]) -> f64) -> u64 {
        let at = |shift: u32| self.output(f(slots.map(|slot| self.input(slot >> shift)))) << shift;
        if self.is_pair { at(0) | at(16) } else { at(0) }
    }
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let (ftz, sat, relu) = (line.flag(".ftz"), line.flag(".sat"), line.flag(".relu"));
    let nan_wins = line.flag(".NaN");
    let rounded = line.flag(".rn") | line.flag(".approx");
    let ty = line.ty()?;
    let Some(half) = Half::of(ty) else {
        return missing(format!("`{}` of {ty:?}", line.base));
    };
    // `ex2.approx.ftz.bf16` must be written so, and there is nothing to flush in the middle of it.
    if ftz && half.format == BF16 && line.base != "ex2" {
        return missing("`.ftz` of a bf16");
    }
    let half = Half { ftz: ftz && half.format == F16, sat, relu, ..half };
    let is_max = line.base == "max";
    if nan_wins && !matches!(line.base, "min" | "max")
        || rounded && matches!(line.base, "min" | "max" | "abs" | "neg")
    {
        return missing(format!("this form of `{}`", line.base));
    }
    match line.base {
        "add" => line.two(ty, move |a, b| half.apply([a, b], |[a, b]| sum_to_odd(a, b, Rounding::Nearest))),
        "sub" => line.two(ty, move |a, b| half.apply([a, b], |[a, b]| sum_to_odd(a, -b, Rounding::Nearest))),
        "mul" => line.two(ty, move |a, b| half.apply([a, b], |[a, b]| a * b)),
        "fma" => line.three([ty; 3], move |a, b, c| {
            half.apply([a, b, c], |[a, b, c]| sum_to_odd(a * b, c, Rounding::Nearest))
        }),
        "min" | "max" => {
            line.two(ty, move |a, b| half.apply([a, b], |[a, b]| choose(a, b, is_max, nan_wins)))
        }
        "abs" if !ftz => line.one(ty, move |a| half.apply([a], |[a]| a.abs())),
        "neg" if !ftz => line.one(ty, move |a| half.apply([a], |[a]| -a)),
        "ex2" => line.one(ty, move |a| half.apply([a], |[a]| a.exp2())),
        "tanh" => line.one(ty, move |a| half.apply([a], |[a]| a.tanh())),
        other => missing(format!("`{other}` of {ty:?}")),
    }
}
