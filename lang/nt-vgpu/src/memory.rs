//! Device memory as a trait, and an arena that implements it without a line of unsafe code.
//!
//! Global and constant memory belong to whoever launches: a test, a front that speaks a driver's language. The
//! interpreter asks for bytes at addresses and is told when there are none. Alignment it checks itself.
//!
//! ```
//! use nt_vgpu::{Arena, Memory};
//! let mut arena = Arena::new();
//! let at = arena.allocate(100);
//! arena.write(at + 96, &7u32.to_le_bytes()).unwrap();
//! let mut word = [0; 4];
//! arena.read(at + 96, &mut word).unwrap();
//! assert_eq!(u32::from_le_bytes(word), 7);
//! assert!(arena.read(at + 100, &mut word).is_err());
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

/// Why memory was not accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Some of the bytes belong to no allocation.
    Unmapped,
    /// The bytes may be read only.
    ReadOnly,
}

/// Global memory as kernels see it. Shared between threads that run blocks side by side, so that single accesses of up
/// to 8 aligned bytes must not tear.
pub trait Memory: Sync {
    /// Reads as many bytes as `into` holds.
    ///
    /// # Errors
    /// If not all of them can be read.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Refused>;

    /// Writes all of `from`, or nothing.
    ///
    /// # Errors
    /// If not all of it can be written.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Refused>;

    /// Replaces the aligned 2, 4 or 8 bytes at `address` by what `change` makes of them, atomically, and gives what was
    /// there. `change` may be called several times.
    ///
    /// # Errors
    /// If they cannot be read and written.
    fn update(&self, address: u64, size: usize, change: &dyn Fn(u64) -> u64) -> Result<u64, Refused>;
}

/// Where the first allocation lies: far from 0, so that small integers are no addresses.
const FIRST: u64 = 0x7_0000_0000;

/// Allocations begin at multiples of this, as CUDA's do, and at least as much is left free between two.
const GRAIN: u64 = 256;

/// Memory in allocations with gaps between them, for tests and tools.
#[derive(Debug, Default)]
pub struct Arena {
    /// By address.
    allocations: Vec<Allocation>,
    next: u64,
}

#[derive(Debug)]
struct Allocation {
    start: u64,
    bytes: u64,
    words: Box<[AtomicU64]>,
}

impl Arena {
    /// Nothing allocated yet.
    pub fn new() -> Self {
        Arena { allocations: Vec::new(), next: FIRST }
    }

    /// Zeroed bytes; gives their address.
    pub fn allocate(&mut self, bytes: usize) -> u64 {
        let start = self.next;
        let words = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        let bytes = bytes as u64;
        self.next += (bytes / GRAIN + 2) * GRAIN;
        self.allocations.push(Allocation { start, bytes, words });
        start
    }

    /// Bytes with this content; gives their address.
    pub fn upload(&mut self, content: &[u8]) -> u64 {
        let at = self.allocate(content.len());
        if let Some(allocation) = self.allocations.last() {
            allocation.write(0, content);
        }
        at
    }

    /// A copy of the allocation that begins at `address`; empty if none does.
    pub fn download(&self, address: u64) -> Vec<u8> {
        let Some(allocation) = self.allocations.iter().find(|a| a.start == address) else {
            return Vec::new();
        };
        let words = allocation.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        words.take(allocation.bytes as usize).collect()
    }

    /// The allocation that holds `size` bytes at `address`, and where in it they begin.
    fn find(&self, address: u64, size: usize) -> Result<(&Allocation, u64), Refused> {
        let index = self.allocations.partition_point(|a| a.start <= address);
        let allocation =
            index.checked_sub(1).and_then(|i| self.allocations.get(i)).ok_or(Refused::Unmapped)?;
        let offset = address - allocation.start;
        let end = offset.checked_add(size as u64).ok_or(Refused::Unmapped)?;
        if end <= allocation.bytes { Ok((allocation, offset)) } else { Err(Refused::Unmapped) }
    }
}

