//! Holds a manifest that was read to what its readers rely on: indices name something, fields lie in their records.
//!
//! After this the reader of traces may take a field's bytes without asking again; what it cannot check here is the
//! length of the data, which each data frame brings.

use std::collections::BTreeSet;

use super::{Fill, Kernel, KeyKind, Map, Presence, Source, Table, Type, Unit};

/// Checks one kernel; the error says what is wrong with which.
pub(super) fn kernel(kernel: &Kernel) -> Result<(), String> {
    let name = &kernel.name;
    let size = kernel.context.size;
    for slot in &kernel.context.slots {
        if slot.offset % 8 != 0 || size.checked_sub(slot.offset).is_none_or(|rest| rest < 8) {
            return Err(format!("kernel `{name}`: slot at {} of a context of {size} bytes", slot.offset));
        }
        if let Fill::Base { map } | Fill::Capacity { map } = slot.fill
            && map as usize >= kernel.maps.len() + kernel.tables.len()
        {
            let all = kernel.maps.len() + kernel.tables.len();
            return Err(format!("kernel `{name}`: the context names map {map} of {all}"));
        }
    }
    kernel.maps.iter().try_for_each(|map| self::map(map).map_err(|e| format!("map `{}`: {e}", map.name)))?;
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
    let inside = |what: &str, offset: u32, size: u32| match offset.checked_add(size) {
        Some(end) if end <= map.stride => Ok(()),
        _ => Err(format!("{what} of {size} bytes at {offset} in a record of {}", map.stride)),
    };
    let mut names = BTreeSet::new();
    for field in &map.fields {
        if field.size != field.ty.size() {
            return Err(format!("field `{}`: {} bytes for a {}", field.name, field.size, field.ty.word()));
        }
        if !names.insert(&field.name) {
            return Err(format!("two fields `{}`", field.name));
        }
        inside(&format!("field `{}`", field.name), field.offset, field.size)?;
    }
    match map.presence {
        Presence::Byte { offset } => inside("the byte that tells presence", offset, 1)?,
        Presence::Bit { field, bit } => match map.fields.get(field as usize) {
            Some(field) if bit < field.size * 8 => {}
            _ => return Err(format!("bit {bit} of field {field} is to tell presence")),
        },
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
