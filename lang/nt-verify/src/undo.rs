//! V1: finds what was inserted and changed, and holds the rest against the original, byte for byte.
//!
//! ```text
//! woven     … add.s32 %r1, %r2, 1; /*nt:3{*/{ … }/*}nt:3*/ ret; …
//! original  … add.s32 %r1, %r2, 1;                         ret; …
//! ```
//!
//! Marks are looked for as plain text, not as comments: the original must not hold them anywhere, strings and comments
//! included, so each one in the woven text was inserted. That they are comments there too follows from V2 (they stand
//! where the original has a boundary) and V3 (what they enclose ends outside of comments). One pass, no copy.

use crate::{Report, Rule};
use memchr::memmem::Finder;
use nt_diag::Span;
use std::collections::HashSet;

/// Both texts are shorter than this, so that sums of two offsets still fit.
const LONGEST: usize = u32::MAX as usize / 2;

/// What the woven text has that the original has not, in text order.
#[derive(Debug, Default)]
pub(crate) struct Undone {
    /// Spans and edits.
    pub(crate) inserted: Vec<Inserted>,
}

/// One span or edit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inserted {
    /// Marks included, in the woven text.
    pub(crate) whole: Span,
    /// Between the marks, in the woven text.
    pub(crate) inner: Span,
    /// What it stands for in the original: empty for a span, the replaced bytes for an edit.
    pub(crate) old: Span,
    /// An edit? Else a span.
    pub(crate) is_edit: bool,
    /// Does the span follow the instruction that it belongs to?
    pub(crate) is_after: bool,
}

impl Undone {
    /// Where a byte of the original stands in the woven text: behind what was inserted before it.
    pub(crate) fn woven_at(&self, original: u32) -> u32 {
        let before = self.inserted.partition_point(|i| i.old.end <= original);
        match before.checked_sub(1).and_then(|last| self.inserted.get(last)) {
            Some(last) => last.whole.end + (original - last.old.end),
            None => original,
        }
    }

    /// The same for a range.
    pub(crate) fn woven(&self, original: Span) -> Span {
        Span::new(self.woven_at(original.start), self.woven_at(original.end))
    }
}

/// Compares the texts. `None` if they differ in more than spans and edits, which is then in the report.
pub(crate) fn undo(original: &str, woven: &str, report: &mut Report) -> Option<Undone> {
    if original.len() > LONGEST || woven.len() > LONGEST {
        report.add(Rule::V1, Span::at(0), "a text of more than 2 GiB");
        return None;
    }
    let (open, close) = (Finder::new("/*nt:"), Finder::new("/*}nt:"));
    let (old, new) = (original.as_bytes(), woven.as_bytes());
    if open.find(old).or_else(|| close.find(old)).is_some() {
        // Where in the woven text that is cannot be said: the mark is part of both.
        report.add(Rule::V1, Span::at(0), "the original holds marks of weaving already");
        return None;
    }

    let mut undone = Undone::default();
    let mut numbers = HashSet::new();
    // How far both texts are read.
    let (mut at, mut old_at) = (0, 0);
    loop {
        let mark = open.find(&new[at..]).map(|found| at + found);
        let plain = at..mark.unwrap_or(new.len());
        let rest = &old[old_at..];
        let same = new[plain.clone()].iter().zip(rest).take_while(|(a, b)| a == b);
        if !rest.starts_with(&new[plain.clone()]) {
            let differs = at + same.count();
            let message = "the text differs from the original here, outside of spans and edits";
            report.add(Rule::V1, Span::from(differs..(differs + 1).min(new.len())), message);
            return None;
        }
        old_at += plain.len();
        let Some(mark) = mark else { break };

        let opened = match Opening::read(woven, mark) {
            Ok(opened) => opened,
            Err(message) => {
                report.add(Rule::V1, Span::from(mark..mark + "/*nt:".len()), message);
                return None;
            }
        };
        let Some(end) = close.find(&new[opened.end..]).map(|found| opened.end + found) else {
            report.add(Rule::V1, Span::from(mark..opened.end), "this mark is never closed");
            return None;
        };
        let closing = format!("/*}}nt:{}*/", opened.name);
        if !new[end..].starts_with(closing.as_bytes()) {
            report.add(Rule::V1, Span::from(end..end + "/*}nt:".len()), format!("expected `{closing}` here"));
            return None;
        }
        let is_edit = opened.replaced.is_some();
        if !is_edit {
            if let Some(inner) = open.find(&new[opened.end..end]) {
                let inner = opened.end + inner;
                report.add(Rule::V1, Span::from(inner..inner + "/*nt:".len()), "a mark within a span");
                return None;
            }
            if !numbers.insert(opened.name) {
                report.add(
                    Rule::V1,
                    Span::from(mark..opened.end),
                    format!("a second span `{}`", opened.name),
                );
            }
        }
        let replaced = opened.replaced.unwrap_or_default();
        if !old[old_at..].starts_with(&replaced) {
            let message = "the bytes that this edit replaced are not those of the original";
            report.add(Rule::V1, Span::from(mark..opened.end), message);
            return None;
        }
        let whole_end = end + closing.len();
        undone.inserted.push(Inserted {
            whole: Span::from(mark..whole_end),
            inner: Span::from(opened.end..end),
            old: Span::from(old_at..old_at + replaced.len()),
            is_edit,
            is_after: opened.is_after,
        });
        old_at += replaced.len();
        at = whole_end;
    }
    if old_at != old.len() {
        report.add(Rule::V1, Span::from(new.len()..new.len()), "the original goes on here");
        return None;
    }
    Some(undone)
}

