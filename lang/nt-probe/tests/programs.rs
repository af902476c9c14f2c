//! Whole programs: all that is shipped parses, and what compiles gives the IR that stands beside it.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first thing that is wrong")]

use nt_diag::{Found, Paint, Source, render};
use nt_probe::{SHIPPED, compile, missing, shipped, shipped_names, tokens, tree};
use std::path::Path;

#[track_caller]
fn no_errors(name: &str, text: &str, found: Found) {
    let has_errors = found.has_errors();
    assert!(!has_errors, "{}", render(&Source::new(name, text), found, &Paint::PLAIN));
}

#[test]
fn shipped_programs_parse() {
    assert_eq!(SHIPPED.len(), 18);
    for probe in SHIPPED {
        let (printed, found) = tree(probe.text);
        no_errors(probe.name, probe.text, found);
        assert!(printed.contains("probe"), "{printed}");
    }
}

#[test]
fn shipped_programs_have_a_header() {
    for probe in SHIPPED {
        assert!(probe.text.starts_with(&format!("// {}: ", probe.name)), "{}", probe.name);
        assert!(!probe.summary().is_empty(), "{}", probe.name);
        for part in ["Why", "Cost", "Try"] {
            assert!(probe.text.contains(&format!("\n// {part}  ")), "{} has no {part}", probe.name);
        }
    }
}

/// The list in the sources is the folder's.
#[test]
fn shipped_programs_are_all_embedded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("probes");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let names: Vec<String> = shipped_names().map(|name| format!("{name}.nt")).collect();
    assert_eq!(names, files);
}

#[test]
fn the_rest_of_the_language_parses() {
    for line in include_str!("one_liners.txt").lines() {
        let (_, found) = tree(line);
        no_errors("one_liners.txt", line, found);
    }
}

/// Shipped programs compile, or are refused for what is not compiled yet and nothing else.
#[test]
fn shipped_programs_compile_or_name_what_is_missing() {
    for probe in SHIPPED {
        let (program, found) = compile(probe.text, probe.name);
        let slugs: Vec<&str> = found.iter().map(|diagnostic| diagnostic.slug).collect();
        assert!(slugs.iter().all(|slug| *slug == "not-yet"), "{}: {slugs:?}", probe.name);
        assert_eq!(program.is_some(), missing(probe.text).is_empty(), "{}", probe.name);
    }
    for name in
        ["block_sched", "dmat", "gmem_bytes", "hot_lines", "last_waits", "program_progress", "tensorop_count"]
    {
        assert_eq!(missing(shipped(name).unwrap()), Vec::<String>::new(), "{name}");
    }
    assert_eq!(
        missing(shipped("divergence").unwrap()),
        [
            "reducers (`first`, `any`, `lane_sum` …)",
            "`avg` aggregations",
            "functions on bits (`popc`, `clz`, `ctz`, `hash`)"
        ]
    );
    assert_eq!(
        missing(shipped("occupancy_timeline").unwrap()),
        [
            "maps of blocks (`array<block>`)",
            "block probes (`block kernel:entry`)",
            "stores of single fields (`map.field = …`)"
        ]
    );
}

/// `source` compiles to `ir`, which the IR's verifier accepts.
#[track_caller]
fn check(source: &str, ir: &str) {
    let (program, found) = compile(source, "t");
    no_errors("t.nt", source, found);
    let program = program.unwrap();
    let broken = nt_ir::check(&program);
    let printed = nt_ir::text::print(&program);
    assert!(broken.is_empty(), "{broken:?}\n{printed}");
    let body = printed.strip_prefix("program \"t\"\n").unwrap();
    assert_eq!(body, ir, "\n--- is\n{body}");
    // What a compiled probe stores is read back.
    let stored = nt_ir::text::print_with_spans(&program);
    assert_eq!(nt_ir::text::parse(&stored).0, Some(program));
}

