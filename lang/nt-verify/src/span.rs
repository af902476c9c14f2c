//! V3: reads a span, by itself, as a list of whole statements.
//!
//! ```text
//! .reg .b32 %nt_s;  { .reg .pred %nt_p;  @!%p1 bra $nt_L;  mov.u32 %nt_s, %clock;  $nt_L: }
//! ```
//!
//! A grammar of its own, much smaller than PTX: `{`, `}`, `.reg` of scalar types, labels, guarded instructions whose
//! operands are registers, numbers, addresses, vectors and pairs. Anything else is refused here, before it is asked
//! what it would do. Names are not resolved and opcodes not looked up yet.

use crate::lex::{LexError, Token, TokenKind, tokens};
use nt_diag::Span;

/// One statement of a span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement<'w> {
    pub(crate) span: Span,
    pub(crate) kind: Kind<'w>,
}

/// What a statement of a span is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind<'w> {
    /// `{`
    Open,
    /// `}`
    Close,
    /// `.reg .b32 %nt_a, %nt_b<4>;`
    Declaration { bits: u32, names: Vec<Declared<'w>> },
    /// `.param .align 8 .b8 nt_arg[24];`
    Argument { name: &'w str, bytes: u32 },
    /// `$nt_L1:`
    Label(&'w str),
    /// `@%nt_p st.global.u32 [%nt_a], %nt_b;`
    Instruction(Instruction<'w>),
}

/// One name of a declaration, or `count` of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Declared<'w> {
    pub(crate) name: &'w str,
    /// Of `%nt_r<4>`, 4: `%nt_r0` to `%nt_r3`.
    pub(crate) count: Option<u32>,
    pub(crate) span: Span,
}

/// An instruction of a span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Instruction<'w> {
    pub(crate) guard: Option<Guard<'w>>,
    /// All of it: `st.global.u32`.
    pub(crate) opcode: &'w str,
    pub(crate) opcode_span: Span,
    pub(crate) operands: Vec<Operand<'w>>,
}

/// `@%p` or `@!%p`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Guard<'w> {
    pub(crate) name: &'w str,
    pub(crate) negated: bool,
    pub(crate) span: Span,
}

/// One operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operand<'w> {
    pub(crate) span: Span,
    pub(crate) shape: Shape<'w>,
}

/// The shapes of operands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape<'w> {
    /// `%nt_a`, `%tid.x`, `$nt_L`
    Name(&'w str),
    /// `!%nt_p`
    Not(&'w str),
    /// An integer or the bits of a float.
    Number(Number),
    /// `[name]`, `[name+4]`
    Address { base: &'w str, offset: i64 },
    /// `{a, b}`
    Vector(Vec<Operand<'w>>),
    /// `p|q`
    Pair(Box<Operand<'w>>, Box<Operand<'w>>),
    /// `_`
    Sink,
}

/// A number as PTX writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// An integer, between -2^63 and 2^64 - 1.
    Integer(i128),
    /// `0f3F800000`
    Single(u32),
    /// `0d3FF0000000000000`
    Double(u64),
}

/// The most statements of a span and the most registers of one: far beyond any probe. They bound what a hostile text
/// can make the checks cost.
pub(crate) const MOST_STATEMENTS: usize = 4096;
/// See [`MOST_STATEMENTS`].
pub(crate) const MOST_REGISTERS: usize = 512;

/// Reads the text of a span, which begins at `at` in the woven text.
pub(crate) fn read(text: &str, at: u32) -> Result<Vec<Statement<'_>>, (Span, String)> {
    let all = tokens(text, at).map_err(|LexError { span, message }| (span, message.to_owned()))?;
    let tokens: Vec<_> = all.into_iter().filter(|t| t.kind != TokenKind::Comment).collect();
    let end = at + text.len() as u32;
    let mut reader = Reader { tokens: &tokens, at: 0, end: Span::at(end) };
    let mut statements = Vec::new();
    let (mut depth, mut opened) = (0_u32, false);
    while let Some(token) = reader.peek() {
        let statement = reader.statement()?;
        match &statement.kind {
            Kind::Open => {
                depth += 1;
                opened = true;
            }
            Kind::Close => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Err((statement.span, "a `}` without its `{` in this span".into())),
            },
            Kind::Label(_) | Kind::Instruction(_) if depth == 0 => {
                return Err((token.span, "a statement outside of the braces of its span".into()));
            }
            Kind::Declaration { .. } if depth == 0 && opened => {
                return Err((token.span, "state declared behind the first `{` of its span".into()));
            }
            Kind::Argument { .. } if depth > 0 || opened => {
                return Err((token.span, "an argument declared behind the first `{` of its span".into()));
            }
            _ => {}
        }
        statements.push(statement);
        if statements.len() > MOST_STATEMENTS {
            return Err((token.span, format!("a span of more than {MOST_STATEMENTS} statements")));
        }
    }
    if depth > 0 {
        return Err((Span::at(end), "a `{` of this span is never closed".into()));
    }
    Ok(statements)
}

