//! Loads, stores and what moves values: PTX ISA 9.0, section 9.7.9 without its asynchronous copies.

use super::class::Class::{Compare, Convert, Load, Move, Other, Prefetch, Reduce, Shuffle, Store};
use super::facts::Targets;
use super::row::Role::{Address, Bytes, Data, In, Mbarrier, Out as Written};
use super::row::{
    Also, BLACKWELL, D_A, D_A_B, D_A_B_C, HALF, Out, Row, Size, TENSOR_CORES, TENSOR_MAPS, also, arch,
    computes, only, row,
};

/// What the qualifiers of `ld`, `st`, `atom`, `red` need, whichever has them.
pub(super) const MEMORY: &[Also] = &[
    also(".relaxed", 6, 0, 70),
    also(".acquire", 6, 0, 70),
    also(".release", 6, 0, 70),
    also(".acq_rel", 6, 0, 70),
    also(".mmio", 8, 2, 70),
    also(".cluster", 7, 8, 90),
    also(".shared::cta", 7, 8, 30),
    also(".shared::cluster", 7, 8, 90),
    also(".param::entry", 8, 3, 10),
    also(".param::func", 8, 3, 10),
    also(".L1::evict_normal", 7, 4, 70),
    also(".L1::evict_unchanged", 7, 4, 70),
    also(".L1::evict_first", 7, 4, 70),
    also(".L1::evict_last", 7, 4, 70),
    also(".L1::no_allocate", 7, 4, 70),
    also(".L2::cache_hint", 7, 4, 80),
    also(".L2::64B", 7, 4, 75),
    also(".L2::128B", 7, 4, 75),
    also(".L2::256B", 7, 4, 80),
];

/// 128 bits in one register, 256 in one access.
const WIDE: &[Also] = &[
    also(".b128", 8, 3, 70),
    also(".v8", 8, 8, 100),
    also(".v4.b64", 8, 8, 100),
    also(".v4.u64", 8, 8, 100),
    also(".v4.s64", 8, 8, 100),
    also(".v4.f64", 8, 8, 100),
];

const MULTIMEM: &[Also] = &[
    only(".e4m3", 8, 6, TENSOR_CORES),
    only(".e4m3x2", 8, 6, TENSOR_CORES),
    only(".e4m3x4", 8, 6, TENSOR_CORES),
    only(".e5m2", 8, 6, TENSOR_CORES),
    only(".e5m2x2", 8, 6, TENSOR_CORES),
    only(".e5m2x4", 8, 6, TENSOR_CORES),
    only(".acc::f16", 8, 6, TENSOR_CORES),
];

/// Formats of 8 bits. `sm_90` had them from 7.8 already.
const F8: &[Also] = &[also(".e4m3x2", 8, 1, 89), also(".e5m2x2", 8, 1, 89)];
/// Smaller ones, and the scales.
const F6: &[Also] = &[
    only(".e2m1x2", 8, 6, BLACKWELL),
    only(".e2m3x2", 8, 6, BLACKWELL),
    only(".e3m2x2", 8, 6, BLACKWELL),
    only(".ue8m0x2", 8, 6, BLACKWELL),
];
/// Stochastic rounding.
const STOCHASTIC: &[Also] = &[only(".rs", 8, 7, Targets::Listed(&[arch(100, 'a'), arch(103, 'a')]))];
/// Conversions from and to the formats of `sm_80`.
const CVT: &[Also] = &[
    also(".relu", 7, 0, 80),
    also(".bf16", 7, 0, 80),
    also(".f16x2.f32", 7, 0, 80),
    also(".bf16x2", 7, 0, 80),
    also(".tf32", 7, 0, 80),
    also(".tf32.rn", 7, 8, 90),
    also(".tf32.rz", 7, 8, 90),
    also(".satfinite.f16", 8, 1, 10),
    also(".satfinite.tf32", 8, 1, 80),
    // The other side of `.bf16` was `.f32` alone at first.
    also(".bf16.f16", 7, 8, 90),
    also(".bf16.f64", 7, 8, 90),
    also(".bf16.u8", 7, 8, 90),
    also(".bf16.u16", 7, 8, 90),
    also(".bf16.u32", 7, 8, 90),
    also(".bf16.u64", 7, 8, 90),
    also(".bf16.s8", 7, 8, 90),
    also(".bf16.s16", 7, 8, 90),
    also(".bf16.s32", 7, 8, 90),
    also(".bf16.s64", 7, 8, 90),
];

