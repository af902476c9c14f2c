//! Round trips, and the smallest text of each fault.

use super::{parse, print, print_with_spans};
use nt_diag::{Paint, Source, render};

const BLOCK_SCHED: &str = r#"program "block_sched"
limit launch_cycles 4294967296
config stream 1048576
map block_sched: array<warp> { end: u64, elapsed: u32, cu: u32 } !12:72
  show { start: u64 = end - elapsed, elapsed: u64 = elapsed, cu: u32 = cu }
map plain: array<thread> { x: s8, y: ptr }
map last: array<thread>[8] wrap { x: u8 }
map events: stream<warp> { at: u32, site: u32 told, addr: lanes<ptr>, wide: lanes<bool> } !72:80
table @: count u64 []
table @moved: sum s64 [line, op, block] !72:80
state start: u32 = 0 !80:105
state low: s8 = -128
probe warp kernel:entry, kernel:"a\"*\\\u{a}":exit where %2 !120:136 {
  %0: u32 = lane
  %1: u32 uniform = const 16
  %2: bool = lt %0, %1 !130:140
  %3: u32 uniform = clock32
  state start = %3 if %2 !140:180
}
probe thread kernel:exit {
  %0: s8 uniform = const -1
  %1: ptr uniform = const 0xff
  %2: u32 = tid.x
  %3: bool uniform = const true
  %4: u32 = select %3, %2, %2
  %5: s8 uniform = not %0
  %6: s32 = bits %4
  %7: u32 uniform = state start
  save plain(x = %5, y = %1)
}
probe thread inst:load|access.global|shared.v4|v8.b32:reach, inst:barrier.*.block|cluster, inst:*, ptx:"ld.*":after, bb:entry, bb:loop, line:"src/gemm.cu":120-140:after, mark:"*.begin", func:"warp_*":entry, func:"*":exit where %2 {
  %0: u32 uniform = operand bytes
  %1: bool uniform = has in3
  %2: bool = operand pred !180:190
  %3: bool uniform = match kernel "ge\"mm*"
  %4: u32 uniform = site macs
  %5: s64 uniform = cast %4
  sum @moved(%5) if %2 !190:200
  %6: u32 = cast out[0]
  %7: f32 = bits in1[3]
  %8: bool = le old[0], in2[0]
  %9: u64 uniform = clock after %6
  %10: u32 uniform = clock32 after out[0]
  %11: u16 = operand out[7]
  %12: u32 = operand saddr
  %13: bool = operand taken
  %14: bool uniform = match callee "*"
  count @
}
"#;

fn read(text: &str) -> crate::program::Program {
    let (program, found) = parse(text);
    program.unwrap_or_else(|| panic!("{}", render(&Source::new("t", text), found, &Paint::PLAIN)))
}

#[test]
fn what_was_printed_is_read_back() {
    let program = read(BLOCK_SCHED);
    assert_eq!(print_with_spans(&program), BLOCK_SCHED);
    let bare = print(&program);
    assert!(!bare.contains('!'), "{bare}");
    assert_eq!(print(&read(&bare)), bare);
}

#[test]
fn faults_have_a_place() {
    let check = |text: &str, expected: &str| {
        let (program, found) = parse(text);
        assert!(program.is_none(), "{text}");
        let first = found.iter().next().unwrap();
        assert_eq!(format!("{:?} {}", first.span, first.message), expected, "{text}");
    };
    check("", "0..0 expected `program`, found the end");
    check("program x", "8..9 expected a string, found `x`");
    check("program \"x", "8..10 a string without an end");
    check("program \"x\\n\"", "8..13 an escape that this form does not have");
    check("program \"x\" §", "12..14 `§` is no token");
    check("program \"x\" 12ab", "12..16 `12ab` is no token");
    check("program \"x\" state s: u8 = 256", "26..29 not a constant of type u8");
    check("program \"x\" state s: s8 = 128", "26..29 not a constant of type s8");
    check("program \"x\" state s: s64 = 9223372036854775808", "27..46 not a constant of type s64");
    check("program \"x\" state s: s64 = -9223372036854775809", "28..47 not a constant of type s64");
    check("program \"x\" state s: bool = 1", "28..29 not a constant of type bool");
    check("program \"x\" state s: u9 = 1", "21..23 expected a type, found `u9`");
    check("program \"x\" probe warp kernel:middle", "30..36 expected `entry` or `exit`, found `middle`");
    let probe = |body: &str| format!("program \"x\" probe warp kernel:exit {{ {body} }}");
    check(&probe("%1: u8 = const 0"), "35..36 the values of a probe are not numbered from %0 without a gap");
    check(&probe("%0: u8 = const 0 %0: u8 = const 0"), "54..56 value %0 is defined twice");
    check(&probe("%0: u8 = frob"), "46..50 unknown operation `frob`");
    check(&probe("save m(x = %0)"), "42..43 expected a map, found `m`");
    check(&probe("state s = %0"), "43..44 expected a state, found `s`");
    check(&probe("count @x"), "37..42 unknown table `@x`");
    check("program \"x\" table @x: mean u64 []", "22..26 expected what is done to a cell, found `mean`");
    check("program \"x\" table @x: count u64 [lane]", "33..37 expected a key, found `lane`");
    check("program \"x\" probe warp xx:loop", "23..25 unknown kind of tracepoint `xx`");
    check("program \"x\" probe warp bb:end", "26..29 expected `entry` or `loop`, found `end`");
    check("program \"x\" map m: list<warp> { }", "19..23 expected `array` or `stream`, found `list`");
    check("program \"x\" map m: array<warp>[4] { }", "34..35 expected `drop` or `wrap`, found `{`");
    check("program \"x\" map m: array<warp>[4294967296]", "31..41 a capacity beyond 32 bits");
    check("program \"x\" config size 1", "19..23 expected `stream`, found `size`");
    check("program \"x\" probe warp inst:load:late", "33..37 expected a placement, found `late`");
    check(&probe("%0: u32 = cast width"), "52..57 `width` is no operand that is known at run time");
    check(&probe("%0: u32 = operand addr[1]"), "55..59 `addr` is no operand that is known at run time");
    check(&probe("%0: u32 = bits out[256]"), "56..59 an index beyond what there may be");
    check("program \"x\" probe warp line:\"f\":3", "33..33 expected `-`, found the end");
    check("program \"x\" probe warp func:\"f\":loop", "32..36 expected `entry` or `exit`, found `loop`");
    check(&probe("%0: u32 = site size"), "52..56 expected a number of the site, found `size`");
    check(&probe("%4294967296: u8 = const 0"), "37..48 `%4294967296` is no token");
}
