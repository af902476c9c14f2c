//! Texts as mutants are made of them: where marks, spans and instructions stand, and changes at each of their places.

use nt_verify::Rule;
use std::path::Path;

/// An original and a woven text.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) original: String,
    pub(crate) woven: String,
}

/// One way to break a text.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    /// A mutant must break at least one of them.
    pub(crate) rules: &'static [Rule],
    pub(crate) mutate: fn(&Pair) -> Vec<Pair>,
}

pub(crate) fn accepted() -> Vec<(String, Pair)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good");
    let mut texts: Vec<(String, Pair)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let woven = std::fs::read_to_string(&path).unwrap();
            let original = take_away(&woven);
            (path.file_name().unwrap().to_string_lossy().into_owned(), Pair { original, woven })
        })
        .collect();
    texts.sort_by(|a, b| a.0.cmp(&b.0));
    texts
}

/// Spans out, edits back.
pub(crate) fn take_away(woven: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for mark in marks(woven) {
        out.push_str(&woven[at..mark.start]);
        let hex = mark.name.strip_prefix("edit ").unwrap_or("");
        (0..hex.len())
            .step_by(2)
            .for_each(|i| out.push(u8::from_str_radix(&hex[i..i + 2], 16).unwrap() as char));
        at = mark.end;
    }
    out + &woven[at..]
}

/// A span or edit of a text.
pub(crate) struct Mark<'w> {
    pub(crate) name: &'w str,
    pub(crate) start: usize,
    /// Of what stands between the marks.
    pub(crate) inner: std::ops::Range<usize>,
    pub(crate) end: usize,
}

pub(crate) fn marks(woven: &str) -> Vec<Mark<'_>> {
    let mut marks = Vec::new();
    let mut at = 0;
    while let Some(start) = woven[at..].find("/*nt:").map(|found| at + found) {
        let name = woven[start + 5..].split_once("{*/").unwrap().0;
        let from = start + 5 + name.len() + 3;
        let close = format!("/*}}nt:{}*/", name.split(' ').next().unwrap());
        let to = from + woven[from..].find(&close).unwrap();
        at = to + close.len();
        marks.push(Mark { name, start, inner: from..to, end: at });
    }
    marks
}

/// The same, where a clone is the spans and edits in it.
pub(crate) fn all_marks(woven: &str) -> Vec<Mark<'_>> {
    let mut all = Vec::new();
    for mark in marks(woven) {
        if !mark.name.starts_with("clone") {
            all.push(mark);
            continue;
        }
        let from = mark.inner.start;
        all.extend(marks(&woven[mark.inner]).into_iter().map(|inner| Mark {
            start: inner.start + from,
            inner: inner.inner.start + from..inner.inner.end + from,
            end: inner.end + from,
            ..inner
        }));
    }
    all
}

pub(crate) fn spans(woven: &str) -> Vec<Mark<'_>> {
    all_marks(woven).into_iter().filter(|mark| !mark.name.starts_with("edit")).collect()
}

/// The instructions of all spans: their ranges from the first byte to the `;`.
pub(crate) fn instructions(woven: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    for span in spans(woven) {
        let mut at = span.inner.start;
        while let Some(length) = woven[at..span.inner.end].find(';') {
            let end = at + length + 1;
            // Behind comments, braces and labels.
            let mut from = at;
            loop {
                let rest = &woven[from..end];
                from += rest.len() - rest.trim_start().len();
                let rest = &woven[from..end];
                let label = rest.split(':').next().unwrap();
                from += match rest {
                    _ if rest.starts_with("//") => rest.find('\n').unwrap(),
                    _ if rest.starts_with(['{', '}']) => 1,
                    _ if rest.starts_with('$') && rest.contains(':') && !label.contains([' ', ';']) => {
                        label.len() + 1
                    }
                    _ => break,
                };
            }
            if !woven[from..end].starts_with(".reg") {
                found.push(from..end);
            }
            at = end;
        }
    }
    found
}

