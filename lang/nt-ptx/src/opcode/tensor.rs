//! The fifth generation of tensor cores and their memory: PTX ISA 9.0, section 9.7.16.
//!
//! Accumulators lie in tensor memory, whose addresses are operands, and the shape of a multiplication lies in a
//! descriptor, so that neither results nor multiply-adds can be read from the text.

use super::class::Class::{Commit, Fence, Load, Mma, Other, Store, TensorCopy, Wait};
use super::facts::{Completion, Space, Targets};
use super::row::Role::{Address, Data, In, Mbarrier, Out as Written};
use super::row::{Out, Row, Size, TENSOR_CORES, arch, row};

/// Loading with a reduction came with the second members of the family.
const REDUCING: Targets = Targets::Listed(&[arch(101, 'f'), arch(103, 'f'), arch(110, 'f')]);

/// What only the architectures themselves have, not their families.
const SHIFTING: Targets = Targets::Listed(&[arch(100, 'a'), arch(101, 'a'), arch(103, 'a'), arch(110, 'a')]);

const fn tcgen05(name: &'static str, class: super::Class, section: &'static str) -> Row {
    row(name, class, section, &[]).since(8, 6).only_on(TENSOR_CORES)
}

const fn roles(mut row: Row, roles: &'static [super::row::Role]) -> Row {
    row.roles = roles;
    row
}

const fn mma(name: &'static str, section: &'static str) -> Row {
    tcgen05(name, Mma, section).space(Space::Tensor).completes(Completion::TensorCommit)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // The address of what was allocated is written to shared memory.
    roles(tcgen05("tcgen05.alloc", Other, "9.7.16.7.1"), &[Address]),
    tcgen05("tcgen05.dealloc", Other, "9.7.16.7.1"),
    tcgen05("tcgen05.relinquish_alloc_permit", Other, "9.7.16.7.1"),

    roles(tcgen05("tcgen05.ld.red", Load, "9.7.16.8.3"), &[Written, Written, Address]).size(Size::TensorMemory)
        .out(Out::Is("b32")).space(Space::Tensor).completes(Completion::TensorLoad).since(8, 8).only_on(REDUCING),
    roles(tcgen05("tcgen05.ld", Load, "9.7.16.8.3"), &[Written, Address]).size(Size::TensorMemory)
        .out(Out::Is("b32")).space(Space::Tensor).completes(Completion::TensorLoad),
    // The second half's offset stands between address and registers.
    roles(tcgen05("tcgen05.st.16x32bx2", Store, "9.7.16.8.4"), &[Address, In, Data]).size(Size::TensorMemory)
        .space(Space::Tensor).completes(Completion::TensorStore),
    roles(tcgen05("tcgen05.st", Store, "9.7.16.8.4"), &[Address, Data]).size(Size::TensorMemory)
        .space(Space::Tensor).completes(Completion::TensorStore),
    tcgen05("tcgen05.wait::ld", Wait, "9.7.16.8.5").awaits(Completion::TensorLoad),
    tcgen05("tcgen05.wait::st", Wait, "9.7.16.8.5").awaits(Completion::TensorStore),

    // From shared memory, by a descriptor.
    tcgen05("tcgen05.cp", TensorCopy, "9.7.16.9.2").size(Size::TensorCopy).space(Space::Tensor)
        .other_space(Space::Shared).completes(Completion::TensorCommit),
    tcgen05("tcgen05.shift", Other, "9.7.16.9.3").only_on(SHIFTING).space(Space::Tensor).completes(Completion::TensorCommit),

    mma("tcgen05.mma.ws.sp", "9.7.16.10.9.4"),
    mma("tcgen05.mma.ws", "9.7.16.10.9.3"),
    mma("tcgen05.mma.sp", "9.7.16.10.9.2"),
    mma("tcgen05.mma", "9.7.16.10.9.1"),

    tcgen05("tcgen05.fence::before_thread_sync", Fence, "9.7.16.11.1"),
    tcgen05("tcgen05.fence::after_thread_sync", Fence, "9.7.16.11.1"),
    roles(tcgen05("tcgen05.commit", Commit, "9.7.16.12.1"), &[Mbarrier, In]).completes(Completion::Mbarrier),
];
