//! Which functions are cloned for a kernel, and what each is given.
//!
//! ```text
//! f    words of the context for `@a` and `state n`, of its own sites, and what g needs
//! g    the zero, of `clock(x)`
//! ```
//!
//! A clone uses what its sites use and what the clones that it calls do; functions may call each other in rings.

use super::{Calls, sums};
use crate::Refused;
use crate::bodies::{Body, Site};
use crate::choose::name;
use crate::plan::Keep;
use crate::slots::Slots;
use crate::tables;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Op, Program, StateId};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;
use std::collections::{BTreeMap, BTreeSet};

/// The functions that are cloned for a kernel, and what each must be given.
#[derive(Debug, Default)]
pub(crate) struct Cloned {
    /// By index of their definitions, in text order.
    pub(crate) list: Vec<Needs>,
}

/// What a clone uses, itself or by what it calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The function, by index of its definition.
    pub(crate) function: usize,
    pub(crate) states: BTreeSet<StateId>,
    /// Those of them that its callers take back.
    pub(crate) back: BTreeSet<StateId>,
    /// Indices into the program's maps and tables.
    pub(crate) maps: BTreeSet<usize>,
    pub(crate) tables: BTreeSet<usize>,
    /// The number of the launch, and the zero.
    pub(crate) launch: bool,
    pub(crate) zero: bool,
}

impl Needs {
    fn add(&mut self, other: &Needs) {
        self.states.extend(&other.states);
        self.maps.extend(&other.maps);
        self.tables.extend(&other.tables);
        self.launch |= other.launch;
        self.zero |= other.zero;
    }

    fn of_site(&mut self, program: &Program, site: &Site<'_>, keep: &[Keep]) {
        use nt_ir::program::Builtin;
        if site.bodies.iter().any(Body::is_of_last) {
            self.tables.extend(tables::gone(program).map(|table| table.0 as usize));
        }
        for inst in site.bodies.iter().flat_map(|body| &body.code.code) {
            match &inst.op {
                Op::ReadState(state) | Op::WriteState(state, _)
                    if keep.get(state.0 as usize) == Some(&Keep::Register) =>
                {
                    self.states.insert(*state);
                }
                Op::Save { map, .. } => _ = self.maps.insert(map.0 as usize),
                Op::Aggregate { table, .. } => _ = self.tables.insert(table.0 as usize),
                Op::Builtin(Builtin::Launch) => self.launch = true,
                Op::ClockAfter(..) => self.zero = true,
                _ => {}
            }
        }
    }
}

impl Cloned {
    /// What has to be cloned, `sites` being those of the kernel and of all that it reaches.
    ///
    /// # Errors
    /// What is counted in a function is added up nowhere, or a function is called by another name.
    #[allow(clippy::too_many_arguments, reason = "all that is known of a kernel")]
    pub(crate) fn of(
        module: &Module<'_>,
        info: &ModuleInfo<'_>,
        program: &Program,
        calls: &Calls,
        kernel: usize,
        keep: &[Keep],
        sites: &mut Vec<Site<'_>>,
        slots: &Slots<'_>,
    ) -> Result<Cloned, Refused> {
        let with_sites: BTreeSet<usize> = sites
            .iter()
            .chain(&slots.ends)
            .map(|site| site.found.function)
            .filter(|&function| function != kernel)
            .collect();
        if with_sites.is_empty() {
            return Ok(Cloned::default());
        }
        let clones = calls.leading_to(with_sites, kernel);
        check_names(module, calls, &clones)?;
        let out = sums::states_out(module, info, program, calls, kernel, &clones, keep, sites)?;
        for (function, state_sites) in out.added {
            sums::insert(sites, function, state_sites);
        }
        let mut needs: BTreeMap<usize, Needs> =
            clones.iter().map(|&function| (function, Needs { function, ..Needs::default() })).collect();
        for (function, states) in out.back {
            if let Some(needs) = needs.get_mut(&function) {
                needs.states.extend(&states);
                needs.back = states;
            }
        }
        for site in sites.iter() {
            if let Some(needs) = needs.get_mut(&site.found.function) {
                needs.of_site(program, site, keep);
            }
        }
        // Where lanes leave with their counts.
        for end in &slots.ends {
            if let Some(needs) = needs.get_mut(&end.found.function) {
                needs.maps.extend(slots.list.iter().map(|map| map.0 as usize));
            }
        }
        loop {
            let before = needs.clone();
            for (function, own) in &mut needs {
                for call in calls.within(*function) {
                    if let Some(other) = before.get(&call.callee) {
                        own.add(other);
                    }
                }
            }
            if before == needs {
                return Ok(Cloned { list: needs.into_values().collect() });
            }
        }
    }

    pub(crate) fn has(&self, function: usize) -> bool {
        self.list.iter().any(|needs| needs.function == function)
    }
}

pub(super) fn refusal(
    module: &Module<'_>,
    at: Span,
    slug: &'static str,
    function: usize,
    label: String,
) -> Refused {
    let name = name(module, function);
    Box::new(Diagnostic::error(slug, at, format!("instructions cannot be probed in `{name}`")).label(label))
}

fn check_names(module: &Module<'_>, calls: &Calls, clones: &BTreeSet<usize>) -> Result<(), Refused> {
    for (&function, list) in &calls.of {
        if let Some(call) = list.iter().find(|call| !call.is_by_name && clones.contains(&call.callee)) {
            let at = module.statements.get(call.statement as usize).map_or(Span::at(0), |one| one.span);
            let label = format!("`{}` is probed, and called by an alias here", name(module, call.callee));
            return Err(refusal(module, at, "call-by-alias", function, label));
        }
    }
    Ok(())
}
