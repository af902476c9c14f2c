//! Barriers of blocks and clusters, and mbarriers.
//!
//! A block barrier counts threads, and threads that have ended are not waited for. With an explicit count a warp whose
//! lanes have all arrived counts 32, as on a GPU, where counts are of warps.
//!
//! An mbarrier is 8 bytes of shared memory: pending arrivals, expected arrivals, bytes still to come, the phase. A
//! `try_wait` suspends the lane until the phase is over, and then gives true.
//!
//! Source: PTX ISA 9.0, section 9.7.13 (`bar`, `barrier`, `barrier.cluster`), 9.7.13.15 (`mbarrier`).

use crate::code::{Address, Dst, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::exec::memory::{AddressSpace, HINTS, SPACES, decode_address, number};
use crate::fault::Stop;
use crate::machine::{Machine, Next};
use crate::stats::lanes;
use crate::types::{Type, mask};
use crate::warp::{Wait, Warp};

/// Who has come to a barrier, lane by lane.
#[derive(Debug, Default)]
struct Arrivals {
    generation: u64,
    /// A mask a warp.
    arrived: Vec<u32>,
}

impl Arrivals {
    fn all(&self, live: impl Iterator<Item = u32>) -> bool {
        self.arrived.iter().any(|&m| m != 0)
            && self.arrived.iter().zip(live).all(|(arrived, live)| live & !arrived == 0)
    }

    fn next(&mut self) {
        self.generation += 1;
        self.arrived.fill(0);
    }
}

/// One of the sixteen barriers of a block.
#[derive(Debug)]
pub(crate) struct BlockBarrier {
    arrivals: Arrivals,
    /// Threads that must come, if the program said how many; 0 for all.
    expected: Option<u32>,
    /// How many brought true, and how many came with a predicate at all.
    counted: (u32, u32),
    /// What `bar.red` gives, by the lowest bit of the generation.
    results: [(u32, u32); 2],
    kinds: [Reduce; 2],
    kind: Reduce,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reduce {
    Count,
    And,
    Or,
}

impl BlockBarrier {
    pub(crate) fn new(warps: usize) -> Self {
        let arrivals = Arrivals { generation: 0, arrived: vec![0; warps] };
        BlockBarrier {
            arrivals,
            expected: None,
            counted: (0, 0),
            results: [(0, 0); 2],
            kinds: [Reduce::Count; 2],
            kind: Reduce::Count,
        }
    }

    /// Grows by one each time that all have come.
    pub(crate) fn generation(&self) -> u64 {
        self.arrivals.generation
    }

    /// The result of the reduction that a generation was.
    pub(crate) fn reduced(&self, generation: u64) -> u64 {
        let at = (generation & 1) as usize;
        let (yes, all) = self.results[at];
        match self.kinds[at] {
            Reduce::Count => u64::from(yes),
            Reduce::And => u64::from(yes == all),
            Reduce::Or => u64::from(yes != 0),
        }
    }

    /// Begins the next generation if all have come that are waited for.
    pub(crate) fn complete(&mut self, live: &[u32]) {
        let done = match self.expected {
            None => return,
            Some(0) => self.arrivals.all(live.iter().copied()),
            Some(count) => {
                let of_warp = |(&arrived, &live): (&u32, &u32)| match arrived {
                    0 => 0,
                    _ if live & !arrived == 0 => 32,
                    _ => arrived.count_ones(),
                };
                self.arrivals.arrived.iter().zip(live).map(of_warp).sum::<u32>() >= count
            }
        };
        if done {
            let at = (self.arrivals.generation & 1) as usize;
            self.results[at] = std::mem::take(&mut self.counted);
            self.kinds[at] = self.kind;
            self.expected = None;
            self.arrivals.next();
        }
    }
}

/// The barrier of a cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterBarrier {
    arrivals: Arrivals,
}

impl ClusterBarrier {
    pub(crate) fn generation(&self) -> u64 {
        self.arrivals.generation
    }
}

/// `bar`, `barrier`
#[derive(Debug)]
pub(crate) enum Barrier {
    Block { waits: bool, id: Src, count: Option<Src>, reduce: Option<(Reduced, Dst, Src)> },
    ClusterArrive,
    ClusterWait,
}

/// How `bar.red` combines predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reduced(Reduce);

pub(crate) fn decode(line: &mut Line<'_, '_>) -> Decoded<Op> {
    line.flag(".aligned");
    let boxed = |barrier| Ok(Op::Barrier(Box::new(barrier)));
    let is_cluster = line.flag(".cluster");
    line.ignore(HINTS);
    if is_cluster {
        let is_arrive = line.flag(".arrive");
        let is_wait = line.flag(".wait");
        line.end(0)?;
        return match (is_arrive, is_wait) {
            (true, false) => boxed(Barrier::ClusterArrive),
            (false, true) => boxed(Barrier::ClusterWait),
            _ => missing("this form of `barrier.cluster`"),
        };
    }
    let word = Type::Unsigned(32);
    if line.flag(".red") {
        let kind = line.one_of(&[(".popc", Reduce::Count), (".and", Reduce::And), (".or", Reduce::Or)]);
        line.ty()?;
        let operands = line.operands.len();
        line.end(operands)?;
        let (Some(kind), 3 | 4) = (kind, operands) else {
            return missing("this form of `bar.red`");
        };
        let count = if operands == 4 { Some(line.src(2, word)?) } else { None };
        let reduce = (Reduced(kind), line.dst(0)?, line.src(operands - 1, Type::Predicate)?);
        return boxed(Barrier::Block { waits: true, id: line.src(1, word)?, count, reduce: Some(reduce) });
    }
    let waits = match (line.flag(".sync"), line.flag(".arrive")) {
        (true, false) => true,
        (false, true) => false,
        _ => return missing(format!("this form of `{}`", line.base)),
    };
    let operands = line.operands.len();
    line.end(operands)?;
    let count = match operands {
        1 if waits => None,
        2 => Some(line.src(1, word)?),
        _ => return missing(format!("`{}` with {operands} operands", line.base)),
    };
    boxed(Barrier::Block { waits, id: line.src(0, word)?, count, reduce: None })
}

impl Barrier {
    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<Next, Stop> {
        let pc = warp.group.pc;
        warp.settle(pc + 1);
        warp.release();
        let at = warp.index as usize;
        match self {
            Barrier::Block { waits, id, count, reduce } => {
                let ids = warp.row(machine, *id);
                let counts = count.map(|count| warp.row(machine, count));
                let predicates = reduce.map(|(.., src)| warp.row(machine, src));
                // A warp's block is one of the machine's.
                let block = &mut machine.blocks[warp.block];
                for lane in lanes(active) {
                    let undefined = |what: String| Err(Stop::undefined(lane as u32, what));
                    let Some(barrier) =
                        usize::try_from(ids[lane]).ok().and_then(|id| block.barriers.get_mut(id))
                    else {
                        return undefined(format!("barrier {}, of 0 to 15", ids[lane]));
                    };
                    let expected = counts.map_or(0, |counts| counts[lane] as u32);
                    if counts.is_some() && (expected == 0 || !expected.is_multiple_of(32)) {
                        return undefined(format!(
                            "a barrier of {expected} threads, which are no whole warps"
                        ));
                    }
                    if *barrier.expected.get_or_insert(expected) != expected {
                        return undefined("threads disagree on how many a barrier is for".to_owned());
                    }
                    if barrier.arrivals.arrived[at] >> lane & 1 == 1 {
                        return undefined("a second arrival at a barrier that is not complete".to_owned());
                    }
                    barrier.arrivals.arrived[at] |= 1 << lane;
                    if let (Some((Reduced(kind), ..)), Some(predicates)) = (reduce, predicates) {
                        barrier.kind = *kind;
                        barrier.counted.0 += (predicates[lane] & 1) as u32;
                        barrier.counted.1 += 1;
                    }
                    if *waits {
                        let generation = barrier.generation();
                        let reduced = reduce.map(|(_, dst, _)| dst);
                        warp.block(lane, Wait::Barrier { id: ids[lane] as u8, generation, reduced });
                    }
                }
                for lane in lanes(active) {
                    block.barriers[ids[lane] as usize].complete(&block.live);
                }
            }
            Barrier::ClusterArrive => {
                let (slot, count) = machine.cluster_slot(warp);
                let arrivals = &mut machine.cluster_barriers[machine.blocks[warp.block].cluster].arrivals;
                arrivals.arrived.resize(count, 0);
                arrivals.arrived[slot] |= active;
                machine.complete_cluster(warp.block);
            }
            Barrier::ClusterWait => {
                let (slot, _) = machine.cluster_slot(warp);
                let arrivals = &machine.cluster_barriers[machine.blocks[warp.block].cluster].arrivals;
                let arrived = arrivals.arrived.get(slot).copied().unwrap_or(0);
                // Who has arrived and is not waited for any more finds the next generation begun.
                for lane in lanes(active & arrived) {
                    warp.block(lane, Wait::Cluster { generation: arrivals.generation });
                }
            }
        }
        Ok(Next::Choose { backward: false })
    }
}

impl Machine<'_> {
    /// Where a warp's arrivals at the barrier of its cluster are noted, and how many warps there are.
    fn cluster_slot(&self, warp: &Warp) -> (usize, usize) {
        let warps = self.threads().div_ceil(32) as usize;
        let blocks: u32 = self.cluster.iter().product();
        (self.blocks[warp.block].rank as usize * warps + warp.index as usize, blocks as usize * warps)
    }

    /// Begins the next generation of a cluster's barrier if all threads that have not ended have come.
    pub(crate) fn complete_cluster(&mut self, block: usize) {
        let cluster = self.blocks[block].cluster;
        let of_cluster = self.blocks.iter().filter(|block| block.cluster == cluster);
        let barrier = &mut self.cluster_barriers[cluster];
        if barrier.arrivals.all(of_cluster.flat_map(|block| block.live.iter().copied())) {
            barrier.arrivals.next();
        }
    }

    /// Is the phase of an mbarrier with that parity over?
    pub(crate) fn phase_is_over(&self, block: u32, offset: u32, parity: bool) -> bool {
        self.state(block as usize, offset as usize).phase != parity
    }

    fn state(&self, block: usize, offset: usize) -> State {
        State::of(self.blocks[block].shared.get(offset..offset + 8).map_or(0, number))
    }

    fn set_state(&mut self, block: usize, offset: usize, state: State) {
        if let Some(bytes) = self.blocks[block].shared.get_mut(offset..offset + 8) {
            bytes.copy_from_slice(&state.bits().to_le_bytes());
        }
    }

    /// Bytes have come that an mbarrier waits for.
    pub(crate) fn complete_bytes(&mut self, block: usize, offset: usize, bytes: u32) {
        let mut state = self.state(block, offset);
        state.bytes -= i64::from(bytes);
        state.settle();
        self.set_state(block, offset, state);
    }
}

