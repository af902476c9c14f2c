//! Pulls PTX and code objects out of programs and libraries.

fn main() {}
