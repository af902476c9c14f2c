//! Integer arithmetic.
//!
//! Division by zero is undefined in the manual; the values here are an H200's.
//!
//! Source: PTX ISA 9.0, section 9.7.1 (integer), 9.7.2 (extended precision).

use crate::code::{Dst, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::machine::Machine;
use crate::stats::lanes;
use crate::types::{Type, mask, signed};
use crate::warp::Warp;

/// Which part of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Low,
    High,
    Wide,
}

const HALVES: &[(&str, Half)] = &[(".lo", Half::Low), (".hi", Half::High), (".wide", Half::Wide)];

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    if line.rest().contains(&".cc") || matches!(line.base, "addc" | "subc" | "madc") {
        return decode_carry(line);
    }
    match line.base {
        "add" | "sub" => sum(line),
        "mul" | "mad" | "mul24" | "mad24" => product(line),
        "div" | "rem" => quotient(line),
        "min" | "max" => extreme(line),
        "abs" | "neg" | "sad" => magnitude(line),
        "dp4a" | "dp2a" => dot_product(line),
        _ => bits(line),
    }
}

fn integer_ty(line: &mut Line<'_, '_>) -> Decoded<Type> {
    let ty = line.ty()?;
    if ty.is_integer() { Ok(ty) } else { missing(format!("`{}` of {ty:?}", line.base)) }
}

fn sum(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let saturates = line.flag(".sat");
    let ty = integer_ty(line)?;
    let bits = ty.bits();
    match (line.base, saturates, ty) {
        ("add", false, _) => line.two(ty, move |a, b| a.wrapping_add(b) & mask(bits)),
        ("sub", false, _) => line.two(ty, move |a, b| a.wrapping_sub(b) & mask(bits)),
        ("add", true, Type::Signed(32)) => line.two(ty, |a, b| saturate(signed(a, 32) + signed(b, 32))),
        ("sub", true, Type::Signed(32)) => line.two(ty, |a, b| saturate(signed(a, 32) - signed(b, 32))),
        _ => missing(format!("`{}.sat` of {ty:?}", line.base)),
    }
}

/// An i32's bits, clamped.
fn saturate(value: i64) -> u64 {
    value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)).cast_unsigned() & mask(32)
}

/// A part of a product of two `bits`-wide numbers.
fn multiply(a: u64, b: u64, ty: Type, half: Half) -> u64 {
    let bits = ty.bits();
    if half == Half::Low {
        return a.wrapping_mul(b) & mask(bits);
    }
    let product = if ty.is_signed() {
        (i128::from(signed(a, bits)) * i128::from(signed(b, bits))).cast_unsigned()
    } else {
        u128::from(a & mask(bits)) * u128::from(b & mask(bits))
    };
    match half {
        Half::High => (product >> bits) as u64 & mask(bits),
        _ => product as u64 & mask(bits * 2),
    }
}

fn product(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let Some(half) = line.one_of(HALVES) else {
        return missing(format!("`{}` without `.lo`, `.hi` or `.wide`", line.base));
    };
    let saturates = line.flag(".sat");
    let ty = integer_ty(line)?;
    if half == Half::Wide && ty.bits() > 32 {
        return missing("a product of more than 64 bits");
    }
    // What is added is as wide as the result.
    let (own, wide) = (ty.bits(), if half == Half::Wide { ty.bits() * 2 } else { ty.bits() });
    let added = if ty.is_signed() { Type::Signed(wide) } else { Type::Unsigned(wide) };
    match (line.base, saturates) {
        ("mul", false) => line.two(ty, move |a, b| multiply(a, b, ty, half)),
        ("mad", false) => {
            line.three([ty, ty, added], move |a, b, c| multiply(a, b, ty, half).wrapping_add(c) & mask(wide))
        }
        ("mad", true) if (ty, half) == (Type::Signed(32), Half::High) => {
            line.three([ty; 3], move |a, b, c| saturate(signed(multiply(a, b, ty, half), 32) + signed(c, 32)))
        }
        ("mul24", false) if own == 32 => line.two(ty, move |a, b| multiply_24(a, b, ty, half)),
        ("mad24", false) if own == 32 => {
            line.three([ty; 3], move |a, b, c| multiply_24(a, b, ty, half).wrapping_add(c) & mask(32))
        }
        _ => missing(format!("this form of `{}`", line.base)),
    }
}

/// The low 32 or the high 32 of the 48 bits of a product of 24-bit numbers.
fn multiply_24(a: u64, b: u64, ty: Type, half: Half) -> u64 {
    let product = if ty.is_signed() {
        (signed(a, 24) * signed(b, 24)).cast_unsigned()
    } else {
        (a & mask(24)) * (b & mask(24))
    };
    (if half == Half::High { product >> 16 } else { product }) & mask(32)
}

