//! What version and target the woven text needs: by its builtins, its elections, its parameters.
//!
//! ```text
//! time() reads %globaltimer      .version 3.1, sm_30
//! saves elect by activemask      .version 6.2, sm_30
//! ```
//!
//! `.version` is raised where it must be, which changes no machine code; a `.target` that is too old is a refusal. The
//! tables are `nt_ptx::version`'s.

use super::Keep;
use crate::bodies::Site;
use crate::emit::live;
use crate::{Raised, Refused, sites};
use nt_diag::Diagnostic;
use nt_ir::program::{Builtin, Op, Unit};
use nt_ptx::Edits;
use nt_ptx::syntax::{Function, Module, Version};
use nt_ptx::version::{Arch, Pair, need};

/// The highest version that something woven in needs, and what that is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Needs {
    pub(super) version: Pair,
    reason: String,
}

impl Needs {
    pub(super) fn at_least(&mut self, version: Pair, reason: impl Into<String>) {
        if self.version < version {
            (self.version, self.reason) = (version, reason.into());
        }
    }

    pub(crate) fn add(&mut self, other: &Needs) {
        self.at_least(other.version, other.reason.as_str());
    }
}

/// The builtins that effects depend on, each once, rising.
pub(super) fn uses(sites: &[Site<'_>], states: &[Keep]) -> Vec<Builtin> {
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
pub(super) fn requirement(builtin: Builtin) -> Option<(&'static str, &'static str)> {
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

pub(super) const ACTIVEMASK: &str = "activemask.b32";

pub(super) const REDUX: &str = "redux.sync";

/// Does a span here read `activemask` to elect a lane?
pub(super) fn elects_by_mask(site: &Site<'_>) -> bool {
    site.bodies.iter().map(|body| &*body.code).any(|probe| {
        probe.unit == Unit::Warp
            && (site.found.kind != sites::Kind::Entry || probe.predicate.is_some())
            && probe.code.iter().any(|inst| matches!(inst.op, Op::Save { .. } | Op::Aggregate { .. }))
    })
}

/// Is the module made for a GPU that has what `what` reads? Notes the version. An architecture that no table knows is
/// let pass: newer ones have what older ones have.
pub(super) fn check_need(
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
