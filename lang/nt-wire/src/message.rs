//! The talk between a hook and the parent that started its program, over the Unix stream socket `sock` of the run
//! folder (found through the environment variable `NT_RUN`).
//!
//! The hook asks, the parent answers, one answer a question, in order, over one connection a process. A message is a
//! [`Head`] and a body; images travel as a file descriptor (a memfd, SCM_RIGHTS) beside the message's first byte.
//!
//! ```text
//! hook                       parent
//! Hello                  ->
//!                        <-  Settings
//! Image + fd             ->                      a module was loaded
//!                        <-  Kernels             what is in it, what is selected, or why nothing can be
//! Need                   ->                      first launch of a selected kernel on an architecture
//!                        <-  Twin + fd | Refused
//! Bye                    ->                      counts; nothing comes back
//! ```

use crate::codec::{Malformed, Reader, Writer};

/// Before every body, 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What follows.
    pub kind: Kind,
    /// Bytes of the body.
    pub len: u32,
    /// Counted by the asker; an answer repeats its question's.
    pub serial: u32,
}

/// First four bytes of every message: "ntm" and a version.
pub const MAGIC: u32 = u32::from_le_bytes(*b"ntm1");

/// The longest body that is accepted; images do not travel in bodies.
pub const LIMIT: u32 = 64 << 20;

/// The kinds of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// [`Hello`]
    Hello = 1,
    /// [`Settings`]
    Settings = 2,
    /// [`Image`], with a descriptor of its bytes
    Image = 3,
    /// [`Kernels`]
    Kernels = 4,
    /// [`Need`]
    Need = 5,
    /// [`Twin`], with a descriptor of the woven module
    Twin = 6,
    /// [`Refused`]
    Refused = 7,
    /// [`Bye`]
    Bye = 8,
}

impl Head {
    /// Its size on the wire.
    pub const SIZE: usize = 16;

    /// Its bytes.
    pub fn encode(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&(self.kind as u16).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.serial.to_le_bytes());
        bytes
    }

    /// Reads it back.
    ///
    /// # Errors
    /// Another magic, an unknown kind, a body over [`LIMIT`].
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Result<Head, Malformed> {
        let mut reader = Reader::new(bytes);
        let (magic, kind, _) = (reader.u32()?, reader.u16()?, reader.u16()?);
        let kind = match kind {
            1 => Kind::Hello,
            2 => Kind::Settings,
            3 => Kind::Image,
            4 => Kind::Kernels,
            5 => Kind::Need,
            6 => Kind::Twin,
            7 => Kind::Refused,
            8 => Kind::Bye,
            _ => return Err(Malformed),
        };
        let head = Head { kind, len: reader.u32()?, serial: reader.u32()? };
        if magic == MAGIC && head.len <= LIMIT { Ok(head) } else { Err(Malformed) }
    }
}

/// A message that has a body.
pub trait Body: Sized {
    /// Its kind.
    const KIND: Kind;
    /// Appends its fields.
    fn encode(&self, w: &mut Writer);
    /// Takes them back.
    ///
    /// # Errors
    /// The body is cut, or a number in it names nothing.
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Head and body in one buffer.
    fn message(&self, serial: u32) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes.resize(Head::SIZE, 0);
        self.encode(&mut w);
        let len = u32::try_from(w.bytes.len() - Head::SIZE).unwrap_or(u32::MAX);
        w.bytes[..Head::SIZE].copy_from_slice(&Head { kind: Self::KIND, len, serial }.encode());
        w.bytes
    }
}

/// A process has loaded the hook and made its first driver call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hello {
    /// [`crate::PROTOCOL`] of the hook.
    pub protocol: u32,
    /// Its process.
    pub pid: u32,
    /// Ticks since boot at which the process started (`/proc/self/stat`, field 22): with the pid, a name for good.
    pub start: u64,
    /// `/proc/self/exe`, as far as it could be read.
    pub exe: Vec<u8>,
}

impl Body for Hello {
    const KIND: Kind = Kind::Hello;
    fn encode(&self, w: &mut Writer) {
        w.u32(self.protocol);
        w.u32(self.pid);
        w.u64(self.start);
        w.blob(&self.exe);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Hello { protocol: r.u32()?, pid: r.u32()?, start: r.u64()?, exe: r.blob()?.to_vec() })
    }
}

/// How to behave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// [`crate::PROTOCOL`] of the parent. If it differs the hook is passive.
    pub protocol: u32,
    /// No segment free: how long a launch may wait for one before its original runs instead, in ms. 0: never wait.
    pub wait_ms: u32,
    /// How long the exit handler may collect, in ms.
    pub exit_ms: u32,
    /// Device memory for segments a context, in bytes. 0: 1 GiB, or room for several launches if that is more, but no
    /// more than 1/16 of what is free.
    pub pool_bytes: u64,
    /// What a launch may save beside what follows from its shape: bytes of its streams.
    pub launch_bytes: u64,
}

