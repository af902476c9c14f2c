//! Proofs of small kernels, worked out by hand: an access of each is drawn as its strides by bit of the lane, what it
//! needs and what it assumes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_affine::{Linear, Proof, addresses};
use nt_ir::launch::Conditions;
use nt_ptx::opcode::Space;
use nt_ptx::syntax::Kind;

/// The names that bodies use: `%p` a pointer, `%n` a number, both parameters; the rest is theirs.
const HEAD: &str = "
    .reg .pred %q<9>; .reg .b16 %h<9>; .reg .b32 %r<19>, %n, %t, %y, %c, %w; .reg .b64 %d<19>, %p, %e;
    .shared .align 4 .b8 tile[1024];
    ld.param.u64 %p, [a]; ld.param.u32 %n, [b]; ld.param.u64 %e, [c];
    mov.u32 %t, %tid.x; mov.u32 %y, %tid.y; mov.u32 %c, %ctaid.x; mov.u32 %w, %ntid.x;
    ";

/// Draws the proofs of a text's global and generic accesses.
fn draw(text: &str, assume: Conditions) -> Vec<String> {
    let (module, mut found) = nt_ptx::parse(text);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors(), "{text}: {found:?}");
    let mut drawn = Vec::new();
    for access in addresses(&module, &info, 0, assume) {
        let Kind::Instruction(instruction) = module.statements[access.statement as usize].kind else {
            continue;
        };
        let facts = module.facts(&instruction).unwrap();
        if [facts.space, facts.other_space].iter().any(|s| matches!(s, Some(Space::Global | Space::Generic)))
        {
            drawn.push(draw_proof(&access.proof));
        }
    }
    drawn
}

fn draw_proof(proof: &Proof) -> String {
    match proof {
        Proof::Indirect => "indirect".to_owned(),
        Proof::Unknown => "unknown".to_owned(),
        Proof::Bits { strides, needs, wraps, joins } => {
            let mut words: Vec<String> = strides.iter().map(draw_linear).collect();
            words.extend(needs.names().map(str::to_owned));
            words.extend(wraps.then(|| "wraps".to_owned()));
            words.extend(joins.then(|| "joins".to_owned()));
            words.join(" ")
        }
    }
}

/// `4`, `4b` for 4 times the parameter `b`, unsigned, `4b-` if it is signed.
fn draw_linear(linear: &Linear) -> String {
    let mut text = if linear.constant != 0 || linear.terms.is_empty() {
        linear.constant.to_string()
    } else {
        String::new()
    };
    for term in &linear.terms {
        let name = match (term.param_offset, term.size) {
            (8, 4) => 'b',
            (16, 8) => 'c',
            (16, 4) => 'l',
            other => panic!("a term of {other:?}"),
        };
        text.push_str(&format!("{}{name}{}", term.factor, if term.signed { "-" } else { "" }));
    }
    text
}

/// The last access of a body, in launches of which all of `assume` holds.
fn under(assume: Conditions, body: &str, expected: &str) {
    let text = format!(
        ".version 8.5 .target sm_90 .address_size 64
        .entry k(.param .u64 a, .param .u32 b, .param .u64 c) {{ {HEAD} {body} ret; }}"
    );
    assert_eq!(draw(&text, assume).last().map(String::as_str), Some(expected), "{body}");
}

fn check(body: &str, expected: &str) {
    under(Conditions::ALL, body, expected);
}

/// The address is `%p` and what a register of 32 bits holds, from zero.
fn index(body: &str, expected: &str) {
    check(
        &format!("{body} cvt.u64.u32 %d1, %r1; add.u64 %d1, %p, %d1; ld.global.u32 %r18, [%d1];"),
        expected,
    );
}

