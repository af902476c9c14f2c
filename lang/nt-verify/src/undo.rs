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
    /// How the span stands to its instruction.
    pub(crate) stands: Stands,
}

/// How a span stands to the instruction that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stands {
    /// Before it, and under its guard.
    #[default]
    Before,
    /// Before it, for all lanes that get there.
    Reach,
    /// Behind it, and under its guard.
    After,
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

/// A copy of a function, as a whole inserted, which has marks of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clone<'w> {
    /// The function's name, and that of the kernel for which it is cloned.
    pub(crate) of: &'w str,
    pub(crate) kernel: &'w str,
    /// Marks included, in the woven text.
    pub(crate) whole: Span,
    /// Between the marks, without blanks at its ends.
    pub(crate) inner: Span,
    /// Where it stands in the original.
    pub(crate) at: u32,
}

/// Compares the texts. `None` if they differ in more than spans, edits and clones, which is then in the report.
pub(crate) fn undo<'w>(
    original: &str,
    woven: &'w str,
    report: &mut Report,
) -> Option<(Undone, Vec<Clone<'w>>)> {
    if original.len() > LONGEST || woven.len() > LONGEST {
        report.add(Rule::V1, Span::at(0), "a text of more than 2 GiB");
        return None;
    }
    let (open, close) = (Finder::new("/*nt:"), Finder::new("/*}nt:"));
    if open.find(original.as_bytes()).or_else(|| close.find(original.as_bytes())).is_some() {
        // Where in the woven text that is cannot be said: the mark is part of both.
        report.add(Rule::V1, Span::at(0), "the original holds marks of weaving already");
        return None;
    }
    let mut clones = Vec::new();
    let (old, new) = (Span::from(0..original.len()), Span::from(0..woven.len()));
    let inserted = match compare(original, old, woven, new, Some(&mut clones)) {
        Ok(inserted) => inserted,
        Err((span, message)) => {
            report.add(Rule::V1, span, message);
            return None;
        }
    };
    Some((Undone { inserted }, clones))
}

/// The numbers of spans are unique. Those that were seen before are in `numbers`.
pub(crate) fn unique<'w>(
    woven: &'w str,
    inserted: &[Inserted],
    numbers: &mut HashSet<&'w str>,
    report: &mut Report,
) {
    for span in inserted.iter().filter(|inserted| !inserted.is_edit) {
        let mark = Span::new(span.whole.start, span.inner.start);
        let number = mark.of(woven).trim_start_matches("/*nt:").split([' ', '{']).next().unwrap_or("");
        if !numbers.insert(number) {
            report.add(Rule::V1, mark, format!("a second span `{number}`"));
        }
    }
}

/// Holds a part of the woven text against a part of the original; or where they differ in more than spans, edits and,
/// where they may be, clones.
pub(crate) fn compare<'w>(
    original: &str,
    old_part: Span,
    woven: &'w str,
    new_part: Span,
    mut clones: Option<&mut Vec<Clone<'w>>>,
) -> Result<Vec<Inserted>, (Span, String)> {
    let (open, close) = (Finder::new("/*nt:"), Finder::new("/*}nt:"));
    let (end, old_end) = (new_part.end as usize, old_part.end as usize);
    let (old, new) = (&original.as_bytes()[..old_end], &woven.as_bytes()[..end]);
    let fail = |span: std::ops::Range<usize>, message: &str| Err((Span::from(span), message.to_owned()));
    let mut inserted: Vec<Inserted> = Vec::new();
    // How far both texts are read.
    let (mut at, mut old_at) = (new_part.start as usize, old_part.start as usize);
    loop {
        let mark = open.find(&new[at..]).map(|found| at + found);
        let plain = at..mark.unwrap_or(new.len());
        let rest = &old[old_at..];
        let same = new[plain.clone()].iter().zip(rest).take_while(|(a, b)| a == b);
        if !rest.starts_with(&new[plain.clone()]) {
            let differs = at + same.count();
            let message = "the text differs from the original here, outside of spans and edits";
            return fail(differs..(differs + 1).min(new.len()), message);
        }
        old_at += plain.len();
        let Some(mark) = mark else { break };

        let opened = Opening::read(&woven[..end], mark)
            .map_err(|message| (Span::from(mark..mark + "/*nt:".len()), message.to_owned()))?;
        // A clone has marks of its own.
        let is_clone = opened.clone_of.is_some();
        let closing = format!("/*}}nt:{}*/", opened.name);
        let closed = match is_clone {
            true => memchr::memmem::find(&new[opened.end..], closing.as_bytes()),
            false => close.find(&new[opened.end..]),
        };
        let Some(close_at) = closed.map(|found| opened.end + found) else {
            return fail(mark..opened.end, "this mark is never closed");
        };
        if !new[close_at..].starts_with(closing.as_bytes()) {
            return fail(close_at..close_at + "/*}nt:".len(), &format!("expected `{closing}` here"));
        }
        let is_edit = opened.replaced.is_some();
        if !is_edit
            && !is_clone
            && let Some(inner) = open.find(&new[opened.end..close_at])
        {
            let inner = opened.end + inner;
            return fail(inner..inner + "/*nt:".len(), "a mark within a span");
        }
        let whole = Span::from(mark..close_at + closing.len());
        at = close_at + closing.len();
        if let Some((of, kernel)) = opened.clone_of {
            let Some(clones) = &mut clones else { return fail(mark..opened.end, "a clone within a clone") };
            let text = &woven[opened.end..close_at];
            let from = opened.end + text.len() - text.trim_start().len();
            let inner = Span::from(from..from + text.trim().len());
            clones.push(Clone { of, kernel, whole, inner, at: Span::from(old_at..old_at).start });
            continue;
        }
        let replaced = opened.replaced.unwrap_or_default();
        if !old[old_at..].starts_with(&replaced) {
            let message = "the bytes that this edit replaced are not those of the original";
            return fail(mark..opened.end, message);
        }
        inserted.push(Inserted {
            whole,
            inner: Span::from(opened.end..close_at),
            old: Span::from(old_at..old_at + replaced.len()),
            is_edit,
            stands: opened.stands,
        });
        old_at += replaced.len();
    }
    if old_at != old.len() {
        return fail(new.len()..new.len(), "the original goes on here");
    }
    Ok(inserted)
}