#[test]
fn block_sched() {
    check(
        shipped("block_sched").unwrap(),
        "map block_sched: array<warp> { start: u64, elapsed: u64, cu: u32 }
state start: u64 = 0
probe warp kernel:entry {
  %0: u64 uniform = clock
  state start = %0
}
probe warp kernel:exit {
  %0: u64 uniform = state start
  %1: u64 uniform = clock
  %2: u64 uniform = state start
  %3: u64 uniform = sub %1, %2
  %4: u32 uniform = cu
  save block_sched(start = %0, elapsed = %3, cu = %4)
}
",
    );
}

#[test]
fn dmat() {
    check(
        shipped("dmat").unwrap(),
        "config stream 268435456
map dmat: stream<warp> { at: u32, site: u32, addr: lanes<ptr>, bytes: lanes<u32> }
state start: u64 = 0
probe warp kernel:entry {
  %0: u64 uniform = clock
  state start = %0
}
probe warp inst:access|async_copy|bulk_copy.global {
  %0: u64 uniform = clock
  %1: u64 uniform = state start
  %2: u64 uniform = sub %0, %1
  %3: u32 uniform = cast %2
  %4: u32 uniform = site site
  %5: ptr = operand addr
  %6: u32 = operand bytes
  save dmat(at = %3, site = %4, addr = %5, bytes = %6)
}
",
    );
}

/// The clock is kept in 32 bits, without a limit, since no more of it is used; the site is told by the code of an event.
#[test]
fn dmat_prepared() {
    let (program, _) = compile(shipped("dmat").unwrap(), "t");
    let prepared = nt_ir::prepare(program.unwrap(), nt_ir::Options::default()).unwrap();
    assert_eq!(
        nt_ir::text::print(&prepared.program),
        "program \"t\"
config stream 268435456
map dmat: stream<warp> { at: u32, site: u32 told, addr: lanes<ptr>, bytes: lanes<u32> }
state start: u32 = 0
probe warp kernel:entry {
  %0: u32 uniform = clock32
  state start = %0
}
probe warp inst:access|async_copy|bulk_copy.global {
  %0: u32 uniform = clock32
  %1: u32 uniform = state start
  %2: u32 uniform = sub %0, %1
  %3: u32 uniform = site site
  %4: ptr = operand addr
  %5: u32 = operand bytes
  save dmat(at = %2, site = %3, addr = %4, bytes = %5)
}
"
    );
    // 8 bytes of base and code, 4 of mask, 4 of `at`.
    assert_eq!(prepared.layouts[0].stride, 16);
}

#[test]
fn last_waits() {
    check(
        shipped("last_waits").unwrap(),
        "map waits: array<warp>[16] wrap { arrived: u64, wait: u32, line: u32 }
state arrived: u64 = 0
probe warp inst:barrier.*.block|cluster.sync {
  %0: u64 uniform = clock
  state arrived = %0
}
probe warp inst:barrier.*.block|cluster.sync:after {
  %0: u64 uniform = state arrived
  %1: u64 uniform = clock
  %2: u64 uniform = state arrived
  %3: u64 uniform = sub %1, %2
  %4: u32 uniform = cast %3
  %5: u32 uniform = site line
  %6: u32 uniform = const 2147483647
  %7: u32 uniform = and %5, %6
  save waits(arrived = %0, wait = %4, line = %7)
}
",
    );
    let (program, _) = compile(shipped("last_waits").unwrap(), "last_waits");
    let prepared = nt_ir::prepare(program.unwrap(), nt_ir::Options::default()).unwrap();
    // 8 bytes of time, 4 of the wait, 4 of the line and the bit that says that all this is there.
    assert_eq!(prepared.layouts[0].stride, 16);
}

