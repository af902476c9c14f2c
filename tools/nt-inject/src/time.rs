//! `--time`: how long each stage took.

use nt_cli::Report;
use std::time::Instant;

/// Tells the time since the last lap.
pub(crate) struct Clock {
    on: bool,
    report: Report,
    last: Instant,
}

impl Clock {
    pub(crate) fn start(on: bool, report: Report) -> Self {
        Clock { on, report, last: Instant::now() }
    }

    /// The stage that ends here.
    pub(crate) fn lap(&mut self, stage: &str) {
        if self.on {
            let took = self.last.elapsed().as_secs_f64() * 1e3;
            self.report.warn(format_args!("nt-inject: {stage:<8} {took:10.3} ms"));
        }
        self.last = Instant::now();
    }
}
