//! What one process of the program has of ours: the mode, the talk with the parent, the trace.
//!
//! All of it begins at the first good `cuInit` (or, should that be missed, at the first module load): a process that
//! never touches the driver costs a constructor of a few microseconds and no file. From then on exactly one of the
//! modes below holds; the launch path reads nothing else.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use nt_wire::message::Settings;

use crate::parent::Connection;
use crate::time::{self, Deadline};
use crate::trace::Trace;
use crate::{env, exit, notes, parent, quiet};

/// No driver call yet.
const IDLE: u8 = 0;
/// Somebody is in [`begin`].
const STARTING: u8 = 1;
/// Selected kernels are probed.
const ACTIVE: u8 = 2;
/// Launches are counted and pass through: no parent, another protocol, or a panic of ours.
const PASSIVE: u8 = 3;
/// The end was written: everything passes through.
const CLOSED: u8 = 4;
/// A child of `fork` whose parent had used the driver, which CUDA forbids to use further: nothing here is ours.
const FORKED: u8 = 5;

static MODE: AtomicU8 = AtomicU8::new(IDLE);
/// The process that [`begin`] ran in; a child of `vfork` has another.
static PID: AtomicU32 = AtomicU32::new(0);
static PROCESS: OnceLock<Process> = OnceLock::new();

/// See the module.
pub(crate) struct Process {
    /// From the parent, or the defaults for a process without one.
    pub(crate) settings: Settings,
    /// `None` once it is lost.
    pub(crate) parent: Mutex<Option<Connection>>,
    /// `None` where no file could be made.
    pub(crate) trace: Mutex<Option<Trace>>,
}

/// Locks, whatever a panic elsewhere has left behind: after one nothing is probed any more, and counts are still worth
/// having.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, for places that may interrupt who holds it: `None` once the deadline has passed.
pub(crate) fn lock_until<T>(mutex: &Mutex<T>, deadline: Deadline) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if deadline.passed() => return None,
            Err(TryLockError::WouldBlock) => time::sleep(Duration::from_micros(100)),
        }
    }
}

/// Whether selected kernels are to be probed.
#[inline]
pub(crate) fn active() -> bool {
    MODE.load(Ordering::Relaxed) == ACTIVE
}

/// Turns the hook passive for the rest of the process.
pub(crate) fn give_up() {
    let _ = MODE.compare_exchange(ACTIVE, PASSIVE, Ordering::AcqRel, Ordering::Relaxed);
}

/// Ends the process's trace; true for the one caller that may write the last frames: in the process that began it, once.
pub(crate) fn close() -> bool {
    let ours = PID.load(Ordering::Acquire) == std::process::id();
    ours && [ACTIVE, PASSIVE]
        .iter()
        .any(|&mode| MODE.compare_exchange(mode, CLOSED, Ordering::AcqRel, Ordering::Relaxed).is_ok())
}

/// What began, if it did.
pub(crate) fn get() -> Option<&'static Process> {
    if MODE.load(Ordering::Acquire) == FORKED { None } else { PROCESS.get() }
}

/// Begins, at the first call; others wait until that is done. Costs a load afterwards.
pub(crate) fn start() -> Option<&'static Process> {
    if MODE.load(Ordering::Acquire) >= CLOSED || !env::wanted() {
        return None;
    }
    Some(PROCESS.get_or_init(begin))
}

fn begin() -> Process {
    MODE.store(STARTING, Ordering::Release);
    PID.store(std::process::id(), Ordering::Release);
    quiet::silence_panics();
    let (connection, settings) = match parent::greet() {
        Ok((connection, settings)) => (Some(connection), settings),
        Err(reason) => {
            notes::say(reason);
            (None, Settings::default())
        }
    };
    let trace =
        Trace::create().map_err(|error| notes::say(format!("no trace file could be made: {error}"))).ok();
    exit::register();
    let mode = if connection.is_some() && trace.is_some() { ACTIVE } else { PASSIVE };
    MODE.store(mode, Ordering::Release);
    Process { settings, parent: Mutex::new(connection), trace: Mutex::new(trace) }
}

/// In a child of `fork`, before it returns: no lock may be taken here, since another thread may have held it.
extern "C" fn forked() {
    if MODE.load(Ordering::Acquire) != IDLE {
        MODE.store(FORKED, Ordering::Release);
    }
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> std::ffi::c_int;
}

/// The library's constructor.
extern "C" fn construct() {
    env::learn();
    // SAFETY: `forked` stays, since this library is never unloaded.
    unsafe { pthread_atfork(None, None, Some(forked)) };
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCT: extern "C" fn() = construct;
#[cfg(test)]
const _: extern "C" fn() = construct;
