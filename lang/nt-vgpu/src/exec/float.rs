//! Floating point of 32 and 64 bits.
//!
//! `add`, `sub`, `mul`, `fma`, `div`, `rcp` and `sqrt` with a rounding mode are exact in that mode. Approximations are
//! computed in f64 and rounded once, within half a unit in the last place: the manual allows 2 for `ex2`, `div.approx`
//! and `div.full`, 1 for `rcp`, `sqrt` and `rsqrt`, an absolute error of 2^-22 for `lg2`, 2^-20.5 for `sin` and `cos`, a
//! relative one of 2^-11 for `tanh`.
//!
//! A NaN of 32 bits is 0x7fffffff whatever went in. Of 64 bits it is one that went in, made quiet, or 0xfff8000000000000
//! if none did; where several did, an H200 takes the second factor first, then what is added, then the first.
//!
//! Source: PTX ISA 9.0, section 9.7.3 (floating point).

use crate::code::{One, Op, Two};
use crate::decode::{Decoded, Line, missing};
use crate::round::{self, F32, Rounding, quotient_to_odd, root_to_odd, sum_to_odd};
use crate::types::{Type, mask};

/// What stands behind an opcode.
#[derive(Debug, Clone, Copy)]
struct Modifiers {
    ftz: bool,
    sat: bool,
    rounding: Option<Rounding>,
}

pub(crate) const ROUNDINGS: &[(&str, Rounding)] =
    &[(".rn", Rounding::Nearest), (".rz", Rounding::Zero), (".rm", Rounding::Minus), (".rp", Rounding::Plus)];

pub(crate) const NAN: u32 = 0x7fff_ffff;

/// A subnormal number becomes zero, keeping its sign, if `ftz`.
pub(crate) fn flush(value: f32, ftz: bool) -> f32 {
    if ftz && value.is_subnormal() { 0f32.copysign(value) } else { value }
}

/// Does a result that was rounded to the least normal f32 count as subnormal? It does if it would be below that with an
/// exponent that has no bounds, which is when `.ftz` looks.
pub(crate) fn is_tiny(exact: f64) -> bool {
    exact.abs() < f64::from(f32::MIN_POSITIVE) * (1.0 - 1.0 / f64::from(1 << 25))
}

impl Modifiers {
    fn of(line: &mut Line<'_, '_>) -> Self {
        Modifiers { ftz: line.flag(".ftz"), sat: line.flag(".sat"), rounding: line.one_of(ROUNDINGS) }
    }

    /// What an f32 instruction reads.
    fn input(self, bits: u64) -> f32 {
        flush(f32::from_bits(bits as u32), self.ftz)
    }

    /// What an f32 instruction writes.
    fn output(self, value: f32) -> u64 {
        let bits = if value.is_nan() {
            if self.sat { 0 } else { NAN }
        } else if self.sat {
            // Not `clamp`, which keeps the sign of zero.
            if value > 0.0 { flush(value.min(1.0), self.ftz).to_bits() } else { 0 }
        } else {
            flush(value, self.ftz).to_bits()
        };
        u64::from(bits)
    }

    /// The same of a product or quotient, which `exact` gives with more bits.
    fn output_of(self, value: f32, exact: impl FnOnce() -> f64) -> u64 {
        let tiny = self.ftz && value.abs() == f32::MIN_POSITIVE && is_tiny(exact());
        self.output(if tiny { 0f32.copysign(value) } else { value })
    }

    fn one(self, f: impl Fn(f32) -> f32 + Send + Sync + 'static) -> One {
        Box::new(move |a| self.output(f(self.input(a))))
    }

    fn two(self, f: impl Fn(f32, f32) -> f32 + Send + Sync + 'static) -> Two {
        Box::new(move |a, b| self.output(f(self.input(a), self.input(b))))
    }
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let approximate = line.flag(".approx");
    let full = line.base == "div" && line.flag(".full");
    match line.base {
        "add" | "sub" | "mul" | "mad" | "fma" => arithmetic(line),
        "div" if approximate || full => divide_approximately(line, full),
        "div" | "rcp" | "sqrt" if !approximate => exact(line),
        "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => approximation(line),
        "min" | "max" => extreme(line),
        _ => sign(line),
    }
}

