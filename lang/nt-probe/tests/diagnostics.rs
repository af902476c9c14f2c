//! What is told about wrong programs: each case a program and, a line each, the place, slug, guilty text and message of
//! everything that is told. Cases stand in `diagnostics/*.txt`, a blank line between them:
//!
//! ```text
//! kernel:entry { let t = clcok(); }
//!   1:24 unknown-name `clcok`: unknown function `clcok`
//!     help: did you mean `clock`?
//! ```
//!
//! `⏎` in a program stands for a line break. `BLESS=1 cargo test -p nt-probe` writes what is told; review the diff.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first thing that is wrong")]

use nt_diag::Source;
use nt_probe::{compile, explain};
use std::fmt::Write;
use std::path::Path;

/// What is told about `program`, in the form of the case files.
fn told(program: &str) -> String {
    let text = program.replace('⏎', "\n");
    let (compiled, found) = compile(&text, "case");
    assert_eq!(compiled.is_none(), found.has_errors(), "{program}");
    let source = Source::new("case.nt", &text);
    let mut out = String::new();
    for diagnostic in found.sorted() {
        assert!(explain(diagnostic.slug).is_some(), "{} is not explained", diagnostic.slug);
        let at = source.position(diagnostic.span.start);
        let shown = diagnostic.span.of(&text).replace('\n', "⏎");
        let (slug, message) = (diagnostic.slug, &diagnostic.message);
        let _ = writeln!(out, "  {}:{} {slug} `{shown}`: {message}", at.line, at.column);
        if !diagnostic.label.is_empty() {
            let _ = writeln!(out, "    label: {}", diagnostic.label);
        }
        for (note, span) in &diagnostic.notes {
            let place = span.map_or(String::new(), |span| {
                let at = source.position(span.start);
                format!("{}:{} ", at.line, at.column)
            });
            let _ = writeln!(out, "    note: {place}{note}");
        }
        for help in &diagnostic.helps {
            let _ = writeln!(out, "    help: {help}");
        }
    }
    out
}

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics").join(file);
    let expected = std::fs::read_to_string(&path).unwrap();
    let mut actual = String::new();
    for line in expected.lines() {
        match line.as_bytes() {
            // What is told is made anew; comments and programs stay.
            [b' ', ..] => {}
            [] | [b'#', ..] => {
                let _ = writeln!(actual, "{line}");
            }
            _ => {
                let _ = write!(actual, "{line}\n{}", told(line));
            }
        }
    }
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    for (number, (is, should)) in actual.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, should, "{file}:{}", number + 1);
    }
    assert_eq!(actual.lines().count(), expected.lines().count(), "{file}");
}

#[test]
fn text() {
    check("text.txt");
}

#[test]
fn names() {
    check("names.txt");
}

#[test]
fn types() {
    check("types.txt");
}

#[test]
fn units() {
    check("units.txt");
}

#[test]
fn tracepoints() {
    check("tracepoints.txt");
}

#[test]
fn maps() {
    check("maps.txt");
}

#[test]
fn what_is_not_compiled_yet() {
    check("not_yet.txt");
}
