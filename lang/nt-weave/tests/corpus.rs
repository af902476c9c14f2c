//! Real compilers' PTX, all kernels of it, with several programs: what is woven is undone, verified and assembled.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, obeys, probe, testdata, weave};
use std::path::PathBuf;

fn corpus() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["ptx/nvcc", "ptx/triton"] {
        let entries = std::fs::read_dir(testdata().join(folder)).unwrap();
        files.extend(
            entries.map(|entry| entry.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "ptx")),
        );
    }
    files.sort();
    assert!(files.len() >= 20, "{files:?}");
    let read = |path: PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// Weaves a program into everything; kernels of `features` that cannot be probed are named in `refused`.
fn check(program: &str, refused: &[&str], takes: impl Fn(&str) -> bool) {
    let (prepared, ptxas) = (probe(program), Ptxas::find());
    let (mut kernels, mut texts) = (0, Vec::new());
    for (name, ptx) in corpus() {
        if !takes(&name) {
            continue;
        }
        let woven = weave(&ptx, &prepared);
        for (kernel, why) in &woven.refused {
            assert!(refused.iter().any(|known| kernel.contains(known)), "{name}: {kernel}: {}", why.message);
        }
        assert!(!woven.kernels.is_empty(), "{name}");
        kernels += woven.kernels.len();
        obeys(&ptx, &woven, &name);
        texts.push((name, woven.text));
    }
    assert!(kernels > 0);
    let Some(ptxas) = ptxas else { return };
    // ptxas takes its time; both cores may.
    let half = texts.len() / 2;
    std::thread::scope(|scope| {
        for texts in [&texts[..half], &texts[half..]] {
            let ptxas = &ptxas;
            scope.spawn(move || {
                for (name, text) in texts {
                    let said = ptxas.assemble(text).unwrap_or_else(|said| panic!("{name}: {said}"));
                    assert!(
                        !said.contains("(C75"),
                        "{name}: asynchronous instructions are serialised: {said}"
                    );
                }
            });
        }
    });
}

/// `kernel:exit` cannot be promised where callees leave the kernel or are not known.
const PAST_THE_EXIT: &[&str] = &["exits_in_callee", "through_pointers"];

#[test]
fn block_sched() {
    check("block_sched", PAST_THE_EXIT, |_| true);
}

#[test]
fn threads() {
    check("threads", PAST_THE_EXIT, |_| true);
}

#[test]
fn states_predicates_and_three_units() {
    check("mixed", PAST_THE_EXIT, |name| !name.contains("debug"));
}

#[test]
fn builtins() {
    check("builtins", PAST_THE_EXIT, |name| !name.contains("debug"));
}

#[test]
fn clusters() {
    check("cluster", &[], |name| name.contains("sm_90") || name.contains("sm_100"));
}
