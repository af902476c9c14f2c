//! Streams of the program, and one of ours that stands behind them.
//!
//! A launch whose data is fetched with it has an event of its own. One of a kernel with nothing but tables, which are
//! fetched when a context, a module or the process ends, needs none: only *then* must be known that all such launches
//! are over. So the launch path just notes its stream, and what ends it makes our stream, [`Behind`], wait for it: an
//! event is recorded behind all that the program has asked of that stream, and ours waits for it. That happens
//!
//! - when tables are to be fetched, for every stream that was noted and still lives,
//! - before the program destroys a stream that was noted,
//! - behind each launch in a stream that cannot be named later: another thread's default one, or one too many.
//!
//! A stream that is being captured must not be asked for that: our stream would become part of the graph. It is tried
//! again later. For the legacy stream that means: while any stream is captured that it is ordered with.

use std::ffi::c_uint;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::context::{self, Context, Current};
use crate::driver::{Driver, LEGACY, PER_THREAD, Relaxed};
use crate::handles::Table;
use crate::load::hook;
use crate::process::lock;
use crate::quiet::guard;
use crate::stage::{Failure, check};
use crate::{Opaque, driver, home, process};

/// The program's streams in which twins were launched, until they are destroyed: their contexts.
static STREAMS: Table<4096> = Table::new();
/// Set in a value when a twin with tables was launched there; contexts are aligned to more.
const NOTED: usize = 1;

/// How many streams were destroyed.
pub(crate) static DESTROYED: AtomicU64 = AtomicU64::new(0);

/// Our stream behind the program's, in one context.
pub(crate) struct Behind {
    /// Waits for the program's.
    pub(crate) stream: Opaque,
    /// Recorded in one of them, waited for at once, then free again. Who does that holds the lock.
    event: Mutex<Opaque>,
    /// Whether the context's legacy stream was noted.
    legacy: AtomicBool,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for Behind {}
// SAFETY: as above.
unsafe impl Sync for Behind {}

impl Behind {
    /// A new one, in the current context.
    pub(crate) fn new(driver: &Driver) -> Result<Behind, Failure> {
        const NON_BLOCKING: c_uint = 1;
        const DISABLE_TIMING: c_uint = 2;
        let (mut stream, mut event) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: each writes one handle.
        unsafe {
            check("cuStreamCreate", (driver.cuStreamCreate)(&raw mut stream, NON_BLOCKING))?;
            check("cuEventCreate", (driver.cuEventCreate)(&raw mut event, DISABLE_TIMING))?;
        }
        Ok(Behind { stream, event: Mutex::new(event), legacy: AtomicBool::new(false) })
    }

    /// Notes that a twin with tables is about to be launched in a stream. False: it cannot be noted, and [`Self::stand`]
    /// is to be called behind the launch.
    #[inline]
    pub(crate) fn note(&self, context: &'static Context, stream: Opaque) -> bool {
        match stream as usize {
            LEGACY => {
                if !self.legacy.load(Ordering::Relaxed) {
                    self.legacy.store(true, Ordering::Release);
                }
                true
            }
            PER_THREAD => false,
            handle => {
                STREAMS.get(handle) & NOTED != 0
                    || STREAMS.put(handle, std::ptr::from_ref(context) as usize | NOTED)
            }
        }
    }

    /// Makes our stream wait for all that was asked of one of the program's, which is not being captured.
    pub(crate) fn stand(&self, driver: &Driver, stream: Opaque) -> Result<(), Failure> {
        let event = lock(&self.event);
        // SAFETY: our event and stream; a stream of the program's that lives.
        unsafe {
            check("cuEventRecord", (driver.cuEventRecord)(*event, stream))?;
            check("cuStreamWaitEvent", (driver.cuStreamWaitEvent)(self.stream, *event, 0))
        }
    }

