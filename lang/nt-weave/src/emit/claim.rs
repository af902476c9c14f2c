//! Room in a stream: is a lane's chunk full, who claims another, and what is noted of it.
//!
//! ```text
//!     setp.ne.u32 %nt_p2, %nt_c_dmat, 4294901760;          does the lane still ask?
//!     mov.b64 %nt_d3, 4294901760;
//!     @%nt_p2 atom.global.add.u64 %nt_d3, [%nt_d2], 1;     the number of a chunk behind the units' first ones
//!     …                                                    its slots: are they below the capacity?
//!     @%nt_p5 st.global.b64 [%nt_d14], %nt_d18;            whose it is
//!     @%nt_p7 red.global.add.u32 [%nt_d22], 1;             or one event more that found no room
//! ```
//!
//! All that claim meet at one count, and an address takes one of them after the other. With chunks of 64 slots that is
//! seldom enough: more counts gained nothing. `docs/performance.md`, Tried.

use super::operand::{Class, Operand};
use super::stream::{DEAD, Group, Place};
use super::{Refusal, Span};
use crate::context::Fill;
use crate::streams::{Room, Stream};
use nt_ir::layout::SLOT;
use nt_ir::program::Unit;

/// A chunk that was asked for.
#[derive(Clone, Copy)]
pub(super) struct Claimed<'a> {
    /// Its slot 0, in 64 bits; where there is no such chunk, one behind the end.
    slot: Operand<'a>,
    /// The slot behind that.
    pub(super) first: Operand<'a>,
    /// Is it there?
    pub(super) is_there: Operand<'a>,
}

impl<'a> Span<'a> {
    /// Sees to it that the leader's chunk has room for so many slots, or counts what it has no room for.
    pub(super) fn make_room(
        &mut self,
        place: Place<'a>,
        room: Room,
        group: Group<'a>,
    ) -> Result<(), Refusal> {
        let Place { stream: &Stream { chunk, .. }, cursor, .. } = place;
        let leads = group.leads;
        let low = Operand::word(chunk - 1);
        let is_full = match room.slots {
            1 => {
                let at = self.op(Class::B32, "and.b32", &[cursor, low]);
                self.op(Class::Pred, "setp.eq.and.u32", &[at, Operand::word(0), leads])
            }
            slots => {
                // One less, so that a cursor without a chunk is the fullest.
                let at = self.op(Class::B32, "add.u32", &[cursor, Operand::word(u32::MAX)]);
                let at = self.op(Class::B32, "and.b32", &[at, low]);
                let last = Operand::word((chunk - 1).saturating_sub(slots));
                self.op(Class::Pred, "setp.gt.and.u32", &[at, last, leads])
            }
        };
        let goes_on = self.label();
        let target = self.target(goes_on);
        self.line(format_args!("@!{is_full} bra {target};"));
        let mark = self.enter();
        self.claim(place, room.events, group)?;
        self.leave(mark);
        self.place_label(goes_on);
        Ok(())
    }

    /// Claims a chunk for the leader, who is alone here, or counts so many events as dropped.
    fn claim(&mut self, place: Place<'a>, events: u32, group: Group<'a>) -> Result<(), Refusal> {
        let cursor = place.cursor;
        let lives = self.op(Class::Pred, "setp.ne.u32", &[cursor, Operand::word(DEAD)]);
        let claimed = self.claimed(place, group, lives)?;
        let next = self.op(Class::B32, "selp.b32", &[claimed.first, Operand::word(DEAD), claimed.is_there]);
        self.line(format_args!("mov.b32 {cursor}, {next};"));
        self.note(place, claimed, events)
    }

    /// The chunk that the lanes in which `lives` holds get, of which there is one: that leads.
    ///
    /// `atom` at an address that looks different in each lane, by the mask of the lanes below: the leader has none below, and
    /// without it ptxas elects a lane once more.
    pub(super) fn claimed(
        &mut self,
        place: Place<'a>,
        group: Group<'a>,
        lives: Operand<'a>,
    ) -> Result<Claimed<'a>, Refusal> {
        let Place { stream, number, .. } = place;
        let lower = group.lower.ok_or("it makes room where no lane is elected")?;
        let below = self.op(Class::B64, "cvt.u64.u32", &[lower]);
        let counter = self.context_word(Fill::Cursor(number))?;
        let counter = self.op(Class::B64, "add.u64", &[below, counter]);
        let claimed = self.temp(Class::B64);
        // Of a lane that gave up before, and of those that do not lead, a number beyond all chunks.
        self.line(format_args!("mov.b64 {claimed}, {DEAD};"));
        self.line(format_args!("@{lives} atom.global.add.u64 {claimed}, [{counter}], 1;"));
        let units = self.context_half(Fill::Units(number))?;
        let units = self.op(Class::B64, "cvt.u64.u32", &[units]);
        let chunk = self.op(Class::B64, "add.u64", &[claimed, units]);
        let slot = self.op(Class::B64, "shl.b64", &[chunk, Operand::word(stream.chunk.trailing_zeros())]);
        let capacity = self.capacity_of_slots(number)?;
        let capacity = self.op(Class::B64, "cvt.u64.u32", &[capacity]);
        // Capacities are whole chunks.
        let is_there = self.op(Class::Pred, "setp.lt.u64", &[slot, capacity]);
        let first = self.op(Class::B32, "cvt.u32.u64", &[slot]);
        let first = self.op(Class::B32, "add.u32", &[first, Operand::word(1)]);
        Ok(Claimed { slot, first, is_there })
    }

    /// Writes whose chunk it is into its first slot; counts so many events as dropped if there is none. The lane that has
    /// claimed it is alone here.
    pub(super) fn note(
        &mut self,
        place: Place<'a>,
        claimed: Claimed<'a>,
        events: u32,
    ) -> Result<(), Refusal> {
        let number = place.number;
        let Claimed { slot, is_there, .. } = claimed;
        let warp = self.index(Unit::Warp);
        let base = self.context_word(Fill::Base(number))?;
        let address = self.scaled(slot, SLOT, base);
        let owner = self.op(Class::B64, "shl.b64", &[warp, Operand::word(5)]);
        let lane = self.special("%laneid");
        let lane = self.op(Class::B64, "cvt.u64.u32", &[lane]);
        let owner = self.op(Class::B64, "add.u64", &[owner, lane]);
        let owner = self.op(Class::B64, "add.u64", &[owner, Operand::long(1)]);
        self.line(format_args!("@{is_there} st.global.b64 [{address}], {owner};"));
        let units = self.context_half(Fill::Units(number))?;
        let units = self.op(Class::B64, "cvt.u64.u32", &[units]);
        let drops = self.context_word(Fill::Drops(number))?;
        let drops = self.scaled(warp, 4, drops);
        let has_none = self.op(Class::Pred, "not.pred", &[is_there]);
        let counts = self.op(Class::Pred, "setp.lt.and.u64", &[warp, units, has_none]);
        self.line(format_args!("@{counts} red.global.add.u32 [{drops}], {events};"));
        Ok(())
    }
}
