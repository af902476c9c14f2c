//! What the records of block_sched say of a launch: how full the SMs' slots were, and why they were not full.
//!
//! A record is a warp's start, how long it ran, and its SM. A block runs from the first start of its warps to their
//! last end. Clocks of different SMs are not comparable, so all is computed an SM, on its own clock, and only lengths
//! of time are added up over SMs.
//!
//! ```text
//! slot 1  ....[--- block 0 ---]..[------ block 3 -----].........     fill: before the SM first holds R blocks
//! slot 2  [------ block 1 ------]....[---- block 4 ----------]..     turnover: one left, the next has not started
//! slot 3  ..[--- block 2 ---]............[----- block 5 --------]    tail: after the last start
//!         ^ first start                  ^ last start           ^ last end
//! ```
//!
//! R is the most blocks that the SM held at once. `docs/report.md` defines each measure for users.

use nt_trace::ntm::{Map, Type, Unit};
use nt_trace::ntt::{Records, Row};

/// The columns of a map that holds lifetimes of warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// Cycle at which the warp started, on its SM's clock.
    pub(crate) start: usize,
    /// Cycles that it ran.
    pub(crate) elapsed: usize,
    /// The SM.
    pub(crate) cu: usize,
}

impl Lifetimes {
    /// The map's columns `start`, `elapsed` and `cu`, if it is a warp map that has them.
    pub(crate) fn of(map: &Map) -> Option<Lifetimes> {
        let column = |name: &str| {
            let unsigned = |ty: Type| matches!(ty, Type::U8 | Type::U16 | Type::U32 | Type::U64);
            map.columns.iter().position(|column| column.name == name && unsigned(column.ty))
        };
        (map.unit == Unit::Warp && map.stream.is_none() && map.slots.is_none()).then_some(())?;
        Some(Lifetimes { start: column("start")?, elapsed: column("elapsed")?, cu: column("cu")? })
    }
}

/// What one launch comes to.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Measures {
    /// Warps that left a record.
    pub(crate) warps: u64,
    /// Blocks of which a warp left a record.
    pub(crate) blocks: u64,
    /// The first warps that left none.
    pub(crate) missing: Vec<u64>,
    /// Blocks whose warps name two SMs; they are left out below.
    pub(crate) torn: u64,
    /// SMs that ran a block.
    pub(crate) sms: u64,
    /// The most blocks that one SM held at once.
    pub(crate) resident: u64,
    /// Blocks an SM.
    pub(crate) blocks_of_sm: Spread,
    /// Cycles an SM from its first start to its last end.
    pub(crate) span: Spread,
    /// Cycles an SM in which at least one block ran.
    pub(crate) running: Spread,
    /// Cycles a block.
    pub(crate) block: Quantiles,
    /// How slots and cycles were used, over all SMs.
    pub(crate) slots: Slots,
}

/// Slots × cycles, summed over SMs; each is a part of [`Slots::all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Slots {
    /// The most blocks an SM held × its span.
    pub(crate) all: u128,
    /// A block was in the slot.
    pub(crate) occupied: u128,
    /// Empty before the SM first held its most.
    pub(crate) fill: u128,
    /// Empty between that and the last start.
    pub(crate) turnover: u128,
    /// Empty after the last start.
    pub(crate) tail: u128,
    /// The gap before each block that took over a slot, the slot free longest first. Not a part of `all` beside the
    /// others: the same emptiness, attributed by slot.
    pub(crate) gaps: u128,
}

/// Least, mean and most.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Spread {
    /// The least.
    pub(crate) min: u64,
    /// The mean.
    pub(crate) mean: f64,
    /// The most.
    pub(crate) max: u64,
}

/// Least, median, 95th percentile and most: of n sorted values those at 0, ⌊(n−1)/2⌋, ⌊(n−1)·0.95⌋, n−1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Quantiles {
    /// The least.
    pub(crate) min: u64,
    /// Half are below or equal.
    pub(crate) median: u64,
    /// 95 % are below or equal.
    pub p95: u64,
    /// The most.
    pub(crate) max: u64,
}

/// A block's life, on the clock of its SM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    sm: u64,
    start: u64,
    end: u64,
}

/// How many of the warps that are missing are named.
const NAMED: usize = 8;

