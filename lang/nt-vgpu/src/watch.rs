//! Who accesses what, told while a launch runs.
//!
//! ```
//! use nt_vgpu::{Arena, Grid, Launch, Options, Program};
//! let text = ".version 8.5\n.target sm_90\n.address_size 64
//! .entry k(.param .u64 p) {
//!     .reg .b32 %r<2>; .reg .b64 %rd<3>;
//!     ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r1; ret;
//! }";
//! let (module, mut found) = nt_ptx::parse(text);
//! let info = nt_ptx::resolve(&module, &mut found);
//! let program = Program::load(&module, &info).unwrap();
//! let mut memory = Arena::new();
//! let numbers = memory.allocate(12);
//! let launch = Launch { block: [3, 1, 1], params: &numbers.to_le_bytes(), ..Launch::default() };
//! let grid = Grid::new(&program, "k", launch, Options::default()).unwrap();
//!
//! let mut stores = Vec::new();
//! let mut watch = |seen: &nt_vgpu::Accessed<'_>| {
//!     if &*program.places()[seen.instruction].opcode == "st.global.u32" {
//!         stores.push((seen.lanes, seen.addresses[2]));
//!     }
//! };
//! grid.run_cluster_watched(0, &mut 0, &memory, &mut grid.outcome(), &mut watch).unwrap();
//! assert_eq!(stores, [(0b111, numbers + 8)]);
//! ```

use crate::code::{Address, Op};
use crate::machine::Machine;
use crate::warp::{Row, Warp};

/// Lanes execute a load, a store, an atomic, a copy or an access to a matrix together.
#[derive(Debug)]
pub struct Accessed<'a> {
    /// The instruction, as an index into [`crate::Program::places`].
    pub instruction: usize,
    /// `%ctaid`
    pub block: [u32; 3],
    /// The warp's number in its block.
    pub warp: u32,
    /// The lanes whose guard holds.
    pub lanes: u32,
    /// Where each of them accesses memory, as the operand has it; of a copy, the side that is not shared memory. Of
    /// other lanes nothing.
    pub addresses: &'a [u64; 32],
}

/// Who is told.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(&Accessed<'_>);

impl Op {
    /// The operand that says where it accesses memory.
    fn address(&self) -> Option<Address> {
        match self {
            Op::Load(op) => Some(op.address),
            Op::Store(op) => Some(op.address),
            Op::Atomic(op) => Some(op.address),
            Op::Copy(op) => Some(op.outer_address()),
            Op::Fragments(op) => Some(op.address),
            _ => None,
        }
    }
}

impl Machine<'_> {
    /// Tells of an instruction, if anybody wants to know.
    pub(crate) fn tell(&mut self, warp: &Warp, op: &Op, active: u32) {
        if self.watch.is_none() {
            return;
        }
        let Some(address) = op.address() else { return };
        let mut addresses: Row = self.addresses(warp, address);
        for (lane, at) in addresses.iter_mut().enumerate() {
            if active >> lane & 1 == 0 {
                *at = 0;
            }
        }
        let seen = Accessed {
            instruction: warp.group.pc as usize,
            // The warp's block is one of the machine's.
            block: self.blocks[warp.block].index,
            warp: warp.index,
            lanes: active,
            addresses: &addresses,
        };
        if let Some(watch) = &mut self.watch {
            watch(&seen);
        }
    }
}
