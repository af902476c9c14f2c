//! Kernels' names as lines show them: mangled and demangled, and neither of them a page long.
//!
//! A mangled name of 20,000 bytes is real (expression templates). A name over [`LONGEST`] bytes is shown as its first
//! 200, `~`, and 16 hex digits of a hash of the whole, so that two that differ in the last byte stay apart; `nt-map ls`
//! shows it whole, and `-k =NAME` takes either.

use nt_cli::choose::demangle;
use nt_trace::ntm::Site;

/// The longest name that is shown whole.
pub(crate) const LONGEST: usize = 255;

/// A kernel's names, as lines show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// As the driver knows it.
    pub(crate) mangled: String,
    /// As its programmer does.
    pub(crate) demangled: String,
}

impl Names {
    /// Of a kernel by its mangled name.
    pub(crate) fn of(mangled: &str) -> Names {
        Names { mangled: shorten(mangled), demangled: shorten(&demangle(mangled)) }
    }
}

/// The name, or its beginning and a hash.
pub(crate) fn shorten(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let end = (0..=200).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    format!("{}~{:016x}", &name[..end], hash(name.as_bytes()))
}

/// Where a site stands: in its source where the text names that, else in the text.
pub(crate) fn place(site: &Site) -> String {
    match (&site.file, site.source_line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => format!("{}:{}", site.line, site.column),
    }
}

/// FNV-1a, 64 bits: enough to tell the kernels of a trace apart, and the same in every version of this program.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of draft-eastlake-fnv.
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn long_names_that_differ_in_the_last_byte_stay_apart() {
        for length in [300, 20_000] {
            let (a, b) = (format!("{}a", "x".repeat(length - 1)), format!("{}b", "x".repeat(length - 1)));
            assert_ne!(shorten(&a), shorten(&b));
            assert_eq!(shorten(&a).len(), 200 + 1 + 16);
        }
        assert_eq!(shorten(&"x".repeat(255)), "x".repeat(255));
        // 'é' is two bytes: byte 200 lies inside one.
        assert!(shorten(&format!("x{}", "é".repeat(200))).starts_with(&format!("x{}~", "é".repeat(99))));
    }

    #[test]
    fn both_names_are_kept() {
        let names = Names::of("_Z9gemm_tilePfi");
        assert_eq!(
            (names.mangled.as_str(), names.demangled.as_str()),
            ("_Z9gemm_tilePfi", "gemm_tile(float*, int)")
        );
    }
}