impl Body for Settings {
    const KIND: Kind = Kind::Settings;
    fn encode(&self, w: &mut Writer) {
        w.u32(self.protocol);
        w.u32(self.wait_ms);
        w.u32(self.exit_ms);
        w.u32(0);
        w.u64(self.pool_bytes);
        w.u64(self.launch_bytes);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (protocol, wait_ms, exit_ms, _) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
        Ok(Settings { protocol, wait_ms, exit_ms, pool_bytes: r.u64()?, launch_bytes: r.u64()? })
    }
}

/// A module was loaded; its bytes are in the descriptor that comes along.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// How many bytes.
    pub size: u64,
}

impl Body for Image {
    const KIND: Kind = Kind::Image;
    fn encode(&self, w: &mut Writer) {
        w.u64(self.size);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Image { size: r.u64()? })
    }
}

/// What an image holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kernels {
    /// The parent's number for it, for [`Need`].
    pub image: u32,
    /// Why nothing in it can be probed (`no PTX`, a syntax error); empty if something can.
    pub reason: String,
    /// The kernels that are selected, by mangled name. All others run as they are.
    pub selected: Vec<String>,
}

impl Body for Kernels {
    const KIND: Kind = Kind::Kernels;
    fn encode(&self, w: &mut Writer) {
        w.u32(self.image);
        w.text(&self.reason);
        w.u32(u32::try_from(self.selected.len()).unwrap_or(0));
        for name in &self.selected {
            w.text(name);
        }
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Kernels { image: r.u32()?, reason: r.text()?, selected: r.list(Reader::text)? })
    }
}

/// A selected kernel is about to be launched for the first time on an architecture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Need {
    /// From [`Kernels`].
    pub image: u32,
    /// Compute capability, 90 for 9.0.
    pub arch: u32,
    /// Its mangled name.
    pub kernel: String,
    /// What holds of this launch's grid and block: [`FLAT_GRID`], [`FLAT_BLOCK`], [`WHOLE_ROWS`]. The twin may rely on it.
    pub holds: u8,
}

/// The grid has one row of blocks.
pub const FLAT_GRID: u8 = 1;
/// The block has one row of threads.
pub const FLAT_BLOCK: u8 = 2;
/// Rows of threads are whole warps.
pub const WHOLE_ROWS: u8 = 4;

/// Which of these hold of a launch.
pub fn holds(grid: [u32; 3], block: [u32; 3]) -> u8 {
    let flat = |[_, y, z]: [u32; 3]| y == 1 && z == 1;
    let bit = |holds, bit| if holds { bit } else { 0 };
    bit(flat(grid), FLAT_GRID) | bit(flat(block), FLAT_BLOCK) | bit(block[0].is_multiple_of(32), WHOLE_ROWS)
}

impl Body for Need {
    const KIND: Kind = Kind::Need;
    fn encode(&self, w: &mut Writer) {
        w.u32(self.image);
        w.u32(self.arch);
        w.text(&self.kernel);
        w.u8(self.holds);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Need { image: r.u32()?, arch: r.u32()?, kernel: r.text()?, holds: r.u8()? })
    }
}

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
    /// What it relies on of a launch, as in [`Need::holds`]: it must not be launched where one of these does not hold.
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
    /// How many units that part has room for; of a stream, how many slots.
    Capacity(u32),
    /// The number of this launch, counted a process from 0.
    Launch,
    /// The device address of a stream's count of claimed chunks, a u64.
    Cursor(u32),
    /// The device address of a stream's counts of events that found no room, a u32 a unit.
    Drops(u32),
    /// How many units the launch has.
    Units(u32),
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
            Ok(MapShape { unit, stride, persistent, stream })
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

/// The kernel runs as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refused {
    /// Why, for the summary.
    pub reason: String,
}

impl Body for Refused {
    const KIND: Kind = Kind::Refused;
    fn encode(&self, w: &mut Writer) {
        w.text(&self.reason);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Refused { reason: r.text()? })
    }
}

/// The process is about to end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bye {
    /// Launches seen.
    pub launches: u64,
    /// Of these, launched as twins.
    pub probed: u64,
    /// Of these, collected into the trace.
    pub collected: u64,
    /// Words for the summary: what went wrong in the hook, one line each.
    pub notes: Vec<String>,
}

impl Body for Bye {
    const KIND: Kind = Kind::Bye;
    fn encode(&self, w: &mut Writer) {
        w.u64(self.launches);
        w.u64(self.probed);
        w.u64(self.collected);
        w.u32(u32::try_from(self.notes.len()).unwrap_or(0));
        for note in &self.notes {
            w.text(note);
        }
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Bye { launches: r.u64()?, probed: r.u64()?, collected: r.u64()?, notes: r.list(Reader::text)? })
    }
}
