//! Probes closed over sites worked out by hand.

use super::{CloseError, CloseErrorKind, Fact, Facts, close};
use crate::program::{Part, Program};
use crate::text::{parse, print};

fn program(body: &str) -> Program {
    let text = format!(
        "program \"t\"
         map m: array<warp> {{ a: u64 }}
         table @n: count u64 [line, space]
         table @b: sum u64 [block]
         state work: u64 = 0
         {body}"
    );
    let (program, found) = parse(&text);
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    let found = crate::check(&program);
    assert!(found.is_empty(), "{found:?}");
    program
}

/// The first probe closed, as text; without its head.
fn closed(body: &str, facts: &Facts<'_>) -> Result<String, CloseError> {
    let mut program = program(body);
    let probe = close(&program, &program.probes[0], facts)?;
    let Some(probe) = probe else { return Ok("no site".to_owned()) };
    program.probes = vec![probe];
    let found = crate::check(&program);
    assert!(found.is_empty(), "{found:?}");
    let text = print(&program);
    let code = text.split_once("probe ").unwrap().1;
    Ok(code.lines().map(str::trim).collect::<Vec<_>>().join(" / "))
}

#[track_caller]
fn check(body: &str, facts: &Facts<'_>, expected: &str) {
    assert_eq!(closed(body, facts).as_deref(), Ok(expected));
}

#[track_caller]
fn refuses(body: &str, facts: &Facts<'_>, kind: CloseErrorKind, name: &str) {
    let error = closed(body, facts).unwrap_err();
    assert_eq!((error.kind, error.name), (kind, name));
}

fn load() -> Facts<'static> {
    Facts {
        kernel: "gemm",
        func: "gemm",
        file: "gemm.cu",
        line: 12,
        site: 3,
        op: Some("ld.global.v4.f32"),
        class: Some("load"),
        space: Some("global"),
        width: Some(32),
        elems: Some(4),
        bytes: Fact::Known(16),
        pred: Fact::Known(true),
        addr: true,
        others: &[Part::Out],
        ..Facts::default()
    }
}

const TENSOR: &str = "probe warp inst:mma {
    %0: bool uniform = has macs
    %1: u64 uniform = state work
    %2: u32 uniform = site macs
    %3: u64 uniform = cast %2
    %4: u64 uniform = add %1, %3
    state work = %4 if %0
}";

#[test]
fn what_is_known_becomes_constant() {
    check(
        TENSOR,
        &Facts { macs: Some(2048), ..load() },
        "warp inst:mma { / %0: u64 uniform = state work / %1: u64 uniform = const 2048 / \
         %2: u64 uniform = add %0, %1 / state work = %2 / }",
    );
}

#[test]
fn what_no_branch_needs_is_not_asked_for() {
    check(TENSOR, &load(), "no site");
    let bare = TENSOR.replace(" if %0", "");
    refuses(&bare, &load(), CloseErrorKind::Absent, "macs");
}

#[test]
fn predicates_choose_sites_or_stay() {
    let body = |condition: &str| {
        format!(
            "probe thread inst:load where %9 {{ {condition} %1: u64 uniform = const 1 sum @b(%1) if %9 }}"
        )
        .replace("%9", "%0")
    };
    let narrow = "%0: bool uniform = match op \"*.v4.*\"";
    check(&body(narrow), &load(), "thread inst:load { / %0: u64 uniform = const 1 / sum @b(%0) / }");
    check(&body("%0: bool uniform = match kernel \"x*\""), &load(), "no site");
    let guard = body("%0: bool = operand pred");
    check(&guard, &load(), "thread inst:load { / %0: u64 uniform = const 1 / sum @b(%0) / }");
    check(
        &guard,
        &Facts { pred: Fact::Dynamic, ..load() },
        "thread inst:load where %0 { / %0: bool = operand pred / %1: u64 uniform = const 1 / sum @b(%1) if %0 / }",
    );
}

#[test]
fn of_a_conjunction_the_unknown_rest_is_left() {
    let body = "probe thread inst:load where %5 {
        %0: u32 uniform = site width
        %1: u32 uniform = const 32
        %2: bool uniform = eq %0, %1
        %3: u32 = lane
        %4: bool = lt %3, %1
        %5: bool = and %2, %4
        count @n if %5
    }";
    check(
        body,
        &load(),
        "thread inst:load where %2 { / %0: u32 uniform = const 32 / %1: u32 = lane / %2: bool = lt %1, %0 / \
         count @n if %2 / }",
    );
    check(body, &Facts { width: Some(16), ..load() }, "no site");
}

#[test]
fn keys_are_operands_too() {
    let body = "probe warp inst:* { count @n }";
    check(body, &load(), "warp inst:* { / count @n / }");
    refuses(body, &Facts { space: None, ..load() }, CloseErrorKind::Absent, "space");
    let entry = "probe warp kernel:entry { %0: bool uniform = match op \"x\" count @n if %0 }";
    refuses(entry, &Facts { op: None, ..load() }, CloseErrorKind::Absent, "op");
}

#[test]
fn bytes_that_vary_do_not_leave_a_warp_probe() {
    let body = |unit: &str| {
        format!(
            "probe {unit} inst:store {{ %0: u32 uniform = operand bytes %1: u64 uniform = cast %0 sum @b(%1) }}"
        )
    };
    let dynamic = Facts { bytes: Fact::Dynamic, ..load() };
    check(&body("warp"), &load(), "warp inst:store { / %0: u64 uniform = const 16 / sum @b(%0) / }");
    refuses(&body("warp"), &dynamic, CloseErrorKind::Varying, "bytes");
    check(
        &body("thread"),
        &dynamic,
        "thread inst:store { / %0: u32 = operand bytes / %1: u64 = cast %0 / sum @b(%1) / }",
    );
    let absent = Facts { bytes: Fact::Absent, ..load() };
    refuses(&body("thread"), &absent, CloseErrorKind::Absent, "bytes");
}

#[test]
fn a_site_is_told_by_names() {
    use crate::program::SiteKey;
    let names: Vec<_> = SiteKey::ALL.iter().map(|key| load().name(*key).unwrap()).collect();
    assert_eq!(names, ["3", "gemm.cu:12", "ld.global.v4.f32", "load", "global", "gemm", "gemm"]);
    assert!(load().has(Part::Out) && load().has(Part::Addr) && !load().has(Part::In(1)));
}
