//! `nt-map coverage`: how much of a run was seen, and why not all of it.
//!
//! A line a kernel and reason, as the processes and the parent counted them, then words that belong to no kernel. Of
//! kernels with streams or arrays with a capacity it says how many events were stored, and how many are not there for want
//! of room.

use crate::cli::Coverage;
use crate::input::{self, Source};
use crate::tell::Tell;
use crate::text::put_line;
use anyhow::Context;
use nt_cli::Outcome;
use nt_cli::choose::demangle;
use nt_trace::ntt::{Event, Streams, Trace};
use nt_wire::frame::{Count, End};
use std::collections::BTreeMap;
use std::io::Write;

/// Events of streams, and saves of arrays with a capacity, that were stored and that are not there, by kernel.
type Events = BTreeMap<String, (u64, u64)>;

/// Prints the coverage.
pub(crate) fn run(opts: &Coverage, sources: &[Source], tell: &mut Tell) -> anyhow::Result<Outcome> {
    let mut out = opts.output.stream()?;
    let mut any = false;
    let mut lines = Vec::new();
    let head =
        ["process", "kernel", "launches", "probed", "collected", "stored", "dropped", "reason", "demangled"];
    put_line(&mut lines, head);
    let written = out.write_all(&lines).and_then(|()| {
        sources.iter().try_for_each(|source| {
            let (mut streams, mut events) = (Streams::default(), Events::new());
            for event in Trace::skim(source.bytes()) {
                any |= !matches!(event, Event::Trouble(_));
                lines.clear();
                match event {
                    Event::Count(Count { kernel, launches, probed, collected, reason }) => {
                        // A kernel with several reasons has several lines: its events are told once.
                        let events = if collected > 0 { events.remove(&kernel) } else { None };
                        let number = |number: Option<u64>| number.map_or(String::new(), |n| n.to_string());
                        put_line(
                            &mut lines,
                            [
                                source.process.as_str(),
                                if kernel.is_empty() { "(unknown)" } else { &kernel },
                                &launches.to_string(),
                                &probed.to_string(),
                                &collected.to_string(),
                                &number(events.map(|(stored, _)| stored)),
                                &number(events.map(|(_, dropped)| dropped)),
                                &reason,
                                &demangle(&kernel),
                            ],
                        );
                    }
                    Event::Stream(batch) => {
                        let (stored, dropped) = events.entry(batch.kernel.name.clone()).or_default();
                        match streams.open(&batch) {
                            Ok(mut open) => {
                                *dropped += open.dropped().map(|(_, count)| u64::from(count)).sum::<u64>();
                                let mut torn = 0;
                                for piece in open.pieces(1 << 16) {
                                    *stored += piece.stored;
                                    torn += piece.torn;
                                }
                                tell.torn(&source.name, batch.at, torn);
                            }
                            Err(unfit) => {
                                tell.fault(&source.name, format_args!("frame at byte {}: {unfit}", batch.at));
                            }
                        }
                    }
                    Event::Saves(batch) => match batch.saves() {
                        Ok(saves) => {
                            let (stored, dropped) = events.entry(batch.kernel.name.clone()).or_default();
                            for tally in (0..saves.units()).map(|unit| saves.tally(unit)) {
                                *stored = stored.saturating_add(tally.stored);
                                *dropped = dropped.saturating_add(tally.lost());
                            }
                        }
                        Err(mismatch) => {
                            tell.fault(&source.name, format_args!("frame at byte {}: {mismatch}", batch.at));
                        }
                    },
                    Event::Note(note) => {
                        let line = [source.process.as_str(), "(note)", "", "", "", "", "", &note.text, ""];
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
                            "",
                            "",
                        ],
                    ),
                    Event::Trouble(trouble) => tell.trouble(&source.name, trouble),
                    Event::Start(_)
                    | Event::Kernel(_)
                    | Event::Launch(..)
                    | Event::Batch(_)
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