/// An mbarrier taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    pending: u64,
    expected: u64,
    bytes: i64,
    phase: bool,
}

/// Bits of the counts.
const COUNT: u32 = 20;
/// Bits of the bytes still to come, which may be below 0 for a while.
const BYTES: u32 = 23;

impl State {
    fn of(bits: u64) -> State {
        State {
            pending: bits & mask(COUNT),
            expected: bits >> COUNT & mask(COUNT),
            bytes: crate::types::signed(bits >> (2 * COUNT), BYTES),
            phase: bits >> 63 == 1,
        }
    }

    fn bits(self) -> u64 {
        self.pending & mask(COUNT)
            | (self.expected & mask(COUNT)) << COUNT
            | (self.bytes.cast_unsigned() & mask(BYTES)) << (2 * COUNT)
            | u64::from(self.phase) << 63
    }

    /// Begins the next phase if nothing is missing from this one.
    fn settle(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase = !self.phase;
            self.pending = self.expected;
        }
    }
}

/// `mbarrier`
#[derive(Debug)]
pub(crate) struct Mbarrier {
    what: Action,
    space: AddressSpace,
    address: Address,
    dst: Option<Dst>,
    operand: Src,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Init,
    Invalidate,
    Arrive {
        drop: bool,
    },
    /// Also arrives once.
    ArriveExpect {
        drop: bool,
    },
    Expect,
    Complete,
    Wait {
        suspends: bool,
        by_parity: bool,
    },
}

