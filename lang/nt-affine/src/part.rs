//! What happens to values where the lanes of a warp part.
//!
//! ```text
//! setp.lt.u32 %p1, %tid.x, %r1;
//! @%p1 bra L;   mov %r2, 1;     lanes part here: at L the values of %r2 come over two edges,
//! L:            …               and a phi there is different in the lanes
//! ```
//!
//! Three things follow from a branch whose lanes go different ways:
//!
//! - **Joins.** Where two ways from it first meet, phis differ. Found by labels (as LLVM's divergence analysis does): every
//!   way out of the branch is a label, blocks pass theirs on, and one that gets two is a join, a label of its own. Labels
//!   end at the header of the innermost loop round the branch.
//! - **Leaving a loop apart.** If some lanes leave a loop while others go round again, what they carry out of it comes
//!   from different turns. Outside of it the loop is then itself a branch, and its exits the ways out.
//! - **Being apart.** Two ways lead to a block, and so groups of lanes may execute it one after the other, unless a
//!   barrier of the block stood between: what is loaded there may change in between. And if the block is in a loop, then
//!   one group may be turns ahead when they meet. That is what [`crate::Proof::Bits`] means by `joins`: whether groups
//!   meet only where ways join.

use crate::code::Code;
use crate::graph::{Graph, strongly_connected};
use std::collections::{BTreeMap, BTreeSet};

/// Steps over edges for all branches of a function together.
const MOST_STEPS: usize = 1 << 25;

/// What is known of parting so far.
#[derive(Debug)]
pub(crate) struct Parted<'g> {
    graph: &'g Graph,
    barriers: &'g [bool],
    /// Blocks whose phis differ in the lanes.
    pub(crate) joins: Vec<bool>,
    /// Blocks that groups may execute one after the other.
    pub(crate) apart: Vec<bool>,
    /// Loops that lanes leave in different turns.
    pub(crate) left: Vec<bool>,
    /// Blocks that can be come to again with no barrier on the way.
    pub(crate) cycles: Vec<bool>,
    /// Branches, and loops, that are done.
    done: BTreeSet<Origin>,
    steps: usize,
    /// Was that more than is affordable?
    pub(crate) is_exhausted: bool,
}

/// Where lanes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Block(u32),
    Loop(u32),
}

impl<'g> Parted<'g> {
    pub(crate) fn new(graph: &'g Graph, code: &'g Code) -> Self {
        let blocks: Vec<u32> = (0u32..).zip(&graph.successors).map(|(block, _)| block).collect();
        let mut cycles = vec![false; graph.len()];
        let onward = |block: u32| match code.barriers[block as usize] {
            true => &[][..],
            false => &graph.successors[block as usize][..],
        };
        for component in strongly_connected(&blocks, onward, |_| true) {
            component.iter().for_each(|&block| cycles[block as usize] = true);
        }
        Parted {
            graph,
            barriers: &code.barriers,
            joins: vec![false; graph.len()],
            apart: vec![false; graph.len()],
            left: vec![false; graph.loops.len()],
            cycles,
            done: BTreeSet::new(),
            steps: 0,
            is_exhausted: false,
        }
    }

    /// Lanes part at the end of a block. `false` if that was known.
    pub(crate) fn at(&mut self, block: u32) -> bool {
        let ways: Vec<(u32, u32)> =
            self.graph.successors[block as usize].iter().map(|&next| (block, next)).collect();
        if ways.len() < 2 || !self.done.insert(Origin::Block(block)) {
            return false;
        }
        self.be_apart(&ways.iter().map(|way| way.1).collect::<Vec<_>>());
        let around = self.graph.innermost[block as usize];
        self.label(&ways, around);
        true
    }

    /// Lanes may go on one after the other from a block, all of them the same way.
    pub(crate) fn behind(&mut self, block: u32) {
        let all = self.reached(&self.graph.successors[block as usize].clone());
        self.mark_apart(all);
    }

    /// All blocks may be executed apart.
    pub(crate) fn everywhere(&mut self) {
        self.apart.iter_mut().for_each(|apart| *apart = true);
    }

    /// What two of the ways lead to with no barrier between is executed apart.
    fn be_apart(&mut self, ways: &[u32]) {
        let apart = match ways {
            [one, other] => {
                let (one, other) = (self.reached(&[*one]), self.reached(&[*other]));
                one.into_iter().zip(other).map(|(one, other)| one && other).collect()
            }
            // Of more, as few compilers write, what any leads to.
            _ => self.reached(ways),
        };
        self.mark_apart(apart);
    }

