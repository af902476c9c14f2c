//! The frames of what probes have saved: of a launch, of a part of a stream, and of the tables of a home.

use std::io;

use nt_wire::frame::{self, ALIGN};
use nt_wire::slots;
use nt_wire::stream::Head;

use crate::home::Home;
use crate::layout::{Layout, Part};
use crate::notes;
use crate::pool::Launched;
use crate::trace::Trace;

/// A launch and its maps, streams apart; `values` are those of its parameters, `bytes` gives the part of its segment at
/// an offset.
pub(crate) fn launch<'s>(
    trace: &mut Trace,
    launched: &Launched,
    layout: &Layout,
    values: &[u8],
    bytes: impl Fn(usize, usize) -> &'s [u8],
) -> io::Result<()> {
    launched.twin.announce(launched.kernel, trace)?;
    trace.frame(&frame::Launch { params: values.to_vec(), ..launched.frame.clone() })?;
    let maps = launched.twin.maps.iter().zip(&layout.parts).enumerate();
    for (map, (shape, part)) in maps.filter(|(_, (map, _))| !map.persistent && map.stream.is_none()) {
        // Counts lie before the records that they are of, in the segment as in the frame.
        let from = if shape.slots.is_some() { part.counts } else { part.offset };
        let len = part.offset - from + part.bytes;
        let data = bytes(from as usize, len as usize);
        if let Some(shape) = shape.slots
            && let Ok((counts, _)) = slots::split(data, part.units, shape)
        {
            notes::SAVES.add(slots::beyond(counts, shape));
        }
        trace.data(fixed(launched, map, part, len), &[data])?;
    }
    Ok(())
}

/// The sum of drops.
pub(crate) fn dropped(drops: &[u8]) -> u64 {
    let (words, _) = drops.as_chunks::<4>();
    words.iter().map(|word| u64::from(u32::from_le_bytes(*word))).sum()
}

/// A part of a stream of a launch.
pub(crate) fn part(
    trace: &mut Trace,
    launched: &Launched,
    layout: &Layout,
    map: usize,
    head: Head,
    drops: &[u8],
    slots: &[u8],
) -> io::Result<()> {
    let zeros = [0; ALIGN];
    let padding = drops.len().next_multiple_of(ALIGN) - drops.len();
    let pieces = [&head.encode(), drops, zeros.get(..padding).unwrap_or_default(), slots];
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    let part = layout.parts.get(map).copied().unwrap_or_default();
    trace.data(fixed(launched, map, &part, bytes as u64), &pieces)
}

fn fixed(launched: &Launched, map: usize, part: &Part, bytes: u64) -> frame::Data {
    frame::Data {
        launch: launched.frame.number,
        map: map as u32,
        kernel: launched.twin.id,
        units: part.units,
        capacity: part.capacity,
        bytes,
        context: launched.frame.context,
        device: launched.frame.device,
    }
}

/// The tables of a home; `bytes` gives the part of their buffer at an offset.
pub(crate) fn tables<'s>(
    trace: &mut Trace,
    home: &Home,
    bytes: impl Fn(usize, usize) -> &'s [u8],
) -> io::Result<()> {
    home.twin.announce(home.kernel, trace)?;
    let maps = home.twin.maps.iter().zip(&home.tables.parts).enumerate();
    for (map, (_, part)) in maps.filter(|(_, (map, _))| map.persistent) {
        let fixed = frame::Data {
            launch: frame::Data::PERSISTENT,
            map: map as u32,
            kernel: home.twin.id,
            units: part.units,
            capacity: part.capacity,
            bytes: part.bytes,
            context: home.context.handle as u64,
            device: home.context.device.ordinal.cast_unsigned(),
        };
        trace.data(fixed, &[bytes(part.offset as usize, part.bytes as usize)])?;
    }
    Ok(())
}
