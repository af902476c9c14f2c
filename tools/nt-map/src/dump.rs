//! `nt-map dump`: every record as a line.
//!
//! ```text
//! process launch kernel      map         unit block warp start elapsed cu demangled
//! 4242    0      fill_blocks block_sched 7    1     3    1042  31      5  fill_blocks
//! ```
//!
//! The demangled name stands last, since it holds blanks: `sort -k8n` and awk count columns before it. Where several
//! maps are shown, the columns are those of all of them, and `-` stands where a map has none of that name.

use crate::catalogue::{Catalogue, Chosen};
use crate::cli::{Dump, Format};
use crate::input::Source;
use crate::names::Names;
use crate::tell::Tell;
use crate::text::{put_number, put_text, put_value};
use anyhow::Context;
use nt_cli::Outcome;
use nt_trace::ntm::{Map, Unit};
use nt_trace::ntt::{Batch, Event, Table, Trace};
use nt_wire::frame::Launch;
use std::collections::BTreeMap;
use std::io::Write;

/// Columns before those of the maps.
const FIXED: [&str; 7] = ["process", "launch", "kernel", "map", "unit", "block", "warp"];

/// The last column.
const LAST: &str = "demangled";

/// Lines are written in pieces of this many bytes.
const PIECE: usize = 1 << 20;

/// What was met beside records.
#[derive(Default)]
struct Tally {
    absent: u64,
    dropped: u64,
}

/// Prints the chosen records.
pub(crate) fn run(
    opts: &Dump,
    sources: &[Source],
    catalogue: &Catalogue,
    chosen: &Chosen,
    tell: &mut Tell,
) -> anyhow::Result<Outcome> {
    let columns = columns(catalogue.wanted(chosen).map(|(_, map, _)| map));
    let mut out = opts.output.stream()?;
    let mut tally = Tally::default();
    let written = write(&mut out, opts.format, &columns, sources, chosen, tell, &mut tally);
    written.and_then(|()| out.flush()).context("failed to write the records")?;
    if tally.absent > 0 {
        tell.say(format_args!("{} units left no record", tally.absent));
    }
    if tally.dropped > 0 {
        tell.say(format_args!("{} units had no room for a record", tally.dropped));
    }
    Ok(tell.outcome())
}

/// The names of all columns of `maps`, each once, in the order they first come in.
fn columns<'m>(maps: impl Iterator<Item = &'m Map>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in maps.flat_map(|map| &map.columns) {
        if !names.contains(&column.name) {
            names.push(column.name.clone());
        }
    }
    names
}

