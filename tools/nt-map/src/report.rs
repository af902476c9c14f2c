//! `nt-map report`: what the records mean.
//!
//! Launches of one kernel with one shape are a group; numbers are medians over its launches. A map of warps' lifetimes
//! (block_sched) is told as the scheduling of blocks, any other map as the spread of its columns, of an array with a
//! capacity behind how many saves there were. Kernels with lifetimes
//! are compared. Aggregations come last, over all kernels. `docs/report.md` defines every number.

mod blocks;
mod events;
mod print;
mod saves;

use crate::catalogue::{Chosen, Store};
use crate::cli::Report;
use crate::input::Source;
use crate::names::Names;
use crate::tell::Tell;
use anyhow::Context;
pub(crate) use blocks::Lifetimes;
use blocks::Measures;
use events::Events;
use nt_cli::Outcome;
use nt_trace::ntm::Map;
use nt_trace::ntt::{
    Batch, CellBatch, Event, KnownKernel, OpenPart, Records, Saves, StreamBatch, Streams, Trace,
};
use nt_trace::{Aggregates, Distribution};
use nt_wire::frame::Launch;
use saves::Taken;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// Launches of one kernel, map and shape.
pub(crate) struct Group {
    kernel: Arc<KnownKernel>,
    /// Index of the map.
    index: usize,
    /// The first launch, for the shape that all have.
    launch: Launch,
    /// Labels of the processes.
    processes: Vec<String>,
    /// Units of a launch.
    units: u64,
    /// The launches.
    launches: Vec<OneLaunch>,
    /// What the records say.
    kind: Kind,
}

/// What is known of a launch beside its records.
struct OneLaunch {
    number: u64,
    /// Time from before the launch call until its data was seen to be complete.
    at_most_ns: u64,
    /// kHz, 0 if unknown.
    clock_khz: u32,
    absent: u64,
    dropped: u64,
}

/// What the records of a group say.
enum Kind {
    /// Lifetimes of warps: one a launch.
    Blocks(Lifetimes, Vec<Measures>),
    /// Events of streams.
    Events(Events),
    /// Saves of an array with a capacity, and the columns of those that are there.
    Saves(Taken, Vec<Distribution>),
    /// Anything else: one a column of the map.
    Columns(Vec<Distribution>),
}

