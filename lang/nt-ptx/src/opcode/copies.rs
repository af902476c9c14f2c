//! Asynchronous copies and what ends them: PTX ISA 9.0, section 9.7.9.25, and the copy of a tensor map (9.7.13.16).
//!
//! How a bulk copy completes stands in its text (`.bulk_group`, `.mbarrier::complete_tx::bytes`), not here.

use super::class::Class::{AsyncCopy, BulkCopy, Commit, Fence, Mbarrier as Mbar, Prefetch, TensorCopy, Wait};
use super::facts::{Completion, Trait};
use super::row::Role::{Address, Bytes, CopySize, Dst, In, Mbarrier, Src, Tensor};
use super::row::{Also, Row, TENSOR_CORES, also, only, row};

const CP_ASYNC: &[Also] = &[
    also(".shared::cta", 7, 8, 80),
    also(".L2::cache_hint", 7, 4, 80),
    also(".L2::64B", 7, 4, 80),
    also(".L2::128B", 7, 4, 80),
    also(".L2::256B", 7, 4, 80),
];
/// Into the block's own shared memory, without a detour by the cluster's window, and with a mask of bytes.
const BULK: &[Also] = &[
    also(".shared::cta.mbarrier::complete_tx::bytes.global", 8, 6, 90),
    also(".cp_mask", 8, 6, 100),
    also(".ignore_oob", 9, 2, 90),
];
const TENSORS: &[Also] = &[
    also(".shared::cta.mbarrier::complete_tx::bytes.global", 8, 6, 90),
    only(".cta_group::1", 8, 6, TENSOR_CORES),
    only(".cta_group::2", 8, 6, TENSOR_CORES),
    also(".im2col::w", 8, 6, 100),
    only(".im2col::w::128", 8, 6, TENSOR_CORES),
    only(".tile::scatter4", 8, 6, TENSOR_CORES),
    only(".tile::gather4.shared::cluster", 8, 6, TENSOR_CORES),
    also(".tile::gather4", 8, 6, 100),
];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("cp.reduce.async.bulk.tensor", TensorCopy, "9.7.9.25.5.3", &[Tensor, Src]).since(8, 0).on(90),
    row("cp.reduce.async.bulk.bulk_group", BulkCopy, "9.7.9.25.4.2", &[Dst, Src, Bytes]).since(8, 0).on(90),
    row("cp.reduce.async.bulk", BulkCopy, "9.7.9.25.4.2", &[Dst, Src, Bytes, Mbarrier]).since(8, 0).on(90),

    row("cp.async.bulk.commit_group", Commit, "9.7.9.25.6.1", &[]).since(8, 0).on(90),
    row("cp.async.bulk.wait_group", Wait, "9.7.9.25.6.2", &[In]).since(8, 0).on(90).awaits(Completion::BulkGroup)
        .also(&[&[also(".sync_restrict::proxy::async", 9, 5, 90)]]),
    row("cp.async.bulk.prefetch.tensor", Prefetch, "9.7.9.25.5.4", &[Tensor]).since(8, 0).on(90)
        .also(&[TENSORS, &[only(".tile::gather4", 8, 6, TENSOR_CORES)]]),
    row("cp.async.bulk.prefetch", Prefetch, "9.7.9.25.4.3", &[Address, Bytes]).since(8, 0).on(90),
    // From global memory the tensor comes second, into it first; the rest is alike.
    row("cp.async.bulk.tensor.bulk_group", TensorCopy, "9.7.9.25.5.2", &[Tensor, Src]).since(8, 0).on(90)
        .also(&[TENSORS]),
    row("cp.async.bulk.tensor", TensorCopy, "9.7.9.25.5.2", &[Dst, Tensor, Mbarrier]).since(8, 0).on(90)
        .also(&[TENSORS]),
    row("cp.async.bulk.bulk_group", BulkCopy, "9.7.9.25.4.1", &[Dst, Src, Bytes]).since(8, 0).on(90).also(&[BULK]),
    row("cp.async.bulk", BulkCopy, "9.7.9.25.4.1", &[Dst, Src, Bytes, Mbarrier]).since(8, 0).on(90).also(&[BULK]),

    row("cp.async.commit_group", Commit, "9.7.9.25.3.2", &[]).since(7, 0).on(80),
    row("cp.async.wait_group", Wait, "9.7.9.25.3.3", &[In]).since(7, 0).on(80).awaits(Completion::CopyGroup),
    row("cp.async.wait_all", Wait, "9.7.9.25.3.3", &[]).since(7, 0).on(80).awaits(Completion::CopyGroup),
    row("cp.async.mbarrier.arrive", Mbar, "9.7.13.15.15", &[Address]).since(7, 0).on(80)
        .completes(Completion::Mbarrier).is(Trait::Arrive).also(&[CP_ASYNC]),
    row("cp.async", AsyncCopy, "9.7.9.25.3.1", &[Dst, Src, CopySize, In]).since(7, 0).on(80)
        .completes(Completion::CopyGroup).also(&[CP_ASYNC]),

    row("tensormap.cp_fenceproxy", Fence, "9.7.13.16", &[Dst, Src, Bytes]).since(8, 3).on(90),
];
