//! Spaces: what an address means in each, and how it is read, written and changed.
//!
//! * Generic addresses: windows for shared, local, parameter and constant memory (`decode/layout.rs`), all else global.
//! * Shared addresses: below 2^24 the block's own; above, `(rank + 1) << 24` says whose of the cluster.
//! * Local addresses: bytes of the lane's stack. Parameters of functions lie there too.
//! * Constant addresses: offsets in the module's constants.
//!
//! Source: PTX ISA 9.0, sections 5.1 (spaces) and 6.4.1 (addresses).

use crate::code::Address;
use crate::decode::{Decoded, Line, Where, missing, window};
use crate::fault::{AccessError, FaultKind, Stop};
use crate::machine::Machine;
use crate::stats::Space;
use crate::warp::{Row, Warp};

/// Bits of a shared address inside one block.
pub(crate) const RANK_SHIFT: u32 = 24;

/// Whose shared memory an address is in, if it says so.
pub(crate) fn rank_of(address: u32) -> Option<u32> {
    (address >> RANK_SHIFT).checked_sub(1)
}

/// The space of an address operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressSpace {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    /// Of the kernel.
    Param,
    /// Of a function, or of a call that it makes: local memory, by another name.
    Argument,
}

pub(crate) const SPACES: &[(&str, AddressSpace)] = &[
    (".global", AddressSpace::Global),
    (".shared", AddressSpace::Shared),
    (".shared::cta", AddressSpace::Shared),
    (".shared::cluster", AddressSpace::Shared),
    (".local", AddressSpace::Local),
    (".const", AddressSpace::Const),
    (".param", AddressSpace::Param),
    (".param::entry", AddressSpace::Param),
    (".param::func", AddressSpace::Param),
];

/// Modifiers that say when and through which cache: all memory is in order here.
pub(crate) const HINTS: &[&str] = &[
    ".volatile",
    ".weak",
    ".relaxed",
    ".acquire",
    ".release",
    ".acq_rel",
    ".sc",
    ".mmio",
    ".sys",
    ".gpu",
    ".cta",
    ".cluster",
    ".ca",
    ".cg",
    ".cs",
    ".lu",
    ".cv",
    ".wb",
    ".wt",
    ".nc",
    ".unified",
    ".L1::",
    ".L2::",
];

/// An address operand and its space.
pub(crate) fn decode_address(
    line: &mut Line<'_, '_>,
    index: usize,
    space: Option<AddressSpace>,
) -> Decoded<(AddressSpace, Address)> {
    let (address, symbol) = line.address(index)?;
    let is_kernel = line.module.functions.get(line.function).is_some_and(|function| function.is_entry);
    let space = match (space.unwrap_or(AddressSpace::Generic), symbol) {
        // A variable's own address is one of its space, whatever the instruction says.
        (AddressSpace::Param | AddressSpace::Generic, Some(Where::Argument(_))) => AddressSpace::Argument,
        // In a function, a register holds the address of one of its own parameters.
        (AddressSpace::Param, None) if !is_kernel => AddressSpace::Argument,
        (AddressSpace::Param, None)
        | (AddressSpace::Param | AddressSpace::Generic, Some(Where::KernelParam(_))) => AddressSpace::Param,
        (AddressSpace::Param, _) => return missing("a `.param` address of something else"),
        (AddressSpace::Generic, Some(Where::Shared(_) | Where::Dynamic)) => AddressSpace::Shared,
        (AddressSpace::Generic, Some(Where::Local(_))) => AddressSpace::Local,
        (AddressSpace::Generic, Some(Where::Const(_))) => AddressSpace::Const,
        (space, _) => space,
    };
    Ok((space, address))
}

/// At most 8 bytes as a number.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// What an address means to a lane.
enum Place {
    Global(u64),
    /// The block among the machine's, and the byte.
    Shared(usize, usize),
    Local(usize),
    /// The address in global memory.
    Const(u64),
    Param(usize),
}

