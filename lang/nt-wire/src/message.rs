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

mod twin;

pub use twin::{Constant, Fill, MapShape, Param, Pin, Slot, SlotsShape, StreamShape, Twin, Unit};

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
    /// What the program told the driver's assembler that bears on code, as ptxas has it: `-maxrregcount=32`.
    pub options: String,
}

impl Body for Image {
    const KIND: Kind = Kind::Image;
    fn encode(&self, w: &mut Writer) {
        w.u64(self.size);
        w.text(&self.options);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Image { size: r.u64()?, options: r.text()? })
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
