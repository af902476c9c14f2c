//! What is in the traces, and which part of it is wanted.
//!
//! A first, quick walk over the files, which leaves map data alone: it gives `ls` its lines, `dump` its columns, and
//! every subcommand the names that are nearest to a choice which found nothing.

use crate::cli::{Launches, Select};
use crate::input::Source;
use crate::names::{LONGEST, shorten};
use crate::tell::Tell;
use nt_cli::choose::{choose, nearest};
use nt_trace::ntm::{Map, Table, Unit};
use nt_trace::ntt::{Batch, Event, KnownKernel, Mismatch, StreamBatch, Streams, Trace, Unfit};
use nt_wire::frame::{Launch, Note};
use nt_wire::stream::Head;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is in the traces.
pub(crate) struct Catalogue {
    /// A kernel of a file each, in the order of the files.
    pub(crate) entries: Vec<Entry>,
    /// Lines of words in the files: why nothing was traced stands there.
    pub(crate) notes: Vec<String>,
    /// Was any sound frame found?
    pub(crate) any_frame: bool,
}

/// A kernel of a file.
pub(crate) struct Entry {
    /// Index of the file.
    pub(crate) source: usize,
    /// The kernel.
    pub(crate) kernel: Arc<KnownKernel>,
    /// Its launches, whatever the choice.
    pub(crate) launches: u64,
    /// Numbers of its first and last.
    pub(crate) range: Option<(u64, u64)>,
    /// One a map, in the manifest's order, then one a table.
    pub(crate) counts: Vec<Count>,
}

/// What data frames are of.
#[derive(Clone, Copy)]
pub(crate) enum Store<'c> {
    /// Records.
    Map(&'c Map),
    /// An aggregation's cells.
    Table(&'c Table),
}

impl Store<'_> {
    /// The name that lines show: a table's begins with `@`.
    pub(crate) fn name(self) -> String {
        match self {
            Store::Map(map) => map.name.clone(),
            Store::Table(table) => format!("@{}", table.name),
        }
    }

    /// Is its data of no single launch?
    pub(crate) fn outlives_launches(self) -> bool {
        match self {
            Store::Map(_) => false,
            Store::Table(table) => table.persistent,
        }
    }

    /// Whose slots it has.
    pub(crate) fn unit(self) -> Unit {
        match self {
            Store::Map(map) => map.unit,
            Store::Table(table) => table.unit,
        }
    }
}

/// The data frames of a map or table that the choice of launches takes.
#[derive(Default, Clone, Copy)]
pub(crate) struct Count {
    /// Frames.
    pub(crate) batches: u64,
    /// Units in them, written or not.
    pub(crate) units: u64,
    /// Bytes of data in them.
    pub(crate) bytes: u64,
    /// Events of a stream, or saves of an array with a capacity, that were stored, where they were counted.
    pub(crate) stored: u64,
    /// Units, or events of a stream, that found no room; saves of an array with a capacity that are not there.
    pub(crate) dropped: u64,
}

/// Notes that are kept; a trace may hold one a launch.
const NOTES: usize = 20;

