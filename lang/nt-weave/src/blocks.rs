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
//! Lanes that come to a block execute its instructions together, so a site may stand behind its first ones. It does
//! where these have guards: effects before a guarded instruction are held to that guard by the verifier.

use crate::Refused;
use crate::instructions::{Matcher, place};
use crate::sites::{Blocks, Found, Kind, Point, of_kernel};
use nt_ptx::syntax::{Kind as StatementKind, Module};

/// The sites of basic blocks, in text order.
pub(crate) fn find(
    module: &Module<'_>,
    points: &[Point<'_>],
    function: usize,
    matcher: &Matcher<'_, '_>,
) -> Result<Vec<Found>, Refused> {
    let mut found = Vec::new();
    if points.iter().all(|point| point.blocks.is_none()) {
        return Ok(found);
    }
    let Some(body) = module.functions.get(function).and_then(|function| function.body.as_ref()) else {
        return Ok(found);
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
        let (statement, offset, next) = match free(module, range.clone(), matcher)? {
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
    Ok(found)
}

/// The first of these statements before which effects may stand for all lanes; `None` if there is no instruction.
fn free(
    module: &Module<'_>,
    range: std::ops::Range<u32>,
    matcher: &Matcher<'_, '_>,
) -> Result<Option<u32>, Refused> {
    for number in range {
        let Some(statement) = module.statements.get(number as usize) else { break };
        let StatementKind::Instruction(instruction) = statement.kind else { continue };
        let base = module.opcode(&instruction).base;
        if instruction.guard.is_none() || matches!(base, "bra" | "brx") {
            return Ok(Some(number));
        }
        if matches!(base, "ret" | "exit" | "trap" | "call") {
            let what = "a probe for all lanes that get here, and this instruction has a guard, which is not woven yet";
            return Err(matcher.refusal("not-yet", instruction.opcode, what));
        }
    }
    Ok(None)
}