#[test]
fn threads_and_lanes() {
    check("ld.global.u32 %r1, [%p];", "0 0 0 0 0");
    check("mad.wide.u32 %d1, %t, 4, %p; ld.global.u32 %r1, [%d1+64];", "4 8 16 32 64 whole_rows");
    let thread = "mad.wide.u32 %d1, %t, 4, %p; ld.global.u32 %r1, [%d1];";
    under(Conditions::FLAT_BLOCK, thread, "4 8 16 32 64 flat_block");
    under(Conditions::FLAT_GRID, thread, "unknown");
    under(Conditions::NONE, thread, "unknown");
    under(
        Conditions::NONE,
        "mov.u32 %r1, %laneid; mad.wide.u32 %d1, %r1, 4, %p; st.global.u32 [%d1], %r1;",
        "4 8 16 32 64",
    );
    // Rows of a block: y is the same in a warp that lies in one, and 0 where there is but one.
    let row = "mad.wide.u32 %d1, %y, 4, %p; ld.global.u32 %r1, [%d1];";
    under(Conditions::WHOLE_ROWS, row, "0 0 0 0 0 whole_rows");
    under(Conditions::FLAT_BLOCK, row, "0 0 0 0 0 flat_block");
    under(Conditions::NONE, row, "unknown");
    // The block's index is nobody's in particular.
    under(Conditions::NONE, "mad.wide.u32 %d1, %c, 4, %p; ld.global.u32 %r1, [%d1];", "0 0 0 0 0");
    under(
        Conditions::ALL,
        "mov.u32 %r1, %clock; mad.wide.u32 %d1, %r1, 4, %p; ld.global.u32 %r1, [%d1];",
        "unknown",
    );
}

#[test]
fn what_a_kernel_requires_needs_no_condition() {
    let check = |required: &str, expected: &str| {
        let text = format!(
            ".version 8.5 .target sm_90 .address_size 64
            .entry k(.param .u64 a, .param .u32 b, .param .u64 c) {required} {{ {HEAD}
            mad.wide.u32 %d1, %t, 4, %p; ld.global.u32 %r1, [%d1]; ret; }}"
        );
        assert_eq!(draw(&text, Conditions::NONE), [expected], "{required}");
    };
    check(".reqntid 100", "4 8 16 32 64");
    check(".reqntid 64, 4, 2", "4 8 16 32 64");
    check(".reqntid 16, 16, 1", "unknown");
    check(".maxntid 64, 1, 1", "unknown");
}

#[test]
fn sums_products_and_shifts() {
    index("add.u32 %r1, %t, %c;", "1 2 4 8 16 whole_rows wraps");
    index("shl.b32 %r1, %t, 3;", "8 16 32 64 128 whole_rows");
    index("mul.lo.u32 %r1, %t, 12;", "12 24 48 96 192 whole_rows");
    index("mad.lo.u32 %r1, %t, 6, %t;", "7 14 28 56 112 whole_rows");
    index("sub.u32 %r1, %t, %t;", "0 0 0 0 0 whole_rows");
    // 31 - lane, in two ways: never below 0. Thread 31 - thread is, from the second warp on.
    index("and.b32 %r1, %t, 31; sub.u32 %r1, 31, %r1;", "-1 -2 -4 -8 -16 whole_rows");
    index("and.b32 %r1, %t, 31; xor.b32 %r1, %r1, 31;", "-1 -2 -4 -8 -16 whole_rows");
    index("sub.u32 %r1, 31, %t;", "-1 -2 -4 -8 -16 whole_rows"); // 31 - 32w - lane
    index("sub.u32 %r1, 7, %t;", "-1 -2 -4 -8 -16 whole_rows wraps");
    index("mul.lo.u32 %r1, %t, %t;", "unknown");
    index("mul.lo.u32 %r1, %t, %c;", "unknown");
    index("shl.b32 %r1, 1, %t;", "unknown");
    index("neg.s32 %r1, %t; neg.s32 %r1, %r1;", "1 2 4 8 16 whole_rows");
    // 2^27 apart, 32 lanes do not fit into 32 bits.
    index("shl.b32 %r1, %t, 27; add.u32 %r1, %r1, %c;", "unknown");
    // In 64 bits sums wrap as the proof does.
    check(
        "cvt.u64.u32 %d1, %t; shl.b64 %d1, %d1, 60; add.u64 %d1, %p, %d1; ld.global.u32 %r1, [%d1];",
        &format!("{} {} {} {} 0 whole_rows", 1i64 << 60, 1i64 << 61, 1i64 << 62, i64::MIN),
    );
}

