//! What the addresses of events rest on: a proof, a test, or themselves.
//!
//! An event whose addresses are proved stores one of them, and the proof may take something for granted that nobody
//! checks (`docs/affine.md`). Whoever shows addresses says how many of them that is.

use nt_trace::ntm::Assumption;
use nt_trace::ntt::Addresses;

/// Events, or accesses, by how their addresses are had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Basis {
    /// One is stored, and the kernel's text tells the others.
    pub(crate) proved: u64,
    /// One and a stride are stored, that was found to hold when they ran.
    pub(crate) tested: u64,
    /// Each is stored.
    pub(crate) listed: u64,
    /// Of the proved, those that assume that 32 bits do not overflow.
    pub(crate) wraps: u64,
    /// Of the proved, those that assume where lanes meet.
    pub(crate) joins: u64,
}

impl Basis {
    /// So many more.
    pub(crate) fn add(&mut self, addresses: Addresses<'_>, count: u64) {
        match addresses {
            Addresses::Proved(assumes) => {
                self.proved += count;
                for assumption in assumes {
                    match assumption {
                        Assumption::Wraps => self.wraps += count,
                        Assumption::Joins => self.joins += count,
                    }
                }
            }
            Addresses::Tested => self.tested += count,
            Addresses::Listed => self.listed += count,
        }
    }

    /// All of both.
    pub(crate) fn merge(&mut self, other: &Basis) {
        self.proved += other.proved;
        self.tested += other.tested;
        self.listed += other.listed;
        self.wraps += other.wraps;
        self.joins += other.joins;
    }

    /// Is there anything to be said?
    pub(crate) fn is_empty(&self) -> bool {
        self.proved + self.tested + self.listed == 0
    }

    /// How they are had: `1200 by proof, 30 by a stride found as they ran, 5 one by one`.
    pub(crate) fn how(&self, number: impl Fn(u64) -> String) -> String {
        format!(
            "{} by proof, {} by a stride found as they ran, {} one by one",
            number(self.proved),
            number(self.tested),
            number(self.listed)
        )
    }

    /// What of it is taken for granted, if anything is, a line each.
    pub(crate) fn granted(&self, number: impl Fn(u64) -> String) -> Vec<String> {
        let assumed = [
            (self.wraps, "that 32-bit index arithmetic does not overflow within a warp"),
            (self.joins, "that parted lanes meet only where their ways join"),
        ];
        let said = assumed.into_iter().filter(|&(count, _)| count > 0);
        said.map(|(count, what)| format!("{} of those by proof assume {what}; not checked", number(count)))
            .collect()
    }
}
