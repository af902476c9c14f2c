//! Spans and diagnostics: where a user's text is wrong, why, and the way out.
//!
//! Every stage that reads text (probe programs, PTX) collects [`Diagnostic`]s in a [`Found`] and goes on; a
//! program draws them once, against the [`Source`] they speak of:
//!
//! ```text
//! heat.nt:4:5: error: unknown map `heats`
//!   4 |     heats.save(clock());
//!     |     ^^^^^ not declared in this program
//!   note: declared at line 2: `heat`
//!   help: did you mean `heat`?
//! ```
//!
//! Promises: nothing here prints, reads or exits; positions beyond the text, in the middle of a character, or in a
//! line of a megabyte are drawn, never a panic; the same diagnostics give the same bytes.

mod json;
mod nearest;
mod render;
mod source;
mod span;

pub use json::{escape as json_escape, to_json_line};
pub use nearest::nearest;
pub use render::{Paint, render};
pub use source::{LineColumn, Source};
pub use span::Span;

/// How much a diagnostic weighs: errors refuse the input, warnings and notes do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is taken, but something about it is probably not what was meant.
    Warning,
    /// Something the reader should know, such as an unknown instruction that passes through.
    Note,
}

impl Severity {
    /// The word that stands in front of the message.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// One thing that is wrong with a text, or worth knowing about it.
///
/// Built from [`Diagnostic::error`] and its kin, then the methods that add a label, notes and helps:
///
/// ```
/// use nt_diag::{Diagnostic, Span};
/// let d = Diagnostic::error("unknown-name", Span::new(4, 9), "unknown map `heats`")
///     .label("not declared in this program")
///     .help("did you mean `heat`?");
/// assert_eq!(d.slug, "unknown-name");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How much it weighs.
    pub severity: Severity,
    /// Its kind, as `--explain SLUG` takes it: lower case, words joined by `-`.
    pub slug: &'static str,
    /// The guilty bytes.
    pub span: Span,
    /// What is wrong: lower case, names in backticks, no full stop.
    pub message: String,
    /// Said beside the carets; may be empty.
    pub label: String,
    /// Facts that help to understand it, each with a place of its own if it has one.
    pub notes: Vec<(String, Option<Span>)>,
    /// Ways out.
    pub helps: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic of any severity.
    pub fn new(severity: Severity, slug: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity,
            slug,
            span,
            message: message.into(),
            label: String::new(),
            notes: Vec::new(),
            helps: Vec::new(),
        }
    }

    /// The input is refused because of `span`.
    pub fn error(slug: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, slug, span, message)
    }

    /// `span` is taken, with a warning.
    pub fn warning(slug: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, slug, span, message)
    }

    /// `span` is fine, but worth a word.
    pub fn remark(slug: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, slug, span, message)
    }

    /// Says something beside the carets.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Adds a fact without a place.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push((text.into(), None));
        self
    }

    /// Adds a fact that has a place in the same text.
    #[must_use]
    pub fn note_at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push((text.into(), Some(span)));
        self
    }

    /// Adds a way out.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.helps.push(text.into());
        self
    }

    /// Adds "did you mean `x`?" if `name` is close to one of `candidates`.
    #[must_use]
    pub fn suggest<'a>(self, name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        match nearest(name, candidates) {
            Some(found) => self.help(format!("did you mean `{found}`?")),
            None => self,
        }
    }
}

/// What a stage found wrong so far.
///
/// Collects without bound on errors found but draws at most [`Found::SHOWN`], so that a text with one fault a line
/// does not flood a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    list: Vec<Diagnostic>,
    errors: usize,
}

impl Found {
    /// How many diagnostics of one text are drawn; the rest is counted.
    pub const SHOWN: usize = 20;

    /// Nothing found yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        self.list.push(diagnostic);
    }

    /// Adds all of another stage's.
    pub fn extend(&mut self, other: Found) {
        self.errors += other.errors;
        self.list.extend(other.list);
    }

    /// Is anything among them that refuses the input?
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Nothing at all, not even a note?
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All of them, in order of position, errors first at one position.
    pub fn sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| (d.span.start, d.severity, d.span.end));
        self.list
    }

    /// All of them, in the order they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
}
