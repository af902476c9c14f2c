//! Integers: PTX ISA 9.0, sections 9.7.1 (arithmetic), 9.7.2 (extended precision), 9.7.18 (video).

use super::class::Class::Int;
use super::facts::Targets;
use super::row::{Also, BITS, D_A, D_A_B, D_A_B_C, INTEGER, Out, Row, also, arch, computes, only};

/// Pairs of 16 bits, and clamping of negative results.
const PAIRS: &[Also] = &[also(".u16x2", 8, 0, 90), also(".s16x2", 8, 0, 90), also(".relu", 8, 0, 90)];
/// Sums that stay within their type.
const SATURATED: &[Also] =
    &[only(".sat.u16x2", 9, 2, PACKED), only(".sat.s16x2", 9, 2, PACKED), only(".sat.u32", 9, 2, PACKED)];
/// Four of 8 bits.
const QUADS: &[Also] = &[only(".u8x4", 9, 2, PACKED), only(".s8x4", 9, 2, PACKED)];
/// Graphics and what followed data-centre Blackwell.
const PACKED: Targets = Targets::Listed(&[arch(120, 'f'), arch(107, 'f')]);
/// 64 bits of a carry chain came later than 32.
const WIDE_CARRY: &[Also] = &[also(".u64", 4, 3, 20), also(".s64", 4, 3, 20)];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    computes("add.cc", Int, "9.7.2.1", D_A_B).since(1, 2).also(&[WIDE_CARRY]),
    computes("addc", Int, "9.7.2.2", D_A_B).since(1, 2).also(&[WIDE_CARRY]),
    computes("sub.cc", Int, "9.7.2.3", D_A_B).since(1, 2).also(&[WIDE_CARRY]),
    computes("subc", Int, "9.7.2.4", D_A_B).since(3, 0).also(&[WIDE_CARRY]),
    computes("mad.cc", Int, "9.7.2.5", D_A_B_C).since(3, 0).on(20).also(&[WIDE_CARRY]),
    computes("madc", Int, "9.7.2.6", D_A_B_C).since(3, 0).on(20).also(&[WIDE_CARRY]),

    computes("add", Int, "9.7.1.1", D_A_B).typed(INTEGER).also(&[PAIRS, QUADS, SATURATED]),
    computes("sub", Int, "9.7.1.2", D_A_B).typed(INTEGER).also(&[QUADS]),
    computes("mul", Int, "9.7.1.3", D_A_B).typed(INTEGER).out(Out::MaybeWide),
    computes("mad", Int, "9.7.1.4", D_A_B_C).typed(INTEGER).out(Out::MaybeWide),
    computes("mul24", Int, "9.7.1.5", D_A_B),
    computes("mad24", Int, "9.7.1.6", D_A_B_C),
    computes("sad", Int, "9.7.1.7", D_A_B_C),
    computes("div", Int, "9.7.1.8", D_A_B).typed(INTEGER),
    computes("rem", Int, "9.7.1.9", D_A_B),
    computes("abs", Int, "9.7.1.10", D_A).typed(INTEGER),
    computes("neg", Int, "9.7.1.11", D_A).typed(INTEGER).also(&[QUADS]),
    computes("min", Int, "9.7.1.12", D_A_B).typed(INTEGER).also(&[PAIRS, QUADS]),
    computes("max", Int, "9.7.1.13", D_A_B).typed(INTEGER).also(&[PAIRS, QUADS]),
    computes("popc", Int, "9.7.1.14", D_A).out(Out::Is("u32")).since(2, 0).on(20),
    computes("clz", Int, "9.7.1.15", D_A).out(Out::Is("u32")).since(2, 0).on(20),
    computes("bfind", Int, "9.7.1.16", D_A).out(Out::Is("u32")).since(2, 0).on(20),
    computes("fns", Int, "9.7.1.17", D_A_B_C).since(6, 0).on(30),
    computes("brev", Int, "9.7.1.18", D_A).since(2, 0).on(20),
    computes("bfe", Int, "9.7.1.19", D_A_B_C).since(2, 0).on(20),
    computes("bfi", Int, "9.7.1.20", D_A_B_C).since(2, 0).on(20),
    computes("szext", Int, "9.7.1.21", D_A_B).since(7, 6).on(70),
    computes("bmsk", Int, "9.7.1.22", D_A_B).typed(BITS).since(7, 6).on(70),
    // The result is signed if one of the factors is: the text has it only between the lines.
    computes("dp4a", Int, "9.7.1.23", D_A_B_C).out(Out::Is("b32")).since(5, 0).on(61),
    computes("dp2a", Int, "9.7.1.24", D_A_B_C).out(Out::Is("b32")).since(5, 0).on(61),

    computes("vadd", Int, "9.7.18.1.1", D_A_B).out(Out::First).since(2, 0).on(20),
    computes("vsub", Int, "9.7.18.1.1", D_A_B).out(Out::First).since(2, 0).on(20),
    computes("vabsdiff", Int, "9.7.18.1.1", D_A_B).out(Out::First).since(2, 0).on(20),
    computes("vmin", Int, "9.7.18.1.1", D_A_B).out(Out::First).since(2, 0).on(20),
    computes("vmax", Int, "9.7.18.1.1", D_A_B).out(Out::First).since(2, 0).on(20),
    computes("vshl", Int, "9.7.18.1.2", D_A_B).out(Out::First).since(2, 0).on(20),
    computes("vshr", Int, "9.7.18.1.2", D_A_B).out(Out::First).since(2, 0).on(20),
    computes("vmad", Int, "9.7.18.1.3", D_A_B_C).out(Out::First).since(2, 0).on(20),
    computes("vset", Int, "9.7.18.1.4", D_A_B).out(Out::Is("u32")).since(2, 0).on(20),
    computes("vadd2", Int, "9.7.18.2.1", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vsub2", Int, "9.7.18.2.1", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vavrg2", Int, "9.7.18.2.1", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vabsdiff2", Int, "9.7.18.2.1", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vmin2", Int, "9.7.18.2.1", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vmax2", Int, "9.7.18.2.1", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vset2", Int, "9.7.18.2.2", D_A_B_C).out(Out::Is("u32")).since(3, 0).on(30),
    computes("vadd4", Int, "9.7.18.2.3", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vsub4", Int, "9.7.18.2.3", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vavrg4", Int, "9.7.18.2.3", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vabsdiff4", Int, "9.7.18.2.3", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vmin4", Int, "9.7.18.2.3", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vmax4", Int, "9.7.18.2.3", D_A_B_C).out(Out::First).since(3, 0).on(30),
    computes("vset4", Int, "9.7.18.2.4", D_A_B_C).out(Out::Is("u32")).since(3, 0).on(30),
];
