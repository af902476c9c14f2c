//! Diagnostics as text for people: place, message, the line, carets, notes, helps.
//!
//! A terminal is somebody else's state, so what is drawn of a user's text is made harmless first: tabs become
//! spaces, other control characters and those that turn the writing direction (CVE-2021-42574) become `·`, and of
//! a very long line only the part around the span is shown.

use crate::{Diagnostic, Found, Severity, Source, Span};
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// Escape sequences put around the parts of a message; all empty for plain text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paint {
    /// Around the word `error`.
    pub error: &'static str,
    /// Around the word `warning`.
    pub warning: &'static str,
    /// Around `note`, `help` and line numbers.
    pub faint: &'static str,
    /// Around the place and the message.
    pub strong: &'static str,
    /// Ends each of them.
    pub reset: &'static str,
}

impl Paint {
    /// No colours.
    pub const PLAIN: Paint = Paint { error: "", warning: "", faint: "", strong: "", reset: "" };
    /// The colours of compilers: red, yellow, cyan, bold (ECMA-48 SGR).
    pub const COLOURED: Paint = Paint {
        error: "\x1b[1;31m",
        warning: "\x1b[1;33m",
        faint: "\x1b[36m",
        strong: "\x1b[1m",
        reset: "\x1b[0m",
    };
}

/// How many columns of a line are drawn at the most.
const WIDTH: usize = 120;
/// How many of them before the span, where the line is cut.
const BEFORE: usize = 40;

/// Draws all of `found` in order of position, the first [`Found::SHOWN`] in full and a count of the rest.
/// Every line ends in a newline; nothing found gives nothing.
pub fn render(source: &Source<'_>, found: Found, paint: &Paint) -> String {
    let mut out = String::new();
    let all = found.sorted();
    for diagnostic in all.iter().take(Found::SHOWN) {
        draw(&mut out, source, diagnostic, paint);
    }
    if all.len() > Found::SHOWN {
        let rest = all.len() - Found::SHOWN;
        let _ = writeln!(out, "{}: {rest} more not shown", source.name());
    }
    out
}

fn draw(out: &mut String, source: &Source<'_>, d: &Diagnostic, p: &Paint) {
    let at = source.position(d.span.start);
    let hue = match d.severity {
        Severity::Error => p.error,
        Severity::Warning => p.warning,
        Severity::Note => p.faint,
    };
    let word = d.severity.word();
    let name = source.name();
    let (strong, reset) = (p.strong, p.reset);
    let _ = writeln!(
        out,
        "{strong}{name}:{}:{}:{reset} {hue}{word}:{reset} {strong}{}{reset}",
        at.line,
        at.column,
        clean(&d.message)
    );
    excerpt(out, source, d.span, &d.label, hue, p);
    for (text, span) in &d.notes {
        let place = match span {
            Some(span) => {
                let at = source.position(span.start);
                format!("{name}:{}:{}: ", at.line, at.column)
            }
            None => String::new(),
        };
        let _ = writeln!(out, "  {}note:{reset} {place}{}", p.faint, clean(text));
    }
    for text in &d.helps {
        let _ = writeln!(out, "  {}help:{reset} {}", p.faint, clean(text));
    }
}

/// The line of `span` and carets under it; of a span over several lines, its part of the first.
fn excerpt(out: &mut String, source: &Source<'_>, span: Span, label: &str, hue: &str, p: &Paint) {
    let line = source.line_span(span.start);
    let text = line.of(source.text());
    if text.trim().is_empty() {
        return;
    }
    let from = (span.start.max(line.start) - line.start) as usize;
    let to = (span.end.clamp(line.start, line.end) - line.start) as usize;

    // Columns of the drawn line: what stands before the carets, and how wide they are.
    let (mut drawn, mut caret_from, mut caret_to) = (String::new(), None, None);
    let mut column = 0;
    for (offset, c) in text.char_indices() {
        if offset >= from && caret_from.is_none() {
            caret_from = Some(column);
        }
        if offset >= to && caret_to.is_none() {
            caret_to = Some(column);
        }
        let shown = harmless(c);
        column += shown.chars().map(|c| c.width().unwrap_or(1)).sum::<usize>();
        drawn.push_str(shown.encode());
    }
    let caret_from = caret_from.unwrap_or(column);
    let carets = caret_to.unwrap_or(column).saturating_sub(caret_from).max(1);

    // A module may be one line: show the part around the span.
    let skip = if column > WIDTH { caret_from.saturating_sub(BEFORE) } else { 0 };
    let (cut, begun, ended) = window(&drawn, skip);
    let number = source.position(span.start).line.to_string();
    let (pad, faint, reset) = (" ".repeat(number.len()), p.faint, p.reset);
    let _ = writeln!(out, "  {faint}{number} |{reset} {begun}{cut}{ended}");
    let indent = " ".repeat(caret_from - skip + if begun.is_empty() { 0 } else { 1 });
    let carets = "^".repeat(carets.min(WIDTH.saturating_sub(caret_from - skip)).max(1));
    let space = if label.is_empty() { "" } else { " " };
    let _ = writeln!(out, "  {faint}{pad} |{reset} {indent}{hue}{carets}{space}{}{reset}", clean(label));
}