fn quotient(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let ty = integer_ty(line)?;
    let bits = ty.bits();
    let (is_div, m) = (line.base == "div", mask(bits));
    if ty.is_signed() {
        return line.two(ty, move |a, b| {
            let (x, y) = (signed(a, bits), signed(b, bits));
            let result = match (y, is_div) {
                (0, _) => -1,
                (_, true) => x.wrapping_div(y),
                (_, false) => x.wrapping_rem(y),
            };
            result.cast_unsigned() & m
        });
    }
    line.two(ty, move |a, b| match (b & m, is_div) {
        (0, _) => m,
        (b, true) => (a & m) / b,
        (b, false) => (a & m) % b,
    })
}

fn extreme(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let relu = line.flag(".relu");
    let ty = integer_ty(line)?;
    let (bits, is_max) = (ty.bits(), line.base == "max");
    let m = mask(bits);
    if ty.is_signed() {
        let least = if relu { 0 } else { i64::MIN };
        return line.two(ty, move |a, b| {
            let (a, b) = (signed(a, bits), signed(b, bits));
            (if is_max { a.max(b) } else { a.min(b) }).max(least).cast_unsigned() & m
        });
    }
    if relu {
        return missing("`.relu` of an unsigned type");
    }
    line.two(ty, move |a, b| if is_max { (a & m).max(b & m) } else { (a & m).min(b & m) })
}

fn magnitude(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let ty = integer_ty(line)?;
    let bits = ty.bits();
    match line.base {
        "neg" => line.one(ty, move |a| a.wrapping_neg() & mask(bits)),
        "abs" => line.one(ty, move |a| signed(a, bits).unsigned_abs() & mask(bits)),
        _ => line.three([ty; 3], move |a, b, c| {
            let difference = if ty.is_signed() {
                signed(a, bits).abs_diff(signed(b, bits))
            } else {
                (a & mask(bits)).abs_diff(b & mask(bits))
            };
            c.wrapping_add(difference) & mask(bits)
        }),
    }
}

/// Four products of bytes, or two of a half and a byte, added up.
fn dot_product(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let is_high = line.one_of(&[(".lo", false), (".hi", true)]);
    if is_high.is_some() != (line.base == "dp2a") {
        return missing(format!("this form of `{}`", line.base));
    }
    let (a_ty, b_ty) = (line.ty()?, line.ty()?);
    let is_four = line.base == "dp4a";
    let result = if a_ty.is_signed() || b_ty.is_signed() { Type::Signed(32) } else { Type::Unsigned(32) };
    line.three([a_ty, b_ty, result], move |a, b, c| {
        let part = |of: u64, ty: Type, at: u32, bits: u32| {
            let value = of >> (at * bits);
            if ty.is_signed() { signed(value, bits) } else { (value & mask(bits)).cast_signed() }
        };
        let sum: i64 = if is_four {
            (0..4).map(|i| part(a, a_ty, i, 8) * part(b, b_ty, i, 8)).sum()
        } else {
            let first = if is_high == Some(true) { 2 } else { 0 };
            (0..2).map(|i| part(a, a_ty, i, 16) * part(b, b_ty, first + i, 8)).sum()
        };
        c.wrapping_add(sum.cast_unsigned()) & mask(32)
    })
}

/// Bit fields and bit counts.
fn bits(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let shift_amount = line.flag(".shiftamt");
    let wraps = match line.one_of(&[(".wrap", true), (".clamp", false)]) {
        None if line.base == "bmsk" => return missing("`bmsk` without `.clamp` or `.wrap`"),
        wraps => wraps.unwrap_or(false),
    };
    let ty = integer_ty(line)?;
    let bits = ty.bits();
    let word = Type::Unsigned(32);
    match line.base {
        "popc" => line.one(ty, move |a| u64::from((a & mask(bits)).count_ones())),
        "clz" => line.one(ty, move |a| u64::from((a & mask(bits)).leading_zeros() - (64 - bits))),
        "brev" => line.one(ty, move |a| a.reverse_bits() >> (64 - bits)),
        "bfind" => line.one(ty, move |a| find(a, ty, shift_amount)),
        "bfe" => line.three([ty, word, word], move |a, b, c| extract(a, b & 0xff, c & 0xff, ty)),
        "bfi" => {
            line.end(5)?;
            let sources = [line.src(1, ty)?, line.src(2, ty)?, line.src(3, word)?, line.src(4, word)?];
            let f =
                move |[a, b, position, length]: [u64; 4]| insert(a, b, position & 0xff, length & 0xff, bits);
            Ok(Op::Four(Box::new((Box::new(f), line.dst(0)?, sources))))
        }
        "bmsk" => line.two(word, move |position, width| {
            let (position, width) = match wraps {
                true => (position & 31, width & 31),
                false => (position & mask(32), width & mask(32)),
            };
            let from = if position < 32 { (mask(32) << position) & mask(32) } else { 0 };
            let below = position + width;
            if below < 32 { from & mask(below as u32) } else { from }
        }),
        other => missing(format!("the instruction `{other}`")),
    }
}

