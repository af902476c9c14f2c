//! The device memory that a context has for what probes save in a launch.
//!
//! A pool is one allocation a context, made at its first probed launch, in which a [`Ring`] hands out segments. It is
//! ours alone (not the program's allocator or its pools), cleared once, and each segment is cleared again behind its
//! copy, in our stream: a launch always finds zeros.

use std::cell::UnsafeCell;
use std::ffi::c_uint;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use nt_wire::frame;
use nt_wire::message::Settings;

use crate::context::Current;
use crate::driver::{Driver, Relaxed};
use crate::home::Home;
use crate::kernel::Kernel;
use crate::ring::{Ring, SLOTS, Segment};
use crate::twin::Twin;
use crate::{Code, Opaque, kernel};

/// More maps than this a kernel may not have.
pub(crate) const MAPS: usize = 16;

/// The most bytes that values of parameters take: what a kernel may have.
pub(crate) const VALUES: usize = 32_768;

/// The largest pool that is made without being asked for, unless launches are known to need more.
const LARGEST: u64 = 1 << 30;
/// Room for so many of them.
const LAUNCHES: u64 = 16;
/// The smallest that is worth having.
const SMALLEST: u64 = 1 << 20;

/// See the module.
pub(crate) struct Pool {
    /// Its device address.
    pub(crate) base: u64,
    /// What is handed out.
    pub(crate) ring: Ring,
    /// Our stream, which waits for nobody by itself.
    pub(crate) stream: Opaque,
    /// One a segment that is out.
    pub(crate) slots: Vec<Slot>,
    /// [`VALUES`] bytes a slot, of which those that are never written take no memory.
    values: *mut u8,
    /// After an error of the driver: no further launch is probed here.
    pub(crate) broken: AtomicBool,
    /// `Ring::progress` at the last wait in vain: until it changes nobody waits again.
    pub(crate) stuck: AtomicU64,
}

/// What the collector needs to know of a launch.
pub(crate) struct Slot {
    /// One of the three below.
    pub(crate) state: AtomicU32,
    /// Recorded behind the twin.
    pub(crate) event: Opaque,
    /// The launching thread's while the state is `FREE`, then the collector's.
    launch: UnsafeCell<Option<Launched>>,
}

/// Nobody's.
pub(crate) const FREE: u32 = 0;
/// A twin runs and its event is recorded.
pub(crate) const LAUNCHED: u32 = 1;
/// Handed out and not used: it is still clean.
pub(crate) const RETURNED: u32 = 2;

// SAFETY: `launch` has one owner at a time, as said there; `state` hands it over.
unsafe impl Sync for Slot {}
// SAFETY: a driver handle and plain data.
unsafe impl Send for Slot {}

/// A probed launch on its way to the trace.
#[derive(Clone)]
pub(crate) struct Launched {
    /// Of which kernel.
    pub(crate) kernel: &'static Kernel,
    /// With which layout.
    pub(crate) twin: &'static Twin,
    /// Where, if it also counts in tables.
    pub(crate) home: Option<&'static Home>,
    /// Its frame, the end's time still open.
    pub(crate) frame: frame::Launch,
    /// Where all of them lie.
    pub(crate) segment: Segment,
    /// In which order it stands: launches that agree in this ran one after the other.
    pub(crate) order: Order,
}

/// A stream's identity: handles are given anew after a destroy, and the per-thread stream is another in each thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// Its handle.
    pub(crate) stream: usize,
    /// The launching thread, by its thread pointer.
    pub(crate) thread: usize,
    /// How many streams had been destroyed then.
    pub(crate) epoch: u64,
}

// SAFETY: driver handles; `values` belong to whom their slots do.
unsafe impl Sync for Pool {}
// SAFETY: as above.
unsafe impl Send for Pool {}

impl Slot {
    /// Writes a launch down, before it is made.
    pub(crate) fn note(&self, launched: Launched) {
        // SAFETY: the calling thread took the segment and has not handed it over yet.
        unsafe { *self.launch.get() = Some(launched) };
    }

    /// What was written down; for the collector, once the state is no longer `FREE`.
    pub(crate) fn launched(&self) -> Option<Launched> {
        // SAFETY: the state has handed it over.
        unsafe { (*self.launch.get()).clone() }
    }
}

