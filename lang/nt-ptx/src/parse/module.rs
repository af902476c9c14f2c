//! Module level: the header, functions, variables, debug data, and how to go on behind what is none of these.
//!
//! Source: PTX ISA 9.0, section 11.1 (`.version`, `.target`, `.address_size`), which must stand first and in this
//! order; ptxas 13.0 for what it refuses.

use super::Reader;
use super::scan::{Until, begins_item};
use crate::syntax::{Item, ItemKind, Target, Version};
use crate::token::TokenKind;
use crate::version::Arch;
use nt_diag::{Diagnostic, Span};

impl Reader<'_> {
    /// Takes the whole text.
    pub(super) fn module(&mut self) {
        // What has no `.version` anywhere is some other kind of file: one message, not one a byte.
        if memchr::memmem::find(self.module.text.as_bytes(), b".version").is_none() {
            return self.no_ptx();
        }
        self.advance();
        self.header();
        while let Some(kind) = self.next {
            let start = self.span;
            let kind = match kind {
                TokenKind::Dotted => self.item(start),
                TokenKind::CloseBrace => {
                    let d = Diagnostic::error("unbalanced-braces", start, "this `}` closes nothing");
                    self.report(d.note("the function before it has ended already"));
                    self.take();
                    ItemKind::Unknown
                }
                TokenKind::Bad => {
                    self.take();
                    ItemKind::Unknown
                }
                _ => {
                    self.expected("expected-item", start, "a directive of module level");
                    self.take();
                    self.skip_to_item();
                    ItemKind::Unknown
                }
            };
            self.item_from(start, kind);
        }
    }

    fn item_from(&mut self, start: Span, kind: ItemKind) {
        self.module.items.push(Item { span: Span::new(start.start, self.done), kind });
    }

    /// A text without `.version`.
    fn no_ptx(&mut self) {
        let text = self.module.text;
        let blank = [' ', '\t', '\r', '\n'];
        let first = text.len() - text.trim_start_matches(blank).len();
        let shown = self.tokens.find(|(kind, _)| !kind.is_comment()).map_or(Span::at(0), |(_, span)| span);
        let d = Diagnostic::error("not-ptx", shown, "this is no PTX: there is no `.version` in it");
        self.report(d.help("PTX begins with `.version M.N` and `.target sm_NN`"));
        let whole = Span::from(first..text.trim_end_matches(blank).len().max(first));
        if !whole.is_empty() {
            self.done = whole.end;
            self.item_from(whole, ItemKind::Unknown);
        }
    }

    /// Checks that `.version` and `.target` stand first; items are read as any others.
    fn header(&mut self) {
        // A byte order mark, of which all is said.
        while self.is(TokenKind::Bad) {
            let bad = self.take();
            self.item_from(bad, ItemKind::Unknown);
        }
        if !self.is_dotted(".version") {
            let message =
                format!("expected `.version` at the start of the module, found {}", self.next_text());
            let d = Diagnostic::error("no-version", self.span, message);
            return self.report(d.note("only comments may stand before it"));
        }
        let start = self.span;
        let kind = self.item(start);
        self.item_from(start, kind);
        if !self.is_dotted(".target") {
            self.expected("no-target", self.span, "`.target` behind `.version`");
        }
    }

    /// Takes one item, the next token being a dotted word.
    fn item(&mut self, start: Span) -> ItemKind {
        let mut linkage: Option<Span> = None;
        while let ".visible" | ".extern" | ".weak" | ".common" = self.at(self.span) {
            let word = self.take();
            linkage = Some(linkage.map_or(word, |first| first.to(word)));
        }
        match self.at(self.span) {
            ".entry" | ".func" => self.function(start, linkage),
            ".global" | ".const" | ".shared" | ".local" | ".param" | ".reg" | ".tex" | ".texref"
            | ".samplerref" | ".surfref" => self.variable(),
            _ if linkage.is_some() => {
                self.expected("expected-item", self.span, "a function or a variable");
                self.skip_to_item();
                ItemKind::Unknown
            }
            _ => self.directive_item(),
        }
    }

    /// Takes a directive that is neither function nor variable.
    fn directive_item(&mut self) -> ItemKind {
        let word = self.take();
        match self.at(word) {
            ".version" => self.version(word),
            ".target" => self.target(word),
            ".address_size" => self.address_size(),
            ".alias" => {
                self.through_semicolon(Until::Declaration);
                ItemKind::Alias
            }
            ".file" => {
                self.file();
                ItemKind::File
            }
            ".section" => {
                self.section();
                ItemKind::Section
            }
            ".pragma" => {
                self.through_semicolon(Until::Declaration);
                ItemKind::Pragma
            }
            ".loc" => {
                self.location();
                ItemKind::Other
            }
            name => {
                let message = format!("unknown directive `{name}`");
                self.unknown_directive();
                self.report(
                    Diagnostic::remark("unknown-directive", word, message).label("it passes through"),
                );
                ItemKind::Unknown
            }
        }
    }

    fn version(&mut self, word: Span) -> ItemKind {
        if let Some(first) = self.module.version {
            let d = Diagnostic::error("second-version", word, "a second `.version`");
            self.report(d.note_at(first.number, "the first"));
        }
        let pair = self.at(self.span).split_once('.');
        let pair = pair.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        match (self.next, pair) {
            (Some(TokenKind::Number), Some((major, minor))) => {
                let number = self.take();
                self.module.version.get_or_insert(Version { major, minor, number });
            }
            _ => {
                self.expected("bad-version", self.span, "a version such as `8.7`");
                self.take_if(TokenKind::Number);
            }
        }
        ItemKind::Header
    }

    fn target(&mut self, word: Span) -> ItemKind {
        let mut words: Vec<Span> = Vec::new();
        loop {
            let Some(name) = self.take_if(TokenKind::Name) else {
                self.expected("bad-target", self.span, "a target such as `sm_90`");
                break;
            };
            words.push(name);
            if self.take_if(TokenKind::Comma).is_none() {
                break;
            }
        }
        // An architecture that no table has is let pass; a word that can be none is not.
        if let Some(&first) = words.first()
            && Arch::parse(self.at(first)).is_none()
        {
            let message = format!("expected an architecture such as `sm_90`, found `{}`", self.at(first));
            self.error("bad-target", first, message);
        }
        let span = Span::new(word.start, self.done);
        match &self.module.target {
            None => self.module.target = Some(Target { words, span }),
            Some(first) => {
                let d = Diagnostic::error("second-target", word, "a second `.target`");
                self.report(d.note_at(first.span, "the first"));
            }
        }
        ItemKind::Header
    }

    fn address_size(&mut self) -> ItemKind {
        match self.at(self.span).parse() {
            Ok(size) => {
                self.take();
                self.module.address_size = Some(size);
            }
            Err(_) => {
                self.expected("bad-address-size", self.span, "32 or 64");
            }
        }
        ItemKind::Header
    }

    /// Takes a variable, the next token being its space.
    fn variable(&mut self) -> ItemKind {
        let space = self.take();
        // `.attribute(.managed) .align 8 .v2 .u32`, in any order, up to the name.
        loop {
            match self.next {
                Some(TokenKind::Dotted) if !begins_item(self.at(self.span)) => {
                    let word = self.take();
                    if self.at(word) == ".attribute" && self.is(TokenKind::OpenParen) {
                        self.parenthesised();
                    } else {
                        self.take_if(TokenKind::Number);
                    }
                }
                Some(TokenKind::Name) => break,
                _ => {
                    self.expected("expected-name", self.span, "the name of a variable");
                    self.through_semicolon(Until::Declaration);
                    return ItemKind::Unknown;
                }
            }
        }
        let name = self.span;
        self.through_semicolon(Until::Declaration);
        ItemKind::Variable { name, space }
    }

    /// Takes what follows `.section`: a name and braces.
    pub(super) fn section(&mut self) {
        while let Some(TokenKind::Dotted | TokenKind::Name) = self.next {
            if begins_item(self.at(self.span)) {
                break;
            }
            self.take();
        }
        if self.is(TokenKind::OpenBrace) {
            self.braced();
        } else {
            self.expected("expected-section", self.span, "`{` behind the name of a section");
        }
    }

    /// Passes over what cannot be read, to a directive that certainly begins an item.
    pub(super) fn skip_to_item(&mut self) {
        while self.next.is_some() {
            let word = self.at(self.span);
            if self.is(TokenKind::Dotted)
                && (begins_item(word) || matches!(word, ".section" | ".file" | ".alias"))
            {
                return;
            }
            self.take();
        }
    }
}
