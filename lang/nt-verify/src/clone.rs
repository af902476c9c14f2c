//! V15: clones of functions are these functions, but for their spans, their names and one parameter more. A clone is of one
//! kernel, whose cells it adds to; a function that several kernels call has several.
//!
//! ```text
//! /*nt:clone f k{*/.func /*nt:edit 66{*/f__nt__k/*}nt:edit*/(.param .b32 a/*nt:edit {*/,
//!     .param .align 8 .b8 nt_ctx[16] /*nt:ctx prefix=nt_ base.m@0:8 cap.m@8:8 stride.m=16*//*}nt:edit*/) { … }/*}nt:clone*/
//! ```
//!
//! A clone is held against the text of its function as the whole woven text is against the original, and its spans
//! then against the same places, with its own claim as their context. `call.rs` sees to it that callers keep the claim.

use crate::back::{self, Out};
use crate::claim::Claim;
use crate::head::{Kernels, parameter};
use crate::names::identifiers;
use crate::place::is_between_items;
use crate::undo::{Clone, Inserted, compare, unique};
use crate::{Report, Rule};
use nt_diag::Span;
use nt_ptx::syntax::Module;
use std::collections::{BTreeMap, HashSet};

/// A clone that is its function's.
#[derive(Debug)]
pub(crate) struct Cloned {
    /// The function, by index in [`Module::functions`]: one of its declarations.
    pub(crate) function: usize,
    /// The name of the kernel that it is for.
    pub(crate) kernel: String,
    /// What it is called: `f__nt__k`.
    pub(crate) name: String,
    pub(crate) claim: Claim,
    /// What it gives back to its callers.
    pub(crate) out: Option<Out>,
    /// Marks included, in the woven text.
    pub(crate) whole: Span,
    /// Its spans and edits.
    pub(crate) inserted: Vec<Inserted>,
    /// The edits that are neither of its name nor of its parameters.
    pub(crate) others: Vec<Inserted>,
}

/// Reads the clones; those that are none of their function are told and left out.
pub(crate) fn clones<'w>(
    module: &Module<'_>,
    woven: &'w str,
    clones: &[Clone<'w>],
    kernels: &Kernels,
    numbers: &mut HashSet<&'w str>,
    report: &mut Report,
) -> Vec<Cloned> {
    if clones.is_empty() {
        return Vec::new();
    }
    // The prefix of each kernel that has a context.
    let prefixes: BTreeMap<&str, &str> = kernels
        .iter()
        .filter_map(|(&kernel, context)| {
            Some((module.at(module.functions.get(kernel)?.name), context.claim.prefix.as_str()))
        })
        .collect();
    // The declarations of each function, in their order.
    let mut declared: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, function) in module.functions.iter().enumerate().filter(|(_, function)| !function.is_entry) {
        declared.entry(module.at(function.name)).or_default().push(index);
    }
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut cloned: Vec<Cloned> = Vec::new();
    for clone in clones {
        let nth = seen.entry((clone.of, clone.kernel)).or_default();
        let function = declared.get(clone.of).and_then(|all| all.get(*nth)).copied();
        *nth += 1;
        let read = match (function, prefixes.get(clone.kernel)) {
            _ if !is_between_items(module, clone.at) => {
                Err((clone.whole, "a clone that does not stand between two items".into()))
            }
            (_, None) => {
                Err((clone.whole, format!("a clone, and no kernel `{}` has a context", clone.kernel)))
            }
            (None, _) => {
                Err((clone.whole, format!("no function `{}` is declared as often as it is cloned", clone.of)))
            }
            (Some(function), Some(prefix)) => read(module, woven, clone, function, prefix),
        };
        match read {
            Ok(read) => {
                unique(woven, &read.inserted, numbers, report);
                cloned.push(read);
            }
            Err((span, message)) => report.add(Rule::V15, span, message),
        }
    }
    for ((name, kernel), count) in seen {
        if declared.get(name).is_some_and(|all| all.len() > count)
            && let Some(clone) = clones.iter().find(|clone| (clone.of, clone.kernel) == (name, kernel))
        {
            report.add(Rule::V15, clone.whole, format!("another declaration of `{name}` has no clone"));
        }
    }
    agree(module, &cloned, report);
    cloned
}

