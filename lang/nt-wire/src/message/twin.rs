//! The answer to [`super::Need`]: how a woven kernel is launched, and what memory it is to have.
//!
//! The hook reads all of it but the manifest. It puts the context block together by the slots, a segment by the maps:
//!
//! ```text
//! block    0: zero   8: base of map 0   16: capacity of map 0   24: number of the launch
//! segment  map 0: a record a unit | map 1, several a unit: counts, records | map 2, a stream: cursor, drops, slots
//! ```

use super::{Body, Kind};
use crate::codec::{Malformed, Reader, Writer};

/// The woven kernel, in the descriptor that comes along (a cubin, or PTX that ends in a NUL), and how to launch it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Twin {
    /// Bytes in the descriptor.
    pub size: u64,
    /// How many parameters the original has. The twin has one more, last: the context block.
    pub params: Vec<Param>,
    /// Bytes of the context block.
    pub context: u32,
    /// What stands in it; bytes that nothing names are zero.
    pub slots: Vec<Slot>,
    /// One a map, in the order that [`Fill`] counts.
    pub maps: Vec<MapShape>,
    /// Variables of the original's `.global` space that the twin shares with it.
    pub pins: Vec<Pin>,
    /// Variables of the original's `.const` space, which the twin has copies of.
    pub constants: Vec<Constant>,
    /// What it relies on of a launch, as in [`super::Need::holds`]: it must not be launched where one of these does not hold.
    pub assumes: u8,
    /// Does a reader of what it saves need the values of the parameters? Then they go into [`crate::frame::Launch`].
    pub wants_params: bool,
    /// The manifest's entry for this kernel, JSON. The hook does not read it; it goes into the trace's kernel frame.
    pub manifest: Vec<u8>,
}

/// A parameter of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Param {
    /// Bytes into parameter space.
    pub offset: u32,
    /// Bytes it takes.
    pub size: u32,
}

/// A word of the context block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Bytes into the block, a multiple of the size.
    pub offset: u32,
    /// Its bytes: 4 or 8.
    pub size: u32,
    /// What to put there.
    pub fill: Fill,
}

/// What a word of the context block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Always 0; the twin relies on the host to keep it so, where a compiler must not know it.
    Zero,
    /// The device address of this launch's part of a map.
    Base(u32),
    /// How many units that part has room for; of an array with a capacity, how many records; of a stream, how many slots.
    Capacity(u32),
    /// The number of this launch, counted a process from 0.
    Launch,
    /// The device address of a stream's count of claimed chunks, a u64.
    Cursor(u32),
    /// The device address of a stream's counts of events that found no room, a u32 a unit.
    Drops(u32),
    /// How many units the launch has.
    Units(u32),
    /// The device address of the counts of an array with a capacity, [`SlotsShape::count_bytes`] a unit.
    Counts(u32),
}

/// How large a map's part in a launch's segment is, or its buffer if it is persistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapShape {
    /// Whose slots they are.
    pub unit: Unit,
    /// Bytes a unit. The segment holds `capacity × stride` bytes, capacity rounded up to a multiple of 16.
    pub stride: u32,
    /// Does it live as long as the twin in a context, rather than a launch? Then it has a buffer of its own, which is
    /// cleared once and collected when context, module or process end. Its unit is [`Unit::Sm`].
    pub persistent: bool,
    /// Is it a stream of events? Then its room does not follow from the launch, and `stride` is that of a slot, 16.
    pub stream: Option<StreamShape>,
    /// Is it an array with a capacity? Then a unit has several records, of `stride` bytes each.
    pub slots: Option<SlotsShape>,
}

impl MapShape {
    /// A record of `stride` bytes a unit, for one launch.
    pub const fn records(unit: Unit, stride: u32) -> MapShape {
        MapShape { unit, stride, persistent: false, stream: None, slots: None }
    }
}

/// How many records a unit of an array with a capacity gets; see [`crate::slots`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotsShape {
    /// Records a unit, at least 1.
    pub per_unit: u32,
    /// How many of these, the last ones, are of a warp's other lanes than lane 0; of a thread, 0.
    pub others: u32,
    /// Bytes of a unit's count: 8 of a warp, 4 of a thread.
    pub count_bytes: u8,
}

/// How much room a stream of a launch gets; see [`crate::stream`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamShape {
    /// Slots a chunk, a power of two.
    pub chunk: u32,
    /// Bytes of slots that are asked for. More where each unit's first chunk needs it, less where the pool is small.
    pub bytes: u64,
}

/// A variable of the original that the twin reaches through a table of addresses, `nt_pin`, in its `.const` space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pin {
    /// Its name in the original module.
    pub symbol: String,
    /// Which entry of the table, of 8 bytes each, its address goes to.
    pub index: u32,
}

/// A variable of `.const` space: the twin's copy gets what the original's holds; before each launch, if the program may
/// have written that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constant {
    /// Its name, in both modules.
    pub symbol: String,
    /// Bytes it takes.
    pub size: u64,
}

/// Whose slots a map has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// grid × block threads.
    Thread,
    /// grid × ⌈block threads / 32⌉.
    Warp,
    /// grid.
    Block,
    /// Multiprocessors of the device, whatever the launch.
    Sm,
}

