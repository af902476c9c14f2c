//! The least version and target of an instruction, as the table has them, against ptxas.
//!
//! Each statement below is put into a kernel. At the version and target that [`nt_ptx::opcode::Needs`] claims, ptxas
//! takes it; one version or one target lower it refuses that line. A version's statements are assembled together,
//! since ptxas tells the line of each error. What the oldest target of this ptxas has already cannot be asked about.
//! Without ptxas on PATH all of it is skipped, and a line says so.

#![allow(clippy::panic, reason = "a missing file ends the run")]

use nt_ptx::opcode::{Needs, Targets};
use nt_ptx::syntax::Kind;
use nt_ptx::version::{Arch, of_release};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

/// One statement a line, or a scope; registers and variables are those of [`HEAD`].
const STATEMENTS: &str = include_str!("needs.txt");

const HEAD: &str = "
.global .align 16 .b8 gmem[1024];
.const .align 16 .b8 cmem[1024];
.entry k(.param .align 64 .b8 map[128]) {
.reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<160>; .reg .b64 %rd<16>; .reg .f32 %f<80>; .reg .f64 %fd<16>;
.shared .align 16 .b8 smem[1024]; .shared .align 8 .b64 bar;
";

/// PTX versions, from that of the oldest target on.
const VERSIONS: &[(u16, u16)] = &[
    (6, 3),
    (6, 4),
    (6, 5),
    (7, 0),
    (7, 1),
    (7, 2),
    (7, 3),
    (7, 4),
    (7, 5),
    (7, 6),
    (7, 7),
    (7, 8),
    (8, 0),
    (8, 1),
    (8, 2),
    (8, 3),
    (8, 4),
    (8, 5),
    (8, 6),
    (8, 7),
    (8, 8),
    (9, 0),
    (9, 1),
    (9, 2),
    (9, 3),
    (9, 4),
    (9, 5),
];
/// Targets that let in what all later ones have, too.
const TARGETS: &[u16] = &[75, 80, 86, 89, 90, 100, 103, 120];
const OLDEST: u16 = 75;

/// A version and a target, in the order in which they are assembled.
type Place = ((u16, u16), String);

fn needs(statement: &str) -> Needs {
    let (module, _) = nt_ptx::parse_statements(statement);
    let instructions = module.statements.iter().filter_map(|s| match s.kind {
        Kind::Instruction(instruction) => Some(instruction),
        _ => None,
    });
    let facts: Vec<_> = instructions.map(|i| module.facts(&i)).collect();
    let [Some(facts)] = facts[..] else { panic!("not one known instruction: {statement}") };
    facts.needs
}

fn least(arch: &str) -> (u16, u16) {
    let arch = Arch::parse(arch).and_then(Arch::least_version);
    arch.unwrap_or_else(|| panic!("an unknown target")).max((6, 3))
}

/// Where a statement must be taken, and where refused.
fn places(needs: Needs) -> (Vec<Place>, Vec<Place>) {
    let (targets, below) = match needs.target {
        Targets::From(number) => {
            let number = number.max(OLDEST);
            // Between two targets of the list nothing is asked.
            let own = TARGETS.iter().copied().find(|&target| target >= number).expect("a target");
            let below = TARGETS.iter().copied().rfind(|&target| target < number);
            (vec![format!("sm_{own}")], below.map(|target| format!("sm_{target}")))
        }
        Targets::Listed(list) => {
            // The architecture alone, which PTX had first, then its family.
            let number = list[0].number;
            let mut targets = vec![format!("sm_{number}a")];
            // ptxas 13 calls sm_101 sm_110.
            let known = list.iter().filter(|arch| arch.least_version().is_some() && arch.number != 101);
            targets.extend(known.map(Arch::to_string).filter(|arch| *arch != targets[0]).collect::<Vec<_>>());
            (targets, Some(format!("sm_{number}")))
        }
    };
    let taken: Vec<Place> = targets.iter().map(|t| (needs.version.max(least(t)), t.clone())).collect();
    let (version, target) = taken[0].clone();
    let mut refused = Vec::new();
    let before = VERSIONS.iter().copied().rfind(|&v| v < version).filter(|&v| v >= least(&target));
    refused.extend(before.map(|before| (before, target)));
    refused.extend(below.map(|below| (version.max(least(&below)), below)));
    (taken, refused)
}

/// The statements' numbers whose lines ptxas complains about, with its words.
fn complaints(place: &Place, statements: &[(usize, &str)]) -> BTreeMap<usize, String> {
    let ((major, minor), target) = place;
    let mut text = format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n{HEAD}");
    let first = text.lines().count() + 1;
    for (_, statement) in statements {
        text.push_str(statement);
        text.push('\n');
    }
    text.push_str("ret; }\n");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("k.ptx");
    fs::write(&path, text).expect("a writable folder");
    let mut command = Command::new("ptxas");
    command.arg(format!("-arch={target}")).arg(&path).arg("-o").arg(folder.path().join("k.cubin"));
    let out = command.output().expect("ptxas was there a moment ago");
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    let mut found = BTreeMap::new();
    for line in words.lines().filter(|line| line.contains("error")) {
        let number =
            line.split("line ").nth(1).and_then(|rest| rest.split(';').next()?.trim().parse::<usize>().ok());
        let statement = number.and_then(|number| statements.get(number.checked_sub(first)?));
        if let Some((index, _)) = statement {
            found.insert(*index, line.to_owned());
        } else if !line.contains("fatal") && !line.contains("aborted") {
            panic!("{place:?}: {line}");
        }
    }
    assert_eq!(found.is_empty(), out.status.success(), "{place:?}: {words}");
    found
}

/// The newest PTX version that a ptxas knows; what is not in the table of releases is newer than all of it.
fn newest(words: &str) -> (u16, u16) {
    let release = words.split("release ").nth(1).and_then(|rest| rest.split(',').next()?.split_once('.'));
    let (major, minor) = release.expect("ptxas tells its release");
    let number = |part: &str| part.parse().expect("a number");
    of_release(number(major), number(minor)).unwrap_or((u16::MAX, 0))
}

#[test]
fn ptxas_agrees_on_needs() {
    let Ok(out) = Command::new("ptxas").arg("--version").output() else {
        println!("skipped: no ptxas on PATH");
        return;
    };
    let newest = newest(&String::from_utf8_lossy(&out.stdout));
    let lines = STATEMENTS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let statements: Vec<(usize, &str)> = lines.enumerate().collect();
    let mut taken: BTreeMap<Place, Vec<(usize, &str)>> = BTreeMap::new();
    let mut refused: BTreeMap<Place, Vec<(usize, &str)>> = BTreeMap::new();
    let mut asked: BTreeSet<usize> = BTreeSet::new();
    for &(index, line) in &statements {
        let statement = line.trim_start_matches("~ ");
        let (above, below) = places(needs(statement));
        for place in above {
            taken.entry(place).or_default().push((index, statement));
        }
        for place in below.into_iter().filter(|_| statement == line) {
            refused.entry(place).or_default().push((index, statement));
            asked.insert(index);
        }
    }
    let known = |place: &Place| place.0 <= newest;
    let mut wrong = Vec::new();
    for (place, statements) in taken.iter().filter(|(place, _)| known(place)) {
        let found = complaints(place, statements);
        wrong.extend(found.iter().map(|(index, words)| {
            format!(
                "{place:?} refuses {}: {words}",
                statements.iter().find(|s| s.0 == *index).map_or("", |s| s.1)
            )
        }));
    }
    for (place, statements) in refused.iter().filter(|(place, _)| known(place)) {
        let found = complaints(place, statements);
        let missing = statements.iter().filter(|(index, _)| !found.contains_key(index));
        wrong.extend(missing.map(|(_, statement)| format!("{place:?} is enough for {statement}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let taken: BTreeSet<usize> = taken
        .iter()
        .filter(|(place, _)| known(place))
        .flat_map(|(_, list)| list.iter().map(|s| s.0))
        .collect();
    println!(
        "{} of {} statements taken, {} of them refused lower down",
        taken.len(),
        statements.len(),
        asked.intersection(&taken).count()
    );
}