/// Measures a launch with `warps` warps a block.
pub(crate) fn measure(records: &Records<'_>, columns: Lifetimes, warps: u64) -> Measures {
    let mut measures = Measures::default();
    let mut blocks = collect(records, columns, warps.max(1), &mut measures);
    blocks.sort_unstable();
    let mut spans = Vec::new();
    let mut running = Vec::new();
    let mut counts = Vec::new();
    for of_sm in blocks.chunk_by(|a, b| a.sm == b.sm) {
        let sm = Sm::of(of_sm);
        measures.resident = measures.resident.max(sm.resident);
        measures.slots.add(&sm.slots);
        spans.push(sm.span);
        running.push(sm.running);
        counts.push(of_sm.len() as u64);
    }
    measures.sms = counts.len() as u64;
    measures.blocks_of_sm = Spread::of(&counts);
    measures.span = Spread::of(&spans);
    measures.running = Spread::of(&running);
    measures.block = Quantiles::of(blocks.iter().map(|block| block.end - block.start).collect());
    measures
}

/// The blocks of a launch, from its warps' records, which come in order of blocks.
fn collect(records: &Records<'_>, columns: Lifetimes, warps: u64, measures: &mut Measures) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    // The block in hand: its number, its life, and whether its warps name one SM.
    let mut current: Option<(u64, Block, bool)> = None;
    let mut close = |current: &mut Option<(u64, Block, bool)>, measures: &mut Measures| {
        if let Some((_, block, one_sm)) = current.take() {
            measures.blocks += 1;
            if one_sm {
                blocks.push(block);
            } else {
                measures.torn += 1;
            }
        }
    };
    let mut expected = 0;
    for row in records.rows() {
        let unit = row.unit();
        let gap = expected..unit;
        measures.missing.extend(gap.take(NAMED.saturating_sub(measures.missing.len())));
        expected = unit + 1;
        measures.warps += 1;
        let warp = life(&row, columns);
        match &mut current {
            Some((number, block, one_sm)) if *number == unit / warps => {
                *one_sm &= block.sm == warp.sm;
                block.start = block.start.min(warp.start);
                block.end = block.end.max(warp.end);
            }
            _ => {
                close(&mut current, measures);
                current = Some((unit / warps, warp, true));
            }
        }
    }
    close(&mut current, measures);
    measures.missing.extend((expected..records.units()).take(NAMED.saturating_sub(measures.missing.len())));
    blocks
}

fn life(row: &Row<'_, '_>, columns: Lifetimes) -> Block {
    let value = |column: usize| row.unsigned(column).unwrap_or_default();
    let start = value(columns.start);
    Block { sm: value(columns.cu), start, end: start.saturating_add(value(columns.elapsed)) }
}

/// One SM.
struct Sm {
    span: u64,
    running: u64,
    resident: u64,
    slots: Slots,
}

impl Sm {
    /// From its blocks, of which there is at least one.
    fn of(blocks: &[Block]) -> Sm {
        let mut starts: Vec<u64> = blocks.iter().map(|block| block.start).collect();
        let mut ends: Vec<u64> = blocks.iter().map(|block| block.end).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        let first = starts.first().copied().unwrap_or_default();
        let last_start = starts.last().copied().unwrap_or_default();
        let last_end = ends.last().copied().unwrap_or_default();

        // Each start takes over the slot that has been free longest, or else opens one. The k-th takeover is of the
        // k-th end, so two sorted lists are all that is needed, and the slots opened are the most held at once.
        let (mut taken, mut gaps) = (0, 0u128);
        for (i, &start) in starts.iter().enumerate() {
            if let Some(&end) = ends.get(taken).filter(|&&end| taken < i && end <= start) {
                gaps += u128::from(start - end);
                taken += 1;
            }
        }
        let resident = (starts.len() - taken) as u64;

        let mut sm =
            Sm { span: last_end - first, running: 0, resident, slots: Slots { gaps, ..Slots::default() } };
        let (mut held, mut full, mut now, mut left) = (0u64, false, first, 0);
        let mut arrivals = starts.iter().copied().enumerate().peekable();
        while let Some(&end) = ends.get(left) {
            // An end comes before a start of the same cycle, unless it is that block's own.
            let arrival = arrivals.peek().copied().filter(|&(i, start)| start < end || left >= i);
            let next = arrival.map_or(end, |(_, start)| start);
            let cycles = next - now;
            let empty = u128::from(cycles) * u128::from(resident - held.min(resident));
            sm.slots.occupied += u128::from(cycles) * u128::from(held);
            if held > 0 {
                sm.running += cycles;
            }
            if !full {
                sm.slots.fill += empty;
            } else if now < last_start {
                sm.slots.turnover += empty;
            } else {
                sm.slots.tail += empty;
            }
            now = next;
            if arrival.is_some() {
                arrivals.next();
                held += 1;
                full |= held == resident;
            } else {
                left += 1;
                held -= 1;
            }
        }
        sm.slots.all = u128::from(sm.span) * u128::from(resident);
        sm
    }
}

