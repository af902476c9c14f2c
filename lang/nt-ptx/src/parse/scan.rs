//! Ends of things: the `;` of a statement, the brace that closes a section, the line of a `.loc`.
//!
//! Operands are not read here, but their tokens are looked at: two values side by side mean that a comma or the `;`
//! of the line above was forgotten, and the message is worth the little that the look costs. (Passing over operands
//! with a table of bytes made `parse` a fifth faster, at a few hundred MB/s either way.)

use super::Reader;
use crate::token::TokenKind;
use nt_diag::{Diagnostic, Span};

/// Where a statement ends, by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// An instruction: two operands side by side mean that a `;` was forgotten.
    Operands,
    /// A declaration, list or pragma.
    Declaration,
}

/// Brackets of a statement so far.
#[derive(Debug, Default)]
struct Brackets {
    square: Pair,
    round: Pair,
}

/// One kind of brackets: how many are open, the first of those, and the first that closed nothing.
#[derive(Debug, Default)]
struct Pair {
    depth: u32,
    opened: Option<Span>,
    stray: Option<Span>,
}

impl Pair {
    fn see(&mut self, kind: TokenKind, at: Span) {
        if matches!(kind, TokenKind::OpenBracket | TokenKind::OpenParen) {
            if self.depth == 0 {
                self.opened = Some(at);
            }
            self.depth += 1;
        } else if self.depth == 0 {
            self.stray = self.stray.or(Some(at));
        } else {
            self.depth -= 1;
            if self.depth == 0 {
                self.opened = None;
            }
        }
    }
}

/// Directives that stand at module level only: reading goes on there, whatever was wrong before.
pub(super) fn begins_item(word: &str) -> bool {
    matches!(
        word,
        ".entry"
            | ".func"
            | ".visible"
            | ".extern"
            | ".weak"
            | ".common"
            | ".version"
            | ".target"
            | ".address_size"
    )
}

