//! Compiles probe programs.

fn main() {}
