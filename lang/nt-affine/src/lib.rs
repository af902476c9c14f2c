//! How the addresses that the lanes of a warp access relate, proved from the text of a kernel.
//!
//! ```text
//! mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; ld.global.f32 %f1, [%rd3];
//! address(lane) = base + 4·lane, in launches whose blocks are flat or have whole rows
//! ```
//!
//! ```
//! use nt_affine::{Proof, addresses};
//! use nt_ir::launch::Conditions;
//! let text = ".version 8.5\n.target sm_90\n.address_size 64
//! .entry k(.param .u64 p) {
//!     .reg .b32 %r<3>; .reg .b64 %rd<3>;
//!     ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1; ld.global.u32 %r2, [%rd2]; ret;
//! }";
//! let (module, mut found) = nt_ptx::parse(text);
//! let info = nt_ptx::resolve(&module, &mut found);
//! let accesses = addresses(&module, &info, 0, Conditions::ALL);
//! let Some(Proof::Bits { strides, needs, .. }) = accesses.last().map(|access| &access.proof) else { panic!() };
//! assert_eq!(strides.each_ref().map(|stride| stride.constant), [4, 8, 16, 32, 64]);
//! assert_eq!(needs.to_string(), "whole_rows");
//! ```
//!
//! [`addresses()`] is a data flow over one function in which a value is *uniform + Σ bit i of the lane · stride i*. What
//! it proves need not be stored lane by lane: a base and the mask of lanes are enough to tell every address.
//! `docs/affine.md` has the domain, the assumptions and the figures.

mod bits;
mod code;
mod eval;
mod form;
mod graph;
mod known;
mod linear;
mod operation;
mod part;
mod prove;
mod read;
mod solve;
mod writes;

pub use linear::{Linear, Term};

use nt_ir::launch::Conditions;
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;

/// A statement that accesses memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Its index in [`Module::statements`].
    pub statement: u32,
    /// What is known of the address in its operand `addr` ([`nt_ptx::opcode::Facts::address`]).
    pub proof: Proof,
}

/// How the lanes' addresses relate, of lanes that execute an access together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// For any two of the lanes, `address(a) - address(b) = Σ (bit i of a - bit i of b) · strides[i]`, in 64 bits that
    /// wrap. A plain stride `s` is `[s, 2·s, 4·s, 8·s, 16·s]`, one address for all lanes `[0; 5]`.
    Bits {
        /// By bit of the lane.
        strides: [Linear; 5],
        /// What was relied on, of what may be.
        needs: Conditions,
        /// Does it assume that index arithmetic of 32 bits does not wrap: not between the lanes of a warp, nor to what is
        /// negative?
        wraps: bool,
        /// Does it assume that lanes that a branch parted meet again where its paths join, in the same turn of the loops
        /// around it, and nowhere else?
        joins: bool,
    },
    /// The address comes from memory, and differs from lane to lane.
    Indirect,
    /// Nothing is known.
    Unknown,
}

/// The accesses of a function, in text order, and what is known of each in launches of which `assume` holds.
///
/// None for a declaration.
pub fn addresses(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    function: usize,
    assume: Conditions,
) -> Vec<Access> {
    let mut accesses = prove::unproved(module, function);
    // What is too large to be followed stays unknown.
    let _ = prove::prove(module, info, function, assume, &mut accesses);
    accesses
}
