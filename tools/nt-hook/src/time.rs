//! Clocks, and waiting without libc's cancellation points.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Nanoseconds of a clock of `clock_gettime`.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// CLOCK_MONOTONIC, in which all times of a trace are.
pub(crate) fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// A point in time after which a wait is given up.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(u64);

impl Deadline {
    /// So many milliseconds from now.
    pub(crate) fn after_ms(ms: u32) -> Self {
        Deadline(now_ns().saturating_add(u64::from(ms) * 1_000_000))
    }

    /// Whether it has passed.
    pub(crate) fn passed(self) -> bool {
        now_ns() >= self.0
    }

    /// Milliseconds left, for `poll`.
    pub(crate) fn left_ms(self) -> libc::c_int {
        libc::c_int::try_from(self.0.saturating_sub(now_ns()).div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX)
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos()),
    }
}

/// Sleeps; a signal may end it early.
pub(crate) fn sleep(time: Duration) {
    let time = timespec(time);
    // SAFETY: reads one timespec; a raw system call is no cancellation point.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null_mut::<libc::timespec>()) };
}

/// Sleeps until [`wake`], while `word` holds `value`.
pub(crate) fn wait(word: &AtomicU32, value: u32, time: Duration) {
    let time = timespec(time);
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads the word and one timespec.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, value, &raw const time) };
}

/// Wakes who sleeps on `word`.
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the word's address as a name.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX)
    };
}
