//! Holds a manifest that was read to what its readers rely on: indices name something, fields lie in their records.
//!
//! After this the reader of traces may take a field's bytes without asking again; what it cannot check here is the
//! length of the data, which each data frame brings.

use nt_ir::launch::Conditions;
use std::collections::BTreeSet;

use super::{Fill, Kernel, KeyKind, Map, Presence, Slots, Source, Stream, Table, Type, Unit};

mod stream;

/// Checks one kernel; the error says what is wrong with which.
pub(super) fn kernel(kernel: &Kernel) -> Result<(), String> {
    let name = &kernel.name;
    let size = kernel.context.size;
    for slot in &kernel.context.slots {
        let inside = slot.offset.checked_add(slot.size).is_some_and(|end| end <= size);
        if !matches!(slot.size, 4 | 8) || !slot.offset.is_multiple_of(slot.size) || !inside {
            let (at, bytes) = (slot.offset, slot.size);
            return Err(format!(
                "kernel `{name}`: slot of {bytes} bytes at {at} of a context of {size} bytes"
            ));
        }
        match slot.fill {
            Fill::Zero | Fill::Launch => {}
            Fill::Base { map } | Fill::Capacity { map } => {
                let all = kernel.maps.len() + kernel.tables.len();
                if map as usize >= all {
                    return Err(format!("kernel `{name}`: the context names map {map} of {all}"));
                }
            }
            Fill::Cursor { map } | Fill::Drops { map } => {
                if kernel.maps.get(map as usize).is_none_or(|map| map.stream.is_none()) {
                    return Err(format!("kernel `{name}`: the context names map {map}, which is no stream"));
                }
            }
            Fill::Counts { map } => {
                if kernel.maps.get(map as usize).is_none_or(|map| map.slots.is_none()) {
                    return Err(format!(
                        "kernel `{name}`: the context names map {map}, which has no capacity"
                    ));
                }
            }
            Fill::Units { map } => {
                let one = |map: &Map| map.stream.is_none() && map.slots.is_none();
                if kernel.maps.get(map as usize).is_none_or(one) {
                    return Err(format!(
                        "kernel `{name}`: the context names map {map}, which has a record a unit"
                    ));
                }
            }
        }
    }
    if let Some(unknown) = kernel.assumes.iter().find(|name| Conditions::from_name(name).is_none()) {
        return Err(format!("kernel `{name}`: it assumes `{unknown}`, which this version does not know"));
    }
    let check = |m: &Map| {
        map(m)?;
        m.stream.as_ref().map_or(Ok(()), |s| stream::stream(kernel, m, s))
    };
    kernel.maps.iter().try_for_each(|m| check(m).map_err(|e| format!("map `{}`: {e}", m.name)))?;
    let check = |t: &Table| table(t).map_err(|e| format!("table `@{}`: {e}", t.name));
    kernel.tables.iter().try_for_each(check)
}

