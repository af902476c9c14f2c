//! The data flow of a function: every value once (static single assignment), with what it is made of.
//!
//! ```text
//! mov.u32 %r1, %tid.x;          1 = Leaf(Thread(0))
//! L: add.s32 %r1, %r1, %r2;     2 = Phi(1, 3); 3 = Add(2, …)
//! ```
//!
//! A register that is written once, before all of its uses, is one value. Others get a `Phi` where ways meet (Cytron et
//! al., with the blocks where a register is not live left in: what nothing reads costs nothing but memory).
//!
//! Because every use is dominated by what it uses, the value that a lane has at a place follows from the values of the
//! phis and loads that it saw last. That is what the proof of `docs/affine.md` rests on.

use crate::graph::Graph;
use crate::operation::{Leaf, Operation};
use crate::read::{BlockCode, Event, Parting, Reader, Register, Source, Write};
use std::collections::HashMap;

/// A value, numbered.
pub(crate) type Value = u32;

/// How a value comes about.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) operation: Operation,
    pub(crate) inputs: Vec<Value>,
    /// Of the value, in bits.
    pub(crate) width: u32,
    pub(crate) block: u32,
    /// See [`Write`].
    pub(crate) is_synchronised: bool,
    pub(crate) is_after_call: bool,
}

/// A statement that accesses memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) statement: u32,
    pub(crate) address: Value,
    pub(crate) block: u32,
}

/// A block's way on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// All lanes go on alike.
    Together,
    /// Each as the value says.
    By(Value),
}

/// The data flow.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) nodes: Vec<Node>,
    pub(crate) accesses: Vec<Place>,
    /// By block.
    pub(crate) turns: Vec<Turn>,
    pub(crate) barriers: Vec<bool>,
    pub(crate) calls: Vec<bool>,
}

/// More values than any function that a compiler writes has.
const MOST_NODES: usize = 1 << 23;

/// `None` if there are too many values.
pub(crate) fn code(graph: &Graph, reader: &mut Reader<'_, '_>) -> Option<Code> {
    let blocks: Vec<BlockCode> =
        graph.statements.iter().map(|statements| reader.block(statements.clone())).collect();
    let phis = place_phis(graph, reader, &blocks)?;
    let mut builder = Builder {
        graph,
        reader,
        code: Code {
            turns: vec![Turn::Together; blocks.len()],
            barriers: blocks.iter().map(|block| block.has_barrier).collect(),
            calls: blocks.iter().map(|block| block.has_call).collect(),
            ..Code::default()
        },
        current: vec![UNDEFINED; reader.widths.len()],
        undo: Vec::new(),
        leaves: HashMap::new(),
        phis: Vec::new(),
    };
    // The value of what was never written.
    builder.node(Operation::Varying { indirect: false }, Vec::new(), 64, 0);
    for (block, registers) in (0u32..).zip(phis) {
        let all = registers.into_iter().map(|register| (register, builder.phi(register, block))).collect();
        builder.phis.push(all);
    }
    builder.rename(&blocks);
    (builder.code.nodes.len() <= MOST_NODES).then_some(builder.code)
}

const UNDEFINED: Value = 0;

/// The registers that need a phi, by block.
fn place_phis(graph: &Graph, reader: &Reader<'_, '_>, blocks: &[BlockCode]) -> Option<Vec<Vec<Register>>> {
    // Of each register the blocks that write it; and whether it is read where no single write dominates.
    let mut writes: Vec<Vec<u32>> = vec![Vec::new(); reader.widths.len()];
    for (block, code) in (0u32..).zip(blocks) {
        for event in &code.events {
            if let Event::Write(write) = event {
                let list = &mut writes[write.register as usize];
                if write.guard.is_some() && list.is_empty() {
                    // It may keep what it had before, from the function's start on.
                    list.push(0);
                }
                if list.last() != Some(&block) {
                    list.push(block);
                }
            }
        }
    }
    let mut written = vec![u32::MAX; writes.len()];
    let mut needs: Vec<bool> = writes.iter().map(|list| list.len() > 1).collect();
    for (block, code) in (0u32..).zip(blocks) {
        let mut read = |source: &Source, written: &[u32]| {
            if let Source::Register(register) = *source
                && let [only] = writes[register as usize][..]
            {
                let is_here = written[register as usize] == block;
                let is_before = if only == block { is_here } else { graph.dominates(only, block) };
                needs[register as usize] |= !is_before;
            }
        };
        for event in &code.events {
            match event {
                Event::Write(write) => {
                    write.inputs.iter().chain(&write.guard).for_each(|source| read(source, &written));
                    written[write.register as usize] = block;
                }
                Event::Access { address, .. } => read(address, &written),
            }
        }
        if let Parting::By(source) = &code.parting {
            read(source, &written);
        }
    }
    let frontiers = graph.frontiers();
    let mut phis = vec![Vec::new(); graph.len()];
    let mut count = 0;
    let mut has_phi = vec![u32::MAX; graph.len()];
    for (register, list) in (0u32..).zip(&writes) {
        if !needs[register as usize] {
            continue;
        }
        let mut waiting = list.clone();
        while let Some(block) = waiting.pop() {
            for &join in &frontiers[block as usize] {
                if std::mem::replace(&mut has_phi[join as usize], register) != register {
                    phis[join as usize].push(register);
                    waiting.push(join);
                    count += 1;
                    if count > MOST_NODES {
                        return None;
                    }
                }
            }
        }
    }
    Some(phis)
}