pub(crate) fn decode_mbarrier(line: &mut Line<'_, '_>) -> Decoded<Op> {
    let actions = [
        (".init", Action::Init),
        (".inval", Action::Invalidate),
        (".arrive", Action::Arrive { drop: false }),
        (".arrive_drop", Action::Arrive { drop: true }),
        (".expect_tx", Action::Expect),
        (".complete_tx", Action::Complete),
        (".test_wait", Action::Wait { suspends: false, by_parity: false }),
        (".try_wait", Action::Wait { suspends: true, by_parity: false }),
    ];
    let Some(action) = line.one_of(&actions) else {
        if line.flag(".pending_count") {
            line.ty()?;
            return line.one(Type::Bits(64), |state| State::of(state).pending);
        }
        return missing("this form of `mbarrier`");
    };
    let action = match action {
        Action::Arrive { drop } if line.flag(".expect_tx") => Action::ArriveExpect { drop },
        Action::Wait { suspends, .. } if line.flag(".parity") => Action::Wait { suspends, by_parity: true },
        action => action,
    };
    let space = line.one_of(SPACES).or(Some(AddressSpace::Generic));
    line.ignore(HINTS);
    line.ty()?;
    let operands = line.operands.len();
    line.end(operands)?;
    let has_dst = matches!(action, Action::Wait { .. } | Action::Arrive { .. } | Action::ArriveExpect { .. });
    let first = usize::from(has_dst);
    let (space, address) = decode_address(line, first, space)?;
    let dst = if has_dst { Some(line.dst(0)?) } else { None };
    let ty = match action {
        Action::Wait { by_parity: false, .. } => Type::Bits(64),
        _ => Type::Unsigned(32),
    };
    let operand = match (action, operands - first) {
        (Action::Invalidate, 1) => Src::Immediate(0),
        (Action::Arrive { .. }, 1) => Src::Immediate(1),
        // The third of a wait says how long to suspend at most.
        (Action::Wait { .. }, 2 | 3) => line.src(first + 1, ty)?,
        (Action::Invalidate, _) => return missing("this form of `mbarrier.inval`"),
        (_, 2) => line.src(first + 1, ty)?,
        _ => return missing(format!("`mbarrier` with {operands} operands")),
    };
    Ok(Op::Mbarrier(Box::new(Mbarrier { what: action, space, address, dst, operand })))
}

