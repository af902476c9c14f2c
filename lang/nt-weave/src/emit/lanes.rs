//! Events whose lanes' values have to be stored: the test that finds the form of addresses, room for as many slots as the
//! form takes, the header by the leader, and a list by all lanes.
//!
//! ```text
//!     shfl.sync.idx.b32 %nt_r9, %nt_r7, %nt_r5, 31, %nt_r1;       the leader's address, in halves
//!     …                                                           each lane's distance from it
//!     shfl.sync.idx.b32 %nt_r12, %nt_r11, %nt_r6, 31, %nt_r1;     the distance of the lane behind the leader: a stride?
//!     vote.sync.all.pred %nt_p5, %nt_p4, %nt_r1;                  of all lanes
//!     @%nt_p7 atom.global.add.u64 %nt_d9, [%nt_d8], 1;            a chunk for the leader, if its own is full
//!     shfl.sync.idx.b32 %nt_r15, %nt_c_dmat, %nt_r5, 31, %nt_r1;  the leader's cursor
//!     @%nt_p9 st.global.b32 [%nt_d12], %nt_r20;                   each lane its word, at its rank
//! ```
//!
//! The three forms are three codes: a stride (one slot), 32 bits a lane, 64 bits a lane. An address that comes through memory
//! is not asked for a stride. The lanes of a `.sync` are those that `activemask` has just named, and no branch of ours stands
//! between, so that they are there together.

use super::claim::Claimed;
use super::operand::{Class, Operand};
use super::save::{Piece, SLOT_STORE};
use super::stream::{DEAD, Event, Group, Place};
use super::{Refusal, Span};
use crate::codes::Stored;
use crate::context::Fill;
use crate::emit::index::Known;
use nt_ir::layout::{Layout, MASK, SLOT};
use nt_ir::program::{Map, Type, ValueId};

/// What the lanes of an event do together.
#[derive(Clone, Copy)]
struct Warp<'a> {
    /// Those that stand here, of which the event's are some.
    here: Operand<'a>,
    /// The event's.
    mask: Operand<'a>,
    /// The number of the lane that leads.
    leader: Operand<'a>,
    /// The event's lanes below this one, counted.
    rank: Operand<'a>,
    /// How many lanes the event has.
    count: Operand<'a>,
    /// Is this lane one of them? All are if there is no register.
    inside: Option<Operand<'a>>,
}

/// Where the leader has room.
#[derive(Clone, Copy)]
struct Room<'a> {
    /// The header's slot, in every lane.
    first: Operand<'a>,
    /// Is this the leader, and was its chunk full?
    is_full: Operand<'a>,
    /// The chunk that it got then.
    claimed: Claimed<'a>,
}

