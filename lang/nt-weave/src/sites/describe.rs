//! What is told of sites: where each is in the input and in the source, of which instruction, under which guard.
//!
//! ```text
//! site 3   ld.global.f32   line 41, column 2   kernels.cu:12   @%p1   global, 4 bytes
//! ```
//!
//! Listings (`nt-inject --emit sites`) and manifests have it. A kernel whose sites are asked for by no program is listed by
//! its entry and its exits, and by all its instructions if that is wanted.

use super::source::{Places, SourceFiles};
use super::{Found, Guard, Kind, Point, find};
use crate::instructions::Wanted;
use crate::operands;
use nt_ptx::ModuleInfo;
use nt_ptx::opcode::Space;
use nt_ptx::syntax::{Kind as StatementKind, Module};

/// What is told of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The number of its span, as in the text's `/*nt:N{*/`.
    pub id: u32,
    /// What kind of point it is.
    pub kind: Kind,
    /// The opcode of the instruction that it is about: `ret`; empty at the entry and at a closing brace.
    pub opcode: String,
    /// Line in the input, from 1.
    pub line: u32,
    /// Column in the input, from 1, in characters.
    pub column: u32,
    /// Source file and line, where `.loc` tells.
    pub source: Option<(String, u32)>,
    /// The guard of the instruction at it.
    pub guard: Option<Guard>,
    /// The state space that the text names there; of a copy, the destination's.
    pub space: Option<Space>,
    /// How many bytes a lane moves there, where the text says it.
    pub bytes: Option<u32>,
}

/// Where kernels begin and end, whatever a program asks for. The numbers count within the kernel.
pub fn list_sites(module: &Module<'_>, info: &ModuleInfo<'_>, function: usize) -> Vec<Site> {
    list_sites_of(module, info, &[function], false).pop().unwrap_or_default()
}

/// [`list_sites`] of several kernels, in one walk of the text if they come in its order; all reachable instructions
/// among them if `instructions` is set.
pub fn list_sites_of(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    functions: &[usize],
    instructions: bool,
) -> Vec<Vec<Site>> {
    let (files, mut places) = (SourceFiles::of(module), Places::new(module.text));
    let mut wanted = vec![Wanted::Exit];
    wanted.extend(instructions.then_some(Wanted::Any));
    let point = Point { entry: true, wanted, exit: true, ..Point::of(0) };
    let mut list = |&function: &usize| {
        let points = std::slice::from_ref(&point);
        // What every instruction matches is never in doubt.
        let found = find(module, info, points, function, &files, &mut places).unwrap_or_default();
        let numbers: Vec<(usize, u32)> = (0..).take(found.len()).zip(0..).collect();
        describe(module, found.iter(), &numbers)
    };
    functions.iter().map(&mut list).collect()
}

/// What is told of those sites that have a span, given as index and number.
pub(crate) fn describe<'f>(
    module: &Module<'_>,
    found: impl Iterator<Item = &'f Found>,
    numbers: &[(usize, u32)],
) -> Vec<Site> {
    let found: Vec<&Found> = found.collect();
    let describe = |&(index, id): &(usize, u32)| {
        let site = found.get(index)?;
        let is_of_next = matches!(site.kind, Kind::Block { .. } | Kind::Mark);
        let statement = site.statement.filter(|_| !is_of_next);
        let opcode = match statement.and_then(|at| module.statements.get(at as usize)).map(|s| s.kind) {
            Some(StatementKind::Instruction(instruction)) => module.at(instruction.opcode).to_owned(),
            _ => String::new(),
        };
        let (line, column) = site.position;
        Some(Site {
            id,
            kind: site.kind,
            opcode,
            line,
            column,
            source: site.source.clone(),
            guard: site.guard.clone(),
            space: site.facts.as_ref().and_then(|facts| facts.space),
            bytes: site.facts.as_ref().and_then(|facts| operands::known_bytes(facts, &site.access)),
        })
    };
    numbers.iter().filter_map(describe).collect()
}
