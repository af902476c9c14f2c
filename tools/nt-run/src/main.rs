//! Runs a command with probes in its kernels.

fn main() {}