impl Catalogue {
    /// Walks over all files. `tell` hears of their faults; without it a later walk will tell them.
    pub(crate) fn of(sources: &[Source], select: &Select, mut tell: Option<&mut Tell>) -> Catalogue {
        let mut catalogue = Catalogue { entries: Vec::new(), notes: Vec::new(), any_frame: false };
        for (index, source) in sources.iter().enumerate() {
            let mut ids: BTreeMap<u32, usize> = BTreeMap::new();
            let mut streams = Streams::default();
            for event in Trace::skim(source.bytes()) {
                catalogue.any_frame |= !matches!(event, Event::Trouble(_));
                match event {
                    Event::Start(_) => ids.clear(),
                    Event::Kernel(kernel) => {
                        let counts = vec![Count::default(); kernel.maps().len() + kernel.tables().len()];
                        ids.insert(kernel.id, catalogue.entries.len());
                        catalogue.entries.push(Entry {
                            source: index,
                            kernel,
                            launches: 0,
                            range: None,
                            counts,
                        });
                    }
                    Event::Launch(kernel, launch) => {
                        if let Some(entry) = ids.get(&kernel.id).and_then(|&at| catalogue.entries.get_mut(at))
                        {
                            let (first, last) = entry.range.unwrap_or((launch.number, launch.number));
                            entry.range = Some((first.min(launch.number), last.max(launch.number)));
                            entry.launches += 1;
                        }
                    }
                    Event::Batch(batch) if in_range(select.launch.as_ref(), Some(&batch.launch)) => {
                        let entry = ids.get(&batch.kernel.id).and_then(|&at| catalogue.entries.get_mut(at));
                        if let Some(count) = entry.and_then(|entry| entry.counts.get_mut(batch.index)) {
                            count.add(batch.units, batch.capacity, batch.data);
                        }
                    }
                    Event::Saves(batch) if in_range(select.launch.as_ref(), Some(&batch.launch)) => {
                        let entry = ids.get(&batch.kernel.id).and_then(|&at| catalogue.entries.get_mut(at));
                        if let Some(count) = entry.and_then(|entry| entry.counts.get_mut(batch.index)) {
                            // As of streams.
                            let added = count.add_saves(&batch, tell.is_some());
                            if let (Some(tell), Err(mismatch)) = (&mut tell, added) {
                                tell.fault(
                                    &source.name,
                                    format_args!("frame at byte {}: {mismatch}", batch.at),
                                );
                            }
                        }
                    }
                    Event::Stream(batch) if in_range(select.launch.as_ref(), Some(&batch.launch)) => {
                        let entry = ids.get(&batch.kernel.id).and_then(|&at| catalogue.entries.get_mut(at));
                        if let Some(count) = entry.and_then(|entry| entry.counts.get_mut(batch.index)) {
                            // Events are counted for a list alone: all of the data is read for it.
                            let streams = tell.is_some().then_some(&mut streams);
                            let added = count.add_part(&batch, streams);
                            if let Some(tell) = &mut tell {
                                let at = batch.at;
                                match added {
                                    Ok(torn) => tell.torn(&source.name, at, torn),
                                    Err(unfit) => {
                                        tell.fault(&source.name, format_args!("frame at byte {at}: {unfit}"));
                                    }
                                }
                            }
                        }
                    }
                    Event::Cells(batch) if in_range(select.launch.as_ref(), batch.launch.as_ref()) => {
                        let index = batch.kernel.maps().len() + batch.index;
                        let entry = ids.get(&batch.kernel.id).and_then(|&at| catalogue.entries.get_mut(at));
                        if let Some(count) = entry.and_then(|entry| entry.counts.get_mut(index)) {
                            count.add(batch.units, batch.capacity, batch.data);
                        }
                    }
                    Event::Note(Note { text }) if catalogue.notes.len() < NOTES => catalogue.notes.push(text),
                    Event::Trouble(trouble) => {
                        if let Some(tell) = &mut tell {
                            tell.trouble(&source.name, trouble);
                        }
                    }
                    Event::Batch(_)
                    | Event::Saves(_)
                    | Event::Stream(_)
                    | Event::Cells(_)
                    | Event::Note(_)
                    | Event::Count(_)
                    | Event::End(_) => {}
                }
            }
            if let Some(tell) = &mut tell {
                tell.end_of_file(&source.name);
            }
        }
        catalogue
    }

    /// The mangled names of all kernels, sorted.
    fn names(&self) -> Vec<&str> {
        let names: BTreeSet<&str> = self.entries.iter().map(|entry| entry.kernel.name.as_str()).collect();
        names.into_iter().collect()
    }

    /// The part that is wanted, or why there is nothing in it.
    pub(crate) fn choose(&self, select: &Select) -> Result<Chosen, String> {
        let names = self.names();
        let mut kernels: BTreeSet<String> =
            choose(&select.kernels, names.iter().copied()).into_iter().map(str::to_owned).collect();
        // What a line of ours shows of a long name chooses it, too.
        for name in names.iter().filter(|name| name.len() > LONGEST) {
            if !choose(&select.kernels, [shorten(name).as_str()]).is_empty() {
                kernels.insert((*name).to_owned());
            }
        }
        let chosen = Chosen { kernels, maps: select.maps.clone(), launches: select.launch.clone() };
        if names.is_empty() {
            return Err("no kernel in the trace".to_owned());
        }
        if chosen.kernels.is_empty() {
            let near = nearest(&select.kernels, &names, 5);
            let near = if near.is_empty() { names.iter().take(5).copied().collect() } else { near };
            let near: Vec<String> = near.into_iter().map(|name| format!("`{}`", shorten(name))).collect();
            return Err(format!("`-k` matched 0 of {} kernels, nearest: {}", names.len(), near.join(", ")));
        }
        if let Some(why) = self.unknown_map(&chosen) {
            return Err(why);
        }
        if self.wanted(&chosen).all(|(_, _, count)| count.batches == 0) {
            return Err(self.no_launch(&chosen));
        }
        Ok(chosen)
    }