fn write(
    out: &mut dyn Write,
    format: Format,
    columns: &[String],
    sources: &[Source],
    chosen: &Chosen,
    tell: &mut Tell,
    tally: &mut Tally,
) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(PIECE + PIECE / 4);
    if format != Format::Json {
        header(&mut buffer, format, columns);
    }
    let mut names: BTreeMap<String, Names> = BTreeMap::new();
    for source in sources {
        for event in Trace::new(source.bytes()) {
            match event {
                Event::Batch(batch) => {
                    let Some(map) = batch.map() else { continue };
                    if !chosen.takes(&batch.kernel.name, &map.name, &batch.launch) {
                        continue;
                    }
                    let table = match batch.table() {
                        Ok(table) => table,
                        Err(mismatch) => {
                            tell.fault(&source.name, format_args!("frame at byte {}: {mismatch}", batch.at));
                            continue;
                        }
                    };
                    if let Err(why) = agree(&batch, map) {
                        tell.fault(&source.name, format_args!("frame at byte {}: {why}", batch.at));
                    }
                    let mangled = &batch.kernel.name;
                    let names = names.entry(mangled.clone()).or_insert_with(|| Names::of(mangled));
                    let lines = Lines::new(format, columns, &source.process, &batch, map, names);
                    lines.write(out, &mut buffer, &table, tally)?;
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
    out.write_all(&buffer)
}

/// Has the data as many units as the launch?
pub(crate) fn agree(batch: &Batch<'_>, map: &Map) -> Result<(), String> {
    let launch = &batch.launch;
    match map.unit.count(launch.grid, launch.block, launch.sms) {
        Some(units) if units == batch.units => Ok(()),
        Some(units) => Err(format!("{} units, and launch {} has {units}", batch.units, launch.number)),
        None => Err(format!("launch {} has more units than there are numbers", launch.number)),
    }
}

fn header(out: &mut Vec<u8>, format: Format, columns: &[String]) {
    for name in FIXED {
        out.extend_from_slice(name.as_bytes());
        out.push(separator(format));
    }
    for name in columns {
        // A map may have a column `block` of its own.
        let taken = FIXED.contains(&name.as_str()) || name == LAST;
        put_text(out, format, &if taken { format!("record.{name}") } else { name.clone() });
        out.push(separator(format));
    }
    out.extend_from_slice(LAST.as_bytes());
    end_line(out, format);
}

fn separator(format: Format) -> u8 {
    if format == Format::Csv { b',' } else { b'\t' }
}

/// RFC 4180 ends lines with both.
fn end_line(out: &mut Vec<u8>, format: Format) {
    out.extend_from_slice(if format == Format::Csv { b"\r\n" } else { b"\n" });
}

/// The lines of one data frame; all that they have in common is made once.
struct Lines<'m> {
    format: Format,
    map: &'m Map,
    threads: u64,
    warps: u64,
    before: Vec<u8>,
    after: Vec<u8>,
    /// For each column of the output, which of the map's it is.
    places: Vec<Option<usize>>,
    /// For each column of the map, its key in JSON, with quotes and colon.
    keys: Vec<String>,
}

impl<'m> Lines<'m> {
    fn new(
        format: Format,
        columns: &[String],
        process: &str,
        batch: &Batch<'_>,
        map: &'m Map,
        names: &Names,
    ) -> Lines<'m> {
        let launch = batch.launch.number.to_string();
        let fixed = [process, launch.as_str(), &names.mangled, &map.name];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        if format == Format::Json {
            for (key, value) in FIXED.into_iter().zip(fixed) {
                before.push(if before.is_empty() { b'{' } else { b',' });
                before.extend_from_slice(format!("\"{key}\":").as_bytes());
                if key == "launch" {
                    before.extend_from_slice(value.as_bytes());
                } else {
                    put_text(&mut before, format, value);
                }
            }
            before.extend_from_slice(b",\"unit\":");
            after.extend_from_slice(b"},\"demangled\":");
            put_text(&mut after, format, &names.demangled);
            after.push(b'}');
        } else {
            for value in fixed {
                put_text(&mut before, format, value);
                before.push(separator(format));
            }
            after.push(separator(format));
            put_text(&mut after, format, &names.demangled);
        }
        end_line(&mut after, format);
        let Launch { block, .. } = batch.launch;
        let threads = block.iter().fold(1, |n: u64, &d| n.saturating_mul(u64::from(d))).max(1);
        let key = |(i, name): (usize, &String)| {
            format!("{}{}:", if i == 0 { "" } else { "," }, nt_diag::json_escape(name))
        };
        Lines {
            format,
            map,
            threads,
            warps: threads.div_ceil(32),
            before,
            after,
            places: columns
                .iter()
                .map(|name| map.columns.iter().position(|column| column.name == *name))
                .collect(),
            keys: map.columns.iter().map(|column| &column.name).enumerate().map(key).collect(),
        }
    }

    fn write(
        &self,
        out: &mut dyn Write,
        buffer: &mut Vec<u8>,
        table: &Table<'_>,
        tally: &mut Tally,
    ) -> std::io::Result<()> {
        let mut rows = table.rows();
        for row in rows.by_ref() {
            let (block, warp) = self.place(row.unit());
            buffer.extend_from_slice(&self.before);
            put_number(buffer, row.unit());
            if self.format == Format::Json {
                buffer.extend_from_slice(b",\"block\":");
                put_number(buffer, block);
                if let Some(warp) = warp {
                    buffer.extend_from_slice(b",\"warp\":");
                    put_number(buffer, warp);
                }
                buffer.extend_from_slice(b",\"record\":{");
                for (key, value) in self.keys.iter().zip(row.values()) {
                    buffer.extend_from_slice(key.as_bytes());
                    put_value(buffer, self.format, value);
                }
            } else {
                let separator = separator(self.format);
                buffer.push(separator);
                put_number(buffer, block);
                buffer.push(separator);
                match warp {
                    Some(warp) => put_number(buffer, warp),
                    None => self.put_nothing(buffer),
                }
                for place in &self.places {
                    buffer.push(separator);
                    match place.and_then(|column| row.value(column)) {
                        Some(value) => put_value(buffer, self.format, value),
                        None => self.put_nothing(buffer),
                    }
                }
            }
            buffer.extend_from_slice(&self.after);
            if buffer.len() >= PIECE {
                out.write_all(buffer)?;
                buffer.clear();
            }
        }
        tally.absent += rows.absent();
        tally.dropped += table.dropped();
        Ok(())
    }

    fn put_nothing(&self, buffer: &mut Vec<u8>) {
        if self.format == Format::Tsv {
            buffer.push(b'-');
        }
    }

    /// The block of a unit, and the warp in it unless the unit is the block.
    fn place(&self, unit: u64) -> (u64, Option<u64>) {
        match self.map.unit {
            Unit::Thread => (unit / self.threads, Some(unit % self.threads / 32)),
            Unit::Warp => (unit / self.warps, Some(unit % self.warps)),
            // No map has records of multiprocessors: a manifest with one is refused.
            Unit::Block | Unit::Sm => (unit, None),
        }
    }
}
