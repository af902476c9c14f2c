//! Inputs with what is woven into them: `golden/NAME.ptx` beside `golden/NAME.woven`.
//!
//! The first line of an input names the program, `// PROBE: block_sched`, of `probes/`. A golden of our own output
//! proves nothing alone, so each is also undone, verified, and assembled where `ptxas` is on PATH. `BLESS=1 cargo test
//! -p nt-weave --test golden` writes the `.woven` files anew; review the difference.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, obeys, probe, refusals, weave};

#[test]
fn what_is_woven() {
    let folder = common::here().join("tests/golden");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .collect();
    names.sort();
    assert!(!names.is_empty());
    let (ptxas, bless) = (Ptxas::find(), std::env::var_os("BLESS").is_some());
    let mut different = Vec::new();
    for path in names {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ptx = std::fs::read_to_string(&path).unwrap();
        let first = ptx.lines().next().unwrap();
        let program = first.strip_prefix("// PROBE: ").expect("names its program").trim();

        let woven = weave(&ptx, &probe(program));
        assert_eq!(refusals(&ptx, &woven), "", "{name}");
        obeys(&ptx, &woven, &name);
        if let Some(ptxas) = &ptxas {
            ptxas.assemble(&ptx).unwrap_or_else(|said| panic!("{name} as it was: {said}"));
            ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{name} woven: {said}\n{}", woven.text));
        }

        let golden = path.with_extension("woven");
        if bless {
            std::fs::write(&golden, &woven.text).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != woven.text {
            different.push(format!("{name} is woven differently:\n{}", woven.text));
        }
    }
    assert!(different.is_empty(), "{}\nBLESS=1 to take this", different.join("\n"));
}