    fn mark_apart(&mut self, blocks: Vec<bool>) {
        for (apart, more) in self.apart.iter_mut().zip(blocks) {
            *apart |= more;
        }
    }

    /// The blocks that are come to from `first`, those included, with no barrier on the way.
    fn reached(&mut self, first: &[u32]) -> Vec<bool> {
        let mut seen = vec![false; self.graph.len()];
        let mut waiting = first.to_vec();
        while let Some(block) = waiting.pop() {
            if std::mem::replace(&mut seen[block as usize], true) {
                continue;
            }
            self.step();
            if !self.barriers[block as usize] && !self.is_exhausted {
                waiting.extend(&self.graph.successors[block as usize]);
            }
        }
        seen
    }

    fn step(&mut self) {
        self.steps += 1;
        self.is_exhausted |= self.steps > MOST_STEPS;
    }

    /// Finds the joins of `ways`, which are edges, inside the loop `around`.
    fn label(&mut self, ways: &[(u32, u32)], around: Option<u32>) {
        let graph = self.graph;
        let inside = |block: u32| around.is_none_or(|around| graph.is_in(block, around));
        let is_header =
            |block: u32| around.is_some_and(|around| graph.loops[around as usize].headers.contains(&block));
        // An irreducible loop has no turns to speak of: all in it differs.
        if let Some(around) = around
            && graph.loops[around as usize].headers.len() != 1
        {
            for &block in &graph.loops[around as usize].blocks {
                self.joins[block as usize] = true;
            }
            self.leave(around);
            return;
        }
        // The label of each edge that is reached: that of the block that it leads out of, or of the way.
        let is_way = |edge: (u32, u32)| ways.contains(&edge);
        let mut labels: BTreeMap<u32, Label> = BTreeMap::new();
        let mut waiting: BTreeSet<u32> =
            ways.iter().map(|way| way.1).filter(|&block| inside(block)).collect();
        let mut arrived: Vec<(u32, u32)> = ways.to_vec();
        let mut steps = 0;
        while let Some(block) = waiting.pop_first() {
            let mut label = None;
            for &from in &graph.predecessors[block as usize] {
                steps += 1;
                let edge = (from, block);
                let incoming = match is_way(edge) {
                    true => Some(Label::Way(edge)),
                    // Labels do not go on from the header.
                    false => labels.get(&from).copied().filter(|_| !is_header(from)),
                };
                label = match (label, incoming) {
                    (None, other) | (other, None) => other,
                    (Some(a), Some(b)) if a == b => Some(a),
                    _ => Some(Label::Join(block)),
                };
            }
            if self.steps + steps > MOST_STEPS {
                self.is_exhausted = true;
                return;
            }
            // Once a join, always one.
            if labels.get(&block) == Some(&Label::Join(block)) {
                label = Some(Label::Join(block));
            }
            let Some(label) = label else { continue };
            if label == Label::Join(block) {
                self.joins[block as usize] = true;
            }
            if labels.insert(block, label) == Some(label) || is_header(block) {
                continue;
            }
            for &next in &graph.successors[block as usize] {
                if inside(next) {
                    waiting.insert(next);
                } else {
                    arrived.push((block, next));
                }
            }
        }
        self.steps += steps;
        let Some(around) = around else { return };
        // Do all that leave and all that go round again come from one join?
        let mut ends: Vec<Option<Label>> =
            graph.loops[around as usize].headers.iter().map(|header| labels.get(header).copied()).collect();
        for edge in arrived.into_iter().filter(|edge| !inside(edge.1)) {
            ends.push(if is_way(edge) { Some(Label::Way(edge)) } else { labels.get(&edge.0).copied() });
        }
        if ends.windows(2).any(|pair| pair[0] != pair[1]) {
            self.leave(around);
        }
    }

    /// Lanes leave a loop in different turns.
    fn leave(&mut self, one: u32) {
        if !self.done.insert(Origin::Loop(one)) {
            return;
        }
        self.left[one as usize] = true;
        let exits = self.graph.loops[one as usize].exits.clone();
        self.label(&exits, self.graph.loops[one as usize].parent);
    }
}

/// Where lanes that come over an edge were last together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// A way out of where they parted.
    Way((u32, u32)),
    /// A join of such ways.
    Join(u32),
}
