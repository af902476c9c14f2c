//! Finds what counters never exceed, so that 32 bits hold them.
//!
//! ```text
//! sync += 4, sync += 16, no way back      at most 20: 5 in units of 4, and 32 lanes' fit 32 bits
//! the same in a loop                      at most 4 units a cycle: exact in launches below 2^30 cycles
//! sync += 1, sync += 16, in a loop        that limit would be short: 64 bits
//! ```
//!
//! A state that is only ever increased by constants is kept in units of their common divisor. Without a branch back each
//! site runs at most once in a thread, which bounds the sum for good. With one, a warp begins at most one instruction a
//! cycle, so that the sum is below the cycles of the launch times the largest increase at a site: exact up to a length of
//! launches, which the manifest states and readers check, as they do for differences of clocks.

use crate::bodies::Site;
use crate::emit::increases;
use nt_ir::program::{Limit, Op, Program, StateId, Type};
use nt_ptx::syntax::Module;
use nt_ptx::{ModuleInfo, flow};

/// How a counter is kept in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    /// What one in the register stands for; not 0.
    pub(crate) unit: u32,
    /// What the register never exceeds.
    pub(crate) most: u32,
}

/// Counters by state, and up to where they are exact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    counters: Vec<Option<Counter>>,
    pub(crate) limits: Vec<Limit>,
}

/// Limits shorter than this, half a second, are not worth a register.
const SHORTEST: u64 = 1 << 30;

/// What is known of a state's increases.
#[derive(Debug, Clone, Copy)]
struct Increases {
    /// The common divisor of all amounts; 0 where there are none.
    unit: u64,
    /// The sum of all amounts, and of the initial value.
    sum: u64,
    /// The largest at one site.
    largest: u64,
}

impl Bounds {
    /// How a state is kept in 32 bits, if it is narrower there than it was declared.
    pub(crate) fn counter(&self, state: StateId) -> Option<Counter> {
        self.counters.get(state.0 as usize).copied().flatten()
    }
}

/// Finds the counters of a kernel.
pub(crate) fn run(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    program: &Program,
    function: usize,
    sites: &[Site<'_>],
    // Are there sites in functions that the kernel calls, once or more often?
    calls: bool,
) -> Bounds {
    let increases: Vec<Option<Increases>> = (0..)
        .zip(&program.states)
        .map(|(state, declared)| match declared.ty {
            Type::U64 => of_state(sites, StateId(state), declared.init),
            // Others have a sign, or gain nothing.
            _ => None,
        })
        .collect();
    if increases.iter().all(Option::is_none) {
        return Bounds::default();
    }
    let flow = flow(module, info, function);
    let returns = calls || flow.is_cut || !flow.backward.is_empty();
    let mut bounds = Bounds::default();
    for increases in increases {
        let counter =
            increases.and_then(|increases| if returns { in_loops(increases) } else { at_most(increases) });
        bounds.limits.extend(counter.and_then(|(_, limit)| limit).map(Limit::LaunchCycles));
        bounds.counters.push(counter.map(|(counter, _)| counter));
    }
    bounds
}

/// The increases of a state; `None` if anything else happens to it.
fn of_state(sites: &[Site<'_>], state: StateId, init: u64) -> Option<Increases> {
    let mut all = Increases { unit: init, sum: init, largest: 0 };
    for site in sites {
        let mut here = 0u64;
        for body in &site.bodies {
            let code = &body.code.code;
            if !code.iter().any(|inst| matches!(inst.op, Op::WriteState(to, _) if to == state)) {
                continue;
            }
            for (inst, by) in code.iter().zip(increases(&body.code)) {
                if !matches!(inst.op, Op::WriteState(to, _) if to == state) {
                    continue;
                }
                let by = by.and_then(|by| code.iter().find(|inst| inst.result == Some(by)))?;
                let Op::Const(amount) = by.op else { return None };
                here = here.checked_add(amount)?;
                all.unit = divisor(all.unit, amount);
            }
        }
        all.sum = all.sum.checked_add(here)?;
        all.largest = all.largest.max(here);
    }
    Some(all)
}

/// Where each site runs at most once.
fn at_most(all: Increases) -> Option<(Counter, Option<u64>)> {
    let unit = u32::try_from(all.unit).ok().filter(|&unit| unit != 0)?;
    let most = u32::try_from(all.sum / all.unit).ok()?;
    Some((Counter { unit, most }, None))
}

/// Where sites may run again and again: with the cycles below which a launch must stay.
fn in_loops(all: Increases) -> Option<(Counter, Option<u64>)> {
    let unit = u32::try_from(all.unit).ok().filter(|&unit| unit != 0)?;
    let rate = all.largest.div_ceil(all.unit).max(1);
    // What it begins with, and one site of the last cycle, are taken off.
    let room = (1u64 << 32).checked_sub(1 + rate + all.sum / all.unit)?;
    let limit = room / rate;
    // Rounded down to a power of two, for those who read it.
    let limit = 1u64 << limit.checked_ilog2()?;
    (SHORTEST <= limit).then_some((Counter { unit, most: u32::MAX }, Some(limit)))
}

/// The greatest common divisor; that of 0 and a number is the number.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_by_what_they_are_increased_by() {
        let all = |unit, sum, largest| Increases { unit, sum, largest };
        let counter = |unit, most| Counter { unit, most };
        assert_eq!(at_most(all(4, 20, 16)), Some((counter(4, 5), None)));
        assert_eq!(at_most(all(1, 1 << 32, 1 << 32)), None);
        assert_eq!(at_most(all(0, 0, 0)), None);
        // 2^32 cycles less those that the last site and the sum of all sites need: 2^31 is what is left of a power of two.
        assert_eq!(in_loops(all(4, 8, 4)), Some((counter(4, u32::MAX), Some(1 << 31))));
        assert_eq!(in_loops(all(2048, 1 << 20, 2048)), Some((counter(2048, u32::MAX), Some(1 << 31))));
        assert_eq!(in_loops(all(8, 24, 16)), Some((counter(8, u32::MAX), Some(1 << 30))));
        assert_eq!(in_loops(all(1, 17, 16)), None);
        assert_eq!((divisor(0, 6), divisor(4, 6), divisor(16, 0)), (6, 2, 16));
    }
}
