//! Diagnostics as JSON lines, for editors and scripts (`--diagnostics=json`).

use crate::{Diagnostic, Source, Span};
use std::fmt::Write;

/// One diagnostic as one line of JSON, without the newline:
/// `{"file":…,"line":…,"column":…,"end_line":…,"end_column":…,"severity":…,"slug":…,"message":…,"label":…,"notes":[{"message":…,"line":…,"column":…}],"help":[…]}`.
/// Lines and columns are 1-based, columns in characters; a note without a place has no `line` and `column`.
pub fn to_json_line(source: &Source<'_>, diagnostic: &Diagnostic) -> String {
    let mut out = String::new();
    let place = |span: Span| (source.position(span.start), source.position(span.end));
    let (start, end) = place(diagnostic.span);
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        r#"{{"file":{},"line":{},"column":{},"end_line":{},"end_column":{},"severity":"{}","slug":"{}","message":{},"label":{},"notes":["#,
        escape(source.name()),
        start.line,
        start.column,
        end.line,
        end.column,
        diagnostic.severity.word(),
        diagnostic.slug,
        escape(&diagnostic.message),
        escape(&diagnostic.label),
    );
    for (i, (text, span)) in diagnostic.notes.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(out, r#"{comma}{{"message":{}"#, escape(text));
        if let Some(span) = span {
            let (at, _) = place(*span);
            let _ = write!(out, r#","line":{},"column":{}"#, at.line, at.column);
        }
        out.push('}');
    }
    out.push_str(r#"],"help":["#);
    for (i, text) in diagnostic.helps.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&escape(text));
    }
    out.push_str("]}");
    out
}

/// `text` as a JSON string, quotes included (RFC 8259, section 7).
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json() {
        let source = Source::new("a \"b\".nt", "x\nyü z\n");
        let d = Diagnostic::error("unknown-name", Span::new(6, 7), "no `z`\there")
            .note_at(Span::new(0, 1), "declared here")
            .note("and")
            .help("say y");
        assert_eq!(
            to_json_line(&source, &d),
            r#"{"file":"a \"b\".nt","line":2,"column":4,"end_line":2,"end_column":5,"severity":"error","slug":"unknown-name","message":"no `z`\there","label":"","notes":[{"message":"declared here","line":1,"column":1},{"message":"and"}],"help":["say y"]}"#
        );
    }
}
