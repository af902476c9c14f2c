//! The sections that rows name, against the titles of the manual's sections (`tests/sections.txt`).
//!
//! A row's section is one whose title names the row's instruction, and of those names the longest: what begins with
//! `cp.async.bulk.tensor` is not described where `cp.async.bulk` is. Where sections have the same title (`add` of
//! integers, floats, halves), the row's types say which. And every section has a row, so that no instruction is missing.

use super::row::{HALF, Row};
use super::table::rows_of_all;
use std::collections::BTreeSet;

const TITLES: &str = include_str!("../../tests/sections.txt");

/// Described by the row of 9.7.9.3: `mov` of one value; that of 9.7.9.4 packs and unpacks vectors.
const SHARED: &[&str] = &["9.7.9.4"];

struct Title {
    manual: (u16, u16),
    section: &'static str,
    name: Vec<&'static str>,
}

fn words(name: &'static str) -> Vec<&'static str> {
    name.split(['.', ':']).filter(|word| !word.is_empty()).collect()
}

fn titles() -> Vec<Title> {
    let mut titles = Vec::new();
    let mut manual = (0, 0);
    for line in TITLES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(version) = line.strip_prefix("PTX ISA ") {
            let (major, minor) = version.split([',', ':']).next().unwrap().split_once('.').unwrap();
            manual = (major.parse().unwrap(), minor.parse().unwrap());
            continue;
        }
        let (section, names) = line.split_once(' ').unwrap();
        titles.extend(names.split(' ').map(|name| Title { manual, section, name: words(name) }));
    }
    titles
}

/// The manual that brought the row's instruction, as far as it is later than the one that the other rows follow.
fn manual(row: &Row) -> (u16, u16) {
    row.needs.version.max((9, 0))
}

/// The last manual that was compared; what came later names the chapter.
const LAST: (u16, u16) = (9, 4);

#[test]
fn sections_are_those_of_the_manual() {
    let titles = titles();
    for row in rows_of_all() {
        if manual(row) > LAST {
            assert_eq!(row.section, "9.7", "{}", row.name);
            continue;
        }
        let own = words(row.name);
        // `ld.nc`, whatever the space, is described under `ld.global.nc`.
        let fits = |title: &&Title| {
            title.manual == manual(row)
                && title.name.iter().all(|word| *word == "global" || own.contains(word))
        };
        let longest = titles.iter().filter(fits).map(|title| title.name.len()).max();
        let sections: BTreeSet<&str> = titles
            .iter()
            .filter(fits)
            .filter(|title| Some(title.name.len()) == longest)
            .map(|title| title.section)
            .collect();
        assert!(sections.contains(row.section), "{}: {}, not one of {sections:?}", row.name, row.section);
    }
}

#[test]
fn sections_of_one_title_differ_in_types() {
    for row in rows_of_all() {
        let is_half = row.section.starts_with("9.7.4.") || row.section.starts_with("9.7.7.");
        let names_half = matches!(words(row.name)[..], ["set", "f16" | "bf16"]);
        assert!(!is_half || row.types == HALF || names_half, "{}: {}", row.name, row.section);
        let is_mixed = row.section.starts_with("9.7.5.");
        let names_two = matches!(words(row.name)[..], [_, "f32", "f16" | "bf16"]);
        assert!(!is_mixed || names_two, "{}: {}", row.name, row.section);
    }
}

#[test]
fn every_section_has_a_row() {
    let sections: BTreeSet<&str> = rows_of_all().map(|row| row.section).collect();
    for Title { section, name, .. } in titles() {
        let name = name.join(".");
        assert!(sections.contains(section) || SHARED.contains(&section), "{section} {name} has no row");
    }
}
