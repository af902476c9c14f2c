//! Images in, kernels with probes out: extract, choose, prune, weave, verify, assemble, cache.
//!
//! ```text
//! bytes ── inspect ──> which kernels, which are chosen, or why none
//! kernel, device ── prepare ──> a cubin with the probe in it, and how to launch it, or a refusal
//! ```
//!
//! The part of `nt-run` that thinks; each stage is a file. It is shared by threads: several processes ask at once, and
//! what one of them has prepared, the others get. The only place of the tool chain that runs an assembler is
//! [`assemble`].
//!
//! Promises: nothing here writes but to the cache and a temporary folder; a refusal has a reason of one line; what is
//! our own fault says so and brings along what shows it again.

pub mod assemble;
pub mod cache;
mod compare;
mod engine;
mod image;
pub mod manifest;
mod prepare;
mod probe;
mod state;
pub mod tracepoints;
mod unmatched;

pub use engine::{Engine, Inspected};
pub use nt_cli::choose;
pub use nt_ir::launch::Conditions;
pub use prepare::{Bug, Cost, Prepared, Refusal};
pub use probe::Probe;
pub use unmatched::{Unmatched, unmatched};
