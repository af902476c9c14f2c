//! Entries and functions: linkage, return parameters, name, parameters, directives, body.
//!
//! ```text
//! .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24]) .maxntid 128, 1, 1 { … }
//! .func (.param .b32 r) f .noreturn ;
//! ```
//!
//! Parameters get the place that the ABI gives them: packed in order, each aligned (PTX ISA 9.0, sections 5.1.6 and
//! 7.1). The `.align` behind `.ptr` speaks of what the pointer points to and moves nothing.

use super::Reader;
use super::scan::begins_item;
use crate::constant::constant;
use crate::syntax::{Directive, Function, ItemKind, Param};
use crate::token::TokenKind;
use nt_diag::{Diagnostic, Span};

/// Bytes of a fundamental type; `None` for what is no type. Opaque types are handles of 8 bytes.
pub(crate) fn type_size(word: &str) -> Option<u32> {
    Some(match word {
        ".b8" | ".s8" | ".u8" | ".pred" => 1,
        ".b16" | ".s16" | ".u16" | ".f16" | ".bf16" => 2,
        ".b32" | ".s32" | ".u32" | ".f32" | ".f16x2" | ".bf16x2" => 4,
        ".b64" | ".s64" | ".u64" | ".f64" | ".texref" | ".samplerref" | ".surfref" => 8,
        ".b128" => 16,
        _ => return None,
    })
}

/// Directives of functions: PTX ISA 9.0, sections 11.2 to 11.4, 11.7 and 11.8; `.attribute` is that of 5.4.8, and
/// `.minperctamemory` came with PTX 9.4.
const DIRECTIVES: [&str; 16] = [
    ".abi_preserve",
    ".abi_preserve_control",
    ".attribute",
    ".blocksareclusters",
    ".explicitcluster",
    ".local_maxnreg",
    ".maxclusterrank",
    ".maxnctapersm",
    ".maxnreg",
    ".maxntid",
    ".minnctapersm",
    ".minperctamemory",
    ".noreturn",
    ".pragma",
    ".reqnctapercluster",
    ".reqntid",
];