fn finish(line: &mut Line<'_, '_>, ty: Type, operands: Operation) -> Decoded<Op> {
    match operands {
        Operation::One(f) => {
            line.end(2)?;
            Ok(Op::One(f, line.dst(0)?, line.src(1, ty)?))
        }
        Operation::Two(f) => {
            line.end(3)?;
            Ok(Op::Two(f, line.dst(0)?, [line.src(1, ty)?, line.src(2, ty)?]))
        }
    }
}

enum Operation {
    One(One),
    Two(Two),
}

/// An operation on f32 as one on both halves of a register.
fn paired(op: Op) -> Op {
    let halves = |slot: u64| [slot & mask(32), slot >> 32];
    match op {
        Op::Two(f, dst, sources) => {
            let both = move |a, b| {
                let ([a, a_high], [b, b_high]) = (halves(a), halves(b));
                f(a_high, b_high) << 32 | f(a, b)
            };
            Op::Two(Box::new(both), dst, sources)
        }
        Op::Three(f, dst, sources) => {
            let both = move |a, b, c| {
                let ([a, a_high], [b, b_high], [c, c_high]) = (halves(a), halves(b), halves(c));
                f(a_high, b_high, c_high) << 32 | f(a, b, c)
            };
            Op::Three(Box::new(both), dst, sources)
        }
        other => other,
    }
}

fn arithmetic(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let m = Modifiers::of(line);
    let mode = m.rounding.unwrap_or(Rounding::Nearest);
    let ty = line.ty()?;
    let is_fused = matches!(line.base, "fma" | "mad");
    if ty == Type::SinglePair {
        return scalar(line, m, mode, ty, Type::Float(32), is_fused).map(paired);
    }
    scalar(line, m, mode, ty, ty, is_fused)
}

/// The operation on one number of type `of`, in registers of type `ty`.
fn scalar(
    line: &mut Line<'_, '_>,
    m: Modifiers,
    mode: Rounding,
    ty: Type,
    of: Type,
    is_fused: bool,
) -> Decoded<Op> {
    match (of, mode) {
        (Type::Float(32), Rounding::Nearest) if is_fused => line.three([ty; 3], move |a, b, c| {
            let (a, b, c) = (m.input(a), m.input(b), m.input(c));
            m.output_of(a.mul_add(b, c), || sum_to_odd(f64::from(a) * f64::from(b), f64::from(c), mode))
        }),
        (Type::Float(32), Rounding::Nearest) => {
            let f = match line.base {
                "add" => m.two(|a, b| a + b),
                "sub" => m.two(|a, b| a - b),
                // The product of two f32 is exact in f64.
                _ => Box::new(move |a, b| {
                    let (a, b) = (m.input(a), m.input(b));
                    m.output_of(a * b, || f64::from(a) * f64::from(b))
                }),
            };
            finish(line, ty, Operation::Two(f))
        }
        (Type::Float(32), _) if is_fused => line.three([ty; 3], move |a, b, c| {
            let product = f64::from(m.input(a)) * f64::from(m.input(b));
            m.output(round::to_f32(sum_to_odd(product, f64::from(m.input(c)), mode), mode))
        }),
        (Type::Float(32), _) => {
            let sum = move |a: f32, b: f32| round::to_f32(sum_to_odd(f64::from(a), f64::from(b), mode), mode);
            let f = match line.base {
                "add" => m.two(sum),
                "sub" => m.two(move |a, b| sum(a, -b)),
                _ => m.two(move |a, b| round::to_f32(f64::from(a) * f64::from(b), mode)),
            };
            finish(line, ty, Operation::Two(f))
        }
        (_, Rounding::Nearest) if !m.ftz && !m.sat => {
            let v = f64::from_bits;
            if is_fused {
                return line.three([ty; 3], move |a, b, c| double(v(a).mul_add(v(b), v(c)), [b, c, a]));
            }
            match line.base {
                "add" => line.two(ty, move |a, b| double(v(a) + v(b), [b, a])),
                "sub" => line.two(ty, move |a, b| double(v(a) - v(b), [b, a])),
                _ => line.two(ty, move |a, b| double(v(a) * v(b), [b, a])),
            }
        }
        _ => missing(format!("`{}` of {ty:?} with these modifiers", line.base)),
    }
}

