//! From text to [`Module`]: one walk over the tokens, no recursion, no instruction known by name.
//!
//! Nothing is refused by stopping: what cannot be read becomes an `Unknown` and reading goes on at the next `;`,
//! closing brace or directive that can only stand at module level. So a text with five faults gives five messages,
//! and `bogus.v2 {%r1,%r2}, [%rd1];` does not end a body at its first `}`.
//!
//! * a *note* for what passes through untouched: directives that this reader has never heard of;
//! * an *error* for what every ptxas refuses: braces that do not match, an unclosed comment or string, a byte beyond
//!   ASCII outside of comments, a missing `;`, a text that is no PTX.
//!
//! The stages below: `module` (items), `function` (signatures), `statement` (bodies), `operand` (on demand).

mod function;
mod module;
mod operand;
mod param;
mod scan;
mod statement;

pub(crate) use function::type_size;
pub use operand::{Address, Opcode};

use crate::syntax::Module;
use crate::token::{TokenKind, Tokens};
use nt_diag::{Diagnostic, Found, Severity, Span};

/// How many diagnostics of one text are kept. A binary that happens to hold `.version` would give millions.
const KEPT: usize = 200;

/// How deep scopes may nest. ptxas gives up at about ten thousand; compilers stay below ten.
pub(crate) const DEPTH: usize = 1_000;

/// Reads a whole PTX text. Never fails: what cannot be read passes through as `Unknown`, and the list says so.
pub fn parse(text: &str) -> (Module<'_>, Found) {
    let mut reader = Reader::new(text);
    if !reader.too_long() {
        reader.module();
    }
    reader.finish()
}

/// Reads statements without a function around them, such as the text of an inserted span: all of it becomes
/// [`Module::statements`]. A closing brace that nothing opened is an error.
pub fn parse_statements(text: &str) -> (Module<'_>, Found) {
    let mut reader = Reader::new(text);
    if !reader.too_long() {
        reader.advance();
        reader.statements(None);
    }
    reader.finish()
}

/// The walk: the next token, what was read, what was wrong.
struct Reader<'s> {
    module: Module<'s>,
    tokens: Tokens<'s>,
    /// The next token, comments skipped; `None` at the end of the text.
    next: Option<TokenKind>,
    /// Where it stands; empty at the end of the text.
    span: Span,
    /// Where the last token taken ended.
    done: u32,
    found: Found,
    /// Diagnostics beyond [`KEPT`].
    dropped: usize,
    /// Where the last bad token ended, so that a run of them is told once.
    bad_until: u32,
}

impl<'s> Reader<'s> {
    fn new(text: &'s str) -> Self {
        let module = Module {
            text,
            version: None,
            target: None,
            address_size: None,
            items: Vec::new(),
            functions: Vec::new(),
            statements: Vec::new(),
        };
        Reader {
            module,
            tokens: Tokens::new(text, Span::from(0..text.len())),
            next: None,
            span: Span::at(0),
            done: 0,
            found: Found::new(),
            dropped: 0,
            bad_until: u32::MAX,
        }
    }

    /// Spans have 32 bits; a longer text is refused whole.
    fn too_long(&mut self) -> bool {
        let too_long = self.module.text.len() >= u32::MAX as usize;
        if too_long {
            self.report(
                Diagnostic::error("text-too-long", Span::at(0), "texts of 4 GiB and more cannot be read")
                    .label("it begins here"),
            );
        }
        too_long
    }

    fn finish(mut self) -> (Module<'s>, Found) {
        if self.dropped > 0 {
            let (count, end) = (self.dropped, Span::at(self.done));
            self.found.push(Diagnostic::remark(
                "too-many",
                end,
                format!("{count} more findings in this text"),
            ));
        }
        (self.module, self.found)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        // One error is always kept, whatever the number of notes before it.
        let first_error = diagnostic.severity == Severity::Error && !self.found.has_errors();
        if self.found.len() < KEPT || first_error {
            self.found.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    fn error(&mut self, slug: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(slug, span, message));
    }

    /// "expected this, found that", at `span`; in silence if that is a bad token, of which all is said.
    fn expected(&mut self, slug: &'static str, span: Span, what: &str) {
        if !self.is(TokenKind::Bad) {
            let message = format!("expected {what}, found {}", self.next_text());
            self.error(slug, span, message);
        }
    }

    /// The text of a span.
    fn at(&self, span: Span) -> &'s str {
        self.module.at(span)
    }

