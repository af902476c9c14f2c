//! Where what a launch saves lies in its segment, and where the tables of a twin lie in their buffer.
//!
//! A map of units has a part that follows from the launch: a record each, or as many as its capacity says, behind a
//! count each. A stream has a cursor, counts of drops and slots; how many slots is a matter of what it asks for and of
//! what the pool has. Cursors stand with the maps in front, so that one copy tells how much of each stream was used:
//!
//! ```text
//! [map][counts map]…[cursor][cursor]… | [drops]… | [slots]…
//!              front
//! ```

use nt_wire::message::MapShape;
use nt_wire::slots;
use nt_wire::stream::{MOST_SLOTS, SLOT};

use crate::pool::MAPS;
use crate::twin::Twin;

/// Parts begin at multiples of this: a cache line's worth and more.
const PART: u64 = 256;
/// Capacities are rounded up to it, as the layout of columns wants.
const STEP: u64 = 16;
/// Bytes of a cursor, of which it uses eight: no two in one line.
const CURSOR: u64 = 64;

/// A map's part of a segment or of a buffer.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Where its records or slots begin.
    pub(crate) offset: u64,
    /// Bytes of them.
    pub(crate) bytes: u64,
    /// Units that the launch has.
    pub(crate) units: u64,
    /// Units that it has room for; of an array with a capacity, records; of a stream, slots.
    pub(crate) capacity: u64,
    /// Of an array with a capacity, where its counts are. They end where its records begin, padding apart.
    pub(crate) counts: u64,
    /// Of a stream, where its cursor is.
    pub(crate) cursor: u64,
    /// Of a stream, where its drops are: a u32 a unit.
    pub(crate) drops: u64,
}

/// See the module.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Layout {
    /// One a map.
    pub(crate) parts: [Part; MAPS],
    /// Up to where it is fetched at once.
    pub(crate) front: u64,
    /// All of it.
    pub(crate) bytes: u64,
}

/// Of a launch's segment, which has `room` bytes at most. `None` if that does not suffice for all but the slots of
/// streams.
pub(crate) fn of_launch(twin: &Twin, grid: [u32; 3], block: [u32; 3], sms: u32, room: u64) -> Option<Layout> {
    let mut layout = Layout::default();
    let (mut end, mut streams) = (0, 0);
    for (part, map) in layout.parts.iter_mut().zip(&twin.maps).filter(|(_, map)| !map.persistent) {
        let units = map.unit.count(grid, block, sms)?;
        if map.stream.is_some() {
            part.units = units;
            streams += 1;
        } else {
            *part = records(&mut end, units, map)?;
        }
    }
    (layout.front, layout.bytes) = (end, end);
    if streams != 0 {
        lay_out_streams(twin, &mut layout, streams, room)?;
    }
    (layout.bytes <= room).then_some(layout)
}

/// Of the buffer of its tables.
pub(crate) fn of_tables(twin: &Twin, sms: u32) -> Option<Layout> {
    let mut layout = Layout::default();
    for (part, map) in layout.parts.iter_mut().zip(&twin.maps).filter(|(_, map)| map.persistent) {
        *part = records(&mut layout.bytes, map.unit.count([1; 3], [1; 3], sms)?, map)?;
    }
    Some(layout)
}

fn records(end: &mut u64, units: u64, map: &MapShape) -> Option<Part> {
    let (counts, records) = match map.slots {
        None => (0, units),
        Some(shape) => (slots::before_records(units, shape)?, slots::records(units, shape)?),
    };
    let capacity = records.checked_next_multiple_of(STEP)?;
    let bytes = capacity.checked_mul(u64::from(map.stride))?;
    let offset = end.checked_add(counts)?;
    let part = Part { offset, bytes, units, capacity, counts: *end, cursor: 0, drops: 0 };
    *end = offset.checked_add(bytes)?.checked_next_multiple_of(PART)?;
    Some(part)
}

