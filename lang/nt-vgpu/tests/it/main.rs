//! Whole kernels on the software GPU.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may stop at the first thing that is wrong, and say what"
)]

mod common;
mod corpora;
mod features;
mod forms;
mod golden;
mod hostile;
mod kernels;
mod schedule;
mod triton;
