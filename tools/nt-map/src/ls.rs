//! `nt-map ls`: what there is, tabs between columns, so that cut and awk take it.
//!
//! A line a process, kernel and map or table; with `--launches` a line a launch. Names are whole here.

use crate::catalogue::{Catalogue, Chosen, Count, Store};
use crate::cli::Ls;
use crate::input::Source;
use crate::tell::Tell;
use crate::text::put_line;
use anyhow::Context;
use nt_cli::Outcome;
use nt_cli::choose::demangle;
use nt_trace::ntm::{Column, KeyKind};
use nt_trace::ntt::{Event, Trace};
use std::io::Write;

/// Lists what is chosen.
pub(crate) fn run(
    opts: &Ls,
    sources: &[Source],
    catalogue: &Catalogue,
    chosen: &Chosen,
    tell: &Tell,
) -> anyhow::Result<Outcome> {
    let mut out = opts.output.stream()?;
    let written = if opts.launches {
        launches(&mut out, sources, chosen)
    } else {
        maps(&mut out, sources, catalogue, chosen)
    };
    written.and_then(|()| out.flush()).context("failed to write the list")?;
    Ok(tell.outcome())
}

fn maps(
    out: &mut dyn Write,
    sources: &[Source],
    catalogue: &Catalogue,
    chosen: &Chosen,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    let head = [
        "process",
        "kernel",
        "arch",
        "launches",
        "map",
        "unit",
        "units",
        "bytes",
        "stored",
        "dropped",
        "columns",
        "demangled",
    ];
    put_line(&mut line, head);
    for (entry, store, count) in catalogue.wanted(chosen) {
        put_line(
            &mut line,
            [
                sources.get(entry.source).map_or("", |source| &source.process),
                &entry.kernel.name,
                &format!("sm_{}", entry.kernel.arch),
                &launches_of(store, count.batches),
                &store.name(),
                store.unit().word(),
                &count.units.to_string(),
                &count.bytes.to_string(),
                &stored(store, count),
                &count.dropped.to_string(),
                &columns(store).join(","),
                &demangle(&entry.kernel.name),
            ],
        );
        out.write_all(&line)?;
        line.clear();
    }
    out.write_all(&line)
}

/// A table that outlives launches does not count them.
fn launches_of(store: Store<'_>, batches: u64) -> String {
    if store.outlives_launches() { "-".to_owned() } else { batches.to_string() }
}

/// Events of a stream, saves of an array with a capacity. What other maps hold is known when they are read.
fn stored(store: Store<'_>, count: Count) -> String {
    match store {
        Store::Map(map) if map.stream.is_some() || map.slots.is_some() => count.stored.to_string(),
        Store::Map(_) | Store::Table(_) => "-".to_owned(),
    }
}

/// What lines of it show, with types: keys that the site tells are texts.
fn columns(store: Store<'_>) -> Vec<String> {
    match store {
        Store::Map(map) => {
            let column = |(index, c): (usize, &Column)| {
                if map.is_of_lanes(index) {
                    format!("{}:lanes<{}>", c.name, c.ty.word())
                } else {
                    format!("{}:{}", c.name, c.ty.word())
                }
            };
            map.columns.iter().enumerate().map(column).collect()
        }
        Store::Table(table) => {
            let keys = table.keys.iter().filter(|key| key.kind == KeyKind::Site).map(|key| key.name.clone());
            keys.chain([format!("value:{}", table.ty.word())]).collect()
        }
    }
}

fn launches(out: &mut dyn Write, sources: &[Source], chosen: &Chosen) -> std::io::Result<()> {
    let mut line = Vec::new();
    let head = [
        "process",
        "launch",
        "kernel",
        "grid",
        "block",
        "shared",
        "device",
        "sms",
        "stream",
        "launched_ns",
        "at_most_us",
        "demangled",
    ];
    put_line(&mut line, head);
    for source in sources {
        for event in Trace::skim(source.bytes()) {
            let Event::Launch(kernel, launch) = event else { continue };
            if !chosen.takes_launch(&kernel.name, &launch) {
                continue;
            }
            let three = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
            let micros = launch.complete_ns.saturating_sub(launch.launched_ns) as f64 / 1e3;
            put_line(
                &mut line,
                [
                    source.process.as_str(),
                    &launch.number.to_string(),
                    &kernel.name,
                    &three(launch.grid),
                    &three(launch.block),
                    &launch.shared.to_string(),
                    &launch.device.to_string(),
                    &launch.sms.to_string(),
                    &format!("{:#x}", launch.stream),
                    &launch.launched_ns.to_string(),
                    &format!("{micros:.1}"),
                    &demangle(&kernel.name),
                ],
            );
            out.write_all(&line)?;
            line.clear();
        }
    }
    out.write_all(&line)
}