struct Builder<'b, 'a, 's> {
    graph: &'b Graph,
    reader: &'b Reader<'a, 's>,
    code: Code,
    /// What registers hold at this place of the walk.
    current: Vec<Value>,
    /// What they held before.
    undo: Vec<(Register, Value)>,
    leaves: HashMap<Leaf, Value>,
    phis: Vec<Vec<(Register, Value)>>,
}

impl Builder<'_, '_, '_> {
    fn node(&mut self, operation: Operation, inputs: Vec<Value>, width: u32, block: u32) -> Value {
        let number = u32::try_from(self.code.nodes.len()).unwrap_or(u32::MAX);
        let node = Node { operation, inputs, width, block, is_synchronised: false, is_after_call: false };
        self.code.nodes.push(node);
        number
    }

    fn phi(&mut self, register: Register, block: u32) -> Value {
        let count = self.graph.predecessors[block as usize].len() + usize::from(block == 0);
        let width = self.reader.width(register).min(64);
        self.node(Operation::Phi, vec![UNDEFINED; count], width, block)
    }

    /// Gives each register its values, down the tree of dominators.
    fn rename(&mut self, blocks: &[BlockCode]) {
        let mut children = vec![Vec::new(); blocks.len()];
        for (block, &parent) in (0u32..).zip(&self.graph.dominator).skip(1) {
            children[parent as usize].push(block);
        }
        let mut stack: Vec<(u32, usize, usize)> = Vec::new();
        if !blocks.is_empty() {
            stack.push((0, 0, 0));
        }
        while let Some((block, next, before)) = stack.pop() {
            let mut before = before;
            if next == 0 {
                before = self.undo.len();
                self.block(block, &blocks[block as usize]);
            }
            match children[block as usize].get(next) {
                Some(&child) => stack.extend([(block, next + 1, before), (child, 0, 0)]),
                None => {
                    for (register, value) in self.undo.drain(before..).rev() {
                        self.current[register as usize] = value;
                    }
                }
            }
        }
    }

    fn block(&mut self, block: u32, code: &BlockCode) {
        for (register, value) in self.phis[block as usize].clone() {
            self.set(register, value);
        }
        for event in &code.events {
            match event {
                Event::Write(write) => self.write(block, write),
                Event::Access { statement, address } => {
                    let address = self.source(*address);
                    self.code.accesses.push(Place { statement: *statement, address, block });
                }
            }
        }
        if let Parting::By(source) = code.parting {
            self.code.turns[block as usize] = Turn::By(self.source(source));
        }
        for &next in &self.graph.successors[block as usize] {
            let edge = self.graph.predecessors[next as usize].iter().position(|&from| from == block);
            for &(register, phi) in &self.phis[next as usize] {
                if let Some(input) = edge.and_then(|edge| self.code.nodes[phi as usize].inputs.get_mut(edge))
                {
                    *input = self.current[register as usize];
                }
            }
        }
    }

    fn write(&mut self, block: u32, write: &Write) {
        let inputs: Vec<Value> = write.inputs.iter().map(|&source| self.source(source)).collect();
        // A copy is what it is a copy of.
        if let (Operation::Copy, [original], None) = (write.operation, &inputs[..], write.guard) {
            let node = &self.code.nodes[*original as usize];
            if node.width == write.width || matches!(node.operation, Operation::Leaf(_)) {
                self.set(write.register, *original);
                return;
            }
        }
        let mut value = self.node(write.operation, inputs, write.width, block);
        if let Some(node) = self.code.nodes.last_mut() {
            (node.is_synchronised, node.is_after_call) = (write.is_synchronised, write.is_after_call);
        }
        if let Some(guard) = write.guard {
            let old = self.current[write.register as usize];
            let guard = self.source(guard);
            value = self.node(Operation::Guarded, vec![guard, value, old], write.width, block);
        }
        self.set(write.register, value);
    }

    fn set(&mut self, register: Register, value: Value) {
        let old = std::mem::replace(&mut self.current[register as usize], value);
        self.undo.push((register, old));
    }

    fn source(&mut self, source: Source) -> Value {
        match source {
            Source::Register(register) => self.current[register as usize],
            Source::Unknown => UNDEFINED,
            // Constants are as wide as what reads them; registers of the machine have 32 bits.
            Source::Leaf(leaf) => {
                if let Some(&value) = self.leaves.get(&leaf) {
                    return value;
                }
                let value = self.node(Operation::Leaf(leaf), Vec::new(), width_of(leaf), 0);
                self.leaves.insert(leaf, value);
                value
            }
        }
    }
}

fn width_of(leaf: Leaf) -> u32 {
    match leaf {
        Leaf::Constant(_) | Leaf::Uniform => 64,
        Leaf::Parameter { bits, .. } => bits.min(64),
        _ => 32,
    }
}
