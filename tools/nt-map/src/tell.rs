//! Words on stderr about what is wrong with a trace.

use nt_cli::{Common, Outcome, Report};
use nt_trace::ntt::Trouble;

/// Tells, and remembers whether anything was told that makes the result a part only.
pub(crate) struct Tell {
    report: Report,
    partial: bool,
    /// Troubles of the file in hand.
    troubles: usize,
    silent: bool,
}

/// Troubles of one file that are told one by one.
const SHOWN: usize = 20;

impl Tell {
    /// As the options say.
    pub(crate) fn new(common: Common) -> Self {
        Tell { report: Report::new(common), partial: false, troubles: 0, silent: false }
    }

    /// Says nothing: for a walk before the one that tells.
    pub(crate) fn silent() -> Self {
        Tell { silent: true, ..Tell::new(Common::default()) }
    }

    /// A fact that the exit code does not need.
    pub(crate) fn say(&self, line: std::fmt::Arguments<'_>) {
        self.report.say(format_args!("nt-map: {line}"));
    }

    /// A file is not as it should be.
    pub(crate) fn trouble(&mut self, file: &str, trouble: Trouble) {
        self.fault(file, format_args!("{trouble}"));
    }

    /// Something in a file cannot be used; the rest can.
    pub(crate) fn fault(&mut self, file: &str, what: std::fmt::Arguments<'_>) {
        self.partial = true;
        self.troubles += 1;
        if self.troubles <= SHOWN && !self.silent {
            self.report.warn(format_args!("nt-map: {file}: {what}"));
        }
    }

    /// Chunks of a stream are not as saves leave them.
    pub(crate) fn torn(&mut self, file: &str, at: u64, chunks: u64) {
        if chunks > 0 {
            let what = "chunks hold what no event is, and are read up to there";
            self.fault(file, format_args!("frame at byte {at}: {chunks} {what}"));
        }
    }

    /// A file has been read: the troubles that were not told are counted.
    pub(crate) fn end_of_file(&mut self, file: &str) {
        if let Some(rest @ 1..) = self.troubles.checked_sub(SHOWN)
            && !self.silent
        {
            self.report.warn(format_args!("nt-map: {file}: {rest} faults more"));
        }
        self.troubles = 0;
    }

    /// Nothing is there; why.
    pub(crate) fn nothing(&self, why: std::fmt::Arguments<'_>) {
        self.report.warn(format_args!("nt-map: {why}"));
    }

    /// How the program ends if it has written what it could.
    pub(crate) fn outcome(&self) -> Outcome {
        if self.partial { Outcome::Partial } else { Outcome::Done }
    }
}