/// `cp.async.mbarrier.arrive`: arrives when the copies before it are done, that is now. Without `.noinc` one more
/// arrival is waited for first, so that nothing changes.
pub(crate) fn decode_copies_done(line: &mut Line<'_, '_>) -> Decoded<Op> {
    line.flag(".arrive");
    let counts = line.flag(".noinc");
    let space = line.one_of(SPACES);
    line.ty()?;
    line.end(1)?;
    let (space, address) = decode_address(line, 0, space)?;
    if !counts {
        return Ok(Op::Nothing);
    }
    let what = Action::Arrive { drop: false };
    Ok(Op::Mbarrier(Box::new(Mbarrier { what, space, address, dst: None, operand: Src::Immediate(1) })))
}

impl Mbarrier {
    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<Next, Stop> {
        let addresses = machine.addresses(warp, self.address);
        let operands = warp.row(machine, self.operand);
        let pc = warp.group.pc;
        let mut waiting = 0;
        for lane in lanes(active) {
            let (block, offset) = machine.shared_word(warp, lane, self.space, addresses[lane])?;
            let (mut state, operand) = (machine.state(block, offset), operands[lane]);
            let before = state;
            match self.what {
                Action::Init if operand == 0 || operand > mask(COUNT) => {
                    return Err(Stop::undefined(lane as u32, format!("an mbarrier for {operand} arrivals")));
                }
                Action::Init => state = State { pending: operand, expected: operand, bytes: 0, phase: false },
                Action::Invalidate => state = State::of(0),
                Action::Arrive { drop } => arrive(&mut state, operand, drop, lane)?,
                Action::ArriveExpect { drop } => {
                    state.bytes += i64::from(operand as u32);
                    arrive(&mut state, 1, drop, lane)?;
                }
                Action::Expect => state.bytes += i64::from(operand as u32),
                Action::Complete => {
                    state.bytes -= i64::from(operand as u32);
                    state.settle();
                }
                Action::Wait { suspends, by_parity } => {
                    let parity = if by_parity { operand & 1 == 1 } else { State::of(operand).phase };
                    let is_over = state.phase != parity;
                    if let Some(done) = self.dst {
                        warp.set(lane, done, u64::from(is_over));
                        if suspends && !is_over {
                            let wait =
                                Wait::Mbarrier { block: block as u32, offset: offset as u32, parity, done };
                            warp.block(lane, wait);
                            waiting |= 1u32 << lane;
                        }
                    }
                    continue;
                }
            }
            machine.set_state(block, offset, state);
            if let Some(dst) = self.dst {
                warp.set(lane, dst, before.bits());
            }
        }
        if waiting == 0 {
            return Ok(Next::On);
        }
        warp.settle(pc + 1);
        warp.release();
        Ok(Next::Choose { backward: false })
    }
}

fn arrive(state: &mut State, count: u64, drop: bool, lane: usize) -> Result<(), Stop> {
    if count == 0 || count > state.pending {
        let what = format!("{count} arrivals at an mbarrier that waits for {}", state.pending);
        return Err(Stop::undefined(lane as u32, what));
    }
    state.pending -= count;
    if drop {
        state.expected = state.expected.saturating_sub(count);
    }
    state.settle();
    Ok(())
}
