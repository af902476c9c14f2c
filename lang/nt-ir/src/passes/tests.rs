//! Each pass, from text to text. The expected texts were written by hand from the rules at the top of each pass.

use super::{Options, PASSES, prepare, prepare_watched};
use crate::check::check as verify;
use crate::layout::{Presence, Slot};
use crate::program::Program;
use crate::text::{parse, print};

fn read(text: &str) -> Program {
    let (program, found) = parse(text);
    let program = program.unwrap_or_else(|| panic!("{found:?}\n{text}"));
    let broken = verify(&program);
    assert!(broken.is_empty(), "{broken:?}\n{text}");
    program
}

/// `pass` makes `expected` of `text`, give or take blanks.
#[track_caller]
fn check(pass: &str, text: &str, expected: &str) {
    let mut program = read(&format!("program \"t\" {text}"));
    let (_, run) = PASSES.iter().find(|(name, _)| *name == pass).unwrap();
    run(&mut program);
    let broken = verify(&program);
    let printed = print(&program);
    assert!(broken.is_empty(), "{broken:?}\n{printed}");
    let expected = print(&read(&format!("program \"t\" {expected}")));
    assert_eq!(printed, expected, "\n--- is\n{printed}\n--- expected\n{expected}");
}

/// A pass over the body of a thread probe at the exit, with a map of one u64 and one of one u32.
#[track_caller]
fn body(pass: &str, text: &str, expected: &str) {
    let maps = "map w: array<thread> { x: u64 } map n: array<thread> { x: u32 }";
    let wrap = |body: &str| format!("{maps} probe thread kernel:exit {{ {body} }}");
    check(pass, &wrap(text), &wrap(expected));
}

/// What `fold` and then `dead` make of the last line's value, which `body` calls %v.
#[track_caller]
fn folds(ty: &str, text: &str, expected: &str) {
    let map = format!("program \"t\" map m: array<thread> {{ x: {ty} }}");
    let mut program = read(&format!("{map} probe thread kernel:exit {{ {text} }}"));
    for pass in ["fold", "dead"] {
        PASSES.iter().find(|(name, _)| *name == pass).unwrap().1(&mut program);
        assert!(verify(&program).is_empty(), "{}", print(&program));
    }
    let expected = print(&read(&format!("{map} probe thread kernel:exit {{ {expected} }}")));
    assert_eq!(print(&program), expected);
}

#[test]
fn fold_computes_what_is_known() {
    folds(
        "u32",
        "%0: u32 = const 6 %1: u32 = const 7 %2: u32 = mul %0, %1 save m(x = %2)",
        "%0: u32 uniform = const 42 save m(x = %0)",
    );
    folds(
        "u64",
        "%0: u32 = const 6 %1: u64 = cast %0 %2: u64 = neg %1 save m(x = %2)",
        "%0: u64 uniform = const 18446744073709551610 save m(x = %0)",
    );
}

#[test]
fn fold_takes_simpler_forms() {
    let same = "%0: u32 = lane save m(x = %0)";
    for op in ["add %0, %1", "sub %0, %1", "or %0, %1", "add %1, %0", "xor %0, %1"] {
        folds("u32", &format!("%0: u32 = lane %1: u32 = const 0 %2: u32 = {op} save m(x = %2)"), same);
    }
    let zero = "%0: u32 uniform = const 0 save m(x = %0)";
    for op in ["mul %0, %1", "and %0, %1", "sub %0, %0", "xor %0, %0", "min %0, %1"] {
        folds("u32", &format!("%0: u32 = lane %1: u32 = const 0 %2: u32 = {op} save m(x = %2)"), zero);
    }
    folds("u32", "%0: u32 = lane %1: u32 = const 32 %2: u32 = shl %0, %1 save m(x = %2)", zero);
    folds("u32", "%0: u32 = lane %1: u32 = neg %0 %2: u32 = neg %1 save m(x = %2)", same);
    folds("u32", "%0: u32 = lane %1: u64 = cast %0 %2: u32 = cast %1 save m(x = %2)", same);
    folds(
        "u32",
        "%0: u32 = lane %1: bool = const true %2: u32 = cu %3: u32 = select %1, %0, %2 save m(x = %3)",
        same,
    );
    // Cutting to 8 bits and widening again is no cast.
    let cut = "%0: u32 = lane %1: u8 = cast %0 %2: u32 = cast %1 save m(x = %2)";
    folds("u32", cut, cut);
    // Sign extension does not survive a pass through an unsigned type of the same width.
    let signs = "%0: u32 = lane %1: s32 = bits %0 %2: s64 = cast %1 save m(x = %2)";
    folds("s64", signs, signs);
    let mixed = "%0: u32 = lane %1: s8 = cast %0 %2: u32 = cast %1 %3: s64 = cast %2 save m(x = %3)";
    folds("s64", mixed, mixed);
}

