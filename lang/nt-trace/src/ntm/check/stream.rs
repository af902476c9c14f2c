//! Holds a stream to what its reader relies on.
//!
//! After this every form of a code fits its field, every parameter that a stride is made of is one of the kernel's, and
//! the longest event of a code fits a chunk.

use nt_ir::layout::{MASK, SLOT};

use super::super::{Code, Form, Kernel, Linear, Map, Presence, Source, Stream, Unit};

/// Checks the stream of `map`, whose fields are known to be sound where they have a place in the header.
pub(super) fn stream(kernel: &Kernel, map: &Map, stream: &Stream) -> Result<(), String> {
    let Stream { chunk, header, .. } = *stream;
    if !chunk.is_power_of_two() || !(4..=64).contains(&chunk) {
        return Err(format!("chunks of {chunk} slots"));
    }
    if header == 0 || header >= chunk || map.stride != header * SLOT {
        return Err(format!(
            "a header of {header} slots and {} bytes in chunks of {chunk} slots",
            map.stride
        ));
    }
    if map.unit != Unit::Warp || map.columnar {
        return Err("a stream that is not of warps, or in columns".to_owned());
    }
    ascending(map, "a value a lane", &stream.lanes)?;
    ascending(map, "its value in the code", &stream.told)?;
    if let Some(both) = stream.told.iter().find(|field| stream.lanes.contains(field)) {
        return Err(format!("field {both} has a value a lane, and the code tells it"));
    }
    places(map, stream)?;
    for column in &map.columns {
        if let Source::Difference(a, b) = column.source
            && [a, b].iter().any(|field| stream.lanes.contains(field))
        {
            return Err(format!("column `{}` is a difference of values a lane", column.name));
        }
    }
    let codes = !stream.told.is_empty() || !stream.codes.is_empty();
    if codes && !stream.has_lanes() {
        return Err("codes, and no field has a value a lane".to_owned());
    }
    if stream.codes.len() > 1 << 16 {
        return Err(format!("{} codes", stream.codes.len()));
    }
    (0u32..).zip(&stream.codes).try_for_each(|(number, code)| {
        self::code(kernel, map, stream, code).map_err(|e| format!("code {number}: {e}"))
    })
}

/// A list of fields: each is one of the map's, and none comes twice.
fn ascending(map: &Map, what: &str, fields: &[u32]) -> Result<(), String> {
    let sorted = fields.is_sorted_by(|a, b| a < b);
    let inside = fields.last().is_none_or(|&last| (last as usize) < map.fields.len());
    if sorted && inside { Ok(()) } else { Err(format!("fields {fields:?} are to have {what}")) }
}

/// The fields in the header lie behind what every event begins with, and not on each other.
fn places(map: &Map, stream: &Stream) -> Result<(), String> {
    let mut taken: Vec<(u32, u32, &str)> = (0u32..)
        .zip(&map.fields)
        .filter(|&(index, _)| !stream.is_elsewhere(index))
        .map(|(_, field)| (field.offset, field.size, field.name.as_str()))
        .collect();
    if stream.has_lanes() {
        taken.push((0, MASK.offset + MASK.size, "(base, code and mask)"));
    }
    match map.presence {
        Presence::Byte { .. } | Presence::Bit { .. } if stream.has_lanes() => {
            return Err("presence is told twice: by the mask, and otherwise".to_owned());
        }
        Presence::Byte { offset } => taken.push((offset, 1, "(presence)")),
        Presence::Bit { field, .. } if stream.is_elsewhere(field) => {
            return Err(format!("field {field} is to tell presence, and is not stored"));
        }
        Presence::Bit { .. } | Presence::Mask => {}
    }
    taken.sort_unstable();
    // Each lies in a header of less than 64 slots: sums are small.
    match taken.iter().zip(taken.iter().skip(1)).find(|((at, size, _), (next, ..))| at + size > *next) {
        None => Ok(()),
        Some(((.., a), (.., b))) => Err(format!("`{a}` and `{b}` lie on each other")),
    }
}

/// Checks what a code means.
fn code(kernel: &Kernel, map: &Map, stream: &Stream, code: &Code) -> Result<(), String> {
    if !kernel.sites.iter().any(|site| site.id == code.site) {
        return Err(format!("site {} of none", code.site));
    }
    if !code.told.iter().map(|told| &told.field).eq(&stream.told) {
        return Err(format!("it does not tell fields {:?}", stream.told));
    }
    if !code.lanes.iter().map(|lanes| &lanes.field).eq(&stream.lanes) {
        return Err(format!("it does not say how to get fields {:?}", stream.lanes));
    }
    if !code.assumes.is_sorted_by(|a, b| a < b) {
        return Err("it assumes the same twice".to_owned());
    }
    let base = stream.base(map);
    let mut longest = stream.header;
    for lanes in &code.lanes {
        // `ascending` has seen that the field is there.
        let Some(field) = map.fields.get(lanes.field as usize) else { continue };
        longest += lanes.form.slots(u32::BITS);
        let is_base = base == Some(lanes.field);
        let fits = match &lanes.form {
            Form::Known(_) | Form::List64 => true,
            Form::List32 => is_base || field.ty.size() <= 4,
            Form::Stride => is_base,
            Form::Bits(strides) => {
                strides.iter().try_for_each(|stride| linear(kernel, stride))?;
                is_base
            }
        };
        if !fits {
            return Err(format!("the values of `{}`, a {}, cannot be had so", field.name, field.ty.word()));
        }
    }
    if longest >= stream.chunk {
        return Err(format!("an event of {longest} slots in chunks of {}", stream.chunk));
    }
    Ok(())
}

/// Every parameter that a number is made of is inside one of the kernel's.
fn linear(kernel: &Kernel, linear: &Linear) -> Result<(), String> {
    let outside = linear.terms.iter().find(|term| {
        let end = term.param_offset.checked_add(term.size);
        let within = |offset: u32, size: u32| {
            term.param_offset >= offset && end.is_some_and(|end| offset.checked_add(size) >= Some(end))
        };
        !matches!(term.size, 4 | 8) || !kernel.params.iter().any(|param| within(param.offset, param.size))
    });
    match outside {
        None => Ok(()),
        Some(term) => {
            let (size, at) = (term.size, term.param_offset);
            Err(format!("a stride is made of {size} bytes at {at} of the parameters, where none is"))
        }
    }
}
