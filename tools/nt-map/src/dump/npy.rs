//! Records as a structured array of NumPy: `numpy.load("x.npy")["addr"]`.
//!
//! ```text
//! record   launch u8  unit u8                                    columns
//! save     launch u8  unit u8    cursor u1  seq u8               columns: of arrays with a capacity
//! event    launch u8  warp u8    lane u1  event u8  mask u4  site u4   columns; 32 of each with a value a lane
//! lane     launch u8  thread u8  lane u1  event u8           site u4   columns
//! ```
//!
//! Rows are packed and little-endian. `site` counts the manifest's sites from 0, as the builtin does; it is 2³²−1 where none is known; lanes
//! that are not in the mask have zeros. `cursor` is 1 for what a warp's other lanes than lane 0 saved; `seq` is 2⁶⁴−1 where it is not known. The header tells how many rows there are, so they are counted first.

use super::jobs::{Job, Press, Rows};
use super::{Left, PIECE, rows};
use crate::catalogue::{Catalogue, Chosen, Store};
use crate::cli::Dump;
use crate::input::Source;
use crate::tell::Tell;
use crate::walk::{Origin, walk};
use anyhow::{Context, bail};
use nt_trace::ntm::{Map, Stream, Type};
use nt_trace::ntt::{Cursor, Piece, Reader, Value};
use std::sync::Arc;

/// Writes the array.
pub(super) fn run(
    opts: &Dump,
    sources: &[Source],
    catalogue: &Catalogue,
    chosen: &Chosen,
    tell: &mut Tell,
) -> anyhow::Result<Left> {
    opts.output.refuse_terminal("an array")?;
    let map = the_map(catalogue, chosen)?;
    let lanes = opts.lanes && map.stream.as_ref().is_some_and(Stream::has_lanes);
    let piece = if lanes { PIECE.1 } else { PIECE.0 };
    let mut count = 0;
    let mut silent = Tell::silent();
    walk(sources, chosen, piece, &mut silent, |origin, found| {
        let shape = Shape::of(origin, lanes);
        rows(origin, found, lanes, |rows| {
            count += shape.count(&rows);
            Ok::<_, anyhow::Error>(())
        })
    })?;
    let mut out = opts.output.stream()?;
    let failed = || "failed to write the array";
    out.write_all(&header(map, lanes, count)).with_context(failed)?;
    let mut press = Press::new(&mut out);
    let mut left = Left::default();
    walk(sources, chosen, piece, tell, |origin, found| {
        left.add(&found);
        let shape = Arc::new(Shape::of(origin, lanes));
        rows(origin, found, lanes, |rows| press.take(Packed { shape: Arc::clone(&shape), rows }))
    })
    .with_context(failed)?;
    left.absent = press.finish().with_context(failed)?;
    Ok(left)
}

/// The one map that is chosen: rows of an array are all alike.
fn the_map<'c>(catalogue: &'c Catalogue, chosen: &'c Chosen) -> anyhow::Result<&'c Map> {
    let with_data = || catalogue.wanted(chosen).filter(|(.., count)| count.batches > 0);
    let mut maps = Vec::new();
    for (_, store, _) in with_data() {
        match store {
            Store::Map(map) => maps.push(map),
            Store::Table(table) => {
                bail!("an array cannot hold the aggregation `@{}`: choose a map by `--map`", table.name)
            }
        }
    }
    let Some((&first, rest)) = maps.split_first() else { bail!("no map with data") };
    let alike = |map: &Map| {
        let columns = |map: &Map| map.columns.iter().map(|c| (c.name.clone(), c.ty)).collect::<Vec<_>>();
        let lanes = |map: &Map| map.stream.as_ref().map(Stream::has_lanes);
        let saves = |map: &Map| map.slots.is_some();
        columns(map) == columns(first) && lanes(map) == lanes(first) && saves(map) == saves(first)
    };
    if let Some(other) = rest.iter().find(|map| !alike(map)) {
        bail!(
            "an array holds one map, and there are `{}` and `{}`: choose by `--map`",
            first.name,
            other.name
        );
    }
    let mut sources: Vec<usize> = with_data().map(|(entry, ..)| entry.source).collect();
    sources.dedup();
    if sources.len() > 1 {
        bail!("an array tells no processes apart, and there are {}: choose by `--process`", sources.len());
    }
    Ok(first)
}

