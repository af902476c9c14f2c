//! Barriers, fences, atomics and what asks all lanes: PTX ISA 9.0, section 9.7.13.

use super::class::Class::{Atomic, Barrier, Fence, Mbarrier as Mbar, Other, Reduce, Vote, Wait};
use super::data_movement::MEMORY;
use super::facts::{Completion, Trait};
use super::row::Role::{Address, Bytes, Data, In, Mbarrier, Out as Written};
use super::row::{Also, BLACKWELL, D_A, D_A_B, Out, Row, Size, also, computes, only, row};

const BARRIER: &[Also] = &[also(".cta", 7, 8, 10)];

const ATOMICS: &[Also] = &[
    also(".cta", 5, 0, 60),
    also(".gpu", 5, 0, 60),
    also(".sys", 5, 0, 60),
    also(".add.f64", 5, 0, 60),
    also(".f16x2", 6, 2, 60),
    also(".f16", 6, 3, 70),
    also(".b16", 6, 3, 70),
    also(".bf16", 7, 8, 90),
    also(".bf16x2", 7, 8, 90),
    also(".v2", 8, 1, 90),
    also(".v4", 8, 1, 90),
    also(".v8", 8, 1, 90),
    also(".b128", 8, 3, 90),
    also(".noftz.f32", 9, 4, 90),
];

const FENCES: &[Also] = &[
    also(".acquire", 8, 6, 90),
    also(".release", 8, 6, 90),
    also(".cluster", 7, 8, 90),
    also(".alias", 9, 5, 90),
];

const MBARRIERS: &[Also] = &[
    also(".shared::cta", 7, 8, 80),
    also(".shared::cluster", 8, 0, 90),
    also(".cluster", 8, 0, 90),
    also(".relaxed", 8, 6, 90),
    also(".release", 8, 0, 80),
    also(".acquire", 8, 0, 80),
    also(".layout::v0", 9, 3, 90),
    also(".layout::v1", 9, 3, 90),
    also(".phase_type::primary", 9, 3, 90),
];
/// A wait by parity instead of by state.
const PARITY: &[Also] = &[also(".parity", 7, 1, 80)];

/// Cancelling the launch of other clusters.
const MULTICAST: &[Also] = &[only(".multicast::cluster::all", 8, 6, BLACKWELL)];

