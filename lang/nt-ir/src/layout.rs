//! Where the fields of a record lie in memory, and how a reader knows that a record was written.
//!
//! * `array<thread>` is a structure of arrays: all lanes store, side by side, so that their stores coalesce. Column
//!   `i` begins at `base + offset(i) × capacity`, its element `n` at `n × size(i)` behind that; `capacity` (units) is
//!   a multiple of [`CAPACITY_STEP`], so every column is aligned.
//! * `array<warp>`, `array<block>` and streams without `lanes<T>` are packed records, each stored by one lane: fields by
//!   falling size, the record padded to a multiple of 16 bytes, so that a store of 16 bytes in one sector is the common case.
//! * `array<U>[CAP]` has those of [`UnitRoom`](crate::program::UnitRoom) a unit. A warp's lie side by side, record `s` of warp `w` being number
//!   `w × records + s`; those of threads do where threads save together, record `s` of thread `t` being `s × units + t`.
//! * An event with `lanes<T>` fields is a header and sections. The header has the base (48 bits) and the code (16, on top)
//!   in bytes 0 to 8, the mask of the active lanes in bytes 8 to 12, and then the scalar fields that are not told by the
//!   code; how the lanes' values follow, if at all, the code tells (`docs/formats.md`, Streams).
//!
//! ```text
//! { site: u32 told, at: u32, addr: lanes<ptr>, bytes: lanes<u32> }     base+code 0..8  mask 8..12  at 12..16: one slot
//! ```
//!
//! A record that was never written must read as absent, and zeros do not tell. One bit does: the spare top bit of a
//! field whose values cannot reach it (`cu`), or else a byte more; of an event its mask. Segments are handed out cleared.

use crate::program::{Key, Map, MapKind, Type, Unit};

/// Capacities in units are multiples of this, so that columns of an `array<thread>` stay 16-byte aligned.
pub const CAPACITY_STEP: u64 = 16;

/// Bytes of a slot of a stream: what one store writes.
pub const SLOT: u32 = 16;

/// The most slots that an event may take: a chunk of 64 without the slot that names its owner.
pub const EVENT_SLOTS: u32 = 63;

/// Where the mask of an event with `lanes<T>` fields lies; base and code are before it, scalar fields behind.
pub const MASK: Slot = Slot { offset: 8, size: 4 };

/// Bytes of a cell of a table.
pub const CELL: u32 = 8;

/// Bytes that the cells of a block are apart at least, and those of a multiprocessor: see [`table_stride`].
const BLOCKS_APART: u32 = 32;
const PROCESSORS_APART: u32 = 256;

/// The layout of one map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Structure of arrays (thread) or packed records?
    pub columnar: bool,
    /// Bytes a unit takes in a segment, or one of a unit's records where it has several: packed, the record's stride; columnar, the sum of the columns; of a stream, the
    /// bytes of an event's header.
    pub stride: u32,
    /// One a field of the map, in the map's field order; of size 0 what is not stored by itself: `lanes<T>` and told fields.
    pub slots: Vec<Slot>,
    /// How presence is told.
    pub presence: Presence,
    /// What else there is of a stream.
    pub stream: Option<StreamLayout>,
}

/// What there is of the events of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLayout {
    /// Slots of the header; without `lanes<T>` fields, of the record.
    pub header_slots: u32,
}

/// Where a field lies: packed, in the record; columnar, to be multiplied by the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Offset in bytes.
    pub offset: u32,
    /// Size in bytes: 1, 2, 4 or 8.
    pub size: u32,
}

/// How a reader knows that a record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// This bit of this field is set by every save; the field's own value has it clear.
    Bit {
        /// Index of the field.
        field: u32,
        /// Which bit, from 0.
        bit: u32,
    },
    /// A byte of its own, like a field: 1 once written.
    Byte(Slot),
    /// The mask of the active lanes, at [`MASK`], which is not 0 in an event with `lanes<T>` fields.
    Mask,
}

