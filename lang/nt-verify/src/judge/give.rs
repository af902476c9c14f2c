//! V15: what a span gives to the clone that is called behind it.
//!
//! ```text
//! .param .align 8 .b8 nt_arg9[24]; { … st.param.b64 [nt_arg9+0], %nt_a; st.param.b32 [nt_arg9+16], %nt_s_n; }
//! ```
//!
//! Here it is only noted what each word is: a word of the caller's own context, a state, or anything else. What it
//! should be is the clone's claim to say (`clone.rs`).

use super::{During, Judge};
use crate::Rule;
use crate::claim::{FieldKind, Map};
use crate::opcode::Form;
use crate::span::{Instruction, Shape};
use crate::value::{Area, Content, Fact, Known, Predicate, Room, Unknown};
use nt_diag::Span;

/// An argument that a span declares and fills.
#[derive(Debug, Clone)]
pub(crate) struct Argument<'w> {
    pub(crate) name: &'w str,
    pub(crate) span: Span,
    pub(crate) bytes: u32,
    pub(crate) given: Vec<(u32, u32, Given)>,
}

/// What stands in a word of an argument; offset and bytes are beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// A word of the caller's context that is not of a map.
    Word(FieldKind),
    /// One that is: the map, and which of its words, as of map 0.
    OfMap(Map, FieldKind),
    /// States of the caller, its own or those given to it, that have this value: mostly one.
    States(Vec<String>),
}

/// A word that a span gives back to the caller of its function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gave<'w> {
    pub(crate) span: Span,
    /// What the return parameter is called there.
    pub(crate) base: &'w str,
    pub(crate) offset: i64,
    pub(crate) bytes: u32,
    /// The registers that had this value where the span ended, without `%` and prefix.
    pub(crate) registers: Vec<String>,
    value: Known,
}

/// A word that a span takes of what the call before it gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Took<'w> {
    pub(crate) span: Span,
    /// What the result of the call is called there.
    pub(crate) base: &'w str,
    pub(crate) offset: i64,
    pub(crate) bytes: u32,
    /// The register that it is taken into, without `%` and prefix; none if that is no state.
    pub(crate) register: Option<&'w str>,
    value: Known,
}

/// The most words of the arguments of a span: beyond any context.
const MOST_WORDS: usize = 4096;

