//! What a twin is launched with: the program's own arguments, and the context block behind them.
//!
//! Arguments are pointed at where they are, in the program's list of pointers or in its packed buffer; nothing is copied.

use std::mem::MaybeUninit;

use nt_wire::message::Fill;

use crate::Opaque;
use crate::pool::{MAPS, Part};
use crate::twin::Twin;

/// The most parameters that an original may have.
pub(crate) const PARAMS: usize = 512;
/// The largest context block, in bytes.
pub(crate) const CONTEXT: usize = 512;

/// A pointer a parameter.
pub(crate) type Pointers = [MaybeUninit<Opaque>; PARAMS + 1];

/// Parts of one piece of memory begin at multiples of this: a cache line's worth and more.
const PART: u64 = 256;
/// Capacities are rounded up to it, as the layout of columns wants.
const STEP: u64 = 16;

/// Where each map's part lies, of the maps that outlive launches or of those that do not, and how large all of them are.
/// `None` beyond all bounds.
pub(crate) fn lay_out(
    twin: &Twin,
    persistent: bool,
    grid: [u32; 3],
    block: [u32; 3],
    sms: u32,
) -> Option<([Part; MAPS], u64)> {
    let mut parts = [Part::default(); MAPS];
    let mut end = 0u64;
    for (part, map) in parts.iter_mut().zip(&twin.maps).filter(|(_, map)| map.persistent == persistent) {
        let units = map.unit.count(grid, block, sms)?;
        let capacity = units.checked_next_multiple_of(STEP)?;
        let bytes = capacity.checked_mul(u64::from(map.stride))?;
        *part = Part { offset: end, bytes, units, capacity };
        end = end.checked_add(bytes)?.checked_next_multiple_of(PART)?;
    }
    Some((parts, end))
}

/// Points at the program's arguments, wherever they are. `None` if they are not as the kernel's parameters ask.
pub(crate) fn fill_params(
    twin: &Twin,
    params: *mut Opaque,
    extra: *mut Opaque,
    array: &mut Pointers,
) -> Option<()> {
    if twin.params.is_empty() || !params.is_null() {
        for (i, to) in array.iter_mut().enumerate().take(twin.params.len()) {
            // SAFETY: the driver reads as many pointers from it.
            to.write(unsafe { *params.add(i) });
        }
        return Some(());
    }
    let (buffer, size) = packed(extra)?;
    for (param, to) in twin.params.iter().zip(array) {
        if param.offset as usize + param.size as usize > size {
            return None;
        }
        to.write(buffer.wrapping_byte_add(param.offset as usize));
    }
    Some(())
}

/// The buffer of packed parameters in an `extra` list, and its size.
fn packed(extra: *mut Opaque) -> Option<(Opaque, usize)> {
    const END: usize = 0;
    const BUFFER: usize = 1;
    const SIZE: usize = 2;
    let (mut buffer, mut size) = (None, None);
    if extra.is_null() {
        return None;
    }
    for pair in 0..8 {
        // SAFETY: pairs of a name and a value, ended by END.
        let name = unsafe { *extra.add(2 * pair) } as usize;
        if name == END {
            break;
        }
        // SAFETY: as above.
        let value = unsafe { *extra.add(2 * pair + 1) };
        match name {
            BUFFER => buffer = Some(value),
            // SAFETY: the address of the size.
            SIZE => size = unsafe { value.cast::<usize>().as_ref() }.copied(),
            _ => return None,
        }
    }
    Some((buffer.filter(|buffer| !buffer.is_null())?, size?))
}

/// The context block. Parts lie from `segment` or, of maps that outlive launches, from `tables` on.
pub(crate) fn fill_block(
    twin: &Twin,
    (parts, segment): (&[Part; MAPS], u64),
    (kept, tables): (&[Part; MAPS], u64),
    number: u64,
    block: &mut [u64; CONTEXT / 8],
) {
    for slot in &twin.slots {
        let part = |map: u32| {
            let persistent = twin.maps.get(map as usize).is_some_and(|map| map.persistent);
            let (parts, base) = if persistent { (kept, tables) } else { (parts, segment) };
            (parts.get(map as usize).copied().unwrap_or_default(), base)
        };
        let value = match slot.fill {
            Fill::Zero => 0,
            Fill::Base(map) => {
                let (part, base) = part(map);
                base + part.offset
            }
            Fill::Capacity(map) => part(map).0.capacity,
            Fill::Launch => number,
            // Of streams, which are refused before.
            Fill::Cursor(_) | Fill::Drops(_) | Fill::Units(_) => 0,
        };
        if let Some(word) = block.get_mut(slot.offset as usize / 8) {
            *word = value;
        }
    }
}
