//! Handing out parts of a ring of device memory to launches, in the order of the launches.
//!
//! Two numbers run on for ever: `head`, up to where the ring was handed out, and `free`, up to where it has come back.
//! Each packs a position (in units of 4 KiB) and a count of segments into one word, so that handing out is one
//! compare-and-swap and no lock. A segment is contiguous: where it would reach over the ring's end it begins at the
//! start instead, and the rest is skipped; so that it always fits in the end, it has at most half of the ring. Segments
//! come back in the order in which they were handed out.
//!
//! ```text
//! 0        free ............ head             size
//! |  ready |  used, launches  |  ready         |
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

/// Segments are multiples of this many bytes.
pub(crate) const UNIT: u64 = 4096;

/// How many segments may be out at a time.
pub(crate) const SLOTS: u64 = 512;

const COUNT_BITS: u32 = 24;
const POSITION_BITS: u32 = 64 - COUNT_BITS;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;
/// In `head`: nothing is handed out any more. Of 2^64 values the one that a running ring is taken not to meet.
const CLOSED: u64 = u64::MAX;

/// The state of a ring.
pub(crate) struct Ring {
    /// In units; a power of two, so that positions may wrap.
    size: u64,
    head: AtomicU64,
    free: AtomicU64,
}

/// A part that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Segment {
    /// Which of the [`SLOTS`].
    pub(crate) slot: usize,
    /// Its first byte, from the ring's start.
    pub(crate) offset: u64,
    /// Its bytes, a multiple of [`UNIT`].
    pub(crate) len: u64,
    /// Whether with it more than half of the ring is out, and without it was not: a reason to fetch, once.
    pub(crate) crowded: bool,
    /// What [`Ring::give_back`] puts into `free`.
    end: u64,
}

/// The part of a ring that is in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    /// The slot of the oldest segment.
    pub(crate) oldest: usize,
    /// How many segments.
    pub(crate) count: usize,
    /// From the first byte to the last, skipped ones included.
    pub(crate) bytes: u64,
}

/// Why none was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not now.
    Full,
    /// Never.
    TooLarge,
    /// No more.
    Closed,
}

impl Ring {
    /// A ring of `bytes`, rounded down to a power of two of units.
    pub(crate) fn new(bytes: u64) -> Self {
        let units = (bytes / UNIT).max(2);
        Ring { size: 1 << units.ilog2(), head: AtomicU64::new(0), free: AtomicU64::new(0) }
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.size * UNIT
    }

    /// Hands out `bytes`, at least a unit.
    pub(crate) fn take(&self, bytes: u64) -> Result<Segment, Refusal> {
        let need = bytes.div_ceil(UNIT).max(1);
        if need > self.size / 2 {
            return Err(Refusal::TooLarge);
        }
        loop {
            // `free` first: it never passes `head`, so a stale one only makes the ring seem fuller.
            let free = self.free.load(Ordering::Acquire);
            let head = self.head.load(Ordering::Acquire);
            if head == CLOSED {
                return Err(Refusal::Closed);
            }
            let (position, count) = (head >> COUNT_BITS, head & COUNT_MASK);
            let rest = self.size - position % self.size;
            let start = if need <= rest { position } else { position + rest };
            let out = (start + need).wrapping_sub(free >> COUNT_BITS) & POSITION_MASK;
            let slots = (count + 1).wrapping_sub(free & COUNT_MASK) & COUNT_MASK;
            if out > self.size || slots > SLOTS {
                // Unless it moved meanwhile.
                if self.head.load(Ordering::Acquire) == head {
                    return Err(Refusal::Full);
                }
                continue;
            }
            let end = ((start + need) & POSITION_MASK) << COUNT_BITS | (count + 1) & COUNT_MASK;
            if self.head.compare_exchange_weak(head, end, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                let slot = (count % SLOTS) as usize;
                let half = self.size / 2;
                let before = position.wrapping_sub(free >> COUNT_BITS) & POSITION_MASK;
                let crowded = (out > half && before <= half) || slots == SLOTS / 2 + 1;
                return Ok(Segment {
                    slot,
                    offset: start % self.size * UNIT,
                    len: need * UNIT,
                    crowded,
                    end,
                });
            }
        }
    }

    /// The largest segment that it hands out.
    pub(crate) fn most(&self) -> u64 {
        self.bytes() / 2
    }

    /// Takes back the oldest segment that is out.
    pub(crate) fn give_back(&self, segment: Segment) {
        self.free.store(segment.end, Ordering::Release);
    }

