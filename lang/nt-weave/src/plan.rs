//! Plans a kernel: which states are registers, which maps are used, what the context block holds, what version and
//! target all this needs.
//!
//! ```text
//! start: u32   assigned at kernel:entry, read at kernel:exit      -> a register
//! limit: u32   never assigned in this kernel                      -> its initial value, a constant
//! last: u64    assigned, never read                               -> nothing
//! ```
//!
//! What the assembler would refuse later is refused here, with the builtin's name and both versions. `.version` may be
//! raised, which alone changes no machine code; `.target` is what the code was made for and stays.

mod needs;
mod parameters;

use crate::Refused;
use crate::bodies::{Closer, Site};
use crate::bounds::Bounds;
use crate::callees::Calls;
use crate::context::{Context, Fill};
use crate::emit::{adds_up_lanes, live};
use crate::instructions::question;
use crate::pins::Pins;
use crate::sites::Found;
use crate::slots::Slots;
use crate::streams::Streams;
use crate::{Parameter, UsedMap, UsedStream, UsedTable, WovenKernel, bounds, sites, streams, tables};
use needs::{ACTIVEMASK, REDUX, check_need, elects_by_mask, requirement, uses};
use nt_diag::{Diagnostic, Span};
use nt_ir::Prepared;
use nt_ir::launch::Conditions;
use nt_ir::program::{Builtin, Inst, MapId, Op, Program, SiteValue};
use nt_ptx::syntax::{Module, Version};
use nt_ptx::version::{Arch, need};
use nt_ptx::{ModuleInfo, identifiers_with_prefix};
use parameters::{check_list, check_parameters, check_shadows, required_block};
use std::cell::Cell;
use std::collections::BTreeMap;

pub(crate) use needs::{Needs, raise_version};

/// What is decided about a kernel before any text is made.
pub(crate) struct Plan<'a> {
    /// What every name woven in begins with: `nt_`.
    pub(crate) prefix: &'a str,
    /// The variables that are reached by way of their pins.
    pub(crate) pins: &'a Pins,
    /// How each state of the program is kept, by `StateId`.
    pub(crate) states: Vec<Keep>,
    /// The states that are kept in 32 bits, being counters.
    pub(crate) bounds: Bounds,
    /// Where something is put in, and what.
    pub(crate) sites: Vec<Site<'a>>,
    /// The block that the kernel gets as its last parameter.
    pub(crate) context: Context,
    /// Indices into the program's maps, rising; [`Fill`] counts these.
    pub(crate) maps: Vec<usize>,
    /// The tables, which [`Fill`] counts on behind the maps.
    pub(crate) tables: Vec<UsedTable>,
    /// The streams among the maps.
    pub(crate) streams: Streams,
    /// The arrays with a capacity among them.
    pub(crate) slots: Slots<'a>,
    /// The block's size in threads, where `.reqntid` fixes it.
    pub(crate) block: Option<[u32; 3]>,
    /// What may be relied on of the shape of launches, and what of it spans do rely on, which is known when all are made.
    pub(crate) assume: Conditions,
    pub(crate) relied: Cell<Conditions>,
    /// Does the target have `redux.sync`?
    pub(crate) redux: bool,
    /// Are functions cloned for the kernel? Then states that are predicates are kept in words, which can be passed.
    pub(crate) has_clones: bool,
    /// Least version and target.
    pub(crate) needs: Needs,
}

/// What the kernels of a module have in common.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a, 's> {
    pub(crate) module: &'a Module<'s>,
    pub(crate) info: &'a ModuleInfo<'s>,
    pub(crate) probe: &'a Prepared,
    pub(crate) pins: &'a Pins,
    pub(crate) prefix: &'a str,
    /// What may be relied on of launches.
    pub(crate) assume: Conditions,
}

/// How a state is kept in a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// In a register of each thread.
    Register,
    /// Nothing assigns it here: it is its initial value.
    Initial,
    /// Nothing reads it here.
    Nowhere,
}

/// A prefix with which no identifier of the module begins: `nt_`, else `nt1_`, `nt2_`, …
pub(crate) fn prefix(module: &Module<'_>) -> String {
    let mut prefix = "nt_".to_owned();
    // A text of n bytes holds fewer than n identifiers, so this ends.
    for number in 1.. {
        if !begins_a_word(module.text, &prefix) || identifiers_with_prefix(module, &prefix).is_empty() {
            break;
        }
        prefix = format!("nt{number}_");
    }
    prefix
}

