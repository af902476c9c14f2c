//! Maps of records: their shape, and what is saved into them. Language reference, Maps.

use super::{Checker, Global, duplicate};
use crate::ast::{Argument, Records};
use crate::checked::{Expr, Stmt};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Column, Field, Map, MapKind, Source, Type, Unit};

/// The fields a record may have; a store of one is an instruction at every site.
const FIELDS: usize = 64;

/// A map of records, as far as it holds.
pub(super) struct Declared<'s> {
    name: Word<'s>,
    unit: Unit,
    unit_word: Word<'s>,
    /// `None` for the type of a field that was refused.
    fields: Vec<(Word<'s>, Option<Type>)>,
    span: Span,
}

impl<'s> Declared<'s> {
    pub(super) fn new(records: &Records<'s>) -> Self {
        Declared {
            name: records.name,
            unit: records.unit.unit,
            unit_word: records.unit.word,
            fields: records.fields.iter().map(|field| (field.name, None)).collect(),
            span: records.span,
        }
    }

    pub(super) fn lower(&self) -> Map {
        let field = |(name, ty): &(Word<'_>, Option<Type>)| Field {
            name: name.text.to_owned(),
            ty: ty.unwrap_or(Type::U64),
            lanes: false,
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
            kind: MapKind::Array,
            fields,
            told: Vec::new(),
            columns,
            span: self.span,
        }
    }

    fn field_names(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| name.text).collect();
        names.join(", ")
    }
}

impl<'c, 's> Checker<'c, 's> {
    pub(super) fn declare_maps(&mut self) {
        let items = self.items;
        let mut index = 0;
        for item in items {
            if let crate::ast::Item::Records(records) = item {
                self.map_shape(records);
                self.map_fields(records, index);
                index += 1;
            }
        }
    }

    fn map_shape(&mut self, records: &Records<'s>) {
        let kind = records.kind;
        let unit = records.unit.unit;
        match kind.text {
            "array" if records.capacity.is_some() => {
                self.not_yet(records.span, "arrays with a capacity (`array<warp>[N]`)");
            }
            "array" if unit == Unit::Block => {
                self.not_yet(records.unit.word.span, "maps of blocks (`array<block>`)");
            }
            "array" => {}
            "stream" if unit != Unit::Warp => {
                let message = format!("there is no stream of {}s", unit.word());
                let diagnostic = Diagnostic::error("map-shape", records.unit.word.span, message)
                    .help("a `stream<warp>` with `lanes<T>` fields holds a value of each lane");
                self.found.push(diagnostic);
            }
            "stream" if records.capacity.is_some() => {
                let diagnostic =
                    Diagnostic::error("map-shape", kind.span, "a stream has no capacity of its own")
                        .help("all streams of a launch share `config { stream = 16MiB; }`");
                self.found.push(diagnostic);
            }
            "stream" => self.not_yet(kind.span, "streams (`stream<warp>`)"),
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
        if let Some(policy) = records.policy {
            let known = matches!(policy.text, "drop" | "wrap");
            if !known || records.capacity.is_none() {
                let message = if known {
                    format!(
                        "`{}` says what a full array does, and one without a capacity is never full",
                        policy.text
                    )
                } else {
                    format!("unknown policy `{}`", policy.text)
                };
                let diagnostic = Diagnostic::error("map-shape", policy.span, message)
                    .suggest(policy.text, ["drop", "wrap"])
                    .help("`array<warp>[8] wrap { … }` keeps the newest 8");
                self.found.push(diagnostic);
            }
        }
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
            let ty = match field.of {
                None if field.ty.text == "lanes" => {
                    let diagnostic = Diagnostic::error("map-shape", field.ty.span, "`lanes` of what?")
                        .help("`lanes<u64>`");
                    self.found.push(diagnostic);
                    None
                }
                None => self.type_named(field.ty),
                Some(_) if field.ty.text != "lanes" => {
                    let message = format!("`{}<…>` is no type", field.ty.text);
                    self.found.push(
                        Diagnostic::error("map-shape", field.ty.span, message)
                            .help("a value of each lane is `lanes<T>`"),
                    );
                    None
                }
                Some(of) => {
                    self.type_named(of);
                    if records.kind.text == "array" {
                        let diagnostic = Diagnostic::error(
                            "map-shape",
                            field.ty.span,
                            "`lanes<T>` fields stand in a `stream<warp>` only",
                        )
                        .note("an array would have to keep room for the worst case")
                        .help(format!(
                            "`map {}: stream<warp> {{ … }}`, or an `array<thread>`",
                            records.name.text
                        ));
                        self.found.push(diagnostic);
                    }
                    None
                }
            };
            if let Some((_, slot)) = self.maps.get_mut(index).and_then(|map| map.fields.get_mut(at)) {
                *slot = ty;
            }
        }
    }

