//! What a launch did, counted where it was done: executions and bytes of each instruction.
//!
//! The counts are the interpreter's own: bytes are added where an access is performed, so that the map of a probe can
//! be compared with them.

use crate::types::mask;
use nt_diag::Span;

/// State spaces that bytes are counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// `.global`
    Global,
    /// `.shared`, of this block or another of its cluster.
    Shared,
    /// `.local`
    Local,
    /// `.const`
    Const,
    /// `.param`, of kernels and functions.
    Param,
}

impl Space {
    /// How many there are.
    pub const COUNT: usize = 5;

    /// The manual's word without its dot.
    pub fn word(self) -> &'static str {
        ["global", "shared", "local", "const", "param"][self as usize]
    }
}

/// What one instruction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// How often a group of lanes executed it: what a warp probe counts.
    pub groups: u64,
    /// How often a lane executed it: what a thread probe counts.
    pub lanes: u64,
    /// How often a group of lanes came to it, whether its guard held in one of them or not: what a warp probe at `reach`
    /// counts.
    pub groups_there: u64,
    /// How often a lane came to it.
    pub lanes_there: u64,
    /// Bytes that it accessed, by [`Space`].
    pub bytes: [u64; Space::COUNT],
    /// How often it accessed each: of a load, store, atomic or reduction, once a lane.
    pub accesses: [u64; Space::COUNT],
}

/// The counts of a launch, an entry an instruction of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// In the order of [`crate::Program::places`].
    pub counts: Vec<Count>,
    /// Instructions that groups of lanes executed, those with a false guard included.
    pub steps: u64,
    /// Threads that ran to their end.
    pub threads: u64,
}

/// Where an instruction of the program stands in the PTX text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Index into the module's statements; for the closing brace of a body, one past its last.
    pub statement: u32,
    /// Its bytes.
    pub span: Span,
    /// Its line, from 1 on.
    pub line: u32,
    /// Its opcode.
    pub opcode: Box<str>,
}

impl Stats {
    pub(crate) fn new(instructions: usize) -> Self {
        Stats { counts: vec![Count::default(); instructions], ..Stats::default() }
    }

    /// Adds the counts of another part of the same launch.
    pub fn add(&mut self, other: &Stats) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), Count::default());
        }
        for (into, from) in self.counts.iter_mut().zip(&other.counts) {
            into.groups += from.groups;
            into.lanes += from.lanes;
            into.groups_there += from.groups_there;
            into.lanes_there += from.lanes_there;
            for (into, from) in into.bytes.iter_mut().zip(from.bytes) {
                *into += from;
            }
            for (into, from) in into.accesses.iter_mut().zip(from.accesses) {
                *into += from;
            }
        }
        self.steps += other.steps;
        self.threads += other.threads;
    }

    /// Bytes accessed in a space by all instructions.
    pub fn bytes(&self, space: Space) -> u64 {
        self.counts.iter().map(|count| count.bytes[space as usize]).sum()
    }

    /// Instructions that lanes executed.
    pub fn lanes(&self) -> u64 {
        self.counts.iter().map(|count| count.lanes).sum()
    }
}

/// The lanes of a mask, lowest first.
pub(crate) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// A mask of the first `count` lanes.
pub(crate) fn first_lanes(count: u32) -> u32 {
    mask(count.min(32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_masks() {
        assert_eq!(lanes(0).count(), 0);
        assert_eq!(lanes(0x8000_0005).collect::<Vec<_>>(), [0, 2, 31]);
        assert_eq!(lanes(u32::MAX).count(), 32);
        assert_eq!(first_lanes(0), 0);
        assert_eq!(first_lanes(17), 0x1ffff);
        assert_eq!(first_lanes(40), u32::MAX);
    }
}