struct Reader<'t, 'w> {
    tokens: &'t [Token<'w>],
    at: usize,
    /// Where the span ends, for what is missing there.
    end: Span,
}

type Read<T> = Result<T, (Span, String)>;

impl<'w> Reader<'_, 'w> {
    fn peek(&self) -> Option<Token<'w>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self, wanted: &str) -> Read<Token<'w>> {
        let Some(token) = self.peek() else {
            return Err((self.end, format!("expected {wanted}, found the span's end")));
        };
        self.at += 1;
        Ok(token)
    }

    fn sees(&self, sign: u8) -> bool {
        self.peek().is_some_and(|t| t.kind == TokenKind::Sign(sign))
    }

    fn takes(&mut self, sign: u8) -> bool {
        let there = self.sees(sign);
        self.at += usize::from(there);
        there
    }

    fn sign(&mut self, sign: u8) -> Read<Span> {
        if let Some(token) = self.peek().filter(|token| token.kind == TokenKind::Sign(sign)) {
            self.at += 1;
            return Ok(token.span);
        }
        let wanted = format!("`{}`", sign as char);
        unexpected(self.next(&wanted)?, &wanted)
    }

    fn kind(&mut self, kind: TokenKind, wanted: &str) -> Read<Token<'w>> {
        let token = self.next(wanted)?;
        if token.kind == kind { Ok(token) } else { unexpected(token, wanted) }
    }

    fn statement(&mut self) -> Read<Statement<'w>> {
        let token = self.next("a statement")?;
        let (from, mut to) = (token.span, token.span);
        let kind = match token.kind {
            TokenKind::Sign(b'{') => Kind::Open,
            TokenKind::Sign(b'}') => Kind::Close,
            TokenKind::Dotted if token.text == ".reg" => {
                let kind = self.declaration()?;
                to = self.sign(b';')?;
                kind
            }
            TokenKind::Dotted if token.text == ".param" => {
                let kind = self.argument()?;
                to = self.sign(b';')?;
                kind
            }
            TokenKind::Dotted => return Err((token.span, format!("directive `{}` in a span", token.text))),
            TokenKind::Name if self.sees(b':') => {
                to = self.sign(b':')?;
                Kind::Label(token.text)
            }
            TokenKind::Name => {
                let instruction = self.instruction(None, token)?;
                to = self.sign(b';')?;
                Kind::Instruction(instruction)
            }
            TokenKind::Sign(b'@') => {
                let negated = self.takes(b'!');
                let name = self.kind(TokenKind::Name, "the register of a guard")?;
                let guard = Guard { name: name.text, negated, span: from.to(name.span) };
                let opcode = self.kind(TokenKind::Name, "an opcode behind the guard")?;
                let instruction = self.instruction(Some(guard), opcode)?;
                to = self.sign(b';')?;
                Kind::Instruction(instruction)
            }
            _ => return unexpected(token, "a statement"),
        };
        Ok(Statement { span: from.to(to), kind })
    }

    fn declaration(&mut self) -> Read<Kind<'w>> {
        let ty = self.kind(TokenKind::Dotted, "a type")?;
        let bits = match ty.text {
            ".pred" => 1,
            ".b16" | ".u16" | ".s16" => 16,
            ".b32" | ".u32" | ".s32" | ".f32" => 32,
            ".b64" | ".u64" | ".s64" | ".f64" => 64,
            _ => return unexpected(ty, "a scalar type of registers"),
        };
        let mut names = Vec::new();
        loop {
            let name = self.kind(TokenKind::Name, "the name of a register")?;
            let mut count = None;
            if self.takes(b'<') {
                let number = self.kind(TokenKind::Number, "how many registers")?;
                let value = number
                    .text
                    .parse()
                    .ok()
                    .filter(|&n: &u32| n as usize <= MOST_REGISTERS && !number.text.starts_with('0'));
                count = match value {
                    Some(value) => Some(value),
                    None => return unexpected(number, "a number of registers"),
                };
                self.sign(b'>')?;
            }
            names.push(Declared { name: name.text, count, span: name.span });
            if !self.takes(b',') {
                return Ok(Kind::Declaration { bits, names });
            }
        }
    }

    /// `.align 8 .b8 nt_arg[24]`
    fn argument(&mut self) -> Read<Kind<'w>> {
        for (kind, text) in
            [(TokenKind::Dotted, ".align"), (TokenKind::Number, "8"), (TokenKind::Dotted, ".b8")]
        {
            let token = self.kind(kind, text)?;
            if token.text != text {
                return unexpected(token, &format!("`{text}`"));
            }
        }
        let name = self.kind(TokenKind::Name, "the name of an argument")?;
        self.sign(b'[')?;
        let number = self.kind(TokenKind::Number, "how many bytes")?;
        let plain = number.text.len() <= 5 && !number.text.starts_with('0');
        let Some(bytes) = number.text.parse().ok().filter(|_| plain) else {
            return unexpected(number, "a number of bytes");
        };
        self.sign(b']')?;
        Ok(Kind::Argument { name: name.text, bytes })
    }

    fn instruction(&mut self, guard: Option<Guard<'w>>, opcode: Token<'w>) -> Read<Instruction<'w>> {
        let mut operands = Vec::new();
        if !self.sees(b';') {
            loop {
                operands.push(self.operand(true)?);
                if !self.takes(b',') {
                    break;
                }
            }
        }
        Ok(Instruction { guard, opcode: opcode.text, opcode_span: opcode.span, operands })
    }

    /// An operand; vectors do not nest.
    fn operand(&mut self, outer: bool) -> Read<Operand<'w>> {
        let token = self.next("an operand")?;
        let mut to = token.span;
        let shape = match token.kind {
            TokenKind::Name => Shape::Name(token.text),
            TokenKind::Sign(b'_') => Shape::Sink,
            TokenKind::Number | TokenKind::Sign(b'-') => {
                let (number, span) = self.number(token)?;
                to = span;
                Shape::Number(number)
            }
            TokenKind::Sign(b'!') => {
                let name = self.kind(TokenKind::Name, "a predicate")?;
                to = name.span;
                Shape::Not(name.text)
            }
            TokenKind::Sign(b'[') => {
                let base = self.kind(TokenKind::Name, "the base of an address")?;
                let mut offset = 0;
                if !self.sees(b']') {
                    // `+-4` is how PTX writes what is behind; `-4` alone ptxas refuses.
                    self.sign(b'+')?;
                    let negative = self.takes(b'-');
                    let digits = self.next("an offset")?;
                    offset = match integer(digits.text) {
                        Some(n) if digits.kind == TokenKind::Number && n < 1 << 31 => n as i64,
                        _ => return unexpected(digits, "an offset"),
                    };
                    offset = if negative { -offset } else { offset };
                }
                to = self.sign(b']')?;
                Shape::Address { base: base.text, offset }
            }
            TokenKind::Sign(b'{') if outer => {
                let mut parts = Vec::new();
                loop {
                    parts.push(self.operand(false)?);
                    if !self.takes(b',') {
                        break;
                    }
                }
                to = self.sign(b'}')?;
                Shape::Vector(parts)
            }
            _ => return unexpected(token, "an operand"),
        };
        let operand = Operand { span: token.span.to(to), shape };
        if outer && self.takes(b'|') {
            let second = self.operand(false)?;
            return Ok(Operand {
                span: operand.span.to(second.span),
                shape: Shape::Pair(Box::new(operand), Box::new(second)),
            });
        }
        Ok(operand)
    }

    fn number(&mut self, first: Token<'w>) -> Read<(Number, Span)> {
        let (negative, digits) = match first.kind {
            TokenKind::Number => (false, first),
            _ => (true, self.kind(TokenKind::Number, "a number behind `-`")?),
        };
        let span = first.span.to(digits.span);
        let bits = |prefix: [&str; 2], length: usize| {
            let hex = prefix.iter().find_map(|p| digits.text.strip_prefix(p))?;
            let whole = hex.len() == length && hex.bytes().all(|b| b.is_ascii_hexdigit()) && !negative;
            if whole { u64::from_str_radix(hex, 16).ok() } else { None }
        };
        if let Some(single) = bits(["0f", "0F"], 8) {
            return Ok((Number::Single(single as u32), span));
        }
        if let Some(double) = bits(["0d", "0D"], 16) {
            return Ok((Number::Double(double), span));
        }
        let Some(value) = integer(digits.text) else { return unexpected(digits, "a number") };
        if negative && value > 1 << 63 {
            return unexpected(digits, "a number of at most 64 bits");
        }
        let value = i128::from(value);
        Ok((Number::Integer(if negative { -value } else { value }), span))
    }
}

/// `12`, `0x1F`, `017` (octal), `0b101`, each with `U` behind it or not.
fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // `from_str_radix` takes a sign, which is none of a number's digits here.
    if digits.bytes().all(|b| b.is_ascii_hexdigit()) { u64::from_str_radix(digits, radix).ok() } else { None }
}

fn unexpected<T>(token: Token<'_>, wanted: &str) -> Read<T> {
    Err((token.span, format!("expected {wanted}, found `{}`", token.text)))
}

#[cfg(test)]
mod tests;
