//! `cvt`: from every type to every other.
//!
//! Source: PTX ISA 9.0, section 9.7.9.21 (`cvt`).

use crate::code::{One, Op};
use crate::decode::{Decoded, Line, missing};
use crate::exec::float::{NAN, QUIET, ROUNDINGS, SINGLE, flush, is_tiny};
use crate::round::{BF16, F16, F64, Format, Parts, Rounding, TF32, to_integer};
use crate::types::{Type, mask, signed};

/// Rounding of a floating point number to an integer, in whatever type.
const INTEGRAL: &[(&str, Rounding)] = &[
    (".rni", Rounding::Nearest),
    (".rzi", Rounding::Zero),
    (".rmi", Rounding::Minus),
    (".rpi", Rounding::Plus),
];

#[derive(Debug, Clone, Copy)]
struct Modifiers {
    rounding: Option<Rounding>,
    integral: Option<Rounding>,
    ftz: bool,
    sat: bool,
    relu: bool,
}

fn format(ty: Type) -> Option<Format> {
    match ty {
        Type::Float(16) | Type::FloatPair => Some(F16),
        Type::Bfloat | Type::BfloatPair => Some(BF16),
        Type::Float(32) => Some(SINGLE),
        Type::Float(64) => Some(F64),
        Type::Tfloat => Some(TF32),
        _ => None,
    }
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let away = line.flag(".rna").then_some(Rounding::NearestAway);
    let m = Modifiers {
        rounding: line.one_of(ROUNDINGS).or(away),
        integral: line.one_of(INTEGRAL),
        ftz: line.flag(".ftz"),
        sat: line.flag(".sat"),
        relu: line.flag(".relu"),
    };
    let (to, from) = (line.ty()?, line.ty()?);
    if matches!(to, Type::FloatPair | Type::BfloatPair) {
        return pair(line, m, to, from);
    }
    line.end(2)?;
    let f: One = match (format(to), format(from)) {
        (None, None) if to.is_integer() && from.is_integer() && m.rounding.is_none() => integers(m, to, from),
        (Some(format), None) if from.is_integer() => from_integer(m, to, format, from),
        (None, Some(format)) if to.is_integer() => into_integer(m, to, from, format)?,
        (Some(to_format), Some(from_format)) => floats(m, to, to_format, from, from_format)?,
        _ => return missing(format!("a conversion from {from:?} to {to:?}")),
    };
    Ok(Op::One(f, line.dst(0)?, line.src(1, from)?))
}

/// Signed results are extended to the width of their register, which the slot's mask cuts.
fn integers(m: Modifiers, to: Type, from: Type) -> One {
    let (bits, from_bits) = (to.bits(), from.bits());
    Box::new(move |a| {
        let value =
            if from.is_signed() { i128::from(signed(a, from_bits)) } else { i128::from(a & mask(from_bits)) };
        clamp(value, to, m.sat) & if to.is_signed() { u64::MAX } else { mask(bits) }
    })
}

/// A value of an integer type as its slot, cut or, if `sat`, clamped.
fn clamp(value: i128, to: Type, sat: bool) -> u64 {
    let bits = to.bits();
    let (least, most) = match to.is_signed() {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, i128::from(mask(bits))),
    };
    let value = if sat { value.clamp(least, most) } else { value };
    let cut = value as u64;
    if to.is_signed() { signed(cut, bits).cast_unsigned() } else { cut & mask(bits) }
}

fn from_integer(m: Modifiers, to: Type, format: Format, from: Type) -> One {
    let mode = m.rounding.unwrap_or(Rounding::Nearest);
    let bits = from.bits();
    Box::new(move |a| {
        let negative = from.is_signed() && signed(a, bits) < 0;
        let mantissa = if from.is_signed() { signed(a, bits).unsigned_abs() } else { a & mask(bits) };
        let parts = match mantissa {
            0 => Parts::Zero { negative: false },
            _ => Parts::Finite { negative, mantissa, exponent: 0, lost: false },
        };
        finish(m, to, format, parts, mode)
    })
}

/// Out of range is clamped, with or without `.sat`.
fn into_integer(m: Modifiers, to: Type, from: Type, format: Format) -> Decoded<One> {
    let Some(mode) = m.integral else {
        return missing("a conversion to an integer without `.rni`, `.rzi`, `.rmi` or `.rpi`");
    };
    let bits = to.bits();
    Ok(Box::new(move |a| match input(m, a, from, format) {
        // What an H200 gives, where the manual says 0.
        Parts::Nan if bits == 64 || from == Type::Float(64) => clamp(1 << (bits - 1), to, false),
        Parts::Nan => 0,
        Parts::Infinity { negative } => {
            let far = if negative { i128::from(i64::MIN) } else { i128::from(u64::MAX) };
            clamp(far, to, true)
        }
        parts => {
            let (negative, magnitude) = to_integer(parts, mode).unwrap_or((false, 0));
            let magnitude = i128::try_from(magnitude).unwrap_or(i128::MAX);
            clamp(if negative { -magnitude } else { magnitude }, to, true)
        }
    }))
}

