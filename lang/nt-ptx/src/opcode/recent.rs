//! Instructions that came after the manual which the other files follow: PTX 9.1 to 9.5, CUDA 13.1 to 13.5.
//!
//! Sections are those of the manual that brought the instruction. Forms and targets are what ptxas 13.5 takes. Rows of
//! older instructions have what is new in them beside them, in their own files.
//!
//! What `fabric` instructions name by an endpoint and an offset is memory of another GPU: global, and without an address.

use super::class::Class::{
    BulkCopy, Commit, Convert, Int, Mbarrier as Mbar, Other, Prefetch, Reduce, Store, Wait,
};
use super::facts::{Completion, Space, Targets};
use super::row::Role::{Address, Bytes, Data, Dst, In, Mbarrier, Out as Written, Src, Tensor};
use super::row::{D_A, D_A_B_C, Out, Row, Size, TENSOR_MAPS, also, arch, computes, row};

const RUBIN: Targets = Targets::Listed(&[arch(107, 'f')]);
const RUBIN_ALONE: Targets = Targets::Listed(&[arch(107, 'a')]);

/// From shared memory to another GPU.
const fn put(name: &'static str, section: &'static str) -> Row {
    row(name, BulkCopy, section, &[In, Src, Bytes, Mbarrier])
        .since(9, 3)
        .on(100)
        .space(Space::Global)
        .other_space(Space::Shared)
        .completes(Completion::Mbarrier)
}

/// From another GPU to shared memory.
const fn get(name: &'static str, section: &'static str) -> Row {
    row(name, BulkCopy, section, &[Dst, In, Bytes, Mbarrier])
        .since(9, 3)
        .on(100)
        .space(Space::Shared)
        .other_space(Space::Global)
        .completes(Completion::Mbarrier)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // 9.1
    row("multimem.cp.async.bulk", BulkCopy, "9.7.9.26", &[Dst, Src, Bytes]).since(9, 1).on(90)
        .also(&[&[also(".cp_mask", 9, 1, 100)]]),
    row("multimem.cp.reduce.async.bulk", BulkCopy, "9.7.9.27", &[Dst, Src, Bytes]).since(9, 1).on(90),

    // 9.3
    computes("clmad", Int, "9.7.1.5", D_A_B_C).since(9, 3).on(80),
    row("multimem.st.async", Store, "9.7.9.13", &[Address, Data]).size(Size::Memory).since(9, 3).on(100),
    row("multimem.red.async", Reduce, "9.7.14.8", &[Address, Data]).size(Size::Memory).since(9, 3).on(100),
    row("mbarrier.check_layout", Mbar, "9.7.14.16.21", D_A).out(Out::Is("pred")).since(9, 3).on(90),
    get("fabric.try_get", "9.7.10.5.1"),
    put("fabric.try_put", "9.7.10.5.2"),
    put("fabric.try_red", "9.7.10.5.3"),
    get("fabric.try_pullred", "9.7.10.5.4"),
    row("fabric.submit", Commit, "9.7.10.5.5", &[]).since(9, 3).on(100)
        .also(&[&[also(".commit_group", 9, 5, 100)]]),
    row("fabric.wait", Wait, "9.7.10.5.6", &[In]).since(9, 3).on(100)
        .also(&[&[also(".sync_restrict::read", 9, 5, 100)]]),

    // 9.4
    row("applypriority.async.bulk.tensor", Prefetch, "9.7.10.19", &[Tensor]).since(9, 4).only_on(RUBIN),
    row("applypriority.async.bulk", Prefetch, "9.7.10.18", &[Address, Bytes]).since(9, 4).only_on(RUBIN),
    row("spcompress", Convert, "9.7.10.30", &[Written, Written, In, In]).since(9, 4).only_on(RUBIN_ALONE),
    row("spdecompress", Convert, "9.7.10.31", &[Written, In, In]).since(9, 4).only_on(RUBIN_ALONE),

    // 9.5, whose manual was not to be had: as ptxas takes it.
    row("tensormap.query.alloc_class_large", Other, "9.7", &[Written, Address]).out(Out::Is("pred")).since(9, 5)
        .only_on(TENSOR_MAPS),
];
