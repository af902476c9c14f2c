//! Calls that programs make and this driver does not know: they answer 801 and are named once on stderr, which tells
//! more than a symbol that is not there.

use crate::Code;
use crate::call::{NOT_SUPPORTED, check_up};
use crate::{lookup, say};

/// Declares such calls. Whatever their arguments are, they are not looked at: the caller puts them where C's calls have
/// them, and takes them away again.
macro_rules! missing {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> Code { answer(stringify!($name)) }
        )*
        /// Every call of this file, by name.
        pub(crate) static CALLS: &[lookup::Call] =
            &[$(lookup::Call { name: stringify!($name), address: $name as *const () }),*];
    };
}

fn answer(name: &str) -> Code {
    match check_up() {
        Ok(()) => {
            say::once(&format!("{name} is not supported"));
            NOT_SUPPORTED
        }
        Err(code) => code,
    }
}

missing! {
    cuArray3DCreate_v2 cuArrayCreate_v2 cuArrayDestroy
    cuCtxEnablePeerAccess cuDeviceCanAccessPeer cuIpcGetMemHandle cuIpcOpenMemHandle_v2
    cuGraphAddChildGraphNode cuGraphAddMemcpyNode cuGraphAddMemsetNode
    cuGraphInstantiateWithFlags cuGraphInstantiateWithParams
    cuLaunchHostFunc cuStreamAddCallback
    cuMemAddressReserve cuMemCreate cuMemMap
    cuMemAllocAsync cuMemAllocFromPoolAsync cuMemAllocManaged cuMemAllocPitch_v2 cuMemFreeAsync
    cuMemcpy2D_v2 cuMemcpy2DAsync_v2 cuMemcpy2DUnaligned_v2 cuMemcpy3D_v2 cuMemcpy3DAsync_v2 cuMemcpyPeer
    cuMemsetD16_v2 cuMemsetD2D8_v2 cuMemsetD2D32_v2
    cuModuleGetSurfRef cuModuleGetTexRef cuSurfObjectCreate cuTexObjectCreate cuTensorMapEncodeTiled
    cuOccupancyMaxActiveClusters cuOccupancyMaxPotentialBlockSize cuOccupancyMaxPotentialClusterSize
    cuPointerGetAttribute cuPointerGetAttributes
    cuStreamBatchMemOp_v2 cuStreamWaitValue32_v2 cuStreamWaitValue64_v2 cuStreamWriteValue32_v2
}