#[test]
fn fold_divides_by_powers_of_two_with_shifts() {
    folds(
        "u64",
        "%0: u64 = thread %1: u64 = const 4096 %2: u64 = div %0, %1 save m(x = %2)",
        "%0: u64 = thread %1: u32 uniform = const 12 %2: u64 = shr %0, %1 save m(x = %2)",
    );
    folds(
        "u64",
        "%0: u64 = thread %1: u64 = const 4096 %2: u64 = rem %0, %1 save m(x = %2)",
        "%0: u64 = thread %1: u64 uniform = const 4095 %2: u64 = and %0, %1 save m(x = %2)",
    );
    folds(
        "u32",
        "%0: u32 = lane %1: u32 = const 8 %2: u32 = mul %0, %1 save m(x = %2)",
        "%0: u32 = lane %1: u32 uniform = const 3 %2: u32 = shl %0, %1 save m(x = %2)",
    );
}

/// Signed division by 2^k through shifts, against the arithmetic that `eval` and Rust agree on.
#[test]
fn signed_division_rounds_toward_zero() {
    for x in [-9_i64, -8, -7, -1, 0, 1, 7, 8, 9, i64::MIN, i64::MAX] {
        for (op, expected) in [("div", x / 8), ("rem", x % 8)] {
            let text = format!(
                "program \"t\" map m: array<thread> {{ x: s64 }} state s: s64 = {x}
                 probe thread kernel:entry {{ %0: s64 = state s %1: s64 uniform = const 1 %2: s64 = add %0, %1 state s = %2 }}
                 probe thread kernel:exit {{ %0: s64 = state s %1: s64 = const 8 %2: s64 = {op} %0, %1 save m(x = %2) }}"
            );
            // Folded with the state unknown, then again with its value put in.
            let mut program = read(&text);
            super::fold::run(&mut program);
            program.probes.remove(0);
            super::fold::run(&mut program);
            super::dead::run(&mut program);
            let printed = print(&program);
            assert!(printed.contains(&format!("const {expected}\n")), "{x} {op} 8:\n{printed}");
            assert!(!printed.contains(op), "{printed}");
        }
    }
}

#[test]
fn fold_drops_guards_that_are_known() {
    body(
        "fold",
        "%0: u32 = lane %1: bool = const true %2: bool = const false save n(x = %0) if %1 save n(x = %0) if %2",
        "%0: u32 = lane %1: bool uniform = const true %2: bool uniform = const false save n(x = %0)",
    );
    check(
        "fold",
        "map n: array<thread> { x: u32 } state s: u32 = 7 probe thread kernel:exit { %0: u32 = state s save n(x = %0) }",
        "map n: array<thread> { x: u32 } state s: u32 = 7 probe thread kernel:exit { %0: u32 uniform = const 7 save n(x = %0) }",
    );
}

#[test]
fn cse_computes_once() {
    body(
        "cse",
        "%0: u32 = lane %1: u32 = lane %2: u32 = cu %3: u32 = add %1, %2 %4: u32 = add %2, %0 %5: u32 = sub %3, %4 save n(x = %5)",
        "%0: u32 = lane %1: u32 = lane %2: u32 = cu %3: u32 = add %0, %2 %4: u32 = add %2, %0 %5: u32 = sub %3, %3 save n(x = %5)",
    );
}

#[test]
fn cse_keeps_clocks_and_masks_apart() {
    for builtin in ["clock", "time", "active"] {
        let code = format!("%0: u64 = {builtin} %1: u64 = {builtin} %2: u64 = sub %1, %0 save w(x = %2)");
        body("cse", &code, &code);
    }
    let code = "%0: u32 = clock32 %1: u32 = clock32 %2: u32 = sub %1, %0 save n(x = %2)";
    body("cse", code, code);
}