/// `/*nt:12{*/`, `/*nt:12 reach{*/`, `/*nt:12 after{*/`, `/*nt:edit 382e30{*/` or `/*nt:clone f k{*/`
struct Opening<'w> {
    /// `12`, `edit` or `clone`
    name: &'w str,
    /// Of an edit, the bytes that it replaced.
    replaced: Option<Vec<u8>>,
    stands: Stands,
    /// The names of a function and of a kernel.
    clone_of: Option<(&'w str, &'w str)>,
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
            return Ok(Opening {
                name: "edit",
                replaced: Some(replaced),
                stands: Stands::Before,
                clone_of: None,
                end,
            });
        }
        if let Some(names) = name.strip_prefix("clone ") {
            let clone_of = names.split_once(' ');
            if clone_of.is_none_or(|(_, kernel)| kernel.contains(' ')) {
                return Err("a clone is of a function and for a kernel, by their names");
            }
            return Ok(Opening { name: "clone", replaced: None, stands: Stands::Before, clone_of, end });
        }
        let (name, stands) = match name.split_once(' ') {
            None => (name, Stands::Before),
            Some((name, "reach")) => (name, Stands::Reach),
            Some((name, "after")) => (name, Stands::After),
            Some(_) => return Err(NO_NUMBER),
        };
        let plain = name.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() && name.len() <= 9;
        if !plain || (name.starts_with('0') && name != "0") {
            return Err(NO_NUMBER);
        }
        Ok(Opening { name, replaced: None, stands, clone_of: None, end })
    }
}

const NO_NUMBER: &str = "the number of a span is no number";

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
        let undone = undo(original, woven, &mut report).map(|(undone, _)| undone);
        if let Some(undone) = &undone {
            unique(woven, &undone.inserted, &mut HashSet::new(), &mut report);
        }
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
        check("ab", "a/*nt:7 reach{*/x/*}nt:7*/b", Ok(&[("x", 1)]));
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
        check("ab", "a/*nt:7 reach after{*/x/*}nt:7*/b", Err("the number of a span is no number"));
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
    fn clones_are_no_part_of_the_text_around() {
        let mut report = Report::default();
        let woven = "a /*nt:clone f k{*/ f/*nt:0{*/x/*}nt:0*/g /*}nt:clone*/b";
        let (undone, clones) = undo("a b", woven, &mut report).expect("is undone");
        assert!(undone.inserted.is_empty());
        let [clone] = clones.as_slice() else { panic!("{clones:?}") };
        assert_eq!((clone.of, clone.kernel), ("f", "k"));
        assert_eq!((clone.inner.of(woven), clone.at), ("f/*nt:0{*/x/*}nt:0*/g", 2));
        let inner = compare("a fg b", Span::new(2, 4), woven, clone.inner, None).expect("is undone");
        assert_eq!((inner[0].inner.of(woven), inner[0].old), ("x", Span::at(3)));
        check("a", "a/*nt:clone f k{*/x/*}nt:0*/", Err("this mark is never closed"));
        for names in ["f", "f k g"] {
            let text = format!("a/*nt:clone {names}{{*/x/*}}nt:clone*/");
            check("a", &text, Err("a clone is of a function and for a kernel, by their names"));
        }
    }

    #[test]
    fn places_of_the_original_in_the_woven_text() {
        let mut report = Report::default();
        let (undone, _) = undo("abc", "a/*nt:0{*/x/*}nt:0*/b/*nt:edit 63{*/CC/*}nt:edit*/", &mut report)
            .expect("is undone");
        assert_eq!((undone.woven_at(0), undone.woven_at(1)), (0, 20));
        assert_eq!(undone.woven_at(2), 21, "the first byte of an edit is where the edit begins");
    }
}
