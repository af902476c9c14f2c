//! Drops what nothing uses, and numbers values anew in the order of their definition.
//!
//! ```text
//! %0: u64 uniform = state start       %0: u64 uniform = state start
//! %1: u64 uniform = clock        ->   state end = %0
//! state end = %0
//! state unread = %1
//! ```
//!
//! Wanted are saves, sums, and assignments of states that a wanted value reads; a clock that nobody uses is not read. A probe
//! without effects is dropped, a state that is never read too. Maps stay: readers expect them.

use crate::program::{Inst, Op, Probe, Program, StateId, ValueId};

pub(super) fn run(program: &mut Program) {
    let live_states = live_states(program);
    for probe in &mut program.probes {
        sweep(probe, &live_states);
    }
    program.probes.retain(|probe| !probe.code.is_empty());

    // New numbers for the states that stay.
    let mut numbers = Vec::new();
    let mut next = 0;
    for live in &live_states {
        numbers.push(StateId(next));
        next += u32::from(*live);
    }
    let mut live = live_states.iter();
    program.states.retain(|_| live.next() == Some(&true));
    for probe in &mut program.probes {
        for inst in &mut probe.code {
            if let Op::ReadState(state) | Op::WriteState(state, _) = &mut inst.op {
                *state = numbers[state.0 as usize];
            }
        }
    }
}

/// The states that a wanted value reads. Assigning one wants more values, so this goes on until nothing is added.
fn live_states(program: &Program) -> Vec<bool> {
    let mut states = vec![false; program.states.len()];
    loop {
        let before = states.clone();
        for probe in &program.probes {
            let live = live_values(probe, &before);
            for inst in &probe.code {
                if let (Some(result), Op::ReadState(state)) = (inst.result, &inst.op)
                    && live[result.0 as usize]
                {
                    states[state.0 as usize] = true;
                }
            }
        }
        if states == before {
            return states;
        }
    }
}

fn is_wanted(inst: &Inst, states: &[bool]) -> bool {
    match inst.op {
        Op::Save { .. } | Op::Aggregate { .. } => true,
        Op::WriteState(state, _) => states[state.0 as usize],
        _ => false,
    }
}

fn live_values(probe: &Probe, states: &[bool]) -> Vec<bool> {
    let mut live = vec![false; probe.values.len()];
    let has_effect = probe.code.iter().any(|inst| is_wanted(inst, states));
    if let (Some(predicate), true) = (probe.predicate, has_effect) {
        live[predicate.0 as usize] = true;
    }
    for inst in probe.code.iter().rev() {
        let wanted = match inst.result {
            Some(result) => live[result.0 as usize],
            None => is_wanted(inst, states),
        };
        if wanted {
            for id in inst.op.operands().iter().chain(&inst.guard) {
                live[id.0 as usize] = true;
            }
        }
    }
    live
}

/// Keeps the wanted instructions of a probe and renumbers their values; `states` tells which states are wanted.
pub(crate) fn sweep(probe: &mut Probe, states: &[bool]) {
    let live = live_values(probe, states);
    let mut numbers = vec![ValueId(0); probe.values.len()];
    let mut values = Vec::new();
    probe.code.retain_mut(|inst| {
        let wanted = match inst.result {
            Some(result) => live[result.0 as usize],
            None => is_wanted(inst, states),
        };
        if !wanted {
            return false;
        }
        inst.for_each_use(&mut |id| *id = numbers[id.0 as usize]);
        if let Some(result) = &mut inst.result {
            let number = ValueId(values.len() as u32);
            values.push(probe.values[result.0 as usize]);
            numbers[result.0 as usize] = number;
            *result = number;
        }
        true
    });
    let has_effect = probe.code.iter().any(|inst| inst.op.is_effect());
    probe.predicate = probe.predicate.filter(|_| has_effect).map(|id| numbers[id.0 as usize]);
    probe.values = values;
}
