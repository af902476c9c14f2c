//! The values of all nodes: from nothing, upwards, until nothing changes.
//!
//! A value is not known yet, a [`Form`], or varying, and only ever moves on in that order; the known bits of a form only
//! get fewer. Branches on values that turn out to vary part the lanes ([`Parted`]), which makes more values vary.

use crate::code::{Code, Node, Turn, Value};
use crate::eval::{self, Trust};
use crate::form::{Form, Varying};
use crate::graph::Graph;
use crate::operation::Operation;
use crate::part::Parted;
use std::collections::VecDeque;

/// How often a value is computed at most, in the mean: what is not done then is given up.
const MOST_VISITS: usize = 64;
/// How often a phi may change before only the zeros below its lowest bit are kept.
const PATIENCE: u8 = 4;

/// What is known of a value: nothing yet, a form, or that it varies.
pub(crate) type State = Option<Result<Form, Varying>>;

/// The values of a function under some trust.
pub(crate) struct Solution<'c> {
    graph: &'c Graph,
    code: &'c Code,
    trust: &'c Trust,
    states: Vec<State>,
    changes: Vec<u8>,
    parted: Parted<'c>,
}

/// Who reads whom, which is the same under any trust.
#[derive(Debug, Default)]
pub(crate) struct Users {
    first: Vec<u32>,
    users: Vec<Value>,
    /// The blocks that turn by a value.
    turns: Vec<(Value, u32)>,
    /// Those that do so behind a loop that the value is of.
    late_turns: Vec<(Value, u32)>,
    /// The nodes that look at how lanes part.
    special: Vec<Value>,
}

impl Users {
    pub(crate) fn of(graph: &Graph, code: &Code) -> Users {
        let mut first = vec![0u32; code.nodes.len() + 1];
        let inputs =
            || (0u32..).zip(&code.nodes).flat_map(|(user, node)| node.inputs.iter().map(move |&i| (i, user)));
        for (input, _) in inputs() {
            first[input as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut next = first.clone();
        let mut users = vec![0; first.last().map_or(0, |&last| last as usize)];
        for (input, user) in inputs() {
            let at = &mut next[input as usize];
            users[*at as usize] = user;
            *at += 1;
        }
        let mut turns: Vec<(Value, u32)> = (0u32..)
            .zip(&code.turns)
            .filter_map(|(block, turn)| match turn {
                Turn::By(value) => Some((*value, block)),
                Turn::Together => None,
            })
            .collect();
        turns.sort_unstable();
        // Is a value read outside of a loop that it is of?
        let leaves = |value: Value, block: u32| {
            let from = code.nodes[value as usize].block;
            graph.innermost[from as usize].is_some_and(|inner| !graph.is_in(block, inner))
        };
        let late_turns = turns.iter().copied().filter(|&(value, block)| leaves(value, block)).collect();
        let special = (0u32..).zip(&code.nodes).filter(|(_, node)| {
            let looks = matches!(
                node.operation,
                Operation::Phi | Operation::Load { .. } | Operation::Shuffle { .. } | Operation::Common
            );
            looks || node.inputs.iter().any(|&input| leaves(input, node.block))
        });
        let special = special.map(|(value, _)| value).collect();
        Users { first, users, turns, late_turns, special }
    }

    fn of_value(&self, value: Value) -> &[Value] {
        let (from, to) = (self.first[value as usize], self.first[value as usize + 1]);
        &self.users[from as usize..to as usize]
    }
}

impl<'c> Solution<'c> {
    /// `None` if it takes too long.
    pub(crate) fn of(
        graph: &'c Graph,
        code: &'c Code,
        users: &Users,
        is_entry: bool,
        trust: &'c Trust,
    ) -> Option<Solution<'c>> {
        let mut parted = Parted::new(graph, code);
        if !is_entry {
            // Lanes may have come here one after the other.
            parted.everywhere();
        }
        for (block, _) in (0u32..).zip(&code.calls).filter(|(_, has_call)| **has_call) {
            parted.behind(block);
        }
        let count = code.nodes.len();
        let mut solution =
            Solution { graph, code, trust, states: vec![None; count], changes: vec![0; count], parted };
        solution.run(users).then_some(solution)
    }

    fn run(&mut self, users: &Users) -> bool {
        let mut waiting: VecDeque<Value> = (0u32..).zip(&self.code.nodes).map(|(value, _)| value).collect();
        let mut is_waiting = vec![true; waiting.len()];
        let mut visits = 0;
        while let Some(value) = waiting.pop_front() {
            is_waiting[value as usize] = false;
            visits += 1;
            if visits > (self.code.nodes.len() + 64) * MOST_VISITS || self.parted.is_exhausted {
                return false;
            }
            let Some(new) = self.next(value) else { continue };
            self.states[value as usize] = Some(new);
            let mut wake = |value: Value| {
                if !std::mem::replace(&mut is_waiting[value as usize], true) {
                    waiting.push_back(value);
                }
            };
            users.of_value(value).iter().for_each(|&user| wake(user));
            let from = users.turns.partition_point(|turn| turn.0 < value);
            let turning = users.turns[from..].iter().take_while(|turn| turn.0 == value);
            let mut is_news = self.part(turning);
            if is_news {
                users.special.iter().for_each(|&value| wake(value));
            }
            // Lanes that left a loop apart may part by what they carried out of it, and so on.
            while is_news {
                is_news = self.part(users.late_turns.iter());
            }
        }
        true
    }

    /// Parts lanes at those of the branches that they take differently. `true` if at any of them that is new.
    fn part<'t>(&mut self, turns: impl Iterator<Item = &'t (Value, u32)>) -> bool {
        let mut is_news = false;
        for &(value, block) in turns {
            let differs = match self.read(value, block) {
                Some(Ok(form)) => !form.is_uniform(),
                Some(Err(_)) => true,
                None => false,
            };
            is_news |= differs && self.parted.at(block);
        }
        is_news
    }