    /// The text of the next token, `end of the text` behind the last, short enough for a message.
    fn next_text(&self) -> String {
        match self.next {
            None => "the end of the text".to_owned(),
            Some(_) => {
                let text = self.at(self.span);
                let short: String = text.chars().take(40).collect();
                let more = if short.len() < text.len() { "…" } else { "" };
                format!("`{short}{more}`")
            }
        }
    }

    /// Is the next token of this kind?
    fn is(&self, kind: TokenKind) -> bool {
        self.next == Some(kind)
    }

    /// Is the next token the directive `word`?
    fn is_dotted(&self, word: &str) -> bool {
        self.is(TokenKind::Dotted) && self.at(self.span) == word
    }

    /// Takes the next token.
    fn take(&mut self) -> Span {
        let taken = self.span;
        self.done = taken.end;
        self.advance();
        taken
    }

    /// Takes the next token and gives its text.
    fn take_text(&mut self) -> &'s str {
        let span = self.take();
        self.at(span)
    }

    /// Takes the next token if it is of this kind.
    fn take_if(&mut self, kind: TokenKind) -> Option<Span> {
        self.is(kind).then(|| self.take())
    }

    /// Reads on to the next token that is no comment.
    fn advance(&mut self) {
        loop {
            let Some((kind, span)) = self.tokens.next() else {
                self.next = None;
                self.span = Span::from(self.module.text.len()..self.module.text.len());
                return;
            };
            if kind.is_comment() {
                if kind == TokenKind::LineMarker {
                    self.string(span);
                }
                continue;
            }
            (self.next, self.span) = (Some(kind), span);
            match kind {
                TokenKind::Bad => self.bad(span),
                TokenKind::String => self.string(span),
                _ => (),
            }
            return;
        }
    }

    /// The token behind the next one.
    fn second(&self) -> Option<(TokenKind, Span)> {
        self.tokens.clone().find(|(kind, _)| !kind.is_comment())
    }

    /// Says what is wrong with a token that none may be.
    fn bad(&mut self, span: Span) {
        if self.bad_until == span.start {
            self.bad_until = span.end;
            return;
        }
        self.bad_until = span.end;
        let text = self.at(span);
        let opening = |len: u32| Span::new(span.start, span.start.saturating_add(len));
        if text.starts_with("/*") {
            let d = Diagnostic::error("unclosed-comment", opening(2), "this comment is never closed");
            self.report(d.help("close it with `*/`; comments do not nest"));
        } else if text.starts_with('"') {
            self.error("unclosed-string", opening(1), "this string is never closed");
        } else {
            let what = match text.chars().next() {
                Some('\u{feff}') if span.start == 0 => "a byte order mark".to_owned(),
                Some(c) if !c.is_ascii() => format!("the character U+{:04X}", c as u32),
                Some(c) if c.is_control() => format!("the byte 0x{:02x}", c as u32),
                _ => format!("`{}`", text.chars().take(8).collect::<String>()),
            };
            let d = Diagnostic::error("stray-byte", span, format!("{what} has no meaning in PTX"));
            self.report(d.note("outside of comments PTX is printable ASCII"));
        }
    }

    /// ptxas refuses letters beyond ASCII in strings, those of line markers too.
    fn string(&mut self, span: Span) {
        let text = self.at(span);
        if let Some((at, c)) = text.char_indices().find(|(_, c)| !c.is_ascii()) {
            let start = span.start as usize + at;
            let message = format!("the character U+{:04X} in a string: PTX is ASCII", c as u32);
            self.error("stray-byte", Span::from(start..start + c.len_utf8()), message);
        }
    }
}
