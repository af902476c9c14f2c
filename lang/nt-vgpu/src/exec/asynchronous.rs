//! Asynchronous copies, done at once: the manual lets them be done at any time before the wait.
//!
//! Source: PTX ISA 9.0, section 9.7.9.25 (`cp.async`, `cp.async.bulk`), 9.7.13.15.15 (`cp.async.mbarrier.arrive`).

use crate::code::{Address, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::exec::mbarrier;
use crate::exec::spaces::{AddressSpace, HINTS, SPACES, decode_address};
use crate::fault::{AccessError, Stop};
use crate::machine::Machine;
use crate::operation::{Family, Mbarriers};
use crate::stats::{Space, lanes};
use crate::types::Type;
use crate::warp::Warp;

/// Bytes of one step of a bulk copy, and what its addresses and size must be multiples of.
const BULK: u64 = 16;

/// `cp.async` and `cp.async.bulk`
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) to: (AddressSpace, Address),
    pub(crate) from: (AddressSpace, Address),
    /// Bytes written.
    size: Src,
    /// Bytes read, if fewer; the rest is zero.
    read: Option<Src>,
    /// Is nothing read at all?
    ignores: Option<Src>,
    /// The mbarrier that is told.
    told: Option<(AddressSpace, Address)>,
    pub(crate) is_bulk: bool,
}

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<(Family, Op)> {
    if !line.flag(".async") {
        return missing("this form of `cp`");
    }
    if line.flag(".mbarrier") {
        let arrives = Mbarriers { arrive: true, ..Mbarriers::default() };
        return Ok((Family::Mbarrier(arrives), mbarrier::decode_copies_done(line)?));
    }
    let is_bulk = line.flag(".bulk");
    // Everything has been copied when a wait comes.
    let commits = line.flag(".commit_group");
    if commits || line.flag(".wait_group") || line.flag(".wait_all") {
        line.flag(".read");
        line.end(line.operands.len())?;
        return Ok((if commits { Family::Commit } else { Family::Wait }, Op::Nothing));
    }
    if is_bulk && line.flag(".prefetch") {
        return Ok((Family::Prefetch, Op::Nothing));
    }
    if line.flag(".L2::cache_hint") {
        line.operands.pop();
    }
    let (Some(to), Some(from)) = (line.one_of(SPACES), line.one_of(SPACES)) else {
        return missing("a copy between spaces that it does not know");
    };
    line.ignore(HINTS);
    let word = Type::Unsigned(32);
    let tells = line.flag(".mbarrier::complete_tx::bytes");
    if is_bulk && !tells && !line.flag(".bulk_group") {
        return missing("a bulk copy without `.bulk_group` or an mbarrier");
    }
    let operands = line.operands.len();
    line.end(operands)?;
    let (to, from) = (decode_address(line, 0, Some(to))?, decode_address(line, 1, Some(from))?);
    let size = line.src(2, word)?;
    let mut copy = Copy { to, from, size, read: None, ignores: None, told: None, is_bulk };
    match (is_bulk, operands) {
        (true, 3) if !tells => (),
        (true, 4) if tells => copy.told = Some(decode_address(line, 3, Some(AddressSpace::Shared))?),
        (false, 3) => (),
        // A predicate, or how many bytes to read.
        (false, 4) => {
            let operand = line.src(3, word)?;
            let is_predicate = match operand {
                Src::Not(_) => true,
                Src::Slot(_) => line.dst(3)?.mask == 1,
                _ => false,
            };
            if is_predicate {
                copy.ignores = Some(operand);
            } else {
                copy.read = Some(operand);
            }
        }
        _ => return missing(format!("a copy with {operands} operands")),
    }
    Ok((Family::Copy, Op::Copy(Box::new(copy))))
}

impl Copy {
    /// The address on the side that is not shared memory.
    pub(crate) fn outer_address(&self) -> Address {
        if self.to.0 == AddressSpace::Shared { self.from.1 } else { self.to.1 }
    }

    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<(), Stop> {
        let to = machine.addresses(warp, self.to.1);
        let from = machine.addresses(warp, self.from.1);
        let sizes = warp.row(machine, self.size);
        let reads = self.read.map_or(sizes, |read| warp.row(machine, read));
        let ignores = self.ignores.map(|ignores| warp.row(machine, ignores));
        let told = self.told.map(|(space, address)| (space, machine.addresses(warp, address)));
        for lane in lanes(active) {
            let size = sizes[lane] & 0xffff_ffff;
            if !self.is_bulk {
                let ignored = ignores.is_some_and(|row| row[lane] & 1 == 1);
                let read = if ignored { 0 } else { (reads[lane] & 0xffff_ffff).min(size) };
                self.small(machine, warp, lane, [to[lane], from[lane], size, read])?;
                continue;
            }
            let all = to[lane] | from[lane] | size;
            if !all.is_multiple_of(BULK) {
                return Err(crate::exec::spaces::refused(
                    lane,
                    to[lane] | from[lane],
                    size as usize,
                    (Space::Shared, AccessError::Misaligned),
                ));
            }
            for at in (0..size).step_by(BULK as usize) {
                self.small(
                    machine,
                    warp,
                    lane,
                    [to[lane].wrapping_add(at), from[lane].wrapping_add(at), BULK, BULK],
                )?;
            }
            if let Some((space, told)) = told {
                let (block, offset) = machine.shared_word(warp, lane, space, told[lane])?;
                machine.complete_bytes(block, offset, size as u32);
            }
        }
        Ok(())
    }

    /// At most 16 bytes. Of those that are not read, none need exist.
    fn small(
        &self,
        machine: &mut Machine<'_>,
        warp: &mut Warp,
        lane: usize,
        copy: [u64; 4],
    ) -> Result<(), Stop> {
        let [to, from, size, read] = copy;
        if !matches!(size, 4 | 8 | 16) {
            return Err(Stop::undefined(lane as u32, format!("a copy of {size} bytes")));
        }
        let mut bytes = [0; 16];
        // An odd number of bytes is read one by one, since addresses are aligned to the whole.
        match read == size {
            true => machine.read(warp, lane, self.from.0, from, &mut bytes[..size as usize])?,
            false => {
                for at in 0..read {
                    machine.read(
                        warp,
                        lane,
                        self.from.0,
                        from + at,
                        &mut bytes[at as usize..=at as usize],
                    )?;
                }
            }
        }
        machine.write(warp, lane, self.to.0, to, &bytes[..size as usize])
    }
}
