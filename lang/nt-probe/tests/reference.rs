//! The examples of docs/language.md do what the page says, and the page speaks of all there is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first thing that is wrong")]

use nt_diag::{Paint, Source, render};
use nt_probe::{EXPLANATIONS, compile, given};

const PAGE: &str = include_str!("../../../docs/language.md");

/// The fenced blocks: the words behind the fence, the text, the line.
fn blocks() -> Vec<(String, String, usize)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String, usize)> = None;
    for (number, line) in (1..).zip(PAGE.lines()) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(words), None) => open = Some((words.to_owned(), String::new(), number)),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text, _))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none());
    blocks
}

#[test]
fn examples_do_what_the_page_says() {
    let blocks = blocks();
    assert!(blocks.len() > 15);
    for (words, text, line) in blocks {
        let (program, found) = compile(&text, "example");
        let slugs: Vec<&str> = found.iter().map(|diagnostic| diagnostic.slug).collect();
        let drawn = render(&Source::new("docs/language.md", &text), found.clone(), &Paint::PLAIN);
        match words.split_once(' ').map_or((words.as_str(), ""), |(nt, rest)| (nt, rest)) {
            ("nt", "") => {
                assert!(program.is_some(), "line {line}:\n{drawn}");
                nt_ir::prepare(program.unwrap(), nt_ir::Options::default()).unwrap();
            }
            ("nt", "later") => {
                assert!(!slugs.is_empty(), "line {line} compiles");
                assert!(slugs.iter().all(|slug| *slug == "not-yet"), "line {line}:\n{drawn}");
            }
            ("nt", wrong) => {
                let slug = wrong.strip_prefix("wrong ").unwrap();
                assert_eq!(slugs, [slug], "line {line}:\n{drawn}");
            }
            _ => panic!("line {line}: a block that is no example: {words}"),
        }
    }
}

/// Is `word` on the page, as a word of its own?
fn is_on_page(word: &str) -> bool {
    PAGE.match_indices(word).any(|(at, _)| {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        !PAGE[..at].ends_with(part) && !PAGE[at + word.len()..].starts_with(part)
    })
}

#[test]
fn the_page_names_all_that_the_language_gives() {
    for (kind, name, _, _) in given() {
        assert!(is_on_page(name), "{kind} {name}");
    }
    for explanation in EXPLANATIONS {
        assert!(is_on_page(&format!("`{}`", explanation.slug)), "{}", explanation.slug);
    }
}
