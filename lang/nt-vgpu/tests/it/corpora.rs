//! Which instructions of the corpora are not executed: a list that may shrink.

use crate::common::read;
use nt_vgpu::Program;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// First words of opcodes: the tensor cores of Hopper and Blackwell.
const ABSENT: [&str; 2] = ["wgmma", "tcgen05"];

fn texts(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            texts(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "ptx") {
            into.push(path);
        }
    }
}

#[test]
fn what_compilers_write_is_executed() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut all = Vec::new();
    texts(&Path::new(root).join("testdata/ptx"), &mut all);
    assert!(all.len() > 20, "{} texts", all.len());
    let mut wrong = BTreeSet::new();
    for path in all {
        let path = path.strip_prefix(root).unwrap().to_str().unwrap();
        let text = read(path);
        let (module, mut found) = nt_ptx::parse(&text);
        let info = nt_ptx::resolve(&module, &mut found);
        let program = Program::load(&module, &info).unwrap_or_else(|found| panic!("{path}: {found:?}"));
        let missing =
            program.missing().filter(|(place, _)| !ABSENT.iter().any(|word| place.opcode.starts_with(word)));
        wrong.extend(missing.map(|(place, why)| format!("{path}:{}: {}: {why}", place.line, place.opcode)));
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}