#[test]
fn cse_does_not_read_across_an_assignment() {
    let wrap = |body: &str| {
        format!("map n: array<thread> {{ x: u32 }} state s: u32 = 0 probe thread kernel:exit {{ {body} }}")
    };
    let check = |text: &str, expected: &str| check("cse", &wrap(text), &wrap(expected));
    // Under a guard, some lanes keep the old value.
    let guarded = "%0: u32 = state s %1: u32 = lane %2: bool = lt %1, %0 state s = %1 if %2 %3: u32 = state s save n(x = %3)";
    check(guarded, guarded);
    // Without one, the new value is known.
    check(
        "%0: u32 = state s %1: u32 = lane state s = %1 %2: u32 = state s %3: u32 = sub %2, %0 save n(x = %3)",
        "%0: u32 = state s %1: u32 = lane state s = %1 %2: u32 = state s %3: u32 = sub %1, %0 save n(x = %3)",
    );
}

#[test]
fn dead_drops_what_nothing_uses() {
    check(
        "dead",
        "map n: array<thread> { x: u32 } state a: u32 = 0 state b: u32 = 0 state kept: u32 = 1
         probe thread kernel:entry { %0: u32 = state a %1: u32 = lane state b = %0 state a = %1 }
         probe thread kernel:exit { %0: u64 = clock %1: u32 = state kept %2: bool = const true state kept = %1 if %2 save n(x = %1) }",
        "map n: array<thread> { x: u32 } state kept: u32 = 1
         probe thread kernel:exit { %0: u32 = state kept %1: bool = const true state kept = %0 if %1 save n(x = %0) }",
    );
    // A predicate decides who is elected, so it stays with any effect.
    check(
        "dead",
        "map n: array<warp> { x: u32 } probe warp kernel:exit where %2 { %0: u32 = lane %1: u32 = cu %2: bool = lt %0, %1 %3: u32 uniform = cu save n(x = %3) }",
        "map n: array<warp> { x: u32 } probe warp kernel:exit where %2 { %0: u32 = lane %1: u32 = cu %2: bool = lt %0, %1 %3: u32 uniform = cu save n(x = %3) }",
    );
}

const ENTRY: &str = "probe warp kernel:entry { %0: u64 uniform = clock state start = %0 }";

#[test]
fn clocks_are_narrowed_beside_their_difference() {
    check(
        "narrow_clocks",
        &format!(
            "map m: array<warp> {{ start: u64, ran: u64 }} state start: u64 = 0 {ENTRY}
             probe warp kernel:exit {{
               %0: u64 uniform = state start %1: u64 uniform = clock %2: u64 uniform = sub %1, %0
               save m(start = %0, ran = %2)
             }}"
        ),
        &format!(
            "limit launch_cycles 4294967296
             map m: array<warp> {{ end: u64, ran: u64 }} show {{ start: u64 = end - ran, ran: u64 = ran }}
             state start: u64 = 0 {ENTRY}
             probe warp kernel:exit {{
               %0: u64 uniform = state start %1: u64 uniform = clock %2: u64 uniform = sub %1, %0
               %3: u32 uniform = cast %2 %4: u64 uniform = cast %3
               save m(end = %1, ran = %4)
             }}"
        ),
    );
}

#[test]
fn clocks_are_narrowed_beside_the_later_clock() {
    check(
        "narrow_clocks",
        &format!(
            "map m: array<warp> {{ start: u64, end: u64 }} state start: u64 = 0 {ENTRY}
             probe warp kernel:exit {{
               %0: u64 uniform = state start %1: u64 uniform = clock save m(start = %0, end = %1)
             }}"
        ),
        &format!(
            "limit launch_cycles 4294967296
             map m: array<warp> {{ elapsed: u64, end: u64 }} show {{ start: u64 = end - elapsed, end: u64 = end }}
             state start: u64 = 0 {ENTRY}
             probe warp kernel:exit {{
               %0: u64 uniform = state start %1: u64 uniform = clock
               %2: u64 uniform = sub %1, %0 %3: u32 uniform = cast %2 %4: u64 uniform = cast %3
               save m(elapsed = %4, end = %1)
             }}"
        ),
    );
}