/// Might an identifier begin with `prefix`? Most texts answer no without being read token by token, also those with a
/// kernel `fill_persistent_0`.
fn begins_a_word(text: &str, prefix: &str) -> bool {
    text.match_indices(prefix).any(|(at, _)| {
        let before = text.as_bytes().get(at.wrapping_sub(1));
        before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
    })
}

/// The sites at which something is done, with what that is, and how states are kept.
///
/// A body may have the number of its site, which is counted among those that are left: where some turn out to be none, all
/// are closed anew.
pub(crate) fn sites<'p>(
    closer: &Closer<'p>,
    mut found: Vec<Found>,
) -> Result<(Vec<Keep>, Vec<Site<'p>>), Refused> {
    let is_number = |inst: &Inst| inst.op == Op::Site(SiteValue::Site);
    let has_numbers = closer.program.probes.iter().flat_map(|probe| &probe.code).any(is_number);
    loop {
        let count = found.len();
        let (states, sites) = keep(closer.program, closer.run(found)?);
        if !has_numbers || sites.len() == count {
            return Ok((states, sites));
        }
        found = sites.into_iter().map(|site| site.found).collect();
    }
}

/// How states are kept, and the sites at which something is done then.
fn keep<'p>(program: &Program, mut sites: Vec<Site<'p>>) -> (Vec<Keep>, Vec<Site<'p>>) {
    let states = keep_states(program, &sites);
    let is_effect = |inst: &Inst| match inst.op {
        Op::WriteState(state, _) => states.get(state.0 as usize) == Some(&Keep::Register),
        _ => inst.op.is_effect(),
    };
    for site in &mut sites {
        site.bodies.retain(|body| body.code.code.iter().any(is_effect));
    }
    sites.retain(|site| !site.bodies.is_empty());
    (states, sites)
}

/// Plans one kernel, or says why it cannot be probed.
pub(crate) fn run<'a>(
    known: Known<'a, '_>,
    function: usize,
    closer: &Closer<'_>,
    calls: &Calls,
    states: Vec<Keep>,
    mut sites: Vec<Site<'a>>,
    slots: Slots<'a>,
) -> Result<Plan<'a>, Refused> {
    let Known { module, info, probe, pins, prefix, assume } = known;
    let program = &probe.program;
    let Some(entry) = module.functions.get(function) else {
        return Err(Box::new(Diagnostic::error("no-kernel", Span::at(0), "no such kernel")));
    };
    let tables = tables::number(closer, &mut sites)?;
    let kernel = streams::Kernel { module, info, probe, function, assume };
    let has_callees = sites.iter().any(|site| site.found.function != function);
    let streams = streams::plan(kernel, closer, calls, &mut sites)?;
    let maps = used_maps(&sites);
    let uses = uses(&sites, &states);
    let context = Context::lay_out(
        program,
        &probe.layouts,
        &maps,
        &tables,
        uses.contains(&Builtin::Launch),
        pins,
        prefix,
    );

    let mut needs = Needs::default();
    for (name, read) in uses.iter().filter_map(|&builtin| requirement(builtin)) {
        check_need(module, entry, &format!("`{name}`"), read, &mut needs)?;
    }
    let asked = sites.iter().flat_map(|site| &site.bodies).filter_map(|body| body.asked.as_ref());
    let mut questions: Vec<&str> = asked.flat_map(|(_, asked)| &asked.within).map(|&s| question(s)).collect();
    questions.sort_unstable();
    questions.dedup();
    for read in questions {
        let what = format!("`{read}`, which asks where an address leads,");
        check_need(module, entry, &what, read, &mut needs)?;
    }
    if sites.iter().any(elects_by_mask) {
        let what = "`activemask`, which elects the lane that saves,";
        check_need(module, entry, what, ACTIVEMASK, &mut needs)?;
    }
    let arch = module.arch().and_then(Arch::parse);
    let redux = need(REDUX).is_some_and(|need| arch.is_some_and(|arch| need.allows(arch)));
    if redux && sites.iter().any(|site| site.bodies.iter().any(|body| adds_up_lanes(program, &body.code))) {
        let what = "`redux.sync`, which adds up the lanes of a warp,";
        check_need(module, entry, what, REDUX, &mut needs)?;
        check_need(module, entry, what, ACTIVEMASK, &mut needs)?;
    }
    check_list(module, entry)?;
    check_parameters(module, entry, context.size, &mut needs)?;
    check_shadows(module, entry)?;
    let block = required_block(module, entry);
    let bounds = bounds::run(module, info, program, function, &sites, has_callees);
    let relied = Cell::default();
    Ok(Plan {
        prefix,
        pins,
        states,
        bounds,
        sites,
        context,
        maps,
        tables,
        streams,
        slots,
        block,
        assume,
        relied,
        redux,
        has_clones: false,
        needs,
    })
}