/// A barrier of the block.
const fn block(row: Row) -> Row {
    row.is(Trait::Block).also(&[BARRIER])
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("bar.warp.sync", Barrier, "9.7.13.2", &[In]).since(6, 0).on(30).is(Trait::Warp).is(Trait::Sync)
        .awaits(Completion::Barrier),
    block(row("bar.arrive", Barrier, "9.7.13.1", &[In, In])).since(2, 0).on(20).is(Trait::Arrive),
    block(row("bar.red", Barrier, "9.7.13.1", &[Written, In, In, In])).since(2, 0).on(20).is(Trait::Sync)
        .out(Out::Last).awaits(Completion::Barrier),
    block(row("bar.sync", Barrier, "9.7.13.1", &[In, In])).is(Trait::Sync).awaits(Completion::Barrier),
    row("barrier.cluster.arrive", Barrier, "9.7.13.3", &[]).since(7, 8).on(90).is(Trait::Cluster)
        .is(Trait::Arrive).also(&[&[also(".relaxed", 8, 0, 90), also(".release", 8, 0, 90)]]),
    row("barrier.cluster.wait", Barrier, "9.7.13.3", &[]).since(7, 8).on(90).is(Trait::Cluster)
        .is(Trait::Sync).awaits(Completion::Barrier).also(&[&[also(".acquire", 8, 0, 90)]]),
    block(row("barrier.arrive", Barrier, "9.7.13.1", &[In, In])).since(6, 0).on(30).is(Trait::Arrive),
    block(row("barrier.red", Barrier, "9.7.13.1", &[Written, In, In, In])).since(6, 0).on(30).is(Trait::Sync)
        .out(Out::Last).awaits(Completion::Barrier),
    block(row("barrier.sync", Barrier, "9.7.13.1", &[In, In])).since(6, 0).on(30).is(Trait::Sync)
        .awaits(Completion::Barrier),

    row("membar.proxy", Fence, "9.7.13.4", &[]).since(7, 5).on(60),
    row("membar", Fence, "9.7.13.4", &[]).since(1, 4),
    // A fence of the tensor maps' proxy names the map.
    row("fence.proxy.tensormap::generic.acquire", Fence, "9.7.13.4", &[Address, In]).since(8, 3).on(90),
    row("fence.proxy.tensormap::generic.release", Fence, "9.7.13.4", &[]).since(8, 3).on(90),
    row("fence.proxy.async::generic", Fence, "9.7.13.4", &[]).since(8, 6).on(90),
    row("fence.proxy.async", Fence, "9.7.13.4", &[]).since(8, 0).on(90),
    row("fence.proxy", Fence, "9.7.13.4", &[]).since(7, 5).on(70),
    row("fence.mbarrier_init", Fence, "9.7.13.4", &[]).since(8, 0).on(90),
    row("fence", Fence, "9.7.13.4", &[]).since(6, 0).on(70).also(&[FENCES]),

    row("atom.cas", Atomic, "9.7.13.5", &[Written, Address, Data, Data]).size(Size::Memory).out(Out::Last)
        .since(1, 1).on(11).also(&[MEMORY, ATOMICS]),
    row("atom", Atomic, "9.7.13.5", &[Written, Address, Data]).size(Size::Memory).out(Out::Last)
        .since(1, 1).on(11).also(&[MEMORY, ATOMICS]),
    row("red.async", Reduce, "9.7.13.7", &[Address, Data, Mbarrier]).size(Size::Memory).since(8, 1).on(90)
        .also(&[&[also(".release", 8, 7, 100), also(".mmio", 8, 7, 100), also(".global", 8, 7, 100)]]),
    row("red", Reduce, "9.7.13.6", &[Address, Data]).size(Size::Memory).since(1, 2).on(11)
        .also(&[MEMORY, ATOMICS]),

    computes("vote.sync", Vote, "9.7.13.9", D_A_B).since(6, 0).on(30),
    computes("vote", Vote, "9.7.13.8", D_A).since(1, 2).on(12),
    computes("match.sync", Vote, "9.7.13.10", D_A_B).out(Out::Is("b32")).since(6, 0).on(70),
    computes("activemask", Vote, "9.7.13.11", &[Written]).since(6, 2).on(30),
    computes("redux.sync.f32", Vote, "9.7.13.12", D_A_B).since(8, 6).only_on(REDUX_F32),
    computes("redux.sync", Vote, "9.7.13.12", D_A_B).since(7, 0).on(80),
    row("griddepcontrol.wait", Wait, "9.7.13.13", &[]).since(7, 8).on(90).awaits(Completion::Grid),
    row("griddepcontrol.launch_dependents", Other, "9.7.13.13", &[]).since(7, 8).on(90),
    row("elect.sync", Vote, "9.7.13.14", D_A).out(Out::Is("b32")).since(8, 0).on(90),

    row("mbarrier.init", Mbar, "9.7.13.15.9", &[Address, In]).since(7, 0).on(80).is(Trait::Init)
        .also(&[MBARRIERS]),
    row("mbarrier.inval", Mbar, "9.7.13.15.10", &[Address]).since(7, 0).on(80).also(&[MBARRIERS]),
    row("mbarrier.expect_tx", Mbar, "9.7.13.15.11", &[Address, Bytes]).since(8, 0).on(90).is(Trait::Expect),
    row("mbarrier.complete_tx", Mbar, "9.7.13.15.12", &[Address, In]).since(8, 0).on(90),
    row("mbarrier.arrive.expect_tx", Mbar, "9.7.13.15.13", &[Written, Address, Bytes]).since(8, 0).on(90)
        .out(Out::Is("b64")).is(Trait::Arrive).is(Trait::Expect).also(&[MBARRIERS]),
    row("mbarrier.arrive.noComplete", Mbar, "9.7.13.15.13", &[Written, Address, In]).since(7, 0).on(80)
        .out(Out::Is("b64")).is(Trait::Arrive).also(&[MBARRIERS]),
    // To arrive more than once came later.
    row("mbarrier.arrive", Mbar, "9.7.13.15.13", &[Written, Address, In]).operands(3).since(7, 8).on(90)
        .out(Out::Is("b64")).is(Trait::Arrive).also(&[MBARRIERS]),
    row("mbarrier.arrive", Mbar, "9.7.13.15.13", &[Written, Address, In]).since(7, 0).on(80)
        .out(Out::Is("b64")).is(Trait::Arrive).also(&[MBARRIERS]),
    row("mbarrier.arrive_drop.expect_tx", Mbar, "9.7.13.15.14", &[Written, Address, Bytes]).since(8, 0).on(90)
        .out(Out::Is("b64")).is(Trait::Arrive).is(Trait::Expect).also(&[MBARRIERS]),
    row("mbarrier.arrive_drop.noComplete", Mbar, "9.7.13.15.14", &[Written, Address, In]).since(7, 0).on(80)
        .out(Out::Is("b64")).is(Trait::Arrive).also(&[MBARRIERS]),
    row("mbarrier.arrive_drop", Mbar, "9.7.13.15.14", &[Written, Address, In]).operands(3).since(7, 8).on(90)
        .out(Out::Is("b64")).is(Trait::Arrive).also(&[MBARRIERS]),
    row("mbarrier.arrive_drop", Mbar, "9.7.13.15.14", &[Written, Address, In]).since(7, 0).on(80)
        .out(Out::Is("b64")).is(Trait::Arrive).also(&[MBARRIERS]),
    row("mbarrier.test_wait", Wait, "9.7.13.15.16", &[Written, Address, In]).since(7, 0).on(80)
        .out(Out::Is("pred")).awaits(Completion::Mbarrier).also(&[MBARRIERS, PARITY]),
    row("mbarrier.try_wait", Wait, "9.7.13.15.16", &[Written, Address, In, In]).since(7, 8).on(90)
        .out(Out::Is("pred")).awaits(Completion::Mbarrier).also(&[MBARRIERS]),
    row("mbarrier.pending_count", Mbar, "9.7.13.15.17", D_A).out(Out::Is("u32")).since(7, 0).on(80),

    row("clusterlaunchcontrol.try_cancel", Other, "9.7.13.17", &[Address, Mbarrier]).since(8, 6).on(100)
        .also(&[MULTICAST]),
    row("clusterlaunchcontrol.query_cancel", Other, "9.7.13.18", D_A).since(8, 6).on(100),
];

/// Of floats only one architecture's warps make a minimum at once.
const REDUX_F32: super::facts::Targets = super::facts::Targets::Listed(&[super::row::arch(100, 'f')]);
