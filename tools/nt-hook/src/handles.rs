//! Handle → what we know of it: open addressing, reads without a lock.
//!
//! A read, which every launch makes, is a multiplication and one or two loads of a cache line. Tables are fixed in size
//! (untouched pages cost nothing); what finds no room is not probed, and counted. A cell once used can be used again by
//! a key whose search passes it; so the bound is on different handles, and drivers give theirs anew.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process::lock;

/// A table of `N` cells, a power of two.
pub(crate) struct Table<const N: usize> {
    cells: [Cell; N],
    /// Held by writers; how many cells have ever been taken.
    taken: Mutex<usize>,
}

#[repr(align(16))]
struct Cell {
    /// 0: never used. A cell once used keeps a key, so that a search does not end at it.
    key: AtomicUsize,
    /// 0: the key was taken out.
    value: AtomicUsize,
}

impl<const N: usize> Table<N> {
    /// Without entries.
    pub(crate) const fn new() -> Self {
        assert!(N.is_power_of_two());
        let cells = [const { Cell { key: AtomicUsize::new(0), value: AtomicUsize::new(0) } }; N];
        Table { cells, taken: Mutex::new(0) }
    }

    /// The cells in which a key may be, in the order to search them. Indices are masked, so they are in bounds.
    #[inline(always)]
    fn path(&self, key: usize) -> impl Iterator<Item = &Cell> {
        let start = Self::start(key);
        (start..start + N).map(|i| &self.cells[i & (N - 1)])
    }

    /// The first of them.
    #[inline(always)]
    fn start(key: usize) -> usize {
        let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - N.trailing_zeros());
        hash as usize & (N - 1)
    }

    /// What was put there under `key`; 0 for nothing.
    #[inline(always)]
    pub(crate) fn get(&self, key: usize) -> usize {
        for cell in self.path(key) {
            match cell.key.load(Ordering::Acquire) {
                found if found == key => return cell.value.load(Ordering::Acquire),
                0 => return 0,
                _ => {}
            }
        }
        0
    }

    /// The same, if it is where the search begins, as nearly all are; else 0.
    #[inline(always)]
    pub(crate) fn get_at_once(&self, key: usize) -> usize {
        let cell = &self.cells[Self::start(key)];
        if cell.key.load(Ordering::Acquire) == key { cell.value.load(Ordering::Acquire) } else { 0 }
    }

    /// Puts `value`, not 0, under `key`, not 0. False: the table is full.
    pub(crate) fn put(&self, key: usize, value: usize) -> bool {
        let mut taken = lock(&self.taken);
        let mut free = None;
        for cell in self.path(key) {
            match cell.key.load(Ordering::Relaxed) {
                found if found == key => {
                    cell.value.store(value, Ordering::Release);
                    return true;
                }
                // At three quarters searches grow long.
                0 if free.is_none() && *taken >= N / 4 * 3 => return false,
                0 => {
                    let cell = free.unwrap_or_else(|| {
                        *taken += 1;
                        cell
                    });
                    // A reader that sees the key before the value reads 0: an unknown handle. It cannot be one of the
                    // program's, which gets this handle from us when we are done.
                    cell.key.store(key, Ordering::Release);
                    cell.value.store(value, Ordering::Release);
                    return true;
                }
                _ if free.is_none() && cell.value.load(Ordering::Relaxed) == 0 => free = Some(cell),
                _ => {}
            }
        }
        false
    }

    /// Every key with its value. Nobody else writes meanwhile.
    pub(crate) fn each(&self, mut each: impl FnMut(usize, usize)) {
        let taken = lock(&self.taken);
        if *taken == 0 {
            return;
        }
        for cell in &self.cells {
            let (key, value) = (cell.key.load(Ordering::Relaxed), cell.value.load(Ordering::Relaxed));
            if value != 0 {
                each(key, value);
            }
        }
    }

    /// Takes it out and returns it; 0 for nothing.
    pub(crate) fn take(&self, key: usize) -> usize {
        let _writer = lock(&self.taken);
        let cell = self.path(key).take_while(|cell| cell.key.load(Ordering::Relaxed) != 0);
        let mut cell = cell.filter(|cell| cell.key.load(Ordering::Relaxed) == key);
        cell.next().map_or(0, |cell| cell.value.swap(0, Ordering::AcqRel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_found() {
        static TABLE: Table<64> = Table::new();
        for key in 1..=40 {
            assert!(TABLE.put(key * 16, key));
        }
        for key in 1..=40 {
            assert_eq!(TABLE.get(key * 16), key);
            assert!([0, key].contains(&TABLE.get_at_once(key * 16)));
        }
        assert_eq!(TABLE.get(41 * 16), 0);
        assert!((1..=40).filter(|key| TABLE.get_at_once(key * 16) != 0).count() > 10);
        assert_eq!(TABLE.take(3 * 16), 3);
        assert_eq!(TABLE.take(3 * 16), 0);
        assert_eq!(TABLE.get(3 * 16), 0);
        assert_eq!(TABLE.get(4 * 16), 4);
        let mut sum = 0;
        TABLE.each(|key, value| sum += key + value);
        assert_eq!(sum, 17 * ((1..=40).sum::<usize>() - 3));
    }

    #[test]
    fn a_full_table_says_so_and_still_answers() {
        static TABLE: Table<16> = Table::new();
        let kept = (1..=100).filter(|&key| TABLE.put(key, key)).count();
        assert_eq!(kept, 12);
        assert_eq!(TABLE.get(99), 0);
        assert_eq!(TABLE.get(12), 12);
    }

    #[test]
    fn cells_are_used_again() {
        static TABLE: Table<16> = Table::new();
        // As with a driver that loads and unloads: addresses come back under other meanings.
        for i in 1..1000 {
            let key = i % 12 + 1;
            assert!(TABLE.put(key, i), "{i}");
            assert_eq!(TABLE.get(key), i);
            assert_eq!(TABLE.take(key), i);
        }
    }
}