impl Machine<'_> {
    /// Where an address operand points in every lane.
    pub(crate) fn addresses(&self, warp: &Warp, address: Address) -> Row {
        let mut row = warp.row(self, address.base);
        if address.displacement != 0 {
            let wrap = if address.is_narrow { 0xffff_ffff } else { u64::MAX };
            for at in &mut row {
                *at = at.wrapping_add_signed(address.displacement) & wrap;
            }
        }
        row
    }

    /// The block of the cluster with that rank, seen from one of it.
    pub(crate) fn peer(&self, block: usize, rank: u32) -> Option<usize> {
        let own = self.blocks.get(block)?;
        let peer = (block + rank as usize).checked_sub(own.rank as usize)?;
        self.blocks.get(peer).filter(|b| b.cluster == own.cluster && b.rank == rank)?;
        Some(peer)
    }

    fn place(
        &self,
        warp: &Warp,
        space: AddressSpace,
        address: u64,
        size: usize,
    ) -> Result<(Space, Place), (Space, AccessError)> {
        let (space, address, counted) = match space {
            AddressSpace::Generic => {
                let windows = [
                    (window::SHARED, AddressSpace::Shared, Space::Shared),
                    (window::LOCAL, AddressSpace::Local, Space::Local),
                    (window::PARAM, AddressSpace::Param, Space::Param),
                    (window::CONST, AddressSpace::Const, Space::Const),
                ];
                let found =
                    windows.into_iter().find(|(start, ..)| address.wrapping_sub(*start) < window::SIZE);
                match found {
                    Some((start, space, counted)) => (space, address - start, counted),
                    None => (AddressSpace::Global, address, Space::Global),
                }
            }
            AddressSpace::Global => (space, address, Space::Global),
            AddressSpace::Shared => (space, address & 0xffff_ffff, Space::Shared),
            AddressSpace::Local => (space, address, Space::Local),
            AddressSpace::Argument => (AddressSpace::Local, address, Space::Param),
            AddressSpace::Const => (space, address, Space::Const),
            AddressSpace::Param => (space, address, Space::Param),
        };
        if !address.is_multiple_of(size as u64) {
            return Err((counted, AccessError::Misaligned));
        }
        let unmapped = Err((counted, AccessError::Unmapped));
        let place = match space {
            AddressSpace::Shared => {
                let block = match rank_of(address as u32) {
                    None => Some(warp.block),
                    Some(rank) => self.peer(warp.block, rank),
                };
                match block {
                    Some(block) => Place::Shared(block, (address & ((1 << RANK_SHIFT) - 1)) as usize),
                    None => return unmapped,
                }
            }
            AddressSpace::Local => Place::Local(address as usize),
            AddressSpace::Param => Place::Param(address as usize),
            AddressSpace::Const if address.saturating_add(size as u64) > self.program.constants.size => {
                return unmapped;
            }
            AddressSpace::Const => Place::Const(self.launch.constants.wrapping_add(address)),
            _ => Place::Global(address),
        };
        Ok((counted, place))
    }

    fn count(&mut self, warp: &Warp, space: Space, size: usize) {
        if let Some(count) = self.outcome.stats.counts.get_mut(warp.group.pc as usize) {
            count.bytes[space as usize] += size as u64;
            count.accesses[space as usize] += 1;
        }
    }

    /// Reads for a lane, and counts it.
    pub(crate) fn read(
        &mut self,
        warp: &Warp,
        lane: usize,
        space: AddressSpace,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), Stop> {
        let result = self.peek(warp, lane, space, address, into);
        self.accessed(warp, lane, address, into.len(), result)
    }

    /// Reads for a lane what no instruction of the kernel reads.
    pub(crate) fn peek(
        &self,
        warp: &Warp,
        lane: usize,
        space: AddressSpace,
        address: u64,
        into: &mut [u8],
    ) -> Result<Space, (Space, AccessError)> {
        let size = into.len();
        let (counted, place) = self.place(warp, space, address, size)?;
        let source = match place {
            Place::Global(at) | Place::Const(at) => {
                return match self.memory.read(at, into) {
                    Ok(()) => Ok(counted),
                    Err(why) => Err((counted, why.into())),
                };
            }
            Place::Shared(block, at) => self.blocks[block].shared.get(at..at.saturating_add(size)),
            Place::Local(at) => warp.memory[lane].get(at..at.saturating_add(size)),
            Place::Param(at) => self.launch.params.get(at..at.saturating_add(size)),
        };
        let source = source.ok_or((counted, AccessError::Unmapped))?;
        into.copy_from_slice(source);
        Ok(counted)
    }

    /// Where in shared memory an address is; of an mbarrier, which can be nowhere else.
    pub(crate) fn shared_word(
        &self,
        warp: &Warp,
        lane: usize,
        space: AddressSpace,
        address: u64,
    ) -> Result<(usize, usize), Stop> {
        let error = match self.place(warp, space, address, 8) {
            Ok((_, Place::Shared(block, at))) if at.saturating_add(8) <= self.blocks[block].shared.len() => {
                return Ok((block, at));
            }
            Ok((space, _)) => (space, AccessError::Unmapped),
            Err(error) => error,
        };
        Err(refused(lane, address, 8, error))
    }

    /// Writes for a lane, and counts it.
    pub(crate) fn write(
        &mut self,
        warp: &mut Warp,
        lane: usize,
        space: AddressSpace,
        address: u64,
        from: &[u8],
    ) -> Result<(), Stop> {
        let size = from.len();
        let result = self.place(warp, space, address, size).and_then(|(counted, place)| {
            let target = match place {
                Place::Global(at) => {
                    return match self.memory.write(at, from) {
                        Ok(()) => Ok(counted),
                        Err(why) => Err((counted, why.into())),
                    };
                }
                Place::Shared(block, at) => self.blocks[block].shared.get_mut(at..at.saturating_add(size)),
                Place::Local(at) => warp.memory[lane].get_mut(at..at.saturating_add(size)),
                Place::Const(_) | Place::Param(_) => return Err((counted, AccessError::ReadOnly)),
            };
            match target {
                Some(target) => {
                    target.copy_from_slice(from);
                    Ok(counted)
                }
                None => Err((counted, AccessError::Unmapped)),
            }
        });
        self.accessed(warp, lane, address, size, result)
    }

    /// Changes what is in memory for a lane, in one step, and counts it; gives what was there.
    pub(crate) fn update(
        &mut self,
        warp: &mut Warp,
        lane: usize,
        space: AddressSpace,
        address: u64,
        size: usize,
        change: &dyn Fn(u64, Space) -> u64,
    ) -> Result<u64, Stop> {
        let mut old = 0;
        let result = self.place(warp, space, address, size).and_then(|(counted, place)| {
            let target = match place {
                Place::Global(at) => {
                    return match self.memory.update(at, size, &|old| change(old, counted)) {
                        Ok(was) => {
                            old = was;
                            Ok(counted)
                        }
                        Err(why) => Err((counted, why.into())),
                    };
                }
                Place::Shared(block, at) => self.blocks[block].shared.get_mut(at..at.saturating_add(size)),
                Place::Local(at) => warp.memory[lane].get_mut(at..at.saturating_add(size)),
                Place::Const(_) | Place::Param(_) => return Err((counted, AccessError::ReadOnly)),
            };
            match target {
                Some(target) => {
                    old = number(target);
                    target.copy_from_slice(&change(old, counted).to_le_bytes()[..size]);
                    Ok(counted)
                }
                None => Err((counted, AccessError::Unmapped)),
            }
        });
        self.accessed(warp, lane, address, size, result)?;
        Ok(old)
    }

    fn accessed(
        &mut self,
        warp: &Warp,
        lane: usize,
        address: u64,
        size: usize,
        result: Result<Space, (Space, AccessError)>,
    ) -> Result<(), Stop> {
        match result {
            Ok(space) => {
                self.count(warp, space, size);
                Ok(())
            }
            Err(error) => Err(refused(lane, address, size, error)),
        }
    }
}

pub(crate) fn refused(lane: usize, address: u64, size: usize, (space, reason): (Space, AccessError)) -> Stop {
    let kind = FaultKind::Access { space: space.word(), address, size, reason };
    Stop { kind, lane: lane as u32 }
}
