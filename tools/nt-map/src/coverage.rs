//! `nt-map coverage`: how much of a run was seen, and why not all of it.
//!
//! A line a kernel and reason, as the processes and the parent counted them, then words that belong to no kernel.

use crate::cli::Coverage;
use crate::input::{self, Source};
use crate::tell::Tell;
use crate::text::put_line;
use anyhow::Context;
use nt_cli::Outcome;
use nt_cli::choose::demangle;
use nt_trace::ntt::{Event, Trace};
use nt_wire::frame::{Count, End};
use std::io::Write;

/// Prints the coverage.
pub(crate) fn run(opts: &Coverage, sources: &[Source], tell: &mut Tell) -> anyhow::Result<Outcome> {
    let mut out = opts.output.stream()?;
    let mut any = false;
    let mut lines = Vec::new();
    put_line(&mut lines, ["process", "kernel", "launches", "probed", "collected", "reason", "demangled"]);
    let written = out.write_all(&lines).and_then(|()| {
        sources.iter().try_for_each(|source| {
            for event in Trace::skim(source.bytes()) {
                any |= !matches!(event, Event::Trouble(_));
                lines.clear();
                match event {
                    Event::Count(Count { kernel, launches, probed, collected, reason }) => put_line(
                        &mut lines,
                        [
                            source.process.as_str(),
                            if kernel.is_empty() { "(unknown)" } else { &kernel },
                            &launches.to_string(),
                            &probed.to_string(),
                            &collected.to_string(),
                            &reason,
                            &demangle(&kernel),
                        ],
                    ),
                    Event::Note(note) => {
                        let line = [source.process.as_str(), "(note)", "", "", "", &note.text, ""];
                        put_line(&mut lines, line);
                    }
                    Event::End(End { launches, probed, collected }) => put_line(
                        &mut lines,
                        [
                            source.process.as_str(),
                            "(all)",
                            &launches.to_string(),
                            &probed.to_string(),
                            &collected.to_string(),
                            "",
                            "",
                        ],
                    ),
                    Event::Trouble(trouble) => tell.trouble(&source.name, trouble),
                    Event::Start(_)
                    | Event::Kernel(_)
                    | Event::Launch(..)
                    | Event::Batch(_)
                    | Event::Stream(_)
                    | Event::Cells(_) => {}
                }
                out.write_all(&lines)?;
            }
            tell.end_of_file(&source.name);
            Ok(())
        })
    });
    written.and_then(|()| out.flush()).context("failed to write the coverage")?;
    if !any && input::foreign(sources) {
        tell.nothing(format_args!("not a trace: {}", input::names(sources)));
        return Ok(Outcome::Refused);
    }
    Ok(tell.outcome())
}
