//! Logic, shifts and permutations of bytes.
//!
//! Source: PTX ISA 9.0, section 9.7.8 (logic and shift), 9.7.9.7 (`prmt`).

use crate::code::{Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::types::{Type, mask, signed};

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    match line.base {
        "shl" | "shr" => shift(line),
        "shf" => funnel(line),
        "lop3" => lookup(line),
        "prmt" => permute(line),
        _ => bitwise(line),
    }
}

fn bitwise(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let ty = line.ty()?;
    let m = mask(ty.bits());
    match line.base {
        "and" => line.two(ty, |a, b| a & b),
        "or" => line.two(ty, |a, b| a | b),
        "xor" => line.two(ty, |a, b| a ^ b),
        "not" => line.one(ty, move |a| !a & m),
        "cnot" => line.one(ty, move |a| u64::from(a & m == 0)),
        other => missing(format!("the instruction `{other}`")),
    }
}

/// Shifts clamp: by as many bits as there are, or more, they give 0, or the sign.
fn shift(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let ty = line.ty()?;
    let bits = ty.bits();
    let is_left = line.base == "shl";
    line.end(3)?;
    let sources = [line.src(1, ty)?, line.src(2, Type::Unsigned(32))?];
    let dst = line.dst(0)?;
    let f: crate::code::Two = match (is_left, ty.is_signed()) {
        (true, _) => Box::new(move |a, b| match b & mask(32) {
            b if b < u64::from(bits) => a << b & mask(bits),
            _ => 0,
        }),
        (false, false) => Box::new(move |a, b| match b & mask(32) {
            b if b < u64::from(bits) => (a & mask(bits)) >> b,
            _ => 0,
        }),
        (false, true) => {
            Box::new(move |a, b| (signed(a, bits) >> (b & mask(32)).min(63)).cast_unsigned() & mask(bits))
        }
    };
    Ok(Op::Two(f, dst, sources))
}

/// `shf`: 32 bits out of 64.
fn funnel(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let Some(is_left) = line.one_of(&[(".l", true), (".r", false)]) else {
        return missing("`shf` without a direction");
    };
    let Some(wraps) = line.one_of(&[(".wrap", true), (".clamp", false)]) else {
        return missing("`shf` without `.clamp` or `.wrap`");
    };
    let ty = line.ty()?;
    if ty.bits() != 32 {
        return missing("`shf` of other than 32 bits");
    }
    line.three([ty; 3], move |low, high, count| {
        let both = high << 32 | low & mask(32);
        let count = count & mask(32);
        let count = if wraps { count & 31 } else { count.min(32) };
        (if is_left { both << count >> 32 } else { both >> count }) & mask(32)
    })
}

/// `lop3`: a truth table of three inputs.
fn lookup(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let ty = line.ty()?;
    line.end(5)?;
    let Src::Immediate(table) = line.src(4, Type::Unsigned(32))? else {
        return missing("`lop3` with a table that is no constant");
    };
    let f = move |a: u64, b: u64, c: u64| {
        (0..8).filter(|row| table >> row & 1 == 1).fold(0, |all, row| {
            let pick = |value: u64, bit: u32| if row >> bit & 1 == 1 { value } else { !value };
            all | pick(a, 2) & pick(b, 1) & pick(c, 0)
        }) & mask(32)
    };
    let sources = [line.src(1, ty)?, line.src(2, ty)?, line.src(3, ty)?];
    Ok(Op::Three(Box::new(f), line.dst(0)?, sources))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permutation {
    Any,
    Forward,
    Backward,
    Replicate,
    EdgeLeft,
    EdgeRight,
    Halves,
}

/// `prmt`: four bytes out of eight.
fn permute(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let ty = line.ty()?;
    let mode = line
        .one_of(&[
            (".f4e", Permutation::Forward),
            (".b4e", Permutation::Backward),
            (".rc8", Permutation::Replicate),
            (".ecl", Permutation::EdgeLeft),
            (".ecr", Permutation::EdgeRight),
            (".rc16", Permutation::Halves),
        ])
        .unwrap_or(Permutation::Any);
    line.three([ty; 3], move |a, b, selector| {
        let both = (b & mask(32)) << 32 | a & mask(32);
        let byte = |at: u64| both >> (at % 8 * 8) & 0xff;
        let n = selector & 3;
        let pick = |at: u64| match mode {
            Permutation::Any => {
                let choice = selector >> (at * 4) & 0xf;
                let byte = byte(choice & 7);
                // The high bit of a choice asks for the sign of the byte.
                match choice & 8 {
                    0 => byte,
                    _ => {
                        if byte & 0x80 == 0 {
                            0
                        } else {
                            0xff
                        }
                    }
                }
            }
            Permutation::Forward => byte(n + at),
            Permutation::Backward => byte(n + 8 - at),
            Permutation::Replicate => byte(n),
            Permutation::EdgeLeft => byte(at.max(n)),
            Permutation::EdgeRight => byte(at.min(n)),
            Permutation::Halves => byte((n & 1) * 2 + at % 2),
        };
        (0..4).fold(0, |all, at| all | pick(at) << (at * 8))
    })
}
