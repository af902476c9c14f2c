//! Holds woven PTX against its original, knowing neither the weaver nor the probe.
//!
//! Two texts come in, and nothing else is trusted. Comments in the woven text bracket what was inserted; they only say
//! where to look. Every rule is a whitelist, because most of what could go wrong assembles without a word: what is not
//! known to be harmless is a [`Violation`], which names its rule, its place and the reason.
//!
//! # What a woven text looks like
//!
//! ```text
//! .version /*nt:edit 372e30{*/8.0/*}nt:edit*/                      raised, never lowered; the old bytes in hex
//! .visible .entry k(.param .u64 p/*nt:edit {*/,
//!   .param .align 8 .b8 nt_ctx[32] /*nt:ctx …*//*}nt:edit*/)       the context, last; see `claim.rs` for the claim
//! {                                                                (a forward declaration gets the same edit)
//!   .reg .b32 %r<9>;
//!   /*nt:0{*/.reg .b32 %nt_start;                                  state: at function level, in the entry span alone
//!   { mov.u32 %nt_start, %clock; }/*}nt:0*/
//!   …
//!   /*nt:1{*/{ .reg .pred %nt_p; …                                 all else in the braces of the span
//!     @!%p1 bra $nt_L1; … $nt_L1: }/*}nt:1*/
//!   @%p1 ret;
//! }
//! ```
//!
//! A span is, at its own top level, `{ … }` groups and, in the entry span, declarations of state before them. Inside
//! stand `.reg` declarations of scalar types (`%nt_a, %nt_b` or `%nt_r<4>`, each name once in the span), labels,
//! inner groups and instructions of the list in `opcode.rs`; a span reads the context by
//! `ld.param.u64 %nt_b, [nt_ctx+8];` inside one claimed field. Effects (stores, writes of state) before a guarded
//! instruction stand under that guard: behind `@!%p1 bra $nt_L;`, or predicated with it.

mod claim;
mod lex;
mod opcode;
mod rule;
mod span;
mod undo;
mod violation;

pub use claim::{Claim, Column, Field, FieldKind, Map, Shape};
pub use rule::{Rule, explain};
pub use violation::{Report, Violation};
