//! Contexts, and the device memory that each has for what probes save.
//!
//! A pool is one allocation a context, made at its first probed launch, in which a [`Ring`] hands out segments. It is
//! ours alone (not the program's allocator or its pools), cleared once, and each segment is cleared again behind its
//! copy, in our stream: a launch always finds zeros. A pool ends before its context does: the calls that may destroy one
//! let the collector fetch what is there first.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use nt_wire::frame;

use crate::driver::{Driver, Relaxed, device_attribute};
use crate::kernel::{Kernel, Twin};
use crate::load::hook;
use crate::process::{Process, lock};
use crate::quiet::guard;
use crate::ring::{Ring, SLOTS, Segment};
use crate::time::Deadline;
use crate::{Code, Opaque, collect, kernel, notes, process, time};

/// More maps than this a kernel may not have.
pub(crate) const MAPS: usize = 8;

/// The largest pool that is made without being asked for.
const LARGEST: u64 = 1 << 30;
/// The smallest that is worth having.
const SMALLEST: u64 = 1 << 20;

/// A context of the program.
pub(crate) struct Context {
    /// The driver's handle.
    pub(crate) handle: Opaque,
    /// Its device.
    pub(crate) device: Device,
    /// `None` if it could not be made.
    pool: OnceLock<Option<Pool>>,
    /// Set by the program's thread that is about to destroy it; the collector then fetches and ends the pool.
    pub(crate) retiring: AtomicBool,
    /// Set when the collector is done, or when nobody waits for it any longer.
    pub(crate) retired: AtomicBool,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for Context {}
// SAFETY: as above; the rest synchronises itself.
unsafe impl Sync for Context {}

/// What the trace says of a device.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    /// The driver's number for it.
    pub(crate) ordinal: c_int,
    /// Compute capability, 90 for 9.0.
    pub(crate) arch: u32,
    /// Multiprocessors.
    pub(crate) sms: u32,
    /// Highest SM clock.
    pub(crate) clock_khz: u32,
}

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
#[derive(Clone, Copy)]
pub(crate) struct Launched {
    /// Of which kernel.
    pub(crate) kernel: &'static Kernel,
    /// With which layout.
    pub(crate) twin: &'static Twin,
    /// Its frame, the end's time still open.
    pub(crate) frame: frame::Launch,
    /// One a map.
    pub(crate) parts: [Part; MAPS],
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
    /// How many streams had been destroyed.
    pub(crate) epoch: u64,
}

/// A map's part of a segment.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Bytes into the segment.
    pub(crate) offset: u64,
    /// Bytes of it.
    pub(crate) bytes: u64,
    /// Units that the launch has.
    pub(crate) units: u64,
    /// Units that it has room for.
    pub(crate) capacity: u64,
}

impl Slot {
    /// Writes a launch down, before it is made.
    pub(crate) fn note(&self, launched: Launched) {
        // SAFETY: the calling thread took the segment and has not handed it over yet.
        unsafe { *self.launch.get() = Some(launched) };
    }

    /// What was written down; for the collector, once the state is no longer `FREE`.
    pub(crate) fn launched(&self) -> Option<Launched> {
        // SAFETY: the state has handed it over.
        unsafe { *self.launch.get() }
    }
}

/// Contexts by handle. Entries are replaced, never freed: a launch may still hold one.
static CONTEXTS: [AtomicPtr<Context>; 64] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 64];
static MAKING: Mutex<()> = Mutex::new(());

/// How many streams were destroyed.
pub(crate) static STREAMS_DESTROYED: AtomicU64 = AtomicU64::new(0);

fn known(handle: Opaque) -> Option<&'static Context> {
    contexts().find(|context| context.handle == handle)
}

/// The contexts that probed launches ran in and that are not at their end.
pub(crate) fn contexts() -> impl Iterator<Item = &'static Context> {
    let all = CONTEXTS.iter().map_while(|entry| {
        // SAFETY: null, or leaked by `of_stream`.
        unsafe { entry.load(Ordering::Acquire).as_ref() }
    });
    all.filter(|context| !context.retired.load(Ordering::Acquire))
}

/// The context of a stream.
pub(crate) fn of_stream(driver: &Driver, stream: Opaque) -> Option<&'static Context> {
    let mut handle = std::ptr::null_mut();
    // SAFETY: writes one pointer; the stream is the program's own argument.
    if unsafe { (driver.cuStreamGetCtx)(stream, &raw mut handle) } != 0 || handle.is_null() {
        return None;
    }
    known(handle).or_else(|| guard(|| make(driver, handle)).flatten())
}

