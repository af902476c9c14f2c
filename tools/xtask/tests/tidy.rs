//! The rules of `docs/architecture.md` that a machine can hold.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Which crates of ours a library may see. A crate of `lang/` that is missing here fails the test.
const SEES: [(&str, &[&str]); 11] = [
    ("nt-diag", &[]),
    ("nt-ir", &["nt-diag"]),
    ("nt-probe", &["nt-diag", "nt-ir"]),
    ("nt-ptx", &["nt-diag"]),
    ("nt-affine", &["nt-ir", "nt-ptx"]),
    ("nt-weave", &["nt-affine", "nt-diag", "nt-ir", "nt-ptx"]),
    // The judge sees neither the weaver nor the probe.
    ("nt-verify", &["nt-diag", "nt-ptx"]),
    ("nt-object", &["nt-diag"]),
    ("nt-wire", &[]),
    ("nt-trace", &["nt-diag", "nt-ir", "nt-wire"]),
    ("nt-vgpu", &["nt-diag", "nt-ptx"]),
];

/// What a program may see beside `lang/` and `nt-cli`. The hook lives in other people's processes: `nt-wire` alone.
const HOOK: &[&str] = &["nt-wire"];

/// Outside crates that stand behind one wall.
const BEHIND: [(&str, &[&str]); 9] = [
    ("serde", &["nt-trace", "nt-map"]),
    ("bincode", &["nt-trace"]),
    ("logos", &["nt-probe", "nt-ptx"]),
    ("lalrpop-util", &["nt-probe"]),
    ("object", &["nt-object"]),
    ("goblin", &["nt-object"]),
    ("lz4_flex", &["nt-object"]),
    ("crc32c", &["nt-wire"]),
    ("blake3", &["nt-engine", "nt-inject", "nt-extract"]),
];

/// What the code of `lang/` does not name: files, processes, streams, the environment, and the crates of programs.
const NO_WORDS: [&str; 13] = [
    "std::fs",
    "std::io::",
    "std::process",
    "std::env",
    "std::net",
    "std::os",
    "println!",
    "eprintln!",
    "print!(",
    "anyhow",
    "clap",
    "dbg!",
    "std::thread",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn crates(folder: &str) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(root().join(folder)).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|path| path.join("Cargo.toml").exists());
    all.sort();
    all
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The names under `[dependencies]` of a manifest, and under `[build-dependencies]` and `[dev-dependencies]` apart.
fn dependencies(manifest: &Path) -> (Vec<String>, Vec<String>) {
    let text = std::fs::read_to_string(manifest).unwrap();
    let (mut normal, mut other, mut section) = (Vec::new(), Vec::new(), "");
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, _)) = line.split_once(['.', '=', ' '])
            && !line.starts_with('#')
        {
            match section {
                "[dependencies]" => normal.push(key.to_owned()),
                "[dev-dependencies]" | "[build-dependencies]" => other.push(key.to_owned()),
                _ => {}
            }
        }
    }
    (normal, other)
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let path = entry.unwrap().into_path();
        if path.extension().is_some_and(|e| e == "rs")
            && !path.components().any(|c| c.as_os_str() == "target")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            all.push((path, text));
        }
    }
    all
}

/// The lines of a source before its tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]").unwrap_or(text.len());
    text[..end]
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line))
        .filter(|(_, l)| !l.trim_start().starts_with("//"))
}

