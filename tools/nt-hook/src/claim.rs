//! Which stream a home with copied constants is for.
//!
//! The first stream that has to copy them claims the home, and no other uses it from then on ([`crate::tie`] says why).
//! When the program destroys the stream, an event is recorded behind all that is in it; once that is over, the next
//! stream may have the home. Nobody ever waits for it: a home that is not free yet is passed over.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Opaque;
use crate::driver::{Driver, PER_THREAD};
use crate::stage::{Failure, check};
use crate::tally::thread_pointer;

/// No stream has claimed it yet.
const NOBODY: usize = 0;
/// Its stream is destroyed. No stream has this for a key.
const RELEASED: usize = PER_THREAD;

/// See the module.
pub(crate) struct Claim {
    /// [`key`], or one of the two above.
    stream: AtomicUsize,
    /// Recorded behind all of a stream that has released it; null where there is nothing to claim.
    over: Opaque,
}

/// What tells streams apart: the default stream of a thread by the thread, whose pointers are even.
#[inline]
fn key(stream: Opaque) -> usize {
    if stream as usize == PER_THREAD { thread_pointer() | 1 } else { stream as usize }
}

impl Claim {
    /// Of a home without constants, which is for all streams.
    pub(crate) fn none() -> Claim {
        Claim { stream: AtomicUsize::new(NOBODY), over: std::ptr::null_mut() }
    }

    /// Of one in the current context.
    pub(crate) fn new(driver: &Driver) -> Result<Claim, Failure> {
        const DISABLE_TIMING: c_uint = 2;
        let mut over = std::ptr::null_mut();
        // SAFETY: writes one handle.
        check("cuEventCreate", unsafe { (driver.cuEventCreate)(&raw mut over, DISABLE_TIMING) })?;
        Ok(Claim { over, ..Claim::none() })
    }

    /// Whether it is that stream's, now or already.
    #[inline]
    pub(crate) fn is_for(&self, stream: Opaque) -> bool {
        let key = key(stream);
        match self.stream.load(Ordering::Acquire) {
            NOBODY => {
                let claimed = self.stream.compare_exchange(NOBODY, key, Ordering::AcqRel, Ordering::Acquire);
                claimed.is_ok() || claimed == Err(key)
            }
            other => other == key,
        }
    }

    /// Before a stream is destroyed, which is not being captured: if it is that stream's, it is nobody's soon.
    pub(crate) fn release(&self, stream: Opaque, driver: &Driver) {
        if self.stream.load(Ordering::Acquire) != stream as usize {
            return;
        }
        // SAFETY: our own event, and the program's stream.
        if unsafe { (driver.cuEventRecord)(self.over, stream) } == 0 {
            self.stream.store(RELEASED, Ordering::Release);
        }
    }

    /// Gives it to a stream, if another has released it and all that was in that is over.
    pub(crate) fn hand_over(&self, stream: Opaque, driver: &Driver) -> bool {
        if self.stream.load(Ordering::Acquire) != RELEASED {
            return false;
        }
        // SAFETY: our own event.
        let over = unsafe { (driver.cuEventQuery)(self.over) } == 0;
        let take = || {
            self.stream.compare_exchange(RELEASED, key(stream), Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        over && take()
    }
}
