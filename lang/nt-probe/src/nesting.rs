//! Bounds how tall a program's tree can become, before the parser builds it.
//!
//! The parser keeps what it has not reduced on a stack, and later stages walk the tree by recursion; a text of a hundred
//! thousand `(` or `-` must be an error with a place, not an overflow. One look at the tokens gives an upper bound of
//! the tree's height: each operator makes the expression it stands in one taller, each bracket holds an expression of
//! its own, and what was closed counts as high as it got. The bound is reset where an expression ends.

use crate::token::{Lexed, Token};
use nt_diag::{Diagnostic, Span};

/// How tall an item's tree may be. Real programs stay below 30.
pub(crate) const LIMIT: u32 = 200;

/// An open bracket, or the item itself.
#[derive(Default)]
struct Frame {
    /// Operators since the current expression or statement began.
    operators: u32,
    /// The tallest bracket that was closed since then.
    closed: u32,
    /// The tallest expression that ended within this bracket.
    tallest: u32,
}

impl Frame {
    fn height(&self) -> u32 {
        self.tallest.max(self.operators + self.closed) + 1
    }

    /// An expression or statement ends: the next one stands beside it, not on it.
    fn end_expression(&mut self) {
        *self = Frame { operators: 0, closed: 0, tallest: self.height() - 1 };
    }
}

/// The first place, if any, where the tree of an item with these tokens could be too tall.
pub(crate) fn too_deep(tokens: &[Lexed<'_>]) -> Option<Diagnostic> {
    let mut frames = vec![Frame::default()];
    // The sum of the heights of `frames` but for the innermost.
    let mut below = 0;
    for (at, &(token, span)) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map(|&(token, _)| token);
        let within = frames.len() > 1;
        let frame = frames.last_mut()?;
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                // A call or an index is one level more, beside what is within its brackets.
                frame.operators += u32::from(token != Token::LBrace);
                below += frame.height();
                frames.push(Frame::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace if within => {
                let height = frames.pop().map_or(0, |frame| frame.height());
                let frame = frames.last_mut()?;
                below -= frame.height();
                frame.closed = frame.closed.max(height);
                // A statement ends with its block, unless `else` goes on.
                if token == Token::RBrace && next != Some(Token::Else) {
                    frame.end_expression();
                }
            }
            Token::Comma | Token::Semi => frame.end_expression(),
            _ if makes_taller(token) => frame.operators += 1,
            _ => {}
        }
        if below + frames.last()?.height() > LIMIT {
            return Some(refuse(span));
        }
    }
    None
}

fn makes_taller(token: Token<'_>) -> bool {
    matches!(
        token,
        Token::Plus
            | Token::Minus
            | Token::Star
            | Token::Slash
            | Token::Percent
            | Token::Shl
            | Token::Shr
            | Token::And
            | Token::Or
            | Token::Xor
            | Token::AndAnd
            | Token::OrOr
            | Token::Eq
            | Token::Ne
            | Token::Lt
            | Token::Le
            | Token::Gt
            | Token::Ge
            | Token::Bang
            | Token::Tilde
            | Token::Question
            | Token::As
            | Token::Dot
            | Token::Else
            | Token::If
    )
}

fn refuse(span: Span) -> Diagnostic {
    Diagnostic::error("too-deep", span, format!("nested or chained more than {LIMIT} times"))
        .label("too deep from here on")
        .help("name parts of it with `let`")
}