#[test]
fn the_index_of_a_thread_in_its_grid() {
    let sum = "mad.lo.s32 %r1, %c, %w, %t; mad.wide.s32 %d1, %r1, 4, %p; ld.global.f32 %r2, [%d1];";
    // Rows of whole warps begin at multiples of 32, so that no carry leaves the low five bits.
    under(Conditions::ALL, sum, "4 8 16 32 64 whole_rows");
    under(Conditions::FLAT_BLOCK, sum, "4 8 16 32 64 flat_block wraps");
    // The warp's number in the grid is the same in its lanes only then.
    let warp = "mad.lo.u32 %r1, %c, %w, %t; shr.u32 %r1, %r1, 5; mad.wide.u32 %d1, %r1, 4, %p; ld.global.f32 %r2, [%d1];";
    under(Conditions::ALL, warp, "0 0 0 0 0 whole_rows");
    under(Conditions::FLAT_BLOCK, warp, "unknown");
    // Division by 32 as compilers write it for signed numbers: right as long as the index is not negative.
    index(
        "mad.lo.s32 %r1, %c, %w, %t; shr.s32 %r2, %r1, 31; shr.u32 %r2, %r2, 27; add.s32 %r1, %r1, %r2; shr.s32 %r1, %r1, 5;",
        "0 0 0 0 0 whole_rows wraps",
    );
    index("div.s32 %r1, %t, 32;", "0 0 0 0 0 whole_rows");
    index("rem.u32 %r1, %t, 8;", "1 2 4 0 0 whole_rows");
    // By a number of threads that is a multiple of 32.
    index("div.u32 %r1, %t, %w;", "0 0 0 0 0 whole_rows");
    index("rem.u32 %r1, %t, %w;", "1 2 4 8 16 whole_rows");
    index("div.u32 %r1, %t, %n;", "unknown");
    index("add.u32 %r1, %t, 3; div.u32 %r1, %r1, %w;", "unknown");
    index("add.u32 %r1, %t, %n; rem.u32 %r1, %r1, 8;", "unknown");
}

#[test]
fn fields_of_bits() {
    index("and.b32 %r1, %t, 12;", "0 0 4 8 0 whole_rows");
    index("and.b32 %r1, %t, 992;", "0 0 0 0 0 whole_rows");
    index(
        "shr.u32 %r1, %t, 3; and.b32 %r2, %t, 7; shl.b32 %r2, %r2, 8; or.b32 %r1, %r1, %r2;",
        "256 512 1024 1 2 whole_rows",
    );
    index("bfe.u32 %r1, %t, 1, 3;", "0 1 2 4 0 whole_rows");
    index("bfe.s32 %r1, %t, 1, 3;", "unknown");
    index("bfi.b32 %r1, %t, 0, 4, 5;", "16 32 64 128 256 whole_rows");
    index("lop3.b32 %r1, %t, 3, 64, 234;", "1 2 0 0 0 whole_rows"); // a & b | c
    index("and.b32 %r1, %t, 3; prmt.b32 %r1, %r1, 0, 17408;", "257 514 0 0 0 whole_rows"); // 0x4400: bytes 0 0 4 4
    // A bit that is not known, or two lanes' bits in one place.
    index("xor.b32 %r1, %t, %n;", "unknown");
    index("shl.b32 %r2, %t, 1; xor.b32 %r1, %t, %r2;", "unknown");
    index(
        "shr.u32 %r2, %t, 2; and.b32 %r2, %r2, 7; xor.b32 %r2, %r2, 0; and.b32 %r1, %t, 0; or.b32 %r1, %r1, %r2;",
        "0 0 1 2 4 whole_rows",
    );
    // The same bit of the lane twice is none.
    index("xor.b32 %r1, %t, %t;", "0 0 0 0 0 whole_rows");
    index("add.u32 %r1, %t, %n; and.b32 %r1, %r1, 31;", "unknown");
    // A choice by a bit of the lane.
    index(
        "and.b32 %r2, %t, 8; setp.eq.u32 %q1, %r2, 0; selp.b32 %r1, 16, 1056, %q1;",
        "0 0 0 1040 0 whole_rows",
    );
    index("and.b32 %r2, %t, 24; setp.eq.u32 %q1, %r2, 0; selp.b32 %r1, 16, 1056, %q1;", "unknown");
    index("setp.gt.u32 %q1, %n, 5; selp.b32 %r1, 16, 1056, %q1;", "0 0 0 0 0");
    index(
        "setp.gt.u32 %q1, %n, 5; add.u32 %r2, %t, 4096; selp.b32 %r1, %t, %r2, %q1;",
        "1 2 4 8 16 whole_rows",
    );
}

