//! The probe language: text to checked program to IR.
//!
//! ```
//! let source = "map ran: array<warp> { cu: u32 }  warp kernel:entry { ran.save(cu); }";
//! let (program, found) = nt_probe::compile(source, "ran");
//! assert!(found.is_empty());
//! assert_eq!(program.unwrap().maps[0].name, "ran");
//! ```
//!
//! `token` and `parse` (with `grammar/probe.lalrpop`) make a tree of the text, `check` makes a program of it whose names,
//! types and units hold, `lower` makes IR. All errors of a stage are collected; a later stage runs only on a text in which
//! the earlier ones found none. The language is explained in `docs/language.md`.
//!
//! Promise: no text makes a stage panic, overflow its stack or run without bound.

mod ast;
mod check;
mod checked;
pub mod classes;
mod emit;
mod expected;
mod explain;
mod hints;
mod literal;
mod lower;
mod nesting;
mod parse;
mod shipped;
mod token;

use nt_diag::Found;
use nt_ir::program::Program;

pub use explain::{EXPLANATIONS, Explanation, explain};
pub use shipped::{Named, SHIPPED, Shipped, shipped, shipped_names};

/// Compiles `source`; messages and manifests will call the program `name`. `None` exactly if errors were found.
pub fn compile(source: &str, name: &str) -> (Option<Program>, Found) {
    let mut found = Found::new();
    let items = parse::parse(source, &mut found);
    if found.has_errors() {
        return (None, found);
    }
    let checked = check::check(source, &items, &mut found);
    if found.has_errors() {
        return (None, found);
    }
    let program = lower::lower(&checked, name, &mut found);
    if found.has_errors() { (None, found) } else { (Some(program), found) }
}

/// The tokens of `source`, one a line: what `--emit=tokens` shows.
pub fn tokens(source: &str) -> (String, Found) {
    let mut found = Found::new();
    parse::parse(source, &mut found);
    (emit::tokens(source), found)
}

/// The tree of `source`, indented: what `--emit=ast` shows. Where errors were found it holds what could be parsed.
pub fn tree(source: &str) -> (String, Found) {
    let mut found = Found::new();
    let items = parse::parse(source, &mut found);
    (emit::tree(&items), found)
}

/// The constructs in `source` that are not compiled yet, in the order of the text; none for a program that compiles, or
/// that has other errors alone.
pub fn missing(source: &str) -> Vec<String> {
    let (_, found) = compile(source, "");
    let not_yet = found.sorted().into_iter().filter(|diagnostic| diagnostic.slug == "not-yet");
    not_yet.map(|diagnostic| diagnostic.message.trim_end_matches(check::NOT_YET).to_owned()).collect()
}

/// What the language gives by name: `(kind, name, type, about)`, for `--list`.
pub fn given() -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static str)> {
    let named = check::names::GIVEN.iter().map(|given| (given.kind(), given.name, given.ty, given.about));
    let classes = classes::CLASSES.iter().map(|class| ("class", class.name, "", class.about));
    let groups = classes::GROUPS.iter().map(|group| ("class", group.name, "group", group.about));
    let qualifiers =
        classes::SORTS.iter().flat_map(|(about, words)| words.iter().map(move |word| (*word, *about)));
    let qualifiers = qualifiers.map(|(word, about)| ("qualifier", word, "", about));
    named.chain(classes).chain(groups).chain(qualifiers)
}
