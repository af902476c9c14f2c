//! Records of arrays with a capacity: which of a unit's places is next, and how many were taken when lanes leave.
//!
//! ```text
//!     mov.b32 %nt_r3, %nt_c_last;                      the place: as many as this lane has taken (`wrap`: modulo CAP)
//!     setp.eq.u32 %nt_p1, %nt_r0, 0;                   %nt_r0 = %lanemask_lt: does lane 0 save?
//!     @%nt_p1 add.u32 %nt_c_last, %nt_c_last, 1;
//!     setp.lt.u32 %nt_p2, %nt_r3, 8;
//!     @%nt_p1 bra $nt_L3_1;
//!     …                                                another lane does: the place comes from a counter of its warp
//! $nt_L3_1:
//!     cvt.u64.u32 %nt_d5, %nt_r3;
//!     mad.lo.u64 %nt_d6, %nt_d4, 11, %nt_d5;           %nt_d4 = index of the warp, 11 records of each
//!     setp.lt.and.u64 %nt_p3, %nt_d6, %nt_d7, %nt_p2;  below the capacity
//!     @!%nt_p3 bra $nt_L3;
//! ```
//!
//! A warp that has not parted saves by lane 0, which counts in a register. Lanes that are without it share places behind
//! its own, by an atomic: no two groups of a warp that has parted meet in one, and those that are together pay nothing.
//! Threads have a place each, side by side with those of their neighbours. `docs/injection.md`, Arrays with a capacity.

use super::operand::{Class, Operand, Own};
use super::save::Save;
use super::{Refusal, Span};
use crate::clones::{Carried, Passed};
use crate::context::Fill;
use crate::sites::Kind;
use nt_ir::program::{MapId, MapKind, Policy, Unit, UnitRoom, ValueId};

/// Bytes of a warp's count, and of the half of it that lanes other than lane 0 add to.
const WARP_COUNT: u32 = 8;
const OF_OTHERS: u32 = 4;
/// Bytes of a thread's count.
const THREAD_COUNT: u32 = 4;

/// An array with a capacity.
#[derive(Clone, Copy)]
struct Array<'a> {
    /// How the context counts it.
    number: u32,
    unit: Unit,
    room: UnitRoom,
    policy: Policy,
    /// How many records this lane has taken.
    cursor: Operand<'a>,
}

/// The lane that saves to an array of warps.
#[derive(Clone, Copy)]
pub(super) struct Leader<'a> {
    /// Is this it?
    pub(super) leads: Operand<'a>,
    /// `None` where all of the warp are here, so that lane 0 leads.
    parted: Option<Parted<'a>>,
}

/// What is known of lanes that may have parted.
#[derive(Clone, Copy)]
struct Parted<'a> {
    /// The lanes below this one.
    below: Operand<'a>,
    /// Those of them that are here.
    lower: Operand<'a>,
}

impl<'a> Span<'a> {
    /// `.reg .b32 %nt_c_last; `: what arrays with a capacity have at function level.
    pub(super) fn slot_registers(&self) -> String {
        self.plan.slots.list.iter().map(|&map| format!(".reg .b32 {}; ", self.count_of(map))).collect()
    }

    /// Nothing is taken at the kernel's first span; a clone is told what was.
    pub(super) fn initialise_slots(&mut self) {
        if self.site.found.kind != Kind::Entry {
            return;
        }
        for &map in &self.plan.slots.list {
            let cursor = self.count_of(map);
            match self.passed(Carried::Cursor(map)) {
                Some(Passed { offset, .. }) => {
                    self.line(format_args!("ld.param.b32 {cursor}, [{}ctx+{offset}];", self.plan.prefix));
                }
                None => self.line(format_args!("mov.b32 {cursor}, 0;")),
            }
        }
    }

