//! The machine that runs one cluster: its blocks, its warps, and the order in which they take turns.
//!
//! Warps take turns in a circle. A turn ends where the warp has no lane that can run, where it sleeps, and after many
//! backward branches; so do the turns of groups inside a warp (`warp.rs`). Nothing else switches: straight code and
//! forward branches run on, however many instructions there are. Text with spans woven in, which branch forward only,
//! therefore runs in the same order as without, and racy kernels and sums of floats come out the same bit by bit.
//!
//! What lanes wait for is looked at when their warp's turn comes: no one has to be told. If nobody can run and nothing
//! that is waited for has come, that is a deadlock, and the first lane's instruction is named.

use crate::code::{Instruction, Op};
use crate::exec::barrier::{BlockBarrier, ClusterBarrier};
use crate::fault::{Fault, FaultKind, Stop};
use crate::launch::{Grid, Launch, Options, Outcome, volume};
use crate::memory::Memory;
use crate::program::{Kernel, Program};
use crate::random::Random;
use crate::stats::{first_lanes, lanes};
use crate::warp::{Wait, Warp};
use crate::watch::Watch;

/// Backward branches of a warp before others have a turn.
const WARP_PATIENCE: u32 = 1024;
/// Backward branches of groups of a warp before one that is ahead has a turn: more than most loops have.
const GROUP_PATIENCE: u32 = 4096;
/// With a seed both are random below this.
const SEEDED_PATIENCE: u32 = 24;
/// What shared memory holds before it is written, with a seed.
const GARBAGE: u8 = 0xcd;

/// A block that runs.
#[derive(Debug)]
pub(crate) struct Block {
    /// `%ctaid`
    pub(crate) index: [u32; 3],
    /// `%cluster_ctarank`
    pub(crate) rank: u32,
    /// Which cluster of a cooperative launch; else 0.
    pub(crate) cluster: usize,
    pub(crate) sm: u32,
    pub(crate) shared: Vec<u8>,
    pub(crate) barriers: Vec<BlockBarrier>,
    /// Lanes that have not ended, a mask a warp.
    pub(crate) live: Vec<u32>,
}

/// A cluster that runs.
pub(crate) struct Machine<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: &'a Kernel,
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) options: &'a Options,
    pub(crate) cluster: [u32; 3],
    pub(crate) memory: &'a dyn Memory,
    pub(crate) blocks: Vec<Block>,
    /// One a cluster.
    pub(crate) cluster_barriers: Vec<ClusterBarrier>,
    /// Where dynamic shared memory begins.
    pub(crate) dynamic: u32,
    pub(crate) clock: u64,
    pub(crate) outcome: &'a mut Outcome,
    pub(crate) random: Option<Random>,
    /// Who is told of accesses.
    pub(crate) watch: Option<Watch<'a>>,
    warps: Vec<Warp>,
    steps: u64,
}

/// How the group goes on after an instruction.
pub(crate) enum Next {
    /// With the one behind it.
    On,
    /// At another, all of it.
    Jump(u32),
    /// Lanes were moved, ended or made to wait: somebody must be chosen anew. `true` if a backward branch was among it.
    Choose { backward: bool },
    /// As before, and the other warps first.
    Yield,
}