/// One clone.
fn read(
    module: &Module<'_>,
    woven: &str,
    clone: &Clone<'_>,
    index: usize,
    prefix: &str,
) -> Result<Cloned, (Span, String)> {
    let Some(function) = module.functions.get(index) else {
        return Err((clone.whole, "a clone of nothing".into()));
    };
    let inserted = compare(module.text, function.span, woven, clone.inner, None)?;
    let name = format!("{}__{}__{}", clone.of, prefix.trim_end_matches('_'), clone.kernel);
    let head = function.body.as_ref().map_or(function.span.end, |body| body.span.start);
    let linkage = function.linkage.map_or("", |linkage| module.at(linkage));
    let (mut names, mut claim, mut others, mut is_local) = (0, None, Vec::new(), linkage.is_empty());
    let mut out = None;
    for edit in inserted.iter().filter(|inserted| inserted.is_edit) {
        if Some(edit.old) == function.linkage && edit.inner.of(woven).is_empty() {
            is_local = true;
        } else if edit.old == function.name {
            names += 1;
            if edit.inner.of(woven) != name {
                return Err((edit.inner, format!("this clone of `{}` is called `{name}`", clone.of)));
            }
        } else if back::is_of_result(function, edit.old) {
            let read = back::read(module, function, woven, edit, prefix)?;
            if out.replace(read).is_some() {
                return Err((edit.whole, "a second edit of what a clone returns".into()));
            }
        } else if edit.old.start < head {
            let read = parameter(module, function, woven, edit, true)?;
            if claim.replace(read).is_some() {
                return Err((edit.whole, "a second context parameter".into()));
            }
        } else {
            others.push(*edit);
        }
    }
    if names != 1 {
        return Err((clone.whole, format!("a clone that is not called `{name}`")));
    }
    if linkage.contains("extern") {
        return Err((clone.whole, format!("`{}` is a function of another module", clone.of)));
    }
    // Linked with other modules, a weak clone could be theirs, which has another claim.
    if !is_local && linkage.contains("weak") {
        let message = format!("the clone of `{}` must not be `{linkage}` as the function is", clone.of);
        return Err((clone.whole, message));
    }
    let Some(claim) = claim else {
        return Err((clone.whole, "a clone without the context parameter".into()));
    };
    if claim.prefix != prefix || !claim.pins.is_empty() {
        return Err((
            clone.whole,
            "a clone whose claim has another prefix than the kernels', or pins".into(),
        ));
    }
    Ok(Cloned {
        function: index,
        kernel: clone.kernel.to_owned(),
        name,
        claim,
        out,
        whole: clone.whole,
        inserted,
        others,
    })
}

/// The clones of one function for one kernel have one claim, and their names are nobody else's.
fn agree(module: &Module<'_>, clones: &[Cloned], report: &mut Report) {
    let of = |clone: &Cloned| module.functions.get(clone.function).map(|function| module.at(function.name));
    let mut names: BTreeMap<&str, &Cloned> = BTreeMap::new();
    for clone in clones {
        let first = *names.entry(clone.name.as_str()).or_insert(clone);
        let is_like = match (&first.out, &clone.out) {
            (Some(one), Some(other)) => one.is_like(other),
            (one, other) => one == other,
        };
        if (of(first), &first.kernel) != (of(clone), &clone.kernel) {
            report.add(Rule::V4, clone.whole, format!("another clone is called `{}` too", clone.name));
        } else if first.claim != clone.claim || !is_like {
            report.add(Rule::V15, clone.whole, "another declaration of this clone has another claim");
        }
    }
    if names.is_empty() {
        return;
    }
    identifiers(module.text, |_, name| {
        if let Some(clone) = names.get(name) {
            report.add(Rule::V4, clone.whole, format!("the original has a `{name}` already"));
        }
    });
}
