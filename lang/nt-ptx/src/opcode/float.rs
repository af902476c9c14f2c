//! Floating point: PTX ISA 9.0, sections 9.7.3 (single and double), 9.7.4 (half), 9.7.5 (mixed precision).
//!
//! What the special function units compute (`rcp`, `sin`, `ex2`, …) is a class of its own, whatever its precision.

use super::class::Class::{Compare, Float, Sfu};
use super::row::{Also, D_A, D_A_B, D_A_B_C, FLOAT, HALF, Out, Row, also, computes};

/// Single precision in pairs.
const PAIRS: &[Also] = &[also(".f32x2", 8, 6, 100)];
/// `.bf16` came to these instructions with `sm_90`, after `fma`, `min` and `max` had it.
const BF16_LATE: &[Also] = &[also(".bf16", 7, 8, 90), also(".bf16x2", 7, 8, 90)];
/// `.bf16` from `sm_80`.
const BF16: &[Also] = &[also(".bf16", 7, 0, 80), also(".bf16x2", 7, 0, 80)];
const HALF_FMA: &[Also] = &[also(".relu", 7, 0, 80), also(".oob", 8, 1, 90)];
/// NaN that stays, and the sign of the product.
const NAN: &[Also] = &[also(".NaN", 7, 0, 80), also(".xorsign.abs", 7, 2, 86)];
/// Angles in turns instead of radians.
const CYCLES: &[Also] = &[also(".2pi", 9, 5, 75)];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Mixed precision names two types, so these stand before all that names one.
    computes("add.f32.f16", Float, "9.7.5.1", D_A_B).out(Out::First).since(8, 6).on(100),
    computes("add.f32.bf16", Float, "9.7.5.1", D_A_B).out(Out::First).since(8, 6).on(100),
    computes("sub.f32.f16", Float, "9.7.5.2", D_A_B).out(Out::First).since(8, 6).on(100),
    computes("sub.f32.bf16", Float, "9.7.5.2", D_A_B).out(Out::First).since(8, 6).on(100),
    computes("fma.f32.f16", Float, "9.7.5.3", D_A_B_C).out(Out::First).since(8, 6).on(100),
    computes("fma.f32.bf16", Float, "9.7.5.3", D_A_B_C).out(Out::First).since(8, 6).on(100),

    computes("testp", Compare, "9.7.3.1", D_A).out(Out::Is("pred")).since(2, 0).on(20),
    computes("copysign", Float, "9.7.3.2", D_A_B).since(2, 0).on(20),
    computes("add", Float, "9.7.3.3", D_A_B).typed(FLOAT).also(&[PAIRS]),
    computes("sub", Float, "9.7.3.4", D_A_B).typed(FLOAT).also(&[PAIRS]),
    computes("mul", Float, "9.7.3.5", D_A_B).typed(FLOAT).also(&[PAIRS]),
    computes("fma", Float, "9.7.3.6", D_A_B_C).typed(FLOAT).since(1, 4).on(13).also(&[PAIRS]),
    computes("mad", Float, "9.7.3.7", D_A_B_C).typed(FLOAT),
    computes("div", Float, "9.7.3.8", D_A_B).typed(FLOAT),
    computes("abs", Float, "9.7.3.9", D_A).typed(FLOAT),
    computes("neg", Float, "9.7.3.10", D_A).typed(FLOAT),
    computes("min", Float, "9.7.3.11", D_A_B_C).typed(FLOAT).operands(4).since(8, 8).on(100),
    computes("max", Float, "9.7.3.12", D_A_B_C).typed(FLOAT).operands(4).since(8, 8).on(100),
    computes("min", Float, "9.7.3.11", D_A_B).typed(FLOAT).also(&[NAN]),
    computes("max", Float, "9.7.3.12", D_A_B).typed(FLOAT).also(&[NAN]),
    computes("rcp.approx.ftz.f64", Sfu, "9.7.3.14", D_A).since(2, 1).on(20),
    computes("rcp", Sfu, "9.7.3.13", D_A),
    computes("sqrt", Sfu, "9.7.3.15", D_A),
    computes("rsqrt.approx.ftz.f64", Sfu, "9.7.3.17", D_A).since(4, 0).on(20),
    computes("rsqrt", Sfu, "9.7.3.16", D_A),
    computes("sin", Sfu, "9.7.3.18", D_A).also(&[CYCLES]),
    computes("cos", Sfu, "9.7.3.19", D_A).also(&[CYCLES]),
    computes("lg2", Sfu, "9.7.3.20", D_A),
    computes("ex2", Sfu, "9.7.3.21", D_A).typed(FLOAT),
    computes("tanh", Sfu, "9.7.3.22", D_A).typed(FLOAT).since(7, 0).on(75),

    computes("add", Float, "9.7.4.1", D_A_B).typed(HALF).since(4, 2).on(53).also(&[BF16_LATE]),
    computes("sub", Float, "9.7.4.2", D_A_B).typed(HALF).since(4, 2).on(53).also(&[BF16_LATE]),
    computes("mul", Float, "9.7.4.3", D_A_B).typed(HALF).since(4, 2).on(53).also(&[BF16_LATE]),
    computes("fma", Float, "9.7.4.4", D_A_B_C).typed(HALF).since(4, 2).on(53).also(&[BF16, HALF_FMA]),
    computes("neg", Float, "9.7.4.5", D_A).typed(HALF).since(6, 0).on(53).also(&[BF16]),
    computes("abs", Float, "9.7.4.6", D_A).typed(HALF).since(6, 5).on(53).also(&[BF16]),
    computes("min", Float, "9.7.4.7", D_A_B).typed(HALF).since(7, 0).on(80).also(&[NAN]),
    computes("max", Float, "9.7.4.8", D_A_B).typed(HALF).since(7, 0).on(80).also(&[NAN]),
    computes("tanh", Sfu, "9.7.4.9", D_A).typed(HALF).since(7, 0).on(75).also(&[BF16_LATE]),
    computes("ex2", Sfu, "9.7.4.10", D_A).typed(HALF).since(7, 0).on(75).also(&[BF16_LATE]),
];
