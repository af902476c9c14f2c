//! Whatever text parses and resolves is woven into something that can be undone and keeps every rule, or refused by
//! name; nothing panics.
//!
//! Texts are made from real ones and from the goldens: lines taken away, doubled and moved, characters changed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{obeys, probe, testdata};
use proptest::prelude::*;

/// One change of a text, by lines or by characters; places are taken modulo what is there.
#[derive(Debug, Clone)]
enum Change {
    Drop(usize, usize),
    Double(usize),
    Move(usize, usize),
    Put(usize, &'static str),
    Join(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let any = || 0..100_000usize;
    let words = prop::sample::select(vec![
        "ret;",
        "@%p1 exit;",
        "@!%p1 ret.uni;",
        "{",
        "}",
        ";",
        "L0:",
        "trap;",
        "bra L0;",
        "// x",
        "/* y */",
        "\r\n",
        "@%p1",
        ".reg .b32 %nt_r0;",
        ".reg .b32 %clock;",
        ".pragma \"nounroll\";",
        ".loc 1 2 3",
        ".entry k {",
        "call f, ();",
        "ü",
    ]);
    prop_oneof![
        (any(), 1..4usize).prop_map(|(at, count)| Change::Drop(at, count)),
        any().prop_map(Change::Double),
        (any(), any()).prop_map(|(from, to)| Change::Move(from, to)),
        (any(), words).prop_map(|(at, word)| Change::Put(at, word)),
        any().prop_map(Change::Join),
    ]
}

fn apply(text: &str, changes: &[Change]) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for change in changes {
        let count = lines.len().max(1);
        match *change {
            Change::Drop(at, n) => {
                drop(lines.drain((at % count).min(lines.len())..(at % count + n).min(lines.len())));
            }
            Change::Double(at) if at % count < lines.len() => {
                lines.insert(at % count, lines[at % count].clone());
            }
            Change::Move(from, to) if from % count < lines.len() => {
                let line = lines.remove(from % count);
                lines.insert(to % (lines.len() + 1), line);
            }
            Change::Put(at, word) => lines.insert(at % count, format!("{word}\n")),
            Change::Join(at) if at % count < lines.len() => {
                let line = &mut lines[at % count];
                *line = line.trim_end().to_owned() + " ";
            }
            _ => {}
        }
    }
    lines.concat()
}

fn texts() -> Vec<String> {
    let golden =
        ["exits", "brace", "forward", "threads", "mixed", "crlf", "one_line", "bytes", "tables", "addresses"];
    let golden =
        golden.iter().map(|name| common::here().join("tests/golden").join(name).with_extension("ptx"));
    let real = ["nvcc/features.sm_90.ptx", "triton/vector_add.sm_90a.ptx"]
        .map(|name| testdata().join("ptx").join(name));
    golden.chain(real).map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn what_parses_is_woven_by_the_rules() {
    let (texts, programs) =
        (texts(), ["block_sched", "threads", "mixed", "counters", "addresses"].map(probe));
    let woven_texts = std::cell::Cell::new(0);
    let config = ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = prop::test_runner::TestRunner::new_with_rng(
        config,
        // The same texts every time: a test that fails now and then says little.
        prop::test_runner::TestRng::deterministic_rng(prop::test_runner::RngAlgorithm::ChaCha),
    );
    let made = (0..texts.len(), 0..programs.len(), prop::collection::vec(change(), 0..4));
    runner
        .run(&made, |(text, program, changes)| {
            let ptx = apply(&texts[text], &changes);
            let (module, mut found) = nt_ptx::parse(&ptx);
            let info = nt_ptx::resolve(&module, &mut found);
            let all: Vec<usize> = (0..module.functions.len()).collect();
            // Also of a text with faults nothing panics, though nobody asks for it.
            let woven = nt_weave::weave(&module, &info, &programs[program], &all);
            for &function in &all {
                nt_weave::list_sites_of(&module, &info, &[function], true);
                nt_weave::prune(&module, &info, function);
            }
            if !found.has_errors() {
                obeys(&ptx, &woven, "made.ptx");
                woven_texts.set(woven_texts.get() + usize::from(!woven.kernels.is_empty()));
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let woven_texts = woven_texts.get();
    assert!(
        100 < woven_texts,
        "only {woven_texts} texts were woven: the changes are too wild to say anything"
    );
}