impl Pool {
    pub(crate) fn make(driver: &Driver, context: Opaque, settings: &Settings) -> Result<Pool, String> {
        const NON_BLOCKING: c_uint = 1;
        const DISABLE_TIMING: c_uint = 2;
        let check = |code: Code, what: &str| match code {
            0 => Ok(()),
            code => Err(format!("{what}: {}", kernel::code_text(code))),
        };

        let _relaxed = Relaxed::new(driver);
        let _current = Current::new(driver, context).ok_or("its context cannot be made current")?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two sizes.
        check(unsafe { (driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total) }, "cuMemGetInfo")?;
        let mut bytes = match settings.pool_bytes {
            0 => settings.launch_bytes.saturating_mul(LAUNCHES).max(LARGEST).min(free as u64 / 16),
            wanted => wanted,
        };
        bytes = bytes.max(SMALLEST);
        let (ring, base) = loop {
            let ring = Ring::new(bytes);
            let mut base = 0;
            // SAFETY: writes one address.
            match unsafe { (driver.cuMemAlloc_v2)(&raw mut base, ring.bytes() as usize) } {
                0 => break (ring, base),
                code if bytes <= SMALLEST => check(code, "cuMemAlloc")?,
                // The program has taken the rest: less is better than nothing.
                _ => bytes /= 4,
            }
        };
        let mut stream = std::ptr::null_mut();
        // SAFETY: writes one handle.
        check(unsafe { (driver.cuStreamCreate)(&raw mut stream, NON_BLOCKING) }, "cuStreamCreate")?;
        let mut slots = Vec::new();
        for _ in 0..SLOTS {
            let mut event = std::ptr::null_mut();
            // SAFETY: writes one handle.
            check(unsafe { (driver.cuEventCreate)(&raw mut event, DISABLE_TIMING) }, "cuEventCreate")?;
            slots.push(Slot { state: AtomicU32::new(FREE), event, launch: UnsafeCell::new(None) });
        }
        // The program's streams do not wait for ours, so this must be done before the first segment is used.
        // SAFETY: our own memory and stream.
        unsafe {
            check(
                (driver.cuMemsetD32Async)(base, 0, (ring.bytes() / 4) as usize, stream),
                "cuMemsetD32Async",
            )?;
            check((driver.cuStreamSynchronize)(stream), "cuStreamSynchronize")?;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory.
        let values =
            unsafe { libc::mmap(std::ptr::null_mut(), VALUES * SLOTS as usize, protection, flags, -1, 0) };
        if values == libc::MAP_FAILED {
            return Err("no memory for arguments".into());
        }
        let values = values.cast();
        let (broken, stuck) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
        Ok(Pool { base, ring, stream, slots, values, broken, stuck })
    }

    /// Where the values of a launch's arguments are kept; for the launching thread while the slot is `FREE`.
    #[allow(clippy::mut_from_ref, reason = "as a slot, it has one owner at a time")]
    pub(crate) fn values_to_keep(&self, slot: usize, len: usize) -> &mut [u8] {
        // SAFETY: a slot's own part; who has taken its segment is the only one to use it until the slot is handed over.
        unsafe { std::slice::from_raw_parts_mut(self.values_of(slot), len.min(VALUES)) }
    }

    /// What was kept there; for the collector, once the slot is no longer `FREE`.
    pub(crate) fn values(&self, slot: usize, len: usize) -> &[u8] {
        // SAFETY: as above, handed over.
        unsafe { std::slice::from_raw_parts(self.values_of(slot), len.min(VALUES)) }
    }

    fn values_of(&self, slot: usize) -> *mut u8 {
        self.values.wrapping_add(slot % SLOTS as usize * VALUES)
    }

    /// Gives everything back to the driver. Its context is current.
    pub(crate) fn release(&self, driver: &Driver) {
        // SAFETY: our own objects, which nothing uses any more: the ring is closed and all copies are done.
        unsafe {
            for slot in &self.slots {
                (driver.cuEventDestroy_v2)(slot.event);
            }
            (driver.cuStreamDestroy_v2)(self.stream);
            (driver.cuMemFree_v2)(self.base);
            libc::munmap(self.values.cast(), VALUES * SLOTS as usize);
        }
    }
}
