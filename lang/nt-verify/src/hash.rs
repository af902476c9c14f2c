//! Hashing of short names, which the verifier does more than anything else.
//!
//! ```text
//! %nt_r12      two words of 8 bytes: two multiplications
//! ```
//!
//! The key is random, once a process: a text that wants all of its names in one bucket would have to know it. Nothing
//! that is told depends on the order of a table.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// A table by names.
pub(crate) type Table<K, V> = HashMap<K, V, Keyed>;

/// Makes hashers with the key of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed(u64);

impl Default for Keyed {
    fn default() -> Self {
        static KEY: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0_u8));
        Keyed(*KEY)
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded { state: self.0, key: self.0 | 1 }
    }
}

/// Folds each word in by a product of 128 bits, whose halves are put together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folded {
    state: u64,
    key: u64,
}

impl Folded {
    fn fold(&mut self, word: u64) {
        // The golden ratio's bits keep a zero from staying one.
        let product = u128::from(self.state ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(self.key);
        self.state = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.fold(u64::from_le_bytes(last) ^ (bytes.len() as u64).rotate_left(56));
    }

    fn write_u8(&mut self, byte: u8) {
        // Behind each text: its length is folded in already.
        self.state ^= u64::from(byte);
    }

    fn write_u32(&mut self, word: u32) {
        self.fold(u64::from(word));
    }

    fn finish(&self) -> u64 {
        let mut last = *self;
        last.fold(self.key.rotate_left(32));
        last.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as spans have them are spread over buckets as chance would: of 1024 in 1024 buckets about 647 are hit.
    #[test]
    fn names_are_spread() {
        let names = (0..1024).map(|n| format!("%nt_r{n}"));
        let buckets: std::collections::BTreeSet<u64> =
            names.map(|name| Keyed::default().hash_one(name.as_str()) % 1024).collect();
        assert!((550..750).contains(&buckets.len()), "{}", buckets.len());
    }

    #[test]
    fn what_differs_has_another_hash() {
        let hash = |text: &str| Keyed::default().hash_one(text);
        for pair in ["", "a", "\0", "\0\0", "a\0", "12345678", "12345678\0", "123456789"].windows(2) {
            assert_ne!(hash(pair[0]), hash(pair[1]), "{pair:?}");
        }
    }
}