/// The size of a type in memory, in bytes.
pub fn size(ty: Type) -> u32 {
    match ty {
        Type::U8 | Type::S8 | Type::Bool => 1,
        Type::U16 | Type::S16 => 2,
        Type::U32 | Type::S32 | Type::F32 => 4,
        Type::U64 | Type::S64 | Type::F64 | Type::Ptr => 8,
    }
}

/// Bytes from the cells of one unit of a table to those of the next, where each has `cells` of them.
///
/// Additions to neighbouring places take longer the nearer they are, when many warps add at a time. Those of a block do when
/// they end, and end together with those of the blocks beside it; all warps of a multiprocessor add to a cell that has no
/// other key. So these are kept apart: `docs/performance.md`, Cells apart. The cells of a warp or a thread have few who add.
pub fn table_stride(keys: &[Key], cells: usize) -> u32 {
    let unit = keys.iter().find_map(|key| match key {
        Key::Unit(unit) => Some(*unit),
        Key::Site(_) | Key::Bounded(_) => None,
    });
    let apart = match unit {
        Some(Unit::Block) => BLOCKS_APART,
        Some(Unit::Warp | Unit::Thread) => CELL,
        None => PROCESSORS_APART,
    };
    u32::try_from(cells).unwrap_or(u32::MAX).saturating_mul(CELL).max(apart)
}

/// Lays out `map`. `bounded` names the field, if any, whose top bit no value that is ever saved can reach (every save
/// of it is a builtin such as `cu`, or a cast from a narrower type); the pass that narrows knows it.
pub fn lay_out(map: &Map, bounded: Option<u32>) -> Layout {
    if map.has_lanes() {
        return lay_out_event(map);
    }
    let columnar = map.unit == Unit::Thread;
    let mut slots = vec![Slot { offset: 0, size: 0 }; map.fields.len()];
    let mut end = 0;
    for field in by_falling_size(map) {
        slots[field as usize] = place(map, field, &mut end);
    }
    let presence = match bounded {
        Some(field) => Presence::Bit { field, bit: size(map.fields[field as usize].ty) * 8 - 1 },
        None => {
            let byte = Slot { offset: end, size: 1 };
            end += 1;
            Presence::Byte(byte)
        }
    };
    let stride = if columnar { end } else { end.next_multiple_of(SLOT) };
    let stream = (map.kind == MapKind::Stream).then_some(StreamLayout { header_slots: stride / SLOT });
    Layout { columnar, stride, slots, presence, stream }
}

/// The header of an event with `lanes<T>` fields.
fn lay_out_event(map: &Map) -> Layout {
    let mut slots = vec![Slot { offset: 0, size: 0 }; map.fields.len()];
    let mut stored = by_falling_size(map);
    stored.retain(|field| !map.fields[*field as usize].lanes && !map.told.contains(field));
    // The four bytes behind the mask first, with the largest that fit; by falling size all are aligned.
    let mut end = MASK.offset + MASK.size;
    stored.retain(|&field| {
        let fits = end + size(map.fields[field as usize].ty) <= SLOT;
        if fits {
            slots[field as usize] = place(map, field, &mut end);
        }
        !fits
    });
    if !stored.is_empty() {
        end = SLOT;
    }
    for field in stored {
        slots[field as usize] = place(map, field, &mut end);
    }
    let stride = end.next_multiple_of(SLOT);
    let stream = Some(StreamLayout { header_slots: stride / SLOT });
    Layout { columnar: false, stride, slots, presence: Presence::Mask, stream }
}

/// The most slots that an event of `map` may take: each `lanes<T>` field as a list of 32 values.
pub fn most_slots(map: &Map) -> u32 {
    let lists = map.fields.iter().filter(|field| field.lanes).map(|field| size(field.ty).max(4) * 32 / SLOT);
    lists.fold(lay_out(map, None).stride / SLOT, u32::saturating_add)
}

fn by_falling_size(map: &Map) -> Vec<u32> {
    let mut order: Vec<u32> = (0..map.fields.len() as u32).collect();
    order.sort_by_key(|&field| std::cmp::Reverse(size(map.fields[field as usize].ty)));
    order
}