impl<'a> Machine<'a> {
    /// The machine for one cluster of a launch, or for all of a cooperative one.
    pub(crate) fn new(
        grid: &'a Grid<'a>,
        cluster: u64,
        clock: u64,
        memory: &'a dyn Memory,
        outcome: &'a mut Outcome,
        watch: Option<Watch<'a>>,
    ) -> Self {
        let (launch, options) = (&grid.launch, &grid.options);
        let of_cluster = volume(grid.cluster);
        let clusters = if launch.cooperative { volume(launch.grid) / of_cluster } else { 1 };
        let counts: [u32; 3] = std::array::from_fn(|axis| launch.grid[axis] / grid.cluster[axis].max(1));
        let threads = volume(launch.block) as u32;
        let warps_a_block = threads.div_ceil(32);
        let shared = grid.kernel.shared_bytes(launch.shared) as usize;
        let fill = if options.seed.is_some() { GARBAGE } else { 0 };
        let entry = grid.program.functions[grid.kernel.function].entry;
        let mut blocks = Vec::new();
        let mut warps = Vec::new();
        for number in 0..clusters {
            let origin = unfold(cluster + number, counts);
            for rank in 0..of_cluster {
                let inside = unfold(rank, grid.cluster);
                let live: Vec<u32> =
                    (0..warps_a_block).map(|warp| first_lanes(threads - warp * 32)).collect();
                warps.extend(
                    (0..).zip(&live).map(|(index, &live)| Warp::new(blocks.len(), index, live, entry)),
                );
                blocks.push(Block {
                    index: std::array::from_fn(|axis| origin[axis] * grid.cluster[axis] + inside[axis]),
                    rank: rank as u32,
                    cluster: number as usize,
                    sm: grid.sm(cluster + number),
                    shared: vec![fill; shared],
                    barriers: (0..16).map(|_| BlockBarrier::new(live.len())).collect(),
                    live,
                });
            }
        }
        Machine {
            program: grid.program,
            kernel: grid.kernel,
            launch,
            options,
            cluster: grid.cluster,
            memory,
            blocks,
            cluster_barriers: (0..clusters).map(|_| ClusterBarrier::default()).collect(),
            dynamic: grid.kernel.dynamic_start(),
            clock,
            outcome,
            random: options.seed.map(|seed| Random::new(seed ^ cluster.wrapping_mul(0x9e37_79b9))),
            watch,
            warps,
            steps: 0,
        }
    }

    /// Threads of a block.
    pub(crate) fn threads(&self) -> u32 {
        // The launch was checked: at most 1024.
        volume(self.launch.block) as u32
    }

    /// `%tid` of a thread of a block.
    pub(crate) fn thread(&self, linear: u32) -> [u32; 3] {
        unfold(u64::from(linear), self.launch.block)
    }

    /// Runs until all threads have ended.
    pub(crate) fn run(mut self, clock: &mut u64) -> Result<(), Box<Fault>> {
        let mut warps = std::mem::take(&mut self.warps);
        let function = &self.program.functions[self.kernel.function];
        for warp in &mut warps {
            warp.slots.resize(function.slots as usize, [0; 32]);
            for memory in &mut warp.memory {
                memory.resize(function.bytes as usize, 0);
            }
        }
        let mut next = 0;
        let result = loop {
            let Some(at) = self.pick(&mut warps, next) else {
                break self.all_ended(&warps);
            };
            next = at + 1;
            if let Err(stop) = self.turn(&mut warps[at]) {
                break Err(self.fault(&warps[at], stop));
            }
        };
        self.outcome.stats.steps += self.steps;
        *clock = self.clock;
        result
    }

    /// The next warp that can run, from `next` on in the circle.
    fn pick(&mut self, warps: &mut [Warp], next: usize) -> Option<usize> {
        let count = warps.len();
        let start = match &mut self.random {
            Some(random) => random.below(u32::try_from(count).unwrap_or(u32::MAX)) as usize,
            None => next,
        };
        (start..start + count).map(|at| at % count).find(|&at| {
            self.wake(&mut warps[at]);
            warps[at].ready != 0
        })
    }

    /// Lets lanes go on that wait for what has come.
    fn wake(&mut self, warp: &mut Warp) {
        for lane in lanes(warp.live & !warp.ready) {
            match warp.wait[lane] {
                Wait::Barrier { id, generation, reduced } => {
                    let barrier = &self.blocks[warp.block].barriers[usize::from(id)];
                    if barrier.generation() != generation {
                        if let Some(dst) = reduced {
                            warp.set_in_frame(lane, dst, barrier.reduced(generation));
                        }
                        warp.wake(lane);
                    }
                }
                Wait::Cluster { generation } => {
                    if self.cluster_barriers[self.blocks[warp.block].cluster].generation() != generation {
                        warp.wake(lane);
                    }
                }
                Wait::Mbarrier { block, offset, parity, done } => {
                    if self.phase_is_over(block, offset, parity) {
                        warp.set_in_frame(lane, done, 1);
                        warp.wake(lane);
                    }
                }
                Wait::None | Wait::Lanes { .. } => (),
            }
        }
    }

