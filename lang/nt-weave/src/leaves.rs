//! Does every lane of a kernel leave where it is seen, as probes of `kernel:exit` want?
//!
//! ```text
//! call f;                       exit in f: in a clone of f
//! call %rd3, (), proto;         to f, as the text tells: it may not hold exit, for a pointer leads to f itself
//! ld.global.u64 %rd4, [p];
//! call %rd4, (), proto;         who knows: refused
//! call linked_later;            refused
//! ```

use crate::Refused;
use crate::choose::Names;
use crate::uncovered::{is_defined, is_of_the_driver};
use nt_diag::{Diagnostic, Span};
use nt_ptx::syntax::Module;
use nt_ptx::{ModuleInfo, pointers};
use std::collections::BTreeSet;

/// What was looked at by a function's index, and whether a pointer leads to it.
type Reached = (usize, bool);

/// What probes of it are called.
pub(crate) const EXIT: &str = "`kernel:exit`";

/// Refuses a kernel that lanes may leave where nobody sees it; `what` of the program wants to.
pub(crate) fn in_sight(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    names: &Names<'_>,
    kernel: usize,
    what: &str,
) -> Result<(), Refused> {
    let Some(entry) = module.functions.get(kernel) else { return Ok(()) };
    let refusal = |slug: &'static str, at: Span, label: String| {
        let name = module.at(entry.name);
        Diagnostic::error(slug, at, format!("{what} cannot be probed in `{name}`")).label(label).help(
            match what {
                EXIT => "probe `kernel:entry` alone, or choose other kernels with `-k`",
                _ => "save to a `stream<warp>`, or choose other kernels with `-k`",
            },
        )
    };
    let mut seen: BTreeSet<Reached> = BTreeSet::from([(kernel, false)]);
    let mut waiting: Vec<Reached> = vec![(kernel, false)];
    while let Some((function, by_pointer)) = waiting.pop() {
        let (Some(known), Some(callee)) = (info.functions.get(function), module.functions.get(function))
        else {
            continue;
        };
        let name = known.name;
        if by_pointer && known.has_exit {
            let what = format!("a pointer may lead to `{name}`, which holds `exit`");
            return Err(Box::new(refusal("indirect-call", callee.name, what).note(
                "it is probed where it is called by its name, not where it is called through a pointer",
            )));
        }
        if !is_defined(module, names, name) && !is_of_the_driver(name) {
            let what = format!("it reaches `{name}`, which is not in this module");
            return Err(Box::new(
                refusal("unknown-callee", entry.name, what)
                    .note("it may hold `exit`, past which no probe would see the lane leave")
                    .note_at(callee.name, "declared here"),
            ));
        }
        let mut add = |name: &str, by_pointer: bool| {
            for name in std::iter::once(name).chain(names.target(name)) {
                let all = names.all(name).iter().map(|&callee| (callee, by_pointer));
                waiting.extend(all.filter(|&reached| seen.insert(reached)));
            }
        };
        known.calls.iter().for_each(|name| add(name, by_pointer));
        if known.indirect_calls.is_empty() {
            continue;
        }
        for call in pointers(module, info, function).calls {
            let Some(targets) = call.targets else {
                let at = module.statements.get(call.statement as usize).map_or(entry.name, |one| one.span);
                let what = format!("`{name}` calls through a pointer");
                return Err(Box::new(refusal("indirect-call", at, what).note(
                    "what is called there may hold `exit`, past which no probe would see the lane leave",
                )));
            };
            targets.iter().for_each(|name| add(name, true));
        }
    }
    Ok(())
}
