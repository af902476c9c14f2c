//! A warp: 32 lanes, each with a program counter of its own, and the choice which of them run together.
//!
//! Lanes that stand at the same instruction in the same frame are a *group*, which executes as one. In the order of a
//! plain run the group that is furthest behind goes first: deepest call, then lowest instruction. Lanes that jumped ahead
//! wait for those behind them, so that the arms of a branch meet where they join. The order is that of the text, in
//! which inserted spans change nothing: they branch forward only, within themselves.
//!
//! A group that is furthest behind could spin for ever on what one ahead of it must do. So after many backward branches
//! the group that has waited longest runs for once, up to its next backward branch, wait or exit.
//!
//! With a seed, any group may be chosen, and lanes that a branch parted may be kept apart for a while (`tag`).

use crate::code::{Dst, Guard, frame};
use crate::random::Random;
use crate::stats::lanes;

/// A value a lane.
pub(crate) type Row = [u64; 32];

/// Why a lane does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It runs.
    None,
    /// For the barrier `id` of its block to be complete; `reduced` then gets what `bar.red` computed.
    Barrier { id: u8, generation: u64, reduced: Option<Dst> },
    /// For the barrier of its cluster.
    Cluster { generation: u64 },
    /// For a phase of an mbarrier in shared memory; the predicate then becomes true.
    Mbarrier { block: u32, offset: u32, parity: bool, done: Dst },
    /// For the other lanes of a mask, at an instruction like its own.
    Lanes { mask: u32, kind: u32 },
}

/// 32 lanes.
#[derive(Debug)]
pub(crate) struct Warp {
    /// Which of the machine's blocks it belongs to.
    pub(crate) block: usize,
    /// Its number in the block.
    pub(crate) index: u32,
    /// Lanes that have not ended.
    pub(crate) live: u32,
    /// Lanes that could run now.
    pub(crate) ready: u32,
    pub(crate) pc: [u32; 32],
    pub(crate) depth: [u32; 32],
    /// The first slot of the lane's frame.
    pub(crate) base: [u32; 32],
    /// Where the lane's frame begins in its local memory.
    pub(crate) local: [u32; 32],
    pub(crate) tag: [u32; 32],
    pub(crate) wait: [Wait; 32],
    /// Slots of all frames.
    pub(crate) slots: Vec<Row>,
    /// Local memory, a lane each.
    pub(crate) memory: Vec<Vec<u8>>,
    /// The carry flag of each lane.
    pub(crate) carry: u32,
    /// What lanes brought to an instruction at which they wait for others.
    pub(crate) brought: [[u64; 3]; 32],
    /// The group that runs, or ran last.
    pub(crate) group: Group,
    /// Groups take their turns by this: the run that each lane was last part of.
    last_run: [u64; 32],
    runs: u64,
    /// Backward branches since the last time that the order was broken for fairness.
    spins: u32,
    /// A lane whose group runs although others are behind it.
    held: Option<usize>,
    last_tag: u32,
}

/// Lanes that run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Group {
    pub(crate) lanes: u32,
    pub(crate) pc: u32,
    /// The first slot of their frames.
    pub(crate) base: u32,
    /// Where the next lanes of the same frame wait: the group must stop there, to be joined or to let them go first.
    pub(crate) stop: u32,
}

impl Warp {
    /// A warp at the start of a kernel; `live` are the lanes that it has.
    pub(crate) fn new(block: usize, index: u32, live: u32, entry: u32) -> Self {
        Warp {
            block,
            index,
            live,
            ready: live,
            pc: [entry; 32],
            depth: [0; 32],
            base: [0; 32],
            local: [0; 32],
            tag: [0; 32],
            wait: [Wait::None; 32],
            slots: Vec::new(),
            memory: vec![Vec::new(); 32],
            carry: 0,
            brought: [[0; 3]; 32],
            group: Group::default(),
            last_run: [0; 32],
            runs: 0,
            spins: 0,
            held: None,
            last_tag: 0,
        }
    }

    /// A slot of the running group's frame.
    pub(crate) fn slot(&self, slot: u32) -> &Row {
        // A frame has all slots of its function before any instruction of it runs.
        &self.slots[(self.group.base + slot) as usize]
    }

    pub(crate) fn slot_mut(&mut self, slot: u32) -> &mut Row {
        &mut self.slots[(self.group.base + slot) as usize]
    }