/// Each gets what it asks for, or its units' first chunks if that is more, or its share of what is left.
fn lay_out_streams(twin: &Twin, layout: &mut Layout, streams: u64, room: u64) -> Option<()> {
    let mut end = layout.front;
    let maps = || twin.maps.iter().enumerate().filter_map(|(map, shape)| Some((map, shape.stream?)));
    for (map, _) in maps() {
        layout.parts.get_mut(map)?.cursor = end;
        end += CURSOR;
    }
    end = end.checked_next_multiple_of(PART)?;
    layout.front = end;
    for (map, _) in maps() {
        let part = layout.parts.get_mut(map)?;
        part.drops = end;
        end = end.checked_add(part.units.checked_mul(4)?)?.checked_next_multiple_of(PART)?;
    }
    let mut left = streams;
    for (map, shape) in maps() {
        let part = layout.parts.get_mut(map)?;
        let chunk = u64::from(shape.chunk) * SLOT;
        let wanted = shape.bytes.max(part.units.saturating_mul(chunk)).min(MOST_SLOTS * SLOT);
        let share = room.checked_sub(end)? / left / PART * PART;
        part.offset = end;
        part.bytes = wanted.min(share) / chunk * chunk;
        part.capacity = part.bytes / SLOT;
        end += part.bytes.next_multiple_of(PART);
        left -= 1;
    }
    layout.bytes = end;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nt_wire::message::{SlotsShape, StreamShape, Unit};

    fn stream(chunk: u32, bytes: u64) -> MapShape {
        let stream = Some(StreamShape { chunk, bytes });
        MapShape { stream, ..MapShape::records(Unit::Warp, 16) }
    }

    fn array(unit: Unit, stride: u32) -> MapShape {
        MapShape::records(unit, stride)
    }

    /// A launch of 10 blocks of 100 threads: 40 warps.
    fn lay_out(maps: Vec<MapShape>, room: u64) -> Option<Layout> {
        let twin = Twin { maps, ..Twin::empty() };
        of_launch(&twin, [10, 1, 1], [100, 1, 1], 132, room)
    }

    #[test]
    fn records_lie_one_behind_the_other() {
        let layout = lay_out(vec![array(Unit::Warp, 16), array(Unit::Block, 5)], 1 << 20).unwrap();
        let [warps, blocks, ..] = layout.parts;
        assert_eq!((warps.offset, warps.bytes, warps.units, warps.capacity), (0, 48 * 16, 40, 48));
        assert_eq!((blocks.offset, blocks.bytes, blocks.units, blocks.capacity), (768, 80, 10, 16));
        assert_eq!((layout.front, layout.bytes), (1024, 1024));
        assert!(lay_out(vec![array(Unit::Warp, 16)], 767).is_none());
    }

    #[test]
    fn counts_lie_before_records() {
        let slots = |per_unit, count_bytes| Some(SlotsShape { per_unit, others: 0, count_bytes });
        let warps = MapShape { slots: slots(7, 8), ..array(Unit::Warp, 16) };
        let threads = MapShape { slots: slots(3, 4), ..array(Unit::Thread, 5) };
        let layout = lay_out(vec![array(Unit::Block, 5), warps, threads], 1 << 20).unwrap();
        let [_, warps, threads, ..] = layout.parts;
        // Behind 80 bytes of records: 40 counts of 8 bytes, and 280 records, which are 288.
        assert_eq!((warps.counts, warps.offset), (256, 256 + 320));
        assert_eq!((warps.units, warps.capacity, warps.bytes), (40, 288, 288 * 16));
        // Then 1,000 counts of 4 bytes, which take 4,032, and 3,000 records, which are 3,008.
        assert_eq!((threads.counts, threads.offset), (5376, 5376 + 4032));
        assert_eq!((threads.units, threads.capacity, threads.bytes), (1000, 3008, 3008 * 5));
        assert_eq!((layout.front, layout.bytes), (24_576, 24_576));
        // 40 warps of 2^32 - 1 records of 4 GiB each are beyond 64 bits.
        let vast = MapShape { slots: slots(u32::MAX, 8), ..array(Unit::Warp, u32::MAX) };
        assert!(lay_out(vec![vast], u64::MAX).is_none());
    }

    #[test]
    fn a_stream_gets_what_it_asks_for() {
        let layout = lay_out(vec![array(Unit::Block, 5), stream(16, 100_000)], 1 << 20).unwrap();
        let part = layout.parts[1];
        // Behind 80 bytes of records; a cursor; 160 bytes of drops; 390 chunks of 256 bytes in 100,000.
        assert_eq!((part.cursor, layout.front, part.drops, part.offset), (256, 512, 512, 768));
        assert_eq!((part.units, part.bytes, part.capacity), (40, 99_840, 6240));
        assert_eq!(layout.bytes, 768 + 99_840);
    }

    #[test]
    fn each_unit_has_its_first_chunk_where_there_is_room() {
        let part = |bytes, room| lay_out(vec![stream(64, bytes)], room).map(|layout| layout.parts[0]);
        assert_eq!(part(1, 1 << 20).unwrap().capacity, 40 * 64);
        // Front and drops take 512 bytes; of the next 4,000, three chunks of 1 KiB have room.
        assert_eq!(part(1, 4512).unwrap().capacity, 3 * 64);
        assert_eq!(part(1, 512).unwrap().capacity, 0);
        assert_eq!(part(1, 511), None);
        assert_eq!(part(u64::MAX, u64::MAX).unwrap().capacity, MOST_SLOTS);
    }

    #[test]
    fn streams_share_what_is_left() {
        let layout =
            lay_out(vec![stream(16, 1 << 30), stream(16, 10_000), stream(4, 1 << 30)], 301_024).unwrap();
        let [first, second, third, ..] = layout.parts;
        // Front 256, drops 3 × 256; 300,000 are left: a third, what was asked for and each unit needs, and the rest.
        assert_eq!((first.cursor, second.cursor, third.cursor, layout.front), (0, 64, 128, 256));
        assert_eq!((first.bytes, second.bytes, third.bytes), (99_840, 10_240, 189_696));
        assert!(layout.bytes <= 301_024);
        let ends = [first, second, third].map(|part| part.offset + part.bytes);
        assert!(ends[0] <= second.offset && ends[1] <= third.offset && ends[2] <= layout.bytes);
    }
}
