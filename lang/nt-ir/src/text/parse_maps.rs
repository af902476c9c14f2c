//! Text to maps: their kind, their fields, and what a reader shows of them.

use crate::program::{Column, Field, Map, MapKind, Policy, Source, Type, Unit};
use crate::text::lex::Token;
use crate::text::parse::{Parsed, Parser, fault};

impl Parser<'_> {
    /// `m: stream<warp> { site: u32 told, addr: lanes<ptr> }`, behind the word `map`.
    pub(super) fn map(&mut self) -> Parsed<Map> {
        let name = self.name()?.to_owned();
        self.punct(":")?;
        let (token, span) = self.take()?;
        let is_stream = match token {
            Token::Word("array") => false,
            Token::Word("stream") => true,
            other => return Err(fault(span, format!("expected `array` or `stream`, found {other}"))),
        };
        self.punct("<")?;
        let unit = self.known("a unit", Unit::from_word)?;
        self.punct(">")?;
        let kind = match is_stream {
            true => MapKind::Stream,
            false => self.room()?,
        };
        self.punct("{")?;
        let (mut fields, mut told) = (Vec::new(), Vec::new());
        while !self.eat("}")? {
            if !fields.is_empty() {
                self.punct(",")?;
            }
            let field = self.declared()?;
            if self.next.0 == Token::Word("told") {
                self.take()?;
                told.push(fields.len() as u32);
            }
            fields.push(field);
        }
        let span = self.span()?;
        let columns = if self.next.0 == Token::Word("show") {
            self.take()?;
            self.columns(&fields)?
        } else {
            let column = |(i, field): (usize, &Field)| Column {
                name: field.name.clone(),
                ty: field.ty,
                source: Source::Field(i as u32),
            };
            fields.iter().enumerate().map(column).collect()
        };
        Ok(Map { name, unit, kind, fields, told, columns, span })
    }

    /// `[8] wrap`, or nothing.
    fn room(&mut self) -> Parsed<MapKind> {
        if !self.eat("[")? {
            return Ok(MapKind::Array);
        }
        let span = self.next.1;
        let capacity = self.number()?;
        let Ok(capacity) = u32::try_from(capacity) else {
            return Err(fault(span, "a capacity beyond 32 bits"));
        };
        self.punct("]")?;
        Ok(MapKind::Slots { capacity, policy: self.known("`drop` or `wrap`", Policy::from_word)? })
    }

    /// `at: u32`, `addr: lanes<ptr>`
    fn declared(&mut self) -> Parsed<Field> {
        let name = self.name()?.to_owned();
        self.punct(":")?;
        let lanes = self.next.0 == Token::Word("lanes");
        if lanes {
            self.take()?;
            self.punct("<")?;
        }
        let ty = self.known("a type", Type::from_word)?;
        if lanes {
            self.punct(">")?;
        }
        Ok(Field { name, ty, lanes })
    }

    fn columns(&mut self, fields: &[Field]) -> Parsed<Vec<Column>> {
        self.punct("{")?;
        let mut columns: Vec<Column> = Vec::new();
        while !self.eat("}")? {
            if !columns.is_empty() {
                self.punct(",")?;
            }
            let name = self.name()?.to_owned();
            self.punct(":")?;
            let ty = self.known("a type", Type::from_word)?;
            self.punct("=")?;
            let first = self.field(fields)?;
            let source = match self.eat("-")? {
                true => Source::Difference(first, self.field(fields)?),
                false => Source::Field(first),
            };
            columns.push(Column { name, ty, source });
        }
        Ok(columns)
    }

    fn field(&mut self, fields: &[Field]) -> Parsed<u32> {
        let (token, span) = self.take()?;
        match fields.iter().position(|field| token == Token::Word(&field.name)) {
            Some(index) => Ok(index as u32),
            None => Err(fault(span, format!("expected a field of the map, found {token}"))),
        }
    }
}