/// Mutants by a change of one instruction of a span; `None` leaves it alone.
pub(crate) fn each_instruction(pair: &Pair, change: impl Fn(&str) -> Option<String>) -> Vec<Pair> {
    let change = |range: std::ops::Range<usize>| {
        let new = change(&pair.woven[range.clone()])?;
        let mut woven = pair.woven.clone();
        woven.replace_range(range, &new);
        Some(Pair { original: pair.original.clone(), woven })
    };
    instructions(&pair.woven).into_iter().filter_map(change).collect()
}

/// Mutants by one replacement at each place where `old` stands within a span, or within an edit.
pub(crate) fn each_place(pair: &Pair, in_edits: bool, old: &str, new: &str) -> Vec<Pair> {
    let all = all_marks(&pair.woven).into_iter().filter(|mark| mark.name.starts_with("edit") == in_edits);
    let places = all.flat_map(|mark| {
        let inner = &pair.woven[mark.inner.clone()];
        inner.match_indices(old).map(move |(at, _)| mark.inner.start + at).collect::<Vec<_>>()
    });
    places
        .map(|at| {
            let mut woven = pair.woven.clone();
            woven.replace_range(at..at + old.len(), new);
            Pair { original: pair.original.clone(), woven }
        })
        .collect()
}

/// Mutants with a statement more behind the first `{` of each span.
pub(crate) fn insert(pair: &Pair, statement: &str) -> Vec<Pair> {
    let open = |mark: Mark<'_>| pair.woven[mark.inner.clone()].find('{').map(|at| mark.inner.start + at + 1);
    spans(&pair.woven)
        .into_iter()
        .filter_map(open)
        .map(|at| {
            let mut woven = pair.woven.clone();
            woven.insert_str(at, &format!(" {statement} "));
            Pair { original: pair.original.clone(), woven }
        })
        .collect()
}

/// Moves the span that stands at `mark` to `to`, a place of the woven text outside of it.
pub(crate) fn moved(pair: &Pair, start: usize, end: usize, to: usize) -> Pair {
    let span = pair.woven[start..end].to_owned();
    let mut woven = pair.woven.clone();
    if to <= start {
        woven.replace_range(start..end, "");
        woven.insert_str(to, &span);
    } else {
        woven.insert_str(to, &span);
        woven.replace_range(start..end, "");
    }
    Pair { original: pair.original.clone(), woven }
}

/// The opcode of an instruction, its guard left out.
pub(crate) fn opcode(instruction: &str) -> &str {
    let bare =
        if instruction.starts_with('@') { instruction.split_once(' ').unwrap().1 } else { instruction };
    bare.split([' ', ';']).next().unwrap()
}

/// `name`, the first operand of an instruction if that is a register of the span that it writes.
pub(crate) fn written(instruction: &str) -> Option<&str> {
    let opcode = opcode(instruction);
    let rest = instruction.split_once(opcode)?.1;
    let name = rest.trim_start().split([',', ';', ' ']).next()?;
    (name.starts_with("%nt") && opcode != "bra" && !opcode.starts_with("st.")).then_some(name)
}

pub(crate) fn register_of_its_kernel(opcode: &str) -> &'static str {
    match opcode {
        _ if opcode.starts_with("setp") || opcode.ends_with(".pred") => "%p1",
        _ => "%r1",
    }
}

/// Mutants by one replacement at each place, for each of the changes, of the text that they are for (`is`), in which each
/// of them must find a place.
pub(crate) fn changes(pair: &Pair, is: bool, in_edits: bool, changes: &[(&str, &str)]) -> Vec<Pair> {
    let there = changes.iter().filter(|_| is);
    let mutants = there.flat_map(|(old, new)| {
        let mutants = each_place(pair, in_edits, old, new);
        assert!(!mutants.is_empty(), "nowhere: {old}");
        mutants
    });
    mutants.collect()
}

/// Mutants by a change of the instructions whose opcode begins so, of the text that they are for.
pub(crate) fn each_opcode(
    pair: &Pair,
    is: bool,
    wanted: &str,
    change: impl Fn(&str) -> Option<String>,
) -> Vec<Pair> {
    each_instruction(pair, |text| (is && opcode(text).starts_with(wanted)).then(|| change(text)).flatten())
}

/// An instruction without its guard.
pub(crate) fn without_guard(text: &str) -> Option<String> {
    text.split_once(' ').filter(|(guard, _)| guard.starts_with('@')).map(|(_, rest)| rest.to_owned())
}
