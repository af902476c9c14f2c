//! Decodes the traces that nt-run leaves.

fn main() {}
