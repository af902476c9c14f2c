//! Probes closed over sites worked out by hand.

use super::{CloseError, CloseErrorKind, Elements, Fact, Facts, SiteType, close};
use crate::program::{Part, Program, Type};
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

const fn one(ty: Type) -> Option<Elements> {
    Some(Elements { ty: SiteType::Is(ty), count: 1 })
}

/// A store of s16 over s16, and an addition of u32 and s32.
fn store() -> Facts<'static> {
    Facts { inputs: const { &[one(Type::S16)] }, old: one(Type::S16), ..load() }
}

fn addition() -> Facts<'static> {
    Facts { inputs: const { &[one(Type::U32), one(Type::S32)] }, out: one(Type::U32), ..load() }
}

#[test]
fn operands_get_the_type_of_the_instruction() {
    let body = |line: &str| format!("probe thread inst:* {{ {line} sum @b(%0) }}");
    let vector = Facts { out: Some(Elements { ty: SiteType::Is(Type::F32), count: 4 }), ..load() };
    check(
        &body("%0: u64 = cast out[3]"),
        &vector,
        "thread inst:* { / %0: f32 = operand out[3] / %1: u64 = cast %0 / sum @b(%1) / }",
    );
    refuses(&body("%0: u64 = cast out[4]"), &vector, CloseErrorKind::Absent, "out");
    refuses(&body("%0: u64 = cast in1[0]"), &vector, CloseErrorKind::Absent, "in1");
    refuses(&body("%0: u64 = bits out[0]"), &vector, CloseErrorKind::Type(SiteType::Is(Type::F32)), "out");
    check(
        &body("%1: u32 = bits out[0] %0: u64 = cast %1")
            .replace("%0", "%9")
            .replace("%1", "%0")
            .replace("%9", "%1"),
        &vector,
        "thread inst:* { / %0: f32 = operand out[0] / %1: u32 = bits %0 / %2: u64 = cast %1 / sum @b(%2) / }",
    );
    // Of the type that is wanted, it is there as it is.
    check(
        &body("%0: u64 = cast out[0]"),
        &Facts { out: one(Type::U64), ..load() },
        "thread inst:* { / %0: u64 = operand out[0] / sum @b(%0) / }",
    );
    // What was said to have a type must have it.
    let typed = body("%0: u64 = operand out[0]");
    refuses(&typed, &vector, CloseErrorKind::Type(SiteType::Is(Type::F32)), "out");
}

#[test]
fn operands_are_compared_in_a_type_that_holds_both() {
    let body = |line: &str| format!("probe thread inst:* {{ %0: bool = {line} count @n if %0 }}");
    check(
        &body("eq old[0], in1[0]"),
        &store(),
        "thread inst:* { / %0: s16 = operand old[0] / %1: s32 = cast %0 / %2: s16 = operand in1[0] / \
         %3: s32 = cast %2 / %4: bool = eq %1, %3 / count @n if %4 / }",
    );
    check(
        &body("lt in1[0], in2[0]"),
        &addition(),
        "thread inst:* { / %0: u32 = operand in1[0] / %1: s64 = cast %0 / %2: s32 = operand in2[0] / \
         %3: s64 = cast %2 / %4: bool = lt %1, %3 / count @n if %4 / }",
    );
    let mixed = Facts { inputs: &[one(Type::F32)], ..addition() };
    refuses(&body("lt out[0], in1[0]"), &mixed, CloseErrorKind::Type(SiteType::Is(Type::F32)), "in1");
    let wide = Facts { inputs: &[one(Type::U64), one(Type::S64)], ..load() };
    refuses(&body("lt in1[0], in2[0]"), &wide, CloseErrorKind::Type(SiteType::Is(Type::S64)), "in2");
    refuses(&body("lt in1[0], in3[0]"), &wide, CloseErrorKind::Absent, "in3");
    let flags = Facts { inputs: &[one(Type::Bool), one(Type::Bool)], ..load() };
    check(
        &body("ne in1[0], in2[0]"),
        &flags,
        "thread inst:* { / %0: bool = operand in1[0] / %1: bool = operand in2[0] / %2: bool = xor %0, %1 / \
         count @n if %2 / }",
    );
    refuses(&body("lt in1[0], in2[0]"), &flags, CloseErrorKind::Type(SiteType::Is(Type::Bool)), "in2");
}

#[test]
fn half_floats_are_bits() {
    let half = Facts { out: Some(Elements { ty: SiteType::F16, count: 1 }), ..load() };
    let body = |line: &str| format!("probe thread inst:* {{ {line} %1: u64 = cast %0 sum @b(%1) }}");
    check(
        &body("%0: u16 = bits out[0]"),
        &half,
        "thread inst:* { / %0: u16 = operand out[0] / %1: u64 = cast %0 / sum @b(%1) / }",
    );
    refuses(&body("%0: u32 = cast out[0]"), &half, CloseErrorKind::Type(SiteType::F16), "out");
}

#[test]
fn a_clock_waits_for_an_operand_of_any_type() {
    let body = "probe warp inst:load:after { %0: u64 uniform = clock after out[0] sum @b(%0) }";
    check(
        body,
        &Facts { out: Some(Elements { ty: SiteType::Bf16, count: 1 }), ..load() },
        "warp inst:load:after { / %0: u16 = operand out[0] / %1: u64 uniform = clock after %0 / sum @b(%1) / }",
    );
    refuses(body, &Facts { others: &[], ..load() }, CloseErrorKind::Absent, "out");
}

/// What a condition on the site keeps from being computed may ask for what is not there, or has another type.
#[test]
fn operands_that_nothing_needs_are_not_asked_for() {
    let body = "probe thread inst:load {
        %0: u32 uniform = site elems
        %1: u32 uniform = const 1
        %2: bool uniform = gt %0, %1
        %3: u32 = bits out[1]
        %4: u64 = cast %3
        sum @b(%4) if %2
        count @n
    }";
    let scalar = Facts { elems: Some(1), out: one(Type::U64), ..load() };
    check(body, &scalar, "thread inst:load { / count @n / }");
    let pair =
        Facts { elems: Some(2), out: Some(Elements { ty: SiteType::Is(Type::U32), count: 2 }), ..load() };
    check(
        body,
        &pair,
        "thread inst:load { / %0: u32 = operand out[1] / %1: u64 = cast %0 / sum @b(%1) / count @n / }",
    );
}

#[test]
fn a_site_is_told_by_names() {
    use crate::program::SiteKey;
    let marked = Facts { mark: Some("loop.begin"), callee: Some("warp_sum"), ..load() };
    let names: Vec<_> = SiteKey::ALL.iter().map(|key| marked.name(*key).unwrap()).collect();
    let expected = ["3", "gemm.cu:12", "ld.global.v4.f32", "load", "global", "gemm", "gemm"];
    assert_eq!(names[..7], expected);
    assert_eq!(names[7..], ["gemm.cu", "loop.begin", "warp_sum"]);
    assert_eq!(load().name(SiteKey::Mark), None);
    assert!(load().has(Part::Out) && load().has(Part::Addr) && !load().has(Part::In(1)));
    let second = Facts { inputs: &[None, one(Type::U32)], ..load() };
    assert!(!second.has(Part::In(1)) && second.has(Part::In(2)) && !second.has(Part::In(3)));
}