/// Checks one table.
fn table(table: &Table) -> Result<(), String> {
    if !matches!(table.ty, Type::U64 | Type::S64) {
        return Err(format!("cells of type {}", table.ty.word()));
    }
    let room = table.stride / 8;
    if !table.stride.is_multiple_of(8) || table.cells.len() as u64 > u64::from(room) {
        return Err(format!("{} cells in {} bytes", table.cells.len(), table.stride));
    }
    let of = |kind: KeyKind| table.keys.iter().filter(move |key| key.kind == kind);
    let sites = of(KeyKind::Site).count();
    if let Some(cell) = table.cells.iter().position(|cell| cell.len() != sites) {
        return Err(format!("cell {cell} does not have {sites} texts"));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = table.cells.iter().find(|cell| !seen.insert(*cell)) {
        return Err(format!("two cells [{}]", twice.join(", ")));
    }
    // The index of a unit is one key at most, and it is the key that the table is laid out by.
    let mut units = table.keys.iter().filter(|key| key.kind != KeyKind::Site);
    let agrees = match (units.next(), table.unit) {
        (None, unit) => unit == Unit::Sm,
        (Some(key), Unit::Sm) => key.kind == KeyKind::Cu,
        (Some(key), unit) => key.kind == KeyKind::Unit && key.name == unit.word(),
    };
    if !agrees || units.next().is_some() {
        return Err(format!("its keys do not go with cells of a {}", table.unit.word()));
    }
    if table.persistent && table.unit != Unit::Sm {
        return Err(format!("cells of a {} cannot outlive a launch", table.unit.word()));
    }
    Ok(())
}

/// Checks one map.
fn map(map: &Map) -> Result<(), String> {
    if map.unit == Unit::Sm {
        return Err("records of multiprocessors".to_owned());
    }
    if let Some(slots) = &map.slots {
        self::slots(map, slots)?;
    }
    let inside = |what: &str, offset: u32, size: u32| match offset.checked_add(size) {
        Some(end) if end <= map.stride => Ok(()),
        _ => Err(format!("{what} of {size} bytes at {offset} in a record of {}", map.stride)),
    };
    let mut names = BTreeSet::new();
    for (index, field) in (0u32..).zip(&map.fields) {
        if field.size != field.ty.size() {
            return Err(format!("field `{}`: {} bytes for a {}", field.name, field.size, field.ty.word()));
        }
        if !names.insert(&field.name) {
            return Err(format!("two fields `{}`", field.name));
        }
        if !map.stream.as_ref().is_some_and(|stream| stream.is_elsewhere(index)) {
            inside(&format!("field `{}`", field.name), field.offset, field.size)?;
        }
    }
    match map.presence {
        Presence::Byte { offset } => inside("the byte that tells presence", offset, 1)?,
        Presence::Bit { field, bit } => match map.fields.get(field as usize) {
            Some(field) if bit < field.size * 8 => {}
            _ => return Err(format!("bit {bit} of field {field} is to tell presence")),
        },
        Presence::Mask if map.stream.as_ref().is_some_and(Stream::has_lanes) => {}
        Presence::Mask => {
            return Err("a mask is to tell presence, and no field has a value a lane".to_owned());
        }
    }
    for column in &map.columns {
        let of = |index: u32| {
            let field = map.fields.get(index as usize);
            field.ok_or_else(|| format!("column `{}` is made of field {index}", column.name))
        };
        let fits = match column.source {
            Source::Field(a) => fits(of(a)?.ty, column.ty),
            Source::Difference(a, b) => [of(a)?.ty, of(b)?.ty, column.ty].iter().all(|&ty| !is_float(ty)),
        };
        if !fits {
            return Err(format!(
                "column `{}`: a {} cannot be had of what is stored",
                column.name,
                column.ty.word()
            ));
        }
    }
    Ok(())
}

/// Checks how many records a unit has: a reader takes those of a warp's other lanes modulo their number.
fn slots(map: &Map, slots: &Slots) -> Result<(), String> {
    let &Slots { capacity, others, .. } = slots;
    if map.stream.is_some() {
        return Err("a stream that has a capacity".to_owned());
    }
    if !(1..=Slots::MOST).contains(&capacity) || others > Slots::MOST {
        return Err(format!("room for {capacity} and {others} records"));
    }
    match map.unit {
        Unit::Warp if !map.columnar && others != 0 => Ok(()),
        Unit::Thread if map.columnar && others == 0 => Ok(()),
        unit => Err(format!("room for {capacity} and {others} records a {}", unit.word())),
    }
}

fn is_float(ty: Type) -> bool {
    matches!(ty, Type::F32 | Type::F64)
}

/// Can a field be shown as a column? Integers of any width as each other; a float as itself or wider.
fn fits(field: Type, column: Type) -> bool {
    match (is_float(field), is_float(column)) {
        (false, false) => true,
        (true, true) => field.size() <= column.size(),
        _ => false,
    }
}
