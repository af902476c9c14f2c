//! The walks over the trace: what there is, and how much of it falls in each cell.

use super::axis::{PageAxis, TimeAxis};
use super::choice::{Choice, Columns};
use super::pages::Pages;
use crate::basis::Basis;
use crate::catalogue::Chosen;
use crate::input::Source;
use crate::tell::Tell;
use crate::walk::{Found, walk};
use anyhow::bail;
use nt_trace::ntt::{Piece, Reader, StreamEvent};
use nt_wire::frame::Launch;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

/// When warps started, if the trace tells: for each launch, cycles since the first start on the warp's multiprocessor.
pub(super) type Starts = BTreeMap<u64, Arc<Vec<Option<u64>>>>;

/// What there is.
pub(super) struct Seen {
    /// The launch that is drawn, or the first of several.
    pub(super) launch: Option<Arc<Launch>>,
    /// Launches that are chosen.
    pub(super) launches: u64,
    /// Architecture.
    pub(super) arch: u32,
    /// Pages that were touched.
    pub(super) pages: Pages,
    /// The first time and the last.
    pub(super) times: (u64, u64),
    /// Events that are drawn.
    pub(super) events: u64,
    /// Their accesses: one a lane.
    pub(super) accesses: u64,
    /// What the addresses of these accesses rest on.
    pub(super) basis: Basis,
    /// Events that found no room.
    pub(super) dropped: u64,
    /// Are times since the first start of the multiprocessor, rather than since the warp's own?
    pub(super) aligned: bool,
    /// Have times so few bits that they may have wrapped in a launch as long as the host saw it?
    pub(super) wrapped: bool,
}

/// Some events.
struct Job<'s> {
    reader: Arc<Reader>,
    piece: Piece<'s>,
    columns: Columns,
    sites: Arc<Vec<bool>>,
    starts: Option<Arc<Vec<Option<u64>>>>,
}

/// Bytes of a piece, and pieces that are taken on at once.
const PIECE: usize = 1 << 16;
const ROUND: usize = 256;

/// When warps started. The walk that follows tells of faults.
pub(super) fn starts(choice: &Choice, sources: &[Source], chosen: &Chosen) -> Starts {
    let mut starts = Starts::new();
    let done: Result<(), Infallible> = walk(sources, chosen, PIECE, &mut Tell::silent(), |origin, found| {
        let (Found::Records(records), Some((start, cu))) = (found, choice.starts(origin)) else {
            return Ok(());
        };
        let Some(launch) = &origin.launch else { return Ok(()) };
        let mut first: HashMap<u64, u64> = HashMap::new();
        let rows =
            || records.rows().filter_map(|row| Some((row.unit(), row.unsigned(start)?, row.unsigned(cu)?)));
        for (_, start, cu) in rows() {
            let first = first.entry(cu).or_insert(start);
            *first = start.min(*first);
        }
        let mut of_warp = vec![None; records.stored() as usize];
        for (warp, start, cu) in rows() {
            if let Some(place) = of_warp.get_mut(warp as usize) {
                *place = first.get(&cu).map(|first| start - first);
            }
        }
        starts.insert(launch.number, Arc::new(of_warp));
        Ok(())
    });
    let Ok(()) = done;
    starts
}

/// Which pages and times there are.
pub(super) fn look(
    choice: &Choice,
    starts: &Starts,
    bits: u32,
    sources: &[Source],
    chosen: &Chosen,
    tell: &mut Tell,
) -> anyhow::Result<Seen> {
    let new = || Pages::new(bits);
    let (about, sets) =
        sweep(choice, starts, None, bits, sources, chosen, tell, new, |pages: &mut Pages, _, page, _| {
            pages.insert(page);
        });
    let mut pages = new();
    sets.into_iter().for_each(|set| pages.union(set));
    if pages.overflow {
        bail!(
            "the addresses are spread over too many pages of {} bytes: choose larger ones by `--page`",
            1u64 << bits
        );
    }
    let Tally { times, events, accesses, basis } = about.tally;
    Ok(Seen {
        launch: about.launch.filter(|_| accesses > 0),
        launches: about.launches,
        arch: about.arch,
        pages,
        times,
        events,
        accesses,
        basis,
        dropped: about.dropped,
        aligned: about.aligned,
        wrapped: about.wrapped,
    })
}

