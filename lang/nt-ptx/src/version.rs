//! PTX versions and targets, and what needs which, as data: for raising a module's `.version`, and for refusing
//! before an assembler would.
//!
//! ```
//! use nt_ptx::version::{Arch, need};
//! let elect = need("elect.sync").unwrap();
//! assert_eq!(elect.version, (8, 0));
//! let sm_80 = Arch::parse("sm_80").unwrap();
//! assert!(!elect.allows(sm_80));
//! assert_eq!(Arch::parse("sm_90a").unwrap().least_version(), Some((8, 0)));
//! ```
//!
//! Source: PTX ISA 9.0, the "PTX ISA Notes" and "Target ISA Notes" of each instruction and special register, and
//! table 61 (release history); targets and releases after it, ptxas 13.1 to 13.5. Raising `.version` alone changes no code.

use std::fmt;

/// A PTX version: `(8, 7)`. Compares as versions do: `(7, 8) < (8, 0)`.
pub type Pair = (u16, u16);

/// Bytes of parameters an entry may have under a PTX version: 4,352 below 8.1, 32,764 from there (section 5.1.6).
/// Alignment counts: the end of the last parameter may lie there and no further.
pub fn parameter_limit(version: Pair) -> u32 {
    if version >= (8, 1) { 32_764 } else { 4_352 }
}

/// The version from which [`parameter_limit`] is the larger one.
pub const LARGE_PARAMETERS: Pair = (8, 1);

/// A target architecture: `sm_90a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arch {
    /// 90 of `sm_90a`, 103 of `sm_103f`.
    pub number: u16,
    /// `a` (that architecture alone), `f` (its family), none (it and later ones), or a letter of a later PTX.
    pub suffix: Option<char>,
}

impl Arch {
    /// Reads `sm_90a` or `compute_90a`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Arch> {
        let rest = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"))?;
        let (digits, suffix) = match rest.strip_suffix(|c: char| c.is_ascii_lowercase()) {
            Some(digits) => (digits, rest.chars().last()),
            None => (rest, None),
        };
        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        Some(Arch { number: digits.parse().ok()?, suffix })
    }

    /// The least PTX version in which this target may stand; `None` for one that this table is too old to know.
    pub fn least_version(self) -> Option<Pair> {
        TARGETS
            .iter()
            .find(|(number, suffix, _)| (*number, *suffix) == (self.number, self.suffix))
            .map(|t| t.2)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

/// Targets and the PTX version that brought them.
const TARGETS: &[(u16, Option<char>, Pair)] = &[
    (30, None, (3, 0)),
    (32, None, (4, 0)),
    (35, None, (3, 1)),
    (37, None, (4, 1)),
    (50, None, (4, 0)),
    (52, None, (4, 1)),
    (53, None, (4, 2)),
    (60, None, (5, 0)),
    (61, None, (5, 0)),
    (62, None, (5, 0)),
    (70, None, (6, 0)),
    (72, None, (6, 1)),
    (75, None, (6, 3)),
    (80, None, (7, 0)),
    (86, None, (7, 1)),
    (87, None, (7, 4)),
    (88, None, (9, 0)),
    (89, None, (7, 8)),
    (90, None, (7, 8)),
    (90, Some('a'), (8, 0)),
    (100, None, (8, 6)),
    (100, Some('a'), (8, 6)),
    (100, Some('f'), (8, 8)),
    // From PTX 9.0 on it is called sm_110.
    (101, None, (8, 6)),
    (101, Some('a'), (8, 6)),
    (101, Some('f'), (8, 8)),
    (103, None, (8, 8)),
    (103, Some('a'), (8, 8)),
    (103, Some('f'), (8, 8)),
    (107, None, (9, 4)),
    (107, Some('a'), (9, 4)),
    (107, Some('f'), (9, 4)),
    (110, None, (9, 0)),
    (110, Some('a'), (9, 0)),
    (110, Some('f'), (9, 0)),
    (120, None, (8, 7)),
    (120, Some('a'), (8, 7)),
    (120, Some('f'), (8, 8)),
    (121, None, (8, 8)),
    (121, Some('a'), (8, 8)),
    (121, Some('f'), (8, 8)),
];

/// What an instruction or special register needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// `elect.sync`, `%clock64`
    pub name: &'static str,
    /// The least PTX version.
    pub version: Pair,
    /// The least target, 90 for `sm_90`.
    pub target: u16,
}

impl Need {
    /// Does a target have it?
    pub fn allows(&self, arch: Arch) -> bool {
        arch.number >= self.target
    }
}

