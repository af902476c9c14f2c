//! Bits, comparisons and selections: PTX ISA 9.0, sections 9.7.6 and 9.7.7 (comparison, selection), 9.7.8 (logic,
//! shifts).

use super::class::Class::{Compare, Logic};
use super::row::{Also, D_A, D_A_B, D_A_B_C, HALF, Out, Role, Row, also, computes};

const BF16: &[Also] = &[also(".bf16", 7, 8, 90), also(".bf16x2", 7, 8, 90)];
/// The form with a predicate: `lop3.or.b32 d|p, …`.
const LOP3_PREDICATE: &[Also] = &[also(".or", 8, 2, 70), also(".and", 8, 2, 70)];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    computes("set.f16", Compare, "9.7.7.1", D_A_B).out(Out::First).since(4, 2).on(53),
    computes("set.bf16", Compare, "9.7.7.1", D_A_B).out(Out::First).since(7, 8).on(90),
    computes("set", Compare, "9.7.7.1", D_A_B).typed(HALF).out(Out::First).since(4, 2).on(53).also(&[BF16]),
    computes("setp", Compare, "9.7.7.2", D_A_B).typed(HALF).out(Out::Is("pred")).since(4, 2).on(53).also(&[BF16]),
    computes("set", Compare, "9.7.6.1", D_A_B).out(Out::First),
    computes("setp", Compare, "9.7.6.2", D_A_B).out(Out::Is("pred")),
    computes("selp", Compare, "9.7.6.3", D_A_B_C),
    computes("slct", Compare, "9.7.6.4", D_A_B_C).out(Out::First),

    computes("and", Logic, "9.7.8.1", D_A_B),
    computes("or", Logic, "9.7.8.2", D_A_B),
    computes("xor", Logic, "9.7.8.3", D_A_B),
    computes("not", Logic, "9.7.8.4", D_A),
    computes("cnot", Logic, "9.7.8.5", D_A),
    computes("lop3", Logic, "9.7.8.6", &[Role::Out, Role::In, Role::In, Role::In, Role::In])
        .since(4, 3).on(50).also(&[LOP3_PREDICATE]),
    computes("shf", Logic, "9.7.8.7", D_A_B_C).since(3, 1).on(32),
    computes("shl", Logic, "9.7.8.8", D_A_B),
    computes("shr", Logic, "9.7.8.9", D_A_B),
];
