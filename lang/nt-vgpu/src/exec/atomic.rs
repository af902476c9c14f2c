//! Atomics and reductions. Lanes of a group take turns, lowest first.
//!
//! `add.f32` flushes subnormals in global memory and keeps them in shared, as the manual says.
//!
//! Source: PTX ISA 9.0, section 9.7.13 (`atom`, `red`).

use crate::code::{Address, Dst, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::exec::float::{add_f32, choose, double};
use crate::exec::half::Half;
use crate::exec::spaces::{AddressSpace, HINTS, SPACES, decode_address};
use crate::fault::Stop;
use crate::machine::Machine;
use crate::round::{Rounding, sum_to_odd};
use crate::stats::{Space, lanes};
use crate::types::{Type, mask, signed};
use crate::warp::Warp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    And,
    Or,
    Xor,
    Exchange,
    Compare,
    Add,
    Increment,
    Decrement,
    Min,
    Max,
}

const CHANGES: &[(&str, Change)] = &[
    (".and", Change::And),
    (".or", Change::Or),
    (".xor", Change::Xor),
    (".exch", Change::Exchange),
    (".cas", Change::Compare),
    (".add", Change::Add),
    (".inc", Change::Increment),
    (".dec", Change::Decrement),
    (".min", Change::Min),
    (".max", Change::Max),
];

/// `atom` and, without a destination, `red`.
#[derive(Debug)]
pub(crate) struct Atomic {
    change: Change,
    ty: Type,
    pub(crate) space: AddressSpace,
    pub(crate) address: Address,
    pub(crate) dst: Option<Dst>,
    /// What to change by, and for `cas` what to put there.
    sources: [Src; 2],
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    if line.rest().contains(&".async") {
        return missing(format!("`{}.async`", line.base));
    }
    if line.flag(".L2::cache_hint") {
        line.operands.pop();
    }
    let has_dst = line.base == "atom";
    let space = line.one_of(SPACES);
    line.ignore(HINTS);
    let Some(change) = line.one_of(CHANGES) else {
        return missing(format!("`{}` without an operation that it knows", line.base));
    };
    let noftz = line.flag(".noftz");
    let ty = line.ty()?;
    let first = usize::from(has_dst);
    line.end(first + if change == Change::Compare { 3 } else { 2 })?;
    let fits = match (change, ty) {
        (Change::Add, Type::Float(32 | 64)) => !noftz,
        (Change::Add, _) if Half::of(ty).is_some() => noftz,
        (Change::Min | Change::Max, Type::Bits(_)) => false,
        (Change::Increment | Change::Decrement, _) => ty == Type::Unsigned(32),
        (Change::Compare, _) => ty.is_integer() && ty.bits() >= 16,
        (_, _) => ty.is_integer() && ty.bits() >= 32,
    };
    if !fits {
        return missing(format!("an atomic {change:?} of {ty:?}"));
    }
    let (space, address) = decode_address(line, first, space)?;
    let b = line.src(first + 1, ty)?;
    let c = if change == Change::Compare { line.src(first + 2, ty)? } else { Src::Immediate(0) };
    let dst = if has_dst { Some(line.dst(0)?) } else { None };
    Ok(Op::Atomic(Box::new(Atomic { change, ty, space, address, dst, sources: [b, c] })))
}

impl Atomic {
    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<(), Stop> {
        let addresses = machine.addresses(warp, self.address);
        let [b, c] = self.sources.map(|src| warp.row(machine, src));
        for lane in lanes(active) {
            let change = |old: u64, space: Space| self.apply(old, b[lane], c[lane], space);
            let old = machine.update(warp, lane, self.space, addresses[lane], self.ty.bytes(), &change)?;
            if let Some(dst) = self.dst {
                // A signed value keeps its sign in a register of the same width.
                warp.set(lane, dst, old);
            }
        }
        Ok(())
    }

    fn apply(&self, old: u64, b: u64, c: u64, space: Space) -> u64 {
        let bits = self.ty.bits();
        let (old, b) = (old & mask(bits), b & mask(bits));
        match self.change {
            Change::And => old & b,
            Change::Or => old | b,
            Change::Xor => old ^ b,
            Change::Exchange => b,
            Change::Compare => {
                if old == b {
                    c
                } else {
                    old
                }
            }
            Change::Add => self.add(old, b, space),
            Change::Increment => {
                if old >= b {
                    0
                } else {
                    old + 1
                }
            }
            Change::Decrement => {
                if old == 0 || old > b {
                    b
                } else {
                    old - 1
                }
            }
            Change::Min | Change::Max => {
                let is_max = self.change == Change::Max;
                match self.ty {
                    Type::Signed(_) => {
                        if (signed(old, bits) < signed(b, bits)) == is_max {
                            b
                        } else {
                            old
                        }
                    }
                    _ => {
                        if (old < b) == is_max {
                            b
                        } else {
                            old
                        }
                    }
                }
            }
        }
    }

    fn add(&self, old: u64, b: u64, space: Space) -> u64 {
        match (self.ty, Half::of(self.ty)) {
            (Type::Float(32), _) => add_f32(old, b, space == Space::Global),
            // A NaN passes memory as it is.
            (Type::Float(64), _) => match [b, old].into_iter().find(|&v| f64::from_bits(v).is_nan()) {
                Some(nan) => nan,
                None => double(f64::from_bits(old) + f64::from_bits(b), [b, old]),
            },
            (_, Some(half)) => half.apply([old, b], |[a, b]| sum_to_odd(a, b, Rounding::Nearest)),
            _ => old.wrapping_add(b),
        }
    }
}

/// The result of `redux` of f32: NaNs lose unless `.NaN`.
pub(crate) fn extreme_f32(a: u64, b: u64, is_max: bool, nan_wins: bool) -> u64 {
    let chosen =
        choose(f64::from(f32::from_bits(a as u32)), f64::from(f32::from_bits(b as u32)), is_max, nan_wins);
    if chosen.is_nan() { u64::from(crate::exec::float::NAN) } else { u64::from((chosen as f32).to_bits()) }
}
