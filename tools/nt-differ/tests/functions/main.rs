//! Functions that kernels call: what a probe finds in them is worked out by hand, and held against what the software GPU runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod bools;
mod exits;
mod last;
mod launch;
mod shared;
mod uncovered;
