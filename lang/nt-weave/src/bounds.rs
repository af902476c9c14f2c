//! Finds what counters never exceed, so that 32 bits hold them.
//!
//! ```text
//! two loads of 4 bytes and a store of 16, no way back:      sync is at most 24, and 32 lanes' fit 32 bits
//! the same in a loop:                                       nothing is known, 64 bits
//! ```
//!
//! Without a branch back each site runs at most once in a thread, so a state that is only increased by constants is at
//! most the sum of them all. That is a proof; no limit has to be stated.

use crate::bodies::Site;
use crate::emit::increases;
use nt_ir::program::{Op, Program, StateId, Type};
use nt_ptx::syntax::Module;
use nt_ptx::{ModuleInfo, flow};

/// For each state of the program, what it never exceeds; `None` where that is not known, or does not fit 32 bits.
pub(crate) fn run(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    program: &Program,
    function: usize,
    sites: &[Site<'_>],
) -> Vec<Option<u32>> {
    let mut most: Vec<Option<u64>> =
        program.states.iter().map(|state| unsigned(state.ty, state.init)).collect();
    for body in sites.iter().flat_map(|site| &site.bodies) {
        let by = increases(&body.code);
        for (inst, by) in body.code.code.iter().zip(by) {
            let Op::WriteState(StateId(state), _) = inst.op else { continue };
            let by = by.and_then(|by| body.code.code.iter().find(|inst| inst.result == Some(by)));
            let amount = by.and_then(|inst| match inst.op {
                Op::Const(amount) => Some(amount),
                _ => None,
            });
            if let Some(most) = most.get_mut(state as usize) {
                *most = most.zip(amount).and_then(|(most, amount)| most.checked_add(amount));
            }
        }
    }
    if most.iter().all(Option::is_none) {
        return vec![None; most.len()];
    }
    let flow = flow(module, info, function);
    if flow.is_cut || !flow.backward.is_empty() {
        return vec![None; most.len()];
    }
    most.into_iter().map(|most| most.and_then(|most| u32::try_from(most).ok())).collect()
}

/// A constant of a type without a sign, of 64 bits: others gain nothing.
fn unsigned(ty: Type, bits: u64) -> Option<u64> {
    (ty == Type::U64).then_some(bits)
}
