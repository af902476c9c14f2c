//! Where a state is read that a function called before may have assigned: its register still holds the old value.
//!
//! ```text
//! call f;                     f assigns the state
//! …                           t = clock();  here would make it new again
//! st.global [%rd1], %f1;      { @x = sum(clock() - t); }    reads what is old
//! ```

use super::Calls;
use crate::bodies::Site;
use crate::sites::Kind;
use nt_ir::program::{Op, StateId};
use nt_ptx::syntax::Module;
use nt_ptx::{ModuleInfo, flow};
use std::collections::BTreeSet;

/// What happens to a state at a place of a function.
#[derive(Clone, Copy)]
enum Event {
    /// A call after which the caller's value is old.
    Call,
    /// It is assigned in every lane.
    Write,
    Read,
}

/// May a function read a state that one it called before may have assigned?
pub(super) fn read_behind(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    calls: &Calls,
    assigning: &BTreeSet<usize>,
    function: usize,
    sites: &[Site<'_>],
    state: StateId,
) -> bool {
    let mut events: Vec<((u32, u8), Event)> = Vec::new();
    for call in calls.within(function).iter().filter(|call| assigning.contains(&call.callee)) {
        events.push(((call.statement, 1), Event::Call));
    }
    if events.is_empty() {
        return false;
    }
    for site in sites.iter().filter(|site| site.found.function == function) {
        let found = &site.found;
        let order = if matches!(found.kind, Kind::After(_)) { 2 } else { 0 };
        let number = found.statement.unwrap_or(found.next);
        let is_whole = found.guard.is_none() || found.reach;
        for body in &site.bodies {
            for inst in &body.code.code {
                match inst.op {
                    Op::ReadState(read) if read == state => events.push(((number, order), Event::Read)),
                    Op::WriteState(written, _)
                        if written == state && inst.guard.is_none() && is_whole && body.asked.is_none() =>
                    {
                        events.push(((number, order), Event::Write));
                    }
                    _ => {}
                }
            }
        }
    }
    // Stable: what happens at one site stays in its order.
    events.sort_by_key(|(key, _)| *key);
    let flow = flow(module, info, function);
    let block_of = |number: u32| flow.block_of(number).unwrap_or(flow.blocks.len().saturating_sub(1));
    let mut is_old = vec![flow.is_cut; flow.blocks.len()];
    let mut waiting: Vec<usize> = (0..flow.blocks.len()).rev().collect();
    while let Some(block) = waiting.pop() {
        let mut old = is_old.get(block).copied().unwrap_or(false);
        for (_, event) in events.iter().filter(|((number, _), _)| block_of(*number) == block) {
            match event {
                Event::Call => old = true,
                Event::Write => old = false,
                Event::Read if old => return true,
                Event::Read => {}
            }
        }
        let next = flow.blocks.get(block).map_or(&[][..], |block| &block.successors);
        for &next in next {
            if let Some(slot) = is_old.get_mut(next as usize)
                && old
                && !*slot
            {
                *slot = true;
                waiting.push(next as usize);
            }
        }
    }
    false
}
