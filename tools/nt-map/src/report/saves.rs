//! What arrays with a capacity say of themselves: how many saves there were, how many are there, and which units had more
//! than their room. The columns of what is there are told as any map's.

use nt_trace::Distribution;
use nt_trace::ntt::{Saves, Tally, Value};

use super::events::{Loss, NAMED};

/// The arrays of one map in the launches of a group.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Saves that were taken, as far as units have said so.
    pub(super) taken: u64,
    /// Those that are there.
    pub(super) stored: u64,
    /// Saves a unit, of those that have counted them.
    pub(super) by_unit: Distribution,
    /// Launches in which saves found no room.
    pub(super) losses: Vec<Loss>,
    /// Launches with units that left without a count: how many, and the first of them.
    pub(super) uncounted: Vec<(u64, u64, Vec<u64>)>,
}

impl Taken {
    /// Adds the data of this launch.
    pub(super) fn add(&mut self, launch: u64, saves: &Saves<'_>) {
        let mut most: Vec<(u64, u64)> = Vec::new();
        let (mut dropped, mut units, mut without, mut first) = (0, 0, 0, Vec::new());
        for unit in 0..saves.units() {
            let tally @ Tally { counted, taken, stored } = saves.tally(unit);
            self.taken = self.taken.saturating_add(taken);
            self.stored = self.stored.saturating_add(stored);
            if counted {
                self.by_unit.add(Value::Unsigned(taken));
            } else {
                without += 1;
                if first.len() < NAMED {
                    first.push(unit);
                }
            }
            let lost = tally.lost();
            if lost > 0 {
                units += 1;
                dropped += lost;
                // The most stay in front: few are named, and millions may come.
                let at = most.partition_point(|&(_, other)| other >= lost);
                if at < NAMED {
                    most.insert(at, (unit, lost));
                    most.truncate(NAMED);
                }
            }
        }
        if units > 0 {
            self.losses.push(Loss { launch, dropped, units, most });
        }
        if without > 0 {
            self.uncounted.push((launch, without, first));
        }
    }
}
