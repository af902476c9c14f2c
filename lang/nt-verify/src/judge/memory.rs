//! V11: what is written to memory is a record, cell, slot or count that the claim tells of, proved to be within bounds.
//!
//! ```text
//! st.global.u64 [%nt_a+8], %nt_end;             a = base(heat) + 16·i, and i < cap(heat) holds here
//! red.global.add.u32 [%nt_d], 1;                d = drops(ev) + 4·w, and w < units(ev)
//! atom.global.add.u64 %nt_f, [%nt_d], %nt_n;    d = base(@gone) + 8·w, and w < cap(@gone), as with `red`
//! atom.global.add.u64 %nt_f, [%nt_u], 1;        u = cursor(ev) + 8·rank, and rank is 0 in every lane that is here
//! atom.global.add.u32 %nt_f, [%nt_u+4], 1;      u = counts(last) + 8·w + 8·rank, and w < units(last)
//! st.global.b32 [%nt_u], %nt_n;                 u = counts(last) + 8·w: the lower half, which nothing is added to
//! ```
//!
//! A rank in an address is how a single lane adds: the address seems to differ between lanes, so that ptxas elects none again.
//!
//! One comparison may speak for several records of a row. Of `i < cap` and `(i + c) mod 2^32 < cap`, where `c` is small
//! and `cap` well below 2^32, follows that `i + c` does not wrap and that all from `i` to `i + c` are below; and so it
//! does of `i + c < cap` alone where the sum of 64 bits cannot wrap.

use super::{During, Judge};
use crate::Rule;
use crate::claim::{SLOT, Shape as MapShape, WARP_COUNT};
use crate::opcode::{Act, Form, Slot};
use crate::span::{Instruction, Shape};
use crate::value::{Area, Fact, Facts, Known, Linear, Room, Unknown};

/// Bytes of a stream's cursor, of a count of drops, and of what is stored or added to in a unit's counts.
const CURSOR: u64 = 8;
const DROPS: u64 = 4;
const COUNT: u64 = 4;

