//! Effects on memory, in order: which lanes save and add, for which unit, and whether there is room for it.
//!
//! ```text
//!     …                                       elections, and what lanes add up together: before any branch of ours
//!     @!%nt_p0 bra $nt_L1;                    not the elected lane
//!     …                                       %nt_d1 = index of the unit
//!     setp.ge.u64 %nt_p1, %nt_d1, %nt_d2;     %nt_d2 = what its map has room for
//!     @%nt_p1 bra $nt_L1;
//!     …                                       saves and sums
//! ```
//!
//! Lanes that do nothing jump over what saves need. Sums alone stand under a predicate instead. In the middle of a kernel a
//! branch would make the warp meet again. At its end, behind a branch, addresses would be computed when all else is done;
//! without one ptxas puts that between the kernel's loads and what waits for them (gmem_bytes on an H200: 1.014 instead of
//! 1.019 of the kernels' time, for 0.6 registers). So do records of plain values that a warp saves as it leaves (block_sched:
//! 1.015 instead of 1.023, for half a register); their places are made before its clocks are read.

use super::add::{self, Add};
use super::index::Known;
use super::operand::{Class, Operand};
use super::save::Save;
use super::slots::Leader;
use super::stream::Event;
use super::{Refusal, Span, When};
use crate::bodies::Body;
use crate::context::Fill;
use crate::sites::Kind;
use crate::slots::to_slots;
use nt_ir::program::{BinaryOp, Inst, Key, Op, Unit, ValueId};

/// Something that is done to memory.
#[derive(Clone, Copy)]
pub(super) enum Effect<'a> {
    Save(Save<'a>),
    /// A save to an array with a capacity.
    Next(Save<'a>),
    Add(Add<'a>),
    Event(Event<'a>),
}

/// Effects of the same lanes, at the same index.
struct Region<'a> {
    lanes: Lanes<'a>,
    /// Whose index it is; `None` for the multiprocessor's.
    at: Option<Unit>,
    /// The probe that the guard is of; of the effects, if there is no guard, the first one's.
    probe: usize,
    /// Of which probe the lanes are those in which its predicate holds.
    predicate: Option<(usize, ValueId)>,
    /// `None` where the election has seen to it.
    guard: Option<ValueId>,
    effects: Vec<Effect<'a>>,
    /// Who saves to an array of warps with a capacity, once that is known.
    leader: Option<Leader<'a>>,
}

impl Region<'_> {
    fn is_of_events(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::Event(_)))
    }

    /// Is it a save to an array with a capacity, which is alone in its region?
    fn is_of_slots(&self) -> bool {
        matches!(self.effects.first(), Some(Effect::Next(_)))
    }

    fn has_short_events(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::Event(event) if !event.planned.is_long()))
    }
}

/// Which lanes have an effect.
#[derive(Clone, Copy, PartialEq)]
enum Lanes<'a> {
    /// Those that a probe of this unit elects.
    Of(Unit),
    /// One of the last to leave of a warp.
    Last,
    /// One adds for all of them; which, once that is known.
    Together(Option<Operand<'a>>),
}

impl<'a> Span<'a> {
    /// All effects of the span. `end` is the label behind them, which is branched to already if `guarded`.
    pub(super) fn effects(&mut self, end: u32, guarded: bool) -> Result<(), Refusal> {
        let mut regions = self.regions()?;
        // All elections come before the first branch: behind it the lanes of a group may be apart for good, and each
        // part would elect a lane of its own.
        for region in &mut regions {
            match region.lanes {
                Lanes::Of(_) if region.is_of_events() => {
                    if region.has_short_events() {
                        self.group(region.predicate)?;
                    }
                }
                Lanes::Of(Unit::Warp) if region.is_of_slots() => {
                    region.leader = Some(self.leader(region.predicate)?);
                }
                Lanes::Of(unit) => {
                    self.elected(unit, region.predicate)?;
                }
                Lanes::Last => _ = self.last()?,
                Lanes::Together(_) => {
                    let first = self.add_up(&mut region.effects)?;
                    region.lanes = Lanes::Together(Some(first));
                }
            }
        }
        let count = regions.len();
        if 1 < count {
            // What is computed behind one branch is not there behind the next.
            for region in regions.iter().filter(|region| !region.is_of_events()) {
                self.index_of(region.at);
            }
        }
        let mut end_is_used = guarded;
        for (number, region) in regions.into_iter().enumerate() {
            let last = number + 1 == count;
            let skip = if last { end } else { self.label() };
            let used = if region.is_of_events() {
                self.events(&region)?;
                false
            } else if region.is_of_slots() {
                self.slot_region(&region, skip)?
            } else if self.is_predicated(&region) {
                self.predicated_region(&region)?
            } else {
                self.region(&region, skip)?
            };
            if last {
                end_is_used |= used;
            } else if used {
                self.place_label(skip);
            }
        }
        if end_is_used {
            self.place_label(end);
        }
        Ok(())
    }

