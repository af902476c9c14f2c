//! V9, and V8 for membermasks: what an instruction reads has a value, and the value that was meant.
//!
//! ```text
//! ld.param.u64 %nt_a, [nt_ctx+8];   mad.wide.u32 %nt_a, %nt_i, 16, %nt_a;   @!%p1 bra $nt_L;
//! ```

use super::{During, Judge};
use crate::Rule;
use crate::claim::{Field, FieldKind};
use crate::opcode::{Form, Slot};
use crate::program::{Refused, Store};
use crate::span::{Instruction, Number, Operand, Shape};
use crate::special::special;
use crate::value::{Area, Content, Facts, Known, Linear, Predicate, Room, Unknown};
use nt_diag::Span;

impl<'w> Judge<'_, 'w> {
    /// V9 for every operand that is read. `None` if one may not be.
    pub(super) fn sources(
        &mut self,
        form: &Form,
        instruction: &Instruction<'w>,
        during: &During,
    ) -> Option<Vec<Known>> {
        let mut values = Vec::new();
        let mut sound = true;
        for (slot, operand) in form.slots.iter().zip(&instruction.operands) {
            let value = match slot {
                Slot::From(width) => self.value(operand, form.bits(*width), during),
                Slot::FromPredicate => self.value(operand, 1, during),
                Slot::FromBoth(width) => self.all(operand, form.bits(*width), during),
                Slot::Stored => self.all(operand, form.last, during),
                Slot::Context => self.context(operand, form.last),
                Slot::Pin => self.pin(operand),
                Slot::Mask => self.mask(operand, during),
                Slot::Global
                | Slot::Argument
                | Slot::Loaded
                | Slot::Overwritten
                | Slot::Target
                | Slot::To(_)
                | Slot::ToPredicates
                | Slot::ToBoth(_) => continue,
            };
            match value {
                Some(value) => values.push(value),
                None => sound = false,
            }
        }
        sound.then_some(values)
    }

    /// The value of a register or number of that many bits.
    pub(super) fn value(&mut self, operand: &Operand<'w>, bits: u32, during: &During) -> Option<Known> {
        match &operand.shape {
            Shape::Name(name) => self.read(name, bits, operand.span, during),
            Shape::Not(name) => match self.read(name, bits, operand.span, during)? {
                Known::Predicate(predicate) => Some(Known::Predicate(predicate.not())),
                _ => None,
            },
            Shape::Number(number) => {
                let value = constant(*number, bits);
                if value.is_none() {
                    self.add(Rule::V9, operand.span, format!("this number does not fit in {bits} bits"));
                }
                Some(match (bits, value?) {
                    (64, value) => Known::Word(Linear::constant(value)),
                    (32, value) => Known::Half(Linear::constant(value)),
                    _ => self.fresh(bits),
                })
            }
            _ => None,
        }
    }

    /// Each part of a vector, or the one operand; what they hold is not followed.
    pub(super) fn all(&mut self, operand: &Operand<'w>, bits: u32, during: &During) -> Option<Known> {
        let parts = match &operand.shape {
            Shape::Vector(parts) => parts.as_slice(),
            _ => std::slice::from_ref(operand),
        };
        let mut sound = true;
        for part in parts {
            sound &= self.value(part, bits, during).is_some();
        }
        sound.then_some(Known::Nothing)
    }

    /// V9 for a name.
    pub(super) fn read(&mut self, name: &'w str, bits: u32, span: Span, during: &During) -> Option<Known> {
        if let Some(register) = self.find(name) {
            let declared = self.registers.get(register).map_or(0, |register| register.bits);
            if !has_room(declared, bits) {
                self.add(Rule::V9, span, format!("`{name}` has {declared} bits where {bits} are read"));
                return None;
            }
            let content = self.now.as_ref().and_then(|here| here.contents.get(register));
            return match content {
                Some(Content::Assigned(known)) => Some(known.clone()),
                Some(Content::Where(fact, known)) if during.facts.holds(fact) => Some(known.clone()),
                Some(Content::Where(..)) => {
                    let message = format!("`{name}` is assigned under a guard only, and read outside of it");
                    self.add(Rule::V9, span, message);
                    None
                }
                Some(Content::Unassigned) | None => {
                    self.add(Rule::V9, span, format!("`{name}` is not assigned on every path to here"));
                    None
                }
            };
        }
        if let Some(width) = special(name) {
            if (self.site.shadows)(name) {
                self.add(Rule::V9, span, format!("the kernel declares a `{name}` of its own here"));
                return None;
            }
            if width != bits {
                self.add(Rule::V9, span, format!("`{name}` has {width} bits where {bits} are read"));
                return None;
            }
            return Some(match name {
                // A warp has 32 lanes.
                "%laneid" => Known::Half(self.unknown(31)),
                _ => self.fresh(bits),
            });
        }
        if bits == 1 && self.site.keeps_guard && self.site.guard.is_some_and(|(guard, _)| guard == name) {
            return Some(Known::Predicate(Predicate::new(0, &Facts::default(), &Facts::default())));
        }
        self.of_program(name, bits, span, during)
    }

    /// V9 and V10 for a name of the program.
    fn of_program(&mut self, name: &'w str, bits: u32, span: Span, during: &During) -> Option<Known> {
        let source = match (self.site.program)(name) {
            Ok(source) => source,
            Err(Refused::Source(what)) => {
                self.add(Rule::V9, span, format!("`{name}` {what}"));
                return None;
            }
            Err(Refused::Time(what)) => {
                self.add(Rule::V10, span, format!("`{name}` {what}"));
                return None;
            }
        };
        if self.site.pins.number(name).is_some() {
            self.add(Rule::V16, span, format!("`{name}` is pinned: its address is in `nt_pin`"));
            return None;
        }
        let bits_fit = match source.bits {
            0 => matches!(bits, 32 | 64),
            declared => has_room(declared, bits),
        };
        if !bits_fit {
            self.add(Rule::V9, span, format!("`{name}` has {} bits where {bits} are read", source.bits));
            return None;
        }
        if source.under_guard && !self.is_site_on(during) {
            let message =
                format!("`{name}` is assigned under guards only, and read outside of the site's guard");
            self.add(Rule::V10, span, message);
            return None;
        }
        if let Some(known) = self.program.get(&(name, bits)) {
            return Some(known.clone());
        }
        let known = self.fresh(bits);
        self.program.insert((name, bits), known.clone());
        Some(known)
    }

    /// V9 for `[nt_pin+8]`.
    fn pin(&mut self, operand: &Operand<'w>) -> Option<Known> {
        let Shape::Address { base, offset } = operand.shape else { return None };
        let words = i64::from(self.site.pins.words());
        if Some(base) != self.site.pins.name() || offset % 8 != 0 || !(0..words).contains(&(offset / 8)) {
            self.add(Rule::V9, operand.span, "this is no word of `nt_pin`".to_owned());
            return None;
        }
        let word = u32::try_from(offset / 8).ok()?;
        Some(Known::Word(Linear::unknown(Unknown::Pin(word))))
    }

    /// V9 for `[nt_ctx+8]`.
    pub(super) fn context(&mut self, operand: &Operand<'w>, bits: u32) -> Option<Known> {
        let Shape::Address { base, offset } = operand.shape else { return None };
        if base != self.context {
            self.add(Rule::V9, operand.span, format!("`{base}` is not the context `{}`", self.context));
            return None;
        }
        let width = bits / 8;
        let field = u32::try_from(offset).ok().and_then(|offset| self.site.claim.field_at(offset));
        // The low half of a number is a number; that of an address is nothing.
        let fits = |field: &Field| match field.kind {
            FieldKind::Base(_) | FieldKind::Cursor(_) | FieldKind::Drops(_) | FieldKind::Counts(_) => {
                width == field.size
            }
            FieldKind::Zero
            | FieldKind::Launch
            | FieldKind::Cap(_)
            | FieldKind::Units(_)
            | FieldKind::State(_) => width == field.size || width == 4,
        };
        let Some(field) = field.filter(fits) else {
            let end = offset + i64::from(width);
            let message = format!("bytes {offset} to {end} of the context are no field of the claim");
            self.add(Rule::V9, operand.span, message);
            return None;
        };
        let base = |area| Known::Word(Linear::unknown(Unknown::Base(area)));
        Some(match (field.kind, bits) {
            (FieldKind::Base(map), _) => base(Area::Records(map)),
            (FieldKind::Cursor(map), _) => base(Area::Cursor(map)),
            (FieldKind::Drops(map), _) => base(Area::Drops(map)),
            (FieldKind::Counts(map), _) => base(Area::Counts(map)),
            (FieldKind::Cap(map), 64) => Known::Word(Linear::unknown(Unknown::Room(Room::Cap(map)))),
            (FieldKind::Cap(map), 32) => Known::Half(Linear::unknown(Unknown::Low(Room::Cap(map)))),
            (FieldKind::Units(map), 32) => Known::Half(Linear::unknown(Unknown::Low(Room::Units(map)))),
            _ => match self.words.get(&(field.offset, bits)) {
                Some(known) => known.clone(),
                None => {
                    let known = self.fresh(bits);
                    self.words.insert((field.offset, bits), known.clone());
                    known
                }
            },
        })
    }

    /// V6 and V10 for a load of what the store at the site overwrites: the store's own access, where it happens.
    pub(super) fn old(&mut self, form: &Form, instruction: &Instruction<'w>, during: &During) {
        let Some(operand) = instruction.operands.get(1) else { return };
        let Shape::Address { base, offset } = operand.shape else { return };
        let space = match instruction.opcode.split('.').nth(1) {
            Some("shared") => "shared",
            Some("global") => "global",
            _ => "",
        };
        // A pinned variable's address, and what was added to it.
        let here = self.find(base).and_then(|register| self.now.as_ref()?.contents.get(register));
        let pinned = match here {
            Some(Content::Assigned(Known::Word(word))) => word.pin(),
            _ => None,
        };
        let pinned = pinned.and_then(|(pin, more)| Some((self.site.pins.symbol(pin)?, more)));
        let (base_of, offset) = match pinned {
            Some((symbol, more)) => (symbol, offset.wrapping_add(more as i64)),
            None => (base, offset),
        };
        let (bits, lanes) = (form.last, form.lanes);
        let is_it = (self.site.overwrites)(&Store { space, base: base_of, offset, bits, lanes });
        if !is_it {
            let message =
                "only what the store at the site overwrites is loaded, by its own address and width";
            return self.add(Rule::V6, operand.span, message);
        }
        if self.site.pins.number(base).is_some() {
            self.add(Rule::V16, operand.span, format!("`{base}` is pinned: its address is in `nt_pin`"));
        }
        if !self.is_site_on(during) {
            let message = "what a store overwrites is loaded outside of its guard";
            self.add(Rule::V10, operand.span, message);
        }
    }

    /// V8: the membermask is what `activemask` gave, in this stretch and under this guard.
    pub(super) fn mask(&mut self, operand: &Operand<'w>, during: &During) -> Option<Known> {
        let guard = during.guard.as_ref().map(Predicate::own);
        let known = match &operand.shape {
            Shape::Name(name) => self.read(name, 32, operand.span, during)?,
            _ => Known::Nothing,
        };
        if known == (Known::Lanes { stretch: self.stretch, guard }) {
            return Some(known);
        }
        let message = "the membermask is not what `activemask` gave here, under the same guard";
        self.add(Rule::V8, operand.span, message);
        None
    }
}

/// A number as that many bits, if it fits.
fn constant(number: Number, bits: u32) -> Option<u64> {
    match number {
        Number::Single(single) if bits == 32 => Some(u64::from(single)),
        Number::Double(double) if bits == 64 => Some(double),
        Number::Single(_) | Number::Double(_) => None,
        Number::Integer(value) => {
            let fits = -(1_i128 << (bits - 1)) <= value && value < 1 << bits;
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            // Two's complement, cut to the width that it fits in.
            fits.then_some(value as u64 & mask)
        }
    }
}

/// May a register of `declared` bits stand where an instruction of `wanted` bits has one? Exactly as wide, but for 8
/// bits, for which there is no register: `ld`, `st` and `cvt` take wider ones there.
pub(super) fn has_room(declared: u32, wanted: u32) -> bool {
    declared == wanted || (wanted == 8 && matches!(declared, 16 | 32))
}
