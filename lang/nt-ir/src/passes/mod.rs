//! The passes, and the order they run in.

use crate::layout::{Layout, lay_out};
use crate::program::Program;
use nt_diag::Found;

/// What [`prepare`] may assume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Keep clock differences in 64 bits, for launches longer than the limit of the narrow form.
    pub wide: bool,
}

/// A program that a back end can weave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The program after all passes.
    pub program: Program,
    /// The layout of each map, by `MapId`.
    pub layouts: Vec<Layout>,
}

/// The IR was refused by its own verifier: a fault of the file it came from, or of a pass of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The pass after which it was found, or `input`.
    pub pass: &'static str,
    /// What is wrong; spans are of the probe's source.
    pub found: Found,
}

/// Makes a program ready for a back end.
pub fn prepare(program: Program, options: Options) -> Result<Prepared, Broken> {
    prepare_watched(program, options, &mut |_, _| {})
}

/// [`prepare`], which calls `watch` with the name of each pass and what it made of the program.
pub fn prepare_watched(
    program: Program,
    _options: Options,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Prepared, Broken> {
    watch("input", &program);
    let layouts = program.maps.iter().map(|map| lay_out(map, None)).collect();
    Ok(Prepared { program, layouts })
}