    fn all_ended(&self, warps: &[Warp]) -> Result<(), Box<Fault>> {
        let waiting: u32 = warps.iter().map(|warp| warp.live.count_ones()).sum();
        let Some(warp) = warps.iter().find(|warp| warp.live != 0) else {
            return Ok(());
        };
        let lane = warp.live.trailing_zeros();
        let what = match warp.wait[lane as usize] {
            Wait::Lanes { mask, .. } => format!("the other lanes of membermask {mask:#010x}"),
            Wait::Barrier { id, .. } => format!("barrier {id}"),
            Wait::Cluster { .. } => "the barrier of its cluster".to_owned(),
            Wait::Mbarrier { offset, .. } => format!("the mbarrier at shared address {offset:#x}"),
            Wait::None => "nothing".to_owned(),
        };
        let kind = FaultKind::Deadlock(format!("{waiting} threads wait, this one for {what}"));
        // A lane that waits stands behind the instruction that made it wait, or at it.
        let waits_behind = !matches!(warp.wait[lane as usize], Wait::Lanes { .. });
        let pc = warp.pc[lane as usize].saturating_sub(u32::from(waits_behind));
        Err(self.fault_at(warp, pc, Stop { kind, lane }))
    }

    fn fault(&self, warp: &Warp, stop: Stop) -> Box<Fault> {
        self.fault_at(warp, warp.group.pc, stop)
    }

    fn fault_at(&self, warp: &Warp, pc: u32, stop: Stop) -> Box<Fault> {
        // Every instruction has a place.
        let place = &self.program.places[pc as usize];
        Box::new(Fault {
            kind: stop.kind,
            kernel: self.kernel.name.clone(),
            span: place.span,
            line: place.line,
            opcode: place.opcode.to_string(),
            block: self.blocks[warp.block].index,
            thread: self.thread(warp.index * 32 + stop.lane),
        })
    }

    /// Runs a warp until it must or should let others run.
    fn turn(&mut self, warp: &mut Warp) -> Result<(), Stop> {
        let (turn, patience) = match &mut self.random {
            Some(random) => (1 + random.below(SEEDED_PATIENCE), 1 + random.below(SEEDED_PATIENCE)),
            None => (WARP_PATIENCE, GROUP_PATIENCE),
        };
        let mut branches = 0;
        while warp.choose(self.random.as_mut()) {
            let (backward, yields) = self.run_group(warp, patience)?;
            branches += u32::from(backward);
            if yields || branches >= turn {
                break;
            }
        }
        Ok(())
    }

    /// Runs the warp's group until somebody must be chosen anew. Gives whether it took a backward branch last, and
    /// whether the warp yields.
    fn run_group(&mut self, warp: &mut Warp, patience: u32) -> Result<(bool, bool), Stop> {
        let program = self.program;
        loop {
            let pc = warp.group.pc;
            // Control stays inside of functions, each of which ends in a return.
            let instruction = &program.code[pc as usize];
            self.clock += 1;
            self.steps += 1;
            if self.steps > self.options.max_steps {
                let kind = FaultKind::Steps(self.options.max_steps);
                return Err(Stop { kind, lane: warp.group.lanes.trailing_zeros() });
            }
            if let Some(count) = self.outcome.stats.counts.get_mut(pc as usize) {
                count.groups_there += 1;
                count.lanes_there += u64::from(warp.group.lanes.count_ones());
            }
            let active = warp.guarded(instruction.guard);
            let next = if active == 0 { Next::On } else { self.step(warp, instruction, active)? };
            let target = match next {
                Next::On => pc + 1,
                Next::Jump(target) => target,
                Next::Choose { backward } => {
                    if backward {
                        self.backward(warp, patience);
                    }
                    return Ok((backward, false));
                }
                Next::Yield => {
                    warp.settle(pc + 1);
                    warp.release();
                    return Ok((false, true));
                }
            };
            warp.group.pc = target;
            if target <= pc {
                // A loop goes on here unless others should have a turn.
                warp.settle(target);
                self.backward(warp, patience);
                return Ok((true, false));
            }
            if target >= warp.group.stop {
                warp.settle(target);
                return Ok((false, false));
            }
        }
    }

