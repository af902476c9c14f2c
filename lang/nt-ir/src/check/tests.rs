//! The smallest program that breaks each rule.

use super::check;
use crate::text::parse;

/// The messages for a probe with body `body`, run per warp at the exit.
fn errors(body: &str) -> String {
    let text = format!(
        "program \"t\" map m: array<warp> {{ a: u64, b: u32 }} map t: array<thread> {{ a: u64 }}
         table @s: sum u64 [block, line] table @c: count u64 [] table @t: count u64 [thread]
         map e: stream<warp> {{ site: u32 told, at: u64, l: lanes<u32> }}
         state s: u64 = 0 state v: u32 = 0
         probe thread kernel:entry {{ %0: u32 uniform = cu state v = %0 }}
         probe warp kernel:exit {{ {body} }}"
    );
    let (program, found) = parse(&text);
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    check(&program).iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn refuses(body: &str, expected: &str) {
    assert_eq!(errors(body), expected, "{body}");
}

#[test]
fn what_holds_is_accepted() {
    refuses("", "");
    refuses("%0: u64 uniform = clock %1: u32 uniform = cu save m(a = %0, b = %1)", "");
    refuses("%0: u32 = lane %1: u32 uniform = const 3 %2: bool = lt %0, %1 state v = %0 if %2", "");
}

#[test]
fn values_are_defined_once_before_their_uses() {
    refuses("%0: u64 = neg %0", "value %0 is used before it is defined");
    refuses("state s = %1 %0: u64 = clock %1: u64 = clock", "value %1 is used before it is defined");
    refuses("%0: u64 = neg %7", "value %7 is used before it is defined");
}

#[test]
fn types() {
    refuses("%0: u32 = clock", "`clock` does not give u32");
    refuses("%0: u64 = clock %1: u32 = neg %0", "`neg` does not give u32");
    refuses("%0: u32 = cu %1: u8 = cast %0 %2: u8 = add %1, %1", "`add` does not give u8");
    refuses("%0: u64 = clock %1: u64 = shl %0, %0", "`shl` does not give u64");
    refuses("%0: u64 = clock %1: u32 = cu %2: bool = lt %0, %1", "`lt` does not give bool");
    refuses("%0: bool = const true %1: bool = add %0, %0", "`add` does not give bool");
    refuses("%0: u64 = clock %1: bool = cast %0", "`cast` does not give bool");
    refuses("%0: u64 = clock %1: u32 = bits %0", "`bits` does not give u32");
    refuses("%0: u32 = state s", "`state` does not give u32");
}

#[test]
fn effects() {
    refuses("%0: u64 = clock state s = %0 if %0", "a guard that is not a bool");
    refuses("%0: bool = const true %1: u64 = clock if %0", "a guard on what has no effect");
    refuses(
        "%0: u32 uniform = cu state s = %0",
        "a state is assigned what is not of its type, or in a block probe",
    );
    refuses("%0: u64 uniform = clock save m(a = %0)", "a save into `m` does not give each field once");
    refuses("%0: u64 uniform = clock save m(a = %0, b = %0)", "field `b` of `m` is not u64");
    refuses("%0: u64 uniform = clock save t(a = %0)", "map `t` is per thread, the probe runs per warp");
}

#[test]
fn what_varies_does_not_leave_a_warp_probe() {
    refuses(
        "%0: u64 uniform = clock %1: u32 = lane save m(a = %0, b = %1)",
        "field `b` is saved from what varies",
    );
    refuses("%0: u32 uniform = lane", "`lane` of what varies is called uniform");
    refuses("%0: u32 = lane %1: u32 uniform = neg %0", "`neg` of what varies is called uniform");
    refuses("%0: u32 uniform = state v", "`state` of what varies is called uniform");
}

#[test]
fn events() {
    let lane = "%0: u32 = lane %1: u64 uniform = clock %2: u32 uniform = site line";
    refuses(&format!("{lane} save e(site = %2, at = %1, l = %0)"), "");
    refuses(
        &format!("{lane} %3: u32 uniform = cu save e(site = %3, at = %1, l = %0)"),
        "a told field is saved from what is not known when a kernel is woven",
    );
    refuses(
        &format!("{lane} %3: u64 = cast %0 save e(site = %2, at = %3, l = %0)"),
        "field `at` is saved from what varies",
    );
    refuses(&format!("{lane} save e(site = %2, at = %1, l = %1)"), "field `l` of `e` is not u64");
}

#[test]
fn sums() {
    refuses("%0: u64 uniform = clock sum @s(%0) count @c", "");
    refuses("%0: u32 uniform = cu sum @s(%0)", "`@s` is added what is not of its type");
    refuses("count @s", "`@s` is added what is not of its type");
    refuses("%0: u64 uniform = clock sum @c(%0)", "`@c` is added what is not of its type");
    refuses("%0: u64 = thread sum @s(%0)", "`@s` is added what varies");
    refuses("count @t", "`@t` has cells of threads, the probe runs per warp");
    refuses("%0: ptr uniform = operand addr", "`operand` of what varies is called uniform");
    refuses("%0: u32 = operand addr", "`operand` does not give u32");
    refuses("%0: u64 uniform = site width", "`site` does not give u64");
    refuses("%0: u32 uniform = operand bytes %1: bool uniform = has macs", "");
}

#[test]
fn operands_whose_type_the_instruction_has() {
    refuses("%0: u32 = cast out[0] %1: f64 = bits in1[0] %2: bool = lt out[1], old[0]", "");
    refuses(
        "%0: u8 = operand out[0] %1: u64 uniform = clock after %0 %2: u32 uniform = clock32 after out",
        "",
    );
    refuses("%0: bool = cast out[0]", "`cast` does not give bool");
    refuses("%0: u32 = bits addr", "`bits` does not give u32");
    refuses("%0: u32 = eq out, in1", "`eq` does not give u32");
    refuses("%0: u64 = time after out", "`time` does not give u64");
    refuses("%0: u32 = clock after out", "`clock` does not give u32");
    refuses("%0: u32 uniform = cast out[0]", "`cast` of what varies is called uniform");
    refuses("%0: bool uniform = eq out, in1", "`eq` of what varies is called uniform");
    refuses("%0: bool = operand saddr", "`operand` does not give bool");
}

#[test]
fn declarations() {
    let refuses = |text: &str, expected: &str| {
        let (program, found) = parse(&format!("program \"t\" {text}"));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let messages: Vec<String> = check(&program).iter().map(|d| d.message.clone()).collect();
        assert_eq!(messages.join("; "), expected);
    };
    refuses("state s: u8 = 0 state s: u8 = 0", "state `s` has no name of its own");
    refuses("map m: array<warp> { }", "map `m` has no fields");
    refuses(
        "map m: array<warp> { a: u8, a: u8 }",
        "field `a` of map `m` has no name of its own; column `a` of map `m` has no name of its own",
    );
    refuses("map m: stream<thread> { a: u8 }", "the stream `m` is not of warps");
    refuses("map m: array<warp>[0] drop { a: u8 }", "`m` has room for 0 a warp");
    refuses("map m: array<block>[4] drop { a: u8 }", "`m` has room for 4 a block");
    refuses("map m: array<warp>[4] drop { a: u8 }", "");
    refuses("map m: array<warp> { a: lanes<u8> }", "`m` has values of each lane and is no stream");
    // One slot, and 16 for each list of 64-bit values: three fit a chunk of 64, four do not.
    refuses("map m: stream<warp> { a: lanes<u64>, b: lanes<u64>, c: lanes<u64> }", "");
    refuses(
        "map m: stream<warp> { a: lanes<u64>, b: lanes<u64>, c: lanes<u64>, d: lanes<u64> }",
        "an event of `m` may not fit a chunk",
    );
    refuses("map m: stream<warp> { a: u8 told }", "the code of an event of `m` does not tell its fields");
    refuses(
        "map m: stream<warp> { a: lanes<u8> told }",
        "the code of an event of `m` does not tell its fields",
    );
    refuses(
        "map m: stream<warp> { a: lanes<u8>, b: u8 } show { a: u8 = b - a }",
        "column `a` of map `m` is not a field, widened",
    );
    refuses("config stream 0", "a stream of 0 bytes");
    refuses("table @x: count u64 [] table @x: count u64 []", "table `@x` has no name of its own");
    refuses("table @x: count s64 []", "the cells of `@x` are not of 64 bits, or of a sign");
    refuses("table @x: sum u32 []", "the cells of `@x` are not of 64 bits, or of a sign");
    refuses("table @x: count u64 [line, block, cu]", "the keys of `@x` do not tell a cell");
    refuses("table @x: count u64 [line, op, cu]", "");
    refuses(
        "map m: array<warp> { a: u64 } show { b: u32 = a }",
        "column `b` of map `m` is not a field, widened",
    );
    refuses(
        "map m: array<warp> { a: u8 } show { b: u8 = a, b: u8 = a }",
        "column `b` of map `m` has no name of its own",
    );
}