/// How many accesses fall in each cell, row by row.
pub(super) fn count(
    choice: &Choice,
    starts: &Starts,
    time: &TimeAxis,
    pages: &PageAxis,
    launch: u64,
    sources: &[Source],
    chosen: &Chosen,
) -> Vec<u64> {
    struct State {
        cells: Vec<u64>,
        last: (u64, usize),
    }
    let columns = time.columns;
    let size = columns.saturating_mul(pages.rows);
    let new = || State { cells: vec![0; size], last: (u64::MAX, 0) };
    let mut silent = Tell::silent();
    let only = (!choice.together).then_some(launch);
    let bits = pages.bits;
    let count = |state: &mut State, at: u64, page: u64, accesses: u64| {
        let Some(column) = time.column(at) else { return };
        if state.last.0 != page {
            let Some(row) = pages.row(page) else { return };
            state.last = (page, row);
        }
        if let Some(cell) = state.cells.get_mut(state.last.1 * columns + column) {
            *cell += accesses;
        }
    };
    let (_, states) = sweep(choice, starts, only, bits, sources, chosen, &mut silent, new, count);
    let mut cells = vec![0; size];
    for state in states {
        cells.iter_mut().zip(state.cells).for_each(|(cell, more)| *cell += more);
    }
    cells
}

/// What a sweep finds beside events.
#[derive(Default)]
struct About {
    launch: Option<Arc<Launch>>,
    launches: u64,
    arch: u32,
    dropped: u64,
    aligned: bool,
    wrapped: bool,
    tally: Tally,
}

/// What of it is counted event by event.
#[derive(Clone, Copy)]
struct Tally {
    times: (u64, u64),
    events: u64,
    accesses: u64,
    basis: Basis,
}

impl Default for Tally {
    fn default() -> Self {
        Tally { times: (u64::MAX, 0), events: 0, accesses: 0, basis: Basis::default() }
    }
}

/// Gives every event that is drawn to `work`, a page at a time: when, which page, and how many accesses. It is done on all
/// cores, each with a state of its own, so `work` must come to the same in whichever it is done.
#[allow(clippy::too_many_arguments, reason = "two callers, and what they differ in comes last")]
fn sweep<'s, S: Send>(
    choice: &Choice,
    starts: &Starts,
    only: Option<u64>,
    bits: u32,
    sources: &'s [Source],
    chosen: &Chosen,
    tell: &mut Tell,
    new: impl Fn() -> S,
    work: impl Fn(&mut S, u64, u64, u64) + Sync,
) -> (About, Vec<S>) {
    let state = |_| Mutex::new((new(), Tally::default()));
    let states: Vec<Mutex<(S, Tally)>> = (0..rayon::current_num_threads()).map(state).collect();
    let mut about = About::default();
    let mut jobs: Vec<Job<'s>> = Vec::new();
    let turn = |jobs: &mut Vec<Job<'s>>| {
        jobs.par_iter().for_each(|job| {
            let index = rayon::current_thread_index().unwrap_or(0);
            // A thread has one job at a time, so nobody waits; a panic would have ended the program.
            let Some(state) = states.get(index) else { return };
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let (state, tally) = &mut *state;
            job.run(bits, tally, |time, page, accesses| work(state, time, page, accesses));
        });
        jobs.clear();
    };
    let mut number = None;
    let done: Result<(), Infallible> = walk(sources, chosen, PIECE, tell, |origin, found| {
        let (Some(columns), Some(launch)) = (choice.columns(origin), &origin.launch) else { return Ok(()) };
        if number != Some(launch.number) {
            number = Some(launch.number);
            about.launches += 1;
        }
        let drawn = match (only, &about.launch) {
            (Some(only), _) => launch.number == only,
            (None, Some(first)) => choice.together || launch.number == first.number,
            (None, None) => true,
        };
        if !drawn {
            return Ok(());
        }
        match found {
            Found::Dropped(events) => about.dropped += events,
            Found::Piece(reader, piece) => {
                if piece.stored > 0 {
                    about.launch.get_or_insert_with(|| Arc::clone(launch));
                    about.arch = origin.kernel.arch;
                }
                let starts = starts.get(&launch.number).cloned();
                about.aligned |= starts.is_some();
                // ns × kHz is 10⁻⁶ cycles.
                let most = u128::from(launch.complete_ns.saturating_sub(launch.launched_ns))
                    * u128::from(launch.clock_khz)
                    / 1_000_000;
                about.wrapped |= columns.bits < 64 && most >> columns.bits != 0;
                let sites = Arc::new(choice.sites(origin));
                jobs.push(Job { reader, piece, columns, sites, starts });
                if jobs.len() >= ROUND {
                    turn(&mut jobs);
                }
            }
            Found::Records(_) | Found::Saves(_) | Found::Cells(..) => {}
        }
        Ok(())
    });
    let Ok(()) = done;
    turn(&mut jobs);
    let states = states.into_iter().map(|state| state.into_inner().unwrap_or_else(PoisonError::into_inner));
    let (states, tallies): (Vec<S>, Vec<Tally>) = states.unzip();
    for tally in tallies {
        let all = &mut about.tally;
        all.times = (all.times.0.min(tally.times.0), all.times.1.max(tally.times.1));
        all.events += tally.events;
        all.accesses += tally.accesses;
        all.basis.merge(&tally.basis);
    }
    (about, states)
}

