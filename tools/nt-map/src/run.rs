//! The stages: open, look through, choose, then one subcommand's walk over the files.

use crate::catalogue::{Catalogue, Chosen, Store};
use crate::cli::{Command, Opts, Select};
use crate::input::{self, Source};
use crate::tell::Tell;
use crate::{coverage, dmat, dump, ls, report, timeline};
use nt_cli::Outcome;
use std::collections::BTreeSet;

/// Runs one subcommand.
pub(crate) fn run(opts: &Opts) -> anyhow::Result<Outcome> {
    let mut tell = Tell::new(opts.common);
    match &opts.command {
        Command::Ls(ls) => {
            // A list is made from the first walk alone, so this one tells the faults.
            match look(&ls.select, &mut tell, true)? {
                Looked::There(sources, catalogue, chosen) => {
                    ls::run(ls, &sources, &catalogue, &chosen, &tell)
                }
                Looked::Not(outcome) => Ok(outcome),
            }
        }
        Command::Dump(dump) => match look(&dump.select, &mut tell, false)? {
            Looked::There(sources, catalogue, chosen) => {
                dump::run(dump, &sources, &catalogue, &chosen, &mut tell)
            }
            Looked::Not(outcome) => Ok(outcome),
        },
        Command::Dmat(dmat) => match look(&dmat.select, &mut tell, false)? {
            Looked::There(sources, catalogue, chosen) => {
                dmat::run(dmat, &sources, &catalogue, &chosen, &mut tell)
            }
            Looked::Not(outcome) => Ok(outcome),
        },
        Command::Timeline(timeline) => match look(&timeline.select, &mut tell, false)? {
            Looked::There(sources, _, chosen) => timeline::run(timeline, &sources, &chosen, &mut tell),
            Looked::Not(outcome) => Ok(outcome),
        },
        Command::Report(report) => match look(&report.select, &mut tell, false)? {
            Looked::There(sources, _, chosen) => report::run(report, &sources, &chosen, &mut tell),
            Looked::Not(outcome) => Ok(outcome),
        },
        Command::Coverage(coverage) => {
            // Without a choice there is nothing to look for first.
            let sources = input::open(&coverage.traces)?;
            coverage::run(coverage, &sources, &mut tell)
        }
    }
}

/// What the first look found.
enum Looked {
    /// There is something to be shown.
    There(Vec<Source>, Catalogue, Chosen),
    /// There is not; why has been told.
    Not(Outcome),
}

/// Opens the traces and finds what is wanted of them.
fn look(select: &Select, tell: &mut Tell, tell_faults: bool) -> anyhow::Result<Looked> {
    let mut sources = input::open(&select.traces)?;
    if sources.is_empty() {
        tell.nothing(format_args!("no trace (.ntt file) in the folder"));
        return Ok(Looked::Not(Outcome::Nothing));
    }
    if !select.processes.is_empty() {
        let pids: BTreeSet<u32> = sources.iter().map(Source::pid).collect();
        sources.retain(|source| select.processes.contains(&source.pid()));
        if sources.is_empty() {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            tell.nothing(format_args!("no such process in the trace, there are: {}", pids.join(", ")));
            return Ok(Looked::Not(Outcome::Nothing));
        }
    }
    let catalogue = Catalogue::of(&sources, select, tell_faults.then_some(&mut *tell));
    if !catalogue.any_frame && input::foreign(&sources) {
        tell.nothing(format_args!("not a trace: {}", input::names(&sources)));
        return Ok(Looked::Not(Outcome::Refused));
    }
    match catalogue.choose(select) {
        Ok(chosen) => {
            let outlives = |(_, store, _): (&_, Store<'_>, _)| store.outlives_launches();
            if select.launch.is_some() && catalogue.wanted(&chosen).any(outlives) {
                tell.say(format_args!(
                    "left out: aggregations of all launches together, since `--launch` chooses"
                ));
            }
            Ok(Looked::There(sources, catalogue, chosen))
        }
        Err(why) => {
            tell.nothing(format_args!("{why}"));
            for note in &catalogue.notes {
                tell.nothing(format_args!("note: {note}"));
            }
            if !tell_faults {
                // Where nothing is found, that the file is cut may be the reason.
                Catalogue::of(&sources, select, Some(tell));
            }
            Ok(Looked::Not(match tell.outcome() {
                Outcome::Done => Outcome::Nothing,
                partial => partial,
            }))
        }
    }
}
