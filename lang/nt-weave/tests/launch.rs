//! What may be relied on of launches makes indices shorter, and the kernel tells what of it was.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{obeys, probe, refusals};
use nt_ir::launch::Conditions;
use nt_weave::{Options, Woven};

const HEAD: &str = ".version 8.5\n.target sm_90\n.address_size 64\n";

fn weave(ptx: &str, program: &str, assume: Conditions) -> Woven {
    let (module, mut found) = nt_ptx::parse(ptx);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors());
    let options = Options { assume, ..Options::default() };
    let all: Vec<usize> = (0..module.functions.len()).collect();
    let woven = nt_weave::weave_with(&module, &info, &probe(program), &all, options);
    assert_eq!(refusals(ptx, &woven), "", "{program}");
    obeys(ptx, &woven, program);
    woven
}

/// Weaves under all conditions at once: which were relied on, which special registers of the launch's shape are read.
#[track_caller]
fn check(program: &str, directive: &str, relied: &str, read: &[&str]) {
    let body = "{ .reg .b64 %rd; .reg .b32 %r; ld.param.u64 %rd, [p]; ld.global.u32 %r, [%rd]; ret; }";
    let ptx = format!("{HEAD}.entry k(.param .u64 p) {directive} {body}\n");
    let woven = weave(&ptx, program, Conditions::ALL);
    assert_eq!(woven.kernels[0].assumes.to_string(), relied, "{program}");
    let mut seen: Vec<&str> = Vec::new();
    for word in woven.text.split([' ', ',', ';']) {
        let is_shape = ["%tid.", "%ntid.", "%ctaid.", "%nctaid."].iter().any(|name| word.starts_with(name));
        if is_shape && !seen.contains(&word) {
            seen.push(word);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, read, "{program}:\n{}", woven.text);
}

#[test]
fn one_row_of_blocks_and_threads() {
    check("gmem_bytes", "", "flat_grid", &["%ctaid.x"]);
    check("block_sched", "", "flat_grid,flat_block", &["%ctaid.x", "%ntid.x", "%tid.x"]);
    check("threads", "", "flat_grid,flat_block", &["%ctaid.x", "%ntid.x", "%tid.x"]);
    // Thread 0 of a block is elected by one comparison.
    check("mixed", "", "flat_grid,flat_block", &["%ctaid.x", "%ntid.x", "%tid.x"]);
}

#[test]
fn what_the_text_fixes_is_not_relied_on() {
    check("threads", ".reqntid 64", "flat_grid", &["%ctaid.x", "%tid.x"]);
    // Conditions say nothing of a block that the text makes a box.
    check("threads", ".reqntid 8, 4, 2", "flat_grid", &["%ctaid.x", "%tid.x", "%tid.y", "%tid.z"]);
}

#[test]
fn less_is_relied_on_where_less_may_be() {
    let ptx = format!("{HEAD}.entry k(.param .u64 p) {{ ret; }}\n");
    for bits in 0..=Conditions::ALL.bits() {
        let may = Conditions::from_bits(bits).unwrap();
        let flat = Conditions::FLAT_GRID.union(Conditions::FLAT_BLOCK);
        let woven = weave(&ptx, "block_sched", may);
        assert_eq!(woven.kernels[0].assumes, may.intersection(flat));
        let has = |name: &str| woven.text.contains(name);
        assert_eq!(has("%ctaid.y"), !may.contains(Conditions::FLAT_GRID), "{may}");
        assert_eq!(has("%tid.y"), !may.contains(Conditions::FLAT_BLOCK), "{may}");
    }
    assert_eq!(
        weave(&ptx, "block_sched", Conditions::NONE).text,
        common::weave(&ptx, &probe("block_sched")).text
    );
}
