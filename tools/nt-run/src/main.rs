//! Runs a command with probes in its kernels.

mod child;
mod environment;
mod folder;
mod hook;
mod talk;
mod target;

fn main() {}