impl<'w> Judge<'_, 'w> {
    /// A store, an addition or a claim, of an `amount` where that is told.
    pub(super) fn effect_on_memory(
        &mut self,
        form: &Form,
        instruction: &Instruction<'w>,
        amount: Option<Linear>,
        during: &During,
    ) {
        let place = form.slots.iter().position(|slot| *slot == Slot::Global);
        let Some(operand) = place.and_then(|place| instruction.operands.get(place)) else { return };
        let Shape::Address { base, offset } = operand.shape else { return };
        let span = operand.span;
        self.effect(span, during);
        if self.find(base).is_none() {
            return self.add(Rule::V11, span, format!("`{base}` is no address that this span computed"));
        }
        let Some(Known::Word(address)) = self.read(base, 64, span, during) else { return };
        let Some(address) = address.plus(&Linear::constant(offset as u64), 1) else { return };
        let Some(area) = address.base() else {
            return self.add(Rule::V11, span, format!("`{base}` is not computed from the base of one map"));
        };
        let bytes = u64::from(form.last / 8 * form.lanes);
        let refused = match (form.act, area) {
            (Act::Store, Area::Records(map)) if !self.is_table(map) => {
                self.in_records(base, &address, map, bytes, &during.facts)
            }
            // What a cell held before may be asked for, too.
            (Act::Reduce | Act::Claim, Area::Records(map)) if self.is_table(map) => {
                self.in_records(base, &address, map, bytes, &during.facts)
            }
            (Act::Reduce, Area::Drops(map)) if bytes == DROPS => {
                self.in_drops(base, &address, map, &during.facts)
            }
            (Act::Claim, Area::Cursor(map)) if bytes == CURSOR => {
                self.at_cursor(base, &address, map, amount, &during.facts)
            }
            (Act::Store | Act::Claim, Area::Counts(map)) if bytes == COUNT => {
                self.in_counts(base, &address, map, form.act, amount, &during.facts)
            }
            (act, area) => Some(self.misused(act, area)),
        };
        if let Some(message) = refused {
            self.add(Rule::V11, span, message);
        }
    }

    fn is_table(&self, map: u32) -> bool {
        self.site.claim.maps.get(map as usize).is_some_and(crate::claim::Map::is_table)
    }

    fn name(&self, map: u32) -> &str {
        self.site.claim.maps.get(map as usize).map_or("", |map| map.name.as_str())
    }

    /// What is wrong with an effect on that kind of memory.
    fn misused(&self, act: Act, area: Area) -> String {
        let does = match act {
            Act::Store => "nothing is stored",
            Act::Reduce => "nothing is added",
            _ => "nothing is claimed",
        };
        match area {
            Area::Records(map) if self.is_table(map) => {
                format!("`{}` is a table, into whose cells {does}", self.name(map))
            }
            Area::Records(map) => format!("`{}` is a map, to whose records {does}", self.name(map)),
            Area::Cursor(map) => {
                format!("this is the cursor of `{}`, which only `atom.global.add.u64` moves", self.name(map))
            }
            Area::Drops(map) => {
                format!(
                    "these are the drops of `{}`, to which only `red.global.add.u32` adds",
                    self.name(map)
                )
            }
            Area::Counts(map) => {
                format!(
                    "these are the counts of `{}`, of which the lower half is stored by `st.global.b32`, and a warp's upper half \
                     is what `atom.global.add.u32` adds to",
                    self.name(map)
                )
            }
        }
    }

    /// Are the bytes those of records of a map below its capacity, aligned? If not, what is wrong.
    fn in_records(
        &self,
        base: &str,
        address: &Linear,
        map: u32,
        bytes: u64,
        facts: &Facts,
    ) -> Option<String> {
        let mut bounded = false;
        for (first, more) in self.rows(Room::Cap(map), facts) {
            bounded = true;
            if self.within(address, map, &first, more, bytes, facts) {
                return None;
            }
        }
        let name = self.name(map);
        Some(match bounded {
            true => format!(
                "`{base}` is not the base of `{name}` plus its shape times the index that was compared, or {bytes} bytes \
                 there are not aligned within a record"
            ),
            false => format!("no index is known to be below the capacity of `{name}` here"),
        })
    }

    /// The indices that are known to be below that number: each first one, and how many more behind it.
    fn rows<'s>(&'s self, room: Room, facts: &'s Facts) -> impl Iterator<Item = (Linear, u64)> + 's {
        let below = facts.iter().filter_map(move |fact| match fact {
            Fact::Below(index, of) if *of == room => Some(index),
            _ => None,
        });
        below.flat_map(move |index| {
            let alone = Some((index.clone(), 0));
            let is_stream = matches!(room, Room::Cap(map)
                if self.site.claim.maps.get(map as usize).is_some_and(crate::claim::Map::is_stream));
            let low = self
                .sum(index)
                .filter(|(first, _)| is_stream && facts.holds(&Fact::Below(first.clone(), room)));
            let whole = (index.rest() > 0 && self.most(index).is_some())
                .then(|| (index.only(|_| true), index.rest()));
            [alone, low, whole].into_iter().flatten()
        })
    }

    /// Do `bytes` bytes at `address` lie within records `first` to `first + more` of a map, aligned?
    fn within(
        &self,
        address: &Linear,
        map: u32,
        first: &Linear,
        more: u64,
        bytes: u64,
        facts: &Facts,
    ) -> bool {
        let Some(shape) = self.site.claim.maps.get(map as usize).map(|map| &map.shape) else { return false };
        let packed = |stride: u32| {
            let stride = u64::from(stride);
            let room = more.checked_add(1).and_then(|rows| rows.checked_mul(stride));
            stride.is_multiple_of(bytes)
                && room.is_some_and(|room| {
                    self.rest(address, Area::Records(map), first, stride)
                        .is_some_and(|rest| self.has_room(&rest, room, bytes, facts))
                })
        };
        match shape {
            MapShape::Packed { stride } => packed(*stride),
            MapShape::Slots => packed(SLOT),
            MapShape::Columns(columns) => columns.iter().any(|column| {
                let caps = u64::from(column.offset).wrapping_neg();
                let rest = self
                    .rest(address, Area::Records(map), first, u64::from(column.width))
                    .and_then(|rest| rest.plus(&Linear::unknown(Unknown::Room(Room::Cap(map))), caps));
                bytes == u64::from(column.width) && rest.and_then(|rest| rest.as_constant()) == Some(0)
            }),
        }
    }

    /// What is left of an address without the base of an area and so many bytes for each index.
    fn rest(&self, address: &Linear, area: Area, index: &Linear, bytes: u64) -> Option<Linear> {
        address.plus(&Linear::unknown(Unknown::Base(area)), u64::MAX)?.plus(index, bytes.wrapping_neg())
    }

    /// Do `bytes` bytes from `at` on, aligned, end within `room`?
    fn has_room(&self, at: &Linear, room: u64, bytes: u64, facts: &Facts) -> bool {
        let Some(at) = self.without_zeros(at, facts) else { return false };
        let end = self.most(&at).and_then(|most| most.checked_add(bytes));
        end.is_some_and(|end| end <= room) && self.is_aligned(&at, bytes)
    }

    /// Is the address that of a warp's drops?
    fn in_drops(&self, base: &str, address: &Linear, map: u32, facts: &Facts) -> Option<String> {
        let fits = self.rows(Room::Units(map), facts).any(|(warp, _)| {
            let rest = self.rest(address, Area::Drops(map), &warp, DROPS);
            rest.is_some_and(|rest| self.has_room(&rest, DROPS, DROPS, facts))
        });
        (!fits).then(|| {
            format!(
                "`{base}` is not the drops of `{}` plus 4 times a warp that is below `units` here",
                self.name(map)
            )
        })
    }

    /// Is the address that of a unit's count: of what it is to store, or, of a warp, of what its other lanes took?
    fn in_counts(
        &self,
        base: &str,
        address: &Linear,
        map: u32,
        act: Act,
        amount: Option<Linear>,
        facts: &Facts,
    ) -> Option<String> {
        let name = self.name(map);
        let of_unit = self.site.claim.maps.get(map as usize).and_then(|map| map.counts).unwrap_or(0);
        let adds = act == Act::Claim;
        if adds && of_unit != WARP_COUNT {
            return Some(format!("to the counts of `{name}`, which are of threads, nothing is added"));
        }
        let half = if adds { COUNT } else { 0 };
        let fits = self.rows(Room::Units(map), facts).any(|(unit, _)| {
            let rest = self.rest(address, Area::Counts(map), &unit, u64::from(of_unit));
            let rest = rest.and_then(|rest| rest.plus(&Linear::constant(half), u64::MAX));
            rest.is_some_and(|rest| self.has_room(&rest, COUNT, COUNT, facts))
        });
        if !fits {
            let half = if adds { "upper half of the " } else { "" };
            return Some(format!(
                "`{base}` is not the {half}count of `{name}` of a unit that is below `units` here, in every lane that comes here"
            ));
        }
        let is_one = amount.is_none_or(|amount| amount.as_constant() == Some(1));
        (!is_one).then(|| format!("records of `{name}` are counted one at a time"))
    }

    /// Is the address the cursor's, and what is added 1?
    fn at_cursor(
        &self,
        base: &str,
        address: &Linear,
        map: u32,
        amount: Option<Linear>,
        facts: &Facts,
    ) -> Option<String> {
        let name = self.name(map);
        let rest = self.rest(address, Area::Cursor(map), &Linear::constant(0), 0);
        if !rest.is_some_and(|rest| self.has_room(&rest, CURSOR, CURSOR, facts)) {
            return Some(format!("`{base}` is not the cursor of `{name}` in every lane that comes here"));
        }
        let is_one = amount.is_some_and(|amount| amount.as_constant() == Some(1));
        (!is_one).then(|| format!("chunks of `{name}` are claimed one at a time"))
    }
}
