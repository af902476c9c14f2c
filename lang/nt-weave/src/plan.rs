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

use crate::Refused;
use crate::bodies::{Closer, Site};
use crate::bounds::Bounds;
use crate::callees::Calls;
use crate::context::{Context, Fill};
use crate::emit::{SPECIAL_REGISTERS, adds_up_lanes, live};
use crate::instructions::question;
use crate::pins::Pins;
use crate::sites::Found;
use crate::slots::Slots;
use crate::streams::Streams;
use crate::{Parameter, Raised, UsedMap, UsedStream, UsedTable, WovenKernel, bounds, sites, streams, tables};
use nt_diag::{Diagnostic, Span};
use nt_ir::Prepared;
use nt_ir::launch::Conditions;
use nt_ir::program::{Builtin, Inst, MapId, Op, Program, SiteValue, Unit};
use nt_ptx::syntax::{Function, ItemKind, Kind, Module, Version};
use nt_ptx::version::{Arch, LARGE_PARAMETERS, Pair, need, parameter_limit};
use nt_ptx::{Edits, ModuleInfo, TokenKind, identifiers_with_prefix};
use std::cell::Cell;
use std::collections::BTreeMap;

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

/// The highest version that something woven in needs, and what that is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Needs {
    version: Pair,
    reason: String,
}

impl Needs {
    fn at_least(&mut self, version: Pair, reason: impl Into<String>) {
        if self.version < version {
            (self.version, self.reason) = (version, reason.into());
        }
    }

