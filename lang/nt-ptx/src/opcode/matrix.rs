//! Matrices of a warp and of a warpgroup: PTX ISA 9.0, sections 9.7.14 and 9.7.15.
//!
//! The text holds the shape, so that multiply-adds follow from it. Fragments are whole operands: `{a, b, c, d}`.

use super::class::Class::{Commit, Fence, Load, Mma, Store, Wait};
use super::facts::{Completion, Trait};
use super::row::Role::{Address, Data, In, Out as Written, OutIn};
use super::row::{Also, BLACKWELL, CONSUMER, HOPPER, Out, Row, Size, also, only, row};

/// 8 bits and less came with Blackwell.
const SMALL_MATRICES: &[Also] =
    &[also(".shared::cta", 7, 8, 75), only(".b8", 8, 6, BLACKWELL), only(".b8x16", 8, 6, BLACKWELL)];

const FRAGMENTS: &[Also] = &[
    also(".shared::cta", 7, 8, 70),
    also(".m8n32k16", 6, 1, 70),
    also(".m32n8k16", 6, 1, 70),
    also(".s8", 6, 3, 72),
    also(".u8", 6, 3, 72),
    also(".s4", 6, 3, 75),
    also(".u4", 6, 3, 75),
    also(".b1", 6, 3, 75),
    also(".m8n8k32", 6, 3, 75),
    also(".m8n8k128", 6, 3, 75),
    also(".bf16", 7, 0, 80),
    also(".tf32", 7, 0, 80),
    also(".f64", 7, 0, 80),
    also(".and.popc", 7, 1, 80),
];

const FACTORS: &[Also] = &[
    also(".f16.m16n8k8", 6, 5, 75),
    also(".m8n8k16", 6, 5, 75),
    also(".m8n8k32", 6, 5, 75),
    also(".m8n8k128", 7, 0, 75),
    also(".m16n8k16", 7, 0, 80),
    also(".m16n8k32", 7, 0, 80),
    also(".m16n8k64", 7, 0, 80),
    also(".m16n8k128", 7, 0, 80),
    also(".m16n8k256", 7, 0, 80),
    also(".bf16", 7, 0, 80),
    also(".tf32", 7, 0, 80),
    also(".f64", 7, 0, 80),
    also(".f64.m16n8k4", 7, 8, 90),
    also(".f64.m16n8k8", 7, 8, 90),
    also(".f64.m16n8k16", 7, 8, 90),
    also(".and.popc", 7, 1, 80),
    also(".e4m3", 8, 4, 89),
    also(".e5m2", 8, 4, 89),
    also(".e4m3.m16n8k16", 8, 7, 89),
    also(".e5m2.m16n8k16", 8, 7, 89),
    only(".kind::f8f6f4", 8, 7, CONSUMER),
    only(".kind::mxf8f6f4", 8, 7, CONSUMER),
    only(".kind::mxf4", 8, 7, CONSUMER),
    only(".kind::mxf4nvf4", 8, 7, CONSUMER),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("ldmatrix", Load, "9.7.14.5.15", &[Written, Address]).size(Size::Matrix).out(Out::Is("b32"))
        .is(Trait::Matrix).since(6, 5).on(75).also(&[SMALL_MATRICES]),
    row("stmatrix", Store, "9.7.14.5.16", &[Address, Data]).size(Size::Matrix).is(Trait::Matrix)
        .since(7, 8).on(90).also(&[SMALL_MATRICES]),
    // All lanes give the same address, that of the matrix.
    row("wmma.load", Load, "9.7.14.4.3", &[Written, Address, In]).size(Size::Fragment).is(Trait::Matrix)
        .since(6, 0).on(70).also(&[FRAGMENTS]),
    row("wmma.store", Store, "9.7.14.4.4", &[Address, Data, In]).size(Size::Fragment).is(Trait::Matrix)
        .since(6, 0).on(70).also(&[FRAGMENTS]),
    row("wmma.mma", Mma, "9.7.14.4.5", &[Written, In, In, In]).size(Size::Shape).out(Out::First)
        .since(6, 0).on(70).also(&[FRAGMENTS]),
    row("mma.sp::ordered_metadata", Mma, "9.7.14.6.3", &[Written, In, In, In, In, In]).size(Size::Shape)
        .out(Out::First).since(8, 5).on(80).also(&[FACTORS]),
    row("mma.sp", Mma, "9.7.14.6.3", &[Written, In, In, In, In, In]).size(Size::Shape).out(Out::First)
        .since(7, 1).on(80).also(&[FACTORS]),
    row("mma", Mma, "9.7.14.5.14", &[Written, In, In, In]).size(Size::Shape).out(Out::First)
        .since(6, 4).on(70).also(&[FACTORS]),

    row("wgmma.mma_async.sp", Mma, "9.7.15.6.3", &[OutIn]).size(Size::WarpgroupShape).out(Out::First)
        .completes(Completion::MatrixGroup).since(8, 2).only_on(HOPPER),
    row("wgmma.mma_async", Mma, "9.7.15.5.2", &[OutIn]).size(Size::WarpgroupShape).out(Out::First)
        .completes(Completion::MatrixGroup).since(8, 0).only_on(HOPPER),
    row("wgmma.fence", Fence, "9.7.15.7.1", &[]).since(8, 0).only_on(HOPPER),
    row("wgmma.commit_group", Commit, "9.7.15.7.2", &[]).since(8, 0).only_on(HOPPER),
    row("wgmma.wait_group", Wait, "9.7.15.7.3", &[In]).since(8, 0).only_on(HOPPER)
        .awaits(Completion::MatrixGroup),
];