impl Reader<'_> {
    /// Takes tokens to the `;` of a statement whose first token was taken, and gives the span of what stands before
    /// the `;`. Stops before a brace that closes the scope, a directive of module level, or the next statement.
    pub(super) fn through_semicolon(&mut self, until: Until) -> Span {
        let start = self.span.start;
        let mut end = start;
        // Braces only: brackets and parentheses cannot hide a statement's end.
        let mut open: Vec<Span> = Vec::new();
        let mut brackets = Brackets::default();
        let mut last: Option<TokenKind> = None;
        while let Some(kind) = self.next {
            match kind {
                TokenKind::Semicolon => {
                    if let Some(&brace) = open.last() {
                        self.unclosed(brace, self.span);
                    }
                    self.unmatched(brackets);
                    self.take();
                    return Span::new(start, end);
                }
                TokenKind::OpenBrace => open.push(self.span),
                TokenKind::CloseBrace if open.pop().is_none() => {
                    self.missing_semicolon();
                    return Span::new(start, end);
                }
                TokenKind::Dotted if begins_item(self.at(self.span)) => {
                    self.missing_semicolon();
                    return Span::new(start, end);
                }
                TokenKind::OpenBracket | TokenKind::CloseBracket => brackets.square.see(kind, self.span),
                TokenKind::OpenParen | TokenKind::CloseParen => brackets.round.see(kind, self.span),
                _ if open.is_empty() && begins_statement(until, last, kind) => {
                    if self.line_ends_before_next() {
                        self.missing_semicolon();
                        return Span::new(start, end);
                    }
                    if until == Until::Operands {
                        self.expected("missing-comma", self.span, "`,` or `;`");
                    }
                }
                _ => (),
            }
            last = Some(kind);
            end = self.take().end;
        }
        self.missing_semicolon();
        Span::new(start, end)
    }

    /// Says which brackets of a statement that ends here have no partner.
    fn unmatched(&mut self, brackets: Brackets) {
        for pair in [brackets.square, brackets.round] {
            let Some(at) = pair.opened.or(pair.stray) else { continue };
            let what = if pair.opened.is_some() { "is never closed" } else { "closes nothing" };
            let d = Diagnostic::error("unbalanced-brackets", at, format!("this `{}` {what}", self.at(at)));
            self.report(d.note_at(self.span, "the statement ends here"));
        }
    }

    /// Does a line end between the last token taken and the next?
    pub(super) fn line_ends_before_next(&self) -> bool {
        self.at(Span::new(self.done, self.span.start)).contains(['\n', '\r'])
    }

    fn missing_semicolon(&mut self) {
        let place = Span::new(self.done.saturating_sub(1), self.done);
        let found = self.next_text();
        let d = Diagnostic::error("missing-semicolon", place, format!("expected `;`, found {found}"));
        self.report(d.label("the statement should end here").note_at(self.span, "what follows it"));
    }

    /// A brace that is open where its statement, body or section ends.
    pub(super) fn unclosed(&mut self, brace: Span, end: Span) {
        let d = Diagnostic::error("unbalanced-braces", brace, "this `{` is never closed");
        self.report(d.note_at(end, "`}` is missing before this"));
    }

    /// Takes `{ … }`, the next token being the `{`: debug data, in which anything may stand. The span is that of both
    /// braces and all between.
    pub(super) fn braced(&mut self) -> Span {
        let first = self.span;
        let mut open: Vec<Span> = Vec::new();
        while let Some(kind) = self.next {
            match kind {
                TokenKind::OpenBrace => open.push(self.span),
                TokenKind::CloseBrace => {
                    open.pop();
                }
                TokenKind::Dotted if matches!(self.at(self.span), ".entry" | ".func" | ".visible") => break,
                _ => (),
            }
            if open.is_empty() {
                return first.to(self.take());
            }
            self.take();
        }
        self.unclosed(first, self.span);
        Span::new(first.start, self.done)
    }

    /// Takes `( … )`, the next token being the `(`. An unclosed one ends before `;`, `{` or `}`.
    pub(super) fn parenthesised(&mut self) -> Span {
        let first = self.span;
        let mut depth = 0u32;
        while let Some(kind) = self.next {
            match kind {
                TokenKind::OpenParen => depth += 1,
                TokenKind::CloseParen => depth -= 1,
                TokenKind::Semicolon | TokenKind::OpenBrace | TokenKind::CloseBrace => break,
                _ => (),
            }
            let taken = self.take();
            if depth == 0 {
                return first.to(taken);
            }
        }
        self.unclosed_list(first);
        Span::new(first.start, self.done)
    }

    /// A parenthesis that is open where its list must have ended.
    pub(super) fn unclosed_list(&mut self, open: Span) {
        let d = Diagnostic::error("unclosed-list", open, "this `(` is never closed");
        self.report(d.note_at(self.span, "`)` is missing before this"));
    }

    /// Takes what follows `.loc`: three numbers, then `, function_name LABEL+N` and `, inlined_at N N N`. There is no
    /// `;`, and a statement may follow on the same line.
    pub(super) fn location(&mut self) {
        self.numbers(3);
        while self.is(TokenKind::Comma) {
            self.take();
            let word = self.at(self.span);
            if self.take_if(TokenKind::Name).is_none() {
                break;
            }
            match word {
                "function_name" => {
                    self.take_if(TokenKind::Name);
                    if self.take_if(TokenKind::Plus).is_some() {
                        self.take_if(TokenKind::Number);
                    }
                }
                "inlined_at" => self.numbers(3),
                // A later PTX's attribute: to the end of the line.
                _ => self.rest_of_line(),
            }
        }
    }

    /// Takes what follows `.file`: number, string, and maybe time and size.
    pub(super) fn file(&mut self) {
        self.take_if(TokenKind::Number);
        self.take_if(TokenKind::String);
        while self.is(TokenKind::Comma) {
            self.take();
            self.take_if(TokenKind::Number);
        }
    }

    /// Takes up to `most` numbers.
    fn numbers(&mut self, most: usize) {
        for _ in 0..most {
            if self.take_if(TokenKind::Number).is_none() {
                break;
            }
        }
    }

    /// Takes tokens to the end of the line, at least to the end of the one that is next.
    fn rest_of_line(&mut self) {
        while self.next.is_some()
            && !self.line_ends_before_next()
            && !matches!(self.next, Some(TokenKind::CloseBrace | TokenKind::Comma))
        {
            self.take();
        }
    }

    /// Takes what follows a directive that the reader does not know: to its `;`, or to the end of a line behind which
    /// something new begins.
    pub(super) fn unknown_directive(&mut self) {
        let mut depth = 0u32;
        while let Some(kind) = self.next {
            match kind {
                TokenKind::Semicolon if depth == 0 => {
                    self.take();
                    return;
                }
                TokenKind::CloseBrace if depth == 0 => return,
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth -= 1,
                TokenKind::Dotted if begins_item(self.at(self.span)) => return,
                TokenKind::Name | TokenKind::At | TokenKind::Dotted
                    if depth == 0 && self.line_ends_before_next() && !self.after_comma() =>
                {
                    return;
                }
                _ => (),
            }
            self.take();
        }
    }

    fn after_comma(&self) -> bool {
        self.module.text.as_bytes().get((self.done as usize).wrapping_sub(1)) == Some(&b',')
    }
}

/// Behind `last` and a line end, does `kind` begin a new statement? A list, an address and a number of operands never
/// put two values side by side without a comma.
fn begins_statement(until: Until, last: Option<TokenKind>, kind: TokenKind) -> bool {
    use TokenKind as T;
    let ended = match last {
        Some(T::Name | T::Number | T::CloseBracket | T::CloseBrace) => true,
        Some(T::CloseParen | T::Dotted) => until == Until::Operands,
        Some(T::Greater | T::String) => until == Until::Declaration,
        _ => false,
    };
    match until {
        Until::Operands => ended && matches!(kind, T::Name | T::At | T::Number),
        // `.align 4` and its kin end in a number, and types follow them.
        Until::Declaration => {
            ended && (kind == T::At || (matches!(kind, T::Name | T::Dotted) && last != Some(T::Number)))
        }
    }
}