/// Programs that `narrow_clocks` must leave alone: the exit's body, and what else differs.
#[test]
fn clocks_are_left_wide_where_it_would_not_be_sound() {
    let program = |entry: &str, exit: &str| {
        format!(
            "map m: array<warp> {{ start: u64, ran: u64 }} map one: array<warp> {{ at: u64 }} state start: u64 = 0
             {entry} probe warp kernel:exit {{ {exit} }}"
        )
    };
    let untouched = |entry: &str, exit: &str| {
        let text = program(entry, exit);
        check("narrow_clocks", &text, &text);
    };
    let difference = "%0: u64 uniform = state start %1: u64 uniform = clock %2: u64 uniform = sub %1, %0";
    let both = format!("{difference} save m(start = %0, ran = %2)");
    // Not set at every entry: the state is 0 in some lanes, and the difference large.
    untouched("", &both);
    untouched(
        "probe warp kernel:entry { %0: u64 uniform = clock %1: u32 = lane %2: bool = lt %1, %1 state start = %0 if %2 }",
        &both,
    );
    untouched("probe warp kernel:\"a*\":entry { %0: u64 uniform = clock state start = %0 }", &both);
    // Set to something else somewhere.
    untouched(
        &format!("{ENTRY} probe warp kernel:exit {{ %0: u64 uniform = warp state start = %0 }}"),
        &both,
    );
    // Saved without anything that tells it.
    untouched(ENTRY, &format!("{difference} save m(start = %0, ran = %2) save one(at = %0)"));
    // Used otherwise.
    untouched(ENTRY, &format!("{difference} %3: u64 uniform = add %0, %0 save m(start = %0, ran = %3)"));
    untouched(
        ENTRY,
        "%0: u64 uniform = state start %1: u64 uniform = time %2: u64 uniform = sub %1, %0 save one(at = %2)",
    );
    // The clock is older than the state.
    untouched(
        ENTRY,
        "%0: u64 uniform = clock %1: u64 uniform = clock state start = %1 %2: u64 uniform = state start
         %3: u64 uniform = sub %0, %2 save one(at = %3)",
    );
    // One of two saves has another form.
    untouched(
        ENTRY,
        &format!(
            "{difference} %3: u64 uniform = warp save m(start = %0, ran = %2) save m(start = %0, ran = %3)"
        ),
    );
}

#[test]
fn a_kernel_of_the_same_glob_counts_as_its_own() {
    let text = "map one: array<warp> { at: u64 } state s: u64 = 0
        probe warp kernel:\"a*\":entry { %0: u64 uniform = clock state s = %0 }
        probe warp kernel:\"a*\":exit { %0: u64 uniform = state s %1: u64 uniform = clock %2: u64 uniform = sub %1, %0";
    check(
        "narrow_clocks",
        &format!("{text} save one(at = %2) }}"),
        &format!(
            "limit launch_cycles 4294967296 {text} %3: u32 uniform = cast %2 %4: u64 uniform = cast %3 save one(at = %4) }}"
        ),
    );
}

#[test]
fn fields_are_narrowed_where_no_save_sets_their_upper_half() {
    check(
        "narrow_fields",
        "map w: array<thread> { x: u64, y: u64, z: s64 } probe thread kernel:exit {
           %0: u32 = lane %1: u64 = cast %0 %2: u64 = clock %3: s32 = cast %0 %4: s64 = cast %3
           save w(x = %1, y = %2, z = %4) }",
        "map w: array<thread> { x: u32, y: u64, z: s32 } show { x: u64 = x, y: u64 = y, z: s64 = z }
         probe thread kernel:exit {
           %0: u32 = lane %1: u64 = cast %0 %2: u64 = clock %3: s32 = cast %0 %4: s64 = cast %3
           %5: u32 = cast %1 %6: s32 = cast %4 save w(x = %5, y = %2, z = %6) }",
    );
    // An s32 as u64 has its sign in the upper half.
    let signs = "map w: array<thread> { x: u64 } probe thread kernel:exit {
        %0: u32 = lane %1: s32 = cast %0 %2: u64 = cast %1 save w(x = %2) }";
    check("narrow_fields", signs, signs);
    // One save of two is wide.
    let mixed = "map w: array<thread> { x: u64 } probe thread kernel:exit {
        %0: u32 = lane %1: u64 = cast %0 %2: u64 = clock save w(x = %1) save w(x = %2) }";
    check("narrow_fields", mixed, mixed);
}