/// Writes the report.
pub(crate) fn run(
    opts: &Report,
    sources: &[Source],
    chosen: &Chosen,
    tell: &mut Tell,
) -> anyhow::Result<Outcome> {
    let mut groups = Groups::default();
    let mut aggregates = Aggregates::default();
    for source in sources {
        let mut streams = Streams::default();
        for event in Trace::new(source.bytes()) {
            match event {
                Event::Batch(batch) => groups.take(source, chosen, &batch, tell),
                Event::Saves(batch) => groups.take_saves(source, chosen, &batch, tell),
                Event::Stream(batch) => groups.take_part(source, chosen, &batch, &mut streams, tell),
                Event::Cells(batch) => aggregate(&mut aggregates, source, chosen, &batch, tell),
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
    let mut out = opts.output.stream()?;
    let mut text = print::report(&groups.list, opts.rows);
    if !text.is_empty() && !aggregates.is_empty() {
        text.push('\n');
    }
    text.push_str(&aggregates.text(opts.rows, &|name| Names::of(name).demangled));
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("failed to write the report")?;
    Ok(tell.outcome())
}

/// Adds the cells of a data frame, if it is chosen and fits its table.
fn aggregate(
    aggregates: &mut Aggregates,
    source: &Source,
    chosen: &Chosen,
    batch: &CellBatch<'_>,
    tell: &mut Tell,
) {
    let Some(table) = batch.table() else { return };
    if chosen.takes(&batch.kernel.name, Store::Table(table), batch.launch.as_ref())
        && let Err(unfit) = aggregates.add(batch)
    {
        tell.fault(&source.name, format_args!("frame at byte {}: {unfit}", batch.at));
    }
}

/// All groups, in the order they first come in.
#[derive(Default)]
struct Groups {
    list: Vec<Group>,
    places: BTreeMap<Key, usize>,
}

/// Kernel, architecture, map, grid and block.
type Key = (String, u32, String, [u32; 3], [u32; 3]);

impl Groups {
    /// Adds what a data frame says, if it is chosen and fits its map.
    fn take(&mut self, source: &Source, chosen: &Chosen, batch: &Batch<'_>, tell: &mut Tell) {
        let Some(map) = batch.map() else { return };
        if !chosen.takes(&batch.kernel.name, Store::Map(map), Some(&batch.launch)) {
            return;
        }
        let place = |tell: &mut Tell, why: &dyn std::fmt::Display| {
            tell.fault(&source.name, format_args!("frame at byte {}: {why}", batch.at));
        };
        let records = match batch.records() {
            Ok(records) => records,
            Err(mismatch) => return place(tell, &mismatch),
        };
        if let Err(why) = batch.agree() {
            return place(tell, &why);
        }
        let (kernel, launch) = (&batch.kernel, &batch.launch);
        if let Some(group) = self.group(source, kernel, batch.index, launch, batch.units) {
            group.add(launch, &records);
        }
    }

    /// Adds an array with a capacity, likewise.
    fn take_saves(&mut self, source: &Source, chosen: &Chosen, batch: &Batch<'_>, tell: &mut Tell) {
        let Some(map) = batch.map() else { return };
        if !chosen.takes(&batch.kernel.name, Store::Map(map), Some(&batch.launch)) {
            return;
        }
        let saves = match batch.saves().map_err(|why| why.to_string()) {
            Ok(saves) => batch.agree().map(|()| saves).map_err(|why| why.to_string()),
            Err(why) => Err(why),
        };
        let (kernel, launch) = (&batch.kernel, &batch.launch);
        match saves {
            Ok(saves) => {
                if let Some(group) = self.group(source, kernel, batch.index, launch, batch.units) {
                    group.add_saves(launch, &saves);
                }
            }
            Err(why) => tell.fault(&source.name, format_args!("frame at byte {}: {why}", batch.at)),
        }
    }

    /// Adds a part of a stream, likewise.
    fn take_part(
        &mut self,
        source: &Source,
        chosen: &Chosen,
        batch: &StreamBatch<'_>,
        streams: &mut Streams,
        tell: &mut Tell,
    ) {
        let Some(map) = batch.map() else { return };
        let (kernel, launch) = (&batch.kernel, &batch.launch);
        if !chosen.takes(&kernel.name, Store::Map(map), Some(launch)) {
            return;
        }
        let mut open = match streams.open(batch) {
            Ok(open) => open,
            Err(unfit) => {
                return tell.fault(&source.name, format_args!("frame at byte {}: {unfit}", batch.at));
            }
        };
        if let Some(group) = self.group(source, kernel, batch.index, launch, open.part.head.units) {
            tell.torn(&source.name, batch.at, group.add_part(launch, &mut open));
        }
    }

    /// The group that a launch is of, its process noted.
    fn group(
        &mut self,
        source: &Source,
        kernel: &Arc<KnownKernel>,
        index: usize,
        launch: &Launch,
        units: u64,
    ) -> Option<&mut Group> {
        let map = kernel.maps().get(index)?;
        let key = (kernel.name.clone(), kernel.arch, map.name.clone(), launch.grid, launch.block);
        let at = *self.places.entry(key).or_insert(self.list.len());
        if at == self.list.len() {
            self.list.push(Group::new(kernel, index, map, launch, units));
        }
        let group = self.list.get_mut(at)?;
        if !group.processes.contains(&source.process) {
            group.processes.push(source.process.clone());
        }
        Some(group)
    }
}

impl Group {
    fn new(kernel: &Arc<KnownKernel>, index: usize, map: &Map, launch: &Launch, units: u64) -> Group {
        let columns = || vec![Distribution::default(); map.columns.len()];
        let kind = match Lifetimes::of(map) {
            _ if map.stream.is_some() => Kind::Events(Events::default()),
            _ if map.slots.is_some() => Kind::Saves(Taken::default(), columns()),
            Some(lifetimes) => Kind::Blocks(lifetimes, Vec::new()),
            None => Kind::Columns(columns()),
        };
        Group {
            kernel: Arc::clone(kernel),
            index,
            launch: launch.clone(),
            processes: Vec::new(),
            units,
            launches: Vec::new(),
            kind,
        }
    }

    /// Adds a part of a stream of a launch; says how many of its chunks hold what no event is.
    fn add_part(&mut self, launch: &Launch, open: &mut OpenPart<'_, '_>) -> u64 {
        if open.part.head.part == 0 {
            self.launches.push(OneLaunch::of(launch, 0, 0));
        }
        match &mut self.kind {
            Kind::Events(events) => events.add(launch.number, open),
            Kind::Blocks(..) | Kind::Columns(_) | Kind::Saves(..) => 0,
        }
    }

    fn add_saves(&mut self, launch: &Launch, saves: &Saves<'_>) {
        let Kind::Saves(taken, columns) = &mut self.kind else { return };
        taken.add(launch.number, saves);
        for save in (0..saves.units()).flat_map(|unit| saves.of(unit)) {
            columns.iter_mut().zip(save.row.values()).for_each(|(column, value)| column.add(value));
        }
        self.launches.push(OneLaunch::of(launch, 0, 0));
    }

    fn add(&mut self, launch: &Launch, records: &Records<'_>) {
        let mut rows = records.rows();
        let absent = match &mut self.kind {
            Kind::Columns(columns) => {
                for row in rows.by_ref() {
                    columns.iter_mut().zip(row.values()).for_each(|(column, value)| column.add(value));
                }
                rows.absent()
            }
            Kind::Blocks(columns, launches) => {
                let threads: u64 = launch.block.iter().map(|&d| u64::from(d)).product();
                let measures = blocks::measure(records, *columns, threads.div_ceil(32));
                let absent = records.units() - records.dropped() - measures.warps;
                launches.push(measures);
                absent
            }
            // Their data is read otherwise.
            Kind::Events(_) | Kind::Saves(..) => 0,
        };
        self.launches.push(OneLaunch::of(launch, absent, records.dropped()));
    }
}

impl OneLaunch {
    fn of(launch: &Launch, absent: u64, dropped: u64) -> OneLaunch {
        let at_most_ns = launch.complete_ns.saturating_sub(launch.launched_ns);
        OneLaunch { number: launch.number, at_most_ns, clock_khz: launch.clock_khz, absent, dropped }
    }
}
