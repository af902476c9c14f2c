//! Tracepoints: where a body runs.
//!
//! ```text
//! kernel:"gemm*":exit      inst:load|store.global.v4:reach      ptx:"ld.global.nc*":after      bb:loop
//! func:"warp_sum*":entry   line:"gemm.cu":120-140               mark:"*.begin"
//! ```
//!
//! Language reference, Tracepoints.

/// A place in kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tracepoint {
    /// `kernel:entry`, `kernel:"GLOB":entry`: above the first label.
    KernelEntry {
        /// Which kernels; all of the chosen without one.
        kernel: Option<String>,
    },
    /// `kernel:exit`: every way out but `trap`.
    KernelExit {
        /// Which kernels; all of the chosen without one.
        kernel: Option<String>,
    },
    /// `inst:CLASS.QUALIFIER:placement`: instructions by what they do.
    Inst {
        /// Words of classes and groups (`load`, `access`, `*`), one of which must hold.
        classes: Vec<String>,
        /// Words of state spaces, one of which must be the access's, on either side of a copy; empty: any. A space is
        /// meant, not spelled: a generic access counts where it goes there.
        spaces: Vec<String>,
        /// What else must hold: of each list one word (`[["b32", "b64"], ["v4"]]`).
        quals: Vec<Vec<String>>,
        /// Where the body stands.
        placement: Placement,
    },
    /// `ptx:"GLOB":placement`: instructions of PTX by their opcode with all its modifiers.
    Ptx {
        /// What the opcode must match.
        glob: String,
        /// Where the body stands.
        placement: Placement,
    },
    /// `line:"FILE":N-M:placement`: the first instruction of each run of instructions with such a source line.
    Line {
        /// What the path of the file ends in, by whole names: `src/gemm.cu` is the end of `/home/a/src/gemm.cu`.
        file: String,
        /// The first line.
        first: u32,
        /// The last, which is not before it.
        last: u32,
        /// Where the body stands.
        placement: Placement,
    },
    /// `mark:"GLOB"`: marks that the kernel's author left, by their name.
    Mark {
        /// What the name must match.
        glob: String,
    },
    /// `func:"GLOB":entry`: above the first label of a device function that is reached by direct calls.
    FuncEntry {
        /// Which functions.
        glob: String,
    },
    /// `func:"GLOB":exit`: every way out of one.
    FuncExit {
        /// Which functions.
        glob: String,
    },
    /// `bb:entry`, `bb:loop`: basic blocks.
    Block {
        /// Only those that a backward branch enters, so once a round.
        looped: bool,
    },
}

/// Where a body stands, seen from its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Placement {
    /// Before it, for the lanes whose guard holds.
    Before,
    /// After it, for the lanes whose guard held before it.
    After,
    /// Before it, for all lanes that get there.
    Reach,
}