#[test]
fn values_are_narrowed_where_every_use_is_cut() {
    check(
        "narrow_values",
        "map n: array<thread> { x: u32 } state s: u64 = 4294967303
         probe thread kernel:entry { %0: u64 = clock state s = %0 }
         probe thread kernel:exit { %0: u64 = clock %1: u64 = state s %2: u64 = sub %0, %1 %3: u32 = cast %2 save n(x = %3) }",
        "map n: array<thread> { x: u32 } state s: u32 = 7
         probe thread kernel:entry { %0: u32 = clock32 state s = %0 }
         probe thread kernel:exit { %0: u32 = clock32 %1: u32 = state s %2: u32 = sub %0, %1 %3: u32 = cast %2 save n(x = %3) }",
    );
    // What only comes in 64 bits is cut where it is used.
    body(
        "narrow_values",
        "%0: u64 = thread %1: u64 = const 4294967301 %2: u64 = mul %0, %1 %3: u32 = cast %2 save n(x = %3)",
        "%0: u64 = thread %1: u32 = const 5 %4: u32 = cast %0 %2: u32 = mul %4, %1 %3: u32 = cast %2 save n(x = %3)",
    );
    // A right shift brings the upper half down; a comparison looks at it.
    let shift = "%0: u64 = clock %1: u32 = const 4 %2: u64 = shr %0, %1 %3: u32 = cast %2 save n(x = %3)";
    body("narrow_values", shift, shift);
    let compare = "%0: u64 = clock %1: u64 = thread %2: bool = lt %0, %1 %3: u32 = cast %2 save n(x = %3)";
    body("narrow_values", compare, compare);
}

const BLOCK_SCHED: &str = "program \"block_sched\"
    map block_sched: array<warp> { start: u64, elapsed: u64, cu: u32 }
    state start: u64 = 0
    probe warp kernel:entry { %0: u64 uniform = clock state start = %0 }
    probe warp kernel:exit {
      %0: u64 uniform = state start
      %1: u64 uniform = clock
      %2: u64 uniform = state start
      %3: u64 uniform = sub %1, %2
      %4: u32 uniform = cu
      save block_sched(start = %0, elapsed = %3, cu = %4)
    }";

#[test]
fn block_sched_is_one_store_of_16_bytes() {
    let prepared = prepare(read(BLOCK_SCHED), Options::default()).unwrap();
    assert_eq!(
        print(&prepared.program),
        "program \"block_sched\"
limit launch_cycles 4294967296
map block_sched: array<warp> { end: u64, elapsed: u32, cu: u32 }
  show { start: u64 = end - elapsed, elapsed: u64 = elapsed, cu: u32 = cu }
state start: u32 = 0
probe warp kernel:entry {
  %0: u32 uniform = clock32
  state start = %0
}
probe warp kernel:exit {
  %0: u32 uniform = state start
  %1: u64 uniform = clock
  %2: u32 uniform = cast %1
  %3: u32 uniform = sub %2, %0
  %4: u32 uniform = cu
  save block_sched(end = %1, elapsed = %3, cu = %4)
}
"
    );
    let layout = &prepared.layouts[0];
    assert_eq!((layout.columnar, layout.stride), (false, 16));
    let at = |offset, size| Slot { offset, size };
    assert_eq!(layout.slots, [at(0, 8), at(8, 4), at(12, 4)]);
    assert_eq!(layout.presence, Presence::Bit { field: 2, bit: 31 });
}

#[test]
fn the_wide_form_has_no_limit() {
    let prepared = prepare(read(BLOCK_SCHED), Options { wide: true }).unwrap();
    assert!(prepared.program.limits.is_empty());
    assert_eq!(prepared.program.maps[0].fields[0].name, "start");
    assert_eq!(prepared.program.states[0].ty.word(), "u64");
    assert_eq!(prepared.layouts[0].stride, 32);
    assert_eq!(prepared.layouts[0].presence, Presence::Bit { field: 2, bit: 31 });
}

