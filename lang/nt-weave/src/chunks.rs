//! How many slots a chunk of a stream has.
//!
//! ```text
//! if (…) { save }  f();  save      f: { save save }      no way back: at most 4 events of one slot: 8 slots with the first
//! for (…) { save }                                       round and round: 64
//! ```
//!
//! Few where a lane saves few events, so that the first chunks of many warps fit a stream: one of them then holds all. The most
//! where it goes round and claims one chunk after the other: a claim costs time of the whole device (docs/performance.md).
//! What a lane saves on its way through a function counts at each call of it; of functions that call themselves there is no
//! most.

use crate::bodies::Site;
use crate::callees::Calls;
use crate::streams::most_slots;
use nt_ir::Prepared;
use nt_ir::layout::EVENT_SLOTS;
use nt_ir::program::MapId;
use nt_ptx::Flow;
use std::collections::BTreeMap;

const LEAST: u32 = 4;
const MOST: u32 = EVENT_SLOTS + 1;

/// The slots of a chunk of a map, in a kernel whose sites these are.
pub(crate) fn slots(
    probe: &Prepared,
    map: MapId,
    kernel: usize,
    calls: &Calls,
    flows: &BTreeMap<usize, Flow>,
    sites: &[Site<'_>],
) -> u32 {
    let of_one = sites.chunk_by(|one, other| one.found.function == other.found.function);
    let sites: BTreeMap<usize, &[Site<'_>]> =
        of_one.filter_map(|sites| Some((sites.first()?.found.function, sites))).collect();
    let mut of_functions: BTreeMap<usize, Option<u32>> = BTreeMap::new();
    // Callees first: mostly they stand first, so that one round does. What is left then calls itself.
    loop {
        let before = of_functions.len();
        for (&function, flow) in flows.iter().filter(|(_, flow)| !flow.blocks.is_empty()) {
            let called = calls.within(function).iter();
            let is_known = |callee: usize| of_functions.contains_key(&callee) || !flows.contains_key(&callee);
            if of_functions.contains_key(&function) || !called.clone().all(|call| is_known(call.callee)) {
                continue;
            }
            let mut blocks = vec![Some(0u32); flow.blocks.len()];
            let mut add = |statement: Option<u32>, slots: Option<u32>| {
                // The entry is in the first.
                let block = statement.and_then(|at| flow.block_of(at)).unwrap_or(0);
                if let Some(sum) = blocks.get_mut(block) {
                    *sum = sum.zip(slots).map(|(sum, slots)| sum.saturating_add(slots));
                }
            };
            for call in called {
                add(Some(call.statement), of_functions.get(&call.callee).copied().unwrap_or(Some(0)));
            }
            for site in sites.get(&function).copied().unwrap_or_default() {
                let events =
                    site.bodies.iter().flat_map(|body| &body.events).filter(|event| event.map == map);
                let statement = site.found.statement.or_else(|| site.found.next.checked_sub(1));
                add(statement, Some(events.map(|event| most_slots(probe, event)).sum()));
            }
            of_functions.insert(function, longest(flow, &blocks));
        }
        if of_functions.len() == before {
            break;
        }
    }
    let most = of_functions.get(&kernel).copied().flatten();
    let slots = most.map_or(MOST, |most| most.saturating_add(1).min(MOST));
    slots.next_power_of_two().clamp(LEAST, MOST)
}

/// The most slots on a way through a function; none where there is no most.
fn longest(flow: &Flow, blocks: &[Option<u32>]) -> Option<u32> {
    let in_loop = loops(flow);
    // What comes before each block; edges back are of loops that have no slots.
    let mut before = vec![0u32; blocks.len()];
    let mut most = 0;
    for (number, block) in flow.blocks.iter().enumerate() {
        let own = blocks.get(number).copied().flatten()?;
        if 0 < own && in_loop.get(number) != Some(&false) {
            return None;
        }
        let here = before.get(number).unwrap_or(&0).saturating_add(own);
        most = most.max(here);
        for &next in block.successors.iter().filter(|&&next| number < next as usize) {
            if let Some(slot) = before.get_mut(next as usize) {
                *slot = here.max(*slot);
            }
        }
    }
    Some(most)
}

/// Which blocks may run more than once; some that do not are among them.
///
/// A round of a loop leaves its last block in text order backward, and all that lies between is covered by such steps.
fn loops(flow: &Flow) -> Vec<bool> {
    let mut in_loop = vec![flow.is_cut; flow.blocks.len().max(1)];
    for &(branch, label) in &flow.backward {
        if let (Some(from), Some(to)) = (flow.block_of(label), flow.block_of(branch)) {
            in_loop.get_mut(from..=to).into_iter().flatten().for_each(|block| *block = true);
        }
    }
    in_loop
}