    /// The effects in order, those next to each other joined that share lanes and index.
    fn regions(&self) -> Result<Vec<Region<'a>>, Refusal> {
        let mut regions: Vec<Region<'a>> = Vec::new();
        let program = &self.probe.program;
        for (p, &probe) in self.probes.iter().enumerate() {
            for (number, inst) in probe.code.iter().enumerate() {
                let mut guard = inst.guard;
                let events = self.site.bodies.get(p).map_or(&[][..], |body| &body.events);
                let planned = events.iter().find(|event| event.inst == number);
                let (effect, at, lanes) = match (&inst.op, planned) {
                    (Op::Save { map, values }, Some(planned)) => {
                        let event = Event { probe: p, map: *map, values, planned };
                        (Effect::Event(event), None, Lanes::Of(Unit::Warp))
                    }
                    (Op::Save { map, values }, None) => {
                        let unit = program.maps.get(map.0 as usize).map_or(probe.unit, |map| map.unit);
                        let save = Save { probe: p, map: *map, values };
                        let effect = match to_slots(program, &inst.op) {
                            None => Effect::Save(save),
                            Some(_) => Effect::Next(save),
                        };
                        (effect, Some(unit), Lanes::Of(unit))
                    }
                    (Op::Aggregate { table, value }, _) => {
                        let keys = program.tables.get(table.0 as usize).map_or(&[][..], |table| &table.keys);
                        let at = keys.iter().find_map(|key| match key {
                            Key::Unit(unit) => Some(*unit),
                            Key::Site(_) | Key::Bounded(_) => None,
                        });
                        let together = self.plan.redux && add::is_of_lanes(program, probe, inst);
                        let add = Add { probe: p, table: *table, value: *value, guard, total: None };
                        if together {
                            guard = None;
                            (Effect::Add(add), at, Lanes::Together(None))
                        } else {
                            let is_last = self.site.bodies.get(p).is_some_and(Body::is_of_last);
                            if is_last && self.varies(p, probe.predicate) {
                                return Err("a `warp` probe at `kernel:exit` adds up for the last lanes to leave, and its \
                                            predicate differs between them, which is not supported yet; ask in an `if`, of \
                                            what is the same in all"
                                    .into());
                            }
                            let lanes = if is_last { Lanes::Last } else { Lanes::Of(probe.unit) };
                            (Effect::Add(add), at, lanes)
                        }
                    }
                    _ => continue,
                };
                let predicate =
                    probe.predicate.filter(|_| lanes == Lanes::Of(Unit::Warp)).map(|value| (p, value));
                // A lane is elected among those in which the predicate holds.
                let guard = guard.filter(|&guard| Some((p, guard)) != predicate);
                match regions.last_mut() {
                    Some(last)
                        if (last.lanes, last.at, last.predicate, last.guard)
                            == (lanes, at, predicate, guard)
                            && last.is_of_events() == matches!(effect, Effect::Event(_))
                            && !(last.is_of_slots() || matches!(effect, Effect::Next(_)))
                            && (guard.is_none() || last.probe == p) =>
                    {
                        last.effects.push(effect);
                    }
                    _ => {
                        let effects = vec![effect];
                        regions.push(Region { lanes, at, probe: p, predicate, guard, effects, leader: None });
                    }
                }
            }
        }
        Ok(regions)
    }

    /// Does a value differ between the lanes of a warp?
    fn varies(&self, p: usize, value: Option<ValueId>) -> bool {
        let values = self.probes.get(p).map_or(&[][..], |probe| &probe.values);
        value.is_some_and(|value| values.get(value.0 as usize).is_none_or(|value| !value.uniform))
    }

    /// Makes the places of what is saved for good at an exit: which lane saves, whether there is room, and where. This comes
    /// before the clocks are read, across which ptxas moves no arithmetic: so it is done while the kernel waits for its
    /// loads, and neither the kernel nor the record waits for it.
    pub(super) fn places_ahead(&mut self) -> Result<(), Refusal> {
        for region in self.regions()? {
            let Lanes::Of(unit) = region.lanes else { continue };
            if !self.is_ahead(&region) {
                continue;
            }
            let elected = self.elected(unit, None)?;
            let index = self.index_of(region.at);
            for &effect in &region.effects {
                if let Effect::Save(save) = effect {
                    self.room(self.map_number(save.map)?, index, elected)?;
                    self.record(save.map, index)?;
                }
            }
        }
        Ok(())
    }

    /// Is it records of plain values that a warp saves as it leaves?
    fn is_ahead(&self, region: &Region<'_>) -> bool {
        let plain = |save: &Save<'_>| {
            let columnar = self.probe.layouts.get(save.map.0 as usize).is_none_or(|layout| layout.columnar);
            // A division is long, and would be done by all.
            let long = |inst: &Inst| matches!(inst.op, Op::Binary(BinaryOp::Div | BinaryOp::Rem, ..));
            !columnar && !self.code(save.probe).iter().any(long)
        };
        self.site.found.kind == Kind::Exit
            && region.lanes == Lanes::Of(Unit::Warp)
            && region.predicate.is_none()
            && region.guard.is_none()
            && region.effects.iter().all(|effect| matches!(effect, Effect::Save(save) if plain(save)))
    }

    /// Is it sums alone, in the middle of a kernel or added up already, or made ahead?
    fn is_predicated(&self, region: &Region<'_>) -> bool {
        let inside = self.site.found.kind.is_inside();
        let sums = (inside || matches!(region.lanes, Lanes::Together(_)))
            && region.effects.iter().all(|effect| matches!(effect, Effect::Add(_)));
        sums || self.is_ahead(region)
    }

    /// Is there room for the unit of an index, and is this lane needed?
    fn has_room_at(
        &mut self,
        number: u32,
        index: Operand<'a>,
        needed: Option<Operand<'a>>,
    ) -> Result<Operand<'a>, Refusal> {
        let capacity = self.context_word(Fill::Capacity(number))?;
        Ok(match needed {
            None => self.op(Class::Pred, "setp.lt.u64", &[index, capacity]),
            Some(needed) => self.op(Class::Pred, "setp.lt.and.u64", &[index, capacity, needed]),
        })
    }

    /// The same of a map that every elected lane saves to.
    fn room(
        &mut self,
        number: u32,
        index: Operand<'a>,
        elected: Option<Operand<'a>>,
    ) -> Result<Operand<'a>, Refusal> {
        let known = self.known.iter().find(|(known, _)| *known == Known::Room(number));
        if let Some(&(_, room)) = known {
            return Ok(room);
        }
        let room = self.has_room_at(number, index, elected)?;
        self.known.push((Known::Room(number), room));
        Ok(room)
    }

    /// One region, with branches to `skip` by lanes that have no effect; false if there are none of these.
    fn region(&mut self, region: &Region<'a>, skip: u32) -> Result<bool, Refusal> {
        let guard = match self.when(region.probe, region.guard)? {
            When::Never => return Ok(false),
            When::Always => None,
            When::If(guard) => Some(guard),
        };
        let elected = match region.lanes {
            Lanes::Of(unit) => self.elected(unit, region.predicate)?,
            Lanes::Last => Some(self.last()?),
            Lanes::Together(first) => first,
        };
        let target = self.target(skip);
        for needed in elected.into_iter().chain(guard) {
            self.line(format_args!("@!{needed} bra {target};"));
        }

        let mark = self.enter();
        let index = self.index_of(region.at);
        let mut checked: Option<u32> = None;
        for &effect in &region.effects {
            let number = self.number(effect)?;
            if checked != Some(number) {
                let capacity = self.context_word(Fill::Capacity(number))?;
                let full = self.op(Class::Pred, "setp.ge.u64", &[index, capacity]);
                self.line(format_args!("@{full} bra {target};"));
                checked = Some(number);
            }
            match effect {
                Effect::Save(save) => self.save(save, number, index, "")?,
                Effect::Add(add) => {
                    let (address, cell) = self.cell_address(add, index)?;
                    self.add(add, address, cell, "")?;
                }
                // These have regions of their own.
                Effect::Event(_) | Effect::Next(_) => {}
            }
        }
        self.leave(mark);
        Ok(true)
    }

    /// A record of an array with a capacity. It is counted also where it finds no room.
    fn slot_region(&mut self, region: &Region<'a>, skip: u32) -> Result<bool, Refusal> {
        let guard = match self.when(region.probe, region.guard)? {
            When::Never => return Ok(false),
            When::Always => None,
            When::If(guard) => Some(guard),
        };
        let target = self.target(skip);
        let leads = region.leader.map(|leader| leader.leads);
        for needed in leads.into_iter().chain(guard) {
            self.line(format_args!("@!{needed} bra {target};"));
        }
        let mark = self.enter();
        for &effect in &region.effects {
            if let Effect::Next(save) = effect {
                self.save_next(save, region.leader, &target)?;
            }
        }
        self.leave(mark);
        Ok(true)
    }

    /// The same with each effect under a predicate.
    fn predicated_region(&mut self, region: &Region<'a>) -> Result<bool, Refusal> {
        let guard = match self.when(region.probe, region.guard)? {
            When::Never => return Ok(false),
            When::Always => None,
            When::If(guard) => Some(guard),
        };
        let elected = match region.lanes {
            Lanes::Of(unit) => self.elected(unit, region.predicate)?,
            Lanes::Last => Some(self.last()?),
            Lanes::Together(first) => first,
        };
        let needed = match (elected, guard) {
            (Some(elected), Some(guard)) => Some(self.op(Class::Pred, "and.pred", &[elected, guard])),
            (one, other) => one.or(other),
        };
        let index = self.index_of(region.at);
        for &effect in &region.effects {
            let number = self.number(effect)?;
            match effect {
                Effect::Add(add) => {
                    let has_room = self.has_room_at(number, index, needed)?;
                    let (address, cell) = self.cell_address(add, index)?;
                    self.add(add, address, cell, &format!("@{has_room} "))?;
                }
                Effect::Save(save) => {
                    let room = self.room(number, index, needed)?;
                    self.save(save, number, index, &format!("@{room} "))?;
                }
                // These have regions of their own.
                Effect::Event(_) | Effect::Next(_) => {}
            }
        }
        Ok(false)
    }

    /// Events, each under a predicate but for what makes room.
    fn events(&mut self, region: &Region<'a>) -> Result<(), Refusal> {
        let guard = match self.when(region.probe, region.guard)? {
            When::Never => return Ok(()),
            When::Always => None,
            When::If(guard) => Some(guard),
        };
        for &effect in &region.effects {
            let Effect::Event(event) = effect else { continue };
            if event.planned.is_long() {
                self.forget_election();
            }
            let group = self.group(region.predicate)?;
            self.event(event, group, guard)?;
        }
        Ok(())
    }

    /// How the context counts the map or table.
    fn number(&self, effect: Effect<'a>) -> Result<u32, Refusal> {
        match effect {
            Effect::Save(save) | Effect::Next(save) => self.map_number(save.map),
            Effect::Event(event) => self.map_number(event.map),
            Effect::Add(add) => self.cell(add.probe, add.table).map(|(number, ..)| number),
        }
    }

    /// Where the cells of a unit lie, and where among them that of the site.
    fn cell_address(&mut self, add: Add<'a>, index: Operand<'a>) -> Result<(Operand<'a>, u32), Refusal> {
        let (number, stride, cell) = self.cell(add.probe, add.table)?;
        let base = self.context_word(Fill::Base(number))?;
        Ok((self.scaled(index, stride, base), cell))
    }
}