    /// The counts of a lane that leaves, one more than it has taken, at a place that is for nothing else.
    pub(super) fn store_counts(&mut self) -> Result<(), Refusal> {
        if self.site.found.kind != Kind::Exit || !self.site.bodies.is_empty() {
            return Ok(());
        }
        for &map in &self.plan.slots.list {
            let array = self.array(map)?;
            let counts = self.context_word(Fill::Counts(array.number))?;
            let units = self.context_half(Fill::Units(array.number))?;
            let units = self.op(Class::B64, "cvt.u64.u32", &[units]);
            let unit = self.index(array.unit);
            let (bytes, stores) = match array.unit {
                Unit::Thread => (THREAD_COUNT, self.op(Class::Pred, "setp.lt.u64", &[unit, units])),
                Unit::Warp | Unit::Block => {
                    let lane = self.special("%laneid");
                    let counts = self.op(Class::Pred, "setp.eq.u32", &[lane, Operand::word(0)]);
                    (WARP_COUNT, self.op(Class::Pred, "setp.lt.and.u64", &[unit, units, counts]))
                }
            };
            let address = self.scaled(unit, bytes, counts);
            let taken = self.op(Class::B32, "add.u32", &[array.cursor, Operand::word(1)]);
            self.line(format_args!("@{stores} st.global.b32 [{address}], {taken};"));
        }
        Ok(())
    }

