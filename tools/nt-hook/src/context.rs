//! Contexts of the program: what of ours is in each, and their ends.
//!
//! What we have in a context ends before it does: the calls that may destroy one let the collector fetch what is there
//! first. Where the context lives on, because it was only released by one of its users, all is made anew.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::behind::{Behind, forget_streams};
use crate::driver::{Driver, device_attribute};
use crate::home::{self, Tables};
use crate::load::hook;
use crate::pool::Pool;
use crate::process::{Process, lock};
use crate::quiet::guard;
use crate::time::Deadline;
use crate::{Opaque, collect, kernel, notes, process, time};

/// A context of the program.
pub(crate) struct Context {
    /// The driver's handle.
    pub(crate) handle: Opaque,
    /// Its device.
    pub(crate) device: Device,
    /// `None` if it could not be made.
    pool: OnceLock<Option<Pool>>,
    /// Likewise.
    behind: OnceLock<Option<Behind>>,
    /// Buffers whose tables have ended, by address and size.
    spare: Mutex<Vec<(u64, u64)>>,
    /// Set by the program's thread that is about to destroy it; the collector then fetches and ends all that is ours.
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

/// Contexts by handle. Entries are replaced, never freed: a launch may still hold one.
static CONTEXTS: [AtomicPtr<Context>; 64] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 64];
static MAKING: Mutex<()> = Mutex::new(());

fn known(handle: Opaque) -> Option<&'static Context> {
    contexts().find(|context| context.handle == handle)
}

/// The contexts that probed launches ran in and that are not at their end.
pub(crate) fn contexts() -> impl Iterator<Item = &'static Context> {
    let all = CONTEXTS.iter().map_while(|entry| {
        // SAFETY: null, or leaked by `make`.
        unsafe { entry.load(Ordering::Acquire).as_ref() }
    });
    all.filter(|context| !context.retired.load(Ordering::Acquire))
}

/// The context of a handle that the driver has just named.
pub(crate) fn context(driver: &Driver, handle: Opaque) -> Option<&'static Context> {
    known(handle).or_else(|| guard(|| make(driver, handle)).flatten())
}

/// A device's compute capability, 90 for 9.0.
fn arch(driver: &Driver, device: c_int) -> u32 {
    const MAJOR: c_int = 75;
    const MINOR: c_int = 76;
    device_attribute(driver, MAJOR, device) * 10 + device_attribute(driver, MINOR, device)
}

/// Whether the process has devices of more than one compute capability.
pub(crate) fn has_several_architectures(driver: &Driver) -> bool {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| {
        let mut count = 0;
        // SAFETY: writes one int.
        let counted = unsafe { (driver.cuDeviceGetCount)(&raw mut count) } == 0;
        counted && (1..count).any(|device| arch(driver, device) != arch(driver, 0))
    })
}

#[cold]
fn make(driver: &Driver, handle: Opaque) -> Option<&'static Context> {
    const SMS: c_int = 16;
    const CLOCK: c_int = 13;

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
        arch: arch(driver, ordinal),
        sms: device_attribute(driver, SMS, ordinal),
        clock_khz: device_attribute(driver, CLOCK, ordinal),
    };
    let context: &'static Context = Box::leak(Box::new(Context {
        handle,
        device,
        pool: OnceLock::new(),
        behind: OnceLock::new(),
        spare: Mutex::new(Vec::new()),
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
                let pool = Pool::make(driver, self.handle, &process.settings);
                pool.map_err(|reason| notes::say(format!("no pool for probes could be made: {reason}"))).ok()
            });
            if pool.is_some() {
                collect::start(process);
            }
        })?;
        self.pool.get()?.as_ref()
    }

    /// Whether it is about to be destroyed.
    pub(crate) fn is_retiring(&self) -> bool {
        self.retiring.load(Ordering::Acquire)
    }

    /// Its pool, if it was made.
    pub(crate) fn made_pool(&self) -> Option<&Pool> {
        self.pool.get()?.as_ref()
    }

    /// Our stream behind the program's, made at the first call, for which the context is current.
    pub(crate) fn behind(&self, driver: &Driver) -> Option<&Behind> {
        let make = || {
            let behind = Behind::new(driver);
            behind.map_err(|failure| notes::say(format!("no tables could be made: {failure}"))).ok()
        };
        self.behind.get_or_init(make).as_ref()
    }

    /// The same, if it was made.
    pub(crate) fn made_behind(&self) -> Option<&Behind> {
        self.behind.get()?.as_ref()
    }

    /// Whether the collector has something to do here.
    pub(crate) fn is_used(&self) -> bool {
        self.made_pool().is_some() || self.made_behind().is_some()
    }

    /// A buffer that is free again, of that size.
    pub(crate) fn spare(&self, bytes: u64) -> Option<u64> {
        let mut spare = lock(&self.spare);
        let at = spare.iter().position(|&(_, size)| size == bytes)?;
        Some(spare.swap_remove(at).0)
    }

    /// Keeps a buffer for [`Self::spare`]. Giving it back to the driver would wait for all that runs.
    pub(crate) fn spare_back(&self, tables: Tables) {
        lock(&self.spare).push((tables.base, tables.bytes));
    }

    /// Gives everything back to the driver. It is current, and nothing of ours is in use.
    pub(crate) fn release(&self, driver: &Driver) {
        if let Some(pool) = self.made_pool() {
            pool.release(driver);
        }
        if let Some(behind) = self.made_behind() {
            behind.release(driver);
        }
        for (base, _) in lock(&self.spare).drain(..) {
            // SAFETY: our own buffer.
            unsafe { (driver.cuMemFree_v2)(base) };
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

/// Before contexts may end: what probes have saved there is fetched.
fn retire(which: impl Fn(&Context) -> bool) {
    guard(|| {
        let Some(process) = process::get() else { return };
        let patience = || Deadline::after_ms(process.settings.exit_ms.max(100));
        let (mut deadline, mut came_in) = (patience(), collect::came_in());
        for context in contexts().filter(|context| which(context)) {
            context.retiring.store(true, Ordering::Release);
            home::retire_context(context, kernel::twins().into_iter());
            while context.is_used() && collect::running() && !context.retired.load(Ordering::Acquire) {
                if deadline.passed() {
                    notes::say("a context ended before its last launches were collected".into());
                    break;
                }
                collect::nudge();
                time::sleep(Duration::from_micros(100));
                if came_in != collect::came_in() {
                    (deadline, came_in) = (patience(), collect::came_in());
                }
            }
            context.retired.store(true, Ordering::Release);
            forget_streams(context);
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
}
