//! Maps of records: their kinds, and their fields. Language reference, Maps.

use super::{Checker, duplicate};
use crate::ast::{self, Item, Records};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::layout::{EVENT_SLOTS, SLOT, most_slots};
use nt_ir::program::{Column, Field, MOST_RECORDS, Map, MapKind, Policy, Source, Type, Unit};

/// The fields a record may have; a store of one is an instruction at every site.
const FIELDS: usize = 64;

/// A map of records, as far as it holds.
pub(super) struct Declared<'s> {
    pub(super) name: Word<'s>,
    pub(super) unit: Unit,
    pub(super) unit_word: Word<'s>,
    pub(super) kind: MapKind,
    pub(super) fields: Vec<DeclaredField<'s>>,
    pub(super) span: Span,
}

/// A field of such a map.
#[derive(Clone, Copy)]
pub(super) struct DeclaredField<'s> {
    pub(super) name: Word<'s>,
    /// `None` if it was refused.
    pub(super) ty: Option<Type>,
    /// Is it `lanes<T>`?
    pub(super) lanes: bool,
}

impl<'s> Declared<'s> {
    pub(super) fn new(records: &Records<'s>) -> Self {
        Declared {
            name: records.name,
            unit: records.unit.unit,
            unit_word: records.unit.word,
            kind: MapKind::Array,
            fields: records
                .fields
                .iter()
                .map(|field| DeclaredField { name: field.name, ty: None, lanes: false })
                .collect(),
            span: records.span,
        }
    }

    pub(super) fn lower(&self) -> Map {
        let field = |field: &DeclaredField<'_>| Field {
            name: field.name.text.to_owned(),
            ty: field.ty.unwrap_or(Type::U64),
            lanes: field.lanes,
        };
        let fields: Vec<Field> = self.fields.iter().map(field).collect();
        let column = |(i, field): (usize, &Field)| Column {
            name: field.name.clone(),
            ty: field.ty,
            source: Source::Field(i as u32),
        };
        let columns = fields.iter().enumerate().map(column).collect();
        Map {
            name: self.name.text.to_owned(),
            unit: self.unit,
            kind: self.kind,
            fields,
            told: Vec::new(),
            columns,
            span: self.span,
        }
    }

    pub(super) fn field_names(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name.text).collect();
        names.join(", ")
    }
}

