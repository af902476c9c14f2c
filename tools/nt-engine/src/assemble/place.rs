//! Which line of the original a line of woven text is, for messages of the assembler.
//!
//! Woven text says where it was changed: `/*nt:7{*/ … /*}nt:7*/` brackets what was put in, and
//! `/*nt:edit HEX{*/ … /*}nt:edit*/` what was replaced, HEX being the bytes that stood there. So lines can be counted
//! without the text they were made from. A bracket that does not close counts to the end.

/// Where a line of woven text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line of the original, from 1, at which this line begins.
    pub line: u32,
    /// The number of the first insertion that has bytes on this line.
    pub span: Option<u32>,
}

/// The place of `line` (from 1) of `woven`.
pub fn place(woven: &str, line: u32) -> Place {
    let start = match line.checked_sub(2) {
        None => 0,
        Some(breaks) => woven.match_indices('\n').nth(breaks as usize).map_or(woven.len(), |(at, _)| at + 1),
    };
    let end = woven[start..].find('\n').map_or(woven.len(), |len| start + len);
    let mut place = Place { line: 1, span: None };
    let mut at = 0;
    while at < end {
        let rest = &woven[at..];
        let Some(open) = rest.find("/*nt:").map(|open| at + open).filter(|&open| open < end) else { break };
        place.line += breaks(woven, at, open.min(start));
        let Some(head) = woven[open..].find("{*/").map(|head| open + head) else { break };
        // Positions of ASCII marks are always at the beginning of a character.
        let name = &woven[open + "/*nt:".len()..head];
        let (close, replaced, span) = match name.strip_prefix("edit ").or((name == "edit").then_some("")) {
            Some(hex) => ("/*}nt:edit*/".to_owned(), hex.trim(), None),
            None if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) => {
                (format!("/*}}nt:{name}*/"), "", name.parse().ok())
            }
            // Another mark, such as the claim about the context: no bracket.
            None => {
                at = open + "/*nt:".len();
                continue;
            }
        };
        let done = woven[head..].find(&close).map_or(woven.len(), |len| head + len + close.len());
        if done > start && place.span.is_none() {
            place.span = span;
        }
        if done <= start {
            place.line += hex_breaks(replaced);
        }
        at = done;
    }
    place.line += breaks(woven, at, start);
    place
}

/// Line feeds in `from..to`, none if that is empty.
fn breaks(text: &str, from: usize, to: usize) -> u32 {
    let part = text.as_bytes().get(from..to).unwrap_or_default();
    u32::try_from(part.iter().filter(|&&b| b == b'\n').count()).unwrap_or(u32::MAX)
}

/// Line feeds in bytes that are written in hex.
fn hex_breaks(hex: &str) -> u32 {
    let count = hex.as_bytes().chunks_exact(2).filter(|pair| pair.eq_ignore_ascii_case(b"0a")).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(woven: &str, expected: &[(u32, Option<u32>)]) {
        let lines = u32::try_from(woven.lines().count()).unwrap();
        let places: Vec<_> = (1..=lines).map(|line| place(woven, line)).map(|p| (p.line, p.span)).collect();
        assert_eq!(places, expected);
    }

    #[test]
    fn lines_of_insertions_do_not_count() {
        check(
            "a\n/*nt:1{*/\nx\ny\n/*}nt:1*/b\nc\n",
            &[(1, None), (2, Some(1)), (2, Some(1)), (2, Some(1)), (2, Some(1)), (3, None)],
        );
        check("a /*nt:1{*/x/*}nt:1*/ /*nt:2{*/y\n/*}nt:2*/ b\nc", &[(1, Some(1)), (1, Some(2)), (2, None)]);
    }

    #[test]
    fn replaced_lines_count() {
        // The edit stands for `u\nv\n`.
        check("a\n/*nt:edit 750a760A{*/w/*}nt:edit*/c\nd\n", &[(1, None), (2, None), (5, None)]);
        check("a\n/*nt:edit {*/\n/*}nt:edit*/b\nc\n", &[(1, None), (2, None), (2, None), (3, None)]);
    }

    #[test]
    fn other_marks_and_open_brackets() {
        check("/*nt:ctx zero@0:8 */a\nb", &[(1, None), (2, None)]);
        check("a\n/*nt:3{*/\nb\n", &[(1, None), (2, Some(3)), (2, Some(3))]);
        assert_eq!(place("a\nb", 99), Place { line: 2, span: None });
        assert_eq!(place("", 0), Place { line: 1, span: None });
    }
}
