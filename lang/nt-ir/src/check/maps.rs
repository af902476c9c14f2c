//! What must hold of maps: names, kinds, fields, columns, and what is saved into them.

use super::{Checker, FIELDS, is_name};
use crate::known::known_when_woven;
use crate::layout::{EVENT_SLOTS, SLOT, most_slots};
use crate::program::{Inst, MOST_RECORDS, Map, MapId, MapKind, Op, Probe, Source, Type, Unit, ValueId};
use std::collections::BTreeSet;

/// The slots that a stream may have: their numbers are 32 bits wide, and the last ones mean something else.
const STREAM_SLOTS: u64 = 0xffff_0000;

impl Checker<'_> {
    pub(super) fn maps(&mut self) {
        let stream = self.program.config.stream;
        if stream == 0 || stream > STREAM_SLOTS * u64::from(SLOT) {
            self.wrong(nt_diag::Span::default(), format!("a stream of {stream} bytes"));
        }
        let mut names = BTreeSet::new();
        for map in &self.program.maps {
            if !is_name(&map.name) || !names.insert(&map.name) {
                self.wrong(map.span, format!("map `{}` has no name of its own", map.name));
            }
            self.fields(map);
            self.kind(map);
            self.columns(map);
        }
        self.told();
    }

    fn fields(&mut self, map: &Map) {
        let mut names = BTreeSet::new();
        for field in &map.fields {
            if !is_name(&field.name) || !names.insert(&field.name) {
                self.wrong(
                    map.span,
                    format!("field `{}` of map `{}` has no name of its own", field.name, map.name),
                );
            }
        }
        if map.fields.len() > FIELDS {
            self.wrong(map.span, format!("map `{}` has more than {FIELDS} fields", map.name));
        }
        if map.fields.is_empty() {
            self.wrong(map.span, format!("map `{}` has no fields", map.name));
        }
    }

    fn kind(&mut self, map: &Map) {
        let name = &map.name;
        match map.kind {
            MapKind::Stream if map.unit != Unit::Warp => {
                self.wrong(map.span, format!("the stream `{name}` is not of warps"));
            }
            MapKind::Slots { capacity, .. }
                if map.unit == Unit::Block || !(1..=MOST_RECORDS).contains(&capacity) =>
            {
                self.wrong(map.span, format!("`{name}` has room for {capacity} a {}", map.unit.word()));
            }
            MapKind::Array | MapKind::Slots { .. } if map.has_lanes() => {
                self.wrong(map.span, format!("`{name}` has values of each lane and is no stream"));
            }
            _ => {}
        }
        if map.kind == MapKind::Stream && map.fields.len() <= FIELDS && most_slots(map) > EVENT_SLOTS {
            self.wrong(map.span, format!("an event of `{name}` may not fit a chunk"));
        }
    }

    fn columns(&mut self, map: &Map) {
        let mut names = BTreeSet::new();
        for column in &map.columns {
            if !is_name(&column.name) || !names.insert(&column.name) {
                self.wrong(
                    map.span,
                    format!("column `{}` of map `{}` has no name of its own", column.name, map.name),
                );
            }
            let field = |index: u32| map.fields.get(index as usize);
            let widened = |index: u32| field(index).is_some_and(|field| widens(field.ty, column.ty));
            let scalar = |index: u32| field(index).is_some_and(|field| !field.lanes);
            let holds = match column.source {
                Source::Field(index) => widened(index),
                Source::Difference(end, length) => [end, length].into_iter().all(|i| widened(i) && scalar(i)),
            };
            if !holds {
                let message =
                    format!("column `{}` of map `{}` is not a field, widened", column.name, map.name);
                self.wrong(map.span, message);
            }
        }
    }

    /// Is each told field one that may be?
    fn told(&mut self) {
        for map in &self.program.maps {
            let scalar = |field: &u32| map.fields.get(*field as usize).is_some_and(|field| !field.lanes);
            let ascends = map.told.is_sorted_by(|a, b| a < b);
            let tells = map.has_lanes() && ascends && map.told.iter().all(scalar);
            if !(tells || map.told.is_empty()) {
                self.wrong(
                    map.span,
                    format!("the code of an event of `{}` does not tell its fields", map.name),
                );
            }
        }
    }

    /// Is each value of a told field known when a kernel is woven? The operands are known to be defined.
    pub(super) fn saves_of_told(&mut self, probe: &Probe) {
        let tells = self.program.maps.iter().any(|map| !map.told.is_empty());
        if !tells {
            return;
        }
        let known = known_when_woven(probe);
        for inst in &probe.code {
            let Op::Save { map: MapId(map), values } = &inst.op else { continue };
            let told = self.program.maps.get(*map as usize).map_or(&[][..], |map| &map.told);
            let unknown = values
                .iter()
                .find(|(field, value)| told.contains(field) && known.get(value.0 as usize) != Some(&true));
            if unknown.is_some() {
                self.wrong(inst.span, "a told field is saved from what is not known when a kernel is woven");
            }
        }
    }

    pub(super) fn save(&mut self, probe: &Probe, inst: &Inst, map: MapId, values: &[(u32, ValueId)]) {
        let value = |id: ValueId| probe.values[id.0 as usize];
        let Some(map) = self.program.maps.get(map.0 as usize) else {
            return self.wrong(inst.span, "a save into no map");
        };
        if map.unit != probe.unit {
            let (of, by) = (map.unit.word(), probe.unit.word());
            self.wrong(inst.span, format!("map `{}` is per {of}, the probe runs per {by}", map.name));
        }
        let ascending = values.iter().map(|(field, _)| *field).eq(0..map.fields.len() as u32);
        if !ascending {
            return self
                .wrong(inst.span, format!("a save into `{}` does not give each field once", map.name));
        }
        for ((_, id), field) in values.iter().zip(&map.fields) {
            if value(*id).ty != field.ty {
                let message =
                    format!("field `{}` of `{}` is not {}", field.name, map.name, value(*id).ty.word());
                self.wrong(inst.span, message);
            }
            if probe.unit != Unit::Thread && !value(*id).uniform && !field.lanes {
                self.wrong(inst.span, format!("field `{}` is saved from what varies", field.name));
            }
        }
    }
}

/// Can a reader show a field of type `from` in a column of type `to`?
fn widens(from: Type, to: Type) -> bool {
    let integers = from.is_integer() && to.is_integer();
    from == to || (integers && from.bits() <= to.bits() && (to.is_signed() || !from.is_signed()))
}
