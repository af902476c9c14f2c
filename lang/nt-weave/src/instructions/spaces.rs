//! Spaces are meant, not spelled: what a body asks of an address when it runs, whose text does not say where it leads.
//!
//! ```text
//! inst:load.global|shared { @n = count(); }       one body: does it lead into global memory, or the block's shared one?
//! inst:load.generic { @[space] = count(); }       a body for each space, of which one runs in each lane
//! ```
//!
//! `cluster` is the shared memory of another block of the cluster, so that no address leads into two spaces; a kernel's
//! parameters alone are in global memory too. What a target has no window for, nothing leads into. PTX ISA 9.0, 9.7.9.19.

use super::Matcher;
use crate::Refused;
use crate::operands::Reader;
use crate::sites::{Match, Point};
use nt_ptx::opcode::{Facts, Space};
use nt_ptx::syntax::Instruction;
use nt_ptx::version::{Arch, need};
use std::cell::OnceCell;

/// The spaces that an address may lead into without the text saying so.
const UNTOLD: [Space; 6] =
    [Space::Global, Space::Shared, Space::Cluster, Space::Local, Space::Const, Space::Param];

/// How it is asked whether an address leads into a space.
pub(crate) fn question(space: Space) -> &'static str {
    match space {
        Space::Global => "isspacep.global",
        Space::Shared => "isspacep.shared",
        Space::Cluster => "isspacep.shared::cluster",
        Space::Local => "isspacep.local",
        Space::Const => "isspacep.const",
        Space::Param => "isspacep.param",
        Space::Tensor | Space::Generic => "isspacep",
    }
}

impl Matcher<'_, '_> {
    /// Does the instruction touch one of these spaces? Of an address whose space the text does not say, those that the
    /// body must ask for.
    pub(super) fn spaces(
        &self,
        spaces: &[String],
        instruction: &Instruction,
        facts: &Facts,
    ) -> Result<Option<Vec<Space>>, Refused> {
        if spaces.is_empty() || spaces.iter().any(|word| facts.qualifies(word) == Some(true)) {
            return Ok(Some(Vec::new()));
        }
        if facts.space != Some(Space::Generic) {
            return Ok(None);
        }
        let asked = |space: &Space| spaces.iter().any(|word| word == space.name());
        let reader = Reader::new(self.module, self.info, self.function, instruction);
        if let Some(space) = reader.declared(facts) {
            return Ok(asked(&space).then(Vec::new));
        }
        let within: Vec<Space> =
            UNTOLD.into_iter().filter(|space| asked(space) && self.has(*space)).collect();
        if !within.is_empty() && reader.address(facts).is_none() {
            let what = "where this address leads cannot be asked: it is no register and displacement";
            return Err(self.refusal("unclear-address", instruction.opcode, what));
        }
        Ok((!within.is_empty()).then_some(within))
    }

    /// The bodies of a probe at an instruction: one for each space that its address may lead into if it asks which that is,
    /// else one.
    pub(super) fn by_space(
        &self,
        point: &Point<'_>,
        one: Match,
        instruction: &Instruction,
        facts: &OnceCell<Option<Facts>>,
    ) -> Vec<Match> {
        if let [only] = one.within.as_slice() {
            return vec![Match { space: Some(*only), ..one }];
        }
        if !point.space || !one.of_instruction {
            return vec![one];
        }
        let facts = facts.get_or_init(|| self.module.facts(instruction));
        let Some(facts) = facts.filter(|facts| facts.space == Some(Space::Generic)) else { return vec![one] };
        let reader = Reader::new(self.module, self.info, self.function, instruction);
        if let Some(space) = reader.declared(&facts) {
            return vec![Match { space: Some(space), ..one }];
        }
        if reader.address(&facts).is_none() || one.reach {
            return vec![one];
        }
        let may = |space: &Space| match one.within.as_slice() {
            [] => *space != Space::Param && self.has(*space),
            within => within.contains(space) && (*space != Space::Param || !within.contains(&Space::Global)),
        };
        let of = |space| Match { space: Some(space), within: vec![space], ..one.clone() };
        UNTOLD.into_iter().filter(may).map(of).collect()
    }

    /// Has the target a window for a space? One that no table knows has them all.
    fn has(&self, space: Space) -> bool {
        let arch = self.module.arch().and_then(Arch::parse);
        need(question(space)).is_none_or(|need| arch.is_none_or(|arch| need.allows(arch)))
    }
}