    /// Writes a value in one lane.
    pub(crate) fn set(&mut self, lane: usize, dst: Dst, value: u64) {
        self.slot_mut(dst.slot)[lane] = value & dst.mask;
    }

    /// Writes a value in one lane of whatever frame that lane has.
    pub(crate) fn set_in_frame(&mut self, lane: usize, dst: Dst, value: u64) {
        if let Some(row) = self.slots.get_mut((self.base[lane] + dst.slot) as usize) {
            row[lane] = value & dst.mask;
        }
    }

    /// The lanes of the group whose guard holds.
    pub(crate) fn guarded(&self, guard: Option<Guard>) -> u32 {
        let Some(Guard { slot, negated }) = guard else {
            return self.group.lanes;
        };
        let mut holds = 0;
        for (lane, &value) in self.slot(slot).iter().enumerate() {
            holds |= ((value & 1) as u32) << lane;
        }
        self.group.lanes & if negated { !holds } else { holds }
    }

    /// The lane's place among the others: deepest call first, then text order.
    fn order(&self, lane: usize) -> (u32, u32, u32, u32) {
        (u32::MAX - self.depth[lane], self.pc[lane], self.base[lane], self.tag[lane])
    }

    /// Makes the lanes that run next the group; `false` if none can.
    pub(crate) fn choose(&mut self, random: Option<&mut Random>) -> bool {
        let held = self.held.filter(|&lane| self.ready >> lane & 1 == 1);
        let leader = match (held, random) {
            (Some(lane), _) => Some(lane),
            (None, None) => lanes(self.ready).min_by_key(|&lane| self.order(lane)),
            (None, Some(random)) => {
                let nth = random.below(self.ready.count_ones().max(1));
                lanes(self.ready).nth(nth as usize)
            }
        };
        let Some(leader) = leader else {
            return false;
        };
        let order = self.order(leader);
        let (mut group, mut stop) = (0, u32::MAX);
        for lane in lanes(self.ready) {
            let other = self.order(lane);
            if other == order {
                group |= 1 << lane;
                self.last_run[lane] = self.runs;
            } else if (other.0, other.2, other.3) == (order.0, order.2, order.3) && other.1 > order.1 {
                stop = stop.min(other.1);
            }
        }
        self.runs += 1;
        self.group = Group { lanes: group, pc: order.1, base: order.2, stop };
        true
    }

    /// Puts the group's lanes where the group is.
    pub(crate) fn settle(&mut self, pc: u32) {
        for lane in lanes(self.group.lanes) {
            self.pc[lane] = pc;
        }
    }

    /// The group took a backward branch, or stopped running: the order is free again.
    pub(crate) fn release(&mut self) {
        self.held = None;
    }

    /// Counts a backward branch; `true` if others of the warp should have a turn now.
    pub(crate) fn spin(&mut self, patience: u32) -> bool {
        self.spins += 1;
        let others = self.ready & !self.group.lanes;
        if self.spins < patience || others == 0 {
            return false;
        }
        self.spins = 0;
        self.held = lanes(others).min_by_key(|&lane| self.last_run[lane]);
        true
    }

    /// Keeps some lanes of the group apart from the rest until [`Warp::join`].
    pub(crate) fn part(&mut self, some: u32) {
        self.last_tag += 1;
        for lane in lanes(some) {
            self.tag[lane] = self.last_tag;
        }
    }

    /// Lets lanes meet others again.
    pub(crate) fn join(&mut self, some: u32) {
        for lane in lanes(some) {
            self.tag[lane] = 0;
        }
    }

    /// Takes a lane out of the running until what it waits for has come.
    pub(crate) fn block(&mut self, lane: usize, wait: Wait) {
        self.wait[lane] = wait;
        self.ready &= !(1 << lane);
        self.tag[lane] = 0;
    }

    pub(crate) fn wake(&mut self, lane: usize) {
        self.wait[lane] = Wait::None;
        self.ready |= 1 << lane;
    }

    /// Ends lanes for good.
    pub(crate) fn end(&mut self, some: u32) {
        self.live &= !some;
        self.ready &= !some;
    }

    /// The caller's instruction, first slot and frame, of a lane of the running group.
    pub(crate) fn link(&self, lane: usize) -> (u32, u32, u32) {
        let link = self.slot(frame::LINK)[lane];
        // As `Call` packed them.
        ((link >> 32) as u32, link as u32, self.slot(frame::LOCAL)[lane] as u32)
    }
}