impl Allocation {
    /// Writes bytes that lie inside.
    fn write(&self, offset: u64, from: &[u8]) {
        let mut rest = from;
        let mut at = offset;
        while !rest.is_empty() {
            let inside = (at % 8) as usize;
            let (now, later) = rest.split_at(rest.len().min(8 - inside));
            let mut bytes = [0; 8];
            let mut taken = [0; 8];
            bytes[inside..inside + now.len()].copy_from_slice(now);
            taken[inside..inside + now.len()].fill(0xff);
            let (value, taken) = (u64::from_le_bytes(bytes), u64::from_le_bytes(taken));
            // `find` saw that all bytes lie in the allocation.
            let word = &self.words[(at / 8) as usize];
            if taken == u64::MAX {
                word.store(value, Ordering::Relaxed);
            } else {
                change(word, &|old| old & !taken | value);
            }
            at += now.len() as u64;
            rest = later;
        }
    }
}

fn change(word: &AtomicU64, new: &dyn Fn(u64) -> u64) -> u64 {
    let mut old = word.load(Ordering::Relaxed);
    loop {
        match word.compare_exchange_weak(old, new(old), Ordering::AcqRel, Ordering::Relaxed) {
            Ok(before) => return before,
            Err(now) => old = now,
        }
    }
}

impl Memory for Arena {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Refused> {
        let (allocation, offset) = self.find(address, into.len())?;
        let mut at = offset;
        let mut rest = into;
        while !rest.is_empty() {
            let inside = (at % 8) as usize;
            let length = rest.len().min(8 - inside);
            let (now, later) = rest.split_at_mut(length);
            let word = allocation.words[(at / 8) as usize].load(Ordering::Relaxed).to_le_bytes();
            now.copy_from_slice(&word[inside..inside + length]);
            at += length as u64;
            rest = later;
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Refused> {
        let (allocation, offset) = self.find(address, from.len())?;
        allocation.write(offset, from);
        Ok(())
    }

    fn update(&self, address: u64, size: usize, new: &dyn Fn(u64) -> u64) -> Result<u64, Refused> {
        let (allocation, offset) = self.find(address, size)?;
        let shift = offset % 8 * 8;
        let mask = if size >= 8 { u64::MAX } else { ((1 << (size * 8)) - 1) << shift };
        let word = &allocation.words[(offset / 8) as usize];
        let old = change(word, &|old| old & !mask | (new((old & mask) >> shift) << shift) & mask);
        Ok((old & mask) >> shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        let mut arena = Arena::new();
        let a = arena.upload(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        let b = arena.allocate(0);
        assert_ne!(a, b);
        arena.write(a + 6, &[70, 80, 90]).unwrap();
        assert_eq!(arena.download(a), [1, 2, 3, 4, 5, 6, 70, 80, 90, 10, 11]);
        let mut bytes = [0; 5];
        arena.read(a + 5, &mut bytes).unwrap();
        assert_eq!(bytes, [6, 70, 80, 90, 10]);
        assert_eq!(arena.read(a + 7, &mut bytes), Err(Refused::Unmapped));
        assert_eq!(arena.write(a - 1, &[0]), Err(Refused::Unmapped));
        assert_eq!(arena.write(b, &[0]), Err(Refused::Unmapped));
        assert_eq!(arena.read(u64::MAX, &mut bytes), Err(Refused::Unmapped));
    }

    #[test]
    fn updates_touch_their_bytes_alone() {
        let mut arena = Arena::new();
        let a = arena.upload(&[0xff; 8]);
        assert_eq!(arena.update(a + 4, 4, &|old| old.wrapping_add(1)), Ok(0xffff_ffff));
        assert_eq!(arena.update(a + 2, 2, &|_| 0x1_2345), Ok(0xffff));
        assert_eq!(arena.download(a), [0xff, 0xff, 0x45, 0x23, 0, 0, 0, 0]);
    }
}