fn fail_if(faults: &str) {
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn folders_are_named_as_their_packages() {
    let mut faults = String::new();
    for path in crates("lang").into_iter().chain(crates("tools")) {
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
        if !manifest.contains(&format!("name = \"{}\"", name(&path))) {
            writeln!(faults, "{}: package and folder differ", path.display()).unwrap();
        }
        if !manifest.contains("[lints]\nworkspace = true") {
            writeln!(faults, "{}: does not take the workspace's lints", path.display()).unwrap();
        }
    }
    fail_if(&faults);
}

#[test]
fn arrows_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = SEES.into_iter().collect();
    let mut faults = String::new();
    for path in crates("lang") {
        let crate_name = name(&path);
        let Some(sees) = allowed.get(crate_name.as_str()) else {
            writeln!(faults, "{crate_name}: not in the table of this test").unwrap();
            continue;
        };
        let (normal, _) = dependencies(&path.join("Cargo.toml"));
        for seen in normal.iter().filter(|d| d.starts_with("nt-")) {
            if !sees.contains(&seen.as_str()) {
                writeln!(faults, "{crate_name} may not see {seen}").unwrap();
            }
        }
        for (file, text) in sources(&path.join("src")) {
            for (line, text) in code(&text) {
                for (other, _) in SEES {
                    let word = format!("{}::", other.replace('-', "_"));
                    if text.contains(&word) && other != crate_name && !sees.contains(&other) {
                        writeln!(faults, "{}:{line}: names {other}", file.display()).unwrap();
                    }
                }
            }
        }
    }
    let (hook, _) = dependencies(&root().join("tools/nt-hook/Cargo.toml"));
    for seen in hook.iter().filter(|d| d.starts_with("nt-") && !HOOK.contains(&d.as_str())) {
        writeln!(faults, "nt-hook may not see {seen}").unwrap();
    }
    fail_if(&faults);
}

#[test]
fn outside_crates_stay_behind_their_walls() {
    let mut faults = String::new();
    for path in crates("lang").into_iter().chain(crates("tools")) {
        let (normal, _) = dependencies(&path.join("Cargo.toml"));
        for (outside, owners) in BEHIND {
            if normal.iter().any(|d| d == outside) && !owners.contains(&name(&path).as_str()) {
                writeln!(faults, "{} may not use {outside}", name(&path)).unwrap();
            }
        }
    }
    fail_if(&faults);
}

#[test]
fn libraries_do_no_io() {
    let mut faults = String::new();
    for path in crates("lang") {
        for (file, text) in sources(&path.join("src")) {
            for (line, text) in code(&text) {
                for word in NO_WORDS.iter().filter(|word| text.contains(**word)) {
                    writeln!(faults, "{}:{line}: `{word}` in a library", file.display()).unwrap();
                }
            }
        }
    }
    fail_if(&faults);
}

#[test]
fn files_open_with_what_they_are_for_and_stay_short() {
    let mut faults = String::new();
    for path in crates("lang").into_iter().chain(crates("tools")) {
        for (file, text) in sources(&path) {
            if !text.starts_with("//!") {
                writeln!(faults, "{}: does not open with `//!`", file.display()).unwrap();
            }
            if text.lines().count() > 800 {
                writeln!(faults, "{}: over 800 lines", file.display()).unwrap();
            }
            if file.ends_with("src/main.rs") && text.lines().count() > 30 {
                writeln!(faults, "{}: a main of over 30 lines", file.display()).unwrap();
            }
        }
    }
    fail_if(&faults);
}

#[test]
fn unsafe_stands_only_where_the_docs_list_it() {
    let listed = std::fs::read_to_string(root().join("docs/unsafe.md")).unwrap();
    let mut faults = String::new();
    for path in crates("lang").into_iter().chain(crates("tools")) {
        for (file, text) in sources(&path.join("src")) {
            let here = file.strip_prefix(root()).unwrap().display().to_string();
            let uses = code(&text)
                .any(|(_, l)| l.contains("unsafe ") || l.contains("unsafe(") || l.contains("unsafe_code"));
            let told = listed.contains(&format!("`{here}`"));
            if uses && !told {
                writeln!(faults, "{here}: uses unsafe and docs/unsafe.md does not say why").unwrap();
            }
            if told && !uses {
                writeln!(faults, "{here}: docs/unsafe.md lists it, but it uses none").unwrap();
            }
        }
    }
    fail_if(&faults);
}

#[test]
fn every_dependency_has_its_reason() {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = text.split("[workspace.dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let mut faults = String::new();
    for line in section.lines().filter(|l| l.contains(" = ") && !l.contains("path = ")) {
        if !line.contains(" # ") {
            writeln!(faults, "no reason beside: {line}").unwrap();
        }
    }
    fail_if(&faults);
}