    /// The map that a statement names.
    pub(super) fn map_named(&mut self, name: Word<'s>) -> Option<usize> {
        match self.globals.get(name.text) {
            Some((Global::Map(index), _)) => Some(*index),
            other => {
                let message = match other {
                    Some(_) => format!("`{}` is no map", name.text),
                    None => format!("unknown map `{}`", name.text),
                };
                let declared = self.maps.iter().map(|map| map.name.text);
                let mut diagnostic =
                    Diagnostic::error("unknown-name", name.span, message).suggest(name.text, declared);
                diagnostic = match other {
                    Some((_, span)) => diagnostic.note_at(*span, "declared here"),
                    None => diagnostic.label("not declared in this program"),
                };
                self.found.push(diagnostic);
                None
            }
        }
    }

    /// Probe and map must agree on the unit.
    pub(super) fn same_unit(&mut self, index: usize, span: Span) {
        let (Some(map), unit) = (self.maps.get(index), self.scope.unit) else { return };
        if map.unit != unit {
            let (name, of) = (map.name.text, map.unit.word());
            let message = format!("map `{name}` is per {of}, the probe runs per {}", unit.word());
            let diagnostic = Diagnostic::error("unit-mismatch", span, message)
                .note_at(map.unit_word.span, format!("one record a {of}"))
                .help(format!(
                    "write `{of}` before the tracepoint, or declare the map with `array<{}>`",
                    unit.word()
                ));
            self.found.push(diagnostic);
        }
    }

    /// `map.save(arguments)`
    pub(super) fn save(&mut self, name: Word<'s>, arguments: &[Argument<'s>], span: Span) -> Option<Stmt> {
        let index = self.map_named(name)?;
        self.same_unit(index, name.span);
        let fields = self.maps.get(index)?.fields.clone();
        let mut values: Vec<Option<Expr>> = fields.iter().map(|_| None).collect();
        let mut given: Vec<Option<Span>> = vec![None; fields.len()];
        let mut holds = true;
        // Has the list itself been told to be wrong?
        let mut told = false;
        let mut named = None;
        for (at, argument) in arguments.iter().enumerate() {
            let field = match argument.name {
                Some(word) => {
                    named = named.or(Some(word.span));
                    self.field_named(index, word)
                }
                None if named.is_some() => {
                    let diagnostic = Diagnostic::error(
                        "map-shape",
                        argument.value.span,
                        "a value without a name after one with a name",
                    )
                    .note_at(named.unwrap_or_default(), "named here");
                    self.found.push(diagnostic);
                    None
                }
                None if at < fields.len() => Some(at),
                None => {
                    // Told below, by the count.
                    holds = false;
                    continue;
                }
            };
            let value = self.expr(&argument.value);
            let Some(field) = field else {
                (holds, told) = (false, true);
                continue;
            };
            if let Some(first) = given[field] {
                let message = format!("field `{}` is given twice", fields[field].0.text);
                self.found.push(
                    Diagnostic::error("map-shape", argument.value.span, message).note_at(first, "first here"),
                );
                (holds, told) = (false, true);
                continue;
            }
            given[field] = Some(argument.value.span);
            match fields[field].1.and_then(|ty| self.coerce(value, ty)) {
                Some(value) => {
                    self.must_be_uniform(&value);
                    values[field] = Some(value);
                }
                None => holds = false,
            }
        }
        if !told {
            self.all_given(index, arguments.len(), &given, span);
        }
        let values: Option<Vec<Expr>> = values.into_iter().collect();
        match (holds, values) {
            (true, Some(values)) => Some(Stmt::Save { map: index as u32, values, span }),
            _ => None,
        }
    }

    fn field_named(&mut self, index: usize, word: Word<'s>) -> Option<usize> {
        let map = self.maps.get(index)?;
        let found = map.fields.iter().position(|(name, _)| name.text == word.text);
        if found.is_none() {
            let message = format!("map `{}` has no field `{}`", map.name.text, word.text);
            let diagnostic = Diagnostic::error("unknown-name", word.span, message)
                .suggest(word.text, map.fields.iter().map(|(name, _)| name.text))
                .note_at(map.span, format!("its fields are {}", map.field_names()));
            self.found.push(diagnostic);
        }
        found
    }

    /// A save gives every field.
    fn all_given(&mut self, index: usize, arguments: usize, given: &[Option<Span>], span: Span) {
        let Some(map) = self.maps.get(index) else { return };
        let absent: Vec<&str> = map
            .fields
            .iter()
            .zip(given)
            .filter(|(_, given)| given.is_none())
            .map(|((name, _), _)| name.text)
            .collect();
        if arguments > map.fields.len() || !absent.is_empty() {
            let message =
                format!("map `{}` has {} fields, {arguments} given", map.name.text, map.fields.len());
            let mut diagnostic = Diagnostic::error("map-shape", span, message)
                .note_at(map.span, format!("its fields are {}", map.field_names()));
            if !absent.is_empty() && arguments < map.fields.len() {
                diagnostic = diagnostic.label(format!("nothing for `{}`", absent.join("`, `")));
            }
            self.found.push(diagnostic);
        }
    }
}