#[test]
fn widths_and_wrapping() {
    // 16 bits are cut off as they are, and come back only if nothing was lost.
    index("cvt.u16.u32 %h1, %t; mul.lo.u16 %h1, %h1, 8; cvt.u32.u16 %r1, %h1;", "8 16 32 64 128 whole_rows");
    index(
        "cvt.u16.u32 %h1, %c; cvt.u16.u32 %h2, %t; add.u16 %h1, %h1, %h2; cvt.u32.u16 %r1, %h1;",
        "unknown",
    );
    // Halves of 64 bits.
    check(
        "mad.wide.u32 %d1, %t, 4, 0; mov.b64 {%r1, %r2}, %d1; mov.b64 %d2, {%r1, %r2}; add.u64 %d2, %d2, %p; ld.global.u32 %r3, [%d2];",
        "4 8 16 32 64 whole_rows",
    );
    check(
        "mad.wide.u32 %d1, %t, 4, %p; mov.b64 {%r1, %r2}, %d1; mov.b64 %d2, {%r1, %r2}; ld.global.u32 %r3, [%d2];",
        "unknown",
    );
    // To extend what may have wrapped takes trust, and no trust makes 64 bits of a negative number without its sign.
    check(
        "sub.s32 %r1, %t, %n; mad.wide.s32 %d1, %r1, 4, %p; ld.global.u32 %r3, [%d1];",
        "4 8 16 32 64 whole_rows wraps",
    );
    check(
        "cvt.s64.s32 %d1, %t; sub.s64 %d1, %d1, %e; shl.b64 %d1, %d1, 2; add.s64 %d1, %d1, %p; ld.global.u32 %r3, [%d1];",
        "4 8 16 32 64 whole_rows",
    );
    // A carry from elsewhere.
    index("add.cc.u32 %r2, %t, %n; addc.u32 %r1, %c, 0;", "unknown");
}

#[test]
fn parameters_as_pitches() {
    check(
        "mul.lo.s32 %r1, %t, %n; mad.wide.s32 %d1, %r1, 4, %p; ld.global.u32 %r3, [%d1];",
        "4b- 8b- 16b- 32b- 64b- whole_rows wraps",
    );
    check(
        "mul.lo.s32 %r1, %t, %n; mad.wide.u32 %d1, %r1, 4, %p; ld.global.u32 %r3, [%d1];",
        "4b 8b 16b 32b 64b whole_rows wraps",
    );
    // In 64 bits there is nothing to assume.
    check(
        "cvt.s64.s32 %d1, %n; cvt.u64.u32 %d2, %t; mul.lo.s64 %d1, %d1, %d2; add.s64 %d1, %d1, %d2; add.s64 %d1, %d1, %p; ld.global.u32 %r3, [%d1];",
        "11b- 22b- 44b- 88b- 1616b- whole_rows",
    );
    check(
        "cvt.u64.u32 %d2, %t; mad.lo.s64 %d1, %d2, %e, %p; ld.global.u32 %r3, [%d1];",
        "1c 2c 4c 8c 16c whole_rows",
    );
    check(
        "cvt.u32.u64 %r1, %e; mul.lo.u32 %r1, %t, %r1; cvt.u64.u32 %d1, %r1; add.u64 %d1, %d1, %p; ld.global.u32 %r3, [%d1];",
        "1l 2l 4l 8l 16l whole_rows wraps",
    );
    // Not linear.
    check("mul.lo.s32 %r1, %n, %n; mad.wide.s32 %d1, %r1, 4, %p; ld.global.u32 %r3, [%d1];", "0 0 0 0 0");
    check(
        "mul.lo.s32 %r1, %n, %n; mul.lo.s32 %r1, %r1, %t; mad.wide.s32 %d1, %r1, 4, %p; ld.global.u32 %r3, [%d1];",
        "unknown",
    );
    check("shl.b32 %r1, %t, %n; mad.wide.s32 %d1, %r1, 4, %p; ld.global.u32 %r3, [%d1];", "unknown");
}