    pub(crate) fn add(&mut self, other: &Needs) {
        self.at_least(other.version, other.reason.as_str());
    }
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

/// The builtins that effects depend on, each once, rising.
fn uses(sites: &[Site<'_>], states: &[Keep]) -> Vec<Builtin> {
    let mut uses = Vec::new();
    for probe in sites.iter().flat_map(|site| &site.bodies).map(|body| &*body.code) {
        // Most code reads none, and what depends on it need not be known then.
        if !probe.code.iter().any(|inst| matches!(inst.op, Op::Builtin(_) | Op::ClockAfter(..))) {
            continue;
        }
        let live = live::mark(probe, states);
        for inst in &probe.code {
            let (Op::Builtin(builtin) | Op::ClockAfter(builtin, _)) = inst.op else { continue };
            if inst.result.is_some_and(|value| live.get(value.0 as usize) == Some(&true)) {
                uses.push(builtin);
            }
        }
    }
    uses.sort_unstable();
    uses.dedup();
    uses
}

/// What a builtin is called in the language, and what it reads that not every version and target has.
fn requirement(builtin: Builtin) -> Option<(&'static str, &'static str)> {
    Some(match builtin {
        Builtin::Clock => ("clock()", "%clock64"),
        Builtin::Time => ("time()", "%globaltimer"),
        Builtin::Active => ("active()", ACTIVEMASK),
        Builtin::ClusterId => ("cluster.id", "%clusterid"),
        Builtin::ClusterRank => ("cluster.rank", "%cluster_ctarank"),
        Builtin::ClockLow
        | Builtin::Cu
        | Builtin::Lane
        | Builtin::WarpSize
        | Builtin::Thread
        | Builtin::Block
        | Builtin::Warp
        | Builtin::WarpInBlock
        | Builtin::Tid(_)
        | Builtin::Ntid(_)
        | Builtin::Ctaid(_)
        | Builtin::Nctaid(_)
        | Builtin::Launch => return None,
    })
}

const ACTIVEMASK: &str = "activemask.b32";

const REDUX: &str = "redux.sync";

/// Does a span here read `activemask` to elect a lane?
fn elects_by_mask(site: &Site<'_>) -> bool {
    site.bodies.iter().map(|body| &*body.code).any(|probe| {
        probe.unit == Unit::Warp
            && (site.found.kind != sites::Kind::Entry || probe.predicate.is_some())
            && probe.code.iter().any(|inst| matches!(inst.op, Op::Save { .. } | Op::Aggregate { .. }))
    })
}

/// Is the module made for a GPU that has what `what` reads? Notes the version. An architecture that no table knows is
/// let pass: newer ones have what older ones have.
fn check_need(
    module: &Module<'_>,
    entry: &Function,
    what: &str,
    read: &str,
    needs: &mut Needs,
) -> Result<(), Refused> {
    let Some(need) = need(read) else { return Ok(()) };
    needs.at_least(need.version, what.trim_end_matches(','));
    let Some(arch) = module.arch().and_then(Arch::parse).filter(|&arch| !need.allows(arch)) else {
        return Ok(());
    };
    let kernel = module.at(entry.name);
    let span = module.target.as_ref().map_or(entry.name, |target| target.span);
    let (version, target) = (need.version, need.target);
    let has = module.version.map_or((0, 0), Version::pair);
    Err(Box::new(
        Diagnostic::error(
            "target-too-old",
            span,
            format!("{what} needs sm_{target}, this module is for {arch}"),
        )
        .note_at(entry.name, format!("wanted in kernel `{kernel}`"))
        .note(format!(
            "it needs `.version {}.{}` too, of which this module says {}.{}; that alone could be raised",
            version.0, version.1, has.0, has.1
        ))
        .help(format!("compile for sm_{target} or later, or choose kernels that do without it")),
    ))
}

/// Is the last parameter known? Behind one that could not be read the context would not be last.
fn check_list(module: &Module<'_>, entry: &Function) -> Result<(), Refused> {
    let Some(list) = entry.list else { return Ok(()) };
    let from = entry.params.last().map_or(list.start + 1, |last| last.span.end);
    let rest = Span::new(from, list.end.saturating_sub(1));
    let Some((_, at)) = module.code(rest).next() else { return Ok(()) };
    let name = module.at(entry.name);
    let what = format!("the parameters of kernel `{name}` cannot be read to their end");
    Err(Box::new(Diagnostic::error("parameter-list", at, what).label("no parameter begins here")))
}

/// Is there room for the context behind the kernel's parameters?
fn check_parameters(
    module: &Module<'_>,
    entry: &Function,
    context: u32,
    needs: &mut Needs,
) -> Result<(), Refused> {
    let taken = entry.params.iter().map(|param| param.offset.saturating_add(param.size)).max().unwrap_or(0);
    let total = taken.checked_next_multiple_of(8).and_then(|at| at.checked_add(context)).unwrap_or(u32::MAX);
    let version = module.version.map_or((0, 0), Version::pair);
    if total <= parameter_limit(version) {
        return Ok(());
    }
    let raised = LARGE_PARAMETERS;
    if total <= parameter_limit(raised) {
        needs.at_least(raised, format!("{total} bytes of parameters with the context"));
        return Ok(());
    }
    let limit = parameter_limit(version.max(raised));
    let name = module.at(entry.name);
    Err(Box::new(
        Diagnostic::error(
            "no-room-for-context",
            entry.name,
            format!("kernel `{name}` has no room for one parameter more"),
        )
        .label(format!(
            "{taken} bytes of parameters and {context} of context make {total}, the limit is {limit}"
        )),
    ))
}

/// A program may give something the name of a special register, most likely a register in an inner scope; a probe
/// there would read that instead. Nobody does so on purpose: a kernel that sees such a name anywhere is refused.
fn check_shadows(module: &Module<'_>, entry: &Function) -> Result<(), Refused> {
    let declarations = module.body(entry).iter().filter(|s| matches!(s.kind, Kind::Declaration(_)));
    let inside = declarations.map(|declaration| declaration.span).flat_map(|span| {
        let maybe = SPECIAL_REGISTERS.iter().any(|name| module.at(span).contains(name));
        let names = maybe.then(|| module.code(span).filter(|(kind, _)| *kind == TokenKind::Name));
        names.into_iter().flatten().map(|(_, at)| at)
    });
    let variables = module.items.iter().filter_map(|item| match item.kind {
        ItemKind::Variable { name, .. } => Some(name),
        _ => None,
    });
    let mut names = inside.chain(entry.params.iter().map(|param| param.name)).chain(variables);
    let Some(at) = names.find(|&at| SPECIAL_REGISTERS.contains(&module.at(at))) else { return Ok(()) };
    let name = module.at(at);
    Err(Box::new(
        Diagnostic::error(
            "special-register-shadowed",
            at,
            format!("`{name}` is a name of the module's own here"),
        )
        .label("the kernel cannot be probed: inserted code would read it instead of the special register"),
    ))
}

/// `.reqntid 256, 1, 1` fixes the block's size; dimensions that are not given are 1.
fn required_block(module: &Module<'_>, entry: &Function) -> Option<[u32; 3]> {
    let directive = entry.directives.iter().find(|d| module.at(d.name) == ".reqntid")?;
    let mut block = [1; 3];
    let mut axes = block.iter_mut();
    for number in module.at(directive.arguments).split(',') {
        *axes.next()? = number.trim().parse().ok().filter(|n| (1..=1024).contains(n))?;
    }
    Some(block)
}

/// Raises `.version` to what was woven in needs.
///
/// The edit covers the whole directive: ptxas looks for `.version N` before it knows what a comment is, and finds
/// none in `.version /*…*/N` (tried with 13.0).
pub(crate) fn raise_version(module: &Module<'_>, needs: &Needs, edits: &mut Edits) -> Option<Raised> {
    let version = module.version?;
    let (from, to) = (version.pair(), needs.version);
    if to <= from {
        return None;
    }
    let directive = module.items.iter().find(|item| item.span.contains(version.number))?.span;
    let raised = format!(".version {}.{}", to.0, to.1);
    edits.replace(directive, crate::place::replacement(module.at(directive), &raised));
    Some(Raised { from, to, reason: needs.reason.clone() })
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
