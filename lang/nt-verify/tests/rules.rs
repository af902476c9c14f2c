//! Every rule by files: `good/` must be accepted, of `bad/` each must break exactly the rules that its name says.
//!
//! The texts are written by hand, from the manual's sequences and its list of holes, not by the weaver, but for one. A file is woven
//! text; its original is what is left when spans are taken out and edits put back, done here in the simplest way, or
//! `NAME.original` beside it. Where `ptxas` is on PATH, all of `good/` must assemble, and
//! `bad/` must do what its first line says of ptxas: most accept, which is why there is a verifier.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_verify::{Report, check, explain};
use std::path::Path;
use std::process::Command;

/// Files of a folder of tests, by name.
fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<(String, String)> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), text)
        })
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The original of a woven text, if its marks are sound.
fn original(woven: &str) -> String {
    let (mut out, mut rest) = (String::new(), woven);
    while let Some((before, mark)) = rest.split_once("/*nt:") {
        out.push_str(before);
        let (name, inner) = mark.split_once("{*/").unwrap();
        let (name, hex) = name.split_once(' ').unwrap_or((name, ""));
        let hex = if name == "edit" { hex } else { "" };
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
        out.push_str(std::str::from_utf8(&bytes).unwrap());
        rest = inner.split_once(&format!("/*}}nt:{name}*/")).unwrap().1;
    }
    out + rest
}

fn told(report: &Report) -> String {
    report.violations().iter().map(|v| format!("{} at {:?}: {}\n", v.rule, v.span, v.message)).collect()
}

fn has_ptxas() -> bool {
    Command::new("ptxas").arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Does ptxas take the text without a word?
fn assembles(name: &str, text: &str) -> bool {
    let folder = std::env::temp_dir().join(format!("nt-verify-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (input, output) = (folder.join(format!("{name}.ptx")), folder.join(format!("{name}.cubin")));
    std::fs::write(&input, text).unwrap();
    // The first word of `.target`, edited or not.
    let arch = text
        .split_once("sm_")
        .map_or("", |(_, rest)| rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap());
    let out = Command::new("ptxas")
        .arg(format!("-arch=sm_{arch}"))
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    out.status.success() && out.stderr.is_empty()
}

#[test]
fn good_texts_are_accepted() {
    for (name, woven) in files("good") {
        let original = original(&woven);
        assert_ne!(original, woven, "{name}");
        let report = check(&original, &woven);
        assert!(report.is_accepted(), "{name}:\n{}", told(&report));
        assert!(check(&original, &original).is_accepted(), "{name}");
        // One kernel of most texts has the context, two share a function; a forward declaration is none.
        assert_eq!(report.claims().len(), if name == "shared" { 2 } else { 1 }, "{name}");
        for (kernel, claim) in report.claims() {
            let size = format!("ctx[{}]", claim.size);
            assert!(original.contains(&format!(".entry {kernel}")) && woven.contains(&size), "{name}");
        }
    }
}

#[test]
fn bad_texts_break_their_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut wrong = String::new();
    for (name, woven) in files("bad") {
        let original = std::fs::read_to_string(folder.join(format!("{name}.original")))
            .unwrap_or_else(|_| original(&woven));
        let report = check(&original, &woven);
        let rule = name.split('-').next().unwrap();
        assert!(explain(rule).is_some(), "{name}: no rule of that name");
        if report.is_accepted() || report.violations().iter().any(|v| v.rule.name() != rule) {
            wrong += &format!("{name}:\n{}", told(&report));
        }
        for violation in report.violations() {
            assert!(violation.span.end as usize <= woven.len() && !violation.message.is_empty(), "{name}");
            assert_eq!(violation.to_diagnostic().slug, violation.rule.name());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_rule_has_a_bad_text() {
    let names = files("bad");
    for rule in nt_verify::Rule::ALL.into_iter().filter(|rule| rule.name() != "V17") {
        assert!(names.iter().any(|(name, _)| name.starts_with(&format!("{rule}-"))), "{rule}");
    }
}

#[test]
fn ptxas_says_what_the_files_say_of_it() {
    if !has_ptxas() {
        return println!("skipped: no ptxas on PATH, nothing was assembled");
    }
    for (name, woven) in files("good") {
        assert!(assembles(&name, &woven), "{name}");
    }
    for (name, woven) in files("bad") {
        let first = woven.lines().next().unwrap();
        let says = first
            .rsplit_once("ptxas: ")
            .unwrap_or_else(|| panic!("{name}: first line does not say what ptxas does"))
            .1;
        assert_eq!(assembles(&name, &woven), says == "accepts", "{name}");
    }
}
