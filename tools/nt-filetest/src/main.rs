//! Runs tests that are files: RUN lines, goldens, expected errors.

fn main() {}