#[test]
fn presence_takes_a_byte_where_no_bit_is_spare() {
    let presence = |fields: &str, body: &str| {
        let text = format!(
            "program \"t\" map m: array<thread> {{ {fields} }} probe thread kernel:exit {{ {body} }}"
        );
        prepare(read(&text), Options::default()).unwrap().layouts[0].presence
    };
    assert_eq!(
        presence("x: u64", "%0: u64 = clock save m(x = %0)"),
        Presence::Byte(Slot { offset: 8, size: 1 })
    );
    assert_eq!(
        presence("x: u32", "%0: u32 = cu %1: u32 = clock32 save m(x = %0) save m(x = %1)"),
        Presence::Byte(Slot { offset: 4, size: 1 })
    );
    assert_eq!(
        presence("x: bool", "%0: u32 = lane %1: bool = lt %0, %0 save m(x = %1)"),
        Presence::Bit { field: 0, bit: 7 }
    );
    assert_eq!(
        presence(
            "x: u32, y: u32",
            "%0: u32 = clock32 %1: u32 = lane %2: u8 = cast %1 %3: u32 = cast %2 save m(x = %0, y = %3)"
        ),
        Presence::Bit { field: 1, bit: 31 }
    );
}

#[test]
fn fields_that_the_code_of_an_event_tells() {
    let code = |known: &str| {
        format!(
            "probe warp inst:load {{
               %0: u32 uniform = site line %1: u64 uniform = cast %0 %2: u32 uniform = operand bytes
               %3: ptr = operand addr %4: u64 uniform = clock
               save m(line = %1, bytes = %2, at = %4, addr = %3)
             }}
             probe warp inst:store {{
               %0: u64 uniform = const 7 %1: u32 uniform = {known}
               %2: ptr = operand addr %3: u64 uniform = const 0
               save m(line = %0, bytes = %1, at = %3, addr = %2)
             }}"
        )
    };
    let pass = |known: &str, before: &str, after: &str| {
        let code = code(known);
        check("tell_fields", &format!("map m: {before} {code}"), &format!("map m: {after} {code}"));
    };
    let plain = "stream<warp> { line: u64, bytes: u32, at: u64, addr: lanes<ptr> }";
    pass("site width", plain, "stream<warp> { line: u64 told, bytes: u32 told, at: u64, addr: lanes<ptr> }");
    pass("cu", plain, "stream<warp> { line: u64 told, bytes: u32, at: u64, addr: lanes<ptr> }");
    // A record without lanes has no code, and one that is never saved is told nothing.
    let bare = "map m: stream<warp> { line: u32 } map e: stream<warp> { line: u32, l: lanes<u8> }
        probe warp inst:load { %0: u32 uniform = site line save m(line = %0) }";
    check("tell_fields", bare, bare);
}

#[test]
fn each_pass_is_watched_in_order() {
    let mut names = Vec::new();
    prepare_watched(read(BLOCK_SCHED), Options::default(), &mut |name, _| names.push(name)).unwrap();
    assert_eq!(
        names,
        [
            "input",
            "fold",
            "cse",
            "dead",
            "narrow_clocks",
            "narrow_fields",
            "narrow_values",
            "fold",
            "cse",
            "dead",
            "tell_fields",
            "gone"
        ]
    );
}

#[test]
fn a_broken_program_is_refused_before_any_pass() {
    let mut program = read(BLOCK_SCHED);
    program.probes[0].values[0].ty = crate::program::Type::U32;
    assert_eq!(prepare(program, Options::default()).unwrap_err().pass, "input");
}

/// Where a warp adds up as it leaves, and nowhere else; under a name that the program has not.
#[test]
fn lanes_that_leave_have_a_table_where_it_is_asked_for() {
    let tables = |text: &str| -> Vec<String> {
        let prepared = prepare(read(text), Options::default()).unwrap();
        prepared.program.tables.iter().map(|table| format!("{} {}", table.func.word(), table.name)).collect()
    };
    let count = |probe: &str| format!("program \"t\" table @n: count u64 [] probe {probe} {{ count @n }}");
    assert_eq!(tables(&count("warp kernel:exit")), ["count n", "gone nt_gone"]);
    assert_eq!(tables(&count("thread kernel:exit")), ["count n"]);
    assert_eq!(tables(&count("warp inst:exit")), ["count n"]);
    let taken = count("warp kernel:exit").replace("@n", "@nt_gone");
    assert_eq!(tables(&taken), ["count nt_gone", "gone nt_gone1"]);
}