impl Unit {
    /// How many units a launch has on a device with `sms` multiprocessors; `None` beyond 64 bits. Warps a block are
    /// rounded up, on device, host and in readers alike.
    pub fn count(self, grid: [u32; 3], block: [u32; 3], sms: u32) -> Option<u64> {
        if self == Unit::Sm {
            return Some(u64::from(sms));
        }
        let product = |v: [u32; 3]| v.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)));
        let (blocks, threads) = (product(grid)?, product(block)?);
        blocks.checked_mul(match self {
            Unit::Thread => threads,
            Unit::Warp => threads.div_ceil(32),
            Unit::Block | Unit::Sm => 1,
        })
    }
}

impl Body for Twin {
    const KIND: Kind = Kind::Twin;
    fn encode(&self, w: &mut Writer) {
        let count = |n: usize| u32::try_from(n).unwrap_or(0);
        w.u64(self.size);
        w.u32(self.context);
        w.u8(self.assumes);
        w.u8(u8::from(self.wants_params));
        w.u16(0);
        w.u32(count(self.params.len()));
        for param in &self.params {
            w.u32(param.offset);
            w.u32(param.size);
        }
        w.u32(count(self.slots.len()));
        for slot in &self.slots {
            let (kind, map) = match slot.fill {
                Fill::Zero => (0, 0),
                Fill::Base(map) => (1, map),
                Fill::Capacity(map) => (2, map),
                Fill::Launch => (3, 0),
                Fill::Cursor(map) => (4, map),
                Fill::Drops(map) => (5, map),
                Fill::Units(map) => (6, map),
                Fill::Counts(map) => (7, map),
            };
            w.u32(slot.offset);
            w.u32(slot.size);
            w.u32(kind);
            w.u32(map);
        }
        w.u32(count(self.maps.len()));
        for map in &self.maps {
            w.u32(match map.unit {
                Unit::Thread => 0,
                Unit::Warp => 1,
                Unit::Block => 2,
                Unit::Sm => 3,
            });
            w.u32(map.stride);
            w.u32(u32::from(map.persistent));
            // No stream has chunks of no slots.
            let stream = map.stream.unwrap_or_default();
            w.u32(stream.chunk);
            w.u64(stream.bytes);
            // No unit has no records.
            let slots = map.slots.unwrap_or_default();
            w.u32(slots.per_unit);
            w.u32(slots.others);
            w.u32(u32::from(slots.count_bytes));
        }
        w.u32(count(self.pins.len()));
        for pin in &self.pins {
            w.text(&pin.symbol);
            w.u32(pin.index);
        }
        w.u32(count(self.constants.len()));
        for constant in &self.constants {
            w.text(&constant.symbol);
            w.u64(constant.size);
        }
        w.blob(&self.manifest);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (size, context, assumes, wants_params, _) =
            (r.u64()?, r.u32()?, r.u8()?, flag(r.u8()?)?, r.u16()?);
        let params = r.list(|r| Ok(Param { offset: r.u32()?, size: r.u32()? }))?;
        let slots = r.list(|r| {
            let (offset, size, kind, map) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
            let fill = match kind {
                0 => Fill::Zero,
                1 => Fill::Base(map),
                2 => Fill::Capacity(map),
                3 => Fill::Launch,
                4 => Fill::Cursor(map),
                5 => Fill::Drops(map),
                6 => Fill::Units(map),
                7 => Fill::Counts(map),
                _ => return Err(Malformed),
            };
            if size == 4 || size == 8 { Ok(Slot { offset, size, fill }) } else { Err(Malformed) }
        })?;
        let maps = r.list(|r| {
            let unit = match r.u32()? {
                0 => Unit::Thread,
                1 => Unit::Warp,
                2 => Unit::Block,
                3 => Unit::Sm,
                _ => return Err(Malformed),
            };
            let (stride, persistent) = (r.u32()?, flag(r.u32()?)?);
            let stream = match (r.u32()?, r.u64()?) {
                (0, _) => None,
                (chunk, bytes) if chunk.is_power_of_two() => Some(StreamShape { chunk, bytes }),
                _ => return Err(Malformed),
            };
            let slots = match (r.u32()?, r.u32()?, r.u32()?) {
                (0, 0, 0) => None,
                (0, ..) => return Err(Malformed),
                (per_unit, others, 4) => Some(SlotsShape { per_unit, others, count_bytes: 4 }),
                (per_unit, others, 8) => Some(SlotsShape { per_unit, others, count_bytes: 8 }),
                _ => return Err(Malformed),
            };
            Ok(MapShape { unit, stride, persistent, stream, slots })
        })?;
        let pins = r.list(|r| Ok(Pin { symbol: r.text()?, index: r.u32()? }))?;
        let constants = r.list(|r| Ok(Constant { symbol: r.text()?, size: r.u64()? }))?;
        let manifest = r.blob()?.to_vec();
        Ok(Twin { size, params, context, slots, maps, pins, constants, assumes, wants_params, manifest })
    }
}

/// A yes or a no.
fn flag(number: impl Into<u32>) -> Result<bool, Malformed> {
    match number.into() {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed),
    }
}
