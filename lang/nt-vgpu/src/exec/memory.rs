//! Loads and stores.
//!
//! Source: PTX ISA 9.0, section 9.7.9 (`ld`, `st`).

use crate::code::{Address, Dst, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::exec::spaces::{AddressSpace, HINTS, SPACES, decode_address, number};
use crate::fault::Stop;
use crate::machine::Machine;
use crate::stats::lanes;
use crate::types::{Type, signed};
use crate::warp::Warp;

/// `ld`
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) space: AddressSpace,
    pub(crate) address: Address,
    ty: Type,
    pub(crate) dsts: Box<[Dst]>,
}

/// `st`
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) space: AddressSpace,
    pub(crate) address: Address,
    ty: Type,
    pub(crate) sources: Box<[Src]>,
}

const VECTORS: &[(&str, usize)] = &[(".v2", 2), (".v4", 4), (".v8", 8)];

/// What loads and stores have in common, but for the operands.
fn decode_access(line: &mut Line<'_, '_>) -> Decoded<(Option<AddressSpace>, Type, usize)> {
    if line.flag(".L2::cache_hint") {
        line.operands.pop();
    }
    let space = line.one_of(SPACES);
    line.ignore(HINTS);
    let elements = line.one_of(VECTORS).unwrap_or(1);
    let ty = line.ty()?;
    line.end(2)?;
    if ty == Type::Predicate || elements * ty.bytes() > 32 {
        return missing(format!("an access to {elements} of {ty:?}"));
    }
    Ok((space, ty, elements))
}

pub(crate) fn decode_load(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let (space, ty, elements) = decode_access(line)?;
    let (space, address) = decode_address(line, 1, space)?;
    let dsts = line.dsts(0)?;
    if dsts.len() != elements {
        return missing(format!("a load of {elements} into {} registers", dsts.len()));
    }
    Ok(Op::Load(Box::new(Load { space, address, ty, dsts })))
}

pub(crate) fn decode_store(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let (space, ty, elements) = decode_access(line)?;
    let (space, address) = decode_address(line, 0, space)?;
    let sources = line.srcs(1, ty)?;
    if sources.len() != elements {
        return missing(format!("a store of {elements} from {} registers", sources.len()));
    }
    Ok(Op::Store(Box::new(Store { space, address, ty, sources })))
}

impl Load {
    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<(), Stop> {
        let addresses = machine.addresses(warp, self.address);
        let (size, bits) = (self.ty.bytes(), self.ty.bits());
        let all = size * self.dsts.len();
        let mut bytes = [0; 32];
        for lane in lanes(active) {
            // Decoding saw to it that 32 bytes suffice.
            machine.read(warp, lane, self.space, addresses[lane], &mut bytes[..all])?;
            for (dst, part) in self.dsts.iter().zip(bytes.chunks_exact(size)) {
                let value = number(part);
                let value = if self.ty.is_signed() { signed(value, bits).cast_unsigned() } else { value };
                warp.set(lane, *dst, value);
            }
        }
        Ok(())
    }
}

impl Store {
    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<(), Stop> {
        let addresses = machine.addresses(warp, self.address);
        let mut values = [[0; 32]; 8];
        for (row, source) in values.iter_mut().zip(&self.sources) {
            *row = warp.row(machine, *source);
        }
        let size = self.ty.bytes();
        let all = size * self.sources.len();
        let mut bytes = [0; 32];
        for lane in lanes(active) {
            for (part, row) in bytes.chunks_exact_mut(size).zip(&values).take(self.sources.len()) {
                part.copy_from_slice(&row[lane].to_le_bytes()[..size]);
            }
            machine.write(warp, lane, self.space, addresses[lane], &bytes[..all])?;
        }
        Ok(())
    }
}
