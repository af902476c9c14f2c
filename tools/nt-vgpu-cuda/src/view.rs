//! Device memory as a kernel sees it: allocations and registered host memory as they were when it began.
//!
//! Every access is looked up, so that one outside of all allocations is an error and no crash of the program. Ranges are
//! taken once a launch: freeing waits for the kernels of its context, and what is allocated later no kernel can know.
//! An access of 1, 2, 4 or 8 aligned bytes is one atomic access, as the device has it; larger ones are several.

use crate::memory;
use nt_vgpu::{Memory, Refused};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The memory that one thread's blocks see.
#[derive(Debug)]
pub(crate) struct View {
    /// Sorted by start.
    ranges: Arc<[Range<u64>]>,
    /// Where the last access was: the next one often is there too.
    last: AtomicUsize,
}

impl Clone for View {
    fn clone(&self) -> Self {
        View { ranges: Arc::clone(&self.ranges), last: AtomicUsize::new(0) }
    }
}

impl View {
    /// A view of some memory.
    ///
    /// # Safety
    /// The ranges are memory of this process that may be read and written, and stay so while the view is used.
    pub(crate) unsafe fn new(mut ranges: Vec<Range<u64>>) -> View {
        ranges.sort_by_key(|range| range.start);
        View { ranges: ranges.into(), last: AtomicUsize::new(0) }
    }

    /// Of the device's memory as it is now.
    pub(crate) fn of_device() -> View {
        // SAFETY: live allocations, whose end waits for the kernels of their context, as that of a registration does. That
        // registered memory stays there until then is the program's word, as with the real driver.
        unsafe { View::new(memory::ranges()) }
    }

    /// Looks whether all bytes are ours.
    fn check(&self, address: u64, size: usize) -> Result<(), Refused> {
        let end = address.checked_add(size as u64).ok_or(Refused::Unmapped)?;
        let holds = |range: &Range<u64>| range.start <= address && end <= range.end;
        if self.ranges.get(self.last.load(Ordering::Relaxed)).is_some_and(holds) {
            return Ok(());
        }
        let index = self.ranges.partition_point(|range| range.start <= address).wrapping_sub(1);
        if !self.ranges.get(index).is_some_and(holds) {
            return Err(Refused::Unmapped);
        }
        self.last.store(index, Ordering::Relaxed);
        Ok(())
    }
}

/// How many of the next bytes are accessed in one go.
fn step(address: u64, rest: usize) -> usize {
    [8, 4, 2].into_iter().find(|&size| rest >= size && address.is_multiple_of(size as u64)).unwrap_or(1)
}

