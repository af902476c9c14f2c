//! Every slug that the front end can raise is explained, and every explanation's example raises it.

use nt_probe::{EXPLANATIONS, compile};
use std::collections::BTreeSet;
use std::path::Path;

/// The program of an example; those too large to be shown are made here.
fn program(slug: &str, example: &str) -> String {
    match slug {
        "too-deep" => format!("const A = {}1{};", "(".repeat(1000), ")".repeat(1000)),
        "budget" => (0..100).map(|i| format!("state a{i}: u64; ")).collect(),
        _ => example.to_owned(),
    }
}

#[test]
fn examples_raise_what_they_explain() {
    for explanation in EXPLANATIONS {
        let program = program(explanation.slug, explanation.example);
        let (_, found) = compile(&program, "example");
        let slugs: Vec<&str> = found.iter().map(|diagnostic| diagnostic.slug).collect();
        assert!(slugs.contains(&explanation.slug), "{program}\nraises {slugs:?}, not {}", explanation.slug);
    }
}

/// The slugs in the crate's sources: a literal in lower case with `-` or none, as the argument of what makes diagnostics.
#[test]
fn every_slug_in_the_sources_is_explained() {
    let mut slugs = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            for maker in ["Diagnostic::error(", ".wrong(", "refuse(checker,"] {
                for (at, _) in text.match_indices(maker) {
                    // The first literal of the call; a message has blanks, so it is none.
                    let Some(literal) = text[at..].split('"').nth(1) else { continue };
                    if !literal.is_empty() && literal.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') {
                        slugs.insert(literal.to_owned());
                    }
                }
            }
        }
    }
    let explained: BTreeSet<String> =
        EXPLANATIONS.iter().map(|explanation| explanation.slug.to_owned()).collect();
    assert_eq!(slugs, explained);
}
