//! Events of streams: a cursor a lane, room in its chunk, slots.
//!
//! ```text
//!     and.b32 %nt_r4, %nt_c_dmat, 63;                     the next slot of this lane's chunk of 64; 0: there is none
//!     setp.eq.and.u32 %nt_p1, %nt_r4, 0, %nt_p0;          %nt_p0 = elected
//!     @!%nt_p1 bra $nt_L3_1;
//!     …                                                   a chunk is claimed, or one more event is dropped
//! $nt_L3_1:
//!     ld.param.u32 %nt_r9, [nt_ctx+16];                   slots that the stream has
//!     setp.lt.and.u32 %nt_p4, %nt_c_dmat, %nt_r9, %nt_p0;
//!     cvt.u64.u32 %nt_d6, %nt_c_dmat;
//!     shl.b64 %nt_d7, %nt_d6, 4;
//!     add.u64 %nt_d8, %nt_d7, %nt_d5;
//!     @%nt_p4 st.global.v4.b32 [%nt_d8], {%nt_r10, %nt_r12, %nt_r0, %nt_r2};
//!     @%nt_p4 add.u32 %nt_c_dmat, %nt_c_dmat, 1;
//! ```
//!
//! The cursor is a register of each thread at function level, 0 but in lane 0, whose first chunk is its warp's. Only the
//! elected lane's moves, so that groups of a warp that has parted never meet in a slot. A chunk that is full leaves the
//! cursor at a multiple of the chunk, which is how it is seen. Nothing is done at the exit.
//!
//! In a run of sites that share an election ([`Turn`]) `%nt_mask` and `%nt_lead` are registers at function level too, and
//! all but the first event have neither election nor question for room: 10 instructions instead of 19. `docs/injection.md`,
//! Streams.

use super::index::Known;
use super::operand::{Class, Operand, Own};
use super::save::{Piece, SLOT_STORE};
use super::{Refusal, Span};
use crate::clones::{Carried, Passed};
use crate::context::Fill;
use crate::sites::Kind;
use crate::streams::{Event as Planned, Stream, Turn};
use nt_ir::layout::{Layout, MASK, Presence, SLOT};
use nt_ir::program::{Map, MapId, Type, Unit, ValueId};

/// A cursor that finds no chunk any more: above every capacity, with low bits of zero.
pub(super) const DEAD: u32 = 0xffff_0000;

/// One `save` of a probe to a stream.
#[derive(Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) probe: usize,
    pub(super) map: MapId,
    pub(super) values: &'a [(u32, ValueId)],
    pub(super) planned: &'a Planned,
}

/// The lane that saves, and those whose event it is.
#[derive(Clone, Copy)]
pub(super) struct Group<'a> {
    /// Is this the lane that saves, and does it?
    pub(super) leads: Operand<'a>,
    /// The lanes.
    pub(super) mask: Operand<'a>,
    /// The lanes below this one, none for the one that saves; not known where another site has asked.
    pub(super) lower: Option<Operand<'a>>,
}

/// The parts of a stream that an event needs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) stream: &'a Stream,
    /// How the context counts it.
    pub(super) number: u32,
    pub(super) cursor: Operand<'a>,
}

impl<'a> Span<'a> {
    /// `.reg .b32 %nt_c_dmat; `: what streams have at function level.
    pub(super) fn stream_registers(&self) -> String {
        let mut out = String::new();
        for stream in &self.plan.streams.list {
            out.push_str(&format!(".reg .b32 {}; ", self.cursor(stream.map)));
        }
        if self.plan.streams.shares {
            out.push_str(&format!(".reg .b32 {}; .reg .pred {}; ", self.shared_mask(), self.shared_lead()));
        }
        out
    }

    /// The states of streams, at the kernel's first span: lane 0 has the chunk of its warp, if there is one.
    pub(super) fn initialise_streams(&mut self) -> Result<(), Refusal> {
        if self.site.found.kind != Kind::Entry {
            return Ok(());
        }
        for stream in &self.plan.streams.list {
            let number = self.map_number(stream.map)?;
            let cursor = self.cursor(stream.map);
            if let Some(Passed { offset, .. }) = self.passed(Carried::Cursor(stream.map)) {
                self.line(format_args!("ld.param.b32 {cursor}, [{}ctx+{offset}];", self.plan.prefix));
                continue;
            }
            let warp = self.index(Unit::Warp);
            let first = self.op(Class::B64, "shl.b64", &[warp, Operand::word(stream.chunk.trailing_zeros())]);
            let capacity = self.capacity_of_slots(number)?;
            let capacity = self.op(Class::B64, "cvt.u64.u32", &[capacity]);
            let has_chunk = self.op(Class::Pred, "setp.lt.u64", &[first, capacity]);
            let lane = self.special("%laneid");
            let begins = self.op(Class::Pred, "setp.eq.and.u32", &[lane, Operand::word(0), has_chunk]);
            let slot = self.op(Class::B32, "cvt.u32.u64", &[first]);
            let slot = self.op(Class::B32, "add.u32", &[slot, Operand::word(1)]);
            self.line(format_args!("selp.b32 {cursor}, {slot}, 0, {begins};"));
        }
        if self.plan.streams.shares {
            let (mask, lead) = (self.shared_mask(), self.shared_lead());
            self.line(format_args!("mov.b32 {mask}, 0;"));
            self.line(format_args!("setp.ne.b32 {lead}, {mask}, 0;"));
        }
        Ok(())
    }

