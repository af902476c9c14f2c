//! V8 without a module around it: which membermasks are the lanes that are here.

use super::*;

/// Judges a span with `.sync` operations allowed; gives the rules that it breaks, in order.
fn check(span: &str, expected: &[Rule]) {
    let claim = Claim::parse("/*nt:ctx prefix=nt_ zero@0:8*/", 0).expect("is a claim");
    let site = Site {
        claim: &claim,
        is_entry: false,
        guard: Some(("%p1", false)),
        keeps_guard: true,
        is_after: false,
        has_after: false,
        saved: &[],
        for_all: false,
        is_return: false,
        is_call: false,
        shadows: &|_| false,
        program: &|_| Err(Refused::Source("is nothing")),
        overwrites: &|_| false,
        pins: &Pins::default(),
        level: ((8, 0), 90),
    };
    let mut report = Report::default();
    let statements = crate::span::read(span, 0).expect("is a span");
    judge(&statements, Span::at(span.len() as u32), &site, &mut State::new(), &mut report);
    let rules: Vec<Rule> = report.violations().iter().map(|v| v.rule).collect();
    assert_eq!(rules, expected, "{span}\n{report:?}");
}

const REGISTERS: &str = "{ .reg .b32 %nt_m, %nt_n, %nt_x; .reg .pred %nt_p, %nt_q; mov.u32 %nt_x, 1; ";

fn check_body(body: &str, expected: &[Rule]) {
    check(&format!("{REGISTERS}{body} }}"), expected);
}

#[test]
fn a_membermask_is_the_activemask_of_this_stretch() {
    check_body("activemask.b32 %nt_m; redux.sync.add.u32 %nt_x, %nt_x, %nt_m;", &[]);
    check_body(
        "activemask.b32 %nt_m; add.u32 %nt_x, %nt_x, 1; shfl.sync.idx.b32 %nt_x, %nt_x, 0, 31, %nt_m;",
        &[],
    );
    check_body("@!%p1 bra $nt_L; activemask.b32 %nt_m; match.any.sync.b32 %nt_x, %nt_x, %nt_m; $nt_L:", &[]);
    check_body("@%p1 activemask.b32 %nt_m; @%p1 redux.sync.add.u32 %nt_x, %nt_x, %nt_m;", &[]);
    // An effect of some of the lanes parts none of them for good: all come to the next instruction.
    check_body(
        "setp.eq.u32 %nt_p, %nt_x, 0; activemask.b32 %nt_m; @%nt_p add.u32 %nt_x, %nt_x, 1; \
         shfl.sync.idx.b32 %nt_x, %nt_x, 0, 31, %nt_m;",
        &[],
    );
    check_body(
        "setp.eq.u32 %nt_p, %nt_x, 0; activemask.b32 %nt_m; vote.sync.ballot.b32 %nt_x, !%nt_p, %nt_m;",
        &[],
    );
}

#[test]
fn a_membermask_that_promises_lanes_that_are_not_here() {
    let v8 = &[Rule::V8];
    check_body("redux.sync.add.u32 %nt_x, %nt_x, 0xffffffff;", v8);
    check_body("mov.u32 %nt_m, %lanemask_le; redux.sync.add.u32 %nt_x, %nt_x, %nt_m;", v8);
    check_body("activemask.b32 %nt_m; mov.b32 %nt_n, %nt_m; redux.sync.add.u32 %nt_x, %nt_x, %nt_n;", v8);
    check_body("activemask.b32 %nt_m; or.b32 %nt_m, %nt_m, 1; redux.sync.add.u32 %nt_x, %nt_x, %nt_m;", v8);
    // A branch or a label between.
    check_body("activemask.b32 %nt_m; @!%p1 bra $nt_L; redux.sync.add.u32 %nt_x, %nt_x, %nt_m; $nt_L:", v8);
    check_body(
        "@!%p1 bra $nt_L; activemask.b32 %nt_m; $nt_L: redux.sync.add.u32 %nt_x, %nt_x, %nt_m;",
        &[Rule::V9],
    );
    check_body("activemask.b32 %nt_m; @!%p1 bra $nt_L; $nt_L: redux.sync.add.u32 %nt_x, %nt_x, %nt_m;", v8);
    // Another guard.
    check_body("activemask.b32 %nt_m; @%p1 redux.sync.add.u32 %nt_x, %nt_x, %nt_m;", v8);
    check_body("@%p1 activemask.b32 %nt_m; redux.sync.add.u32 %nt_x, %nt_x, %nt_m;", &[Rule::V9]);
    // Never, whatever the mask.
    check_body("activemask.b32 %nt_m; bar.warp.sync %nt_m;", v8);
    check_body("activemask.b32 %nt_m; elect.sync _|%nt_q, %nt_m;", v8);
}
