//! The hook's view of the driver's interface against the headers': `abi.tsv`, which `make abi` makes from pinned ones.
//!
//! A test, and nothing else: what a function passes is read off its Rust type, and must be what the table says of the
//! symbol. Signs do not matter to a call, nor what a pointer points at.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};

use crate::{driver, table};

/// What passing an argument takes, as a letter of the table.
pub(crate) trait Kind {
    const LETTER: char;
}

macro_rules! kinds {
    ($($letter:literal: $($ty:ty),*;)*) => { $($(impl Kind for $ty { const LETTER: char = $letter; })*)* };
}

kinds! {
    'i': u32, i32;
    'l': u64, usize;
}

impl<T> Kind for *const T {
    const LETTER: char = 'p';
}

impl<T> Kind for *mut T {
    const LETTER: char = 'p';
}

/// Of types, a letter each.
macro_rules! letters {
    ($($ty:ty),*) => { String::from_iter([$(<$ty as $crate::abi::Kind>::LETTER),*] as [char; _]) };
}
pub(crate) use letters;

/// Symbols and what they pass.
fn from_headers() -> BTreeMap<&'static str, &'static str> {
    let lines = include_str!("../abi.tsv").lines().filter(|line| !line.starts_with('#'));
    let rows = lines.skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.map(|row| (row[0], row[3])).collect()
}

/// `cuCtxDestroy_v2` -> `cuCtxDestroy`
fn base(symbol: &str) -> &str {
    let plain = symbol.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    plain.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix("_v").unwrap_or(plain)
}

#[test]
fn types_and_names() {
    assert_eq!(letters!(*const c_char, u32, usize, i32, u64, *mut c_void), "pililp");
    let bases = ["cuInit", "cuStreamGetCtx_v2_ptsz", "cuMemcpyDtoH_v2_ptds"].map(base);
    assert_eq!(bases, ["cuInit", "cuStreamGetCtx", "cuMemcpyDtoH"]);
}

#[test]
fn hooks_are_as_the_headers_say() {
    let headers = from_headers();
    let hooks = table::signatures();
    for (name, kinds) in &hooks {
        assert_eq!(headers.get(name), Some(&kinds.as_str()), "{name}");
    }
    // A version that is not hooked would let launches or loads pass unseen.
    let bases: Vec<&str> = hooks.iter().map(|(name, _)| base(name)).collect();
    let unhooked = headers.keys().filter(|symbol| bases.contains(&base(symbol)));
    let unhooked: Vec<_> = unhooked.filter(|symbol| !hooks.iter().any(|(name, _)| name == *symbol)).collect();
    assert_eq!(unhooked, Vec::<&&str>::new());
}

#[test]
fn calls_are_as_the_headers_say() {
    let headers = from_headers();
    for (name, kinds) in driver::signatures() {
        assert_eq!(headers.get(name), Some(&kinds.as_str()), "{name}");
    }
}