#[test]
fn loads() {
    let through = |load: &str, expected: &str| {
        index(&format!("{load} shl.b32 %r1, %r1, 2;"), expected);
    };
    through("ld.global.nc.u32 %r1, [%p];", "0 0 0 0 0");
    through("ld.const.u32 %r1, [%p];", "0 0 0 0 0");
    // All lanes are there, and so have one value.
    through("ld.global.u32 %r1, [%p];", "0 0 0 0 0");
    through("ld.volatile.global.u32 %r1, [%p];", "indirect");
    through("mad.wide.u32 %d2, %t, 4, %p; ld.global.nc.u32 %r1, [%d2];", "indirect");
    through("atom.global.add.u32 %r1, [%p], 1;", "indirect");
    through("ld.local.u32 %r1, [%p];", "indirect");
    through("ld.u32 %r1, [%p];", "indirect");
    through("ld.shared.u32 %r1, [tile];", "0 0 0 0 0");
    // Two groups load one after the other, and meet.
    let apart = "setp.lt.u32 %q1, %t, 7; @%q1 bra L; mov.u32 %r2, 1; L:";
    through(&format!("{apart} ld.global.u32 %r1, [%p];"), "indirect");
    through(&format!("{apart} ld.global.nc.u32 %r1, [%p];"), "0 0 0 0 0");
    through(&format!("{apart} bar.sync 0; ld.global.u32 %r1, [%p];"), "0 0 0 0 0");
    through(&format!("{apart} bar.warp.sync -1; ld.global.u32 %r1, [%p];"), "indirect");
    // Lanes that leave for good are not missed.
    through("setp.lt.u32 %q1, %t, 7; @%q1 ret; ld.global.u32 %r1, [%p];", "0 0 0 0 0");
    through(
        "setp.lt.u32 %q1, %t, 7; @%q1 bra X; bra.uni Y; X: ret; Y: ld.global.u32 %r1, [%p];",
        "0 0 0 0 0",
    );
}

#[test]
fn lanes_among_each_other() {
    index("shfl.sync.idx.b32 %r1, %t, 0, 31, -1;", "0 0 0 0 0");
    index("shfl.sync.idx.b32 %r1|%q1, %t, %n, 31, 0xffffffff;", "unknown"); // a second result is not followed
    index("shfl.sync.idx.b32 %r1, %t, 0, 7199, -1;", "unknown"); // segments of 8
    index("shfl.sync.down.b32 %r1, %t, 1, 31, -1;", "unknown");
    index("shfl.sync.down.b32 %r1, %n, 1, 31, -1;", "0 0 0 0 0");
    index("setp.lt.u32 %q1, %t, 7; vote.sync.ballot.b32 %r1, %q1, -1;", "0 0 0 0 0");
    index("setp.lt.u32 %q1, %t, 7; @%q1 bra L; mov.u32 %r2, 1; L: activemask.b32 %r1;", "unknown");
}

