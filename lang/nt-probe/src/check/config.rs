//! `config { stream = 64MiB; }`: what a program says of its own run. Language reference, Items.

use super::{Checker, duplicate};
use crate::ast::{Expr, Item};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Config, Type};

/// Settings of the language that are not compiled yet.
const LATER: &[&str] = &["keys", "map_bytes", "registers", "instructions", "print", "missing"];

/// The bytes that a stream may be long: of fewer, some warps would have no room; the number of a slot has 32 bits.
const STREAM: std::ops::RangeInclusive<u64> = 64 * 1024..=16 << 30;

impl<'s> Checker<'_, 's> {
    pub(super) fn configure(&mut self) -> Config {
        let mut config = Config::default();
        let mut first: Option<Span> = None;
        let mut given: Vec<Word<'s>> = Vec::new();
        for item in self.items {
            let Item::Config { settings, span } = item else { continue };
            if let Some(first) = first {
                let message = "`config` comes once";
                self.found
                    .push(Diagnostic::error("duplicate-name", *span, message).note_at(first, "first here"));
            }
            first = first.or(Some(*span));
            for (name, value) in settings {
                if let Some(first) = given.iter().find(|other| other.text == name.text) {
                    let diagnostic = duplicate(*name, first.span);
                    self.found.push(diagnostic);
                }
                given.push(*name);
                match name.text {
                    "stream" => config.stream = self.stream(value).unwrap_or(config.stream),
                    later if LATER.contains(&later) => {
                        self.not_yet(name.span, "settings of `config` but `stream`");
                    }
                    other => {
                        let known = LATER.iter().copied().chain(["stream"]);
                        let message = format!("unknown setting `{other}`");
                        let diagnostic =
                            Diagnostic::error("unknown-name", name.span, message).suggest(other, known);
                        self.found.push(diagnostic);
                    }
                }
            }
        }
        config
    }

    fn stream(&mut self, value: &Expr<'s>) -> Option<u64> {
        let bytes = self.constant_of(value, Type::U64)?;
        if STREAM.contains(&bytes) {
            return Some(bytes);
        }
        let message = format!("a stream of {bytes} bytes, where 64KiB to 16GiB are possible");
        self.found.push(Diagnostic::error("map-bound", value.span, message));
        None
    }
}
