//! What is saved into maps of records, and by whom. Language reference, Maps.

use super::{Checker, Global};
use crate::ast::Argument;
use crate::checked::{Expr, Stmt};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::MapKind;

impl<'s> Checker<'_, 's> {
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
            let diagnostic = Diagnostic::error("unit-mismatch", span, message);
            let diagnostic = match map.kind {
                MapKind::Stream => diagnostic
                    .note_at(map.unit_word.span, "events of warps")
                    .help("write `warp` before the tracepoint; `lanes<T>` fields hold a value of each lane"),
                MapKind::Array | MapKind::Slots { .. } => {
                    diagnostic.note_at(map.unit_word.span, format!("records of a {of}")).help(format!(
                        "write `{of}` before the tracepoint, or declare the map with `array<{}>`",
                        unit.word()
                    ))
                }
            };
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
                let message = format!("field `{}` is given twice", fields[field].name.text);
                self.found.push(
                    Diagnostic::error("map-shape", argument.value.span, message).note_at(first, "first here"),
                );
                (holds, told) = (false, true);
                continue;
            }
            given[field] = Some(argument.value.span);
            match fields[field].ty.and_then(|ty| self.coerce(value, ty)) {
                Some(value) => {
                    if !fields[field].lanes {
                        self.must_be_uniform(&value);
                    }
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
        let found = map.fields.iter().position(|field| field.name.text == word.text);
        if found.is_none() {
            let message = format!("map `{}` has no field `{}`", map.name.text, word.text);
            let diagnostic = Diagnostic::error("unknown-name", word.span, message)
                .suggest(word.text, map.fields.iter().map(|field| field.name.text))
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
            .map(|(field, _)| field.name.text)
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
