//! The passes, and the order they run in.
//!
//! | pass | what it does |
//! |---|---|
//! | `fold` | computes what is known, takes simpler forms |
//! | `cse` | computes the same thing once |
//! | `dead` | drops what nothing uses, and numbers values anew |
//! | `narrow_clocks` | keeps clock differences in 32 bits, up to a limit that the program then states |
//! | `narrow_fields` | stores 32 bits of fields whose upper half is never set |
//! | `narrow_values` | computes and keeps 32 bits where no more are used |
//! | `tell_fields` | finds the fields of events that the code of an event tells |
//! | `gone` | adds the table by which `warp kernel:exit` knows the last lanes of a warp, where that adds up |
//!
//! `narrow_clocks` looks for reads of a state that are shared by all their uses, so `cse` comes before it; it only cuts
//! and widens, and leaves the gain to `narrow_values`; what that leaves over, the second round of the first three takes.
//! The program is verified before the first pass and after each.

mod cse;
pub(crate) mod dead;
pub(crate) mod fold;
mod gone;
mod narrow_clocks;
mod narrow_fields;
mod narrow_values;
mod presence;
mod tell_fields;

use crate::check::check;
use crate::layout::{Layout, lay_out};
use crate::program::{MapId, Program};
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

/// The verifier refused a program: a fault of the file it came from, or of a pass of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The pass after which it was found, or `input`.
    pub pass: &'static str,
    /// What is wrong; spans are of the probe's source.
    pub found: Found,
}

/// A pass: its name, and what it does to a program that the verifier accepts.
type Pass = (&'static str, fn(&mut Program));

const PASSES: &[Pass] = &[
    ("fold", fold::run),
    ("cse", cse::run),
    ("dead", dead::run),
    ("narrow_clocks", narrow_clocks::run),
    ("narrow_fields", narrow_fields::run),
    ("narrow_values", narrow_values::run),
    ("fold", fold::run),
    ("cse", cse::run),
    ("dead", dead::run),
    ("tell_fields", tell_fields::run),
    ("gone", gone::run),
];

/// Makes a program ready for a back end.
///
/// # Errors
/// The verifier refuses the program as it came, or as a pass left it.
pub fn prepare(program: Program, options: Options) -> Result<Prepared, Broken> {
    prepare_watched(program, options, &mut |_, _| {})
}

/// [`prepare`], which calls `watch` with the name of each pass and what it made of the program; first with `input`.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_watched(
    mut program: Program,
    options: Options,
    watch: &mut dyn FnMut(&'static str, &Program),
) -> Result<Prepared, Broken> {
    hold("input", &program)?;
    // What the passes change may be told by a code no longer; the last of them finds out anew.
    program.maps.iter_mut().for_each(|map| map.told.clear());
    watch("input", &program);
    for (name, run) in PASSES {
        if options.wide && *name == "narrow_clocks" {
            continue;
        }
        run(&mut program);
        hold(name, &program)?;
        watch(name, &program);
    }
    let layout = |(index, map)| lay_out(map, presence::spare_top_bit(&program, MapId(index)));
    let layouts = (0..).zip(&program.maps).map(layout).collect();
    Ok(Prepared { program, layouts })
}

fn hold(pass: &'static str, program: &Program) -> Result<(), Broken> {
    let found = check(program);
    if found.has_errors() { Err(Broken { pass, found }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