/// Magic, version 2, and a Python dictionary, padded so that rows are aligned.
fn header(map: &Map, lanes: bool, rows: u64) -> Vec<u8> {
    let mut fields = vec![("launch".to_owned(), "'<u8'".to_owned())];
    let mut fixed = |name: &str, ty: &str| fields.push((name.to_owned(), format!("'{ty}'")));
    match &map.stream {
        None => {
            fixed("unit", "<u8");
            if map.slots.is_some() {
                fixed("cursor", "|u1");
                fixed("seq", "<u8");
            }
        }
        Some(_) => {
            fixed(if lanes { "thread" } else { "warp" }, "<u8");
            fixed("lane", "|u1");
            fixed("event", "<u8");
            if !lanes {
                fixed("mask", "<u4");
            }
            fixed("site", "<u4");
        }
    }
    for (index, column) in map.columns.iter().enumerate() {
        let taken = fields.iter().any(|(name, _)| *name == column.name);
        let name = if taken { format!("record.{}", column.name) } else { column.name.clone() };
        let many = if map.is_of_lanes(index) && !lanes { ", (32,)" } else { "" };
        fields.push((name, format!("'{}'{many}", dtype(column.ty))));
    }
    let fields: Vec<String> =
        fields.iter().map(|(name, ty)| format!("({}, {ty})", nt_diag::json_escape(name))).collect();
    let text = format!("{{'descr': [{}], 'fortran_order': False, 'shape': ({rows},), }}", fields.join(", "));
    // The dictionary begins at byte 12, and rows at a multiple of 64.
    let end = (12 + text.len() + 1).next_multiple_of(64);
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend_from_slice(&u32::try_from(end - 12).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(end - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn dtype(ty: Type) -> &'static str {
    match ty {
        Type::U8 => "|u1",
        Type::U16 => "<u2",
        Type::U32 => "<u4",
        Type::U64 | Type::Ptr => "<u8",
        Type::S8 => "|i1",
        Type::S16 => "<i2",
        Type::S32 => "<i4",
        Type::S64 => "<i8",
        Type::F32 => "<f4",
        Type::F64 => "<f8",
        Type::Bool => "|b1",
    }
}

/// What the rows of one data frame have in common.
struct Shape {
    launch: u64,
    threads: u64,
    types: Vec<Type>,
    lanes: bool,
}

/// Rows to be packed.
struct Packed<'s> {
    shape: Arc<Shape>,
    rows: Rows<'s>,
}

impl Shape {
    fn of(origin: &Origin<'_>, lanes: bool) -> Shape {
        let launch = origin.launch.as_ref();
        let block = launch.map_or([1; 3], |launch| launch.block);
        let types = match origin.store() {
            Some(Store::Map(map)) => map.columns.iter().map(|column| column.ty).collect(),
            Some(Store::Table(_)) | None => Vec::new(),
        };
        Shape {
            launch: launch.map_or(0, |launch| launch.number),
            threads: block.iter().fold(1, |n: u64, &d| n.saturating_mul(u64::from(d))).max(1),
            types,
            lanes,
        }
    }

    fn count(&self, rows: &Rows<'_>) -> u64 {
        match rows {
            Rows::Records(records, units) => {
                units.clone().filter(|&unit| records.row(unit).is_some()).count() as u64
            }
            Rows::Saves(saves, units) => units.clone().map(|unit| saves.of(unit).count() as u64).sum(),
            Rows::Cells { .. } => 0,
            Rows::Events { piece, .. } if !self.lanes => piece.stored,
            Rows::Events { reader, piece, .. } => {
                reader.events(piece).map(|event| u64::from(event.mask().count_ones())).sum()
            }
        }
    }

    fn put(&self, out: &mut Vec<u8>, column: usize, value: Value) {
        let ty = self.types.get(column).copied().unwrap_or(Type::U64);
        put(out, ty, value);
    }
}

impl Job for Packed<'_> {
    fn put(&self, out: &mut Vec<u8>) -> u64 {
        let shape = &*self.shape;
        match &self.rows {
            Rows::Records(records, units) => {
                let mut absent = 0;
                for unit in units.clone() {
                    let Some(row) = records.row(unit) else {
                        absent += 1;
                        continue;
                    };
                    out.extend_from_slice(&shape.launch.to_le_bytes());
                    out.extend_from_slice(&unit.to_le_bytes());
                    row.values().enumerate().for_each(|(column, value)| shape.put(out, column, value));
                }
                absent
            }
            Rows::Saves(saves, units) => {
                for (unit, save) in
                    units.clone().flat_map(|unit| saves.of(unit).map(move |save| (unit, save)))
                {
                    out.extend_from_slice(&shape.launch.to_le_bytes());
                    out.extend_from_slice(&unit.to_le_bytes());
                    out.push(u8::from(save.cursor == Cursor::Other));
                    out.extend_from_slice(&save.sequence.unwrap_or(u64::MAX).to_le_bytes());
                    save.row.values().enumerate().for_each(|(column, value)| shape.put(out, column, value));
                }
                0
            }
            Rows::Cells { .. } => 0,
            Rows::Events { reader, piece, .. } => {
                events(shape, reader, piece, out);
                0
            }
        }
    }
}

