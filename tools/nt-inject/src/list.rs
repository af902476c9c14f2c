//! `-l`: a line a kernel and tracepoint, columns by tabs, `-` where there is no value.
//!
//! ```text
//! kernel  tracepoint        sites  places        name
//! _Z1kPf  kernel:entry      1      12:5          k(float*)
//! _Z1kPf  kernel:exit       2      18:5,31:5     k(float*)
//! _Z1kPf  inst:load.global  3      14:5,15:5     k(float*)
//! ```
//!
//! Places are `line:column` in the PTX, or the source's where `.loc` tells, each once: `k.cu:7`. Instructions that cannot
//! be reached are left out. Where a probe has no site, what it may have meant is looked for in the same list.

use nt_cli::choose::demangle;
use nt_ir::program::{Program, Tracepoint};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;
use nt_weave::{Kind, Site, list_sites_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

pub(crate) fn run(module: &Module<'_>, info: &ModuleInfo<'_>, kernels: &[usize]) -> String {
    let mut out = "kernel\ttracepoint\tsites\tplaces\tname\n".to_owned();
    for (&kernel, sites) in kernels.iter().zip(list_sites_of(module, info, kernels, true)) {
        let name = module.functions.get(kernel).map_or("", |function| module.at(function.name));
        let source = demangle(name);
        let mut line = |point: &str, at: &[&Site]| {
            let (mut seen, count) = (BTreeSet::new(), at.len());
            let places: Vec<String> =
                at.iter().map(|site| place(site)).filter(|place| seen.insert(place.clone())).collect();
            let places = if places.is_empty() { "-".to_owned() } else { places.join(",") };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name}\t{point}\t{count}\t{places}\t{source}");
        };
        for kind in [Kind::Entry, Kind::Exit] {
            let at: Vec<&Site> = sites.iter().filter(|site| site.kind == kind).collect();
            line(&kind.tracepoint(), &at);
        }
        for ((_, point), at) in instructions(&sites) {
            line(&point, &at);
        }
    }
    out
}

/// The instructions by class and space, in the order of the classes. A `ret` is one too.
fn instructions(sites: &[Site]) -> BTreeMap<(Kind, String), Vec<&Site>> {
    let mut points: BTreeMap<(Kind, String), Vec<&Site>> = BTreeMap::new();
    for site in sites.iter().filter(|site| !site.opcode.is_empty()) {
        let kind = match site.kind {
            Kind::Exit => Kind::Instruction(Some(nt_ptx::opcode::Class::Exit)),
            kind => kind,
        };
        let space = site.space.map_or_else(String::new, |space| format!(".{}", space.name()));
        points.entry((kind, kind.tracepoint() + &space)).or_default().push(site);
    }
    points
}

fn place(site: &Site) -> String {
    match &site.source {
        Some((file, line)) => format!("{file}:{line}"),
        None => format!("{}:{}", site.line, site.column),
    }
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
