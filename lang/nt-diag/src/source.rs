//! A named text and where its lines begin.

use crate::Span;

/// A text with the name that messages call it by, and an index of its lines.
///
/// `\n`, `\r\n` and a lone `\r` all end a line, as in PTX that an editor on another system saved.
#[derive(Debug, Clone)]
pub struct Source<'t> {
    name: &'t str,
    text: &'t str,
    starts: Vec<u32>,
}

/// A place as people count it: both from 1, columns in characters, not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineColumn {
    /// The line.
    pub line: u32,
    /// The character in it.
    pub column: u32,
}

impl<'t> Source<'t> {
    /// Indexes `text`, which messages call `name` (`<stdin>` for standard input).
    pub fn new(name: &'t str, text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, &byte) in bytes.iter().enumerate() {
            let ends = byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
            if ends {
                starts.push(u32::try_from(at + 1).unwrap_or(u32::MAX));
            }
        }
        Source { name, text, starts }
    }

    /// What messages call it.
    pub fn name(&self) -> &'t str {
        self.name
    }

    /// All of it.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Line and column of a byte; an offset beyond the end is the end, one inside a character is that character.
    pub fn position(&self, offset: u32) -> LineColumn {
        let offset = self.floor(offset);
        let line = self.starts.partition_point(|&start| start as usize <= offset).max(1);
        let start = self.starts[line - 1] as usize;
        let column = self.text[start..offset].chars().count() + 1;
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        LineColumn { line: narrow(line), column: narrow(column) }
    }

    /// The span of the line that holds `offset`, without its end.
    pub fn line_span(&self, offset: u32) -> Span {
        let offset = self.floor(offset);
        let line = self.starts.partition_point(|&start| start as usize <= offset).max(1);
        let start = self.starts[line - 1] as usize;
        let end = self.starts.get(line).map_or(self.text.len(), |&next| next as usize);
        let end = start + self.text[start..end].trim_end_matches(['\n', '\r']).len();
        Span::from(start..end)
    }

    /// The nearest character boundary at or before `offset`, within the text.
    fn floor(&self, offset: u32) -> usize {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_three_ways() {
        let source = Source::new("x", "a\r\nbü\rc\nd");
        let place = |offset| {
            let p = source.position(offset);
            (p.line, p.column)
        };
        assert_eq!(place(0), (1, 1));
        assert_eq!(place(3), (2, 1));
        assert_eq!(place(5), (2, 2), "inside the two bytes of ü");
        assert_eq!(place(6), (2, 3));
        assert_eq!(place(7), (3, 1));
        assert_eq!(place(9), (4, 1));
        assert_eq!(place(999), (4, 2));
        assert_eq!(source.line_span(4).of(source.text()), "bü");
    }
}
