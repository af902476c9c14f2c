//! Comparisons and selections.
//!
//! Source: PTX ISA 9.0, section 9.7.6 (comparison and selection), 9.7.7 (half precision).

use crate::code::{Dst, Op, Src, Two};
use crate::decode::{Decoded, Line, missing};
use crate::exec::float::flush;
use crate::machine::Machine;
use crate::round::{BF16, F16, widen};
use crate::stats::lanes;
use crate::types::{Type, mask, signed};
use crate::warp::Warp;
use std::cmp::Ordering;

/// What makes a comparison true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Relation {
    less: bool,
    equal: bool,
    greater: bool,
    /// One of them is a NaN.
    unordered: bool,
}

const fn relation(less: bool, equal: bool, greater: bool, unordered: bool) -> Relation {
    Relation { less, equal, greater, unordered }
}

const RELATIONS: &[(&str, Relation)] = &[
    (".eq", relation(false, true, false, false)),
    (".ne", relation(true, false, true, false)),
    (".lt", relation(true, false, false, false)),
    (".le", relation(true, true, false, false)),
    (".gt", relation(false, false, true, false)),
    (".ge", relation(false, true, true, false)),
    (".lo", relation(true, false, false, false)),
    (".ls", relation(true, true, false, false)),
    (".hi", relation(false, false, true, false)),
    (".hs", relation(false, true, true, false)),
    (".equ", relation(false, true, false, true)),
    (".neu", relation(true, false, true, true)),
    (".ltu", relation(true, false, false, true)),
    (".leu", relation(true, true, false, true)),
    (".gtu", relation(false, false, true, true)),
    (".geu", relation(false, true, true, true)),
    (".num", relation(true, true, true, false)),
    (".nan", relation(false, false, false, true)),
];

impl Relation {
    fn holds(self, order: Option<Ordering>) -> bool {
        match order {
            Some(Ordering::Less) => self.less,
            Some(Ordering::Equal) => self.equal,
            Some(Ordering::Greater) => self.greater,
            None => self.unordered,
        }
    }
}

/// The order of two slots read as a type.
fn order(ty: Type, ftz: bool) -> Decoded<impl Fn(u64, u64) -> Option<Ordering> + Send + Sync> {
    if !(ty.is_integer() || matches!(ty, Type::Float(_) | Type::Bfloat)) {
        return missing(format!("a comparison of {ty:?}"));
    }
    let bits = ty.bits();
    Ok(move |a: u64, b: u64| match ty {
        Type::Float(32) => {
            let [a, b] = [a, b].map(|v| flush(f32::from_bits(v as u32), ftz));
            a.partial_cmp(&b)
        }
        Type::Float(64) => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        Type::Float(_) => widen(a, F16).partial_cmp(&widen(b, F16)),
        Type::Bfloat => widen(a, BF16).partial_cmp(&widen(b, BF16)),
        Type::Signed(_) => Some(signed(a, bits).cmp(&signed(b, bits))),
        _ => Some((a & mask(bits)).cmp(&(b & mask(bits)))),
    })
}

/// `setp`: a comparison, joined with a predicate, and its opposite likewise.
pub(crate) struct Compare {
    holds: Two,
    join: Option<(Join, Src)>,
    p: Dst,
    q: Option<Dst>,
    sources: [Src; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    And,
    Or,
    Xor,
}

const JOINS: &[(&str, Join)] = &[(".and", Join::And), (".or", Join::Or), (".xor", Join::Xor)];

impl Join {
    fn apply(self, a: u64, b: u64) -> u64 {
        match self {
            Join::And => a & b,
            Join::Or => a | b,
            Join::Xor => a ^ b,
        }
    }
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    match line.base {
        "selp" => {
            let ty = line.ty()?;
            line.three([ty, ty, Type::Predicate], |a, b, p| if p & 1 == 1 { a } else { b })
        }
        "slct" => slct(line),
        "set" => set(line),
        _ => setp(line),
    }
}

fn setp(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let Some(relation) = line.one_of(RELATIONS) else {
        return missing("`setp` without a comparison that it knows");
    };
    let join = line.one_of(JOINS);
    let ftz = line.flag(".ftz");
    let ty = line.ty()?;
    line.end(if join.is_some() { 4 } else { 3 })?;
    let order = order(ty, ftz)?;
    let (p, q) = line.pair(0)?;
    let sources = [line.src(1, ty)?, line.src(2, ty)?];
    let join = match join {
        Some(join) => Some((join, line.src(3, Type::Predicate)?)),
        None => None,
    };
    let holds: Two = Box::new(move |a, b| u64::from(relation.holds(order(a, b))));
    Ok(Op::Compare(Box::new(Compare { holds, join, p, q, sources })))
}

impl Compare {
    pub(crate) fn run(&self, machine: &Machine<'_>, warp: &mut Warp, active: u32) {
        let [a, b] = self.sources.map(|src| warp.row(machine, src));
        let joined = self.join.map(|(join, src)| (join, warp.row(machine, src)));
        for lane in lanes(active) {
            let holds = (self.holds)(a[lane], b[lane]);
            let joined = |value: u64| joined.map_or(value, |(join, c)| join.apply(value, c[lane] & 1));
            warp.set(lane, self.p, joined(holds));
            if let Some(q) = self.q {
                warp.set(lane, q, joined(holds ^ 1));
            }
        }
    }
}

/// `set`: all ones, or 1.0, where the comparison holds.
fn set(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let Some(relation) = line.one_of(RELATIONS) else {
        return missing("`set` without a comparison that it knows");
    };
    let join = line.one_of(JOINS);
    let ftz = line.flag(".ftz");
    let (result, ty) = (line.ty()?, line.ty()?);
    let order = order(ty, ftz)?;
    let one = match result {
        Type::Float(32) => u64::from(1f32.to_bits()),
        Type::Float(16) => 0x3c00,
        Type::Bfloat => 0x3f80,
        _ if result.is_integer() => mask(result.bits()),
        _ => return missing(format!("`set` with a result of {result:?}")),
    };
    let holds = move |a, b| u64::from(relation.holds(order(a, b)));
    match join {
        None => line.two(ty, move |a, b| holds(a, b) * one),
        Some(join) => {
            line.three([ty, ty, Type::Predicate], move |a, b, c| join.apply(holds(a, b), c & 1) * one)
        }
    }
}

/// `slct`: a or b by the sign of c.
fn slct(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let ftz = line.flag(".ftz");
    let (ty, sign) = (line.ty()?, line.ty()?);
    let is_float = match sign {
        Type::Float(32) => true,
        Type::Signed(32) => false,
        _ => return missing(format!("`slct` by {sign:?}")),
    };
    line.three([ty, ty, sign], move |a, b, c| {
        let takes_a = if is_float { flush(f32::from_bits(c as u32), ftz) >= 0.0 } else { signed(c, 32) >= 0 };
        if takes_a { a } else { b }
    })
}
