//! Runs of instructions that come from one source line: `line:"gemm.cu":120`.
//!
//! ```text
//! .loc 1 12 0      mov…; add…;      a run: its first instruction is the site
//! .loc 1 13 0      mul…;            another
//! .loc 1 12 0      st…;             another of line 12
//! $L__BB0_2:       ld…;             and another: control may come in here without having been in the one before
//! ```
//!
//! A run goes on in the order of the text, up to another line or to a basic block that is entered from elsewhere.

use crate::instructions::Wanted;
use crate::sites::Point;
use nt_ir::program::Tracepoint;
use std::borrow::Cow;

/// Follows the lines of a function's instructions.
pub(crate) struct Runs {
    /// The first statements of basic blocks that begin with a label, rising.
    starts: Vec<u32>,
    last: Option<(u32, String, u32)>,
}

impl Runs {
    /// `None` where no probe asks for lines.
    pub(crate) fn of(points: &[Point<'_>], starts: impl FnOnce() -> Vec<u32>) -> Option<Self> {
        let asks = |wanted: &Wanted<'_>| matches!(wanted, Wanted::Point(Tracepoint::Line { .. }));
        let asked = points.iter().flat_map(|point| &point.wanted).any(asks);
        asked.then(|| Runs { starts: starts(), last: None })
    }

    /// The line of an instruction, if its run begins with it. Instructions come in the order of the text.
    pub(crate) fn begins<'t>(
        &mut self,
        number: u32,
        (file, line): (Cow<'t, str>, u32),
    ) -> Option<(Cow<'t, str>, u32)> {
        let goes_on = self.last.as_ref().is_some_and(|(before, name, at)| {
            let starts = self.starts.partition_point(|&start| start <= *before);
            let is_entered = self.starts.get(starts).is_some_and(|&start| start <= number);
            !is_entered && *name == file && *at == line
        });
        match &mut self.last {
            Some((before, ..)) if goes_on => *before = number,
            last => *last = Some((number, file.clone().into_owned(), line)),
        }
        (!goes_on).then_some((file, line))
    }
}

/// Is `end` the end of `path`, by whole names? `src/gemm.cu` is that of `/home/a/src/gemm.cu`.
pub(crate) fn is_end_of(end: &str, path: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/') || end.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_paths_are_whole_names() {
        assert!(is_end_of("gemm.cu", "gemm.cu"));
        assert!(is_end_of("src/gemm.cu", "/home/a/src/gemm.cu"));
        assert!(!is_end_of("emm.cu", "/home/a/src/gemm.cu"));
        assert!(!is_end_of("gemm.cu", "gemm.cu.h"));
    }

    #[test]
    fn a_run_ends_with_its_line_and_where_control_comes_in() {
        let mut runs = Runs { starts: vec![5], last: None };
        let lines = [(0, 12), (1, 12), (2, 13), (3, 12), (4, 12), (6, 12), (7, 12)];
        let begun = lines.map(|(at, line)| runs.begins(at, ("a.cu".into(), line)).is_some());
        assert_eq!(begun, [true, false, true, true, false, true, false]);
    }
}
