//! `-l`: a line a kernel and tracepoint, columns by tabs, `-` where there is no value.
//!
//! ```text
//! kernel  tracepoint    sites  places        name
//! _Z1kPf  kernel:entry  1      12:5          k(float*)
//! _Z1kPf  kernel:exit   2      18:5,31:5     k(float*)
//! ```
//!
//! Places are `line:column` in the PTX, or the source's where `.loc` tells: `k.cu:7`.

use nt_cli::choose::demangle;
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;
use nt_weave::{Kind, Site, list_sites_of};
use std::fmt::Write;

pub(crate) fn run(module: &Module<'_>, info: &ModuleInfo<'_>, kernels: &[usize]) -> String {
    let mut out = "kernel\ttracepoint\tsites\tplaces\tname\n".to_owned();
    for (&kernel, sites) in kernels.iter().zip(list_sites_of(module, info, kernels, false)) {
        let name = module.functions.get(kernel).map_or("", |function| module.at(function.name));
        for kind in [Kind::Entry, Kind::Exit] {
            let at: Vec<&Site> = sites.iter().filter(|site| site.kind == kind).collect();
            let places: Vec<String> = at.iter().map(|site| place(site)).collect();
            let places = if places.is_empty() { "-".to_owned() } else { places.join(",") };
            let (point, count, source) = (kind.tracepoint(), at.len(), demangle(name));
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name}\t{point}\t{count}\t{places}\t{source}");
        }
    }
    out
}

fn place(site: &Site) -> String {
    match &site.source {
        Some((file, line)) => format!("{file}:{line}"),
        None => format!("{}:{}", site.line, site.column),
    }
}