impl<'s> Checker<'_, 's> {
    pub(super) fn declare_maps(&mut self) {
        let items = self.items;
        let mut index = 0;
        for item in items {
            if let Item::Records(records) = item {
                let kind = self.map_kind(records);
                if let Some(map) = self.maps.get_mut(index) {
                    map.kind = kind;
                }
                self.map_size(records);
                self.map_fields(records, index);
                index += 1;
            }
        }
    }

    /// The kind of a map; what is wrong with it is told, and any kind will do to go on.
    fn map_kind(&mut self, records: &Records<'s>) -> MapKind {
        let kind = records.kind;
        let unit = records.unit.unit;
        match kind.text {
            "array" if unit == Unit::Block => {
                self.not_yet(records.unit.word.span, "maps of blocks (`array<block>`)");
            }
            "stream" if unit != Unit::Warp => {
                let message = format!("there is no stream of {}s", unit.word());
                let diagnostic = Diagnostic::error("map-shape", records.unit.word.span, message)
                    .help("a `stream<warp>` with `lanes<T>` fields holds a value of each lane");
                self.found.push(diagnostic);
            }
            "stream" if records.capacity.is_some() => {
                let diagnostic =
                    Diagnostic::error("map-shape", kind.span, "a stream has no capacity of its own")
                        .help("all streams of a program are as long: `config { stream = 64MiB; }`");
                self.found.push(diagnostic);
            }
            "array" | "stream" => {}
            other => {
                let diagnostic = Diagnostic::error(
                    "map-shape",
                    kind.span,
                    format!("unknown kind of map `{other}`"),
                )
                .suggest(other, ["array", "stream"])
                .note("maps of records are `array<thread>`, `array<warp>`, `array<block>` and `stream<warp>`")
                .help("an aggregation needs no declaration: `@x[key] = sum(value);`");
                self.found.push(diagnostic);
            }
        }
        let policy = self.policy(records);
        match (kind.text, &records.capacity) {
            ("stream", _) => MapKind::Stream,
            ("array", Some(capacity)) => {
                let capacity = self.capacity(capacity).unwrap_or(1);
                MapKind::Slots { capacity, policy }
            }
            _ => MapKind::Array,
        }
    }

    /// What a full map does; what is wrong with it is told.
    fn policy(&mut self, records: &Records<'s>) -> Policy {
        let Some(word) = records.policy else { return Policy::Drop };
        let policy = Policy::from_word(word.text);
        let message = match (policy, records.kind.text, &records.capacity) {
            (None, ..) => format!("unknown policy `{}`", word.text),
            (Some(Policy::Wrap), "stream", _) => {
                "a stream that is full drops: to take its oldest chunk again would tear events".to_owned()
            }
            (Some(_), "stream", _) => "a stream that is full always drops, which is not said".to_owned(),
            (Some(_), _, None) => {
                format!(
                    "`{}` says what a full array does, and one without a capacity is never full",
                    word.text
                )
            }
            (Some(policy), _, Some(_)) => return policy,
        };
        let diagnostic = Diagnostic::error("map-shape", word.span, message)
            .suggest(word.text, Policy::ALL.iter().map(|policy| policy.word()))
            .help(match records.kind.text {
                "stream" => "what was dropped is counted, by warp",
                _ => "`array<warp>[8] wrap { … }` keeps the newest 8",
            });
        self.found.push(diagnostic);
        Policy::Drop
    }

    /// `[8]`, `[PER_WARP]`
    fn capacity(&mut self, capacity: &ast::Expr<'s>) -> Option<u32> {
        let value = self.constant_of(capacity, Type::U64)?;
        match u32::try_from(value) {
            Ok(value) if (1..=MOST_RECORDS).contains(&value) => Some(value),
            _ => {
                let message =
                    format!("a capacity of {value}, where 1 to {MOST_RECORDS} records a unit are possible");
                let diagnostic = Diagnostic::error("map-bound", capacity.span, message)
                    .help("a `stream<warp>` has no bound for a warp");
                self.found.push(diagnostic);
                None
            }
        }
    }

    fn map_size(&mut self, records: &Records<'s>) {
        if records.fields.len() > FIELDS {
            let message = format!("a record has at most {FIELDS} fields");
            self.found.push(Diagnostic::error("budget", records.name.span, message));
        }
        if records.fields.is_empty() {
            let diagnostic = Diagnostic::error(
                "map-shape",
                records.name.span,
                format!("map `{}` has no fields", records.name.text),
            )
            .help("a record holds something: `{ start: u64 }`");
            self.found.push(diagnostic);
        }
    }

    fn map_fields(&mut self, records: &Records<'s>, index: usize) {
        for (at, field) in records.fields.iter().enumerate() {
            if let Some(first) = records.fields[..at].iter().find(|other| other.name.text == field.name.text)
            {
                let diagnostic = duplicate(field.name, first.name.span);
                self.found.push(diagnostic);
            }
            let ty = self.field_type(records, field);
            if let Some(slot) = self.maps.get_mut(index).and_then(|map| map.fields.get_mut(at)) {
                slot.ty = ty;
                slot.lanes = field.ty.text == "lanes";
            }
        }
        self.event_fits(records, index);
    }

    fn field_type(&mut self, records: &Records<'s>, field: &ast::Field<'s>) -> Option<Type> {
        match field.of {
            None if field.ty.text == "lanes" => {
                let diagnostic =
                    Diagnostic::error("map-shape", field.ty.span, "`lanes` of what?").help("`lanes<u64>`");
                self.found.push(diagnostic);
                None
            }
            None => self.type_named(field.ty),
            Some(_) if field.ty.text != "lanes" => {
                let message = format!("`{}<…>` is no type", field.ty.text);
                let diagnostic = Diagnostic::error("map-shape", field.ty.span, message)
                    .help("a value of each lane is `lanes<T>`");
                self.found.push(diagnostic);
                None
            }
            Some(of) => {
                let ty = self.type_named(of);
                if records.kind.text != "array" {
                    return ty;
                }
                let message = "`lanes<T>` fields stand in a `stream<warp>` only";
                let diagnostic = Diagnostic::error("map-shape", field.ty.span, message)
                    .note("an array would have to keep room for the worst case")
                    .help(format!(
                        "`map {}: stream<warp> {{ … }}`, or an `array<thread>`",
                        records.name.text
                    ));
                self.found.push(diagnostic);
                None
            }
        }
    }

    /// An event stands in one chunk of its stream, whatever its lanes hold.
    fn event_fits(&mut self, records: &Records<'s>, index: usize) {
        let Some(map) = self.maps.get(index) else { return };
        let all_known = map.fields.iter().all(|field| field.ty.is_some());
        if map.kind != MapKind::Stream || !all_known || map.fields.len() > FIELDS {
            return;
        }
        let slots = most_slots(&map.lower());
        if slots > EVENT_SLOTS {
            let message = format!(
                "an event of `{}` may take {} bytes, of at most {}",
                records.name.text,
                slots * SLOT,
                EVENT_SLOTS * SLOT
            );
            let diagnostic = Diagnostic::error("map-bound", records.name.span, message)
                .note("a `lanes<T>` field of 64 bits takes up to 256 bytes, a narrower one 128")
                .help("save some of the fields into a second stream");
            self.found.push(diagnostic);
        }
    }
}
