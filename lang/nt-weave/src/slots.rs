//! Plans the arrays with a capacity that a kernel saves to: which they are, and where lanes leave with their counts.
//!
//! ```text
//! map last: array<warp>[8] wrap { at: u64 }
//! warp inst:barrier { last.save(clock()); }      at each barrier: a record, and the lane's count goes up
//!                                                 before each `ret` and `exit`: the count is stored, probe or none
//! ```
//!
//! A count is a register of each thread, from the kernel's entry on. It is stored where the thread leaves, behind all that
//! probes do there: so each way out is a place of its own, also of programs that have nothing else to do there. A unit
//! whose count is not stored reads as one that did not leave, as after a trap.

use crate::Refused;
use crate::bodies::Site;
use crate::choose::Names;
use crate::instructions::Wanted;
use crate::leaves;
use crate::sites::{self, Found, Places, Point, SourceFiles};
use crate::streams::Turn;
use nt_ir::program::{MapId, MapKind, Op, Program};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;

/// The arrays with a capacity of a kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots<'p> {
    /// Those that something is saved to, rising.
    pub(crate) list: Vec<MapId>,
    /// The ways out of the kernel, in functions too, without bodies, where there are such arrays.
    pub(crate) ends: Vec<Site<'p>>,
}

impl<'p> Slots<'p> {
    /// Those that a clone of a function uses, whose ways out these are then.
    pub(crate) fn of_clone(&mut self, function: usize, uses: impl Fn(MapId) -> bool) -> Slots<'p> {
        let ends = self.ends.extract_if(.., |end| end.found.function == function).collect();
        Slots { list: self.list.iter().copied().filter(|&map| uses(map)).collect(), ends }
    }
}

/// What is known of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Kernel<'a, 's> {
    pub(crate) module: &'a Module<'s>,
    pub(crate) info: &'a ModuleInfo<'s>,
    pub(crate) names: &'a Names<'s>,
    pub(crate) files: &'a SourceFiles<'s>,
    pub(crate) program: &'a Program,
    pub(crate) function: usize,
}

/// Plans the arrays that `sites` save to; `callees` are the functions that the kernel reaches.
///
/// # Errors
/// A lane could leave past all places at which its count is stored.
pub(crate) fn plan<'p>(
    kernel: Kernel<'_, '_>,
    sites: &[Site<'_>],
    callees: &[usize],
    places: &mut Places<'_>,
) -> Result<Slots<'p>, Refused> {
    let Kernel { module, info, names, files, program, function } = kernel;
    let list = list(program, sites);
    if list.is_empty() {
        return Ok(Slots::default());
    }
    leaves::in_sight(module, info, names, function, "an array with a capacity")?;
    let point = Point { wanted: vec![Wanted::Exit], exit: true, ..Point::of(0) };
    let mut found = sites::find(module, info, &[point], function, files, places)?;
    // `ret` is no way out of the kernel there.
    let point = Point { wanted: vec![Wanted::Leave], ..Point::of(0) };
    for &callee in callees {
        found.extend(sites::find(module, info, std::slice::from_ref(&point), callee, files, places)?);
    }
    let end =
        |found| Site { found: Found { probes: Vec::new(), ..found }, bodies: Vec::new(), turn: Turn::Alone };
    Ok(Slots { list, ends: found.into_iter().map(end).collect() })
}

/// The arrays that these sites save to.
fn list(program: &Program, sites: &[Site<'_>]) -> Vec<MapId> {
    let code = sites.iter().flat_map(|site| &site.bodies).flat_map(|body| &body.code.code);
    let mut list: Vec<MapId> = code.filter_map(|inst| to_slots(program, &inst.op)).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// The array with a capacity that a save is to.
pub(crate) fn to_slots(program: &Program, op: &Op) -> Option<MapId> {
    let Op::Save { map, .. } = op else { return None };
    let kind = program.maps.get(map.0 as usize)?.kind;
    matches!(kind, MapKind::Slots { .. }).then_some(*map)
}