#[test]
fn program_progress() {
    check(
        shipped("program_progress").unwrap(),
        "map progress: stream<warp> { at: u32, site: u32 }
state start: u64 = 0
state sample: u32 = 0
probe warp kernel:entry {
  %0: u64 uniform = warp
  %1: u32 uniform = cast %0
  state sample = %1
}
probe warp kernel:entry {
  %0: u64 uniform = clock
  state start = %0
}
probe warp bb:loop {
  %0: u32 uniform = state sample
  %1: u32 uniform = const 1
  %2: u32 uniform = add %0, %1
  %3: u32 uniform = const 15
  %4: u32 uniform = and %2, %3
  %5: u32 uniform = const 0
  %6: bool uniform = eq %4, %5
  state sample = %2
  %7: u64 uniform = clock
  %8: u64 uniform = state start
  %9: u64 uniform = sub %7, %8
  %10: u32 uniform = cast %9
  %11: u32 uniform = site site
  save progress(at = %10, site = %11) if %6
}
",
    );
}

/// In a thread probe the sample is a part of the predicate; the rest of it alone decides what is counted.
#[test]
fn samples_of_threads() {
    check(
        "state sample2: u32; map m: array<thread> { x: u32 }
         inst:load /lane < 4 && sample(10)/ { m.save(cu); } kernel:exit { sample2 = 1; }",
        "map m: array<thread> { x: u32 }
state sample2: u32 = 0
state sample: u32 = 0
probe thread kernel:entry {
  %0: u64 = thread
  %1: u32 = cast %0
  %2: u32 uniform = const 10
  %3: u32 = rem %1, %2
  state sample = %3
}
probe thread inst:load where %10 {
  %0: u32 = lane
  %1: u32 uniform = const 4
  %2: bool = lt %0, %1
  %3: u32 = state sample
  %4: u32 uniform = const 1
  %5: u32 = add %3, %4
  %6: u32 uniform = const 10
  %7: bool = ge %5, %6
  %8: u32 uniform = const 0
  %9: u32 = select %7, %8, %5
  state sample = %9 if %2
  %10: bool = and %2, %7
  %11: u32 uniform = cu
  save m(x = %11) if %10
}
probe thread kernel:exit {
  %0: u32 uniform = const 1
  state sample2 = %0
}
",
    );
}

#[test]
fn conversions_are_written_out() {
    check(
        "map m: array<thread> { a: u64, b: s64, c: u8 }
         const N = 3; const WIDE: u64 = N;
         kernel:exit { m.save(lane, lane - (lane as s32), WIDE as u8) }",
        "map m: array<thread> { a: u64, b: s64, c: u8 }
probe thread kernel:exit {
  %0: u32 = lane
  %1: u64 = cast %0
  %2: u32 = lane
  %3: s64 = cast %2
  %4: u32 = lane
  %5: s32 = cast %4
  %6: s64 = cast %5
  %7: s64 = sub %3, %6
  %8: u8 uniform = const 3
  save m(a = %1, b = %7, c = %8)
}
",
    );
}

#[test]
fn narrow_types_are_computed_in_32_bits() {
    check(
        "state n: u8 = 250; map m: array<thread> { n: u8 }
         kernel:entry { n += 10; } kernel:exit { m.save(n) }",
        "map m: array<thread> { n: u8 }
state n: u8 = 250
probe thread kernel:entry {
  %0: u8 = state n
  %1: u32 = cast %0
  %2: u8 uniform = const 10
  %3: u32 uniform = const 10
  %4: u32 = add %1, %3
  %5: u8 = cast %4
  state n = %5
}
probe thread kernel:exit {
  %0: u8 = state n
  save m(n = %0)
}
"
        .replace("  %2: u8 uniform = const 10\n  %3: u32", "  %2: u32")
        .replace(
            "%4: u32 = add %1, %3\n  %5: u8 = cast %4\n  state n = %5",
            "%3: u32 = add %1, %2\n  %4: u8 = cast %3\n  state n = %4",
        )
        .as_str(),
    );
}