#[cold]
fn make(driver: &Driver, handle: Opaque) -> Option<&'static Context> {
    const SMS: c_int = 16;
    const CLOCK: c_int = 13;
    const MAJOR: c_int = 75;
    const MINOR: c_int = 76;

    let _making = lock(&MAKING);
    if let Some(context) = known(handle) {
        return Some(context);
    }
    let entry = CONTEXTS.iter().find(|entry| {
        // SAFETY: as in `contexts`.
        let context = unsafe { entry.load(Ordering::Acquire).as_ref() };
        context.is_none_or(|context| context.retired.load(Ordering::Acquire))
    });
    let Some(entry) = entry else {
        notes::say("more than 64 contexts: launches in the others were not probed".into());
        return None;
    };
    let mut ordinal = 0;
    let _current = Current::new(driver, handle)?;
    // SAFETY: writes one int.
    if unsafe { (driver.cuCtxGetDevice)(&raw mut ordinal) } != 0 {
        return None;
    }
    let device = Device {
        ordinal,
        arch: device_attribute(driver, MAJOR, ordinal) * 10 + device_attribute(driver, MINOR, ordinal),
        sms: device_attribute(driver, SMS, ordinal),
        clock_khz: device_attribute(driver, CLOCK, ordinal),
    };
    let context: &'static Context = Box::leak(Box::new(Context {
        handle,
        device,
        pool: OnceLock::new(),
        retiring: AtomicBool::new(false),
        retired: AtomicBool::new(false),
    }));
    entry.store(std::ptr::from_ref(context).cast_mut(), Ordering::Release);
    Some(context)
}

impl Context {
    /// Its pool, made at the first call.
    pub(crate) fn pool(&self, driver: &Driver, process: &'static Process) -> Option<&Pool> {
        if self.retiring.load(Ordering::Acquire) {
            return None;
        }
        if let Some(pool) = self.pool.get() {
            return pool.as_ref();
        }
        guard(|| {
            let pool = self.pool.get_or_init(|| {
                let pool = Pool::make(driver, self.handle, process.settings.pool_bytes);
                pool.map_err(|reason| notes::say(format!("no pool for probes could be made: {reason}"))).ok()
            });
            if pool.is_some() {
                collect::start(process);
            }
        })?;
        self.pool.get()?.as_ref()
    }

    /// Its pool, if it was made.
    pub(crate) fn made_pool(&self) -> Option<&Pool> {
        self.pool.get()?.as_ref()
    }
}

impl Pool {
    fn make(driver: &Driver, context: Opaque, wanted: u64) -> Result<Pool, String> {
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
        let mut bytes = if wanted == 0 { LARGEST.min(free as u64 / 16) } else { wanted }.max(SMALLEST);
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
        let (broken, stuck) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
        Ok(Pool { base, ring, stream, slots, broken, stuck })
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
        }
    }
}

/// Makes a context current on this thread while it lives.
pub(crate) struct Current<'d>(&'d Driver);

impl<'d> Current<'d> {
    /// `None` if the driver refuses.
    pub(crate) fn new(driver: &'d Driver, context: Opaque) -> Option<Self> {
        // SAFETY: a context that the driver has just named.
        (unsafe { (driver.cuCtxPushCurrent_v2)(context) } == 0).then_some(Current(driver))
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: writes one handle.
        unsafe { (self.0.cuCtxPopCurrent_v2)(&raw mut popped) };
    }
}

/// Before contexts may end: their pools are fetched and ended. Pools are made anew where the context lives on.
fn retire(which: impl Fn(&Context) -> bool) {
    guard(|| {
        let Some(process) = process::get() else { return };
        let deadline = Deadline::after_ms(process.settings.exit_ms.max(100));
        for context in contexts().filter(|context| which(context)) {
            context.retiring.store(true, Ordering::Release);
            collect::nudge();
            while context.made_pool().is_some()
                && collect::running()
                && !context.retired.load(Ordering::Acquire)
            {
                if deadline.passed() {
                    notes::say("a context ended before its last launches were collected".into());
                    break;
                }
                time::sleep(std::time::Duration::from_micros(100));
            }
            context.retired.store(true, Ordering::Release);
            kernel::forget_context(context.handle);
        }
    });
}

/// Before `cuDevicePrimaryCtx…`: the pools of that device, whichever context they are of.
fn retire_device(device: c_int) {
    retire(|context| context.device.ordinal == device);
}

macro_rules! endings {
    ($($name:ident($arg:ident: $ty:ty) $before:block)*) => {
        $(hook!($name($arg: $ty), real => {
            $before
            real()
        });)*
    };
}

endings! {
    cuCtxDestroy(context: Opaque) { retire(|known| known.handle == context); }
    cuCtxDestroy_v2(context: Opaque) { retire(|known| known.handle == context); }
    cuDevicePrimaryCtxRelease(device: c_int) { retire_device(device); }
    cuDevicePrimaryCtxRelease_v2(device: c_int) { retire_device(device); }
    cuDevicePrimaryCtxReset(device: c_int) { retire_device(device); }
    cuDevicePrimaryCtxReset_v2(device: c_int) { retire_device(device); }
    cuStreamDestroy(stream: Opaque) { STREAMS_DESTROYED.fetch_add(1, Ordering::AcqRel); }
    cuStreamDestroy_v2(stream: Opaque) { STREAMS_DESTROYED.fetch_add(1, Ordering::AcqRel); }
}
