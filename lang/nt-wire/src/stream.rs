//! What a [data frame](crate::frame::Data) of a stream holds: a [`Head`], counts of drops, slots.
//!
//! A stream is slots of 16 bytes in chunks. Chunk number w belongs to lane 0 of warp w while w is less than the number of
//! units; the chunks behind are claimed by whoever's is full, through a cursor. A claimed chunk begins with its owner,
//! `warp · 32 + lane + 1`. A slot that was not written is zero. A warp that found no room counts what it lost in its
//! word of the drops.
//!
//! Long streams come in parts, a frame each, in order; parts begin and end between chunks:
//!
//! ```text
//! [head 64] [drops: u32 a unit, padded to 64; in the first part alone, and only if there may be any] [slots]
//! ```

use crate::codec::{Malformed, Reader, Writer};
use crate::frame::ALIGN;

/// Bytes of a slot.
pub const SLOT: u64 = 16;

/// The most slots that a stream may have: numbers of slots from here on mean that there is no room.
pub const MOST_SLOTS: u64 = 0xffff_0000;

/// Begins each part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// How many chunks the launch has asked for beyond the first of each unit; some may not have been there.
    pub claims: u64,
    /// Warps of the launch.
    pub units: u64,
    /// Slots that the stream had room for, a multiple of `chunk`.
    pub cap: u64,
    /// The number of the first slot in this part, a multiple of `chunk`.
    pub first_slot: u64,
    /// Slots in this part.
    pub slots: u64,
    /// Bytes of drops before the slots, padding apart: 0, or 4 a unit.
    pub drops_bytes: u64,
    /// Slots a chunk, a power of two.
    pub chunk: u32,
    /// Which part this is, from 0.
    pub part: u32,
    /// How many parts there are.
    pub parts: u32,
}

/// A part that was taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'b> {
    /// What it begins with.
    pub head: Head,
    /// A u32 a unit, or nothing.
    pub drops: &'b [u8],
    /// `head.slots` times [`SLOT`] bytes.
    pub slots: &'b [u8],
}

impl Head {
    /// Its bytes in a frame.
    pub const SIZE: usize = 64;

    /// How many slots may have been written: those of all chunks that were given out.
    pub fn used(units: u64, claims: u64, chunk: u32, cap: u64) -> u64 {
        units.saturating_add(claims).saturating_mul(u64::from(chunk)).min(cap)
    }

    /// Whether an event may have found no room: more chunks were asked for than there are.
    pub fn may_have_dropped(units: u64, claims: u64, chunk: u32, cap: u64) -> bool {
        units.saturating_add(claims).saturating_mul(u64::from(chunk)) > cap
    }

    /// Its bytes: claims, units, cap, first_slot, slots, drops_bytes u64; chunk, part, parts, zero u32.
    pub fn encode(self) -> [u8; Self::SIZE] {
        let mut w = Writer::new();
        for word in [self.claims, self.units, self.cap, self.first_slot, self.slots, self.drops_bytes] {
            w.u64(word);
        }
        for word in [self.chunk, self.part, self.parts, 0] {
            w.u32(word);
        }
        let mut bytes = [0; Self::SIZE];
        bytes.copy_from_slice(&w.bytes);
        bytes
    }

    /// Takes a part of a stream apart: `data` is what follows the fixed part of its frame.
    ///
    /// # Errors
    /// It is shorter or longer than it says, or its numbers do not fit each other.
    pub fn decode(data: &[u8]) -> Result<Part<'_>, Malformed> {
        let mut r = Reader::new(data);
        let head = Head {
            claims: r.u64()?,
            units: r.u64()?,
            cap: r.u64()?,
            first_slot: r.u64()?,
            slots: r.u64()?,
            drops_bytes: r.u64()?,
            chunk: r.u32()?,
            part: r.u32()?,
            parts: r.u32()?,
        };
        r.u32()?;
        let chunk = u64::from(head.chunk);
        let whole = |slots: u64| slots.is_multiple_of(chunk);
        let end = head.first_slot.checked_add(head.slots).ok_or(Malformed)?;
        let sound = head.chunk.is_power_of_two()
            && whole(head.cap)
            && whole(head.first_slot)
            && whole(head.slots)
            && end <= head.cap
            && head.part < head.parts
            && (head.drops_bytes == 0 || head.units.checked_mul(4) == Some(head.drops_bytes));
        if !sound {
            return Err(Malformed);
        }
        let drops = r.take(usize::try_from(head.drops_bytes).map_err(|_| Malformed)?)?;
        r.take(drops.len().next_multiple_of(ALIGN) - drops.len())?;
        let slots = r.rest();
        if head.slots.checked_mul(SLOT) == Some(slots.len() as u64) {
            Ok(Part { head, drops, slots })
        } else {
            Err(Malformed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_were_given_out_are_used() {
        assert_eq!(Head::used(10, 0, 4, 1000), 40);
        assert_eq!(Head::used(10, 3, 16, 1024), 208);
        assert_eq!(Head::used(10, 100, 16, 1024), 1024);
        assert_eq!(Head::used(u64::MAX, 1, 4, 1000), 1000);
        assert!(!Head::may_have_dropped(10, 54, 16, 1024));
        assert!(Head::may_have_dropped(10, 55, 16, 1024));
        assert!(Head::may_have_dropped(100, 0, 16, 1024));
        assert!(Head::may_have_dropped(1, u64::MAX, 4, MOST_SLOTS));
    }
}