impl Measures {
    /// Cycles of the SMs' spans in which no block ran, in percent. All of them lie before an SM's last start, so a
    /// block was still to come.
    pub(crate) fn idle(&self) -> f64 {
        if self.span.mean == 0.0 {
            0.0
        } else {
            (self.span.mean - self.running.mean) * 100.0 / self.span.mean
        }
    }
}

impl Slots {
    fn add(&mut self, other: &Slots) {
        self.all += other.all;
        self.occupied += other.occupied;
        self.fill += other.fill;
        self.turnover += other.turnover;
        self.tail += other.tail;
        self.gaps += other.gaps;
    }

    /// `part` of all, in percent; 0 of nothing.
    pub(crate) fn percent(&self, part: u128) -> f64 {
        percent(part, self.all)
    }

    /// Slots that were empty though a block was still to start, of all, in percent.
    pub(crate) fn waiting(&self) -> f64 {
        self.percent(self.fill + self.turnover)
    }

    /// Gaps between the blocks of a slot, of gaps and blocks together, in percent: the measure of the Neutrino paper,
    /// for all resident blocks.
    pub(crate) fn gap_share(&self) -> f64 {
        percent(self.gaps, self.gaps + self.occupied)
    }
}

fn percent(part: u128, all: u128) -> f64 {
    if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 }
}

impl Spread {
    /// Zeros if there are none.
    fn of(values: &[u64]) -> Spread {
        let sum: u128 = values.iter().copied().map(u128::from).sum();
        Spread {
            min: values.iter().copied().min().unwrap_or_default(),
            mean: if values.is_empty() { 0.0 } else { sum as f64 / values.len() as f64 },
            max: values.iter().copied().max().unwrap_or_default(),
        }
    }
}

