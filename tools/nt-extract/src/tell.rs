//! Words on stderr, and what they make of the exit code.

use nt_cli::{Outcome, Report};
use nt_object::Error;

/// At most this many faults of one file are told; a hostile file may have millions.
const SHOWN: usize = 20;

/// What happened so far, over all files.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// A file could not be read or written.
    pub(crate) failed: bool,
    /// A file is no container, or several images were chosen where one is needed.
    pub(crate) refused: bool,
    /// A container is damaged, or an image could not be taken out.
    pub(crate) damaged: bool,
    /// Images that were listed or written.
    pub(crate) done: usize,
}

impl Tally {
    /// The exit code: the gravest of what happened.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Tally { failed: true, .. } => Outcome::Failed,
            Tally { damaged: false, refused: false, done: 0, .. } => Outcome::Nothing,
            Tally { damaged: false, refused: false, .. } => Outcome::Done,
            Tally { done: 0, .. } => Outcome::Refused,
            _ => Outcome::Partial,
        }
    }
}

/// Speaks of one file.
pub(crate) struct Teller<'r> {
    pub(crate) report: &'r Report,
    /// What messages call the file.
    pub(crate) file: &'r str,
}

impl Teller<'_> {
    /// What refuses the file or a part of it: always told.
    pub(crate) fn fault(&self, words: impl std::fmt::Display) {
        self.report.warn(format_args!("nt-extract: {}: {words}", self.file));
    }

    /// What is worth knowing: told unless `--quiet`.
    pub(crate) fn note(&self, words: impl std::fmt::Display) {
        self.report.say(format_args!("nt-extract: {}: {words}", self.file));
    }

    /// What is wrong with the container.
    pub(crate) fn damage(&self, faults: &[Error]) {
        for fault in faults.iter().take(SHOWN) {
            self.fault(fault);
        }
        self.more(faults.len());
    }

    /// What is wrong with images.
    pub(crate) fn broken(&self, faults: &[(u32, Error)]) {
        for (index, fault) in faults.iter().take(SHOWN) {
            self.fault(format_args!("entry {index}: {fault}"));
        }
        self.more(faults.len());
    }

    fn more(&self, count: usize) {
        if let Some(more) = count.checked_sub(SHOWN).filter(|more| *more > 0) {
            self.fault(format_args!("and {more} more"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_decides() {
        let check = |failed, refused, damaged, done, expected| {
            assert_eq!(Tally { failed, refused, damaged, done }.outcome(), expected);
        };
        check(false, false, false, 3, Outcome::Done);
        check(false, false, false, 0, Outcome::Nothing);
        check(false, true, false, 0, Outcome::Refused);
        check(false, true, false, 3, Outcome::Partial);
        check(false, false, true, 0, Outcome::Refused);
        check(false, false, true, 1, Outcome::Partial);
        check(true, true, true, 1, Outcome::Failed);
    }
}