fn place(map: &Map, field: u32, end: &mut u32) -> Slot {
    let slot = Slot { offset: *end, size: size(map.fields[field as usize].ty) };
    *end += slot.size;
    slot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::SiteKey;
    use crate::text::parse;

    /// Offsets and sizes of the fields, the bytes of a record or header, and how presence is told.
    #[track_caller]
    fn check(map: &str, fields: &[(u32, u32)], stride: u32, presence: Presence) {
        let (program, found) = parse(&format!("program \"t\" map {map}"));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let layout = lay_out(&program.maps[0], None);
        let slots: Vec<(u32, u32)> = layout.slots.iter().map(|slot| (slot.offset, slot.size)).collect();
        assert_eq!((slots.as_slice(), layout.stride, layout.presence), (fields, stride, presence), "{map}");
        let slots = map.contains("stream").then_some(StreamLayout { header_slots: stride / 16 });
        assert_eq!(layout.stream, slots);
    }

    fn byte(offset: u32) -> Presence {
        Presence::Byte(Slot { offset, size: 1 })
    }

    #[test]
    fn cells_of_blocks_and_multiprocessors_are_apart() {
        let block = [Key::Site(SiteKey::Op), Key::Unit(Unit::Block)];
        let (warp, thread) = ([Key::Unit(Unit::Warp)], [Key::Unit(Unit::Thread)]);
        assert_eq!([1, 4, 5].map(|cells| table_stride(&block, cells)), [32, 32, 40]);
        assert_eq!([table_stride(&warp, 1), table_stride(&thread, 3)], [8, 24]);
        assert_eq!([1, 32, 33].map(|cells| table_stride(&[], cells)), [256, 256, 264]);
        assert_eq!(table_stride(&[], usize::MAX), u32::MAX);
    }

    #[test]
    fn records_of_a_stream_are_packed() {
        check("m: stream<warp> { a: u32, b: u64 }", &[(8, 4), (0, 8)], 16, byte(12));
        check("m: stream<warp> { a: u64, b: u64 }", &[(0, 8), (8, 8)], 32, byte(16));
        check("m: array<warp>[4] drop { a: u32, b: u64 }", &[(8, 4), (0, 8)], 16, byte(12));
    }

    #[test]
    fn headers_of_events() {
        check(
            "m: stream<warp> { site: u32 told, at: u32, addr: lanes<ptr>, bytes: lanes<u32> }",
            &[(0, 0), (12, 4), (0, 0), (0, 0)],
            16,
            Presence::Mask,
        );
        check("m: stream<warp> { addr: lanes<ptr> }", &[(0, 0)], 16, Presence::Mask);
        check("m: stream<warp> { at: u64, addr: lanes<ptr> }", &[(16, 8), (0, 0)], 32, Presence::Mask);
        // 12..14 and 14..15 behind the mask, then 16..24, 24..28, 28..32.
        check(
            "m: stream<warp> { a: u64, l: lanes<u8>, b: u32, c: u32, d: u32 }",
            &[(16, 8), (0, 0), (12, 4), (24, 4), (28, 4)],
            32,
            Presence::Mask,
        );
        check(
            "m: stream<warp> { a: u8, b: u16, l: lanes<u8>, c: u16 }",
            &[(16, 1), (12, 2), (0, 0), (14, 2)],
            32,
            Presence::Mask,
        );
    }

    #[test]
    fn the_most_slots_of_an_event() {
        let check = |map: &str, expected: u32| {
            let (program, found) = parse(&format!("program \"t\" map {map}"));
            let program = program.unwrap_or_else(|| panic!("{found:?}"));
            assert_eq!(most_slots(&program.maps[0]), expected, "{map}");
        };
        check("m: stream<warp> { at: u32, addr: lanes<ptr>, bytes: lanes<u32> }", 1 + 16 + 8);
        check("m: stream<warp> { a: u64, l: lanes<u8> }", 2 + 8);
        check("m: stream<warp> { a: u64 }", 1);
    }
}
