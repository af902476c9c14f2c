//! Puts `.loc` back into the PTX of a cubin, where ptxas left empty lines of it.
//!
//! ```text
//! 38                                  .loc 3 21 0      the table: line 40 is of kernels.py 21
//! 39  mov.u32 %r28, %tid.x;           mov.u32 …
//! 40  shl.b32 %r29, %r28, 2;          shl.b32 …
//! 41                                  .loc 3 20 0      the table: line 42 is of kernels.py 20
//! 42  or.b32  %r31, %r30, %r26;       or.b32 …
//! ```
//!
//! Promise: no line changes its number, and no instruction is given a line that the tables do not give to its stretch.
//! A stretch is what stands between empty lines that may have been `.loc`s (or comments: nothing tells them apart), so
//! all of it is of one source line. It is that of the rows that begin at its code; where none does, of those that cover
//! it, if they agree. A stretch of which nothing is known gets line 0, as compilers write it of code that is of no line.

use crate::line_table::{Lines, Place, Source};
use crate::ptx::{Scan, is_identifier};
use std::fmt::Write;

/// An empty line between two statements of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    /// Its number, from 1 on.
    line: u32,
    /// Where it begins.
    at: usize,
    /// The line of the next gap, or behind the end of its function.
    until: u32,
    /// Is it the first of its function?
    first: bool,
    /// Does an instruction or a declaration end before the next gap?
    code: bool,
}

/// `text` with the lines of `places`, which are in the order of the text's lines.
pub(crate) fn put_back(text: String, lines: &Lines, places: &[Place]) -> String {
    if places.iter().all(|place| place.source.is_none()) {
        return text;
    }
    let gaps = gaps(&text);
    let mut out = String::with_capacity(text.len() + gaps.len() * 8);
    let mut numbers = Numbers::of(lines);
    let (mut from, mut now) = (0, None);
    for gap in &gaps {
        if gap.first {
            now = None;
        }
        let begin = places.partition_point(|place| place.line < gap.line);
        let stretch = places.get(begin..).unwrap_or_default();
        let stretch =
            stretch.get(..stretch.partition_point(|place| place.line < gap.until)).unwrap_or_default();
        let (file, line) =
            match line_of(stretch).and_then(|source| Some((numbers.get(source.file)?, source.line))) {
                Some(known) => known,
                None if gap.code
                    && let Some((file, _)) = now =>
                {
                    (file, 0)
                }
                None => continue,
            };
        if now != Some((file, line)) {
            now = Some((file, line));
            out += text.get(from..gap.at).unwrap_or_default();
            // What is written to a string cannot fail.
            let _ = write!(out, ".loc {file} {line} 0");
            from = gap.at;
        }
    }
    out += text.get(from..).unwrap_or_default();
    numbers.write(&mut out);
    out
}

/// The source line of a stretch.
fn line_of(stretch: &[Place]) -> Option<Source> {
    let one = |begins: bool| {
        let mut sources =
            stretch.iter().filter(|place| place.begins == begins).filter_map(|place| place.source);
        let first = sources.next()?;
        Some(sources.all(|source| source == first).then_some(first))
    };
    // Rows that begin at its code but disagree tell nothing, and nor do those that only reach it.
    one(true).or_else(|| one(false)).flatten()
}

/// Numbers of `.file`, given in the order of use.
struct Numbers<'l> {
    files: &'l [String],
    /// By index into `files`; 0 is none yet.
    given: Vec<usize>,
    order: Vec<usize>,
}

impl<'l> Numbers<'l> {
    fn of(lines: &'l Lines) -> Self {
        Numbers { files: &lines.files, given: vec![0; lines.files.len()], order: Vec::new() }
    }

    /// `None` for a file whose name PTX cannot hold.
    fn get(&mut self, file: usize) -> Option<usize> {
        let name = self.files.get(file)?;
        let number = self.given.get_mut(file)?;
        if name.is_empty() || name.contains(['"', '\n', '\r', '\0']) {
            return None;
        }
        if *number == 0 {
            self.order.push(file);
            *number = self.order.len();
        }
        Some(*number)
    }

