//! From values to proofs: each by the least that must be relied on.

use crate::code::{Code, code};
use crate::eval::Trust;
use crate::form::Varying;
use crate::graph::Graph;
use crate::read::Reader;
use crate::solve::{Solution, Users};
use crate::{Access, Proof};
use nt_ir::launch::Conditions;
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::{Kind, Module};
use std::collections::BTreeMap;

/// The accesses of a function, before anything is known of them.
pub(crate) fn unproved(module: &Module<'_>, function: usize) -> Vec<Access> {
    let Some(found) = module.functions.get(function) else {
        return Vec::new();
    };
    let first = found.body.as_ref().map_or(0, |body| body.statements.start);
    let accesses = (first..).zip(module.body(found)).filter_map(|(statement, one)| match one.kind {
        Kind::Instruction(instruction) => {
            module.facts(&instruction)?.address?;
            Some(Access { statement, proof: Proof::Unknown })
        }
        _ => None,
    });
    accesses.collect()
}

/// Proves what it can of them.
pub(crate) fn prove(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    function: usize,
    assume: Conditions,
    accesses: &mut [Access],
) -> Option<()> {
    let flow = nt_ptx::flow(module, info, function);
    if flow.is_cut || accesses.is_empty() {
        return None;
    }
    let graph = Graph::of(&flow)?;
    let mut reader = Reader::new(module, info, function);
    let code = code(&graph, &mut reader)?;
    let users = Users::of(&graph, &code);
    let block = required_block(module, function);
    // What the kernel requires holds of every launch.
    let free = block.map_or(Conditions::NONE, |block| Conditions::of([2; 3], block));
    let is_entry = module.functions.get(function).is_some_and(|function| function.is_entry);

    // By what is relied on: first all, then without one thing after the other.
    let of_blocks = Conditions::FLAT_BLOCK.union(Conditions::WHOLE_ROWS);
    let all = Choice { conditions: assume.intersection(of_blocks), wraps: true, joins: true };
    let mut proofs: BTreeMap<Choice, Option<Vec<Proof>>> = BTreeMap::new();
    let mut under = |choice: Choice| -> Option<Vec<Proof>> {
        let found = proofs.entry(choice).or_insert_with(|| {
            let conditions = choice.conditions.union(free);
            let trust = Trust { conditions, block, wraps: choice.wraps, joins: choice.joins };
            let solution = Solution::of(&graph, &code, &users, is_entry, &trust)?;
            Some(
                code.accesses
                    .iter()
                    .map(|access| proof(&solution, &code, access.address, access.block, choice))
                    .collect(),
            )
        });
        found.clone()
    };
    let best = under(all)?;
    let mut chosen: Vec<(Choice, Proof)> = best.into_iter().map(|proof| (all, proof)).collect();
    for leave_out in
        [Choice::without_wraps, Choice::without_joins, Choice::without_flat, Choice::without_rows]
    {
        let mut tried: Vec<Choice> = chosen
            .iter()
            .filter(|(_, proof)| matches!(proof, Proof::Bits { .. }))
            .map(|(choice, _)| leave_out(*choice))
            .collect();
        tried.sort_unstable();
        tried.dedup();
        for less in tried {
            let Some(found) = under(less) else { continue };
            for ((choice, proof), less_proof) in chosen.iter_mut().zip(found) {
                if leave_out(*choice) == less && matches!(less_proof, Proof::Bits { .. }) {
                    (*choice, *proof) = (less, less_proof);
                }
            }
        }
    }
    for (place, (_, proof)) in code.accesses.iter().zip(chosen) {
        if let Ok(at) = accesses.binary_search_by_key(&place.statement, |access| access.statement) {
            accesses[at].proof = proof;
        }
    }
    Some(())
}

/// What may be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Choice {
    conditions: Conditions,
    wraps: bool,
    joins: bool,
}

impl Choice {
    fn without_wraps(self) -> Choice {
        Choice { wraps: false, ..self }
    }

    fn without_joins(self) -> Choice {
        Choice { joins: false, ..self }
    }

    fn without_flat(self) -> Choice {
        Choice { conditions: self.conditions.intersection(Conditions::WHOLE_ROWS), ..self }
    }

    fn without_rows(self) -> Choice {
        Choice { conditions: self.conditions.intersection(Conditions::FLAT_BLOCK), ..self }
    }
}

fn proof(solution: &Solution<'_>, code: &Code, address: u32, block: u32, choice: Choice) -> Proof {
    let width = code.nodes[address as usize].width;
    let form = match solution.value(address, block) {
        Ok(form) if width < 64 => form.extend(width, false, choice.wraps),
        Ok(form) => Some(form.clone()),
        Err(Varying { indirect: true }) => return Proof::Indirect,
        Err(Varying { indirect: false }) => None,
    };
    match form {
        Some(form) => Proof::Bits {
            strides: form.strides,
            needs: choice.conditions,
            wraps: choice.wraps,
            joins: choice.joins,
        },
        None => Proof::Unknown,
    }
}

/// `.reqntid 256, 1, 1`
fn required_block(module: &Module<'_>, function: usize) -> Option<[u32; 3]> {
    let directives = &module.functions.get(function)?.directives;
    let required = directives.iter().find(|directive| module.at(directive.name) == ".reqntid")?;
    let mut block = [1; 3];
    let numbers = module.at(required.arguments).split(',');
    for (axis, number) in block.iter_mut().zip(numbers) {
        *axis = u32::try_from(nt_ptx::constant(number.trim())?).ok().filter(|&n| n > 0)?;
    }
    Some(block)
}
