//! `--dry-run`: what would be done, and what would become of the kernels that the command's own file holds.
//!
//! ```text
//! probe    block_sched
//! command  /home/me/app
//! kernel   gemm       probed for sm_90: 3 sites
//! kernel   histogram  it uses the module's .texref variable `t`, …
//! kernel   fill       not selected
//! ```
//!
//! Kernels are woven and verified for the newest architecture that the file has PTX for, and not assembled: what an
//! assembler or a device may refuse is not known. Nothing is assumed of launches, since none is known. Kernels of libraries, and those that are compiled while the command
//! runs, are not looked for.

use nt_cli::choose::demangle;
use nt_engine::{Conditions, Engine};
use std::path::Path;

/// Larger files are not read.
const LARGEST: u64 = 1 << 30;

/// A line a kernel of `file`; one line if there is none.
pub(crate) fn kernels(engine: &Engine, file: &Path) -> Vec<String> {
    let size = std::fs::metadata(file).map_or(0, |data| data.len());
    let bytes = if size <= LARGEST { std::fs::read(file).ok() } else { None };
    let Some(bytes) = bytes else { return vec!["kernels in it\tunknown: it cannot be read".to_owned()] };
    let found = engine.inspect(&bytes);
    if found.kernels.is_empty() {
        let closed = found.closed.iter().map(|name| line(name, &found.reason));
        let none = found.closed.is_empty().then(|| format!("kernels in it\tnone: {}", found.reason));
        return closed.chain(none).collect();
    }
    let newest = found.newest.unwrap_or(0);
    let outcome = |kernel: &String| {
        if !found.selected.contains(kernel) {
            return "not selected".to_owned();
        }
        match engine.prepare(found.image, kernel, newest, Conditions::NONE) {
            Ok(prepared) => {
                let sites = prepared.manifest.kernels.iter().map(|kernel| kernel.sites.len()).sum::<usize>();
                let noun = if sites == 1 { "site" } else { "sites" };
                format!("probed for {}: {sites} {noun}", prepared.manifest.target)
            }
            Err(refusal) => refusal.reason.clone(),
        }
    };
    found.kernels.iter().map(|kernel| line(kernel, &outcome(kernel))).collect()
}

fn line(kernel: &str, outcome: &str) -> String {
    format!("kernel\t{}\t{outcome}", demangle(kernel))
}
