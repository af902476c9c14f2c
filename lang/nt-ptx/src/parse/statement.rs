//! Bodies: guards, opcodes, labels, scopes and the directives among them.
//!
//! ```text
//! { .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], 0; @p bra.uni D; bra.uni W; D: }
//! ```
//!
//! gives `Open Declaration Label Instruction Instruction Instruction Label Close`. Operands are passed over here.
//!
//! Source: PTX ISA 9.0, section 4.3 (statements), 11.5 and 11.6 (debugging and linking directives).

use super::scan::{Until, begins_item};
use super::{DEPTH, Reader};
use crate::syntax::{Body, Guard, Instruction, Kind, Statement};
use crate::token::TokenKind;
use nt_diag::{Diagnostic, Span};

impl Reader<'_> {
    /// Takes `{ … }`, the next token being the `{`.
    pub(super) fn body(&mut self) -> Body {
        let start = self.statement_count();
        let open = self.take();
        self.statements(Some(open));
        Body { span: Span::new(open.start, self.done), statements: start..self.statement_count() }
    }

    fn statement_count(&self) -> u32 {
        // Each statement has at least a byte of its own, and there are fewer than 2^32 of those.
        u32::try_from(self.module.statements.len()).unwrap_or(u32::MAX)
    }

    /// Takes statements up to the brace that closes `body`, or all of the text if there is none.
    pub(super) fn statements(&mut self, body: Option<Span>) {
        let mut open: Vec<Span> = Vec::new();
        while let Some(kind) = self.next {
            match kind {
                TokenKind::CloseBrace if open.pop().is_some() => {
                    let span = self.take();
                    self.push(span, if open.len() < DEPTH { Kind::Close } else { Kind::Unknown });
                }
                TokenKind::CloseBrace if body.is_some() => {
                    self.take();
                    return;
                }
                TokenKind::CloseBrace => {
                    let span = self.take();
                    self.error("unbalanced-braces", span, "this `}` closes nothing");
                    self.push(span, Kind::Unknown);
                }
                TokenKind::OpenBrace => {
                    let span = self.take();
                    if open.len() == DEPTH {
                        self.error("scopes-too-deep", span, format!("scopes nest more than {DEPTH} deep"));
                    }
                    // Beyond that, braces are no scopes: what walks up them later need not fear any text.
                    self.push(span, if open.len() < DEPTH { Kind::Open } else { Kind::Unknown });
                    open.push(span);
                }
                TokenKind::Name => self.name(None),
                TokenKind::At => self.guarded(),
                // A function cannot begin inside another: the brace that closes this one is missing.
                TokenKind::Dotted if body.is_some() && self.at_item() => break,
                TokenKind::Dotted => self.directive(),
                _ => self.no_statement(),
            }
        }
        for brace in open.into_iter().rev().take(DEPTH).chain(body) {
            self.unclosed(brace, self.span);
        }
    }

    /// Does a function begin here, by its linkage or itself?
    fn at_item(&self) -> bool {
        match self.at(self.span) {
            ".entry" | ".func" => true,
            word if begins_item(word) => {
                self.second().is_some_and(|(_, next)| matches!(self.at(next), ".entry" | ".func"))
            }
            _ => false,
        }
    }

    fn push(&mut self, span: Span, kind: Kind) {
        self.module.statements.push(Statement { span, kind });
    }

    /// From `start` to the end of the last token taken.
    fn push_from(&mut self, start: Span, kind: Kind) {
        self.push(Span::new(start.start, self.done), kind);
    }

    /// What begins with a name: a label, or an instruction, which may have a guard.
    fn name(&mut self, guard: Option<Guard>) {
        let name = self.take();
        if self.is(TokenKind::Colon) {
            match guard {
                None => {
                    self.take();
                    self.push_from(name, Kind::Label(name));
                }
                Some(guard) => {
                    let d = Diagnostic::error(
                        "guard-alone",
                        guard.span,
                        "a guard needs an instruction behind it",
                    );
                    self.report(d.note_at(name, "this is a label"));
                    self.take();
                    self.push_from(guard.span, Kind::Unknown);
                }
            }
            return;
        }
        // Blanks and comments may stand between the parts of an opcode. A word that could begin an item of the module
        // (`st.weak`) belongs to the opcode if nothing stands between.
        let mut opcode = name;
        while self.is(TokenKind::Dotted) && (self.span.start == self.done || !begins_item(self.at(self.span)))
        {
            opcode = opcode.to(self.take());
        }
        let start = guard.map_or(name, |guard| guard.span);
        let operands = self.through_semicolon(Until::Operands);
        let operands = if operands.is_empty() { Span::at(opcode.end) } else { operands };
        self.push_from(start, Kind::Instruction(Instruction { guard, opcode, operands }));
    }

    /// `@p` or `@!p`, and the instruction behind it.
    fn guarded(&mut self) {
        let at = self.take();
        let negated = self.take_if(TokenKind::Not).is_some();
        let Some(register) = self.take_if(TokenKind::Name) else {
            self.expected("guard-alone", at, "a predicate behind `@`");
            self.through_semicolon(Until::Operands);
            self.push_from(at, Kind::Unknown);
            return;
        };
        let guard = Guard { negated, register, span: at.to(register) };
        if self.is(TokenKind::Name) {
            self.name(Some(guard));
        } else {
            self.expected("guard-alone", guard.span, "an instruction behind the guard");
            self.take_if(TokenKind::Semicolon);
            self.push_from(at, Kind::Unknown);
        }
    }

    /// What begins with a dotted word.
    fn directive(&mut self) {
        let word = self.take();
        let kind = match self.at(word) {
            ".reg" | ".shared" | ".local" | ".param" | ".const" | ".global" | ".tex" | ".texref"
            | ".samplerref" | ".surfref" => {
                self.through_semicolon(Until::Declaration);
                Kind::Declaration(word)
            }
            ".loc" => {
                self.location();
                Kind::Loc
            }
            ".pragma" => {
                let string = if self.is(TokenKind::String) { self.span } else { Span::at(word.end) };
                self.through_semicolon(Until::Declaration);
                Kind::Pragma(string)
            }
            ".branchtargets" | ".calltargets" | ".callprototype" => {
                self.through_semicolon(Until::Declaration);
                Kind::Table
            }
            ".file" => {
                self.file();
                Kind::Directive
            }
            ".section" => {
                self.section();
                Kind::Directive
            }
            name if begins_item(name) => {
                self.error("item-in-body", word, format!("`{name}` cannot stand among statements"));
                self.unknown_directive();
                Kind::Unknown
            }
            name => {
                let message = format!("unknown directive `{name}`");
                self.unknown_directive();
                self.report(
                    Diagnostic::remark("unknown-directive", word, message).label("it passes through"),
                );
                Kind::Directive
            }
        };
        self.push_from(word, kind);
    }

    /// What cannot begin a statement: passed over to the next `;`.
    fn no_statement(&mut self) {
        let start = self.span;
        if !self.is(TokenKind::Bad) {
            self.expected("expected-statement", start, "a statement");
        }
        if self.is(TokenKind::Bad) {
            // Said already; what follows it is read as if it were not there.
            while self.is(TokenKind::Bad) {
                self.take();
            }
        } else {
            self.through_semicolon(Until::Operands);
            if self.done <= start.start {
                self.take();
            }
        }
        self.push_from(start, Kind::Unknown);
    }
}
