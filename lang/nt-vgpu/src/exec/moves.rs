//! Moves: values, halves of values, addresses between spaces.
//!
//! Source: PTX ISA 9.0, section 9.7.9 (`mov`, `cvta`, `isspacep`, `mapa`, `getctarank`).

use crate::code::{Dst, Op, Src};
use crate::decode::{Decoded, Line, missing, window};
use crate::exec::spaces::{RANK_SHIFT, rank_of};
use crate::machine::Machine;
use crate::special::Special;
use crate::stats::lanes;
use crate::types::{Type, mask};
use crate::warp::Warp;
use nt_ptx::syntax::OperandKind;

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    match line.base {
        "mov" => mov(line),
        "cvta" => cvta(line),
        "isspacep" => is_space(line),
        _ => cluster_address(line),
    }
}

fn mov(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let ty = line.ty()?;
    line.end(2)?;
    if let OperandKind::Vector(_) = line.operand(0)?.kind {
        let parts = line.dsts(0)?;
        return Ok(Op::Unpack(Unpack { bits: share(ty, parts.len())?, parts, src: line.src(1, ty)? }));
    }
    if let OperandKind::Vector(_) = line.operand(1)?.kind {
        let parts = line.srcs(1, ty)?;
        return Ok(Op::Pack(Pack { bits: share(ty, parts.len())?, parts, dst: line.dst(0)? }));
    }
    line.one(ty, |a| a)
}

fn share(ty: Type, parts: usize) -> Decoded<u32> {
    match parts {
        2 | 4 => Ok(ty.bits() / parts as u32),
        _ => missing(format!("a `mov` of {parts} parts")),
    }
}

/// `mov.b64 d, {a, b}`: a is the low part.
#[derive(Debug)]
pub(crate) struct Pack {
    bits: u32,
    parts: Box<[Src]>,
    dst: Dst,
}

impl Pack {
    pub(crate) fn run(&self, machine: &Machine<'_>, warp: &mut Warp, active: u32) {
        let mut row = [0; 32];
        for (part, shift) in self.parts.iter().zip((0..).step_by(self.bits as usize)) {
            let values = warp.row(machine, *part);
            for lane in lanes(active) {
                row[lane] |= (values[lane] & mask(self.bits)) << shift;
            }
        }
        for lane in lanes(active) {
            warp.set(lane, self.dst, row[lane]);
        }
    }
}

/// `mov.b64 {a, b}, d`
#[derive(Debug)]
pub(crate) struct Unpack {
    bits: u32,
    parts: Box<[Dst]>,
    src: Src,
}

impl Unpack {
    pub(crate) fn run(&self, machine: &Machine<'_>, warp: &mut Warp, active: u32) {
        let values = warp.row(machine, self.src);
        for (part, shift) in self.parts.iter().zip((0..).step_by(self.bits as usize)) {
            for lane in lanes(active) {
                warp.set(lane, *part, values[lane] >> shift & mask(self.bits));
            }
        }
    }
}

/// Where a space lies in the generic addresses; that of global memory is all that is no other's.
const WINDOWS: &[(&str, u64)] = &[
    (".global", 0),
    (".shared", window::SHARED),
    (".shared::cta", window::SHARED),
    (".shared::cluster", window::SHARED),
    (".local", window::LOCAL),
    (".const", window::CONST),
    (".param", window::PARAM),
    (".param::entry", window::PARAM),
];

/// Both directions: spaces are windows at constant places.
fn cvta(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let to = line.flag(".to");
    let Some(window) = line.one_of(WINDOWS) else {
        return missing("`cvta` of a space that it does not know");
    };
    let ty = line.ty()?;
    // `cvta.global.u64 d, g+4` takes the address of a variable as well as a register.
    match (to, ty) {
        (_, Type::Unsigned(64)) if window == 0 => line.one(ty, |a| a),
        (false, Type::Unsigned(64)) => line.one(ty, move |a| window + (a & mask(32))),
        (true, Type::Unsigned(64)) => line.one(ty, move |a| a.wrapping_sub(window)),
        _ => missing("`cvta` of 32 bits"),
    }
}

fn is_space(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let own_block = line.rest().contains(&".shared::cta") || line.rest().contains(&".shared");
    let Some(window) = line.one_of(WINDOWS) else {
        return missing("`isspacep` of a space that it does not know");
    };
    let ty = Type::Unsigned(64);
    let inside = |a: u64, window: u64| a.wrapping_sub(window) < window::SIZE;
    match window {
        // On an H200 parameters are in global memory, as the manual says, and constants are not.
        0 => line.one(ty, move |a| {
            u64::from(![window::SHARED, window::LOCAL, window::CONST].iter().any(|&w| inside(a, w)))
        }),
        window::SHARED if own_block => {
            line.one(ty, move |a| u64::from(inside(a, window) && rank_of(a as u32).is_none()))
        }
        window => line.one(ty, move |a| u64::from(inside(a, window))),
    }
}

/// `mapa`, `getctarank`: addresses of other blocks' shared memory.
fn cluster_address(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let is_shared = line.flag(".shared::cluster");
    let ty = line.ty()?;
    let base = if is_shared { 0 } else { window::SHARED };
    if line.base == "mapa" {
        // The address keeps its place in the block; the block becomes b.
        return line.two(ty, move |a, b| {
            let place = a.wrapping_sub(base) & mask(RANK_SHIFT);
            base + (((b & 0xff) + 1) << RANK_SHIFT | place)
        });
    }
    line.end(2)?;
    let own = Src::Special(Special::ClusterCtarank);
    let f = move |a: u64, own: u64| rank_of(a.wrapping_sub(base) as u32).map_or(own, u64::from);
    Ok(Op::Two(Box::new(f), line.dst(0)?, [line.src(1, ty)?, own]))
}
