//! `testdata/cases.txt` lists what broke other tools, and the tests that hold each case: they are there, and none is missing.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The places of each case.
fn cases(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut cases: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut last = "";
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(place) = line.strip_prefix("    ") {
            cases.get_mut(last).unwrap().push(place);
        } else {
            last = line.split_once(' ').unwrap().0;
            assert!(cases.insert(last, Vec::new()).is_none(), "{last} stands there twice");
        }
    }
    cases
}

/// Is there such a file, and such a test in it?
fn is_there(place: &str) -> bool {
    let (file, test) = place.split_once("::").map_or((place, None), |(file, test)| (file, Some(test)));
    let path = root().join(file);
    let Some(test) = test else { return path.is_file() };
    std::fs::read_to_string(path).is_ok_and(|text| {
        text.contains(&format!("#[test]\nfn {test}(")) || text.contains(&format!("#[test]\n    fn {test}("))
    })
}

#[test]
fn every_case_has_its_tests() {
    let text = std::fs::read_to_string(root().join("testdata/cases.txt")).unwrap();
    let mut faults = String::new();
    for (case, places) in cases(&text) {
        if places.is_empty() {
            writeln!(faults, "{case} has no test").unwrap();
        }
        for place in places.into_iter().filter(|place| !is_there(place)) {
            writeln!(faults, "{case}: there is no {place}").unwrap();
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn every_file_of_a_case_is_listed() {
    let text = std::fs::read_to_string(root().join("testdata/cases.txt")).unwrap();
    let listed: BTreeSet<&str> = cases(&text).into_values().flatten().collect();
    let mut constructs = BTreeSet::new();
    let mut faults = String::new();
    for folder in ["accepted", "noted", "refused"] {
        let folder = format!("lang/nt-ptx/tests/{folder}");
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let number = name.split('_').next().unwrap();
            constructs.extend(number.parse::<u32>());
            let place = format!("{folder}/{name}");
            if number.starts_with('J') && !listed.contains(place.as_str()) {
                writeln!(faults, "{place} is not listed").unwrap();
            }
        }
    }
    for number in (1..=62).filter(|number| !constructs.contains(number)) {
        writeln!(faults, "construct {number} has no file").unwrap();
    }
    assert!(faults.is_empty(), "\n{faults}");
}
