//! Streams of a kernel: slots a chunk, which events share an election, and what their codes say.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{obeys, probe, refusals, weave};
use nt_weave::{Form, UsedStream};

/// A kernel of one row of 64 threads, whose body may use `%rd1` (the lanes 4 bytes apart), `%rd2` (from memory) and `%p1`.
fn kernel(body: &str) -> String {
    format!(
        "\
.version 8.0
.target sm_90
.address_size 64
.extern .func other;
.visible .entry k(.param .u64 k_param_0)
.reqntid 64, 1, 1
{{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd3, [k_param_0];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd4, %r1, 4;
	add.s64 %rd1, %rd3, %rd4;
	setp.lt.u32 %p1, %r1, 9;
{body}
	ret;
}}
"
    )
}

/// The stream of the kernel, and how often lanes are asked who is here: once a run of events.
#[track_caller]
fn woven(body: &str) -> (UsedStream, usize) {
    let ptx = kernel(body);
    let woven = weave(&ptx, &probe("dmat"));
    assert_eq!(refusals(&ptx, &woven), "");
    obeys(&ptx, &woven, "k");
    let stream = woven.kernels[0].maps[0].stream.clone().unwrap();
    (stream, woven.text.matches("activemask").count())
}

/// Slots a chunk, and runs.
#[track_caller]
fn check(body: &str, chunk: u32, runs: usize) {
    let (stream, found) = woven(body);
    assert_eq!((stream.chunk, found), (chunk, runs), "{body}");
}

const LOAD: &str = "	ld.global.u32 %r2, [%rd1];\n";

#[test]
fn events_of_a_basic_block_share_an_election() {
    check(LOAD, 4, 1);
    check(&LOAD.repeat(3), 4, 1);
    check(&LOAD.repeat(4), 8, 1);
    // Whatever stands between and does not end the block.
    check(&format!("{LOAD}	bar.sync 0;\n	@%p1 add.s32 %r1, %r1, 1;\n{LOAD}"), 4, 1);
    // More than a chunk holds.
    check(&LOAD.repeat(63), 64, 1);
    check(&LOAD.repeat(64), 64, 2);
}

#[test]
fn what_ends_a_run() {
    // A label that something goes to, a branch, a call, a way out.
    check(&format!("{LOAD}$L1:\n{LOAD}"), 4, 1);
    check(&format!("{LOAD}	@%p1 bra $L1;\n{LOAD}$L1:\n{LOAD}"), 4, 3);
    check(&format!("{LOAD}	@%p1 ret;\n{LOAD}"), 4, 2);
    // A guarded access has lanes of its own, and those behind it ask anew.
    check(&format!("{LOAD}	@%p1 ld.global.u32 %r2, [%rd1];\n{LOAD}"), 4, 3);
}

#[test]
fn chunks_are_as_long_as_the_longest_way() {
    let arms = |a: usize, b: usize| {
        let (a, b) = (LOAD.repeat(a), LOAD.repeat(b));
        format!("	@%p1 bra $L1;\n{a}	bra $L2;\n$L1:\n{b}$L2:\n{LOAD}")
    };
    check(&arms(1, 2), 4, 3);
    check(&arms(3, 3), 8, 3);
    check(&arms(2, 7), 16, 3);
    // A loop with events is as long as can be; one without does not matter.
    let around = |inside: &str| format!("$L1:\n{inside}	setp.ne.u32 %p2, %r2, 7;\n	@%p2 bra $L1;\n");
    check(&around(LOAD), 64, 1);
    check(&format!("{}{LOAD}", around("	add.s32 %r2, %r2, 1;\n")), 4, 1);
    check(&format!("{LOAD}{}", around("	add.s32 %r2, %r2, 1;\n")), 4, 1);
}

#[test]
fn codes_tell_how_addresses_are_had() {
    let forms = |body: &str| -> Vec<String> {
        let (stream, _) = woven(body);
        let form = |form: &Form| match form {
            Form::Known(value) => format!("known {value}"),
            Form::Bits(strides) => {
                let strides = strides.iter().map(|stride| stride.as_constant().unwrap().to_string());
                format!("bits {}", strides.collect::<Vec<_>>().join(" "))
            }
            Form::Stride => "stride".to_owned(),
            Form::List32 => "list32".to_owned(),
            Form::List64 => "list64".to_owned(),
        };
        stream.codes.iter().map(|code| form(&code.lanes[0].1)).collect()
    };
    assert_eq!(forms(LOAD), ["bits 4 8 16 32 64"]);
    assert_eq!(forms("	ld.global.u32 %r2, [%rd3];\n"), ["bits 0 0 0 0 0"]);
    // From memory it is not asked for a stride; of a square nothing is known.
    let indirect = format!(
        "{LOAD}	mul.wide.u32 %rd5, %r2, 4;\n	add.s64 %rd5, %rd3, %rd5;\n	ld.global.u32 %r3, [%rd5];\n"
    );
    assert_eq!(forms(&indirect), ["bits 4 8 16 32 64", "list64", "list32"]);
    let square = "	mul.wide.u32 %rd5, %r1, %r1;\n	add.s64 %rd5, %rd3, %rd5;\n	ld.global.u32 %r3, [%rd5];\n";
    assert_eq!(forms(square), ["list64", "list32", "stride"]);
}

/// What the builtin `site` says is the place in the list of the manifest, whatever else the tracepoints match.
#[test]
fn sites_are_counted_among_those_that_are_left() {
    let program = "\
program \"stores\"
map m: stream<warp> { site: u32 told, addr: lanes<ptr> }
probe warp inst:access.global where %0 {
  %0: bool uniform = match op \"st.*\"
  %1: u32 uniform = site site
  %2: ptr = operand addr
  save m(site = %1, addr = %2) if %0
}
";
    let store = "	st.global.u32 [%rd1], %r1;\n";
    let ptx = kernel(&format!("{LOAD}{store}{LOAD}{store}"));
    let woven = weave(&ptx, &common::prepare(program));
    assert_eq!(refusals(&ptx, &woven), "");
    obeys(&ptx, &woven, "k");
    let kernel = &woven.kernels[0];
    let stream = kernel.maps[0].stream.as_ref().unwrap();
    let places: Vec<(u64, Option<usize>)> = stream
        .codes
        .iter()
        .map(|code| (code.told[0].1, kernel.sites.iter().position(|site| site.id == code.site)))
        .collect();
    assert_eq!(kernel.sites.len(), 2);
    assert_eq!(places, [(0, Some(0)), (1, Some(1))]);
}