/// The columns `skip..skip + WIDTH` of `line`, and `…` where something was left out on either side.
fn window(line: &str, skip: usize) -> (String, &'static str, &'static str) {
    let (mut column, mut cut, mut ended) = (0, String::new(), "");
    for c in line.chars() {
        if column >= skip + WIDTH {
            ended = "…";
            break;
        }
        if column >= skip {
            cut.push(c);
        }
        column += c.width().unwrap_or(1);
    }
    (cut, if skip > 0 { "…" } else { "" }, ended)
}

/// What is drawn for one character of a user's text.
enum Shown {
    As(char, [u8; 4]),
    Spaces,
    Dot,
}

impl Shown {
    fn encode(&self) -> &str {
        match self {
            Shown::As(c, buffer) => std::str::from_utf8(&buffer[..c.len_utf8()]).unwrap_or("·"),
            Shown::Spaces => "    ",
            Shown::Dot => "·",
        }
    }

    fn chars(&self) -> std::str::Chars<'_> {
        self.encode().chars()
    }
}

fn harmless(c: char) -> Shown {
    match c {
        '\t' => Shown::Spaces,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => Shown::Dot,
        c if c.is_control() => Shown::Dot,
        c => {
            let mut buffer = [0; 4];
            c.encode_utf8(&mut buffer);
            Shown::As(c, buffer)
        }
    }
}

/// A message as it may be drawn: it can hold names from the user's text.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '·' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Diagnostic;

    fn check(text: &str, d: Diagnostic, expected: &str) {
        let mut found = Found::new();
        found.push(d);
        assert_eq!(render(&Source::new("heat.nt", text), found, &Paint::PLAIN), expected);
    }

    #[test]
    fn place_line_carets_note_and_help() {
        check(
            "map heat\n\theats.save(clock());\n",
            Diagnostic::error("unknown-name", Span::new(10, 15), "unknown map `heats`")
                .label("not declared in this program")
                .note_at(Span::new(4, 8), "declared here: `heat`")
                .help("did you mean `heat`?"),
            "heat.nt:2:2: error: unknown map `heats`\n  \
             2 |     heats.save(clock());\n    \
             |     ^^^^^ not declared in this program\n  \
             note: heat.nt:1:5: declared here: `heat`\n  \
             help: did you mean `heat`?\n",
        );
    }

    #[test]
    fn the_end_of_a_text_has_a_place_too() {
        check(
            "map x",
            Diagnostic::error("syntax", Span::at(5), "expected `:`, found the end"),
            "heat.nt:1:6: error: expected `:`, found the end\n  1 | map x\n    |      ^\n",
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_span() {
        let text = format!("{}bad{}", "x".repeat(500), "y".repeat(500));
        let mut found = Found::new();
        found.push(Diagnostic::error("syntax", Span::new(500, 503), "bad"));
        let drawn = render(&Source::new("k.ptx", &text), found, &Paint::PLAIN);
        let lines: Vec<&str> = drawn.lines().collect();
        assert!(lines[1].chars().count() < 140, "{drawn}");
        let (line, carets) = (lines[1].chars().collect::<Vec<_>>(), lines[2].chars().collect::<Vec<_>>());
        let first = carets.iter().position(|&c| c == '^').unwrap();
        assert_eq!(line[first..first + 3].iter().collect::<String>(), "bad");
    }

    #[test]
    fn what_could_turn_a_terminal_is_drawn_as_a_dot() {
        check(
            "a\u{202e}b\x1b[31m",
            Diagnostic::error("syntax", Span::new(4, 5), "no\x07"),
            "heat.nt:1:3: error: no·\n  1 | a·b·[31m\n    |   ^\n",
        );
    }

    #[test]
    fn many_are_counted() {
        let mut found = Found::new();
        for i in 0..30 {
            found.push(Diagnostic::error("syntax", Span::at(i), "x"));
        }
        let drawn = render(&Source::new("t", &" ".repeat(40)), found, &Paint::PLAIN);
        assert!(drawn.ends_with("t: 10 more not shown\n"), "{drawn}");
    }
}
