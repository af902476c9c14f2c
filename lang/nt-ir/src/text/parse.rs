//! Text to program.
//!
//! The text is a machine's: the first fault ends the reading. What is read is well formed in shape (values are dense and
//! named once, names are known); whether it is well typed is the verifier's question.

use crate::program::{
    BinaryOp, Builtin, CompareOp, Config, Inst, Limit, Map, MapId, Op, Probe, Program, State, StateId, Table,
    Type, UnaryOp, Unit, Value, ValueId,
};
use crate::text::lex::{Lexer, Token};
use nt_diag::{Diagnostic, Found, Span};
use std::collections::BTreeMap;

/// Reads a program from its text form; `None` exactly if an error was found.
pub fn parse(text: &str) -> (Option<Program>, Found) {
    let mut found = Found::new();
    let program = Parser::new(text).and_then(|mut parser| parser.program());
    match program {
        Ok(program) => (Some(program), found),
        Err(fault) => {
            found.push(*fault);
            (None, found)
        }
    }
}

/// Boxed, so that the many functions that may fail return one word.
pub(super) type Parsed<T> = Result<T, Box<Diagnostic>>;

pub(super) fn fault(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("ir-text", span, message))
}

pub(super) struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The token to be taken next, and its place.
    pub(super) next: (Token<'t>, Span),
    states: Vec<State>,
    maps: Vec<Map>,
    pub(super) tables: Vec<Table>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parsed<Self> {
        let mut lexer = Lexer::new(text)?;
        let next = lexer.token()?;
        Ok(Parser { lexer, next, states: Vec::new(), maps: Vec::new(), tables: Vec::new() })
    }

    fn program(&mut self) -> Parsed<Program> {
        self.word("program")?;
        let name = self.string()?;
        let (mut limits, mut probes, mut config) = (Vec::new(), Vec::new(), Config::default());
        loop {
            let (token, span) = self.next;
            match token {
                Token::End => break,
                Token::Word("limit") => {
                    self.take()?;
                    self.word("launch_cycles")?;
                    limits.push(Limit::LaunchCycles(self.number()?));
                }
                Token::Word("config") => {
                    self.take()?;
                    self.word("stream")?;
                    config.stream = self.number()?;
                }
                Token::Word("map") => {
                    self.take()?;
                    let map = self.map()?;
                    self.maps.push(map);
                }
                Token::Word("table") => {
                    self.take()?;
                    let table = self.table()?;
                    self.tables.push(table);
                }
                Token::Word("state") => {
                    self.take()?;
                    let state = self.state()?;
                    self.states.push(state);
                }
                Token::Word("probe") => {
                    self.take()?;
                    probes.push(self.probe()?);
                }
                other => {
                    return Err(fault(
                        span,
                        format!("expected `map`, `table`, `state` or `probe`, found {other}"),
                    ));
                }
            }
        }
        let (states, maps) = (std::mem::take(&mut self.states), std::mem::take(&mut self.maps));
        let tables = std::mem::take(&mut self.tables);
        Ok(Program { name, states, maps, tables, probes, limits, config })
    }

    fn state(&mut self) -> Parsed<State> {
        let name = self.name()?.to_owned();
        self.punct(":")?;
        let ty = self.known("a type", Type::from_word)?;
        self.punct("=")?;
        let init = self.constant(ty)?;
        Ok(State { name, ty, init, span: self.span()? })
    }

    fn probe(&mut self) -> Parsed<Probe> {
        let unit = self.known("a unit", Unit::from_word)?;
        let mut points = vec![self.point()?];
        while self.eat(",")? {
            points.push(self.point()?);
        }
        let predicate = match self.next.0 {
            Token::Word("where") => {
                self.take()?;
                Some(self.value()?)
            }
            _ => None,
        };
        let span = self.span()?;
        let open = self.next.1;
        self.punct("{")?;
        let (mut values, mut code) = (BTreeMap::new(), Vec::new());
        while !self.eat("}")? {
            code.push(self.inst(&mut values)?);
        }
        // `values` is ordered, so it is dense exactly if the last number is one less than the count.
        let dense = values.keys().copied().eq(0..values.len() as u32);
        if !dense {
            return Err(fault(open, "the values of a probe are not numbered from %0 without a gap"));
        }
        Ok(Probe { unit, points, predicate, values: values.into_values().collect(), code, span })
    }

    fn inst(&mut self, values: &mut BTreeMap<u32, Value>) -> Parsed<Inst> {
        let mut inst = match self.next {
            (Token::Value(id), span) => {
                self.take()?;
                self.punct(":")?;
                let ty = self.known("a type", Type::from_word)?;
                let uniform = self.next.0 == Token::Word("uniform");
                if uniform {
                    self.take()?;
                }
                self.punct("=")?;
                if values.insert(id, Value { ty, uniform }).is_some() {
                    return Err(fault(span, format!("value %{id} is defined twice")));
                }
                let op = self.operation(ty)?;
                Inst { result: Some(ValueId(id)), op, guard: None, span: Span::default() }
            }
            _ => Inst { result: None, op: self.effect()?, guard: None, span: Span::default() },
        };
        if self.next.0 == Token::Word("if") {
            self.take()?;
            inst.guard = Some(self.value()?);
        }
        inst.span = self.span()?;
        Ok(inst)
    }

    fn operation(&mut self, ty: Type) -> Parsed<Op> {
        let (token, span) = self.take()?;
        let Token::Word(word) = token else {
            return Err(fault(span, format!("expected an operation, found {token}")));
        };
        if let Some(op) = UnaryOp::from_word(word) {
            return Ok(Op::Unary(op, self.value()?));
        }
        if let Some(op) = BinaryOp::from_word(word) {
            let (a, b) = self.two()?;
            return Ok(Op::Binary(op, a, b));
        }
        if let Some(op) = CompareOp::from_word(word) {
            if let Token::Word(_) = self.next.0 {
                let a = self.operand()?;
                self.punct(",")?;
                return Ok(Op::CompareOperands(op, a, self.operand()?));
            }
            let (a, b) = self.two()?;
            return Ok(Op::Compare(op, a, b));
        }
        match word {
            "const" => Ok(Op::Const(self.constant(ty)?)),
            "state" => Ok(Op::ReadState(self.state_id()?)),
            "cast" if matches!(self.next.0, Token::Word(_)) => Ok(Op::CastOperand(self.operand()?)),
            "bits" if matches!(self.next.0, Token::Word(_)) => Ok(Op::BitsOperand(self.operand()?)),
            "cast" => Ok(Op::Cast(self.value()?)),
            "bits" => Ok(Op::Bits(self.value()?)),
            "select" => {
                let condition = self.value()?;
                self.punct(",")?;
                let (a, b) = self.two()?;
                Ok(Op::Select(condition, a, b))
            }
            "site" | "operand" | "has" | "match" => self.asked_of_the_site(word),
            _ => {
                let builtin = self.builtin(word, span)?;
                if self.next.0 != Token::Word("after") {
                    return Ok(Op::Builtin(builtin));
                }
                self.take()?;
                match self.next.0 {
                    Token::Word(_) => Ok(Op::ClockAfterOperand(builtin, self.operand()?)),
                    _ => Ok(Op::ClockAfter(builtin, self.value()?)),
                }
            }
        }
    }

    /// `clock`, or `tid.x`, whose two words are joined here.
    fn builtin(&mut self, word: &str, span: Span) -> Parsed<Builtin> {
        let full = match self.eat(".")? {
            true => format!("{word}.{}", self.name()?),
            false => word.to_owned(),
        };
        Builtin::from_word(&full).ok_or_else(|| fault(span, format!("unknown operation `{full}`")))
    }

    fn effect(&mut self) -> Parsed<Op> {
        let (token, span) = self.take()?;
        match token {
            Token::Word("state") => {
                let state = self.state_id()?;
                self.punct("=")?;
                Ok(Op::WriteState(state, self.value()?))
            }
            Token::Word("save") => self.save(),
            Token::Word("count" | "sum") => self.aggregate(span),
            other => Err(fault(span, format!("expected an instruction, found {other}"))),
        }
    }

    fn save(&mut self) -> Parsed<Op> {
        let (token, span) = self.take()?;
        let Some(index) = self.maps.iter().position(|map| token == Token::Word(&map.name)) else {
            return Err(fault(span, format!("expected a map, found {token}")));
        };
        self.punct("(")?;
        let mut values = Vec::new();
        while !self.eat(")")? {
            if !values.is_empty() {
                self.punct(",")?;
            }
            let (token, span) = self.take()?;
            let field = self.maps[index].fields.iter().position(|field| token == Token::Word(&field.name));
            let Some(field) = field else {
                return Err(fault(span, format!("expected a field of the map, found {token}")));
            };
            self.punct("=")?;
            values.push((field as u32, self.value()?));
        }
        Ok(Op::Save { map: MapId(index as u32), values })
    }

    fn state_id(&mut self) -> Parsed<StateId> {
        let (token, span) = self.take()?;
        match self.states.iter().position(|state| token == Token::Word(&state.name)) {
            Some(index) => Ok(StateId(index as u32)),
            None => Err(fault(span, format!("expected a state, found {token}"))),
        }
    }

    fn two(&mut self) -> Parsed<(ValueId, ValueId)> {
        let a = self.value()?;
        self.punct(",")?;
        Ok((a, self.value()?))
    }

    pub(super) fn value(&mut self) -> Parsed<ValueId> {
        match self.take()? {
            (Token::Value(id), _) => Ok(ValueId(id)),
            (other, span) => Err(fault(span, format!("expected a value, found {other}"))),
        }
    }

    fn constant(&mut self, ty: Type) -> Parsed<u64> {
        let minus = self.eat("-")?;
        let (token, span) = self.take()?;
        let value = match token {
            Token::Word("true") => 1,
            Token::Word("false") => 0,
            Token::Number(n) if minus => n.wrapping_neg(),
            Token::Number(n) => n,
            other => return Err(fault(span, format!("expected a constant, found {other}"))),
        };
        let kind_fits = (ty == Type::Bool) == matches!(token, Token::Word(_)) && minus <= ty.is_signed();
        // A negative number below the smallest of its type comes out positive, and the other way round.
        let sign_fits = !ty.is_signed() || minus == ((value as i64) < 0) || value == 0;
        match kind_fits && sign_fits && ty.canonical(value) == value {
            true => Ok(value),
            false => Err(fault(span, format!("not a constant of type {}", ty.word()))),
        }
    }

    /// `!12:40`, or nothing.
    pub(super) fn span(&mut self) -> Parsed<Span> {
        if !self.eat("!")? {
            return Ok(Span::default());
        }
        let start = self.offset()?;
        self.punct(":")?;
        let end = self.offset()?;
        Ok(Span::new(start, end))
    }

    fn offset(&mut self) -> Parsed<u32> {
        let span = self.next.1;
        u32::try_from(self.number()?).map_err(|_| fault(span, "an offset beyond 4 GiB"))
    }

    pub(super) fn number(&mut self) -> Parsed<u64> {
        match self.take()? {
            (Token::Number(n), _) => Ok(n),
            (other, span) => Err(fault(span, format!("expected a number, found {other}"))),
        }
    }

    pub(super) fn string(&mut self) -> Parsed<String> {
        match self.take()? {
            (Token::Str(body), span) => {
                unquote(body).ok_or_else(|| fault(span, "an escape that this form does not have"))
            }
            (other, span) => Err(fault(span, format!("expected a string, found {other}"))),
        }
    }

    pub(super) fn name(&mut self) -> Parsed<&'t str> {
        match self.take()? {
            (Token::Word(name), _) => Ok(name),
            (other, span) => Err(fault(span, format!("expected a name, found {other}"))),
        }
    }

    pub(super) fn known<T>(&mut self, what: &str, from_word: fn(&str) -> Option<T>) -> Parsed<T> {
        let (token, span) = self.take()?;
        let known = if let Token::Word(word) = token { from_word(word) } else { None };
        known.ok_or_else(|| fault(span, format!("expected {what}, found {token}")))
    }

    pub(super) fn word(&mut self, word: &str) -> Parsed<()> {
        let (token, span) = self.take()?;
        match token == Token::Word(word) {
            true => Ok(()),
            false => Err(fault(span, format!("expected `{word}`, found {token}"))),
        }
    }

    pub(super) fn punct(&mut self, punct: &str) -> Parsed<()> {
        let (token, span) = (self.next.0, self.next.1);
        match self.eat(punct)? {
            true => Ok(()),
            false => Err(fault(span, format!("expected `{punct}`, found {token}"))),
        }
    }

    pub(super) fn eat(&mut self, punct: &str) -> Parsed<bool> {
        let eats = self.next.0 == Token::Punct(punct);
        if eats {
            self.take()?;
        }
        Ok(eats)
    }

    pub(super) fn take(&mut self) -> Parsed<(Token<'t>, Span)> {
        let next = self.lexer.token()?;
        Ok(std::mem::replace(&mut self.next, next))
    }
}

/// The text of a quoted name; `None` for an escape that the printer does not write.
fn unquote(body: &str) -> Option<String> {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix("u{") {
            let (digits, after) = after.split_once('}')?;
            out.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
            rest = after;
        } else {
            let c = rest.chars().next().filter(|c| matches!(c, '"' | '\\'))?;
            out.push(c);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Some(out)
}