impl<'w> Judge<'_, 'w> {
    pub(super) fn declare_argument(&mut self, name: &'w str, bytes: u32, span: Span) {
        if !self.is_ours(name) {
            self.foreign(name, span);
        }
        if name.starts_with(['%', '$']) || name == self.context || self.argument(name).is_some() {
            self.add(Rule::V4, span, format!("`{name}` cannot be the name of an argument here"));
        }
        if self.site.is_after {
            self.add(Rule::V15, span, "an argument behind the call that it would be for");
        }
        self.arguments.push(Argument { name, span, bytes, given: Vec::new() });
    }

    fn argument(&mut self, name: &str) -> Option<&mut Argument<'w>> {
        self.arguments.iter_mut().find(|argument| argument.name == name)
    }

    /// `st.param.b64 [nt_arg+8], %nt_a;`
    pub(super) fn give(
        &mut self,
        form: &Form,
        instruction: &Instruction<'w>,
        values: Option<&[Known]>,
        during: &During,
    ) {
        let Some((operand, Shape::Address { base, offset })) =
            instruction.operands.first().map(|operand| (operand, &operand.shape))
        else {
            return;
        };
        // A word that is given on some ways, or by some lanes, is none.
        if during.guard.is_some() || self.stretch > 0 {
            let message = "a word of an argument is given under a guard, or behind a branch or label";
            return self.add(Rule::V15, operand.span, message);
        }
        let Some([value]) = values else { return };
        let bytes = form.last / 8;
        let base = *base;
        if self.site.is_return && self.argument(base).is_none() {
            if self.gave.len() < MOST_WORDS {
                let (span, value) = (operand.span, value.clone());
                self.gave.push(Gave { span, base, offset: *offset, bytes, registers: Vec::new(), value });
            }
            return;
        }
        let given = self.given(value, form.last);
        let Some(argument) = self.argument(base) else {
            return self.add(
                Rule::V15,
                operand.span,
                format!("`{base}` is no argument that this span declares"),
            );
        };
        let place = u32::try_from(*offset).ok().filter(|offset| offset % bytes == 0);
        let Some(place) = place.filter(|place| place + bytes <= argument.bytes) else {
            let message = format!("this is no word of the {} bytes of `{base}`", argument.bytes);
            return self.add(Rule::V15, operand.span, message);
        };
        if argument.given.iter().any(|(other, size, _)| place < other + size && *other < place + bytes) {
            return self.add(Rule::V15, operand.span, "a word of an argument is given twice");
        }
        if argument.given.len() < MOST_WORDS {
            argument.given.push((place, bytes, given));
        }
    }

    /// What was given back, now that the span is over: what is assigned behind it does not come along.
    pub(super) fn all_given_back(&mut self) -> Vec<Gave<'w>> {
        let mut gave = std::mem::take(&mut self.gave);
        for one in &mut gave {
            if let Given::States(states) = self.given(&one.value, 8 * one.bytes) {
                one.registers = states;
            }
        }
        gave
    }

    /// `ld.param.b32 %nt_c_ev, [retval0+4];` behind a call; under no guard, which ptxas does not take there.
    pub(super) fn take(&mut self, form: &Form, instruction: &Instruction<'w>, during: &During) -> bool {
        let [to, from] = instruction.operands.as_slice() else { return false };
        let (Shape::Name(name), &Shape::Address { base, offset }) = (&to.shape, &from.shape) else {
            return false;
        };
        if !self.site.is_call || base == self.context {
            return false;
        }
        if during.guard.is_some() || self.stretch > 0 || self.took.len() >= MOST_WORDS {
            let message = "what a call gives back is taken under a guard, or behind a branch or label";
            self.add(Rule::V15, from.span, message);
        }
        let value = self.fresh(form.last);
        let register = self.state_of(name);
        let took =
            Took { span: from.span, base, offset, bytes: form.last / 8, register, value: value.clone() };
        self.took.push(took);
        self.destinations(form, instruction, &value, during);
        true
    }

    /// `@%p1 mov.b32 %nt_c_ev, %nt_r0;` behind a call under that guard, where the register holds what was taken.
    pub(super) fn take_over(&mut self, instruction: &Instruction<'w>, values: &[Known], during: &During) {
        let ([value], Some(Shape::Name(name))) =
            (values, instruction.operands.first().map(|operand| &operand.shape))
        else {
            return;
        };
        let guard = self.site.guard.map(|(_, negated)| Fact::Held(0, !negated));
        let is_whole =
            self.stretch == 0 && guard.is_some() && during.guard.as_ref().map(Predicate::own) == guard;
        if self.took.is_empty() || !is_whole {
            return;
        }
        let register = self.state_of(name);
        if let Some(took) = self.took.iter_mut().find(|took| took.value == *value && took.register.is_none())
        {
            took.register = register;
        }
    }

    /// The name of a register at function level, without `%` and prefix.
    fn state_of(&self, name: &'w str) -> Option<&'w str> {
        self.find(name).and_then(|register| self.registers.get(register)?.state)?;
        name.strip_prefix('%').and_then(|name| name.strip_prefix(&self.site.claim.prefix))
    }

    /// What a value is.
    fn given(&self, value: &Known, bits: u32) -> Given {
        let claim = self.site.claim;
        let of_map = |map: u32, kind: FieldKind| {
            let wanted = claim.fields.iter().any(|field| {
                let same = match (field.kind, kind) {
                    (FieldKind::Base(of), FieldKind::Base(_))
                    | (FieldKind::Cap(of), FieldKind::Cap(_))
                    | (FieldKind::Units(of), FieldKind::Units(_))
                    | (FieldKind::Cursor(of), FieldKind::Cursor(_))
                    | (FieldKind::Drops(of), FieldKind::Drops(_))
                    | (FieldKind::Counts(of), FieldKind::Counts(_)) => of == map,
                    _ => false,
                };
                same && field.size * 8 == bits
            });
            claim.maps.get(map as usize).filter(|_| wanted).map(|map| Given::OfMap(map.clone(), kind))
        };
        let unknown = match value {
            Known::Word(linear) | Known::Half(linear) => linear.as_unknown(),
            _ => None,
        };
        let word = match unknown {
            Some(Unknown::Base(Area::Records(map))) => of_map(map, FieldKind::Base(0)),
            Some(Unknown::Base(Area::Cursor(map))) => of_map(map, FieldKind::Cursor(0)),
            Some(Unknown::Base(Area::Drops(map))) => of_map(map, FieldKind::Drops(0)),
            Some(Unknown::Base(Area::Counts(map))) => of_map(map, FieldKind::Counts(0)),
            Some(Unknown::Room(Room::Cap(map)) | Unknown::Low(Room::Cap(map))) => {
                of_map(map, FieldKind::Cap(0))
            }
            Some(Unknown::Room(Room::Units(map)) | Unknown::Low(Room::Units(map))) => {
                of_map(map, FieldKind::Units(0))
            }
            _ => None,
        };
        if let Some(word) = word {
            return word;
        }
        let same =
            |offset: u32, size: u32| size * 8 == bits && self.words.get(&(offset, bits)) == Some(value);
        let mut states = Vec::new();
        for field in claim.fields.iter().filter(|field| same(field.offset, field.size)) {
            match field.kind {
                FieldKind::State(state) => states.extend(claim.states.get(state as usize).cloned()),
                kind => return Given::Word(kind),
            }
        }
        // A state's register is called as it is.
        let contents = self.now.as_ref().map_or(&[][..], |here| here.contents.as_slice());
        for (register, content) in self.registers.iter().zip(contents) {
            if let Some(name) = register.state.and_then(|name| name.strip_prefix('%'))
                && let Some(name) = name.strip_prefix(&claim.prefix)
                && *content == Content::Assigned(value.clone())
                && register.bits == bits
            {
                states.push(name.to_owned());
            }
        }
        Given::States(states)
    }
}
