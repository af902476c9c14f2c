//! Puts probes into kernels: a prepared program and a PTX module to instrumented PTX.
//!
//! ```text
//! Module, ModuleInfo ─┐
//! Prepared ───────────┼─> choose ─> sites ─> plan ─> context ─> emit ─> place ─> Woven
//! chosen kernels ─────┘      (instructions, blocks, bodies: which sites there are, and what a probe is at each)
//!                                      callees, clones: the same of the functions that a kernel calls
//! ```
//!
//! Each pass is a file, in that order. What comes out is the input with insertions and a few declared edits: take
//! them away and the input is back, byte for byte. What was put in stands between `/*nt:N{*/` and `/*}nt:N*/`, begins
//! with a prefix that the module does not use, and is held to its rules by `nt-verify`, which knows nothing of this
//! crate.
//!
//! A kernel that cannot be probed is named with the reason and stays as it is; the others are woven all the same.
//! Documented in `docs/injection.md`.

mod blocks;
mod bodies;
mod bounds;
mod callees;
mod choose;
mod chunks;
mod clones;
mod codes;
mod context;
mod emit;
mod instructions;
mod leaves;
mod lines;
mod marks;
mod operands;
mod pins;
mod place;
mod plan;
mod prune;
mod returns;
mod sites;
mod slots;
mod sought;
mod streams;
mod tables;
mod uncovered;

use nt_diag::Diagnostic;
use nt_ir::Prepared;
use nt_ir::launch::Conditions;
use nt_ir::layout::Layout;
use nt_ir::program::{Field, Limit, Unit};
use nt_ptx::syntax::Module;
use nt_ptx::version::Pair;
use nt_ptx::{Edits, ModuleInfo};
use std::collections::BTreeSet;

pub use codes::{Assumed, Code, Form};
pub use context::{Fill, Slot};
pub use nt_affine::{Linear, Term};
pub use nt_ir::glob_matches;
pub use pins::{Constant, Pin};
pub use prune::prune;
pub use sites::{Guard, Kind, Site, list_sites, list_sites_of};
pub use sought::{Sought, is_end_of_path};
pub use tables::UsedTable;
pub use uncovered::{Callee, Uncovered};

/// Why a kernel cannot be probed.
type Refused = Box<Diagnostic>;

/// A module with probes in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Woven {
    /// The whole text. The input's if nothing was woven.
    pub text: String,
    /// The kernels that have probes now, in text order.
    pub kernels: Vec<WovenKernel>,
    /// The chosen kernels that could not be probed, with the reason; spans are of the input.
    pub refused: Vec<(String, Diagnostic)>,
    /// The calls of chosen kernels that lead to what is not probed, where the probes might have had sites. A kernel may
    /// have some of them and no site.
    pub uncovered: Vec<Uncovered>,
    /// The `.version` that was raised, if it was.
    pub raised: Option<Raised>,
}

/// The module's `.version` was raised, because something woven in needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    /// What the input said.
    pub from: Pair,
    /// What the woven text says.
    pub to: Pair,
    /// What needs it: a builtin, `activemask`, or the size of the parameters.
    pub reason: String,
}

/// A kernel with probes in it, and what its launch and its reader must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WovenKernel {
    /// Index into [`Module::functions`].
    pub function: usize,
    /// Its mangled name.
    pub name: String,
    /// The parameters of the original. The woven kernel has one more, last: the context block.
    pub params: Vec<Parameter>,
    /// Bytes of the context block.
    pub context_size: u32,
    /// What stands in it, by offset.
    pub slots: Vec<Slot>,
    /// The maps it saves to; [`Fill`] counts these.
    pub maps: Vec<UsedMap>,
    /// The tables it adds to, which [`Fill`] counts on behind the maps.
    pub tables: Vec<UsedTable>,
    /// The variables of the original that it uses, by index, if it is a twin.
    pub pins: Vec<Pin>,
    /// The variables of constant memory that it has copies of, if it is a twin.
    pub constants: Vec<Constant>,
    /// Where something was put in.
    pub sites: Vec<Site>,
    /// Its calls of what is not probed, where the probes might have had sites: what they count is a lower bound.
    pub uncovered: Vec<Uncovered>,
    /// Up to where the records are exact.
    pub limits: Vec<Limit>,
    /// What was relied on of a launch: it must not be of this kernel where one of these does not hold.
    pub assumes: Conditions,
    /// The PTX version that the text of this kernel needs.
    pub minimum_version: Pair,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes into parameter space.
    pub offset: u32,
    /// Bytes it takes.
    pub size: u32,
}

