//! Whole kernels on the software GPU.

mod common;
mod corpora;
mod features;
mod golden;
mod kernels;
mod triton;
