//! The typed view of one data frame of an array with a capacity: what each unit saved, in order.
//!
//! ```text
//! array<warp>[4] wrap      warp 7: lane 0 saved 6 times, other lanes once
//! counts   (7, 1)          records  [4][5][2][3]  [0][ ]
//! saves    own 2, own 3, own 4, own 5, other 0     taken 7, stored 5, 2 overwritten
//! ```
//!
//! Saves are numbered within their cursor, that of the unit (of a warp, of its lane 0) or that of a warp's other lanes,
//! as they were taken: where new ones have replaced old ones, the first that is left is not number 0.
//!
//! A unit without a count has left its kernel by no probed exit. Its records are told by their presence: how many it took
//! is not known, and where it may have gone round, neither are their numbers.
//!
//! Promises: never a panic, whatever the bytes; all checks are made once, in [`Saves::new`]; a walk over all units costs
//! no more than there are bytes.

use super::records::{Mismatch, Records, Row};
use crate::ntm::{Map, Policy, Slots};
use nt_wire::slots;

/// A data frame of an array with a capacity.
#[derive(Debug, Clone)]
pub struct Saves<'b> {
    records: Records<'b>,
    counts: &'b [u8],
    slots: Slots,
    units: u64,
}

/// Who counts a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cursor {
    /// The thread, or the warp's lane 0.
    Own,
    /// The warp's other lanes, together.
    Other,
}

/// One save of a unit that is still there.
#[derive(Debug, Clone, Copy)]
pub struct Save<'t, 'b> {
    /// Who counts it.
    pub cursor: Cursor,
    /// How many that cursor had taken before; `None` where that is not known.
    pub sequence: Option<u64>,
    /// What was saved.
    pub row: Row<'t, 'b>,
}

/// How many saves of a unit there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Has it said how many it took? Else `taken` are those that are known of.
    pub counted: bool,
    /// That it took.
    pub taken: u64,
    /// That are there.
    pub stored: u64,
}

impl Tally {
    /// Saves that were dropped or overwritten, as the policy says.
    pub fn lost(&self) -> u64 {
        self.taken.saturating_sub(self.stored)
    }
}

/// The saves of one cursor of a unit.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Where its records are among the unit's.
    first: u32,
    room: u32,
    /// Saves taken, if that is known.
    taken: Option<u32>,
}

impl<'b> Saves<'b> {
    /// `units` and `capacity` are the data frame's.
    ///
    /// # Errors
    /// The map has no capacity, or `data` is too short for counts and records of so many units.
    pub fn new(map: &Map, units: u64, capacity: u64, data: &'b [u8]) -> Result<Self, Mismatch> {
        let per_unit = map.slots.map_or(1, |slots| slots.per_unit()).max(1);
        let (stride, room) = (map.stride.saturating_mul(per_unit), capacity / u64::from(per_unit));
        let mismatch = Mismatch { bytes: data.len() as u64, units, capacity: room, stride };
        let (Some(slots), Some(shape)) = (map.slots, map.slots_shape()) else { return Err(mismatch) };
        let (counts, records) = slots::split(data, units, shape).map_err(|_| mismatch)?;
        let all = slots::records(units, shape).filter(|&all| all <= capacity).ok_or(mismatch)?;
        let records = Records::within(map, all, capacity, records).map_err(|_| mismatch)?;
        Ok(Saves { records, counts, slots, units })
    }

    /// Units that the launch has.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// How many saves of a unit there is room for.
    pub fn per_unit(&self) -> u32 {
        self.slots.per_unit()
    }

    /// What becomes of a save that finds no room.
    pub fn policy(&self) -> Policy {
        self.slots.policy
    }

    /// Are there two cursors?
    pub fn has_others(&self) -> bool {
        self.slots.others != 0
    }

    /// How many saves of a unit there are.
    pub fn tally(&self, unit: u64) -> Tally {
        let mut tally = Tally { counted: true, ..Tally::default() };
        for run in self.runs(unit) {
            let (taken, stored) = match run.taken {
                Some(taken) => (taken, taken.min(run.room)),
                None => {
                    tally.counted = false;
                    let there = (0..run.room).filter(|&slot| self.row(unit, run.first + slot).is_some());
                    let there = there.count() as u32;
                    (there, there)
                }
            };
            tally.taken += u64::from(taken);
            tally.stored += u64::from(stored);
        }
        tally
    }

    /// The saves of a unit that are there: those of its own cursor first, each in the order in which they were taken.
    pub fn of<'t>(&'t self, unit: u64) -> impl Iterator<Item = Save<'t, 'b>> {
        self.runs(unit).into_iter().zip([Cursor::Own, Cursor::Other]).flat_map(move |(run, cursor)| {
            let (first, end, known) = match (run.taken, self.slots.policy) {
                (Some(taken), Policy::Drop) => (0, taken.min(run.room), true),
                (Some(taken), Policy::Wrap) => (taken.saturating_sub(run.room), taken, true),
                // Only a unit that has filled all of its room may have gone round.
                (None, Policy::Wrap) if self.is_full(unit, run) => (0, run.room, false),
                (None, _) => (0, run.room, true),
            };
            (first..end).filter_map(move |number| {
                // There is room where there are saves.
                let slot = run.first + number.checked_rem(run.room)?;
                let sequence = known.then_some(u64::from(number));
                Some(Save { cursor, sequence, row: self.row(unit, slot)? })
            })
        })
    }

    /// Its own cursor, and that of its warp's other lanes.
    fn runs(&self, unit: u64) -> [Run; 2] {
        let Slots { capacity, others, .. } = self.slots;
        let (own, other) = if others == 0 {
            (self.counts.as_chunks::<4>().0.get(unit as usize).map_or(0, |word| u32::from_le_bytes(*word)), 0)
        } else {
            let word = self.counts.as_chunks::<8>().0.get(unit as usize);
            let word = word.map_or(0, |word| u64::from_le_bytes(*word));
            (word as u32, (word >> 32) as u32)
        };
        [
            Run { first: 0, room: capacity, taken: own.checked_sub(1) },
            Run { first: capacity, room: others, taken: Some(other) },
        ]
    }

    fn is_full(&self, unit: u64, run: Run) -> bool {
        (0..run.room).all(|slot| self.row(unit, run.first + slot).is_some())
    }

    fn row<'t>(&'t self, unit: u64, slot: u32) -> Option<Row<'t, 'b>> {
        // `new` has seen that the number of all records has 64 bits.
        let record = if self.slots.others == 0 {
            u64::from(slot) * self.units + unit
        } else {
            unit * u64::from(self.slots.per_unit()) + u64::from(slot)
        };
        self.records.row(record)
    }
}
