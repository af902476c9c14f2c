//! Blocks that are all resident at once may wait for each other: a probe must not take that from them.
//!
//! A grid that fits the device as a whole may be one whose blocks wait for one another (a grid barrier by hand). If with
//! the probe's registers it would no longer fit, it might wait for ever, so it runs as it is. How many blocks fit is
//! asked of the driver once for each shape of block and kept.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Opaque;
use crate::driver::Driver;

/// No multiprocessor holds more blocks.
const MOST: u64 = 32;

/// What the driver said of a twin and its original.
pub(crate) struct Known {
    /// Each for one shape of block; 0 for none. See [`pack`].
    shapes: [AtomicU64; 8],
}

/// Blocks a multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fitting {
    twin: u64,
    original: u64,
}

/// One word, so that it is read and written at once: 1, threads in 11 bits, shared memory in 20, two counts in 8 each.
/// `None` beyond what a launch can have.
fn pack(threads: u32, shared: u32, fitting: Fitting) -> Option<u64> {
    (threads < 1 << 11 && shared < 1 << 20 && fitting.twin < 1 << 8 && fitting.original < 1 << 8).then_some(
        1 << 63 | u64::from(threads) << 36 | u64::from(shared) << 16 | fitting.twin << 8 | fitting.original,
    )
}

impl Known {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Known { shapes: [const { AtomicU64::new(0) }; 8] }
    }

    /// An attribute has changed.
    pub(crate) fn forget(&self) {
        for shape in &self.shapes {
            shape.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the twin's grid is resident at once if the original's is. `None`: that does not matter, or the driver
    /// does not tell.
    pub(crate) fn stays_resident(
        &self,
        driver: &Driver,
        (twin, original): (Opaque, Opaque),
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        sms: u32,
    ) -> Option<bool> {
        let sms = u64::from(sms);
        let blocks = grid.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)))?;
        let threads = block.iter().try_fold(1u32, |n, &d| n.checked_mul(d))?;
        if blocks <= sms || blocks > MOST * sms {
            // A block a multiprocessor fits, if the twin can be launched at all.
            return None;
        }
        let key = pack(threads, shared, Fitting { twin: 0, original: 0 })?;
        let place = &self.shapes[(threads as usize / 32 + shared as usize / 1024) % self.shapes.len()];
        let kept = place.load(Ordering::Relaxed);
        let fitting = if kept & !0xffff == key {
            Fitting { twin: kept >> 8 & 0xff, original: kept & 0xff }
        } else {
            let ask = |function| ask(driver, function, threads, shared);
            let fitting = Fitting { twin: ask(twin)?, original: ask(original)? };
            place.store(pack(threads, shared, fitting).unwrap_or(0), Ordering::Relaxed);
            fitting
        };
        Some(blocks <= fitting.twin * sms || blocks > fitting.original * sms)
    }
}

fn ask(driver: &Driver, function: Opaque, threads: u32, shared: u32) -> Option<u64> {
    let (mut active, threads) = (0, c_int::try_from(threads).ok()?);
    // SAFETY: writes one int.
    let code = unsafe { driver.active_blocks?(&raw mut active, function, threads, shared as usize) };
    (code == 0).then(|| u64::from(active.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        let fitting = Fitting { twin: 32, original: 1 };
        let words: Vec<u64> = [(1024, 232_448), (1023, 232_448), (1024, 232_447), (1, 0)]
            .into_iter()
            .map(|(threads, shared)| pack(threads, shared, fitting).unwrap())
            .collect();
        for (i, word) in words.iter().enumerate() {
            assert_eq!((word >> 8 & 0xff, word & 0xff, word >> 63), (32, 1, 1));
            assert!(words.iter().skip(i + 1).all(|other| other & !0xffff != word & !0xffff));
        }
        assert_eq!(pack(2048, 0, fitting), None);
        assert_eq!(pack(1, 1 << 20, fitting), None);
    }
}