/// What one field stores behind the header.
#[derive(Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "an event has a handful")]
enum Section<'a> {
    /// 4 bytes a lane.
    Words(Operand<'a>),
    /// 8 bytes a lane.
    Longs(Operand<'a>),
    /// As was found.
    Tested(Tested<'a>),
    /// 4 bytes a lane, unless all have the first number or all have none.
    Whole(Whole<'a>),
}

/// Numbers of bytes.
#[derive(Clone, Copy)]
struct Whole<'a> {
    bytes: Operand<'a>,
    /// Are they as many as can be, in all lanes?
    is_all: Operand<'a>,
    /// Are they 0 in all lanes?
    is_none: Operand<'a>,
    /// Neither?
    is_mixed: Operand<'a>,
}

/// Addresses, and how they relate.
#[derive(Clone, Copy)]
struct Tested<'a> {
    address: Operand<'a>,
    /// The leader's, in halves.
    base: [Operand<'a>; 2],
    /// The low half of the distance from it.
    distance: Operand<'a>,
    /// Do all distances fit 32 bits?
    fit: Operand<'a>,
    /// The stride, and whether it is one for all lanes; `None` where that is not asked.
    stride: Option<(Operand<'a>, Operand<'a>)>,
}

impl<'a> Span<'a> {
    /// An event with lists. `guard` is what the leader must find true.
    pub(super) fn long_event(
        &mut self,
        event: Event<'a>,
        place: Place<'a>,
        (declared, layout): (&'a Map, &'a Layout),
        group: Group<'a>,
        guard: Option<Operand<'a>>,
    ) -> Result<(), Refusal> {
        let lower = group.lower.ok_or("it lists lanes where no lane is elected")?;
        let warp = self.warp(event, group, lower, guard)?;
        // All that lanes tell each other comes before the first branch.
        let mut sections = Vec::with_capacity(event.planned.lanes.len());
        for (field, stored) in &event.planned.lanes {
            let value = event.values.iter().find(|(of, _)| of == field).map(|&(_, value)| value);
            let value = value.ok_or("its program does not save a field")?;
            sections.extend(self.section(event.probe, value, stored, warp)?);
        }
        let header = self.slots_of_event(event.map);
        // Where each section begins, counted from the header's first slot; then the slots of all.
        let mut begins = Vec::with_capacity(sections.len());
        let mut slots = Operand::word(header);
        for &section in &sections {
            begins.push(slots);
            let more = self.slots_of(section, warp);
            slots = self.op(Class::B32, "add.u32", &[more, slots]);
        }
        let Room { first, is_full, claimed } = self.place_for(place, slots, group, warp)?;
        let capacity = self.capacity_of_slots(place.number)?;
        let base = self.context_word(Fill::Base(place.number))?;
        for (&section, begin) in sections.iter().zip(begins) {
            let begin = self.op(Class::B32, "add.u32", &[first, begin]);
            self.store_section(section, begin, (capacity, base), group, warp);
        }

        let mut pieces = self.scalars(event, declared, layout)?;
        let [low, high] = self.base_and_form(event, declared, &sections)?;
        let piece = |offset, value| Piece { offset, size: 4, value };
        pieces.extend([piece(0, low), piece(4, high), piece(MASK.offset, group.mask)]);
        pieces.sort_by_key(|piece| piece.offset);
        let has_room = self.has_room(place, header, group.leads)?;
        let address = self.slot_address(place.cursor, base);
        self.store_record(address, &pieces, SLOT_STORE, &format!("@{has_room} "));
        let cursor = place.cursor;
        self.line(format_args!("@{has_room} add.u32 {cursor}, {cursor}, {slots};"));
        // What is left of the claim, now that lanes may part.
        let done = self.label();
        let target = self.target(done);
        self.line(format_args!("@!{is_full} bra {target};"));
        let mark = self.enter();
        self.note(place, claimed, 1)?;
        self.leave(mark);
        self.place_label(done);
        Ok(())
    }

    fn warp(
        &mut self,
        event: Event<'a>,
        group: Group<'a>,
        lower: Operand<'a>,
        guard: Option<Operand<'a>>,
    ) -> Result<Warp<'a>, Refusal> {
        let here = self.mask(None)?;
        let reversed = self.op(Class::B32, "brev.b32", &[group.mask]);
        let leader = self.op(Class::B32, "clz.b32", &[reversed]);
        let rank = self.op(Class::B32, "popc.b32", &[lower]);
        let count = self.op(Class::B32, "popc.b32", &[group.mask]);
        let predicate = self.probes.get(event.probe).and_then(|probe| probe.predicate);
        let mut inside = match predicate.filter(|_| group.mask != here) {
            None => None,
            Some(predicate) => {
                let predicate = self.value(event.probe, predicate)?;
                Some(self.register(predicate, Type::Bool))
            }
        };
        if let Some(guard) = guard {
            // The leader's answer stands for all.
            let word = self.op(Class::B32, "selp.b32", &[Operand::word(1), Operand::word(0), guard]);
            let word = self.shuffle(word, leader, here);
            inside = Some(match inside {
                None => self.op(Class::Pred, "setp.ne.u32", &[word, Operand::word(0)]),
                Some(inside) => self.op(Class::Pred, "setp.ne.and.u32", &[word, Operand::word(0), inside]),
            });
        }
        Ok(Warp { here, mask: group.mask, leader, rank, count, inside })
    }

    /// What lane `from` of those here has.
    fn shuffle(&mut self, value: Operand<'a>, from: Operand<'a>, here: Operand<'a>) -> Operand<'a> {
        self.op(Class::B32, "shfl.sync.idx.b32", &[value, from, Operand::word(31), here])
    }

    /// Is it so in all lanes of the event?
    fn all(&mut self, test: Operand<'a>, warp: Warp<'a>) -> Operand<'a> {
        let test = match warp.inside {
            None => test,
            Some(inside) => {
                let outside = self.op(Class::Pred, "not.pred", &[inside]);
                self.op(Class::Pred, "or.pred", &[test, outside])
            }
        };
        self.op(Class::Pred, "vote.sync.all.pred", &[test, warp.here])
    }

    /// What a field stores, if anything.
    fn section(
        &mut self,
        p: usize,
        value: ValueId,
        stored: &Stored,
        warp: Warp<'a>,
    ) -> Result<Option<Section<'a>>, Refusal> {
        if matches!(stored, Stored::Known(_) | Stored::Bits(_)) {
            return Ok(None);
        }
        let ty = self.ty(p, value);
        self.demand(p, &[value])?;
        let value = self.value(p, value)?;
        let value = match ty {
            Type::Bool => {
                let value = self.register(value, ty);
                self.op(Class::B32, "selp.b32", &[Operand::word(1), Operand::word(0), value])
            }
            ty => self.register(value, ty),
        };
        Ok(Some(match *stored {
            Stored::Whole { size } => {
                let [is_all, is_none] = [size, 0].map(|number| {
                    let is_it = self.op(Class::Pred, "setp.eq.u32", &[value, Operand::word(number)]);
                    self.all(is_it, warp)
                });
                let either = self.op(Class::Pred, "or.pred", &[is_all, is_none]);
                let is_mixed = self.op(Class::Pred, "not.pred", &[either]);
                Section::Whole(Whole { bytes: value, is_all, is_none, is_mixed })
            }
            Stored::Tested { stride } => Section::Tested(self.test(value, stride, warp)),
            Stored::Longs => Section::Longs(value),
            Stored::Words | Stored::Known(_) | Stored::Bits(_) => Section::Words(value),
        }))
    }

    /// How the addresses of the lanes relate.
    fn test(&mut self, address: Operand<'a>, stride: bool, warp: Warp<'a>) -> Tested<'a> {
        let Warp { here, mask, leader, .. } = warp;
        let (low, high) = (self.temp(Class::B32), self.temp(Class::B32));
        self.line(format_args!("mov.b64 {{{low}, {high}}}, {address};"));
        let base = [low, high].map(|half| self.shuffle(half, leader, here));
        let [low, high] = base;
        let first = self.temp(Class::B64);
        self.line(format_args!("mov.b64 {first}, {{{low}, {high}}};"));
        let wide = self.op(Class::B64, "sub.u64", &[address, first]);
        // The upper half is what the sign of the lower one makes it: one comparison, and not two of a carry.
        let (distance, upper) = (self.temp(Class::B32), self.temp(Class::B32));
        self.line(format_args!("mov.b64 {{{distance}, {upper}}}, {wide};"));
        let sign = self.op(Class::B32, "shr.s32", &[distance, Operand::word(31)]);
        let fits = self.op(Class::Pred, "setp.eq.u32", &[upper, sign]);
        let fit = self.all(fits, warp);
        let stride = stride.then(|| {
            let next = self.op(Class::B32, "add.u32", &[leader, Operand::word(1)]);
            let stride = self.shuffle(distance, next, here);
            let lane = self.special("%laneid");
            let lane = self.op(Class::B32, "sub.u32", &[lane, leader]);
            let there = self.op(Class::B32, "mul.lo.u32", &[lane, stride]);
            let is_there = self.op(Class::Pred, "setp.eq.and.u32", &[distance, there, fits]);
            let is_there = self.all(is_there, warp);
            // The lane behind the leader must be one of the event's.
            let next = self.op(Class::B32, "shr.u32", &[mask, next]);
            let next = self.op(Class::B32, "and.b32", &[next, Operand::word(1)]);
            (stride, self.op(Class::Pred, "setp.ne.and.u32", &[next, Operand::word(0), is_there]))
        });
        Tested { address, base, distance, fit, stride }
    }

    /// How many slots a section takes.
    fn slots_of(&mut self, section: Section<'a>, warp: Warp<'a>) -> Operand<'a> {
        // Four words a slot, or two of 8 bytes.
        let rounded = |span: &mut Self, shift: u32| {
            let more = span.op(Class::B32, "add.u32", &[warp.count, Operand::word((1 << shift) - 1)]);
            span.op(Class::B32, "shr.u32", &[more, Operand::word(shift)])
        };
        match section {
            Section::Words(_) => rounded(self, 2),
            Section::Longs(_) => rounded(self, 1),
            Section::Whole(Whole { is_mixed, .. }) => {
                let words = rounded(self, 2);
                self.op(Class::B32, "selp.b32", &[words, Operand::word(0), is_mixed])
            }
            Section::Tested(Tested { fit, stride, .. }) => {
                let (words, longs) = (rounded(self, 2), rounded(self, 1));
                let list = self.op(Class::B32, "selp.b32", &[words, longs, fit]);
                match stride {
                    Some((_, is_one)) => self.op(Class::B32, "selp.b32", &[Operand::word(1), list, is_one]),
                    None => list,
                }
            }
        }
    }

    /// Sees to it that the leader has room for so many slots. Without a branch of ours, behind which the lanes might not
    /// be together any more.
    fn place_for(
        &mut self,
        place: Place<'a>,
        slots: Operand<'a>,
        group: Group<'a>,
        warp: Warp<'a>,
    ) -> Result<Room<'a>, Refusal> {
        let Place { stream, cursor, .. } = place;
        let chunk = stream.chunk;
        // One less, so that a cursor without a chunk is the fullest.
        let taken = self.op(Class::B32, "add.u32", &[cursor, Operand::word(u32::MAX)]);
        let taken = self.op(Class::B32, "and.b32", &[taken, Operand::word(chunk - 1)]);
        let then = self.op(Class::B32, "add.u32", &[taken, slots]);
        let is_full = self.op(Class::Pred, "setp.ge.and.u32", &[then, Operand::word(chunk), group.leads]);
        let lives = self.op(Class::Pred, "setp.ne.and.u32", &[cursor, Operand::word(DEAD), is_full]);
        let claimed = self.claimed(place, group, lives)?;
        let next = self.op(Class::B32, "selp.b32", &[claimed.first, Operand::word(DEAD), claimed.is_there]);
        self.line(format_args!("@{is_full} mov.b32 {cursor}, {next};"));
        // ptxas makes a branch of `@p atom`, behind which the lanes meet again; were one of them not to, nothing is written.
        let here = self.op(Class::B32, "activemask.b32", &[]);
        let first = self.shuffle(cursor, warp.leader, here);
        let both = self.op(Class::B32, "and.b32", &[here, warp.mask]);
        let are_here = self.op(Class::Pred, "setp.eq.b32", &[both, warp.mask]);
        let first = self.op(Class::B32, "selp.b32", &[first, Operand::word(DEAD), are_here]);
        Ok(Room { first, is_full, claimed })
    }

    /// Each lane its part, at its rank behind slot `begin`.
    fn store_section(
        &mut self,
        section: Section<'a>,
        begin: Operand<'a>,
        (capacity, base): (Operand<'a>, Operand<'a>),
        group: Group<'a>,
        warp: Warp<'a>,
    ) {
        match section {
            Section::Words(value) => {
                let (at, has_room) = self.part(2, begin, (capacity, base), warp);
                self.line(format_args!("@{has_room} st.global.b32 [{at}], {value};"));
            }
            Section::Longs(value) => {
                let (at, has_room) = self.part(3, begin, (capacity, base), warp);
                self.line(format_args!("@{has_room} st.global.b64 [{at}], {value};"));
            }
            Section::Whole(Whole { bytes, is_mixed, .. }) => {
                let (at, has_room) = self.part(2, begin, (capacity, base), warp);
                let stores = self.op(Class::Pred, "and.pred", &[has_room, is_mixed]);
                self.line(format_args!("@{stores} st.global.b32 [{at}], {bytes};"));
            }
            Section::Tested(Tested { address, distance, fit, stride, .. }) => {
                let (at, has_room) = self.part(2, begin, (capacity, base), warp);
                let mut narrow = self.op(Class::Pred, "and.pred", &[has_room, fit]);
                let mut value = distance;
                if let Some((stride, is_one)) = stride {
                    value = self.op(Class::B32, "selp.b32", &[stride, distance, is_one]);
                    let not = self.op(Class::Pred, "not.pred", &[is_one]);
                    let stores = self.op(Class::Pred, "or.pred", &[not, group.leads]);
                    narrow = self.op(Class::Pred, "and.pred", &[narrow, stores]);
                }
                self.line(format_args!("@{narrow} st.global.b32 [{at}], {value};"));
                let (at, has_room) = self.part(3, begin, (capacity, base), warp);
                let not = self.op(Class::Pred, "not.pred", &[fit]);
                let wide = self.op(Class::Pred, "and.pred", &[has_room, not]);
                self.line(format_args!("@{wide} st.global.b64 [{at}], {address};"));
            }
        }
    }

    /// Where this lane's part of 1 << `shift` bytes lies, and whether it is one of the event's and there is room.
    fn part(
        &mut self,
        shift: u32,
        begin: Operand<'a>,
        (capacity, base): (Operand<'a>, Operand<'a>),
        warp: Warp<'a>,
    ) -> (Operand<'a>, Operand<'a>) {
        // A slot has 16 bytes, 1 << 4.
        let slots = self.op(Class::B32, "shr.u32", &[warp.rank, Operand::word(4 - shift)]);
        let slot = self.op(Class::B32, "add.u32", &[slots, begin]);
        let has_room = match warp.inside {
            Some(inside) => self.op(Class::Pred, "setp.lt.and.u32", &[slot, capacity, inside]),
            None => self.op(Class::Pred, "setp.lt.u32", &[slot, capacity]),
        };
        let at = self.slot_address(slot, base);
        let in_slot = self.op(Class::B32, "and.b32", &[warp.rank, Operand::word((SLOT >> shift) - 1)]);
        (self.op(Class::B64, "mad.wide.u32", &[in_slot, Operand::word(1 << shift), at]), has_room)
    }

    /// The first two words, with the code of the forms that were found.
    fn base_and_form(
        &mut self,
        event: Event<'a>,
        declared: &'a Map,
        sections: &[Section<'a>],
    ) -> Result<[Operand<'a>; 2], Refusal> {
        let first = event.planned.code;
        let tested = sections.iter().find_map(|section| match section {
            Section::Tested(tested) => Some(*tested),
            Section::Words(_) | Section::Longs(_) | Section::Whole(_) => None,
        });
        // The upper half of the code's first form; the forms that were found are added to it.
        let ([low, high], mut code) = match tested {
            Some(Tested { base: [low, high], .. }) => {
                let high = self.op(Class::B32, "and.b32", &[high, Operand::word(0xffff)]);
                ([low, high], first)
            }
            None => (self.base_and_code(event, declared, first)?, 0),
        };
        // The order of `Stored::forms`, of which those of the last section change fastest.
        let (mut weight, mut high, mut is_free) = (1, high, tested.is_some());
        for section in sections.iter().rev() {
            let forms = |form: u32| Operand::word((code + form * weight) << 16);
            let (form, count) = match *section {
                Section::Words(_) | Section::Longs(_) => continue,
                Section::Tested(Tested { fit, stride, .. }) => {
                    let list = self.op(Class::B32, "selp.b32", &[forms(1), forms(0), fit]);
                    match stride {
                        None => (list, 2),
                        Some((_, is_one)) => (self.op(Class::B32, "selp.b32", &[forms(2), list, is_one]), 3),
                    }
                }
                Section::Whole(Whole { is_all, is_none, .. }) => {
                    let some = self.op(Class::B32, "selp.b32", &[forms(2), forms(0), is_none]);
                    (self.op(Class::B32, "selp.b32", &[forms(1), some, is_all]), 3)
                }
            };
            // Into bits that are free yet, by the instruction that cuts the base.
            let (class, opcode) = (Class::B32, if is_free { "or.b32" } else { "add.u32" });
            high = self.op(class, opcode, &[form, high]);
            (weight, code, is_free) = (weight * count, 0, false);
        }
        Ok([low, high])
    }

    /// What is known of who is here must be asked anew: a branch may stand between, and lanes may speak only to those that
    /// `activemask` has just named.
    pub(super) fn forget_election(&mut self) {
        self.known
            .retain(|(known, _)| !matches!(known, Known::Mask(_) | Known::Lower(_) | Known::Elected(..)));
    }
}