/// What must be asked about before it is inserted; all else that probes use is as old as `sm_30` and PTX 3.1. For
/// instructions a test holds this to the table of [`crate::opcode`].
const NEEDS: &[Need] = &[
    Need { name: "activemask.b32", version: (6, 2), target: 30 },
    Need { name: "atom.add.f64", version: (5, 0), target: 60 },
    Need { name: "cvta.param", version: (7, 7), target: 70 },
    Need { name: "elect.sync", version: (8, 0), target: 90 },
    Need { name: "isspacep.param", version: (7, 7), target: 70 },
    Need { name: "isspacep.shared::cluster", version: (7, 8), target: 90 },
    Need { name: "ld.global.b128", version: (8, 3), target: 70 },
    Need { name: "match.all.sync", version: (6, 0), target: 70 },
    Need { name: "match.any.sync", version: (6, 0), target: 70 },
    Need { name: "redux.sync", version: (7, 0), target: 80 },
    Need { name: "shfl.sync", version: (6, 0), target: 30 },
    Need { name: "vote.sync", version: (6, 0), target: 30 },
    Need { name: "%clock64", version: (2, 0), target: 20 },
    Need { name: "%clock_hi", version: (5, 0), target: 20 },
    Need { name: "%cluster_ctaid", version: (7, 8), target: 90 },
    Need { name: "%cluster_ctarank", version: (7, 8), target: 90 },
    Need { name: "%cluster_nctaid", version: (7, 8), target: 90 },
    Need { name: "%cluster_nctarank", version: (7, 8), target: 90 },
    Need { name: "%clusterid", version: (7, 8), target: 90 },
    Need { name: "%current_graph_exec", version: (8, 0), target: 50 },
    Need { name: "%dynamic_smem_size", version: (4, 1), target: 20 },
    Need { name: "%globaltimer", version: (3, 1), target: 30 },
    Need { name: "%gridid", version: (3, 0), target: 30 },
    Need { name: "%is_explicit_cluster", version: (7, 8), target: 90 },
    Need { name: "%lanemask_lt", version: (2, 0), target: 20 },
    Need { name: "%nclusterid", version: (7, 8), target: 90 },
    Need { name: "%total_smem_size", version: (4, 1), target: 20 },
];

/// What `name` needs: an opcode up to the part that matters, or a special register without its fields. `None` for
/// what every target has that anything is woven for.
pub fn need(name: &str) -> Option<&'static Need> {
    NEEDS.iter().find(|need| need.name == name)
}

/// All of [`Need`]'s table, for listings.
pub fn needs() -> &'static [Need] {
    NEEDS
}

/// The PTX version that a CUDA release's ptxas goes up to: 12.5 and 12.6 are both 8.5. `None` for a release that this
/// table is too old to know, which is not to be guessed.
pub fn of_release(major: u16, minor: u16) -> Option<Pair> {
    Some(match (major, minor) {
        (11, 0) => (7, 0),
        (11, 1) => (7, 1),
        (11, 2) => (7, 2),
        (11, 3) => (7, 3),
        (11, 4) => (7, 4),
        (11, 5) => (7, 5),
        (11, 6) => (7, 6),
        (11, 7) => (7, 7),
        (11, 8) => (7, 8),
        (12, 0) => (8, 0),
        (12, 1) => (8, 1),
        (12, 2) => (8, 2),
        (12, 3) => (8, 3),
        (12, 4) => (8, 4),
        (12, 5 | 6) => (8, 5),
        (12, 7) => (8, 6),
        (12, 8) => (8, 7),
        (12, 9) => (8, 8),
        (13, 0) => (9, 0),
        (13, 1) => (9, 1),
        (13, 2) => (9, 2),
        (13, 3) => (9, 3),
        (13, 4) => (9, 4),
        (13, 5) => (9, 5),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_not_guessed() {
        assert_eq!(Arch::parse("sm_90a"), Some(Arch { number: 90, suffix: Some('a') }));
        assert_eq!(Arch::parse("sm_103f").map(|a| a.to_string()), Some("sm_103f".to_owned()));
        assert_eq!(Arch::parse("sm_"), None);
        assert_eq!(Arch::parse("sm_+9"), None);
        assert_eq!(Arch::parse("debug"), None);
        assert_eq!(Arch::parse("sm_9xy"), None);
        assert_eq!(Arch::parse("sm_999").and_then(Arch::least_version), None);
    }

    #[test]
    fn limits_are_those_of_the_manual() {
        assert_eq!(parameter_limit((8, 0)), 0x1100);
        assert_eq!(parameter_limit(LARGE_PARAMETERS), 0x7ffc);
        assert_eq!(of_release(12, 6), of_release(12, 5));
    }
}
