//! A machine that saves events into the memory of a stream, lane by lane, by the rules that woven kernels follow.

#![allow(dead_code, unreachable_pub, reason = "a module of several tests, each of which takes a part of it")]

use nt_wire::stream::Head;

/// What one save stores, and what a reader is to find.
pub struct Saved {
    pub warp: u64,
    pub mask: u32,
    pub code: u16,
    pub base: u64,
    pub at: u32,
    pub sections: Vec<Values>,
    pub addr: [u64; 32],
    pub bytes: [i64; 32],
    pub wide: [u64; 32],
}

/// A section of an event.
pub enum Values {
    Nothing,
    Stride(i32),
    /// By lane; those of the mask are stored, a word each.
    Words([u32; 32]),
    /// The same of 8 bytes each.
    Longs([u64; 32]),
}

/// Memory of one launch, and the registers of its lanes.
pub struct Device {
    chunk: u64,
    units: u64,
    cap: u64,
    claims: u64,
    slots: Vec<u8>,
    pub drops: Vec<u32>,
    /// The next slot of each lane.
    pos: Vec<u64>,
    /// Events that each lane has stored.
    stored: Vec<u64>,
}

const DEAD: u64 = 0xffff_0000;

impl Device {
    pub fn new(chunk: u64, units: u64, cap: u64) -> Device {
        let pos = (0..units * 32).map(|thread| {
            let (warp, lane) = (thread / 32, thread % 32);
            if lane == 0 && warp * chunk + chunk <= cap { warp * chunk + 1 } else { 0 }
        });
        Device {
            chunk,
            units,
            cap,
            claims: 0,
            slots: vec![0; cap as usize * 16],
            drops: vec![0; units as usize],
            pos: pos.collect(),
            stored: vec![0; units as usize * 32],
        }
    }

    /// Stores an event; the number of it in its lane's cursor, if there was room.
    pub fn save(&mut self, saved: &Saved) -> Option<u64> {
        let bytes = saved.encode();
        let n = bytes.len() as u64 / 16;
        let lane = u64::from(saved.mask.trailing_zeros());
        let thread = (saved.warp * 32 + lane) as usize;
        let k = self.pos[thread] % self.chunk;
        if k == 0 || n > 1 && k + n > self.chunk {
            if self.pos[thread] == DEAD {
                self.drops[saved.warp as usize] += 1;
                return None;
            }
            let f = self.units + self.claims;
            self.claims += 1;
            if (f + 1) * self.chunk <= self.cap {
                let owner = (saved.warp * 32 + lane + 1).to_le_bytes();
                self.slots[(f * self.chunk * 16) as usize..][..8].copy_from_slice(&owner);
                self.pos[thread] = f * self.chunk + 1;
            } else {
                self.pos[thread] = DEAD;
                self.drops[saved.warp as usize] += 1;
                return None;
            }
        }
        self.slots[self.pos[thread] as usize * 16..][..bytes.len()].copy_from_slice(&bytes);
        self.pos[thread] += n;
        self.stored[thread] += 1;
        Some(self.stored[thread] - 1)
    }

    /// A chunk is claimed, and nobody writes whose it is.
    pub fn abandon(&mut self) {
        self.claims += 1;
    }

    /// What a collector makes of it, in so many parts (or fewer, if there are not as many chunks).
    pub fn parts(&self, count: u64) -> Vec<Vec<u8>> {
        let used = ((self.units + self.claims) * self.chunk).min(self.cap);
        let each = (used / self.chunk).div_ceil(count).max(1) * self.chunk;
        let starts: Vec<u64> = (0..used).step_by(each as usize).collect();
        let mut parts = Vec::new();
        for (part, &first) in starts.iter().enumerate() {
            let slots = each.min(used - first);
            let passed = (self.units + self.claims) * self.chunk > self.cap;
            let drops = if part == 0 && passed { self.drops.as_slice() } else { &[] };
            let mut drops: Vec<u8> = drops.iter().flat_map(|word| word.to_le_bytes()).collect();
            let drops_bytes = drops.len() as u64;
            drops.resize(drops.len().next_multiple_of(64), 0);
            let head = Head {
                claims: self.claims,
                units: self.units,
                cap: self.cap,
                first_slot: first,
                slots,
                drops_bytes,
                chunk: self.chunk as u32,
                part: part as u32,
                parts: starts.len() as u32,
            };
            let slots = &self.slots[first as usize * 16..][..slots as usize * 16];
            parts.push([&head.encode()[..], &drops, slots].concat());
        }
        parts
    }
}

impl Saved {
    /// Header and sections, whole slots.
    fn encode(&self) -> Vec<u8> {
        let word = self.base & 0xffff_ffff_ffff | u64::from(self.code) << 48;
        let mut bytes = word.to_le_bytes().to_vec();
        bytes.extend(self.mask.to_le_bytes());
        bytes.extend(self.at.to_le_bytes());
        let lanes = || (0..32usize).filter(|lane| self.mask >> lane & 1 == 1);
        for section in &self.sections {
            match section {
                Values::Nothing => {}
                Values::Stride(stride) => bytes.extend(stride.to_le_bytes()),
                Values::Words(words) => lanes().for_each(|lane| bytes.extend(words[lane].to_le_bytes())),
                Values::Longs(words) => lanes().for_each(|lane| bytes.extend(words[lane].to_le_bytes())),
            }
            bytes.resize(bytes.len().next_multiple_of(16), 0);
        }
        bytes
    }
}
