//! What a twin is launched with: the program's own arguments, and the context block behind them.
//!
//! Arguments are pointed at where they are, in the program's list of pointers or in its packed buffer; nothing is copied.

use std::mem::MaybeUninit;

use nt_wire::message::Fill;

use crate::Opaque;
use crate::layout::Part;
use crate::pool::MAPS;
use crate::twin::Twin;

/// The most parameters that an original may have.
pub(crate) const PARAMS: usize = 512;
/// The largest context block, in bytes.
pub(crate) const CONTEXT: usize = 512;

/// A pointer a parameter.
pub(crate) type Pointers = [MaybeUninit<Opaque>; PARAMS + 1];

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

/// The values of the arguments, as they lie in parameter space: to where there is room for all of them.
pub(crate) fn keep_values(twin: &Twin, array: &Pointers, to: &mut [u8]) {
    for (param, from) in twin.params.iter().zip(array) {
        let (offset, size) = (param.offset as usize, param.size as usize);
        if let Some(to) = to.get_mut(offset..).and_then(|to| to.get_mut(..size)) {
            // SAFETY: `fill_params` has written it.
            let from = unsafe { from.assume_init() }.cast::<u8>();
            if !from.is_null() {
                // SAFETY: the driver will read as many bytes there.
                unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), size) };
            }
        }
    }
}

/// The context block, zero so far. Parts lie from `segment` or, of maps that outlive launches, from `tables` on.
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
            Fill::Cursor(map) => {
                let (part, base) = part(map);
                base + part.cursor
            }
            Fill::Drops(map) => {
                let (part, base) = part(map);
                base + part.drops
            }
            Fill::Units(map) => part(map).0.units,
            Fill::Counts(map) => {
                let (part, base) = part(map);
                base + part.counts
            }
        };
        if let Some(word) = block.get_mut(slot.offset as usize / 8) {
            if slot.size == 8 {
                *word = value;
            } else {
                *word |= u64::from(value as u32) << (slot.offset % 8 * 8);
            }
        }
    }
}
