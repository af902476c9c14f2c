//! What could be probed: a line a kernel and tracepoint, columns by tabs, `-` where there is no value.
//!
//! ```text
//! kernel  tracepoint        sites  places        name
//! _Z1kPf  kernel:entry      1      12:5          k(float*)
//! _Z1kPf  kernel:exit       2      18:5,31:5     k(float*)
//! _Z1kPf  inst:load.global  3      14:5,15:5     k(float*)
//! ```
//!
//! Places are `line:column` in the PTX, or the source's where `.loc` tells, each once: `k.cu:7`. Instructions that cannot
//! be reached are left out.

use crate::choose::{self, Choice, demangle};
use crate::image::{Image, Parsed};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;
use nt_weave::{Kind, Site, list_sites_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// The first line.
pub const HEAD: &str = "kernel\ttracepoint\tsites\tplaces\tname\n";

/// What an image holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Lines below [`HEAD`], of the kernels that are chosen.
    pub rows: String,
    /// Chosen kernels that cannot be read, and why.
    pub refused: Vec<(String, String)>,
    /// Chosen kernels that are there as machine code alone.
    pub closed: Vec<String>,
    /// Why there is no kernel at all; empty if there is one.
    pub reason: String,
    /// What of the image is damaged.
    pub faults: Vec<String>,
    /// Names nearest to the choices, where nothing is chosen.
    pub nearest: Vec<String>,
}

/// Lists the kernels of an image that are chosen, each as it is in the newest PTX that holds it.
pub fn list(bytes: &[u8], choices: &[Choice]) -> Listing {
    let mut image = Image::read(bytes);
    image.keep(bytes);
    let chosen = |names: &[String]| -> Vec<String> {
        let names = names.iter().map(String::as_str);
        choose::choose(choices, names).into_iter().map(str::to_owned).collect()
    };
    let (kernels, closed) = (chosen(&image.kernels), chosen(&image.closed));
    let newest = image.newest.unwrap_or_default();
    let mut listing = Listing { closed, ..Listing::default() };
    // A module is listed at once, which takes as long as one kernel of it; the kernels keep the image's order.
    let mut modules: Vec<(Arc<Parsed>, Vec<usize>)> = Vec::new();
    for kernel in kernels {
        let found = image.module(&kernel, newest).and_then(|(parsed, _)| {
            let functions = &parsed.resolved().module.functions;
            let named = |f: &nt_ptx::syntax::Function| parsed.resolved().module.at(f.name) == kernel;
            let index = functions.iter().position(|f| f.is_entry && f.body.is_some() && named(f));
            index.map(|index| (Arc::clone(&parsed), index)).ok_or_else(|| crate::Refusal {
                reason: "the module has no such kernel".to_owned(),
                bug: None,
            })
        });
        match found {
            Ok((parsed, index)) => match modules.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &parsed)) {
                Some((_, indices)) => indices.push(index),
                None => modules.push((parsed, vec![index])),
            },
            Err(refusal) => listing.refused.push((kernel, refusal.reason)),
        }
    }
    for (parsed, kernels) in &modules {
        let resolved = parsed.resolved();
        listing.rows += &rows(&resolved.module, &resolved.info, kernels);
    }
    if listing.rows.is_empty() {
        let names: Vec<&str> = image.kernels.iter().chain(&image.closed).map(String::as_str).collect();
        listing.nearest = choose::nearest(choices, &names, 3).into_iter().map(str::to_owned).collect();
    }
    (listing.reason, listing.faults) = (image.reason, image.faults);
    listing
}

/// The lines of kernels of a module, indices into [`Module::functions`].
pub fn rows(module: &Module<'_>, info: &ModuleInfo<'_>, kernels: &[usize]) -> String {
    let mut out = String::new();
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

/// The instructions among sites by class and space, in the order of the classes. A `ret` is one too.
pub fn instructions(sites: &[Site]) -> BTreeMap<(Kind, String), Vec<&Site>> {
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