    /// The directives, behind all else, as Triton has them.
    fn write(&self, out: &mut String) {
        for (file, number) in self.order.iter().zip(1..) {
            let name: &str = self.files.get(*file).map_or("", |name| name);
            let _ = writeln!(out, ".file {number} \"{name}\"");
        }
    }
}

/// Finds the gaps of a text.
fn gaps(text: &str) -> Vec<Gap> {
    let bytes = text.as_bytes();
    let mut scan = Scan::new(bytes);
    let mut state = State::default();
    let (mut line, mut begin) = (1, 0);
    let mut gaps: Vec<Gap> = Vec::new();
    while let Some(&byte) = bytes.get(scan.at()) {
        let at = scan.at();
        match (byte, bytes.get(at + 1)) {
            (b'\n', _) => {
                if text.get(begin..at).is_some_and(|line| line.trim_ascii().is_empty()) && state.is_between()
                {
                    let first = std::mem::take(&mut state.entered);
                    if let Some(before) = gaps.last_mut().filter(|_| !first) {
                        before.until = line;
                    }
                    gaps.push(Gap { line, at: begin, until: u32::MAX, first, code: false });
                }
                scan.skip(1);
            }
            (b'/', Some(b'/' | b'*')) => scan.skip_comment(),
            (b'"', _) => {
                state.take(text, at, byte);
                scan.skip_string();
            }
            (b'#', _) => scan.skip(memchr::memchr(b'\n', scan.rest()).unwrap_or(scan.rest().len())),
            _ => {
                scan.skip(1);
                let (ends, depth) = (state.take(text, at, byte), state.depth);
                if let Some(gap) = gaps.last_mut() {
                    gap.code |= ends;
                    if depth == 0 {
                        // Of an earlier function, it has ended before.
                        gap.until = gap.until.min(line + 1);
                    }
                }
            }
        }
        // Comments span lines, and a string that is not closed ends with its line.
        for newline in memchr::memchr_iter(b'\n', bytes.get(at..scan.at()).unwrap_or_default()) {
            line += 1;
            begin = at + newline + 1;
        }
    }
    gaps
}

/// Where among statements a scan is.
#[derive(Default)]
struct State {
    /// Open braces of the body of a function; 0 outside of functions.
    depth: u32,
    /// Open braces of something else outside: an initializer, a section.
    other: u32,
    /// Where the statement that is open began.
    open: Option<usize>,
    /// The end of a word, if there is nothing but that in the open statement: a label, if a colon follows.
    label: Option<usize>,
    /// Has no gap been seen in this function?
    entered: bool,
}

impl State {
    /// Is the scan in a function, between two statements?
    fn is_between(&self) -> bool {
        self.depth > 0 && self.open.is_none()
    }

    /// Takes a byte of code at `at`. Does a statement of a body end with it that is no label?
    fn take(&mut self, text: &str, at: usize, byte: u8) -> bool {
        match (byte, self.depth) {
            (b';', 0) if self.other == 0 => self.open = None,
            (b'{', 0)
                if self.other == 0 && self.open.is_some_and(|from| declares_function(text, from, at)) =>
            {
                (self.depth, self.open, self.entered) = (1, None, true);
            }
            (b'{', 0) => self.other = self.other.saturating_add(1),
            (b'}', 0) => {
                self.other = self.other.saturating_sub(1);
                self.open = None;
            }
            (b'{', _) if self.open.is_none() => self.depth = self.depth.saturating_add(1),
            (b'}', _) if self.open.is_none() => self.depth -= 1,
            (b';', 1..) => return self.open.take().is_some(),
            (b':', 1..) if self.label.is_some() => self.open = None,
            _ if byte.is_ascii_whitespace() => return false,
            _ if self.open.is_none() => {
                self.open = Some(at);
                self.label = is_identifier(byte).then_some(at + 1);
                return false;
            }
            _ => {
                let goes_on = is_identifier(byte) && self.label == Some(at);
                self.label = goes_on.then_some(at + 1);
                return false;
            }
        }
        self.label = None;
        false
    }
}

