//! Chores of the builders: tidy checks, man pages.

fn main() {}
