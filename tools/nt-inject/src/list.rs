//! `-l`: the tracepoints of the chosen kernels, as `nt_engine::tracepoints` lists them.
//!
//! Where a probe has no site, what it may have meant is looked for in the same list.

use nt_engine::tracepoints::{HEAD, instructions, rows};
use nt_ir::program::{Program, Tracepoint};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;
use nt_weave::list_sites_of;
use std::collections::BTreeSet;

pub(crate) fn run(module: &Module<'_>, info: &ModuleInfo<'_>, kernels: &[usize]) -> String {
    HEAD.to_owned() + &rows(module, info, kernels)
}

/// What a program whose tracepoints match nothing may have meant: the nearest opcodes, and which instructions there
/// are.
pub(crate) fn nearest(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    kernels: &[usize],
    program: &Program,
) -> Option<String> {
    let sites = list_sites_of(module, info, kernels, true).concat();
    let points = || program.probes.iter().flat_map(|probe| &probe.points);
    let globs = points().filter_map(|point| match point {
        Tracepoint::Ptx { glob, .. } => Some(glob.as_str()),
        _ => None,
    });
    let opcodes: BTreeSet<&str> = sites.iter().map(|site| site.opcode.as_str()).collect();
    let near: BTreeSet<&str> = globs.filter_map(|glob| nearest_opcode(glob, &opcodes)).collect();
    if !near.is_empty() {
        let near: Vec<String> = near.iter().map(|opcode| format!("`{opcode}`")).collect();
        return Some(format!("the nearest opcode is {}", near.join(", ")));
    }
    let is_instruction =
        |point: &Tracepoint| matches!(point, Tracepoint::Inst { .. } | Tracepoint::Ptx { .. });
    if !points().any(is_instruction) {
        return None;
    }
    let there = instructions(&sites);
    let there: Vec<String> = there.iter().map(|((_, point), at)| format!("{point} ({})", at.len())).collect();
    Some(if there.is_empty() {
        "there are no instructions".to_owned()
    } else {
        format!("there are {}", there.join(", "))
    })
}

/// The opcode that a glob comes closest to: by spelling, as far as the glob goes, else the one that begins with most of
/// its letters.
fn nearest_opcode<'o>(glob: &str, opcodes: &BTreeSet<&'o str>) -> Option<&'o str> {
    let plain = glob.trim_end_matches('*').trim_end_matches('.');
    let words = plain.split('.').count();
    // `ld.global` of `ld.global.u32`, for `ld.globl.*`.
    let start = |opcode: &'o str| {
        opcode.match_indices('.').nth(words.saturating_sub(1)).map_or(opcode, |(at, _)| opcode.split_at(at).0)
    };
    if let Some(near) = nt_diag::nearest(plain, opcodes.iter().map(|opcode| start(opcode))) {
        return opcodes.iter().copied().find(|opcode| start(opcode) == near);
    }
    let common = |opcode: &str| opcode.bytes().zip(plain.bytes()).take_while(|(a, b)| a == b).count();
    opcodes.iter().copied().max_by_key(|opcode| common(opcode)).filter(|opcode| 2 < common(opcode))
}