#[test]
fn ways_that_join() {
    let choice = |guard: &str, one: &str, other: &str, expected: &str| {
        index(&format!("{guard} @%q1 bra A; {one} bra.uni J; A: {other} J:"), expected);
    };
    let uniform = "setp.lt.u32 %q1, %n, 7;";
    let varying = "setp.lt.u32 %q1, %t, 7;";
    choice(uniform, "mov.u32 %r1, 4;", "mov.u32 %r1, 8;", "0 0 0 0 0");
    choice(varying, "mov.u32 %r1, 4;", "mov.u32 %r1, 8;", "unknown");
    choice(varying, "mov.u32 %r1, 4;", "mov.u32 %r1, 4;", "0 0 0 0 0");
    choice(varying, "mov.u32 %r1, %t;", "mov.u32 %r1, %t;", "1 2 4 8 16 whole_rows");
    choice(varying, "neg.s32 %r1, %t;", "neg.s32 %r1, %t;", "unknown"); // two values, though they are equal
    choice(uniform, "mov.u32 %r1, %t;", "add.u32 %r1, %t, 1024;", "1 2 4 8 16 whole_rows");
    choice(uniform, "mov.u32 %r1, %t;", "shl.b32 %r1, %t, 1;", "unknown");
    // All lanes of a warp are on one side of a multiple of 32.
    choice("setp.lt.u32 %q1, %t, 64;", "mov.u32 %r1, 4;", "mov.u32 %r1, 8;", "0 0 0 0 0 whole_rows");
    choice("setp.gt.u32 %q1, %t, 31;", "mov.u32 %r1, 4;", "mov.u32 %r1, 8;", "0 0 0 0 0 whole_rows");
    choice("setp.gt.u32 %q1, %t, 32;", "mov.u32 %r1, 4;", "mov.u32 %r1, 8;", "unknown");
    // A guard is a branch.
    index("mov.u32 %r1, 4; setp.lt.u32 %q1, %t, 7; @%q1 mov.u32 %r1, 8;", "unknown");
    index("mov.u32 %r1, 4; setp.lt.u32 %q1, %n, 7; @!%q1 mov.u32 %r1, 8;", "0 0 0 0 0");
    index("setp.lt.u32 %q1, %n, 7; @%q1 mov.u32 %r1, 8;", "unknown"); // what was there before?
    // By a bit of the lane.
    choice("and.b32 %r2, %t, 8; setp.eq.u32 %q1, %r2, 0;", "mov.u32 %r1, 4;", "mov.u32 %r1, 8;", "unknown");
    index("and.b32 %r2, %t, 8; setp.eq.u32 %q1, %r2, 0; mov.u32 %r1, 4; @%q1 mov.u32 %r1, 8;", "unknown");
    // Inside of an arm nothing has joined.
    index(
        "mov.u32 %r1, 4; setp.lt.u32 %q1, %t, 7; @%q1 bra A; mov.u32 %r1, 8; bra.uni A; A: mov.u32 %r1, %r1;",
        "unknown",
    );
    check(
        "setp.lt.u32 %q1, %t, 7; @%q1 bra A; mad.wide.u32 %d1, %t, 4, %p; ld.global.u32 %r2, [%d1]; A:",
        "4 8 16 32 64 whole_rows",
    );
    // The join is behind the outer branch, of which one arm has a branch of its own.
    index(
        "setp.lt.u32 %q1, %n, 7; mov.u32 %r1, 4; @%q1 bra J; setp.lt.u32 %q2, %t, 7; @%q2 bra I; mov.u32 %r2, 1; I: mov.u32 %r1, 8; J:",
        "0 0 0 0 0",
    );
    // Through a table.
    index(
        "T: .branchtargets A, B; mov.u32 %r2, %n; brx.idx %r2, T; A: mov.u32 %r1, 4; bra.uni J; B: mov.u32 %r1, 8; J:",
        "0 0 0 0 0",
    );
    index(
        "T: .branchtargets A, B; and.b32 %r2, %t, 1; brx.idx %r2, T; A: mov.u32 %r1, 4; bra.uni J; B: mov.u32 %r1, 8; J:",
        "unknown",
    );
}

