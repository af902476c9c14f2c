//! Words, numbers, values, strings and punctuation of the text form; `//` begins a comment.

use crate::text::parse::fault;
use nt_diag::{Diagnostic, Span};
use std::fmt;

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// `clock`
    Word(&'t str),
    /// `12`, `0xff`
    Number(u64),
    /// `%12`
    Value(u32),
    /// `@bytes`, or `@` alone: a table.
    At(&'t str),
    /// `"…"`: what stands between the quotes, escapes as they are.
    Str(&'t str),
    /// One character of `:<>{}()[],=-.!|*`
    Punct(&'t str),
    /// The end of the text.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Number(n) => write!(f, "`{n}`"),
            Token::Value(id) => write!(f, "`%{id}`"),
            Token::At(name) => write!(f, "`@{name}`"),
            Token::Str(_) => write!(f, "a string"),
            Token::Punct(punct) => write!(f, "`{punct}`"),
            Token::End => write!(f, "the end"),
        }
    }
}

pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Result<Self, Box<Diagnostic>> {
        match u32::try_from(text.len()) {
            Ok(_) => Ok(Lexer { text, at: 0 }),
            Err(_) => Err(fault(Span::default(), "a text of more than 4 GiB")),
        }
    }

    pub(super) fn token(&mut self) -> Result<(Token<'t>, Span), Box<Diagnostic>> {
        self.skip_blanks();
        let (start, rest) = (self.at, &self.text[self.at..]);
        let Some(first) = rest.chars().next() else {
            return Ok((Token::End, Span::from(start..start)));
        };
        let (token, length) = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                (Some(Token::Word(&rest[..length])), length)
            }
            '0'..='9' => {
                let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                (number(&rest[..length]).map(Token::Number), length)
            }
            '%' => {
                let digits = rest[1..].find(|c: char| !is_word(c)).unwrap_or(rest.len() - 1);
                let id = number(&rest[1..1 + digits]).and_then(|id| u32::try_from(id).ok());
                (id.map(Token::Value), 1 + digits)
            }
            '@' => {
                let length = rest[1..].find(|c: char| !is_word(c)).unwrap_or(rest.len() - 1);
                (Some(Token::At(&rest[1..1 + length])), 1 + length)
            }
            '"' => match end_of_string(rest) {
                Some(end) => (Some(Token::Str(&rest[1..end])), end + 1),
                None => return Err(fault(Span::from(start..self.text.len()), "a string without an end")),
            },
            ':' | '<' | '>' | '{' | '}' | '(' | ')' | '[' | ']' | ',' | '=' | '-' | '.' | '!' | '|' | '*' => {
                (Some(Token::Punct(&rest[..1])), 1)
            }
            other => (None, other.len_utf8()),
        };
        self.at = start + length;
        let span = Span::from(start..self.at);
        match token {
            Some(token) => Ok((token, span)),
            None => Err(fault(span, format!("`{}` is no token", &rest[..length]))),
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            let rest = &self.text[self.at..];
            if !rest.starts_with("//") {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => u64::from_str_radix(digits, 16).ok(),
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

/// The offset of the closing quote of the string that `text` begins with.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'\n' => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}