    /// Elects the lane that saves to an array of warps.
    pub(super) fn leader(&mut self, predicate: Option<(usize, ValueId)>) -> Result<Leader<'a>, Refusal> {
        if self.site.found.kind == Kind::Entry && predicate.is_none() {
            let leads = self.elected(Unit::Warp, None)?.ok_or("it elects no lane of a warp")?;
            return Ok(Leader { leads, parted: None });
        }
        let group = self.group(predicate)?;
        // Once more what the election has read: of both ptxas makes one, but not behind a branch.
        let below = self.special("%lanemask_lt");
        let lower = match group.lower {
            Some(lower) => lower,
            // Another site has elected; these lanes are the same.
            None => self.op(Class::B32, "and.b32", &[below, group.mask]),
        };
        Ok(Leader { leads: group.leads, parted: Some(Parted { below, lower }) })
    }

    /// Saves a record in the next place of its unit, or branches to `skip` where there is none; the lanes that do not save
    /// have jumped.
    pub(super) fn save_next(
        &mut self,
        save: Save<'a>,
        leader: Option<Leader<'a>>,
        skip: &str,
    ) -> Result<(), Refusal> {
        let array = self.array(save.map)?;
        let index = match leader {
            Some(leader) => self.next_of_warp(array, leader, skip)?,
            None => self.next_of_thread(array, skip)?,
        };
        self.save(save, array.number, index, "")
    }

    /// The index of the next record of a warp, which is below the capacity.
    fn next_of_warp(
        &mut self,
        array: Array<'a>,
        leader: Leader<'a>,
        skip: &str,
    ) -> Result<Operand<'a>, Refusal> {
        let warp = self.index(Unit::Warp);
        let place = self.own_place(array);
        let is_own = leader.parted.map(|Parted { below, lower }| {
            (lower, self.op(Class::Pred, "setp.eq.u32", &[below, Operand::word(0)]))
        });
        self.take(array, is_own.map(|(_, is_own)| is_own));
        let is_room = self.has_place(array, place, array.room.own);
        if let Some((lower, is_own)) = is_own {
            let goes_on = self.label();
            let target = self.target(goes_on);
            self.line(format_args!("@{is_own} bra {target};"));
            let mark = self.enter();
            self.place_of_others(array, warp, lower, place, is_room)?;
            self.leave(mark);
            self.place_label(goes_on);
        }
        let records = Operand::long(u64::from(array.room.records()));
        let place = self.op(Class::B64, "cvt.u64.u32", &[place]);
        let index = self.op(Class::B64, "mad.lo.u64", &[warp, records, place]);
        self.below_capacity(array, index, is_room, skip)?;
        Ok(index)
    }

    /// The same of a thread: those of all threads lie side by side.
    fn next_of_thread(&mut self, array: Array<'a>, skip: &str) -> Result<Operand<'a>, Refusal> {
        let place = self.own_place(array);
        self.take(array, None);
        let is_room = self.has_place(array, place, array.room.own);
        let thread = self.index(Unit::Thread);
        let units = self.context_half(Fill::Units(array.number))?;
        let index = self.op(Class::B64, "mad.wide.u32", &[place, units, thread]);
        self.below_capacity(array, index, is_room, skip)?;
        Ok(index)
    }

    /// The place of this lane's next record: as many as it has taken, or modulo CAP. A register that may be written.
    fn own_place(&mut self, array: Array<'a>) -> Operand<'a> {
        let (cursor, own) = (array.cursor, array.room.own);
        match array.policy {
            Policy::Wrap if 1 < own => self.remainder_u32(cursor, own),
            Policy::Wrap => self.op(Class::B32, "mov.b32", &[Operand::word(0)]),
            Policy::Drop => self.op(Class::B32, "mov.b32", &[cursor]),
        }
    }

    /// One more is taken, where `is_own` holds.
    fn take(&mut self, array: Array<'a>, is_own: Option<Operand<'a>>) {
        let cursor = array.cursor;
        let guard = is_own.map_or_else(String::new, |is_own| format!("@{is_own} "));
        self.line(format_args!("{guard}add.u32 {cursor}, {cursor}, 1;"));
    }

    /// Is that place one of so many? Where the newest are kept, there is always one.
    fn has_place(&mut self, array: Array<'a>, place: Operand<'a>, of: u32) -> Option<Operand<'a>> {
        let drops = array.policy == Policy::Drop;
        drops.then(|| self.op(Class::Pred, "setp.lt.u32", &[place, Operand::word(of)]))
    }

    /// The place of a record that a lane other than lane 0 saves, from the counter of its warp.
    ///
    /// As where chunks of streams are claimed, the address looks different in each lane, by 8 bytes for each lane below: that
    /// leads has none below, and without it ptxas elects a lane once more.
    fn place_of_others(
        &mut self,
        array: Array<'a>,
        warp: Operand<'a>,
        lower: Operand<'a>,
        place: Operand<'a>,
        is_room: Option<Operand<'a>>,
    ) -> Result<(), Refusal> {
        let UnitRoom { own, others } = array.room;
        let units = self.context_half(Fill::Units(array.number))?;
        let units = self.op(Class::B64, "cvt.u64.u32", &[units]);
        let leads = self.op(Class::Pred, "setp.eq.u32", &[lower, Operand::word(0)]);
        let counts = self.op(Class::Pred, "setp.lt.and.u64", &[warp, units, leads]);
        let counter = self.context_word(Fill::Counts(array.number))?;
        let counter = self.scaled(warp, WARP_COUNT, counter);
        let rank = self.op(Class::B32, "popc.b32", &[lower]);
        let counter = self.op(Class::B64, "mad.wide.u32", &[rank, Operand::word(8), counter]);
        let taken = self.temp(Class::B32);
        // Of a warp that the launch does not have.
        self.line(format_args!("mov.b32 {taken}, {};", u32::MAX));
        self.line(format_args!("@{counts} atom.global.add.u32 {taken}, [{counter}+{OF_OTHERS}], 1;"));
        match (array.policy, is_room) {
            (Policy::Drop, Some(is_room)) => {
                self.line(format_args!("setp.lt.u32 {is_room}, {taken}, {others};"));
                self.line(format_args!("add.u32 {place}, {taken}, {own};"));
            }
            _ if 1 < others => {
                let of = self.remainder_u32(taken, others);
                self.line(format_args!("add.u32 {place}, {of}, {own};"));
            }
            // There is but one place.
            _ => self.line(format_args!("mov.b32 {place}, {own};")),
        }
        Ok(())
    }

    /// Jumps where the record is not one that there is room for.
    fn below_capacity(
        &mut self,
        array: Array<'a>,
        index: Operand<'a>,
        is_room: Option<Operand<'a>>,
        skip: &str,
    ) -> Result<(), Refusal> {
        let capacity = self.context_word(Fill::Capacity(array.number))?;
        let is_stored = match is_room {
            Some(is_room) => self.op(Class::Pred, "setp.lt.and.u64", &[index, capacity, is_room]),
            None => self.op(Class::Pred, "setp.lt.u64", &[index, capacity]),
        };
        self.line(format_args!("@!{is_stored} bra {skip};"));
        Ok(())
    }

    fn array(&self, map: MapId) -> Result<Array<'a>, Refusal> {
        let declared = self.probe.program.maps.get(map.0 as usize);
        let declared = declared.ok_or("its program has no such map")?;
        let (MapKind::Slots { policy, .. }, Some(room)) = (declared.kind, declared.room()) else {
            return Err("its program has no such array".into());
        };
        let (number, unit) = (self.map_number(map)?, declared.unit);
        Ok(Array { number, unit, room, policy, cursor: self.count_of(map) })
    }

    /// The register that counts what this lane has taken.
    fn count_of(&self, map: MapId) -> Operand<'a> {
        let declared = self.probe.program.maps.get(map.0 as usize);
        let name = declared.map_or("", |map| map.name.as_str());
        Operand::Own { prefix: self.plan.prefix, own: Own::Cursor(name) }
    }
}
