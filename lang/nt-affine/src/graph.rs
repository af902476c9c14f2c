//! The reachable blocks of a function in an order that dominators and loops need.
//!
//! Blocks are numbered by place in reverse postorder, so that only the branches back of loops go to smaller numbers.

use nt_ptx::Flow;
use std::ops::Range;

/// How deep loops may nest; what is deeper is given up.
const MOST_DEPTH: u32 = 48;

/// Blocks, edges, dominators, loops.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Of each block its statements.
    pub(crate) statements: Vec<Range<u32>>,
    pub(crate) successors: Vec<Vec<u32>>,
    pub(crate) predecessors: Vec<Vec<u32>>,
    /// The immediate dominator; of the first block itself.
    pub(crate) dominator: Vec<u32>,
    /// When a walk over the tree of dominators comes to a block and leaves it.
    walk: Vec<(u32, u32)>,
    pub(crate) loops: Vec<Loop>,
    /// The innermost loop of each block.
    pub(crate) innermost: Vec<Option<u32>>,
}

/// Blocks that can all be reached from each other.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    pub(crate) parent: Option<u32>,
    /// Where it is entered; one block, unless a jump leads into its middle.
    pub(crate) headers: Vec<u32>,
    pub(crate) blocks: Vec<u32>,
    /// Edges that lead out of it.
    pub(crate) exits: Vec<(u32, u32)>,
    depth: u32,
}

impl Graph {
    /// `None` where loops nest too deep.
    pub(crate) fn of(flow: &Flow) -> Option<Graph> {
        let order = postorder(flow);
        let mut number = vec![u32::MAX; flow.blocks.len()];
        for (new, &old) in (0..).zip(order.iter().rev()) {
            number[old as usize] = new;
        }
        let mut graph = Graph::default();
        for &old in order.iter().rev() {
            let block = &flow.blocks[old as usize];
            graph.statements.push(block.statements.clone());
            // Successors of what is reachable are.
            graph.successors.push(block.successors.iter().map(|&next| number[next as usize]).collect());
        }
        graph.predecessors = vec![Vec::new(); graph.len()];
        for (from, nexts) in (0..).zip(&graph.successors) {
            for &to in nexts {
                graph.predecessors[to as usize].push(from);
            }
        }
        graph.find_dominators();
        graph.innermost = vec![None; graph.len()];
        graph.find_loops().then_some(graph)
    }

    pub(crate) fn len(&self) -> usize {
        self.successors.len()
    }

    /// Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm".
    fn find_dominators(&mut self) {
        let mut dominator = vec![u32::MAX; self.len()];
        dominator.iter_mut().take(1).for_each(|first| *first = 0);
        let mut changed = true;
        while changed {
            changed = false;
            for block in 1..self.len() {
                let mut known =
                    self.predecessors[block].iter().copied().filter(|&p| dominator[p as usize] != u32::MAX);
                let Some(first) = known.next() else { continue };
                let mut common = first;
                for mut other in known {
                    while common != other {
                        if common > other {
                            common = dominator[common as usize];
                        } else {
                            other = dominator[other as usize];
                        }
                    }
                }
                changed |= dominator[block] != common;
                dominator[block] = common;
            }
        }
        let mut children = vec![Vec::new(); self.len()];
        for (block, &parent) in (0u32..).zip(&dominator).skip(1) {
            children[parent as usize].push(block);
        }
        self.walk = vec![(0, 0); self.len()];
        let mut clock = 0;
        let mut stack: Vec<(u32, usize)> = if self.len() == 0 { Vec::new() } else { vec![(0, 0)] };
        while let Some((block, next)) = stack.pop() {
            clock += 1;
            if next == 0 {
                self.walk[block as usize].0 = clock;
            }
            match children[block as usize].get(next) {
                Some(&child) => stack.extend([(block, next + 1), (child, 0)]),
                None => self.walk[block as usize].1 = clock,
            }
        }
        self.dominator = dominator;
    }

