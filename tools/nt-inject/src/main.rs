//! Puts a probe into PTX.

fn main() {}
