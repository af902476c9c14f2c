//! What kernels do where nothing is executed, as planned (`NT_VGPU_FAULT`): those whose last parameter has a name that
//! ends in `ctx`, a block of words.
//!
//! - `scribble`: its second word is an address and its third a count of 16-byte records there. The kernel looks whether
//!   all of them are zero (`dirty` in the log if not) and writes `0x6e74`, the launch's own number, into each. So a test
//!   sees that a probe's memory is its own, clean, and brought home whole.
//! - `add`: they are a count of cells of 8 bytes, and the kernel adds one to each.
//! - `events=N`: it holds a stream's words, `base@0:8 cap@8:4 units@12:4 cursor@16:8 drops@24:8`, with chunks of 4 slots.
//!   Lane 0 of unit u saves N·(u mod 3) events of one slot each, as a woven kernel would: the launch's number and 1, u,
//!   the event's number, `0x6e74`.
//!
//! And the log says of kernels that `look` what the constants of their module hold, and their second argument.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::plan::plan;
use crate::{log, memory};

/// Does what is planned.
pub(crate) fn planned(context: &[u8]) {
    if plan().add {
        add(context);
    }
    if plan().scribble {
        scribble(context);
    }
    if let Some(events) = plan().events {
        save(context, events);
    }
}

/// Of all effects, the next one's.
fn number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// The address and the count in a context block, if there is memory of `size` bytes each.
fn described(context: &[u8], size: usize) -> Option<(u64, usize)> {
    let word = |index: usize| {
        let bytes = context.get(8 * index..8 * index + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let (address, count) = (word(1), word(2) as usize);
    if memory::holds(address, count * size) {
        return Some((address, count));
    }
    log::line(|| format!("wild {} {address:#x} {count}", std::process::id()));
    None
}

/// See the module.
fn add(context: &[u8]) {
    let Some((address, count)) = described(context, 8) else { return };
    // SAFETY: inside an allocation, as was just seen, and aligned to 256.
    let cells = unsafe { std::slice::from_raw_parts_mut(address as *mut u64, count) };
    for cell in cells {
        *cell += 1;
    }
}

/// See the module.
fn scribble(context: &[u8]) {
    let Some((address, count)) = described(context, 16) else { return };
    // SAFETY: inside an allocation, as was just seen, and aligned to 256.
    let records = unsafe { std::slice::from_raw_parts_mut(address as *mut [u64; 2], count) };
    if records.iter().any(|record| *record != [0, 0]) {
        log::line(|| format!("dirty {} {address:#x}", std::process::id()));
    }
    records.fill([0x6e74, number()]);
}

/// Slots a chunk.
const CHUNK: u32 = 4;

/// See the module.
fn save(context: &[u8], events: u32) {
    let half = |at: usize| {
        let bytes = context.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
    let (base, cap, units, cursor, drops) = (word(0), half(8), half(12), word(16), word(24));
    let parts = [(base, cap as usize * 16), (cursor, 8), (drops, units as usize * 4)];
    if !parts.iter().all(|&(address, bytes)| bytes == 0 || memory::holds(address, bytes)) {
        log::line(|| format!("wild {} {parts:x?}", std::process::id()));
        return;
    }
    // SAFETY: inside allocations, as was just seen, and aligned to 64 at least.
    let (slots, cursor, drops) = unsafe {
        (
            std::slice::from_raw_parts_mut(base as *mut [u32; 4], cap as usize),
            &mut *(cursor as *mut u64),
            std::slice::from_raw_parts_mut(drops as *mut u32, units as usize),
        )
    };
    if *cursor != 0 || drops.iter().any(|&drops| drops != 0) || slots.iter().any(|slot| *slot != [0; 4]) {
        log::line(|| format!("dirty {} {base:#x}", std::process::id()));
    }
    let launch = number() as u32 + 1;
    for (unit, dropped) in (0..units).zip(drops) {
        let mut at = if (unit + 1) * CHUNK <= cap { unit * CHUNK + 1 } else { 0 };
        for event in 0..events * (unit % 3) {
            if at.is_multiple_of(CHUNK) {
                let chunk = u64::from(units) + *cursor;
                *cursor += 1;
                if (chunk + 1) * u64::from(CHUNK) <= u64::from(cap) {
                    at = chunk as u32 * CHUNK;
                    if let Some(slot) = slots.get_mut(at as usize) {
                        *slot = [unit * 32 + 1, 0, 0, 0];
                    }
                    at += 1;
                } else {
                    // All that is left to it finds no room.
                    *dropped += events * (unit % 3) - event;
                    break;
                }
            }
            if let Some(slot) = slots.get_mut(at as usize) {
                *slot = [launch, unit, event, 0x6e74];
            }
            at += 1;
        }
    }
}
