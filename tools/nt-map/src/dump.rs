//! `nt-map dump`: every record as a line, every cell of an aggregation, every event of a stream.
//!
//! ```text
//! process launch kernel      map         unit block warp start elapsed cu op            value demangled
//! 4242    0      fill_blocks block_sched 7    1     3    1042  31      5  -             -     fill_blocks
//! 4242    0      fill_blocks @bytes      1    1     -    -     -       -  ld.global.f32 4096  fill_blocks
//! ```
//!
//! The demangled name stands last, since it holds blanks: `sort -k8n` and awk count columns before it. Where several
//! maps are shown, the columns are those of all of them, and `-` stands where a map has none of that name. Cells are
//! not added up here: each stands with its unit, which of a table that outlives launches is a multiprocessor.
//!
//! Streams have columns of their own behind `warp` (`columns.rs`), and with `--lanes` a line a lane. Lines are made on
//! all cores and written in the order of the file.

mod columns;
mod events;
mod jobs;
mod lines;
mod npy;

use crate::catalogue::{Catalogue, Chosen};
use crate::cli::{Dump, Format};
use crate::input::Source;
use crate::names::Names;
use crate::tell::Tell;
use crate::walk::{Found, Origin, walk};
use anyhow::Context;
use columns::Columns;
use events::Sites;
use jobs::{Press, Rows, Text};
use lines::Lines;
use nt_cli::Outcome;
use nt_trace::ntm::Policy;
use nt_trace::ntt::KnownKernel;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// Units of a map or table that become one job.
const UNITS: u64 = 1 << 12;

/// Bytes of a stream that do: a line each 16 bytes, or 32 of them.
const PIECE: (usize, usize) = (1 << 16, 1 << 12);

/// Prints what is chosen.
pub(crate) fn run(
    opts: &Dump,
    sources: &[Source],
    catalogue: &Catalogue,
    chosen: &Chosen,
    tell: &mut Tell,
) -> anyhow::Result<Outcome> {
    let left = match opts.format.text() {
        Some(format) => {
            let mut out = opts.output.stream()?;
            let stores = catalogue.wanted(chosen).map(|(_, store, _)| store);
            let columns = Columns::of(stores, opts.lanes);
            text(&mut out, format, columns, sources, chosen, tell).context("failed to write the records")?
        }
        None => npy::run(opts, sources, catalogue, chosen, tell)?,
    };
    if left.absent > 0 {
        tell.say(format_args!("{} units left no record", left.absent));
    }
    if left.units > 0 {
        tell.say(format_args!("{} units had no room", left.units));
    }
    if left.events > 0 {
        tell.say(format_args!("{} events had no room", left.events));
    }
    if left.dropped > 0 {
        tell.say(format_args!("{} saves were dropped: their units had no room left", left.dropped));
    }
    if left.overwritten > 0 {
        tell.say(format_args!("{} saves were overwritten by later ones", left.overwritten));
    }
    if left.uncounted > 0 {
        tell.say(format_args!(
            "{} units did not leave by a probed exit: they may have saved more than is there",
            left.uncounted
        ));
    }
    Ok(tell.outcome())
}

/// What there is beside the lines.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    /// Units without a record.
    absent: u64,
    /// Units without a place for one.
    units: u64,
    /// Events of streams that found no place.
    events: u64,
    /// Saves of arrays with a capacity that found none.
    dropped: u64,
    /// Those that others have replaced.
    overwritten: u64,
    /// Units that have not said how many there were.
    uncounted: u64,
}

impl Left {
    fn add(&mut self, found: &Found<'_>) {
        match found {
            Found::Records(records) => self.units += records.dropped(),
            Found::Saves(saves) => {
                let lost = match saves.policy() {
                    Policy::Drop => &mut self.dropped,
                    Policy::Wrap => &mut self.overwritten,
                };
                for tally in (0..saves.units()).map(|unit| saves.tally(unit)) {
                    *lost = lost.saturating_add(tally.lost());
                    self.uncounted += u64::from(!tally.counted);
                }
            }
            Found::Cells(cells, _) => self.units += cells.dropped(),
            Found::Dropped(events) => self.events += events,
            Found::Piece(..) => {}
        }
    }
}

fn text(
    out: &mut dyn Write,
    format: Format,
    columns: Columns,
    sources: &[Source],
    chosen: &Chosen,
    tell: &mut Tell,
) -> std::io::Result<Left> {
    if format != Format::Json {
        let mut line = Vec::new();
        lines::header(&mut line, format, &columns);
        out.write_all(&line)?;
    }
    let lanes = columns.lanes;
    let mut maker = Maker { format, columns, names: BTreeMap::new(), sites: None };
    let mut press = Press::new(out);
    let mut left = Left::default();
    walk(sources, chosen, if lanes { PIECE.1 } else { PIECE.0 }, tell, |origin, found| {
        left.add(&found);
        let Some(lines) = maker.lines(origin) else { return Ok(()) };
        rows(origin, found, lanes, |rows| press.take(Text { lines: Arc::clone(&lines), rows }))
    })?;
    left.absent = press.finish()?;
    Ok(left)
}

/// Cuts what was found into jobs.
fn rows<'s, E>(
    origin: &Origin<'s>,
    found: Found<'s>,
    lanes: bool,
    mut each: impl FnMut(Rows<'s>) -> Result<(), E>,
) -> Result<(), E> {
    match found {
        Found::Records(records) => {
            let (stored, records) = (records.stored(), Arc::new(records));
            for first in (0..stored).step_by(UNITS as usize) {
                each(Rows::Records(Arc::clone(&records), first..stored.min(first + UNITS)))?;
            }
            Ok(())
        }
        Found::Saves(saves) => {
            let (all, step) = (saves.units(), UNITS / u64::from(saves.per_unit()).clamp(1, UNITS));
            let saves = Arc::new(saves);
            for first in (0..all).step_by(step as usize) {
                each(Rows::Saves(Arc::clone(&saves), first..all.min(first.saturating_add(step))))?;
            }
            Ok(())
        }
        Found::Cells(cells, device) => {
            for first in (0..cells.stored()).step_by(UNITS as usize) {
                let units = first..cells.stored().min(first + UNITS);
                each(Rows::Cells {
                    cells,
                    kernel: Arc::clone(&origin.kernel),
                    index: origin.index,
                    device,
                    units,
                })?;
            }
            Ok(())
        }
        Found::Dropped(_) => Ok(()),
        Found::Piece(reader, piece) => each(Rows::Events { reader, piece, lanes }),
    }
}

/// Makes what the lines of a data frame have in common, and keeps what many frames have.
struct Maker {
    format: Format,
    columns: Columns,
    names: BTreeMap<String, Names>,
    sites: Option<(Arc<KnownKernel>, Arc<Sites>)>,
}

impl Maker {
    fn lines(&mut self, origin: &Origin<'_>) -> Option<Arc<Lines>> {
        let store = origin.store()?;
        let mangled = &origin.kernel.name;
        let names = self.names.entry(mangled.clone()).or_insert_with(|| Names::of(mangled));
        let sites = match &self.sites {
            Some((kernel, sites)) if Arc::ptr_eq(kernel, &origin.kernel) => Arc::clone(sites),
            _ => {
                let sites = Arc::new(Sites::of(&origin.kernel, self.format));
                self.sites = Some((Arc::clone(&origin.kernel), Arc::clone(&sites)));
                sites
            }
        };
        Some(Arc::new(Lines::new(self.format, &self.columns, store, origin, names, sites)))
    }
}
