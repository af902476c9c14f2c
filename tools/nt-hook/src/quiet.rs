//! Being a good guest on a thread that is not ours.
//!
//! Whatever the hook does beyond passing a call on runs inside [`guard`]: a panic is caught and turns the hook passive,
//! the thread cannot be cancelled in the middle (our waits are cancellation points, and an unwinding C thread must not
//! pass through Rust frames), and `errno` is afterwards what it was.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{notes, process};

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Runs `work` as described above; `None` after a panic.
pub(crate) fn guard<T>(work: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: the calling thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    let mut old = 0;
    // SAFETY: writes one int.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut old) };
    let done = catch_unwind(AssertUnwindSafe(work));
    // SAFETY: as above.
    unsafe {
        pthread_setcancelstate(old, std::ptr::null_mut());
        *libc::__errno_location() = errno;
    }
    if done.is_err() {
        process::give_up();
    }
    done.ok()
}

/// Takes over what a panic says: the default would print it on the program's stderr. Each library has its own copy of
/// Rust's standard library, so a program written in Rust keeps its own.
pub(crate) fn silence_panics() {
    std::panic::set_hook(Box::new(|info| notes::say(format!("the hook panicked: {info}"))));
}

/// Blocks every signal for the calling thread while it lives, so that no handler of the program runs in between and a
/// file that has grown too large gives an error instead of SIGXFSZ.
pub(crate) struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    /// Blocks them.
    pub(crate) fn new() -> Self {
        // SAFETY: plain data that the calls fill.
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: both sets are ours.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        }
        SignalsBlocked(old)
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the set that `new` read, and one of ours.
        unsafe {
            // What a write of ours has called up while it was blocked must not end the program now.
            if libc::sigismember(&raw const self.0, libc::SIGXFSZ) == 0 {
                let mut ours: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&raw mut ours);
                libc::sigaddset(&raw mut ours, libc::SIGXFSZ);
                libc::sigtimedwait(&raw const ours, std::ptr::null_mut(), &raw const now);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

/// In debug builds, panics where the tests ask for it (`NT_HOOK_PANIC=load`, say).
pub(crate) fn planned_panic(place: &str) {
    #[cfg(debug_assertions)]
    #[allow(clippy::panic, reason = "the tests' way to see a panic survived")]
    if std::env::var_os("NT_HOOK_PANIC").is_some_and(|planned| planned == place) {
        panic!("planned at {place}");
    }
    let _ = place;
}
