//! Kernels that a program puts into graphs by itself, node by node: they run unprobed, and are counted by name.
//!
//! ```text
//! cuLaunchKernel in a stream that is captured      `launch` counts it: "captured into a graph"
//! cuGraphAddKernelNode, cuGraphAddNode             counted here: "put into a graph as a node"
//! cuGraphLaunch                                    `calls` counts it: so many replays
//! ```
//!
//! What runs when a graph is launched is decided when it is instantiated, and may be changed between its launches; nothing
//! of that is touched. The summary says how often graphs were launched, and a kernel's row that it is in one.

use std::ffi::{c_int, c_void};

use crate::kernel::{self, Skip};
use crate::load::hook;
use crate::quiet::guard;
use crate::{Opaque, process};

/// The first words of CUDA_KERNEL_NODE_PARAMS, of all versions.
#[repr(C)]
struct Node {
    /// A CUfunction; may be null from version 2 on.
    function: Opaque,
    shape: [u32; 7],
    params: Opaque,
    extra: Opaque,
}

/// Those of version 2 and later.
#[repr(C)]
struct Node2 {
    first: Node,
    /// A CUkernel, where there is no function.
    kernel: Opaque,
}

/// The beginning of CUgraphNodeParams, behind which the node's own follow.
#[repr(C)]
struct Typed {
    sort: c_int,
    reserved: [c_int; 3],
    /// If it is a kernel's.
    node: Node2,
}

/// CU_GRAPH_NODE_TYPE_KERNEL
const KERNEL: c_int = 0;

hook!(cuGraphAddKernelNode(out: *mut Opaque, graph: Opaque, after: *const Opaque, n: usize, params: *const c_void)
then {
    // SAFETY: the driver has read it, as version 1 has it.
    count(unsafe { params.cast::<Node>().as_ref() }.map(|node| node.function));
});
hook!(cuGraphAddKernelNode_v2(out: *mut Opaque, graph: Opaque, after: *const Opaque, n: usize, params: *const c_void)
then {
    // SAFETY: the driver has read it, as version 2 has it.
    count(unsafe { params.cast::<Node2>().as_ref() }.map(Node2::handle));
});
hook!(cuGraphAddNode(out: *mut Opaque, graph: Opaque, after: *const Opaque, n: usize, params: *mut c_void)
    then typed(params));
hook!(cuGraphAddNode_v2(out: *mut Opaque, graph: Opaque, after: *const Opaque, edges: *const c_void, n: usize,
    params: *mut c_void) then typed(params));
hook!(cuGraphAddNode_v3(out: *mut Opaque, graph: Opaque, after: *const Opaque, edges: *const c_void, n: usize,
    params: *mut c_void) then typed(params));

impl Node2 {
    fn handle(&self) -> Opaque {
        if self.first.function.is_null() { self.kernel } else { self.first.function }
    }
}

fn typed(params: *const c_void) {
    // SAFETY: the driver has read it; the struct is longer whatever the node's sort.
    let typed = unsafe { params.cast::<Typed>().as_ref() };
    count(typed.filter(|typed| typed.sort == KERNEL).map(|typed| typed.node.handle()));
}

fn count(function: Option<Opaque>) {
    guard(|| {
        let function = function.filter(|function| !function.is_null());
        let Some((function, _)) = function.zip(process::get()) else { return };
        let kernel = match kernel::of(function) {
            Some((kernel, _)) => kernel,
            None => crate::load::resolve(function),
        };
        kernel.launches.count();
        if !kernel.unselected() {
            kernel.skip(Skip::Node);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// As cuda.h of 13.0 lays them out.
    #[test]
    fn structs_are_the_drivers() {
        assert_eq!((offset_of!(Node, params), offset_of!(Node2, kernel)), (40, 56));
        assert_eq!(offset_of!(Typed, node), 16);
    }
}