#[test]
fn branches_become_guards_and_selects() {
    check(
        "state n: u32; map m: array<thread> { x: u32 }
         kernel:exit /lane < 4/ {
           let x = 1 as u32;
           if cu == 0 { x = 2; n++; } else { m.save(x); let y = lane; y = 3; x = y; }
           m.save(x);
         }",
        "map m: array<thread> { x: u32 }
state n: u32 = 0
probe thread kernel:exit where %2 {
  %0: u32 = lane
  %1: u32 uniform = const 4
  %2: bool = lt %0, %1
  %3: u32 uniform = const 1
  %4: u32 uniform = cu
  %5: u32 uniform = const 0
  %6: bool uniform = eq %4, %5
  %7: u32 uniform = const 2
  %8: u32 uniform = select %6, %7, %3
  %9: u32 = state n
  %10: u32 uniform = const 1
  %11: u32 = add %9, %10
  %12: bool = and %2, %6
  state n = %11 if %12
  %13: bool uniform = not %6
  %14: bool = and %2, %13
  save m(x = %8) if %14
  %15: u32 = lane
  %16: u32 uniform = const 3
  %17: u32 uniform = select %13, %16, %8
  save m(x = %17) if %2
}
",
    );
}

#[test]
fn nested_branches_join_their_conditions() {
    check(
        "state n: u32; kernel:exit { if cu == 0 { if wid == 1 { n = 1; } else { n = 2; } } }",
        "state n: u32 = 0
probe thread kernel:exit {
  %0: u32 uniform = cu
  %1: u32 uniform = const 0
  %2: bool uniform = eq %0, %1
  %3: u32 uniform = wid
  %4: u32 uniform = const 1
  %5: bool uniform = eq %3, %4
  %6: bool uniform = and %2, %5
  %7: u32 uniform = const 1
  state n = %7 if %6
  %8: bool uniform = not %5
  %9: bool uniform = and %2, %8
  %10: u32 uniform = const 2
  state n = %10 if %9
}
",
    );
}

#[test]
fn shifts_by_any_integer() {
    check(
        "map m: array<thread> { a: u64, b: u32, c: s32 }
         kernel:exit { m.save(clock() >> clock(), lane << (lane as s32), (lane as s32) >> 40) }",
        "map m: array<thread> { a: u64, b: u32, c: s32 }
probe thread kernel:exit {
  %0: u64 uniform = clock
  %1: u64 uniform = clock
  %2: u64 uniform = const 255
  %3: u64 uniform = min %1, %2
  %4: u32 uniform = cast %3
  %5: u64 uniform = shr %0, %4
  %6: u32 = lane
  %7: u32 = lane
  %8: s32 = cast %7
  %9: u32 = bits %8
  %10: u32 = shl %6, %9
  %11: u32 = lane
  %12: s32 = cast %11
  %13: u32 uniform = const 40
  %14: s32 = shr %12, %13
  save m(a = %5, b = %10, c = %14)
}
",
    );
}

#[test]
fn conditions_and_selects() {
    check(
        "state seen: bool; map m: array<warp> { x: u32, y: bool }
         warp kernel:exit { seen = seen || cu == 3; m.save(seen ? min(cu, 7) : wid, (cu < 2) != (wid < 2) && true); }",
        "map m: array<warp> { x: u32, y: bool }
state seen: bool = false
probe warp kernel:exit {
  %0: bool uniform = state seen
  %1: u32 uniform = cu
  %2: u32 uniform = const 3
  %3: bool uniform = eq %1, %2
  %4: bool uniform = or %0, %3
  state seen = %4
  %5: bool uniform = state seen
  %6: u32 uniform = cu
  %7: u32 uniform = const 7
  %8: u32 uniform = min %6, %7
  %9: u32 uniform = wid
  %10: u32 uniform = select %5, %8, %9
  %11: u32 uniform = cu
  %12: u32 uniform = const 2
  %13: bool uniform = lt %11, %12
  %14: u32 uniform = wid
  %15: u32 uniform = const 2
  %16: bool uniform = lt %14, %15
  %17: bool uniform = xor %13, %16
  %18: bool uniform = const true
  %19: bool uniform = and %17, %18
  save m(x = %10, y = %19)
}
",
    );
}

