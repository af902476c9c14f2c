//! What is done ahead of the clocks at an exit, and what waits behind a branch.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{obeys, prepare, refusals, weave};

/// Weaves `save`s of a warp at the exit of a kernel; the words that are looked for, in the order in which they stand.
#[track_caller]
fn check(program: &str, expected: &[&str]) {
    let ptx = ".version 8.5\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p) { ret; }\n";
    let woven = weave(ptx, &prepare(&format!("program \"t\"\n{program}")));
    assert_eq!(refusals(ptx, &woven), "");
    obeys(ptx, &woven, program);
    let words = ["%clock64", "activemask", "%ctaid.x", " bra ", "setp.lt.and.u64", "st.global", "div.u32"];
    let mut seen: Vec<_> =
        words.into_iter().filter_map(|word| woven.text.find(word).map(|at| (at, word))).collect();
    seen.sort_unstable();
    let seen: Vec<&str> = seen.into_iter().map(|(_, word)| word).collect();
    assert_eq!(seen, expected, "{}", woven.text);
}

#[test]
fn a_plain_record_has_its_place_before_the_clock() {
    check(
        "map m: array<warp> { end: u64 }\nprobe warp kernel:exit {\n %0: u64 uniform = clock\n save m(end = %0)\n}\n",
        &["activemask", "%ctaid.x", "setp.lt.and.u64", "%clock64", "st.global"],
    );
}

#[test]
fn what_takes_long_is_done_by_the_lane_that_saves() {
    check(
        "map m: array<warp> { end: u64, n: u32 }\nprobe warp kernel:exit {\n %0: u64 uniform = clock\n \
         %1: u32 uniform = clock32\n %2: u32 uniform = cu\n %3: u32 uniform = div %1, %2\n save m(end = %0, n = %3)\n}\n",
        &["%clock64", "activemask", " bra ", "%ctaid.x", "div.u32", "st.global"],
    );
}

#[test]
fn records_under_a_condition_wait_behind_it() {
    check(
        "map m: array<warp> { end: u64 }\nprobe warp kernel:exit where %2 {\n %0: u32 = lane\n %1: u32 uniform = const 3\n \
         %2: bool = ge %0, %1\n %3: u64 uniform = clock\n save m(end = %3) if %2\n}\n",
        &["%clock64", "activemask", " bra ", "%ctaid.x", "st.global"],
    );
}