impl Quantiles {
    /// Zeros if there are none.
    fn of(mut values: Vec<u64>) -> Quantiles {
        values.sort_unstable();
        let last = values.len().saturating_sub(1);
        let at = |index: usize| values.get(index).copied().unwrap_or_default();
        Quantiles {
            min: at(0),
            median: at(last / 2),
            p95: at(last / 20 * 19 + last % 20 * 19 / 20),
            max: at(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of one SM, as (start, end).
    fn sm(lives: &[(u64, u64)]) -> Sm {
        Sm::of(&lives.iter().map(|&(start, end)| Block { sm: 0, start, end }).collect::<Vec<_>>())
    }

    /// `slots` is resident, all, occupied, fill, turnover, tail, gaps.
    fn check(lives: &[(u64, u64)], span: u64, running: u64, slots: [u128; 7]) {
        let sm = sm(lives);
        let Slots { all, occupied, fill, turnover, tail, gaps } = sm.slots;
        assert_eq!((sm.span, sm.running), (span, running));
        assert_eq!([u128::from(sm.resident), all, occupied, fill, turnover, tail, gaps], slots);
        assert_eq!(occupied + fill + turnover + tail, all, "the parts are the whole");
    }

    #[test]
    fn one_block() {
        check(&[(100, 150)], 50, 50, [1, 50, 50, 0, 0, 0, 0]);
    }

    #[test]
    fn one_slot_with_two_gaps() {
        // 10..20 and 25..40 are empty.
        check(&[(0, 10), (20, 25), (40, 50)], 50, 25, [1, 50, 25, 0, 25, 0, 25]);
    }

    #[test]
    fn two_slots() {
        // Slot A: 0..10, 14..30. Slot B: 2..16, 20..24.
        // Fill: B is empty 0..2. Turnover: A 10..14, B 16..20. Tail, after 20: B 24..30.
        check(&[(0, 10), (2, 16), (14, 30), (20, 24)], 30, 30, [2, 60, 10 + 14 + 16 + 4, 2, 4 + 4, 6, 4 + 4]);
    }

    #[test]
    fn a_slot_that_nobody_takes_over_is_tail_and_a_late_start_is_turnover() {
        // Both start at 0; one ends at 10, its slot is taken at 50; the other ends at 20 and its slot never is.
        // Up to 50: 40 + 30 empty. From 50 to 60: one slot empty. By slots: the gap of 40 alone.
        check(&[(0, 10), (0, 20), (50, 60)], 60, 30, [2, 120, 40, 0, 70, 10, 40]);
    }

    #[test]
    fn blocks_that_follow_within_a_cycle_share_a_slot() {
        check(&[(0, 10), (10, 20)], 20, 20, [1, 20, 20, 0, 0, 0, 0]);
    }

    #[test]
    fn persistent_blocks_have_no_turnover() {
        // Four at once, at 0, 1, 2 and 3, all until 100: 3 + 2 + 1 slots × cycles are empty before the last has come.
        check(&[(0, 100), (1, 100), (2, 100), (3, 100)], 100, 100, [4, 400, 394, 6, 0, 0, 0]);
    }

    #[test]
    fn blocks_without_length_do_no_harm() {
        check(&[(5, 5)], 0, 0, [1, 0, 0, 0, 0, 0, 0]);
        check(&[(5, 5), (5, 5), (0, 9)], 9, 9, [1, 9, 9, 0, 0, 0, 0]);
    }

    /// Slots and cycles counted one by one, as the definitions have them.
    #[test]
    fn the_sweep_agrees_with_counting_cycle_by_cycle() {
        let mut seed = 1u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let count = 1 + next(12);
            let lives: Vec<(u64, u64)> = (0..count)
                .map(|_| {
                    let start = 50 + next(40);
                    (start, start + 1 + next(20))
                })
                .collect();
            let held = |cycle: u64| {
                lives.iter().filter(|&&(start, end)| start <= cycle && cycle < end).count() as u64
            };
            let first = lives.iter().map(|life| life.0).min().unwrap();
            let last_start = lives.iter().map(|life| life.0).max().unwrap();
            let end = lives.iter().map(|life| life.1).max().unwrap();
            let resident = (first..end).map(held).max().unwrap();
            let mut slots = Slots { all: u128::from((end - first) * resident), ..Slots::default() };
            let (mut running, mut full) = (0, false);
            for cycle in first..end {
                let held = held(cycle);
                full |= held == resident;
                let empty = u128::from(resident - held);
                slots.occupied += u128::from(held);
                running += u64::from(held > 0);
                match full {
                    false => slots.fill += empty,
                    true if cycle < last_start => slots.turnover += empty,
                    true => slots.tail += empty,
                }
            }
            // Blocks in order of their starts, each into the slot that has been free longest.
            let mut order = lives.clone();
            order.sort_unstable();
            let mut free_from: Vec<u64> = Vec::new();
            for &(start, end) in &order {
                match free_from.iter_mut().filter(|free| **free <= start).min() {
                    Some(free) => {
                        slots.gaps += u128::from(start - *free);
                        *free = end;
                    }
                    None => free_from.push(end),
                }
            }
            let sm = sm(&lives);
            assert_eq!((sm.slots, sm.running, sm.resident), (slots, running, resident), "{order:?}");
            assert_eq!(free_from.len() as u64, resident);
        }
    }

    #[test]
    fn quantiles_are_values() {
        let of = |n: u64| Quantiles::of((0..n).rev().collect());
        assert_eq!(of(0), Quantiles::default());
        assert_eq!(of(1), Quantiles { min: 0, median: 0, p95: 0, max: 0 });
        // (n−1)·0.95 = 95 for 101 values, 99·0.95 = 94.05 for 100.
        assert_eq!(of(101), Quantiles { min: 0, median: 50, p95: 95, max: 100 });
        assert_eq!(of(100), Quantiles { min: 0, median: 49, p95: 94, max: 99 });
    }
}
