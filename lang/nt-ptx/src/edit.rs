//! Rewriting: insertions at offsets and replacements of spans, applied into one buffer.
//!
//! ```
//! use nt_ptx::Edits;
//! use nt_diag::Span;
//! let mut edits = Edits::new();
//! edits.insert(4, "b");
//! edits.replace(Span::new(0, 1), "A");
//! edits.insert(4, "c");
//! assert_eq!(edits.apply("a   d").unwrap(), "A   bcd");
//! ```
//!
//! Promise: every byte that no replacement covers is in the output, in its order. Insertions at one offset stand in
//! the order in which they were made; one at the start of a replaced span stands before the new text, one at its end
//! behind it.

use nt_diag::Span;

/// A list of changes to one text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    list: Vec<Edit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    span: Span,
    text: String,
}

/// Why edits cannot be applied: always the caller's fault, never the text's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Two replacements share bytes, or an insertion lies inside a replaced span.
    #[error("edits of bytes {first:?} and {second:?} overlap")]
    Overlap {
        /// The one that begins first.
        first: Span,
        /// The one that begins inside it.
        second: Span,
    },
    /// An edit of bytes that the text does not have.
    #[error("edit of bytes {span:?} of a text of {len} bytes")]
    Outside {
        /// The edit's span.
        span: Span,
        /// The text's length.
        len: usize,
    },
    /// An edit that begins or ends in the middle of a UTF-8 character.
    #[error("edit of bytes {span:?} cuts a character")]
    CutsCharacter {
        /// The edit's span.
        span: Span,
    },
}

impl Edits {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `text` between the bytes before and from `offset` on.
    pub fn insert(&mut self, offset: u32, text: impl Into<String>) {
        self.list.push(Edit { span: Span::at(offset), text: text.into() });
    }

    /// Puts `text` in the place of the bytes of `span`.
    pub fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.list.push(Edit { span, text: text.into() });
    }

    /// Adds all of `other` behind these.
    pub fn extend(&mut self, other: Edits) {
        self.list.extend(other.list);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The changed text.
    ///
    /// # Errors
    /// When two edits overlap, or one does not lie on characters of `text`. The order in which edits were made does
    /// not matter to this.
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        let mut order: Vec<&Edit> = self.list.iter().collect();
        // Stable: edits of one empty span keep their order. An empty span sorts before a longer one that begins there.
        order.sort_by_key(|edit| (edit.span.start, edit.span.end));

        let added: usize = order.iter().map(|edit| edit.text.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut done = Span::at(0);
        for edit in order {
            let span = edit.span;
            if span.end as usize > text.len() {
                return Err(EditError::Outside { span, len: text.len() });
            }
            if span.start < done.end {
                return Err(EditError::Overlap { first: done, second: span });
            }
            let kept = text.get(done.end as usize..span.start as usize);
            let (Some(kept), true) = (kept, text.is_char_boundary(span.end as usize)) else {
                return Err(EditError::CutsCharacter { span });
            };
            out.push_str(kept);
            out.push_str(&edit.text);
            done = span;
        }
        out.push_str(text.get(done.end as usize..).unwrap_or(""));
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_making() {
        let mut edits = Edits::new();
        edits.replace(Span::new(1, 3), "XY");
        edits.insert(3, "after");
        edits.insert(1, "one");
        edits.insert(1, "two");
        assert_eq!(edits.apply("abcd").unwrap(), "aonetwoXYafterd");
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        let apply = |spans: &[(u32, u32)], text: &str| {
            let mut edits = Edits::new();
            for &(start, end) in spans {
                edits.replace(Span::new(start, end), "-");
            }
            edits.apply(text)
        };
        let (first, second) = (Span::new(0, 3), Span::new(2, 4));
        assert_eq!(apply(&[(2, 4), (0, 3)], "abcd"), Err(EditError::Overlap { first, second }));
        let second = Span::at(1);
        assert_eq!(apply(&[(0, 3), (1, 1)], "abcd"), Err(EditError::Overlap { first, second }));
        assert_eq!(apply(&[(0, 3), (3, 3)], "abcd"), Ok("--d".to_owned()));
        assert_eq!(apply(&[(1, 9)], "abcd"), Err(EditError::Outside { span: Span::new(1, 9), len: 4 }));
        assert_eq!(apply(&[(1, 1)], "ü"), Err(EditError::CutsCharacter { span: Span::at(1) }));
        assert_eq!(apply(&[], "abcd"), Ok("abcd".to_owned()));
    }
}
