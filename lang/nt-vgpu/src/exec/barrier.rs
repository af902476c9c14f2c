//! Barriers of blocks and clusters.
//!
//! A block barrier counts threads, and threads that have ended are not waited for. With an explicit count a warp whose
//! lanes have all arrived counts 32, as on a GPU, where counts are of warps.
//!
//! Source: PTX ISA 9.0, section 9.7.13 (`bar`, `barrier`, `barrier.cluster`).

use crate::code::{Dst, Op, Src};
use crate::decode::{Decoded, Line, missing};
use crate::exec::spaces::HINTS;
use crate::fault::Stop;
use crate::machine::{Machine, Next};
use crate::stats::lanes;
use crate::types::Type;
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
}