#[test]
fn tracepoints_of_kernels() {
    check(
        "map m: array<warp> { cu: u32 }
         warp kernel:gemm:exit, kernel:\"*red\\\"*\"|\"scan?\":entry|exit, kernel:*:entry { m.save(cu); }",
        "map m: array<warp> { cu: u32 }
probe warp kernel:\"gemm\":exit, kernel:\"*red\\\"*\":entry, kernel:\"scan?\":entry, kernel:\"*red\\\"*\":exit, kernel:\"scan?\":exit, kernel:entry {
  %0: u32 uniform = cu
  save m(cu = %0)
}
",
    );
}

/// The precedence is Rust's: `addr & 127 == 0` means what it looks like.
#[test]
fn precedence() {
    let folded = |text: &str| {
        let source =
            format!("map m: array<thread> {{ x: s64 }} const C: s64 = {text}; kernel:exit {{ m.save(C) }}");
        let (program, found) = compile(&source, "t");
        no_errors(text, &source, found);
        let printed = nt_ir::text::print(&program.unwrap());
        printed.lines().find_map(|line| line.split_once("= const ")).unwrap().1.parse::<i64>().unwrap()
    };
    assert_eq!(folded("2 + 3 * 4 - 6 / 2 % 2"), 13);
    assert_eq!(folded("1 << 2 + 1"), 8);
    assert_eq!(folded("7 & 4 << 1 | 1 ^ 3"), 2);
    assert_eq!(folded("6 & 3 == 2 ? 10 : 20"), 10);
    assert_eq!(folded("1 < 2 && 2 < 3 || false ? 1 : 0"), 1);
    assert_eq!(folded("-1 as u32 as s64"), 0xffff_ffff);
    assert_eq!(folded("~0 & 0xff"), 255);
    assert_eq!(folded("-7 / 2"), -3);
    assert_eq!(folded("-7 >> 1"), -4);
    assert_eq!(folded("false ? 1 : true ? 2 : 3"), 2);
    assert_eq!(folded("min(3, 4) + max(3, 4) * select(1 == 1, 2, 3)"), 11);
}

#[test]
fn tokens_are_shown_one_a_line() {
    let (printed, found) = tokens("kernel:entry /cu < 3/ { x = 1ms; } // done");
    assert!(found.is_empty());
    assert_eq!(
        printed,
        "0..6         name          kernel
6..7         punctuation   :
7..12        name          entry
13..14       punctuation   /
14..16       name          cu
17..18       punctuation   <
19..20       integer       3
20..21       predicate-end /
22..23       punctuation   {
24..25       name          x
26..27       punctuation   =
28..31       integer       1ms
31..32       punctuation   ;
33..34       punctuation   }
"
    );
}

#[test]
fn the_tree_is_shown_indented() {
    let (printed, found) = tree("warp kernel:exit /cu < 3/ { m.save(a, b = -c); if x { y++ } }");
    assert!(found.is_empty());
    let lines: Vec<String> =
        printed.lines().map(|line| line.rsplit_once(' ').unwrap().0.trim_end().to_owned()).collect();
    assert_eq!(
        lines.join("\n"),
        "probe warp
  point kernel:exit
  predicate
    <
      name cu
      integer 3
  body
    method m.save
      name a
      b =
        -
          name c
    if
      name x
      then
        increment y"
    );
}