    /// Does every way to `b` lead through `a`?
    pub(crate) fn dominates(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.walk[a as usize], self.walk[b as usize]);
        a.0 <= b.0 && b.1 <= a.1
    }

    /// Blocks at which definitions of `block` meet others: its dominance frontier, all of them at once.
    pub(crate) fn frontiers(&self) -> Vec<Vec<u32>> {
        let mut frontiers = vec![Vec::new(); self.len()];
        for (block, from) in (0u32..).zip(&self.predecessors) {
            if from.len() < 2 && block != 0 {
                continue;
            }
            for &start in from {
                let mut at = start;
                loop {
                    let is_above = at == self.dominator[block as usize] && block != 0;
                    if is_above || frontiers[at as usize].last() == Some(&block) {
                        break;
                    }
                    frontiers[at as usize].push(block);
                    if at == 0 {
                        break;
                    }
                    at = self.dominator[at as usize];
                }
            }
        }
        frontiers
    }

    /// Loops are what is strongly connected; those inside are what stays so without where it is entered.
    fn find_loops(&mut self) -> bool {
        let all: Vec<u32> = (0u32..).zip(&self.successors).map(|(block, _)| block).collect();
        let mut waiting = vec![(all, None::<u32>)];
        let mut level = vec![0u32; self.len()];
        let mut marks = 0;
        while let Some((blocks, parent)) = waiting.pop() {
            marks += 1;
            blocks.iter().for_each(|&block| level[block as usize] = marks);
            let inside = |block: u32| level[block as usize] == marks;
            let components = strongly_connected(&blocks, |from| &self.successors[from as usize], inside);
            for mut component in components {
                component.sort_unstable();
                let number = u32::try_from(self.loops.len()).unwrap_or(u32::MAX);
                let is_own = |block: &u32| component.binary_search(block).is_ok();
                let mut one = Loop { parent, ..Loop::default() };
                one.depth = parent.map_or(1, |parent| self.loops[parent as usize].depth + 1);
                if one.depth > MOST_DEPTH {
                    return false;
                }
                for &block in &component {
                    let from_outside = self.predecessors[block as usize].iter().any(|p| !is_own(p));
                    if from_outside || block == 0 {
                        one.headers.push(block);
                    }
                    let out = self.successors[block as usize].iter().filter(|next| !is_own(next));
                    one.exits.extend(out.map(|&next| (block, next)));
                    self.innermost[block as usize] = Some(number);
                }
                let rest = component
                    .iter()
                    .copied()
                    .filter(|block| one.headers.binary_search(block).is_err())
                    .collect();
                one.blocks = component;
                self.loops.push(one);
                waiting.push((rest, Some(number)));
            }
        }
        true
    }

    /// The loops that a block is in, from the innermost out.
    pub(crate) fn loops_of(&self, block: u32) -> impl Iterator<Item = u32> {
        let innermost = self.innermost[block as usize];
        std::iter::successors(innermost, |&inner| self.loops[inner as usize].parent)
    }

    /// Is a block in a loop?
    pub(crate) fn is_in(&self, block: u32, one: u32) -> bool {
        self.loops[one as usize].blocks.binary_search(&block).is_ok()
    }
}

fn postorder(flow: &Flow) -> Vec<u32> {
    let mut order = Vec::new();
    let mut seen = vec![false; flow.blocks.len()];
    let mut stack: Vec<(u32, usize)> = Vec::new();
    if let Some(first) = seen.first_mut() {
        *first = true;
        stack.push((0, 0));
    }
    while let Some((block, next)) = stack.pop() {
        match flow.blocks[block as usize].successors.get(next) {
            Some(&to) => {
                stack.push((block, next + 1));
                if !std::mem::replace(&mut seen[to as usize], true) {
                    stack.push((to, 0));
                }
            }
            None => order.push(block),
        }
    }
    order
}

/// Tarjan's components of those `blocks` that are `inside`; of single blocks those that lead to themselves.
pub(crate) fn strongly_connected<'g>(
    blocks: &[u32],
    successors: impl Fn(u32) -> &'g [u32],
    inside: impl Fn(u32) -> bool,
) -> Vec<Vec<u32>> {
    const NEW: u32 = u32::MAX;
    let size = blocks.iter().max().map_or(0, |&last| last as usize + 1);
    let (mut index, mut low) = (vec![NEW; size], vec![NEW; size]);
    let mut is_open = vec![false; size];
    let (mut open, mut found, mut count) = (Vec::new(), Vec::new(), 0);
    for &root in blocks {
        if index[root as usize] != NEW {
            continue;
        }
        let mut stack = vec![(root, 0usize)];
        while let Some((block, next)) = stack.pop() {
            let at = block as usize;
            if next == 0 {
                (index[at], low[at]) = (count, count);
                count += 1;
                open.push(block);
                is_open[at] = true;
            }
            if let Some(&to) = successors(block).get(next) {
                stack.push((block, next + 1));
                if inside(to) {
                    if index[to as usize] == NEW {
                        stack.push((to, 0));
                    } else if is_open[to as usize] {
                        low[at] = low[at].min(index[to as usize]);
                    }
                }
                continue;
            }
            if let Some(&(parent, _)) = stack.last() {
                low[parent as usize] = low[parent as usize].min(low[at]);
            }
            if low[at] == index[at] {
                let start = open.iter().rposition(|&other| other == block).unwrap_or(0);
                let component = open.split_off(start);
                component.iter().for_each(|&member| is_open[member as usize] = false);
                if component.len() > 1 || successors(block).contains(&block) {
                    found.push(component);
                }
            }
        }
    }
    found
}
