//! IR text comes from files, so it may be anything: reading, verifying and preparing it ends without a panic, and what is
//! accepted survives the passes and is read back as it was printed.

#![allow(clippy::panic, reason = "a test stops at the first thing that is wrong")]

use nt_ir::{Options, check, prepare, text};
use proptest::prelude::*;

const SEED: &str = r#"program "seed"
limit launch_cycles 4294967296
map m: array<warp> { end: u64, ran: u64, cu: u32, late: bool } !12:72
map e: stream<warp> { at: u32, site: u32, addr: lanes<ptr> }
map n: array<thread> { x: s8, y: ptr, z: u64 }
  show { x: s32 = x, y: ptr = y, w: u64 = z - y }
table @: count u64 [line, op, cu]
table @moved: sum s64 [thread] !1:9
state start: u64 = 0 !80:105
state low: s64 = -128
state seen: bool = false
probe warp kernel:entry, kernel:"a*":exit where %2 !120:136 {
  %0: u32 = lane
  %1: u32 uniform = const 16
  %2: bool = lt %0, %1 !130:140
  %3: u64 uniform = clock
  state start = %3 if %2 !140:180
}
probe warp kernel:entry {
  %0: u64 uniform = clock
  state start = %0
}
probe warp kernel:exit {
  %0: u64 uniform = state start
  %1: u64 uniform = clock
  %2: u64 uniform = sub %1, %0
  %3: u32 uniform = cu
  %4: u64 uniform = const 4096
  %5: bool uniform = gt %2, %4
  save m(end = %0, ran = %2, cu = %3, late = %5)
}
probe thread kernel:exit {
  %0: s8 uniform = const -1
  %1: ptr uniform = const 0xff
  %2: s64 = state low
  %3: s64 uniform = const 8
  %4: s64 = div %2, %3
  %5: s64 = rem %4, %3
  %6: u64 = bits %5
  %7: u32 uniform = const 70
  %8: u64 = shl %6, %7
  %9: bool = state seen
  %10: u64 = select %9, %8, %6
  %11: bool = not %9
  %12: u32 = cast %10
  %13: u64 = cast %12
  state low = %5 if %11
  save n(x = %0, y = %1, z = %13)
}
probe thread inst:load|access.global|shared.v4|v8.b32:reach, inst:*, ptx:"ld.*":after where %2 {
  %0: u32 uniform = operand bytes
  %1: bool uniform = has macs
  %2: bool = operand pred
  %3: bool uniform = match kernel "gemm*"
  %4: u32 uniform = site width
  %5: bool = and %2, %3
  %6: s64 uniform = cast %0
  %7: u32 = cast out[0]
  %8: f32 = bits in1[3]
  %9: bool = le old[0], in2[0]
  %10: u64 uniform = clock after %7
  %11: u32 uniform = clock32 after out[0]
  sum @moved(%6) if %5
  count @ if %2
}
"#;

/// Words to put in the place of others.
const WORDS: &[&str] = &[
    "inst",
    "out[0]",
    "after",
    "lanes<u64>",
    "told",
    "stream<warp>",
    "array<warp>[4]",
    "bb:loop",
    "old",
    "*",
    "|",
    "@moved",
    "count",
    "sum",
    "operand",
    "addr",
    "has",
    "match",
    "reach",
    "line",
    "block",
    "u64",
    "u32",
    "s64",
    "u8",
    "s8",
    "bool",
    "ptr",
    "f32",
    "f64",
    "uniform",
    "%0",
    "%1",
    "%3",
    "%12",
    "%99",
    "const",
    "0",
    "1",
    "-1",
    "true",
    "255",
    "18446744073709551615",
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "shl",
    "shr",
    "min",
    "and",
    "xor",
    "neg",
    "not",
    "eq",
    "lt",
    "cast",
    "bits",
    "select",
    "clock",
    "clock32",
    "time",
    "active",
    "lane",
    "cu",
    "tid.x",
    "warp",
    "thread",
    "block",
    "state",
    "start",
    "low",
    "save",
    "m",
    "n",
    "x",
    "end",
    "if",
    "where",
    "kernel:exit",
    "kernel:entry",
    "(",
    ")",
    "{",
    "}",
    ",",
    "=",
    "-",
    ":",
    "!3:4",
    "map",
    "probe",
    "show",
    "array<block>",
];

fn holds(text: &str) {
    let (program, found) = text::parse(text);
    assert_eq!(program.is_none(), found.has_errors());
    let Some(program) = program else { return };
    let accepted = check(&program).is_empty();
    // Printing takes anything; only what was accepted must be read back.
    let printed = text::print_with_spans(&program);
    if accepted {
        assert_eq!(text::parse(&printed).0.as_ref(), Some(&program), "{printed}");
    }
    for wide in [false, true] {
        match prepare(program.clone(), Options { wide }) {
            Ok(prepared) => {
                assert!(accepted);
                assert_eq!(prepared.layouts.len(), prepared.program.maps.len());
                let printed = text::print(&prepared.program);
                let again = text::parse(&printed).0.map(|program| text::print(&program));
                assert_eq!(again.as_deref(), Some(printed.as_str()));
            }
            Err(broken) => assert!(broken.pass == "input" && !accepted, "{broken:?}\n{printed}"),
        }
    }
}

#[test]
fn the_seed_is_accepted() {
    let (program, found) = text::parse(SEED);
    let Some(program) = program else { panic!("{found:?}") };
    assert!(check(&program).is_empty(), "{:?}", check(&program));
    holds(SEED);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        holds(&text);
    }

    #[test]
    fn words_changed(changes in prop::collection::vec((any::<prop::sample::Index>(), 0..WORDS.len()), 1..4)) {
        let mut words: Vec<&str> = SEED.split_inclusive(char::is_whitespace).collect();
        let changed: Vec<String> = changes.iter().map(|(_, word)| format!("{} ", WORDS[*word])).collect();
        for ((at, _), word) in changes.iter().zip(&changed) {
            let at = at.index(words.len());
            words[at] = word;
        }
        holds(&words.concat());
    }

    #[test]
    fn lines_moved(moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4)) {
        let mut lines: Vec<&str> = SEED.split_inclusive('\n').collect();
        for (from, to) in moves {
            let line = lines.remove(from.index(lines.len()));
            let to = to.index(lines.len());
            lines.insert(to, line);
        }
        holds(&lines.concat());
    }
}