/// How each state is kept: registers only for those that are both assigned and read here.
fn keep_states(program: &Program, sites: &[Site<'_>]) -> Vec<Keep> {
    let probes = || sites.iter().flat_map(|site| &site.bodies).map(|body| &*body.code);
    let mut keep: Vec<Keep> = program.states.iter().map(|_| Keep::Nowhere).collect();
    let mut assigned = vec![false; keep.len()];
    for inst in probes().flat_map(|probe| &probe.code) {
        if let Op::WriteState(to, _) = inst.op
            && let Some(slot) = assigned.get_mut(to.0 as usize)
        {
            *slot = true;
        }
    }
    // A read counts only if an effect depends on it, and an assignment is an effect only if its state is read:
    // what is known to be kept grows until nothing is added.
    loop {
        let mut grown = false;
        for probe in probes() {
            let live = live::mark(probe, &keep);
            for inst in &probe.code {
                let Op::ReadState(state) = inst.op else { continue };
                let read = inst.result.is_some_and(|value| live.get(value.0 as usize) == Some(&true));
                if let Some(slot) =
                    keep.get_mut(state.0 as usize).filter(|slot| read && **slot == Keep::Nowhere)
                {
                    let is_assigned = assigned.get(state.0 as usize) == Some(&true);
                    *slot = if is_assigned { Keep::Register } else { Keep::Initial };
                    grown = true;
                }
            }
        }
        if !grown {
            return keep;
        }
    }
}

/// The maps that these sites save to, rising.
fn used_maps(sites: &[Site<'_>]) -> Vec<usize> {
    let mut maps: Vec<usize> = sites
        .iter()
        .flat_map(|site| &site.bodies)
        .flat_map(|body| &body.code.code)
        .filter_map(|inst| match inst.op {
            Op::Save { map, .. } => Some(map.0 as usize),
            _ => None,
        })
        .collect();
    maps.sort_unstable();
    maps.dedup();
    maps
}

impl Plan<'_> {
    /// What a manifest says of the kernel.
    pub(crate) fn into_kernel(
        self,
        module: &Module<'_>,
        probe: &Prepared,
        function: usize,
        sites: Vec<sites::Site>,
        numbers: &[(usize, u32)],
    ) -> WovenKernel {
        let params = module.functions.get(function).map_or(&[][..], |entry| &entry.params);
        let used = |&map: &usize| {
            let (declared, layout) = (probe.program.maps.get(map)?, probe.layouts.get(map)?);
            Some(UsedMap {
                map,
                name: declared.name.clone(),
                unit: declared.unit,
                fields: declared.fields.clone(),
                layout: layout.clone(),
                stream: self.streams.of(MapId(map as u32)).map(|stream| UsedStream {
                    chunk: stream.chunk,
                    codes: stream.codes.clone().with_sites(numbers),
                }),
            })
        };
        WovenKernel {
            function,
            name: crate::choose::name(module, function),
            params: params.iter().map(|param| Parameter { offset: param.offset, size: param.size }).collect(),
            context_size: self.context.size,
            slots: self.context.slots,
            maps: self.maps.iter().filter_map(used).collect(),
            tables: self.tables,
            pins: self.pins.list(),
            constants: Vec::new(),
            uncovered: Vec::new(),
            sites,
            limits: probe.program.limits.iter().chain(&self.bounds.limits).copied().collect(),
            assumes: self.streams.assumes.union(self.relied.get()),
            minimum_version: self.needs.version.max(module.version.map_or((0, 0), Version::pair)),
        }
    }

    /// The first of the sites of each function.
    pub(crate) fn first_sites(&self) -> BTreeMap<usize, usize> {
        let sites = self.sites.iter().enumerate().rev();
        sites.map(|(index, site)| (site.found.function, index)).collect()
    }

    /// May `condition` be relied on? If so it is from here on.
    pub(crate) fn relies_on(&self, condition: Conditions) -> bool {
        let may = self.assume.contains(condition);
        if may {
            self.relied.set(self.relied.get().union(condition));
        }
        may
    }

    /// The place of a word in the context block.
    pub(crate) fn offset(&self, fill: Fill) -> Option<u32> {
        self.context.slots.iter().find(|slot| slot.fill == fill).map(|slot| slot.offset)
    }
}