    /// Elects for the sites of a run, or takes what the first of them has found.
    pub(super) fn share_election(&mut self) {
        let (mask, lead) = (self.shared_mask(), self.shared_lead());
        match self.site.turn {
            Turn::Alone => return,
            Turn::First => {
                self.line(format_args!("activemask.b32 {mask};"));
                let below = self.special("%lanemask_lt");
                let lower = self.op(Class::B32, "and.b32", &[below, mask]);
                self.line(format_args!("setp.eq.u32 {lead}, {lower}, 0;"));
                self.known.push((Known::Lower(None), lower));
            }
            Turn::Next => {}
        }
        self.known.push((Known::Mask(None), mask));
        self.known.push((Known::Elected(Unit::Warp, None), lead));
    }

    /// Elects the lane that saves events.
    pub(super) fn group(&mut self, predicate: Option<(usize, ValueId)>) -> Result<Group<'a>, Refusal> {
        let mask = self.mask(predicate)?;
        let known = |span: &Self, what| span.known.iter().find(|(known, _)| *known == what).map(|&(_, o)| o);
        let elected = known(self, Known::Elected(Unit::Warp, predicate));
        if let (Some(leads), true) = (elected, self.site.turn == Turn::Next) {
            return Ok(Group { leads, mask, lower: None });
        }
        if let (Some(leads), lower @ Some(_)) = (elected, known(self, Known::Lower(predicate))) {
            return Ok(Group { leads, mask, lower });
        }
        let below = self.special("%lanemask_lt");
        let lower = self.op(Class::B32, "and.b32", &[below, mask]);
        let lowest = self.op(Class::Pred, "setp.eq.u32", &[lower, Operand::word(0)]);
        let leads = match predicate {
            None => lowest,
            Some((p, value)) => {
                let predicate = self.value(p, value)?;
                let predicate = self.register(predicate, Type::Bool);
                self.op(Class::Pred, "and.pred", &[lowest, predicate])
            }
        };
        self.known.push((Known::Lower(predicate), lower));
        self.known.push((Known::Elected(Unit::Warp, predicate), leads));
        Ok(Group { leads, mask, lower: Some(lower) })
    }

    fn cursor(&self, map: MapId) -> Operand<'a> {
        let declared = self.probe.program.maps.get(map.0 as usize);
        let name = declared.map_or("", |map| map.name.as_str());
        Operand::Own { prefix: self.plan.prefix, own: Own::Cursor(name) }
    }

    fn shared_mask(&self) -> Operand<'a> {
        Operand::Own { prefix: self.plan.prefix, own: Own::Mask }
    }

    fn shared_lead(&self) -> Operand<'a> {
        Operand::Own { prefix: self.plan.prefix, own: Own::Lead }
    }

    /// A word of the context of 4 bytes, read anew: it is an operand in the constant bank.
    pub(super) fn context_half(&mut self, fill: Fill) -> Result<Operand<'a>, Refusal> {
        let offset = self.plan.offset(fill).ok_or("its context has no such word")?;
        let (value, prefix) = (self.temp(Class::B32), self.plan.prefix);
        self.line(format_args!("ld.param.u32 {value}, [{prefix}ctx+{offset}];"));
        Ok(value)
    }

    pub(super) fn capacity_of_slots(&mut self, number: u32) -> Result<Operand<'a>, Refusal> {
        self.context_half(Fill::Capacity(number))
    }

    /// Saves an event, where `guard` holds in the leader.
    pub(super) fn event(
        &mut self,
        event: Event<'a>,
        mut group: Group<'a>,
        guard: Option<Operand<'a>>,
    ) -> Result<(), Refusal> {
        let map = event.map.0 as usize;
        let (Some(declared), Some(layout), Some(stream)) =
            (self.probe.program.maps.get(map), self.probe.layouts.get(map), self.plan.streams.of(event.map))
        else {
            return Err("its program has no such stream".into());
        };
        if let Some(guard) = guard {
            group.leads = self.op(Class::Pred, "and.pred", &[group.leads, guard]);
        }
        let place = Place { stream, number: self.map_number(event.map)?, cursor: self.cursor(event.map) };
        if event.planned.is_long() {
            return self.long_event(event, place, (declared, layout), group, guard);
        }
        if let Some(room) = event.planned.room {
            self.make_room(place, room, group)?;
        }
        self.short_event(event, place, declared, layout, group)
    }

    pub(super) fn slots_of_event(&self, map: MapId) -> u32 {
        let layout = self.probe.layouts.get(map.0 as usize).and_then(|layout| layout.stream);
        layout.map_or(1, |layout| layout.header_slots)
    }

    /// An event of the slots of its header alone.
    fn short_event(
        &mut self,
        event: Event<'a>,
        place: Place<'a>,
        declared: &'a Map,
        layout: &'a Layout,
        group: Group<'a>,
    ) -> Result<(), Refusal> {
        let Place { number, cursor, .. } = place;
        let slots = self.slots_of_event(event.map);
        let has_room = self.has_room(place, slots, group.leads)?;
        let mut pieces = self.scalars(event, declared, layout)?;
        if layout.presence == Presence::Mask {
            let [low, high] = self.base_and_code(event, declared, event.planned.code)?;
            let piece = |offset, value| Piece { offset, size: 4, value };
            pieces.extend([piece(0, low), piece(4, high), piece(MASK.offset, group.mask)]);
            // One store of 16 bytes where else there would be two.
            let end = MASK.offset + MASK.size;
            if !pieces.iter().any(|piece| (end..SLOT).contains(&piece.offset)) {
                pieces.push(piece(end, Operand::word(0)));
            }
        }
        pieces.sort_by_key(|piece| piece.offset);
        let base = self.context_word(Fill::Base(number))?;
        let address = self.slot_address(cursor, base);
        self.store_record(address, &pieces, SLOT_STORE, &format!("@{has_room} "));
        self.line(format_args!("@{has_room} add.u32 {cursor}, {cursor}, {slots};"));
        Ok(())
    }

    /// Where a slot lies. A shift and an addition: of `mad.wide.u32` ptxas makes four instructions and not two.
    pub(super) fn slot_address(&mut self, slot: Operand<'a>, base: Operand<'a>) -> Operand<'a> {
        let slot = self.op(Class::B64, "cvt.u64.u32", &[slot]);
        self.scaled(slot, SLOT, base)
    }

    /// Are the next slots of the cursor below the capacity, and does this lane lead?
    pub(super) fn has_room(
        &mut self,
        place: Place<'a>,
        slots: u32,
        leads: Operand<'a>,
    ) -> Result<Operand<'a>, Refusal> {
        let mut has_room = leads;
        for slot in 0..slots {
            let slot = match slot {
                0 => place.cursor,
                // A capacity is far enough below 2^32 that this does not wrap where the first slot is below it.
                more => self.op(Class::B32, "add.u32", &[place.cursor, Operand::word(more)]),
            };
            let capacity = self.capacity_of_slots(place.number)?;
            has_room = self.op(Class::Pred, "setp.lt.and.u32", &[slot, capacity, has_room]);
        }
        Ok(has_room)
    }

    /// The fields of the elected lane that are stored.
    pub(super) fn scalars(
        &mut self,
        event: Event<'a>,
        declared: &'a Map,
        layout: &'a Layout,
    ) -> Result<Vec<Piece<'a>>, Refusal> {
        let p = event.probe;
        let is_stored = |field: u32| {
            let lanes = declared.fields.get(field as usize).is_some_and(|field| field.lanes);
            !lanes && !declared.told.contains(&field)
        };
        let stored = || event.values.iter().filter(|(field, _)| is_stored(*field));
        let roots: Vec<ValueId> = stored().map(|&(_, value)| value).collect();
        self.demand(p, &roots)?;
        let mut pieces = Vec::with_capacity(roots.len() + 4);
        for &(field, value) in stored() {
            let (Some(slot), Some(of)) =
                (layout.slots.get(field as usize), declared.fields.get(field as usize))
            else {
                return Err("its program has no such field".into());
            };
            let value = self.value(p, value)?;
            let value = self.as_stored(layout, field, of.ty, value);
            pieces.push(Piece { offset: slot.offset, size: slot.size, value });
        }
        if let Presence::Byte(slot) = layout.presence {
            pieces.push(Piece { offset: slot.offset, size: slot.size, value: Operand::word(1) });
        }
        Ok(pieces)
    }

    /// The first two words: 48 bits of the first lane's address, and the code.
    pub(super) fn base_and_code(
        &mut self,
        event: Event<'a>,
        declared: &'a Map,
        code: u32,
    ) -> Result<[Operand<'a>; 2], Refusal> {
        let field = declared.base_field();
        let value = event.values.iter().find(|(of, _)| Some(*of) == field).map(|&(_, value)| value);
        let upper = u64::from(code) << 48;
        let Some(value) = value else {
            return Ok([Operand::word(0), Operand::word((upper >> 32) as u32)]);
        };
        self.demand(event.probe, &[value])?;
        let value = self.value(event.probe, value)?;
        if let Operand::Number { bits, .. } = value {
            let word = (bits & 0xffff_ffff_ffff) | upper;
            return Ok([Operand::word(word as u32), Operand::word((word >> 32) as u32)]);
        }
        let (low, high) = (self.temp(Class::B32), self.temp(Class::B32));
        self.line(format_args!("mov.b64 {{{low}, {high}}}, {value};"));
        let high = self.op(Class::B32, "and.b32", &[high, Operand::word(0xffff)]);
        let high = match code {
            0 => high,
            code => self.op(Class::B32, "or.b32", &[high, Operand::word(code << 16)]),
        };
        Ok([low, high])
    }
}
