//! Real compilers' PTX, all kernels of it, with several programs: what is woven is undone, verified and assembled.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, obeys, probe, testdata, weave_for};
use nt_ir::launch::Conditions;
use std::path::PathBuf;

fn corpus() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in std::fs::read_dir(testdata().join("ptx")).unwrap().map(|entry| entry.unwrap().path()) {
        let entries = folder.is_dir().then(|| std::fs::read_dir(folder).unwrap());
        let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "ptx")));
    }
    files.sort();
    assert!(files.len() >= 40, "{files:?}");
    let read = |path: PathBuf| {
        let name = path.strip_prefix(testdata().join("ptx")).unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// Weaves a program into everything; why kernels may not be probed is in `refused`. Gives how many are.
fn check(program: &str, refused: &[&str], takes: impl Fn(&str) -> bool) -> usize {
    check_for(program, refused, Conditions::NONE, takes)
}

/// [`check`], for launches of which `assume` holds.
#[allow(clippy::print_stderr, reason = "what is skipped is said")]
fn check_for(program: &str, refused: &[&str], assume: Conditions, takes: impl Fn(&str) -> bool) -> usize {
    let (prepared, ptxas) = (probe(program), Ptxas::find());
    let (mut kernels, mut texts) = (0, Vec::new());
    for (name, ptx) in corpus() {
        if !takes(&name) {
            continue;
        }
        let woven = weave_for(&ptx, &prepared, assume);
        for (kernel, why) in &woven.refused {
            assert!(refused.contains(&why.slug), "{name}: {kernel}: {why:?}");
        }
        kernels += woven.kernels.len();
        obeys(&ptx, &woven, &name);
        if !woven.kernels.is_empty() {
            texts.push((name, ptx, woven.text));
        }
    }
    assert!(kernels > 0);
    let Some(ptxas) = ptxas else { return kernels };
    // ptxas takes its time; both cores may.
    let half = texts.len() / 2;
    let skipped: Vec<String> = std::thread::scope(|scope| {
        let one = |texts: &'_ [(String, String, String)]| {
            let skipped = texts.iter().filter(|(name, ptx, woven)| !assembles(&ptxas, name, ptx, woven));
            skipped.map(|(name, ..)| name.clone()).collect::<Vec<_>>()
        };
        let (first, second) = texts.split_at(half);
        let first = scope.spawn(move || one(first));
        let second = one(second);
        [first.join().unwrap(), second].concat()
    });
    if !skipped.is_empty() {
        let (count, first) = (skipped.len(), &skipped[0]);
        eprintln!("skipped: {count} texts that this ptxas takes neither way, {first} the first of them");
    }
    kernels
}

/// The woven text assembles, and asynchronous instructions are serialised no more than before; false if this assembler
/// takes neither the text nor its original.
fn assembles(ptxas: &Ptxas, name: &str, ptx: &str, woven: &str) -> bool {
    let notices = |said: &str| said.matches("(C75").count();
    match ptxas.assemble(woven) {
        Ok(said) if notices(&said) == 0 => true,
        Ok(said) => {
            let before = ptxas.assemble(ptx).unwrap();
            let more = notices(&said) > notices(&before);
            assert!(!more, "{name}: asynchronous instructions are serialised: {said}");
            true
        }
        Err(said) => {
            assert!(ptxas.assemble(ptx).is_err(), "{name}: {said}");
            false
        }
    }
}

/// `kernel:exit` cannot be promised where callees are not known.
const PAST_THE_EXIT: &[&str] = &["indirect-call", "unknown-callee"];

/// The two compilers that most programs come from; the others' texts are for those tests that ask for sites.
fn is_first(name: &str) -> bool {
    name.starts_with("nvcc/") || name.starts_with("triton/")
}

#[test]
fn block_sched() {
    check("block_sched", PAST_THE_EXIT, |_| true);
}

#[test]
fn threads() {
    check("threads", PAST_THE_EXIT, is_first);
}

#[test]
fn states_predicates_and_three_units() {
    check("mixed", PAST_THE_EXIT, |name| is_first(name) && !name.contains("debug"));
}

#[test]
fn builtins() {
    check("builtins", PAST_THE_EXIT, |name| is_first(name) && !name.contains("debug"));
}

#[test]
fn clusters() {
    check("cluster", &[], |name| is_first(name) && (name.contains("sm_90") || name.contains("sm_100")));
}

#[test]
fn bytes_of_global_memory() {
    check("gmem_bytes", PAST_THE_EXIT, |_| true);
}

#[test]
fn matrix_instructions() {
    check("tensorop_count", PAST_THE_EXIT, is_first);
}

#[test]
fn tables_of_every_kind() {
    check("counters", PAST_THE_EXIT, |_| true);
}

#[test]
fn addresses_and_sizes() {
    check("addresses", PAST_THE_EXIT, is_first);
}

/// A probe at every instruction at once. Among asynchronous matrix instructions none may stand.
#[test]
fn hot_lines() {
    let refused = [PAST_THE_EXIT, &["among-wgmma"]].concat();
    check("hot_lines", &refused, |name| is_first(name) && name.contains("sm_90") && !name.contains("debug"));
}

/// Events, of which most are proved and some are tested.
#[test]
fn memory_traces_where_launches_are_known() {
    check_for("dmat", PAST_THE_EXIT, Conditions::ALL, |_| true);
}

/// Events, of which all are tested.
#[test]
fn memory_traces() {
    check("dmat", PAST_THE_EXIT, is_first);
}

#[test]
fn rounds_of_loops() {
    check("progress", PAST_THE_EXIT, |_| true);
}

/// Behind instructions and before them, with what they take and give, and in functions.
#[test]
fn values_and_functions() {
    check("values", &[PAST_THE_EXIT, &["among-wgmma"]].concat(), is_first);
}

/// Several records a warp and a thread, at the entry and at loads, of functions too; counts at every way out.
#[test]
fn arrays_with_a_capacity() {
    check("slots", PAST_THE_EXIT, |name| name.starts_with("nvcc/") && !name.contains("debug"));
}