impl Memory for View {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Refused> {
        self.check(address, into.len())?;
        let (mut at, mut rest) = (address, into);
        while !rest.is_empty() {
            let (now, later) = rest.split_at_mut(step(at, rest.len()));
            // SAFETY: checked to be ours, and aligned to as many bytes as `now` has.
            unsafe {
                match now.len() {
                    8 => now.copy_from_slice(&word::<AtomicU64>(at).load(Ordering::Relaxed).to_le_bytes()),
                    4 => now.copy_from_slice(&word::<AtomicU32>(at).load(Ordering::Relaxed).to_le_bytes()),
                    2 => now.copy_from_slice(&word::<AtomicU16>(at).load(Ordering::Relaxed).to_le_bytes()),
                    _ => now.fill(word::<AtomicU8>(at).load(Ordering::Relaxed)),
                }
            }
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Refused> {
        self.check(address, from.len())?;
        let (mut at, mut rest) = (address, from);
        while let &[first, ..] = rest {
            let (now, later) = rest.split_at(step(at, rest.len()));
            // SAFETY: as in `read`.
            unsafe {
                match *now {
                    [a, b, c, d, e, f, g, h] => {
                        let value = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                        word::<AtomicU64>(at).store(value, Ordering::Relaxed);
                    }
                    [a, b, c, d] => {
                        word::<AtomicU32>(at).store(u32::from_le_bytes([a, b, c, d]), Ordering::Relaxed);
                    }
                    [a, b] => word::<AtomicU16>(at).store(u16::from_le_bytes([a, b]), Ordering::Relaxed),
                    _ => word::<AtomicU8>(at).store(first, Ordering::Relaxed),
                }
            }
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    fn update(&self, address: u64, size: usize, change: &dyn Fn(u64) -> u64) -> Result<u64, Refused> {
        self.check(address, size)?;
        if !address.is_multiple_of(size.max(1) as u64) {
            return Err(Refused::Unmapped);
        }
        const ORDER: (Ordering, Ordering) = (Ordering::AcqRel, Ordering::Acquire);
        // SAFETY: as in `read`; the alignment was seen just now.
        let old = unsafe {
            match size {
                8 => word::<AtomicU64>(address).fetch_update(ORDER.0, ORDER.1, |old| Some(change(old))),
                4 => word::<AtomicU32>(address)
                    .fetch_update(ORDER.0, ORDER.1, |old| Some(change(old.into()) as u32))
                    .map(u64::from)
                    .map_err(u64::from),
                2 => word::<AtomicU16>(address)
                    .fetch_update(ORDER.0, ORDER.1, |old| Some(change(old.into()) as u16))
                    .map(u64::from)
                    .map_err(u64::from),
                _ => return Err(Refused::Unmapped),
            }
        };
        // Every update is made, so that both are what was there.
        Ok(old.unwrap_or_else(|old| old))
    }
}

/// An atomic variable at an address.
///
/// # Safety
/// There is live memory at the address, aligned for `T`.
unsafe fn word<'a, T>(address: u64) -> &'a T {
    // SAFETY: the caller's word.
    unsafe { &*(address as *const T) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pieces of memory with something between them.
    fn check(test: impl Fn(&View, u64, u64)) {
        let (first, second) = (vec![0u64; 4], vec![0u64; 2]);
        let [a, b] = [&first[..], &second[..]].map(|memory| memory.as_ptr() as u64);
        // SAFETY: the vectors outlive the view.
        let view = unsafe { View::new(vec![b..b + 16, a..a + 32]) };
        test(&view, a, b);
        drop((first, second));
    }

    #[test]
    fn bytes_come_back_whatever_their_alignment() {
        check(|view, a, _| {
            let bytes: Vec<u8> = (1..=23).collect();
            view.write(a + 3, &bytes).unwrap();
            let mut back = [0; 23];
            view.read(a + 3, &mut back).unwrap();
            assert_eq!(back[..], bytes);
            let mut one = [7];
            view.read(a + 2, &mut one).unwrap();
            assert_eq!(one, [0]);
        });
    }

    #[test]
    fn outside_there_is_nothing() {
        check(|view, a, b| {
            let mut word = [0; 8];
            for address in [0, a - 1, a + 25, a + 32, b + 9, b + 16, u64::MAX - 3] {
                assert_eq!(view.read(address, &mut word), Err(Refused::Unmapped), "{address:#x}");
                assert_eq!(view.write(address, &word), Err(Refused::Unmapped), "{address:#x}");
            }
            assert_eq!(view.read(b + 8, &mut word), Ok(()));
            assert_eq!(view.read(a, &mut word), Ok(()));
        });
    }

    #[test]
    fn updates_touch_their_bytes_alone() {
        check(|view, a, _| {
            view.write(a, &[0xff; 8]).unwrap();
            assert_eq!(view.update(a + 4, 4, &|old| old.wrapping_add(1)), Ok(0xffff_ffff));
            assert_eq!(view.update(a + 2, 2, &|_| 0x1_2345), Ok(0xffff));
            let mut back = [0; 8];
            view.read(a, &mut back).unwrap();
            assert_eq!(back, [0xff, 0xff, 0x45, 0x23, 0, 0, 0, 0]);
            assert!(view.update(a + 30, 4, &|old| old).is_err());
        });
    }
}