    /// What is out.
    pub(crate) fn out(&self) -> Out {
        let free = self.free.load(Ordering::Acquire);
        let head = self.head.load(Ordering::Acquire);
        if head == CLOSED {
            return Out { oldest: 0, count: 0, bytes: 0 };
        }
        Out {
            oldest: ((free & COUNT_MASK) % SLOTS) as usize,
            count: ((head & COUNT_MASK).wrapping_sub(free & COUNT_MASK) & COUNT_MASK) as usize,
            bytes: ((head >> COUNT_BITS).wrapping_sub(free >> COUNT_BITS) & POSITION_MASK) * UNIT,
        }
    }

    /// Ends it, unless a segment is out: from then on none is handed out.
    pub(crate) fn close(&self) -> bool {
        let free = self.free.load(Ordering::Acquire);
        let closed = self.head.compare_exchange(free, CLOSED, Ordering::AcqRel, Ordering::Relaxed);
        closed.is_ok() || closed == Err(CLOSED)
    }

    /// Changes whenever a segment comes back.
    pub(crate) fn progress(&self) -> u64 {
        self.free.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn segments_do_not_overlap_and_lie_inside() {
        let ring = Ring::new(64 * UNIT + 17);
        assert_eq!(ring.bytes(), 64 * UNIT);
        let (mut out, mut seed) = (VecDeque::<Segment>::new(), 1u64);
        for _ in 0..200_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if seed >> 63 == 0 {
                if let Ok(segment) = ring.take(seed >> 40 & 0xffff) {
                    assert!(segment.offset + segment.len <= ring.bytes());
                    for other in &out {
                        let apart = segment.offset + segment.len <= other.offset
                            || other.offset + other.len <= segment.offset;
                        assert!(apart, "{segment:?} {other:?}");
                        assert_ne!(segment.slot, other.slot);
                    }
                    out.push_back(segment);
                }
            } else if let Some(segment) = out.pop_front() {
                ring.give_back(segment);
            }
            assert_eq!(ring.out().count, out.len());
        }
    }

    #[test]
    fn positions_and_counts_wrap() {
        let ring = Ring::new(4 * UNIT);
        let near = (POSITION_MASK - 1) << COUNT_BITS | (COUNT_MASK - 1);
        ring.head.store(near, Ordering::Relaxed);
        ring.free.store(near, Ordering::Relaxed);
        for i in 0..10 {
            let segment = ring.take(2 * UNIT).unwrap();
            assert_eq!(segment.offset, if i % 2 == 0 { 2 * UNIT } else { 0 });
            assert_eq!(ring.out().count, 1);
            ring.give_back(segment);
        }
    }

    #[test]
    fn what_can_never_fit_is_told_from_what_does_not_fit_now() {
        let ring = Ring::new(4 * UNIT);
        assert_eq!(ring.take(3 * UNIT), Err(Refusal::TooLarge));
        let (first, second) = (ring.take(2 * UNIT).unwrap(), ring.take(2 * UNIT).unwrap());
        assert_eq!(ring.take(1), Err(Refusal::Full));
        ring.give_back(first);
        assert!(!ring.close());
        ring.give_back(second);
        assert!(ring.close());
        assert_eq!(ring.take(1), Err(Refusal::Closed));
    }

    #[test]
    fn half_the_ring_always_fits_once_it_is_empty() {
        for before in 0..8 {
            let ring = Ring::new(8 * UNIT);
            for _ in 0..before {
                ring.give_back(ring.take(1).unwrap());
            }
            assert!(ring.take(4 * UNIT).is_ok(), "{before}");
        }
    }

    #[test]
    fn half_is_passed_once() {
        let ring = Ring::new(8 * UNIT);
        let crowded: Vec<bool> = (0..8).map(|_| ring.take(1).unwrap().crowded).collect();
        assert_eq!(crowded, [false, false, false, false, true, false, false, false]);
        let ring = Ring::new(1024 * UNIT);
        let crowded = (0..SLOTS).filter(|_| ring.take(1).unwrap().crowded).count();
        assert_eq!(crowded, 1);
    }

    #[test]
    fn no_more_slots_than_there_are() {
        let ring = Ring::new(1024 * UNIT);
        for _ in 0..SLOTS {
            ring.take(1).unwrap();
        }
        assert_eq!(ring.take(1), Err(Refusal::Full));
    }

    #[test]
    fn threads_get_different_slots() {
        let ring = Ring::new(512 * UNIT);
        let mut all: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..100).map(|_| ring.take(1).unwrap().slot).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        all.sort_unstable();
        assert_eq!(all, (0..400).collect::<Vec<_>>());
    }
}
