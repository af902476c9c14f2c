//! What must hold whatever the bytes: a law for each reader of this repository, and for weaver and verifier together.
//!
//! ```
//! nt_fuzz::run("ptx", b".version 8.5\n.target sm_90\n.entry k { ret").unwrap();
//! ```
//!
//! A law that does not hold is a panic. Each is run in two ways: by libFuzzer (`make fuzz TARGET=ptx`, a nightly
//! compiler), and over the inputs kept in `testdata/fuzz/` by a test that any compiler runs. An input that the fuzzer
//! finds to be wrong goes there when its fault is mended. `cargo run -p nt-fuzz -- ptx FILE` runs one.

#![allow(clippy::panic, reason = "a broken law ends the run")]
#![allow(clippy::missing_panics_doc, reason = "panics are what these functions are for")]

mod containers;
mod programs;
#[path = "../../../lang/nt-ptx/tests/laws/mod.rs"]
mod reader;
mod woven;

pub use containers::{object, wire};
pub use programs::{ir, probe};
pub use woven::{verify, weave};

/// What must hold for any bytes.
pub type Law = fn(&[u8]);

/// Laws by their names, which are also those of their folders under `testdata/fuzz/`.
pub const TARGETS: [(&str, Law); 7] = [
    ("ptx", ptx),
    ("weave", weave),
    ("verify", verify),
    ("probe", probe),
    ("ir", ir),
    ("object", object),
    ("wire", wire),
];

/// Holds `bytes` to the law that is called `name`.
///
/// # Errors
/// There is no such law; what there is.
pub fn run(name: &str, bytes: &[u8]) -> Result<(), String> {
    let Some((_, law)) = TARGETS.iter().find(|(target, _)| *target == name) else {
        let names: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
        return Err(format!("no target is called `{name}`: there are {}", names.join(", ")));
    };
    law(bytes);
    Ok(())
}

/// The reader of PTX: nothing is lost, nodes lie in order, resolver and flow take anything, insertions can be undone.
pub fn ptx(bytes: &[u8]) {
    reader::all(&String::from_utf8_lossy(bytes));
}