/// The bits of an f64 that came of some others, of which the first NaN is passed on.
pub(crate) fn double<const N: usize>(value: f64, of: [u64; N]) -> u64 {
    if !value.is_nan() {
        return value.to_bits();
    }
    let nan = of.into_iter().find(|&bits| f64::from_bits(bits).is_nan());
    nan.map_or(INVALID, |bits| bits | QUIET)
}

/// What an operation gives that has no result.
const INVALID: u64 = 0xfff8_0000_0000_0000;
/// The bit of an f64 that makes a NaN quiet.
pub(crate) const QUIET: u64 = 1 << 51;

/// `div`, `rcp`, `sqrt` with a rounding mode.
fn exact(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let m = Modifiers::of(line);
    let Some(mode) = m.rounding else {
        return missing(format!("`{}` without a rounding mode", line.base));
    };
    let ty = line.ty()?;
    let operation = match (ty, mode) {
        (Type::Float(32), Rounding::Nearest) => match line.base {
            "div" => Operation::Two(Box::new(move |a, b| {
                let (a, b) = (m.input(a), m.input(b));
                m.output_of(a / b, || quotient_to_odd(f64::from(a), f64::from(b)))
            })),
            "rcp" => Operation::One(m.one(|a| 1.0 / a)),
            _ => Operation::One(m.one(f32::sqrt)),
        },
        (Type::Float(32), _) => {
            let divide =
                move |a: f32, b: f32| round::to_f32(quotient_to_odd(f64::from(a), f64::from(b)), mode);
            match line.base {
                "div" => Operation::Two(m.two(divide)),
                "rcp" => Operation::One(m.one(move |a| divide(1.0, a))),
                _ => Operation::One(m.one(move |a| round::to_f32(root_to_odd(f64::from(a)), mode))),
            }
        }
        (Type::Float(64), Rounding::Nearest) if !m.ftz => match line.base {
            "div" => Operation::Two(Box::new(|a, b| double(f64::from_bits(a) / f64::from_bits(b), [a, b]))),
            "rcp" => Operation::One(Box::new(|a| double(1.0 / f64::from_bits(a), [a]))),
            _ => Operation::One(Box::new(|a| double(f64::from_bits(a).sqrt(), [a]))),
        },
        _ => return missing(format!("`{}` of {ty:?} with these modifiers", line.base)),
    };
    finish(line, ty, operation)
}

/// `div.approx` is good for divisors up to 2^126 and gives 0 beyond, or NaN for an infinite dividend; `div.full` is
/// good for all.
fn divide_approximately(line: &mut Line<'_, '_>, full: bool) -> Decoded<Op> {
    let m = Modifiers::of(line);
    let ty = line.ty()?;
    if ty != Type::Float(32) {
        return missing(format!("an approximate division of {ty:?}"));
    }
    // 2^126
    const LARGE: f32 = f32::from_bits(0x7e80_0000);
    let f = m.two(move |a, b| {
        if full || !(LARGE < b.abs() && b.is_finite()) {
            a / b
        } else if a.is_finite() {
            0f32.copysign(a) * b.signum()
        } else {
            f32::NAN
        }
    });
    finish(line, ty, Operation::Two(f))
}

fn approximation(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let m = Modifiers::of(line);
    let ty = line.ty()?;
    let f: fn(f64) -> f64 = match line.base {
        "rcp" => |a| 1.0 / a,
        "sqrt" => f64::sqrt,
        "rsqrt" => |a| 1.0 / a.sqrt(),
        "sin" => f64::sin,
        "cos" => f64::cos,
        "lg2" => f64::log2,
        "ex2" => f64::exp2,
        _ => f64::tanh,
    };
    match ty {
        Type::Float(32) => {
            let f = m.one(move |a| f(f64::from(a)) as f32);
            finish(line, ty, Operation::One(f))
        }
        Type::Float(64) if line.base == "rsqrt" && !m.ftz => {
            line.one(ty, move |a| double(f(f64::from_bits(a)), [a]))
        }
        _ => missing(format!("`{}.approx` of {ty:?}", line.base)),
    }
}