/// A number as it is read.
fn input(m: Modifiers, bits: u64, ty: Type, format: Format) -> Parts {
    match ty {
        Type::Float(32) => format.parts(u64::from(flush(f32::from_bits(bits as u32), m.ftz).to_bits())),
        _ => format.parts(bits & mask(ty.bits())),
    }
}

fn floats(m: Modifiers, to: Type, to_format: Format, from: Type, from_format: Format) -> Decoded<One> {
    if from == Type::Tfloat || (m.ftz && ![to, from].contains(&Type::Float(32))) {
        return missing(format!("a conversion from {from:?} to {to:?}"));
    }
    let mode = m.rounding.unwrap_or(Rounding::Nearest);
    Ok(Box::new(move |a| {
        let parts = input(m, a, from, from_format);
        if parts == Parts::Nan && !m.sat {
            return nan(m, a, to, from);
        }
        let parts = match (m.integral, parts) {
            (Some(integral), Parts::Finite { negative, .. }) => match to_integer(parts, integral) {
                // What is an integer already may be larger than 64 bits, and stays.
                Some((_, magnitude)) if magnitude > u128::from(u64::MAX) => parts,
                Some((_, 0)) | None => Parts::Zero { negative },
                Some((_, magnitude)) => {
                    Parts::Finite { negative, mantissa: magnitude as u64, exponent: 0, lost: false }
                }
            },
            (_, parts) => parts,
        };
        finish(m, to, to_format, parts, mode)
    }))
}

/// The NaN that becomes of another, as an H200 has it: what comes from 64 bits or goes there keeps its bits.
fn nan(m: Modifiers, a: u64, to: Type, from: Type) -> u64 {
    let sign = |bits: u32| a >> (bits - 1) & 1;
    match (from, to) {
        (Type::Float(64), Type::Float(64)) => a | QUIET,
        (Type::Float(32), Type::Float(64)) if m.ftz => u64::from(NAN & 0x7f_ffff) << 29 | 0x7ff << 52,
        (Type::Float(32), Type::Float(64)) => sign(32) << 63 | 0x7ff << 52 | (a & mask(23)) << 29 | QUIET,
        (Type::Float(16), Type::Float(64)) => sign(16) << 63 | 0x7ff << 52 | (a & mask(10)) << 42 | QUIET,
        (Type::Float(64), Type::Float(32)) => sign(64) << 31 | 0xff << 23 | (a | QUIET) >> 29 & mask(23),
        (Type::Float(64), Type::Float(16)) => sign(64) << 15 | 0x1f << 10 | (a | QUIET) >> 42 & mask(10),
        (Type::Bfloat, Type::Float(32)) => a << 16,
        (Type::Float(32), Type::Tfloat) => a & !mask(13),
        (_, Type::Float(32)) => u64::from(NAN),
        _ => 0x7fff,
    }
}

/// A number as it is written.
fn finish(m: Modifiers, to: Type, format: Format, parts: Parts, mode: Rounding) -> u64 {
    let one = Parts::Finite { negative: false, mantissa: 1, exponent: 0, lost: false };
    let zero = Parts::Zero { negative: false };
    let parts = match parts {
        Parts::Nan | Parts::Zero { .. } if m.sat => zero,
        Parts::Infinity { negative } | Parts::Finite { negative, .. } if negative && (m.sat || m.relu) => {
            zero
        }
        Parts::Zero { .. } if m.relu => zero,
        Parts::Infinity { .. } if m.sat => one,
        Parts::Finite { mantissa, exponent, .. }
            if m.sat && i64::from(exponent) + i64::from(64 - mantissa.leading_zeros()) > 0 =>
        {
            one
        }
        parts => parts,
    };
    let bits = format.round(parts, mode);
    match to {
        Type::Float(32) if parts == Parts::Nan => u64::from(NAN),
        Type::Float(32) if m.ftz => {
            let exact = f64::from_bits(F64.round(parts, Rounding::Zero));
            let value = f32::from_bits(bits as u32);
            u64::from(if is_tiny(exact) { 0f32.copysign(value) } else { flush(value, true) }.to_bits())
        }
        // The 19 bits stand in the upper part of an f32.
        Type::Tfloat => bits << 13,
        _ => bits,
    }
}

/// `cvt.rn.f16x2.f32 d, a, b`: a goes to the upper half.
fn pair(line: &mut Line<'_, '_>, m: Modifiers, to: Type, from: Type) -> Decoded<Op> {
    let (Some(format), Type::Float(32), Some(mode), None) = (format(to), from, m.rounding, m.integral) else {
        return missing(format!("a conversion from {from:?} to {to:?}"));
    };
    if m.sat {
        return missing(format!("a conversion to {to:?} with `.sat`"));
    }
    let half = move |a: u64| finish(m, to, format, input(m, a, from, SINGLE), mode);
    line.two(from, move |a, b| half(a) << 16 | half(b))
}
