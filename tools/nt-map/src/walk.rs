//! One walk over all that is chosen, for every subcommand that looks into records one by one.
//!
//! Data frames come opened: held against their map and launch, with faults told. A stream comes in pieces, which can be
//! read side by side; all else comes whole.

use crate::catalogue::{Chosen, Store};
use crate::input::Source;
use crate::tell::Tell;
use nt_trace::ntt::{
    Batch, CellBatch, Cells, Event, KnownKernel, Mismatch, Piece, Reader, Records, Saves, StreamBatch,
    Streams, Trace,
};
use nt_wire::frame::Launch;
use std::fmt::Display;
use std::sync::Arc;

/// What data is of.
#[derive(Clone)]
pub(crate) struct Origin<'s> {
    /// The file.
    pub(crate) source: &'s Source,
    /// The kernel.
    pub(crate) kernel: Arc<KnownKernel>,
    /// Is it of a table?
    pub(crate) table: bool,
    /// Index of the map or table.
    pub(crate) index: usize,
    /// The launch; `None` of a table that outlives launches.
    pub(crate) launch: Option<Arc<Launch>>,
}

impl Origin<'_> {
    /// The map or table.
    pub(crate) fn store(&self) -> Option<Store<'_>> {
        if self.table {
            self.kernel.tables().get(self.index).map(Store::Table)
        } else {
            self.kernel.maps().get(self.index).map(Store::Map)
        }
    }
}

/// Data that is chosen and sound.
pub(crate) enum Found<'s> {
    /// One map of one launch.
    Records(Records<'s>),
    /// One array with a capacity, of one launch.
    Saves(Saves<'s>),
    /// One table, and the device's ordinal in the process.
    Cells(Cells<'s>, u32),
    /// A part of a stream begins, whose pieces follow: events that it had no room for.
    Dropped(u64),
    /// Some of the part's chunks.
    Piece(Arc<Reader>, Piece<'s>),
}

/// Gives all that is chosen to `each`, in order. A stream comes in pieces of about so many bytes.
///
/// # Errors
/// That of `each`, at which the walk ends.
pub(crate) fn walk<'s, E>(
    sources: &'s [Source],
    chosen: &Chosen,
    piece: usize,
    tell: &mut Tell,
    mut each: impl FnMut(&Origin<'s>, Found<'s>) -> Result<(), E>,
) -> Result<(), E> {
    for source in sources {
        let mut streams = Streams::default();
        for event in Trace::new(source.bytes()) {
            let mut place = Place { source, tell: &mut *tell };
            match event {
                Event::Batch(batch) => {
                    let read = |batch: &Batch<'s>| batch.records().map(Found::Records);
                    if let Some((origin, found)) = of_map(source, chosen, batch, &mut place, read) {
                        each(&origin, found)?;
                    }
                }
                Event::Saves(batch) => {
                    let read = |batch: &Batch<'s>| batch.saves().map(Found::Saves);
                    if let Some((origin, found)) = of_map(source, chosen, batch, &mut place, read) {
                        each(&origin, found)?;
                    }
                }
                Event::Cells(batch) => {
                    if let Some((origin, found)) = cells(source, chosen, batch, &mut place) {
                        each(&origin, found)?;
                    }
                }
                Event::Stream(batch) => {
                    stream(source, chosen, &batch, &mut streams, piece, &mut place, &mut each)?;
                }
                Event::Kernel(kernel) => {
                    if let Err(error) = &kernel.manifest {
                        tell.fault(&source.name, format_args!("kernel `{}`: {error}", kernel.name));
                    }
                }
                Event::Trouble(trouble) => tell.trouble(&source.name, trouble),
                Event::Start(_) | Event::Launch(..) | Event::Count(_) | Event::Note(_) | Event::End(_) => {}
            }
        }
        tell.end_of_file(&source.name);
    }
    Ok(())
}

/// Tells faults of frames of one file.
struct Place<'w> {
    source: &'w Source,
    tell: &'w mut Tell,
}

impl Place<'_> {
    fn fault(&mut self, at: u64, why: &dyn Display) {
        self.tell.fault(&self.source.name, format_args!("frame at byte {at}: {why}"));
    }
}

/// What a frame of a map holds, as `read` has it.
fn of_map<'s>(
    source: &'s Source,
    chosen: &Chosen,
    batch: Batch<'s>,
    place: &mut Place<'_>,
    read: impl FnOnce(&Batch<'s>) -> Result<Found<'s>, Mismatch>,
) -> Option<(Origin<'s>, Found<'s>)> {
    if !chosen.takes(&batch.kernel.name, Store::Map(batch.map()?), Some(&batch.launch)) {
        return None;
    }
    let found = read(&batch).map_err(|mismatch| place.fault(batch.at, &mismatch)).ok()?;
    // It is shown although its number of units is not the launch's.
    let _ = batch.agree().map_err(|why| place.fault(batch.at, &why));
    let launch = Some(Arc::new(batch.launch));
    let origin = Origin { source, kernel: batch.kernel, table: false, index: batch.index, launch };
    Some((origin, found))
}

fn cells<'s>(
    source: &'s Source,
    chosen: &Chosen,
    batch: CellBatch<'s>,
    place: &mut Place<'_>,
) -> Option<(Origin<'s>, Found<'s>)> {
    if !chosen.takes(&batch.kernel.name, Store::Table(batch.table()?), batch.launch.as_ref()) {
        return None;
    }
    let cells = batch.cells().map_err(|mismatch| place.fault(batch.at, &mismatch)).ok()?;
    let _ = batch.agree().map_err(|why| place.fault(batch.at, &why));
    let (launch, device) = (batch.launch.map(Arc::new), batch.device);
    let origin = Origin { source, kernel: batch.kernel, table: true, index: batch.index, launch };
    Some((origin, Found::Cells(cells, device)))
}

fn stream<'s, E>(
    source: &'s Source,
    chosen: &Chosen,
    batch: &StreamBatch<'s>,
    streams: &mut Streams,
    piece: usize,
    place: &mut Place<'_>,
    each: &mut impl FnMut(&Origin<'s>, Found<'s>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(map) = batch.map() else { return Ok(()) };
    if !chosen.takes(&batch.kernel.name, Store::Map(map), Some(&batch.launch)) {
        return Ok(());
    }
    let mut open = match streams.open(batch) {
        Ok(open) => open,
        Err(unfit) => {
            place.fault(batch.at, &unfit);
            return Ok(());
        }
    };
    let launch = Some(Arc::new(batch.launch.clone()));
    let (kernel, index) = (Arc::clone(&batch.kernel), batch.index);
    let origin = Origin { source, kernel, table: false, index, launch };
    let dropped = open.dropped().map(|(_, count)| u64::from(count)).sum();
    each(&origin, Found::Dropped(dropped))?;
    let reader = Arc::clone(&open.reader);
    let mut torn = 0;
    for piece in open.pieces(piece) {
        torn += piece.torn;
        each(&origin, Found::Piece(Arc::clone(&reader), piece))?;
    }
    place.tell.torn(&source.name, batch.at, torn);
    Ok(())
}