/// Does `.entry` or `.func` stand in front of a brace?
fn declares_function(text: &str, from: usize, brace: usize) -> bool {
    let header = text.as_bytes().get(from..brace).unwrap_or_default();
    Scan::new(header).find_directive(b".entry") || Scan::new(header).find_directive(b".func")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(u32, bool, bool)]) {
        let found: Vec<_> = gaps(text).iter().map(|gap| (gap.line, gap.first, gap.code)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn gaps_are_empty_lines_between_statements_of_functions() {
        check(
            "\n\n.version 8.7\n\n.entry k(\n\n)\n\n{\n\nret;\n\n}\n\n",
            &[(10, true, true), (12, false, false)],
        );
        check(
            ".entry k() {\n  \n\t\r\n}\n.entry l() {\n\n}",
            &[(2, true, false), (3, false, false), (6, true, false)],
        );
        // Labels are not code, and the colon of a space is no label's.
        check(
            ".func f() {\n\nL:\n\nld.shared::cta.u8 a,\n\n[b];\n\n}",
            &[(2, true, false), (4, false, true), (8, false, false)],
        );
        // Braces of operands are no blocks; those between statements are.
        check(
            ".func f() {\nst.v2.u8 [a], {\n\nb, c\n};\n{\n\n}\n\n}\n\n",
            &[(7, true, false), (9, false, false)],
        );
        check(".global .b8 x[2] = {\n\n1, 2};\n.func f() {\n\n}", &[(5, true, false)]);
        check(".func f();\n.section .x {\n\n}\n.global .b8 y[1] = {\n\n};", &[]);
    }

    #[test]
    fn comments_and_strings_hold_no_gaps() {
        check(
            ".func f() { /* {\n\n */\n\n// }\n.pragma \"{ ;\";\n# {\n\n}",
            &[(4, true, true), (8, false, false)],
        );
        check(".func f() {\n\"\n\n", &[]);
        check("/* .func f() {\n\n", &[]);
        check("}}};;{}\n.func f() { @p bra \n L;\n\n", &[(4, true, false)]);
    }

    /// Lines 3 and 5 of a function with code at lines 4 and 6.
    fn check_lines(places: &[(u32, u32, bool)], expected: &str) {
        let mut lines = Lines::default();
        lines.files = vec!["a.py".to_owned(), "b \".py".to_owned()];
        let mut places: Vec<Place> = places
            .iter()
            .map(|&(line, source, begins)| {
                let source =
                    (source > 0).then_some(Source { file: usize::from(source >= 100), line: source });
                Place { line, source, begins }
            })
            .collect();
        places.sort_unstable();
        let text = put_back(".func f()\n{\n\nadd;\n\nsub;\n}\n".to_owned(), &lines, &places);
        assert_eq!(text.replace('\n', "|"), expected);
    }

    #[test]
    fn each_stretch_has_the_line_of_its_rows() {
        check_lines(
            &[(4, 7, true), (6, 8, true)],
            ".func f()|{|.loc 1 7 0|add;|.loc 1 8 0|sub;|}|.file 1 \"a.py\"|",
        );
        // The same line goes on; what is not known does not.
        check_lines(&[(4, 7, true), (6, 7, false)], ".func f()|{|.loc 1 7 0|add;||sub;|}|.file 1 \"a.py\"|");
        check_lines(&[(4, 7, true)], ".func f()|{|.loc 1 7 0|add;|.loc 1 0 0|sub;|}|.file 1 \"a.py\"|");
        check_lines(&[(6, 7, true)], ".func f()|{||add;|.loc 1 7 0|sub;|}|.file 1 \"a.py\"|");
        // Rows that begin count for more than rows that reach; where such disagree, nothing is known.
        check_lines(
            &[(4, 7, false), (4, 9, true), (6, 9, false)],
            ".func f()|{|.loc 1 9 0|add;||sub;|}|.file 1 \"a.py\"|",
        );
        check_lines(&[(4, 7, false), (4, 9, false)], ".func f()|{||add;||sub;|}|");
        check_lines(
            &[(4, 7, true), (4, 9, true), (6, 9, false)],
            ".func f()|{||add;|.loc 1 9 0|sub;|}|.file 1 \"a.py\"|",
        );
        // A name that no string can hold; no line at all.
        check_lines(&[(4, 100, true)], ".func f()|{||add;||sub;|}|");
        check_lines(&[(4, 0, true), (9, 5, true)], ".func f()|{||add;||sub;|}|");
    }
}
