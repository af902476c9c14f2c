//! Finds where basic blocks begin: `bb:entry`, and `bb:loop` of those that a backward branch enters.
//!
//! ```text
//! $L__BB0_2:                        `bb:loop`: the branch below comes back to it
//!     .pragma "nounroll";
//!                                   <- the site: before the first instruction, behind labels and pragmas of blocks
//!     ld.global.f32 %f1, [%rd1];
//!     …
//!     @%p1 bra $L__BB0_2;
//! ```
//!
//! All lanes that come to a block are meant, whatever the guard of its first instruction.

use crate::instructions::{Matcher, place};
use crate::sites::{Blocks, Found, Kind, Point, of_kernel};
use nt_ptx::syntax::{Kind as StatementKind, Module};

/// The sites of basic blocks, in text order.
pub(crate) fn find(
    module: &Module<'_>,
    points: &[Point<'_>],
    function: usize,
    matcher: &Matcher<'_, '_>,
) -> Vec<Found> {
    let mut found = Vec::new();
    if points.iter().all(|point| point.blocks.is_none()) {
        return found;
    }
    let Some(body) = module.functions.get(function).and_then(|function| function.body.as_ref()) else {
        return found;
    };
    let flow = matcher.flow();
    let mut looped = vec![false; flow.blocks.len()];
    for &(_, label) in &flow.backward {
        if let Some(slot) = flow.block_of(label).and_then(|block| looped.get_mut(block)) {
            *slot = true;
        }
    }
    for (block, looped) in flow.blocks.iter().zip(looped).filter(|(block, _)| block.reachable) {
        let wants = |point: &Point<'_>| match point.blocks {
            Some(Blocks::All) => true,
            Some(Blocks::Looped) => looped,
            None => false,
        };
        let probes = of_kernel(points, wants);
        if probes.is_empty() {
            continue;
        }
        let kind = Kind::Block { looped: points.iter().all(|point| point.blocks != Some(Blocks::All)) };
        let range = block.statements.clone();
        let first = first(module, range.clone());
        let begins = module.statements.get(range.start as usize).map(|statement| statement.kind);
        if first.is_none() && !matches!(begins, Some(StatementKind::Label(_))) {
            // A line of source or a brace between a branch and a label is no block of instructions.
            continue;
        }
        let (statement, offset, next) = match first {
            Some(number) => {
                let start = module.statements.get(number as usize).map_or(0, |one| one.span.start);
                let (offset, next) = place(module, number).unwrap_or((start, number));
                (Some(number), offset, next)
            }
            None if range.end == body.statements.end => (None, body.span.end.saturating_sub(1), range.end),
            None => {
                let end = module.statements.get(range.end as usize).map_or(0, |one| one.span.start);
                (Some(range.end), end, range.end)
            }
        };
        found.push(Found { statement, probes, reach: true, ..Found::at(kind, offset, next) });
    }
    found
}

/// The first instruction among these statements.
fn first(module: &Module<'_>, mut range: std::ops::Range<u32>) -> Option<u32> {
    let is_instruction = |&number: &u32| {
        let statement = module.statements.get(number as usize);
        statement.is_some_and(|one| matches!(one.kind, StatementKind::Instruction(_)))
    };
    range.find(is_instruction)
}