    /// The same for every stream that was noted. False: one is being captured.
    pub(crate) fn stand_behind_all(&self, context: &Context, driver: &Driver) -> Result<bool, Failure> {
        let mut all = true;
        let mut done = Ok(());
        let mut each = |stream: usize| {
            let mut capturing = 0;
            // SAFETY: writes one int. An error: a capture that the legacy stream is ordered with.
            let code = unsafe { (driver.cuStreamIsCapturing)(stream as Opaque, &raw mut capturing) };
            if code != 0 || capturing != 0 {
                all = false;
            } else if done.is_ok() {
                done = self.stand(driver, stream as Opaque);
            }
        };
        if self.legacy.load(Ordering::Acquire) {
            each(LEGACY);
        }
        let noted = std::ptr::from_ref(context) as usize | NOTED;
        // The table is locked meanwhile, so no stream in it is destroyed.
        STREAMS.each(|stream, value| {
            if value == noted {
                each(stream);
            }
        });
        done.map(|()| all)
    }

    /// Gives everything back. Its context is current.
    pub(crate) fn release(&self, driver: &Driver) {
        // SAFETY: our own objects, which nothing uses any more.
        unsafe {
            (driver.cuEventDestroy_v2)(*lock(&self.event));
            (driver.cuStreamDestroy_v2)(self.stream);
        }
    }
}

/// The context of a stream, as the program's launch names it.
#[inline]
pub(crate) fn context_of(driver: &Driver, stream: Opaque) -> Option<&'static Context> {
    let special = stream as usize <= PER_THREAD;
    if !special {
        // SAFETY: 0, or a context's address from below; contexts are never freed.
        let known = unsafe { ((STREAMS.get(stream as usize) & !NOTED) as *const Context).as_ref() };
        if known.is_some() {
            return known;
        }
    }
    let mut handle = std::ptr::null_mut();
    // SAFETY: writes one pointer; the stream is the program's own argument.
    let code = unsafe {
        if special {
            (driver.cuCtxGetCurrent)(&raw mut handle)
        } else {
            (driver.cuStreamGetCtx)(stream, &raw mut handle)
        }
    };
    if code != 0 || handle.is_null() {
        return None;
    }
    let context = context::context(driver, handle)?;
    if !special {
        guard(|| STREAMS.put(stream as usize, std::ptr::from_ref(context) as usize));
    }
    Some(context)
}

/// A context is at its end, and its streams with it: their handles will be given out anew.
pub(crate) fn forget_streams(context: &Context) {
    let address = std::ptr::from_ref(context) as usize;
    let mut gone = Vec::new();
    STREAMS.each(|stream, value| {
        if value & !NOTED == address {
            gone.push(stream);
        }
    });
    for stream in gone {
        STREAMS.take(stream);
    }
}

/// A stream's destruction: what was launched in it still runs to its end, and our stream waits for that.
fn destroy(stream: Opaque, real: impl FnOnce() -> crate::Code) -> crate::Code {
    DESTROYED.fetch_add(1, Ordering::AcqRel);
    if process::get().is_none() {
        return real();
    }
    let value = STREAMS.take(stream as usize);
    if value & NOTED != 0 {
        guard(|| {
            // SAFETY: a context's address, as in `context_of`.
            let context = unsafe { ((value & !NOTED) as *const Context).as_ref() };
            let Some((context, driver)) = context.zip(driver::get()) else { return };
            let Some(behind) = context.made_behind() else { return };
            let _relaxed = Relaxed::new(driver);
            let _current = Current::new(driver, context.handle);
            let mut capturing = 0;
            // SAFETY: writes one int; the stream is the program's own argument.
            if unsafe { (driver.cuStreamIsCapturing)(stream, &raw mut capturing) } == 0 && capturing == 0 {
                home::release_stream(stream, driver);
                // If the driver refuses, it will refuse more than that.
                let _ = behind.stand(driver, stream);
            }
        });
    }
    let code = real();
    if code != 0 && value != 0 {
        STREAMS.put(stream as usize, value);
    }
    code
}

hook!(cuStreamDestroy(stream: Opaque), real => destroy(stream, real));
hook!(cuStreamDestroy_v2(stream: Opaque), real => destroy(stream, real));