impl Job<'_> {
    fn run(&self, bits: u32, tally: &mut Tally, mut work: impl FnMut(u64, u64, u64)) {
        let address = self.columns.address;
        let mut lanes = [0; 32];
        let all = self.sites.iter().all(|&drawn| drawn);
        for event in self.reader.events(&self.piece) {
            let drawn = || event.site().and_then(|site| self.sites.get(site)).is_some_and(|&drawn| drawn);
            if !all && !drawn() {
                continue;
            }
            let Some(time) = self.time(&event) else { continue };
            let accesses = u64::from(event.mask().count_ones());
            tally.times = (tally.times.0.min(time), tally.times.1.max(time));
            tally.events += 1;
            tally.accesses += accesses;
            if let Some(addresses) = event.addresses() {
                tally.basis.add(addresses, accesses);
            }
            if let Some(page) = one_page(&event, address, bits) {
                work(time, page, accesses);
                continue;
            }
            event.put_lanes(address, &mut lanes);
            // Lanes side by side are on one page more often than not.
            let mut open: Option<(u64, u64)> = None;
            let pages = event.lanes().filter_map(|lane| lanes.get(lane as usize)).map(|at| at >> bits);
            for page in pages {
                match &mut open {
                    Some((of, accesses)) if *of == page => *accesses += 1,
                    _ => {
                        if let Some((page, accesses)) = open.replace((page, 1)) {
                            work(time, page, accesses);
                        }
                    }
                }
            }
            if let Some((page, accesses)) = open {
                work(time, page, accesses);
            }
        }
    }

    /// When an event was: a warp whose start is not told, though others' are, cannot be placed.
    fn time(&self, event: &StreamEvent<'_, '_>) -> Option<u64> {
        let time = event.value(self.columns.time)?.to_integer()?;
        let start = match &self.starts {
            None => 0,
            Some(starts) => starts.get(usize::try_from(event.warp()).ok()?).copied().flatten()?,
        };
        Some(u64::try_from(time).unwrap_or(0).saturating_add(start))
    }
}

/// The page of all accesses of an event, where the ends of a line tell that it is one.
fn one_page(event: &StreamEvent<'_, '_>, column: usize, bits: u32) -> Option<u64> {
    let (first, step) = event.line(column)?;
    let mask = event.mask();
    let run = i64::from(mask.checked_ilog2()?) - i64::from(mask.trailing_zeros());
    let last = first.checked_add_signed(run.checked_mul(step)?)?;
    (first >> bits == last >> bits).then_some(first >> bits)
}