    /// The maps and tables of the chosen kernels, with what there is of them.
    pub(crate) fn wanted<'c>(
        &'c self,
        chosen: &'c Chosen,
    ) -> impl Iterator<Item = (&'c Entry, Store<'c>, Count)> + 'c {
        let entries = self.entries.iter().filter(|entry| chosen.kernels.contains(&entry.kernel.name));
        entries.flat_map(move |entry| {
            let stores = entry.stores().zip(entry.counts.iter().copied());
            stores
                .filter(|(store, _)| chosen.takes_store(*store))
                .map(move |(store, count)| (entry, store, count))
        })
    }

    /// A word on the first `--map` that names nothing.
    fn unknown_map(&self, chosen: &Chosen) -> Option<String> {
        let entries = self.entries.iter().filter(|entry| chosen.kernels.contains(&entry.kernel.name));
        let names: BTreeSet<String> = entries.flat_map(Entry::stores).map(Store::name).collect();
        let unknown =
            chosen.maps.iter().find(|word| !names.iter().any(|name| is_called(name, word.as_str())))?;
        let words = names.iter().flat_map(|name| [name.as_str(), name.trim_start_matches('@')]);
        let mut near = nt_diag::nearest(unknown, words).map_or(Vec::new(), |name| vec![name]);
        if near.is_empty() {
            near = names.iter().map(String::as_str).take(5).collect();
        }
        Some(format!("no map `{unknown}` in the chosen kernels, nearest: `{}`", near.join("`, `")))
    }

    /// Why nothing is left although kernels and maps are.
    fn no_launch(&self, chosen: &Chosen) -> String {
        let entries = || self.entries.iter().filter(|entry| chosen.kernels.contains(&entry.kernel.name));
        let launches: u64 = entries().map(|entry| entry.launches).sum();
        let range = entries().filter_map(|entry| entry.range).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        match (range, &chosen.launches) {
            (_, Some(_)) if entries().flat_map(Entry::stores).all(Store::outlives_launches) => {
                "the trace has aggregations of all launches together: leave out `--launch`".to_owned()
            }
            (Some((first, last)), Some(Launches(wanted))) => {
                let (from, to) = (wanted.start(), wanted.end());
                let wanted = if *to == u64::MAX { format!("{from}..") } else { format!("{from}..{to}") };
                format!(
                    "`--launch {wanted}` has none of the {launches} launches, which are numbered {first} to {last}"
                )
            }
            (Some(_), None) => format!("{launches} launches, and no record of any"),
            (None, _) => "no launch was recorded".to_owned(),
        }
    }
}

impl Entry {
    /// Its maps, then its tables.
    fn stores(&self) -> impl Iterator<Item = Store<'_>> {
        let maps = self.kernel.maps().iter().map(Store::Map);
        maps.chain(self.kernel.tables().iter().map(Store::Table))
    }
}

impl Count {
    fn add(&mut self, units: u64, capacity: u64, data: &[u8]) {
        self.batches += 1;
        self.units = self.units.saturating_add(units);
        self.bytes = self.bytes.saturating_add(data.len() as u64);
        self.dropped = self.dropped.saturating_add(units.saturating_sub(capacity));
    }

    /// Adds an array with a capacity; what its units saved, if that is to be counted.
    fn add_saves(&mut self, batch: &Batch<'_>, counted: bool) -> Result<(), Mismatch> {
        self.batches += 1;
        self.units = self.units.saturating_add(batch.units);
        self.bytes = self.bytes.saturating_add(batch.data.len() as u64);
        if counted {
            let saves = batch.saves()?;
            for tally in (0..saves.units()).map(|unit| saves.tally(unit)) {
                self.stored = self.stored.saturating_add(tally.stored);
                self.dropped = self.dropped.saturating_add(tally.lost());
            }
        }
        Ok(())
    }

    /// Adds a part of a stream; counts its events if `streams` are there to count with, and says how many chunks hold
    /// what no event is.
    fn add_part(&mut self, batch: &StreamBatch<'_>, streams: Option<&mut Streams>) -> Result<u64, Unfit> {
        let part = Head::decode(batch.data).ok();
        if part.is_none_or(|part| part.head.part == 0) {
            self.batches += 1;
            self.units = self.units.saturating_add(part.map_or(0, |part| part.head.units));
        }
        self.bytes = self.bytes.saturating_add(batch.data.len() as u64);
        let Some(streams) = streams else { return Ok(0) };
        let mut open = streams.open(batch)?;
        self.dropped += open.dropped().map(|(_, count)| u64::from(count)).sum::<u64>();
        let mut torn = 0;
        for piece in open.pieces(1 << 16) {
            self.stored += piece.stored;
            torn += piece.torn;
        }
        Ok(torn)
    }
}

/// Which part is wanted.
pub(crate) struct Chosen {
    /// Mangled names.
    pub(crate) kernels: BTreeSet<String>,
    maps: Vec<String>,
    launches: Option<Launches>,
}

impl Chosen {
    /// Is this launch's data wanted? Data of no single launch is, unless launches are chosen.
    pub(crate) fn takes(&self, kernel: &str, store: Store<'_>, launch: Option<&Launch>) -> bool {
        in_range(self.launches.as_ref(), launch) && self.takes_store(store) && self.kernels.contains(kernel)
    }

    /// Is this launch of this kernel wanted?
    pub(crate) fn takes_launch(&self, kernel: &str, launch: &Launch) -> bool {
        in_range(self.launches.as_ref(), Some(launch)) && self.kernels.contains(kernel)
    }

    fn takes_store(&self, store: Store<'_>) -> bool {
        self.maps.is_empty() || self.maps.iter().any(|word| is_called(&store.name(), word))
    }
}

/// Does `--map WORD` mean what is shown as `name`? A table's `@` need not be typed.
fn is_called(name: &str, word: &str) -> bool {
    name == word || name.strip_prefix('@').is_some_and(|name| name == word && !name.is_empty())
}

fn in_range(launches: Option<&Launches>, launch: Option<&Launch>) -> bool {
    launches.is_none_or(|Launches(range)| launch.is_some_and(|launch| range.contains(&launch.number)))
}
