//! A counter that costs the thread that uses it most next to nothing, and is exact all the same.
//!
//! A locked addition takes 5 ns, as much as all else that an unselected launch may cost. Most kernels are launched by one
//! thread: the first to count becomes the owner of a part that only it writes, without a lock; all others share another
//! part. A thread is known by its thread pointer. When an owner has ended, a thread that is given its pointer later
//! inherits the part.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// See the module.
pub(crate) struct Tally {
    /// A thread pointer; 0 before the first count.
    owner: AtomicUsize,
    owners: AtomicU64,
    others: AtomicU64,
}

impl Tally {
    /// Zero.
    pub(crate) const fn new() -> Self {
        Tally { owner: AtomicUsize::new(0), owners: AtomicU64::new(0), others: AtomicU64::new(0) }
    }

    /// Once more.
    #[inline(always)]
    pub(crate) fn count(&self) {
        if !self.count_by_owner() {
            self.count_for_others(thread_pointer());
        }
    }

    /// Once more, if the calling thread is the owner.
    #[inline(always)]
    pub(crate) fn count_by_owner(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed) == thread_pointer();
        if owner {
            self.owners.store(self.owners.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        owner
    }

    #[inline(never)]
    fn count_for_others(&self, me: usize) {
        match self.owner.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => self.owners.store(1, Ordering::Relaxed),
            Err(_) => _ = self.others.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// How often so far.
    pub(crate) fn get(&self) -> u64 {
        self.owners.load(Ordering::Relaxed) + self.others.load(Ordering::Relaxed)
    }
}

/// Differs between threads that live at the same time, and is never 0.
#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the psABI keeps the thread pointer at its own first word.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_threads() {
        static TALLY: Tally = Tally::new();
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| (0..10_000).for_each(|_| TALLY.count()));
                }
            });
        }
        (0..5).for_each(|_| TALLY.count());
        assert_eq!(TALLY.get(), 3 * 4 * 10_000 + 5);
    }
}