/// `/*nt:12{*/`, `/*nt:12 after{*/` or `/*nt:edit 382e30{*/`
struct Opening<'w> {
    /// `12` or `edit`
    name: &'w str,
    /// Of an edit, the bytes that it replaced.
    replaced: Option<Vec<u8>>,
    is_after: bool,
    /// Behind the mark.
    end: usize,
}

impl<'w> Opening<'w> {
    fn read(woven: &'w str, mark: usize) -> Result<Self, &'static str> {
        let text = woven.get(mark + "/*nt:".len()..).unwrap_or("");
        let Some(brace) = text.find(['{', '*', '\n']).filter(|&at| text[at..].starts_with("{*/")) else {
            return Err("a mark that opens nothing");
        };
        let name = &text[..brace];
        let end = mark + "/*nt:".len() + brace + "{*/".len();
        if let Some(digits) = name.strip_prefix("edit ") {
            let replaced = unhex(digits).ok_or("the replaced bytes of an edit are not written in hex")?;
            return Ok(Opening { name: "edit", replaced: Some(replaced), is_after: false, end });
        }
        let (name, is_after) = name.strip_suffix(" after").map_or((name, false), |name| (name, true));
        let plain = name.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() && name.len() <= 9;
        if !plain || (name.starts_with('0') && name != "0") {
            return Err("the number of a span is no number");
        }
        Ok(Opening { name, replaced: None, is_after, end })
    }
}

/// `382e30` → `8.0`; lower case only, so that there is one way to write it.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks(2).map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(original: &str, woven: &str, expected: Result<&[(&str, u32)], &str>) {
        let mut report = Report::default();
        let undone = undo(original, woven, &mut report);
        match expected {
            Ok(parts) => {
                assert!(report.is_accepted(), "{report:?}");
                let undone = undone.expect("is undone");
                let found: Vec<_> =
                    undone.inserted.iter().map(|i| (i.inner.of(woven), i.old.start)).collect();
                assert_eq!(found, parts);
            }
            Err(message) => assert_eq!(report.violations()[0].message, message),
        }
    }

    #[test]
    fn spans_and_edits_are_found_and_undone() {
        check("ab", "ab", Ok(&[]));
        check("ab", "a/*nt:0{*/x/*}nt:0*/b", Ok(&[("x", 1)]));
        check("ab", "a/*nt:0{*//*}nt:0*//*nt:1{*/y/*}nt:1*/b", Ok(&[("", 1), ("y", 1)]));
        check("8.0*/", "/*nt:edit 382e30{*/9.0/*}nt:edit*/*/", Ok(&[("9.0", 0)]));
        check("a*/b", "a/*nt:edit 2a2f{*/x/*}nt:edit*/b", Ok(&[("x", 1)]));
        check("", "/*nt:7{*/x/*}nt:7*/", Ok(&[("x", 0)]));
        check("ab", "a/*nt:7 after{*/x/*}nt:7*/b", Ok(&[("x", 1)]));
    }

    #[test]
    fn what_cannot_be_undone() {
        let differs = "the text differs from the original here, outside of spans and edits";
        check("ab", "ac", Err(differs));
        check("ab", "a", Err("the original goes on here"));
        check("a", "ab", Err(differs));
        check("ab", "a/*nt:0{*/x/*}nt:0*/c", Err(differs));
        check("a/*nt:b", "a/*nt:b", Err("the original holds marks of weaving already"));
        check("a\"/*}nt:0*/\"", "a\"/*}nt:0*/\"", Err("the original holds marks of weaving already"));
        check("ab", "a/*nt:0{*/xb", Err("this mark is never closed"));
        check("ab", "a/*nt:0{*/x/*}nt:1*/b", Err("expected `/*}nt:0*/` here"));
        check("ab", "a/*nt:0{*/x/*nt:1{*/y/*}nt:1*//*}nt:0*/b", Err("expected `/*}nt:0*/` here"));
        check("ab", "a/*nt:0{*/x/*nt:1{*/y/*}nt:0*/b", Err("a mark within a span"));
        check("ab", "/*nt:0{*/x/*}nt:0*/a/*nt:0{*/x/*}nt:0*/b", Err("a second span `0`"));
        check("ab", "a/*nt:ctx x*/b", Err("a mark that opens nothing"));
        check("ab", "a/*nt:00{*/x/*}nt:00*/b", Err("the number of a span is no number"));
        check("ab", "a/*nt:{*/x/*}nt:*/b", Err("the number of a span is no number"));
        check("ab", "a/*nt:7 behind{*/x/*}nt:7*/b", Err("the number of a span is no number"));
        check("ab", "a/*nt:7 after{*/x/*}nt:7 after*/b", Err("expected `/*}nt:7*/` here"));
        check(
            "ab",
            "a/*nt:edit 6{*/x/*}nt:edit*/",
            Err("the replaced bytes of an edit are not written in hex"),
        );
        check(
            "ab",
            "a/*nt:edit 63{*/x/*}nt:edit*/",
            Err("the bytes that this edit replaced are not those of the original"),
        );
        check("ab", "a/*}nt:0*/b", Err(differs));
        check("äb", "ä/*nt:é{*/b", Err("the number of a span is no number"));
    }

    #[test]
    fn places_of_the_original_in_the_woven_text() {
        let mut report = Report::default();
        let undone = undo("abc", "a/*nt:0{*/x/*}nt:0*/b/*nt:edit 63{*/CC/*}nt:edit*/", &mut report)
            .expect("is undone");
        assert_eq!((undone.woven_at(0), undone.woven_at(1)), (0, 20));
        assert_eq!(undone.woven_at(2), 21, "the first byte of an edit is where the edit begins");
    }
}