/// A map that a kernel saves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedMap {
    /// Index into the program's maps.
    pub map: usize,
    /// Its name.
    pub name: String,
    /// Whose slot a record is.
    pub unit: Unit,
    /// What is stored, in the order in which the layout counts.
    pub fields: Vec<Field>,
    /// Where its fields lie.
    pub layout: Layout,
    /// Of a stream, how its events are told.
    pub stream: Option<UsedStream>,
}

/// How the events of a stream are told apart, and how many go into a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedStream {
    /// Slots a chunk, a power of two from 4 to 64.
    pub chunk: u32,
    /// What each code means; none if no field has a value of each lane.
    pub codes: Vec<Code>,
}

/// How a module is woven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The kernels run beside their originals, in a module of their own: what they share is pinned.
    pub twin: bool,
    /// Line and column of the kernel in the whole from which this module was cut: sites are told where they are there.
    pub place: Option<(u32, u32)>,
    /// What may be relied on of the shape of launches.
    pub assume: Conditions,
}

/// [`weave_with`] no options.
pub fn weave(module: &Module<'_>, info: &ModuleInfo<'_>, probe: &Prepared, chosen: &[usize]) -> Woven {
    weave_with(module, info, probe, chosen, Options::default())
}

/// Puts `probe` into the kernels of `chosen`, indices into [`Module::functions`]; order and repeats do not matter.
///
/// The module must have been parsed and resolved without errors.
pub fn weave_with(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    probe: &Prepared,
    chosen: &[usize],
    options: Options,
) -> Woven {
    let mut woven = Woven::default();
    let mut edits = Edits::new();
    let mut needs = plan::Needs::default();
    let mut next_span = 0;
    // The names of the clones.
    let mut clone_names: BTreeSet<String> = BTreeSet::new();

    // What no kernel of this module can get around: a text that is woven already, 32-bit addresses.
    let (prefix, pins) = match choose::module(module).and_then(|()| pins::Pins::of(module, info, options)) {
        Ok(pins) => (plan::prefix(module), pins),
        Err(why) => {
            woven.text = module.text.to_owned();
            woven.refused =
                choose::kernels(module, chosen).map(|f| (choose::name(module, f), (*why).clone())).collect();
            return woven;
        }
    };

    let names = choose::Names::of(info);
    let files = sites::SourceFiles::of(module);
    let mut places = sites::Places::new(module.text);
    for function in choose::kernels(module, chosen) {
        let points = choose::points(module, &probe.program, function);
        if points.is_empty() && !choose::asks_for_functions(&probe.program) {
            continue;
        }
        let calls = callees::Calls::of(module, info, &names, function);
        let uncovered = match choose::asks_in_callees(&probe.program, &points) {
            true => uncovered::find(module, info, &names, &calls, function, &mut places),
            false => Vec::new(),
        };
        let mut one = || {
            let mut found = sites::find(module, info, &points, function, &files, &mut places)?;
            sites::move_to(module, function, options.place, &mut found);
            for callee in calls.callees(function) {
                let points = choose::points_in(module, &probe.program, function, callee);
                found.extend(sites::find(module, info, &points, callee, &files, &mut places)?);
            }
            let name = choose::name(module, function);
            let closer = bodies::Closer::new(module, &probe.program, function, &name);
            let (states, mut sites) = plan::sites(&closer, found)?;
            // Its probes match nothing, or have no effect: whatever else is wrong with the kernel is not their business.
            if sites.is_empty() {
                return Ok(None);
            }
            choose::kernel(module, info, &names, &points, function)?;
            let of_program = &probe.program;
            let of_kernel =
                slots::Kernel { module, info, names: &names, files: &files, program: of_program, function };
            let slots = slots::plan(of_kernel, &sites, &calls.callees(function), &mut places)?;
            let cloned =
                callees::Cloned::of(module, info, of_program, &calls, function, &states, &mut sites, &slots)?;
            clones::check(module, &cloned, &calls, function, &prefix, &clone_names)?;
            returns::check(module, info, of_program, &cloned, &calls, function)?;
            choose::surroundings(module, function, &sites, &pins)?;
            choose::surroundings(module, function, &slots.ends, &pins)?;
            let constants = pins::constants(module, info, function, options)?;
            pins.check_room(&constants, closer.at)?;
            let known =
                plan::Known { module, info, probe, pins: &pins, prefix: &prefix, assume: options.assume };
            let mut plan = plan::run(known, function, &closer, &calls, states, sites, slots)?;
            plan.has_clones = !cloned.list.is_empty();

            let mut own = Edits::new();
            let mut next = next_span;
            let contexts = clones::contexts(module, &plan, of_program, &cloned);
            let targets = clones::Targets {
                cloned: &cloned,
                contexts: &contexts,
                program: of_program,
                prefix: &prefix,
                kernel: &name,
            };
            let firsts = plan.first_sites();
            let (mut inside, mut numbers) = (Vec::new(), Vec::new());
            for of in &cloned.list {
                let Some(context) = contexts.get(&of.function) else { continue };
                let clone = plan.of_clone(of, context.clone());
                let spans = place::run(module, info, probe, &clone, of.function, next)?;
                next = spans.next;
                let calls = clones::redirect(module, info, &targets, &calls, of.function, context, &mut next);
                let mut edits = calls.behind;
                edits.extend(spans.edits);
                edits.extend(calls.before);
                if let Some(out) = &context.out {
                    returns::give_back(module, &targets, of.function, out, &mut next, &mut edits);
                }
                next = clones::pin(module, &pins, &prefix, of.function, next, &mut edits);
                clones::edit(module, &names, (of, context), &targets, &edits, &mut own)
                    .map_err(edit_error)?;
                plan.relied.set(plan.relied.get().union(clone.relied.get()));
                inside.extend(sites::describe(module, clone.sites.iter().map(|s| &s.found), &spans.numbers));
                let first = firsts.get(&of.function).copied().unwrap_or(0);
                numbers.extend(spans.numbers.iter().map(|&(site, number)| (first + site, number)));
            }
            let spans = place::run(module, info, probe, &plan, function, next)?;
            next = spans.next;
            let calls = clones::redirect(module, info, &targets, &calls, function, &plan.context, &mut next);
            context::edit(module, &names, function, &plan.context, &mut own);
            own.extend(calls.behind);
            own.extend(spans.edits);
            own.extend(calls.before);
            next_span = next;
            clone_names.extend(clones::names(module, &targets));
            edits.extend(own);
            needs.add(&plan.needs);
            let mut sites = sites::describe(module, plan.sites.iter().map(|s| &s.found), &spans.numbers);
            sites.extend(inside);
            numbers.extend(&spans.numbers);
            numbers.sort_unstable();
            let kernel = plan.into_kernel(module, probe, function, sites, &numbers);
            Ok(Some(WovenKernel { constants, uncovered: uncovered.clone(), ..kernel }))
        };
        let done: Result<Option<WovenKernel>, Refused> = one();
        match done {
            Ok(kernel) => {
                woven.kernels.extend(kernel);
                woven.uncovered.extend(uncovered);
            }
            Err(why) => woven.refused.push((choose::name(module, function), *why)),
        }
    }

    // Nothing woven: the text is the input's, to the byte.
    if woven.kernels.is_empty() {
        woven.text = module.text.to_owned();
        return woven;
    }
    pins.edit(module, &prefix, next_span, &mut edits);
    woven.raised = plan::raise_version(module, &needs, &mut edits);
    match edits.apply(module.text) {
        Ok(text) => woven.text = text,
        // Insertions stand between statements and edits inside headers of one parse, so they cannot overlap.
        Err(error) => {
            let why = *edit_error(error);
            let kernels = std::mem::take(&mut woven.kernels);
            woven.refused.extend(kernels.into_iter().map(|kernel| (kernel.name, why.clone())));
            woven.raised = None;
            woven.text = module.text.to_owned();
        }
    }
    woven
}

fn edit_error(error: nt_ptx::EditError) -> Refused {
    Box::new(Diagnostic::error("weave-edits", nt_diag::Span::at(0), format!("cannot weave: {error}")))
}