    /// The state of a value, if it is another than before.
    fn next(&mut self, value: Value) -> Option<Result<Form, Varying>> {
        let node = &self.code.nodes[value as usize];
        let mut new = match node.operation {
            Operation::Phi => self.phi(value, node)?,
            _ => {
                let mut inputs = Vec::with_capacity(node.inputs.len());
                for &input in &node.inputs {
                    inputs.push((input, self.read(input, node.block)?));
                }
                let is_apart = self.is_apart(node);
                eval::evaluate(self.code, node, &inputs, is_apart, self.trust)
            }
        };
        let before = match &self.states[value as usize] {
            None => return Some(new),
            // What varies varies for good; it may only turn out to come from memory.
            Some(Err(before)) => {
                let is_news = !before.indirect && new.as_ref().is_err_and(|after| after.indirect);
                return is_news.then_some(Err(Varying { indirect: true }));
            }
            Some(Ok(before)) => before,
        };
        if let Ok(after) = &mut new {
            let changes = &mut self.changes[value as usize];
            *changes = changes.saturating_add(1);
            // Bits are only forgotten.
            after.known = after.known.or_else(before.known);
            if after.linear != before.linear {
                after.linear = None;
            }
            if after == before {
                return None;
            }
            if node.operation == Operation::Phi && *changes > PATIENCE {
                after.known = after.known.widened(node.width);
            }
            if after.strides != before.strides {
                return Some(Err(Varying { indirect: false }));
            }
        }
        Some(new)
    }

    /// A value as it is in a block: what a loop carries out varies if lanes leave it in different turns.
    fn read(&self, value: Value, block: u32) -> Option<Result<&Form, Varying>> {
        let state = self.states[value as usize].as_ref()?;
        let node = &self.code.nodes[value as usize];
        Some(match state {
            Ok(_) if self.is_carried_out(node, block) => Err(Varying { indirect: false }),
            Ok(form) => Ok(form),
            Err(varying) => Err(*varying),
        })
    }

    fn is_carried_out(&self, node: &Node, block: u32) -> bool {
        if matches!(node.operation, Operation::Leaf(_)) {
            return false;
        }
        let mut loops = self.graph.loops_of(node.block).take_while(|&one| !self.graph.is_in(block, one));
        loops.any(|one| self.parted.left[one as usize])
    }

    /// May groups of lanes that are together later have executed a node one after the other?
    fn is_apart(&self, node: &Node) -> bool {
        node.is_after_call || self.parted.apart[node.block as usize] && !node.is_synchronised
    }

    fn phi(&self, value: Value, node: &Node) -> Option<Result<Form, Varying>> {
        let block = node.block as usize;
        // Groups that meet anywhere may be in different turns of a loop.
        let is_ahead = !self.trust.joins && self.parted.apart[block] && self.parted.cycles[block];
        let differs = self.parted.joins[block] || is_ahead;
        let mut only: Option<Value> = None;
        let mut joined: Option<Form> = None;
        let mut varying: Option<Varying> = None;
        for &input in node.inputs.iter().filter(|&&input| input != value) {
            let Some(state) = self.read(input, node.block) else { continue };
            let is_other = only.is_some_and(|only| only != input);
            only = Some(input);
            match (state, &joined) {
                (Err(new), _) => {
                    let indirect = new.indirect || varying.is_some_and(|varying| varying.indirect);
                    varying = Some(Varying { indirect });
                }
                (Ok(form), None) => joined = Some(form.clone()),
                (Ok(form), Some(before)) => {
                    let is_same =
                        !differs || !is_other || before == form && form.known.as_constant().is_some();
                    match before.or_else(form).filter(|_| is_same) {
                        Some(both) => joined = Some(both),
                        None => varying = varying.or(Some(Varying { indirect: false })),
                    }
                }
            }
        }
        match (varying, joined) {
            (Some(varying), _) => Some(Err(varying)),
            (None, Some(form)) => Some(Ok(form)),
            (None, None) => None,
        }
    }

    /// What is known of a value in a block, in the end.
    pub(crate) fn value(&self, value: Value, block: u32) -> Result<&Form, Varying> {
        self.read(value, block).unwrap_or(Err(Varying { indirect: false }))
    }
}