    fn backward(&mut self, warp: &mut Warp, patience: u32) {
        warp.release();
        if let Some(random) = &mut self.random
            && random.below(4) == 0
        {
            warp.join(warp.group.lanes);
        }
        warp.spin(patience);
    }

    /// Counts and executes an instruction for the lanes whose guard holds, of which there are some.
    fn step(&mut self, warp: &mut Warp, instruction: &Instruction, active: u32) -> Result<Next, Stop> {
        if let Some(count) = self.outcome.stats.counts.get_mut(warp.group.pc as usize) {
            count.groups += 1;
            count.lanes += u64::from(active.count_ones());
        }
        self.tell(warp, &instruction.op, active);
        match &instruction.op {
            Op::One(f, dst, a) => {
                let a = warp.row(self, *a);
                let row = warp.slot_mut(dst.slot);
                for lane in lanes(active) {
                    row[lane] = f(a[lane]) & dst.mask;
                }
            }
            Op::Two(f, dst, [a, b]) => {
                let (a, b) = (warp.row(self, *a), warp.row(self, *b));
                let row = warp.slot_mut(dst.slot);
                for lane in lanes(active) {
                    row[lane] = f(a[lane], b[lane]) & dst.mask;
                }
            }
            Op::Three(f, dst, [a, b, c]) => {
                let (a, b, c) = (warp.row(self, *a), warp.row(self, *b), warp.row(self, *c));
                let row = warp.slot_mut(dst.slot);
                for lane in lanes(active) {
                    row[lane] = f(a[lane], b[lane], c[lane]) & dst.mask;
                }
            }
            Op::Four(op) => {
                let (f, dst, sources) = &**op;
                let sources = sources.map(|src| warp.row(self, src));
                for lane in lanes(active) {
                    warp.set(lane, *dst, f(sources.map(|row| row[lane])));
                }
            }
            Op::Compare(op) => op.run(self, warp, active),
            Op::Carry(op) => op.run(self, warp, active),
            Op::Pack(op) => op.run(self, warp, active),
            Op::Unpack(op) => op.run(self, warp, active),
            Op::ActiveMask(dst) => {
                for lane in lanes(active) {
                    warp.set(lane, *dst, u64::from(active));
                }
            }
            Op::Load(op) => op.run(self, warp, active)?,
            Op::Store(op) => op.run(self, warp, active)?,
            Op::Atomic(op) => op.run(self, warp, active)?,
            Op::Copy(op) => op.run(self, warp, active)?,
            Op::Fragments(op) => op.run(self, warp, active)?,
            Op::Mma(op) => op.run(self, warp, active)?,
            Op::Exchange(op) => return op.run(self, warp, active),
            Op::Barrier(op) => return op.run(self, warp, active),
            Op::Mbarrier(op) => return op.run(self, warp, active),
            Op::Branch(target) => return Ok(self.branch(warp, active, *target)),
            Op::Table(index, targets) => return self.table(warp, active, *index, targets),
            Op::Call(op) => return op.run(self, warp, active),
            Op::Return => return Ok(self.ret(warp, active)),
            Op::Exit => return Ok(self.exit(warp, active)),
            Op::Trap => return Err(Stop { kind: FaultKind::Trap, lane: active.trailing_zeros() }),
            Op::Pause => return Ok(Next::Yield),
            Op::Nothing => (),
            Op::Missing(what) => {
                let kind = FaultKind::NotExecuted(what.to_string());
                return Err(Stop { kind, lane: active.trailing_zeros() });
            }
        }
        Ok(Next::On)
    }
}

/// The index of the `linear`th of a box, x running fastest.
fn unfold(linear: u64, size: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(size[0].max(1)), u64::from(size[1].max(1)));
    // Each is below a u32.
    [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
}