/// The smaller or larger of two: a NaN loses, or wins with `.NaN`; -0 is below +0.
pub(crate) fn choose(a: f64, b: f64, is_max: bool, nan_wins: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f64::NAN,
        (true, false) | (false, true) if nan_wins => f64::NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if a == b => {
            if a.is_sign_negative() == is_max {
                b
            } else {
                a
            }
        }
        (false, false) => {
            if (a > b) == is_max {
                a
            } else {
                b
            }
        }
    }
}

fn extreme(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let m = Modifiers::of(line);
    let (nan_wins, signs) = (line.flag(".NaN"), line.flag(".xorsign"));
    let magnitudes = line.flag(".abs");
    let is_max = line.base == "max";
    let ty = line.ty()?;
    match ty {
        Type::Float(32) if signs == magnitudes && !m.sat && m.rounding.is_none() => {
            let of_two = m.two(move |a, b| {
                let (x, y) = if magnitudes { (a.abs(), b.abs()) } else { (a, b) };
                // Every f32 is an f64, and comes back as itself.
                let chosen = choose(f64::from(x), f64::from(y), is_max, nan_wins) as f32;
                match signs && a.is_sign_negative() != b.is_sign_negative() {
                    true => -chosen,
                    false => chosen,
                }
            });
            if line.operands.len() == 4 && !signs {
                return line.three([ty; 3], move |a, b, c| of_two(of_two(a, b), c));
            }
            finish(line, ty, Operation::Two(of_two))
        }
        Type::Float(64) if !nan_wins && !signs && !magnitudes && !m.ftz => line
            .two(ty, move |a, b| double(choose(f64::from_bits(a), f64::from_bits(b), is_max, false), [b, a])),
        _ => missing(format!("`{}` of {ty:?} with these modifiers", line.base)),
    }
}

/// `abs`, `neg`, `copysign`, `testp`: bits of numbers.
fn sign(line: &mut Line<'_, '_>) -> Decoded<Op> {
    type Test = fn(f64, bool) -> bool;
    let tests: &[(&str, Test)] = &[
        (".finite", |v, _| v.is_finite()),
        (".infinite", |v, _| v.is_infinite()),
        (".number", |v, _| !v.is_nan()),
        (".notanumber", |v, _| v.is_nan()),
        // An H200 takes zero for normal.
        (".normal", |v, small| (v.is_normal() || v == 0.0) && !small),
        (".subnormal", |v, small| v.is_subnormal() || small),
    ];
    let test = line.one_of(tests);
    let ftz = line.flag(".ftz");
    let ty = line.ty()?;
    let top = 1u64 << (ty.bits() - 1);
    match (line.base, ty) {
        ("abs" | "neg", Type::Float(32)) => {
            let negates = line.base == "neg";
            line.one(ty, move |a| {
                let value = flush(f32::from_bits(a as u32), ftz);
                let value = if negates { -value } else { value.abs() };
                u64::from(if value.is_nan() { NAN } else { value.to_bits() })
            })
        }
        ("abs" | "neg", _) => {
            let negates = line.base == "neg";
            line.one(ty, move |a| match (f64::from_bits(a).is_nan(), negates) {
                (true, _) => a | QUIET,
                (false, true) => a ^ top,
                (false, false) => a & !top,
            })
        }
        ("copysign", _) => line.two(ty, move |a, b| b & !top | a & top),
        ("testp", Type::Float(bits)) => match test {
            None => missing("`testp` without a test that it knows"),
            Some(test) => line.one(ty, move |a| match bits {
                32 => {
                    let value = f32::from_bits(a as u32);
                    u64::from(test(f64::from(value), value.is_subnormal()))
                }
                _ => u64::from(test(f64::from_bits(a), false)),
            }),
        },
        (other, _) => missing(format!("the instruction `{other}`")),
    }
}

/// The bits of a sum as atomics compute it.
pub(crate) fn add_f32(a: u64, b: u64, ftz: bool) -> u64 {
    let m = Modifiers { ftz, sat: false, rounding: None };
    m.output(m.input(a) + m.input(b))
}

/// The format of an f32's bits, for those that round.
pub(crate) const SINGLE: round::Format = F32;