#[test]
fn loops() {
    // All lanes go round together; the pointer moves by the same amount.
    let all_alike = "mov.u32 %r2, 0; mov.u32 %r1, %t; L: add.u32 %r1, %r1, 1024; add.u32 %r2, %r2, 1;
        setp.lt.u32 %q1, %r2, %n; cvt.u64.u32 %d1, %r1; add.u64 %d1, %p, %d1; ld.global.u32 %r3, [%d1]; @%q1 bra L;";
    check(all_alike, "1 2 4 8 16 whole_rows");
    // A loop over a grid: lanes leave one after the other, and those that are left are in the same turn.
    let grid = "mad.lo.u32 %r1, %c, %w, %t; L: mad.wide.u32 %d1, %r1, 4, %p; ld.global.u32 %r3, [%d1]; add.u32 %r1, %r1, %w;
        setp.lt.u32 %q1, %r1, %n; @%q1 bra L;";
    check(grid, "4 8 16 32 64 whole_rows");
    // What they carry out of it is from different turns; and what they carry out of it unchanged is not.
    index("mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %q1, %r1, %t; @%q1 bra L;", "unknown");
    index("mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %q1, %r1, %n; @%q1 bra L;", "0 0 0 0 0");
    index(
        "mov.u32 %r2, 0; mov.u32 %r1, 4; L: add.u32 %r2, %r2, 1; setp.lt.u32 %q1, %r2, %t; @%q1 bra L;",
        "0 0 0 0 0",
    );
    // Two ways out: lanes that part inside leave through one in this turn, and through the other in a later one.
    index(
        "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.eq.u32 %q1, %r1, %t; @%q1 bra A; setp.lt.u32 %q2, %r1, %n; @%q2 bra L; A:",
        "unknown",
    );
    // The same, with the difference behind the loop.
    index("mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; setp.eq.u32 %q1, %r2, %t; @%q1 bra A; setp.lt.u32 %q2, %r2, %n; @%q2 bra L;
        mov.u32 %r1, 4; bra.uni J; A: mov.u32 %r1, 8; J:", "unknown");
    // Lanes part, and only those of one arm come to the way out, which would have been the same for all.
    index("mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %q1, %t, 7; @%q1 bra B; setp.gt.u32 %q2, %r1, %n; @%q2 bra A;
        B: setp.lt.u32 %q3, %r1, 99; @%q3 bra L; A:", "unknown");
    // A test made inside of such a loop, and its branch behind it.
    index("mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.eq.u32 %q2, %r1, 3; setp.lt.u32 %q1, %r1, %t; @%q1 bra L;
        mov.u32 %r1, 4; @%q2 bra J; mov.u32 %r1, 8; J:", "unknown");
    // Each lane its own step.
    index(
        "mov.u32 %r1, 0; mov.u32 %r2, 0; L: add.u32 %r1, %r1, %t; add.u32 %r2, %r2, 1; setp.lt.u32 %q1, %r2, %n; @%q1 bra L;",
        "unknown",
    );
    // Lanes that part in a loop and meet behind it in other turns than they should: only by assumption.
    let parted =
        "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 4; setp.lt.u32 %q1, %t, 7; @%q1 bra B; mov.u32 %r2, 1; B:";
    let again = "setp.lt.u32 %q3, %r1, %n; cvt.u64.u32 %d1, %r1; add.u64 %d1, %p, %d1; ld.global.u32 %r3, [%d1]; @%q3 bra L;";
    check(&format!("{parted} {again}"), "0 0 0 0 0 joins");
    // With a barrier in each turn there is no need to assume.
    check(&format!("{parted} bar.sync 0; {again}"), "0 0 0 0 0");
    // `continue` in some lanes.
    check("mov.u32 %r1, 0; L: add.u32 %r1, %r1, 4; cvt.u64.u32 %d1, %r1; add.u64 %d1, %p, %d1; ld.global.u32 %r3, [%d1];
        setp.eq.u32 %q1, %r1, %t; @%q1 bra L; add.u32 %r1, %r1, 4; setp.lt.u32 %q2, %r1, %n; @%q2 bra L;", "unknown");
    // Lanes that part before a loop may come to it one after the other.
    check("setp.lt.u32 %q1, %t, 7; @%q1 bra B; mov.u32 %r2, 1; B: mov.u32 %r1, 0;
        L: add.u32 %r1, %r1, 4; setp.lt.u32 %q3, %r1, %n; cvt.u64.u32 %d1, %r1; add.u64 %d1, %p, %d1; ld.global.u32 %r3, [%d1]; @%q3 bra L;",
        "0 0 0 0 0 joins");
    // A loop in a loop, left by lanes one after the other.
    check("mov.u32 %r1, 0; O: mov.u32 %r2, 0; I: add.u32 %r2, %r2, 1; setp.lt.u32 %q1, %r2, %t; @%q1 bra I;
        add.u32 %r1, %r1, 4; setp.lt.u32 %q3, %r1, %n; cvt.u64.u32 %d1, %r1; add.u64 %d1, %p, %d1; ld.global.u32 %r3, [%d1]; @%q3 bra O;",
        "0 0 0 0 0 joins");
    // Into the middle of a loop: nothing is said of its turns.
    check("mov.u32 %r1, 0; setp.lt.u32 %q1, %n, 7; @%q1 bra M; L: add.u32 %r1, %r1, 4; M: add.u32 %r1, %r1, 4;
        setp.lt.u32 %q2, %r1, %t; cvt.u64.u32 %d1, %r1; add.u64 %d1, %p, %d1; ld.global.u32 %r3, [%d1]; @%q2 bra L;", "unknown");
}

#[test]
fn functions_and_calls() {
    let text = ".version 8.5 .target sm_90 .address_size 64
        .func f(.param .u64 a) { .reg .b64 %d<4>; .reg .b32 %r<4>; ld.param.u64 %d1, [a]; mov.u32 %r1, %laneid;
          ld.global.u32 %r2, [%d1]; mov.u64 %d2, v; mad.wide.u32 %d2, %r1, 8, %d2; ld.global.u32 %r2, [%d2]; ret; }
        .global .u64 v[32];";
    assert_eq!(draw(text, Conditions::ALL), ["unknown", "8 16 32 64 128"]);
    // Lanes come back from a call as they please.
    let text = format!(
        ".version 8.5 .target sm_90 .address_size 64
        .entry k(.param .u64 a, .param .u32 b, .param .u64 c) {{ {HEAD} call f; ld.global.u32 %r1, [%p];
          mad.wide.u32 %d1, %r1, 4, %p; ld.global.u32 %r1, [%d1]; ret; }}
        .func f() {{ ret; }}"
    );
    assert_eq!(draw(&text, Conditions::ALL), ["0 0 0 0 0", "indirect"]);
}

#[test]
fn names_that_are_other_names() {
    // A register of an inner scope, and one with a zero before its number.
    index("mov.u32 %r1, %t; { .reg .b32 %r1; mov.u32 %r1, %clock; }", "1 2 4 8 16 whole_rows");
    index("mov.u32 %r01, %t;", "1 2 4 8 16 whole_rows");
    // A special register that the kernel hides.
    index("{ .reg .b32 %ctaid; mov.u32 %ctaid, %clock; mov.u32 %r1, %ctaid; }", "unknown");
    // What no one knows may write whatever it names.
    index("mov.u32 %r1, %t; frobnicate.b32 %r2, %r1;", "unknown");
    // One register, written before and behind its use.
    index(
        "mov.u32 %r1, %t; mov.u32 %r2, %r1; mov.u32 %r1, %clock; mov.u32 %r1, %r2;",
        "1 2 4 8 16 whole_rows",
    );
}

#[test]
fn copies_and_atomics() {
    check(
        "mad.wide.u32 %d1, %t, 16, %p; cp.async.cg.shared.global [tile], [%d1], 16;",
        "16 32 64 128 256 whole_rows",
    );
    check("mad.wide.u32 %d1, %t, 4, %p; red.global.add.u32 [%d1], 1;", "4 8 16 32 64 whole_rows");
    check(
        "cvta.to.global.u64 %d1, %p; mad.wide.u32 %d1, %t, 4, %d1; st.v2.u32 [%d1], {%r1, %r2};",
        "4 8 16 32 64 whole_rows",
    );
}
