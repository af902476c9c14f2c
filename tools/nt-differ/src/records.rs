//! What the maps and tables of a probed run hold, in the terms of `counted.rs`.

use crate::counted::Cells;
use crate::device::{Job, Ran, Segment};
use crate::probed::Probed;
use nt_ir::layout::{CELL, Layout, Presence, Slot};
use nt_ir::program::{Column, Source, Unit};

/// A table's cells that are not 0: by block, or by SM where nothing of the launch is a key.
///
/// # Errors
/// There is no such table, or something stands behind the launch's units or between the cells of two.
pub fn table(probed: &Probed, job: &Job, ran: &Ran, name: &str) -> Result<Cells, String> {
    let kernel = probed.kernel(&job.kernel).ok_or("no such kernel")?;
    // A table that no site adds to is not there: it has no cells.
    let Some(number) = kernel.tables.iter().position(|table| table.name == name) else {
        return Ok(Cells::new());
    };
    // `position` found it.
    let table = &kernel.tables[number];
    let segment = ran.segments.get(kernel.maps.len() + number).ok_or("a table without a segment")?;
    let of_a_block = units_of_a_block(job, table.unit.unwrap_or(Unit::Block));
    let words_of_a_unit = u64::from(table.stride() / CELL);
    let mut cells = Cells::new();
    for (index, word) in (0u64..).zip(words(&segment.bytes, CELL as usize)) {
        if word == 0 {
            continue;
        }
        let (unit, cell) = (index / words_of_a_unit, index % words_of_a_unit);
        if unit >= segment.units {
            return Err(format!("`@{name}`: unit {unit} is {word}, the launch has {}", segment.units));
        }
        let Some(names) = table.cells.get(cell as usize).cloned() else {
            return Err(format!("`@{name}`: {word} stands at {cell} of unit {unit}, which is no cell"));
        };
        let sum = cells.entry((unit / of_a_block, names)).or_default();
        *sum = u64::wrapping_add(*sum, word);
    }
    Ok(cells)
}

fn units_of_a_block(job: &Job, unit: Unit) -> u64 {
    match unit {
        Unit::Thread => job.threads(),
        Unit::Warp => job.threads().div_ceil(32),
        Unit::Block => 1,
    }
}

/// A map's records by unit, `None` where there is none, with the columns that a reader shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// Units of a block.
    pub of_a_block: u64,
    /// By unit.
    pub all: Vec<Option<Record>>,
}

/// Reads a map.
///
/// # Errors
/// There is no such map, or something stands behind the launch's units.
pub fn map(probed: &Probed, job: &Job, ran: &Ran, name: &str) -> Result<Records, String> {
    let kernel = probed.kernel(&job.kernel).ok_or("no such kernel")?;
    let number = kernel.maps.iter().position(|map| map.name == name).ok_or("no such map")?;
    // `position` found it.
    let map = &kernel.maps[number];
    let segment = ran.segments.get(number).ok_or("a map without a segment")?;
    let columns = &probed.probe.program.maps.get(map.map).ok_or("a map of no program")?.columns;
    let mut all = Vec::new();
    for unit in 0..segment.capacity {
        let record = at(segment, &map.layout, columns, unit)?;
        if unit < segment.units {
            all.push(record);
        } else if record.is_some() {
            return Err(format!("`{name}`: record {unit} is there, the launch has {}", segment.units));
        }
    }
    Ok(Records { of_a_block: units_of_a_block(job, map.unit), all })
}

/// A record, as the columns that a reader shows.
pub type Record = Vec<u64>;

/// The record of an index, `None` if there is none.
///
/// # Errors
/// Something is written of it, but not that it is there.
pub(crate) fn at(
    segment: &Segment,
    layout: &Layout,
    columns: &[Column],
    index: u64,
) -> Result<Option<Record>, String> {
    let read = |slot: Slot| read(segment, layout, slot, index);
    let mut fields: Vec<u64> = layout.slots.iter().map(|&slot| read(slot)).collect();
    let is_there = match layout.presence {
        Presence::Bit { field, bit } => {
            let value = fields.get_mut(field as usize).ok_or("presence in no field")?;
            let is_there = *value >> bit & 1 == 1;
            *value &= !(1 << bit);
            is_there
        }
        Presence::Byte(slot) => read(slot) == 1,
        Presence::Mask => return Err("a stream has events, not records".to_owned()),
    };
    let field = |index: u32| fields.get(index as usize).copied().unwrap_or(0);
    let column = |source: Source| match source {
        Source::Field(index) => field(index),
        Source::Difference(from, less) => field(from).wrapping_sub(field(less)),
    };
    if !is_there && fields.iter().any(|&field| field != 0) {
        return Err(format!("record {index} is not there, and holds {fields:?}"));
    }
    Ok(is_there.then(|| columns.iter().map(|one| column(one.source)).collect()))
}

fn read(segment: &Segment, layout: &Layout, slot: Slot, unit: u64) -> u64 {
    let (offset, size) = (u64::from(slot.offset), u64::from(slot.size));
    let at = match layout.columnar {
        true => offset * segment.capacity + unit * size,
        false => unit * u64::from(layout.stride) + offset,
    } as usize;
    segment.bytes.get(at..at + slot.size as usize).map_or(0, word)
}

fn words(bytes: &[u8], size: usize) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(size).map(word)
}

/// Up to 8 bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