fn events(shape: &Shape, reader: &Reader, piece: &Piece<'_>, out: &mut Vec<u8>) {
    let columns = shape.types.len();
    let mut spread = vec![[0u64; 32]; columns];
    let warps = shape.threads.div_ceil(32);
    for event in reader.events(piece) {
        let site = event.site().and_then(|site| u32::try_from(site).ok()).unwrap_or(u32::MAX);
        for (column, bits) in spread.iter_mut().enumerate() {
            if !shape.lanes {
                *bits = [0; 32];
            }
            event.put_lanes(column, bits);
        }
        if !shape.lanes {
            out.extend_from_slice(&shape.launch.to_le_bytes());
            out.extend_from_slice(&event.warp().to_le_bytes());
            out.push(event.lane() as u8);
            out.extend_from_slice(&event.sequence().to_le_bytes());
            out.extend_from_slice(&event.mask().to_le_bytes());
            out.extend_from_slice(&site.to_le_bytes());
            for (column, bits) in spread.iter().enumerate() {
                match event.value(column) {
                    Some(value) => shape.put(out, column, value),
                    None => bits.iter().for_each(|&bits| shape.put(out, column, reader.typed(column, bits))),
                }
            }
            continue;
        }
        let (block, warp) = (event.warp() / warps, event.warp() % warps);
        for lane in event.lanes() {
            let thread = block * shape.threads + warp * 32 + u64::from(lane);
            out.extend_from_slice(&shape.launch.to_le_bytes());
            out.extend_from_slice(&thread.to_le_bytes());
            out.push(lane as u8);
            out.extend_from_slice(&event.sequence().to_le_bytes());
            out.extend_from_slice(&site.to_le_bytes());
            for (column, bits) in spread.iter().enumerate() {
                let value = event.value(column);
                let of_lane = || reader.typed(column, bits.get(lane as usize).copied().unwrap_or(0));
                shape.put(out, column, value.unwrap_or_else(of_lane));
            }
        }
    }
}

/// Appends a value in the bytes of its type.
fn put(out: &mut Vec<u8>, ty: Type, value: Value) {
    let bits = match value {
        Value::Unsigned(value) | Value::Address(value) => value,
        Value::Signed(value) => value as u64,
        Value::Single(value) => u64::from(value.to_bits()),
        Value::Double(value) => value.to_bits(),
        Value::Bool(value) => u64::from(value),
    };
    let bytes = bits.to_le_bytes();
    out.extend_from_slice(bytes.get(..ty.size() as usize).unwrap_or(&bytes));
}