/// What a program over sites comes to; `close` is tested where it stands.
#[test]
fn instructions_and_tables() {
    check(
        "inst:load|store.global|shared.v4.b32|b64:reach /op == \"ld*\" && lane < 4/ { @b[op, block] = sum(bytes); }
         warp inst:barrier.block|cluster.sync { @[line] = count(); }",
        "table @b: sum u64 [op, block]
table @: count u64 [line]
probe thread inst:load|store.global|shared.v4.b32|b64:reach where %4 {
  %0: bool uniform = match op \"ld*\"
  %1: u32 = lane
  %2: u32 uniform = const 4
  %3: bool = lt %1, %2
  %4: bool = and %0, %3
  %5: u32 uniform = operand bytes
  %6: u64 uniform = cast %5
  sum @b(%6) if %4
}
probe warp inst:barrier.*.block|cluster.sync {
  count @
}
",
    );
}

/// Of `*` those are behind which nothing runs left out; what a clock waits for varies, what it tells does not.
#[test]
fn places_and_operands_of_the_instructions_type() {
    check(
        "state t: u64; map late: array<thread> { x: u32, same: bool }
         func:\"warp_*\"|f:entry|exit, line:\"gemm.cu\":120-140, mark:*, bb:loop { t = clock(); }
         warp inst:load:after { @wait[line] = sum(clock(out) - 1); @[file, kernel] = count(); }
         inst:store /taken_before && op != \"x\"/ { late.save(in1[2] as u32, old == in1); }
         const taken_before = true;
         inst:branch { @taken[line] = sum(taken as u32); }
         inst:copy { let s = has(saddr) ? saddr : 0; t = clock32(s); }",
        "map late: array<thread> { x: u32, same: bool }
table @wait: sum u64 [line]
table @: count u64 [file, kernel]
table @taken: sum u64 [line]
state t: u64 = 0
probe thread func:\"warp_*\":entry, func:\"f\":entry, func:\"warp_*\":exit, func:\"f\":exit, line:\"gemm.cu\":120-140, mark:\"*\", bb:loop {
  %0: u64 uniform = clock
  state t = %0
}
probe warp inst:load:after {
  %0: u64 uniform = clock after out[0]
  %1: u64 uniform = const 1
  %2: u64 uniform = sub %0, %1
  sum @wait(%2)
  count @
}
probe thread inst:store where %3 {
  %0: bool uniform = const true
  %1: bool uniform = match op \"x\"
  %2: bool uniform = not %1
  %3: bool uniform = and %0, %2
  %4: u32 = cast in1[2]
  %5: bool = eq old[0], in1[0]
  save late(x = %4, same = %5) if %3
}
probe thread inst:branch:reach {
  %0: bool = operand taken
  %1: u32 = cast %0
  %2: u64 = cast %1
  sum @taken(%2)
}
probe thread inst:copy {
  %0: bool uniform = has saddr
  %1: u32 = operand saddr
  %2: u32 uniform = const 0
  %3: u32 = select %0, %1, %2
  %4: u32 uniform = clock32 after %3
  %5: u64 uniform = cast %4
  state t = %5
}
",
    );
}

/// Jumps are seen by all lanes that get there unless it is said otherwise; of a copy, bytes vary.
#[test]
fn placements_and_what_varies() {
    check(
        "inst:* { } inst:branch { } inst:branch:before { } ptx:\"ld*\"|st:reach { }
         inst:copy.global { let b = has(bytes) ? bytes : 0; @s = sum(b as s64); }
         inst:load { let a = addr; let p = pred; let s = site; }",
        "table @s: sum s64 []
probe thread inst:branch|split:reach, inst:* {
}
probe thread inst:branch:reach {
}
probe thread inst:branch {
}
probe thread ptx:\"ld*\":reach, ptx:\"st\":reach {
}
probe thread inst:copy.global {
  %0: bool uniform = has bytes
  %1: u32 = operand bytes
  %2: u32 uniform = const 0
  %3: u32 = select %0, %1, %2
  %4: s64 = cast %3
  sum @s(%4)
}
probe thread inst:load {
  %0: ptr = operand addr
  %1: bool = operand pred
  %2: u32 uniform = site site
}
",
    );
}
