//! `nt-map dump`: every record as a line, and every cell of an aggregation.
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

mod lines;

use crate::catalogue::{Catalogue, Chosen, Store};
use crate::cli::{Dump, Format};
use crate::input::Source;
use crate::names::Names;
use crate::tell::Tell;
use anyhow::Context;
use lines::{Field, Lines};
use nt_cli::Outcome;
use nt_trace::ntm::{KeyKind, Table};
use nt_trace::ntt::{Batch, CellBatch, Event, Trace, Value};
use std::collections::BTreeMap;
use std::io::Write;

/// Columns before those of the maps.
const FIXED: [&str; 7] = ["process", "launch", "kernel", "map", "unit", "block", "warp"];

/// The last column.
const LAST: &str = "demangled";

/// Lines are written in pieces of this many bytes.
const PIECE: usize = 1 << 20;

/// Prints what is chosen.
pub(crate) fn run(
    opts: &Dump,
    sources: &[Source],
    catalogue: &Catalogue,
    chosen: &Chosen,
    tell: &mut Tell,
) -> anyhow::Result<Outcome> {
    let mut out = opts.output.stream()?;
    let mut printer = Printer {
        format: opts.format,
        columns: all_columns(catalogue.wanted(chosen).map(|(_, store, _)| store)),
        chosen,
        names: BTreeMap::new(),
        out: &mut out,
        buffer: Vec::with_capacity(PIECE + PIECE / 4),
        absent: 0,
        dropped: 0,
    };
    printer.all(sources, tell).context("failed to write the records")?;
    let Printer { absent, dropped, .. } = printer;
    if absent > 0 {
        tell.say(format_args!("{absent} units left no record"));
    }
    if dropped > 0 {
        tell.say(format_args!("{dropped} units had no room"));
    }
    Ok(tell.outcome())
}

/// The names of all columns, each once, in the order they first come in.
fn all_columns<'s>(stores: impl Iterator<Item = Store<'s>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in stores.flat_map(columns) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The columns of one map or table.
fn columns(store: Store<'_>) -> Vec<String> {
    match store {
        Store::Map(map) => map.columns.iter().map(|column| column.name.clone()).collect(),
        Store::Table(table) => {
            // A launch tells its device; where none is named, the device is a column.
            let device = table.persistent.then(|| "device".to_owned());
            let keys = table.keys.iter().filter(|key| key.kind == KeyKind::Site).map(|key| key.name.clone());
            device.into_iter().chain(keys).chain(["value".to_owned()]).collect()
        }
    }
}

/// Writes lines, and counts what there is beside.
struct Printer<'p> {
    format: Format,
    columns: Vec<String>,
    chosen: &'p Chosen,
    names: BTreeMap<String, Names>,
    out: &'p mut dyn Write,
    buffer: Vec<u8>,
    absent: u64,
    dropped: u64,
}

impl Printer<'_> {
    fn all(&mut self, sources: &[Source], tell: &mut Tell) -> std::io::Result<()> {
        if self.format != Format::Json {
            lines::header(&mut self.buffer, self.format, &self.columns);
        }
        for source in sources {
            for event in Trace::new(source.bytes()) {
                match event {
                    Event::Batch(batch) => self.records(source, &batch, tell)?,
                    Event::Cells(batch) => self.cells(source, &batch, tell)?,
                    Event::Kernel(kernel) => {
                        if let Err(error) = &kernel.manifest {
                            tell.fault(&source.name, format_args!("kernel `{}`: {error}", kernel.name));
                        }
                    }
                    Event::Trouble(trouble) => tell.trouble(&source.name, trouble),
                    Event::Start(_)
                    | Event::Launch(..)
                    | Event::Stream(_)
                    | Event::Count(_)
                    | Event::Note(_)
                    | Event::End(_) => {}
                }
            }
            tell.end_of_file(&source.name);
        }
        self.out.write_all(&self.buffer)?;
        self.out.flush()
    }

    fn records(&mut self, source: &Source, batch: &Batch<'_>, tell: &mut Tell) -> std::io::Result<()> {
        let Some(map) = batch.map() else { return Ok(()) };
        let store = Store::Map(map);
        if !self.chosen.takes(&batch.kernel.name, store, Some(&batch.launch)) {
            return Ok(());
        }
        let place = format!("frame at byte {}", batch.at);
        let records = match batch.records() {
            Ok(records) => records,
            Err(mismatch) => {
                tell.fault(&source.name, format_args!("{place}: {mismatch}"));
                return Ok(());
            }
        };
        if let Err(why) = batch.agree() {
            tell.fault(&source.name, format_args!("{place}: {why}"));
        }
        let names = names_of(&mut self.names, &batch.kernel.name);
        let launch = Some(&batch.launch);
        let own = columns(store);
        let lines = Lines::new(self.format, &self.columns, &own, &source.process, launch, store, names);
        let mut rows = records.rows();
        for row in rows.by_ref() {
            lines.put(&mut self.buffer, row.unit(), |column| row.value(column).map(Field::Value));
            self.flush_if_long()?;
        }
        self.absent += rows.absent();
        self.dropped += records.dropped();
        Ok(())
    }

    fn cells(&mut self, source: &Source, batch: &CellBatch<'_>, tell: &mut Tell) -> std::io::Result<()> {
        let Some(table) = batch.table() else { return Ok(()) };
        let (store, launch) = (Store::Table(table), batch.launch.as_ref());
        if !self.chosen.takes(&batch.kernel.name, store, launch) {
            return Ok(());
        }
        let place = format!("frame at byte {}", batch.at);
        let cells = match batch.cells() {
            Ok(cells) => cells,
            Err(mismatch) => {
                tell.fault(&source.name, format_args!("{place}: {mismatch}"));
                return Ok(());
            }
        };
        if let Err(why) = batch.agree() {
            tell.fault(&source.name, format_args!("{place}: {why}"));
        }
        let names = names_of(&mut self.names, &batch.kernel.name);
        let own = columns(store);
        let lines = Lines::new(self.format, &self.columns, &own, &source.process, launch, store, names);
        for unit in 0..cells.stored() {
            for (texts, value) in table.cells.iter().zip(cells.of(unit)) {
                lines.put(&mut self.buffer, unit, |column| cell_field(table, batch, texts, value, column));
                self.flush_if_long()?;
            }
        }
        self.dropped += cells.dropped();
        Ok(())
    }

    fn flush_if_long(&mut self) -> std::io::Result<()> {
        if self.buffer.len() >= PIECE {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// One of the [`columns`] of a cell.
fn cell_field<'c>(
    table: &Table,
    batch: &CellBatch<'_>,
    texts: &'c [String],
    value: Value,
    column: usize,
) -> Option<Field<'c>> {
    let key = match (table.persistent, column) {
        (true, 0) => return Some(Field::Value(Value::Unsigned(batch.device.into()))),
        (true, column) => column - 1,
        (false, column) => column,
    };
    Some(texts.get(key).map_or(Field::Value(value), |text| Field::Text(text)))
}

fn names_of<'n>(known: &'n mut BTreeMap<String, Names>, mangled: &str) -> &'n Names {
    known.entry(mangled.to_owned()).or_insert_with(|| Names::of(mangled))
}