/// The place of the most significant bit that is not the sign; all ones if there is none.
fn find(a: u64, ty: Type, shift_amount: bool) -> u64 {
    let bits = ty.bits();
    let value = signed(a, bits);
    let a = if ty.is_signed() && value < 0 { !value.cast_unsigned() & mask(bits) } else { a & mask(bits) };
    match a {
        0 => mask(32),
        _ => {
            let place = 63 - a.leading_zeros();
            u64::from(if shift_amount { bits - 1 - place } else { place })
        }
    }
}

/// As the manual's pseudo-code has it: bits above the number are its sign.
fn extract(a: u64, position: u64, length: u64, ty: Type) -> u64 {
    let bits = ty.bits();
    let last = u64::from(bits - 1);
    let is_negative = match (ty.is_signed(), length) {
        (false, _) | (_, 0) => false,
        (true, _) => a >> (position + length - 1).min(last) & 1 == 1,
    };
    let field = if position <= last { (a & mask(bits)) >> position } else { 0 };
    // Bits of the field that the number still has.
    let have = length.min((last + 1).saturating_sub(position));
    let sign = if is_negative { u64::MAX } else { 0 };
    let have = mask(have as u32) & if have == 0 { 0 } else { u64::MAX };
    (field & have | sign & !have) & mask(bits)
}

fn insert(a: u64, b: u64, position: u64, length: u64, bits: u32) -> u64 {
    if position >= u64::from(bits) || length == 0 {
        return b & mask(bits);
    }
    let field = mask(length.min(64) as u32) << position;
    (b & !field | a << position & field) & mask(bits)
}

/// Addition, subtraction and multiplication that read or write the carry flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carry {
    kind: CarryKind,
    ty: Type,
    reads: bool,
    writes: bool,
    dst: Dst,
    sources: [Src; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CarryKind {
    Add,
    Subtract,
    Multiply(Half),
}

fn decode_carry(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let (kind, reads) = match line.base {
        "add" | "addc" => (CarryKind::Add, line.base == "addc"),
        "sub" | "subc" => (CarryKind::Subtract, line.base == "subc"),
        "mad" | "madc" => match line.one_of(HALVES) {
            Some(half @ (Half::Low | Half::High)) => (CarryKind::Multiply(half), line.base == "madc"),
            _ => return missing("a wide product with carry"),
        },
        other => return missing(format!("`{other}` with carry")),
    };
    let writes = line.flag(".cc");
    let ty = integer_ty(line)?;
    let has_three = matches!(kind, CarryKind::Multiply(_));
    line.end(if has_three { 4 } else { 3 })?;
    let c = if has_three { line.src(3, ty)? } else { Src::Immediate(0) };
    let sources = [line.src(1, ty)?, line.src(2, ty)?, c];
    Ok(Op::Carry(Carry { kind, ty, reads, writes, dst: line.dst(0)?, sources }))
}

impl Carry {
    pub(crate) fn run(&self, machine: &Machine<'_>, warp: &mut Warp, active: u32) {
        let [a, b, c] = self.sources.map(|src| warp.row(machine, src));
        let bits = self.ty.bits();
        for lane in lanes(active) {
            let carry = u128::from(self.reads && warp.carry >> lane & 1 == 1);
            let [a, b, c] = [a[lane], b[lane], c[lane]].map(|v| v & mask(bits));
            let (result, out) = match self.kind {
                CarryKind::Add => {
                    let sum = u128::from(a) + u128::from(b) + carry;
                    (sum as u64, sum >> bits != 0)
                }
                // The flag of a subtraction is its borrow.
                CarryKind::Subtract => {
                    let subtrahend = u128::from(b) + carry;
                    (u128::from(a).wrapping_sub(subtrahend) as u64, u128::from(a) < subtrahend)
                }
                CarryKind::Multiply(half) => {
                    let sum = u128::from(multiply(a, b, self.ty, half)) + u128::from(c) + carry;
                    (sum as u64, sum >> bits != 0)
                }
            };
            warp.set(lane, self.dst, result & mask(bits));
            if self.writes {
                warp.carry = warp.carry & !(1 << lane) | u32::from(out) << lane;
            }
        }
    }
}