impl Reader<'_> {
    /// Takes an entry or a function, the next token being `.entry` or `.func`; `start` is that of its linkage.
    pub(super) fn function(&mut self, start: Span, linkage: Option<Span>) -> ItemKind {
        let is_entry = self.take_text() == ".entry";
        let mut directives = Vec::new();
        self.directives(&mut directives);
        let (returns, results) = if self.is(TokenKind::OpenParen) {
            let (list, results) = self.params();
            (Some(list), results)
        } else {
            (None, Vec::new())
        };
        self.directives(&mut directives);
        let Some(name) = self.take_if(TokenKind::Name) else {
            self.expected("expected-name", self.span, "the name of a function");
            self.skip_to_item();
            return ItemKind::Unknown;
        };
        let (list, params) = if self.is(TokenKind::OpenParen) {
            let (list, params) = self.params();
            (Some(list), params)
        } else {
            (None, Vec::new())
        };
        self.directives(&mut directives);
        let body = match self.next {
            Some(TokenKind::OpenBrace) => Some(self.body()),
            Some(TokenKind::Semicolon) => {
                self.take();
                None
            }
            _ => {
                self.expected("expected-body", self.span, "`{` or `;` behind a function's head");
                self.skip_to_item();
                None
            }
        };
        let index = u32::try_from(self.module.functions.len()).unwrap_or(u32::MAX);
        let span = Span::new(start.start, self.done);
        self.module.functions.push(Function {
            span,
            is_entry,
            name,
            linkage,
            returns,
            results,
            list,
            params,
            directives,
            body,
        });
        ItemKind::Function(index)
    }

    /// Takes directives with their arguments. A `.pragma` has a `;` of its own.
    fn directives(&mut self, into: &mut Vec<Directive>) {
        while self.is(TokenKind::Dotted) && !begins_item(self.at(self.span)) {
            let name = self.take();
            let first = self.span;
            let mut arguments = Span::at(name.end);
            if self.at(name) == ".attribute" && self.is(TokenKind::OpenParen) {
                arguments = self.parenthesised();
            } else {
                while let Some(TokenKind::Number | TokenKind::String | TokenKind::Comma) = self.next {
                    arguments = first.to(self.take());
                }
            }
            match self.at(name) {
                ".pragma" => {
                    self.take_if(TokenKind::Semicolon);
                }
                word if !DIRECTIVES.contains(&word) => {
                    let message = format!("unknown directive `{word}`");
                    let d = Diagnostic::remark("unknown-directive", name, message);
                    self.report(d.label("it passes through"));
                }
                _ => (),
            }
            into.push(Directive { name, arguments });
        }
    }

    /// Takes a list of parameters, the next token being the `(`.
    fn params(&mut self) -> (Span, Vec<Param>) {
        let open = self.take();
        let mut params: Vec<Param> = Vec::new();
        loop {
            match self.next {
                Some(TokenKind::CloseParen) => {
                    let close = self.take();
                    return (open.to(close), params);
                }
                Some(TokenKind::Comma) => {
                    self.take();
                }
                None | Some(TokenKind::Semicolon | TokenKind::OpenBrace | TokenKind::CloseBrace) => {
                    self.unclosed_list(open);
                    return (Span::new(open.start, self.done), params);
                }
                Some(_) => {
                    let end = params.last().map_or(0, |last| last.offset.saturating_add(last.size));
                    params.extend(self.param(end));
                }
            }
        }
    }

    /// Takes one parameter, which lies at `end` or, aligned, behind it.
    fn param(&mut self, end: u32) -> Option<Param> {
        let start = self.span;
        let (mut align, mut size, mut elements) = (None, 0u32, 1u32);
        let (mut name, mut pointee) = (None, false);
        while let Some(kind) = self.next {
            match kind {
                TokenKind::Comma
                | TokenKind::CloseParen
                | TokenKind::Semicolon
                | TokenKind::OpenBrace
                | TokenKind::CloseBrace => break,
                TokenKind::Dotted => {
                    let word = self.take_text();
                    match word {
                        ".align" if self.is(TokenKind::Number) => {
                            let number = self.take_text();
                            if !pointee {
                                align = constant(number).and_then(|n| u32::try_from(n).ok());
                            }
                        }
                        ".ptr" => pointee = true,
                        ".v2" => elements = 2,
                        ".v4" => elements = 4,
                        word => size = type_size(word).unwrap_or(size),
                    }
                }
                TokenKind::OpenBracket => elements = elements.saturating_mul(self.bound()),
                TokenKind::Name if name.is_none() => name = Some(self.take()),
                _ => {
                    self.expected("bad-parameter", self.span, "`,` or `)` in a list of parameters");
                    while !matches!(
                        self.next,
                        None | Some(
                            TokenKind::Comma
                                | TokenKind::CloseParen
                                | TokenKind::Semicolon
                                | TokenKind::OpenBrace
                                | TokenKind::CloseBrace
                        )
                    ) {
                        self.take();
                    }
                }
            }
        }
        let span = Span::new(start.start, self.done);
        let Some(name) = name else {
            self.error("bad-parameter", span, "a parameter without a name");
            return None;
        };
        // ptxas never aligns less than the type does, whatever `.align` says; what is no power of two it refuses.
        let align = align.filter(|align| align.is_power_of_two()).unwrap_or(1).max(size).max(1);
        let offset = end.checked_next_multiple_of(align).unwrap_or(u32::MAX);
        Some(Param { span, name, align, size: size.saturating_mul(elements), offset })
    }

    /// Takes `[N]`, the next token being the `[`: N, or 0 where there is none.
    fn bound(&mut self) -> u32 {
        let open = self.take();
        while !matches!(
            self.next,
            None | Some(
                TokenKind::CloseBracket
                    | TokenKind::CloseParen
                    | TokenKind::Comma
                    | TokenKind::Semicolon
                    | TokenKind::OpenBrace
                    | TokenKind::CloseBrace
            )
        ) {
            self.take();
        }
        let number = self.at(Span::new(open.end, self.span.start));
        if self.take_if(TokenKind::CloseBracket).is_none() {
            self.error("bad-parameter", open, "this `[` is never closed");
        }
        constant(number).and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
    }
}