const SPACES_OF_CLUSTERS: &[Also] = &[
    also(".shared::cta", 7, 8, 30),
    also(".shared::cluster", 7, 8, 90),
    also(".param", 7, 7, 70),
    also(".param::entry", 8, 3, 70),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    computes("mov", Move, "9.7.9.3", D_A).also(&[&[also(".b128", 8, 3, 70)]]),
    computes("shfl.sync", Shuffle, "9.7.9.6", &[Written, In, In, In, In]).since(6, 0).on(30),
    computes("shfl", Shuffle, "9.7.9.5", D_A_B_C).since(3, 0).on(30),
    computes("prmt", Move, "9.7.9.7", D_A_B_C).since(2, 0).on(20),

    row("ld.nc", Load, "9.7.9.9", &[Written, Address]).size(Size::Memory).out(Out::Last)
        .since(3, 1).on(32).also(&[MEMORY, WIDE]),
    row("ld", Load, "9.7.9.8", &[Written, Address]).size(Size::Memory).out(Out::Last).also(&[MEMORY, WIDE]),
    row("ldu", Load, "9.7.9.10", &[Written, Address]).size(Size::Memory).out(Out::Last).since(2, 0).on(20)
        .also(&[WIDE]),
    row("st.async", Store, "9.7.9.12", &[Address, Data, Mbarrier]).size(Size::Memory).since(8, 1).on(90)
        .also(&[&[also(".release", 8, 7, 100), also(".mmio", 8, 7, 100), also(".global", 8, 7, 100), also(".b128", 9, 2, 90)]]),
    // It fills memory with zeros, and has no element.
    row("st.bulk", Store, "9.7.9.13", &[Address, Bytes, Data]).since(8, 6).on(100),
    row("st", Store, "9.7.9.11", &[Address, Data]).size(Size::Memory).also(&[MEMORY, WIDE]),

    row("multimem.ld_reduce", Load, "9.7.9.14", &[Written, Address]).size(Size::Memory).out(Out::Last)
        .since(8, 1).on(90).also(&[MULTIMEM]),
    row("multimem.st", Store, "9.7.9.14", &[Address, Data]).size(Size::Memory).since(8, 1).on(90)
        .also(&[MULTIMEM]),
    row("multimem.red", Reduce, "9.7.9.14", &[Address, Data]).size(Size::Memory).since(8, 1).on(90)
        .also(&[MULTIMEM]),

    row("prefetch.tensormap", Prefetch, "9.7.9.15", &[Address]).since(8, 0).on(90),
    row("prefetch", Prefetch, "9.7.9.15", &[Address]).since(2, 0).on(20)
        .also(&[&[also(".L2::evict_last", 7, 4, 80), also(".L2::evict_normal", 7, 4, 80), also(".valid_addr", 9, 4, 90)]]),
    row("prefetchu", Prefetch, "9.7.9.15", &[Address]).since(2, 0).on(20),
    row("applypriority", Prefetch, "9.7.9.16", &[Address, Bytes]).since(7, 4).on(80),
    row("discard", Prefetch, "9.7.9.17", &[Address, Bytes]).since(7, 4).on(80),
    row("createpolicy.range", Other, "9.7.9.18", D_A_B_C).out(Out::Is("b64")).since(7, 4).on(80),
    row("createpolicy", Other, "9.7.9.18", D_A).out(Out::Is("b64")).since(7, 4).on(80),

    row("isspacep", Compare, "9.7.9.19", D_A).out(Out::Is("pred")).since(2, 0).on(20)
        .also(&[SPACES_OF_CLUSTERS, &[also(".const", 3, 1, 30)]]),
    computes("cvta", Convert, "9.7.9.20", D_A).since(2, 0).on(20)
        .also(&[SPACES_OF_CLUSTERS, &[also(".const", 3, 1, 20)]]),
    computes("cvt.pack", Convert, "9.7.9.22", D_A_B).out(Out::Is("b32")).since(6, 5).on(72)
        .also(&[&[also(".u4", 6, 5, 75), also(".s4", 6, 5, 75), also(".u2", 6, 5, 75), also(".s2", 6, 5, 75)]]),
    computes("cvt.f32.bf16", Convert, "9.7.9.21", D_A).typed(HALF).size(Size::First).out(Out::First).since(7, 1).on(80),
    computes("cvt", Convert, "9.7.9.21", D_A).size(Size::First).out(Out::First)
        .also(&[CVT, F8, F6, STOCHASTIC]),
    computes("mapa", Move, "9.7.9.23", D_A_B).since(7, 8).on(90),
    computes("getctarank", Move, "9.7.9.24", D_A).out(Out::Is("u32")).since(7, 8).on(90),

    row("tensormap.replace", Other, "9.7.9.26", &[Address, In, In]).since(8, 3).only_on(TENSOR_MAPS),
    row("movmatrix", Shuffle, "9.7.14.5.17", D_A).size(Size::Typed).out(Out::Is("b32")).since(7, 8).on(75),
];
