//! The trace file `.ntt`: a file a process (`PID.START.ntt` in the run folder), and the parent's `run.ntt`.
//!
//! A file is frames, one after the other, from its first byte on. A frame is a [`Head`] of 64 bytes and a body padded
//! to a multiple of 64, so that map data is 64-byte aligned and a reader maps it without copying. Head and body have
//! checksums of their own; a damaged stretch is skipped to the next [`MARK`]. A file without an [`Kind::End`] frame
//! was cut, by a kill or a crash, and is sound up to its last whole frame.
//!
//! | body | fields, little-endian |
//! |---|---|
//! | start | protocol u32, pid u32, start u64, wall clock ns u64, monotonic ns u64, text host, text boot id, text exe, list of text command, text tool version |
//! | kernel | id u32, arch u32, text name, blob manifest (JSON) |
//! | launch | [`Launch`] |
//! | data | [`Data`], then `bytes` bytes of map data from body offset 64 on; of a stream, a [part](crate::stream) of it |
//! | count | [`Count`] |
//! | note | text |
//! | end | launches u64, probed u64, collected u64 |

use crate::codec::{Malformed, Reader, Writer};

/// Begins every frame. No text holds it, and map data only by a chance of 2⁻¹²⁸ or on purpose, where the head's
/// checksum tells.
pub const MARK: [u8; 16] = *b"\x93nt frame\r\n\x1a\n\x00\xff\xfe";

/// Heads and bodies are padded to multiples of this.
pub const ALIGN: usize = 64;

/// The longest body that a reader accepts.
pub const LIMIT: u64 = 1 << 40;

/// Before every body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What follows.
    pub kind: Kind,
    /// Bytes of the body without its padding.
    pub len: u64,
    /// Counted a file from 0, so that a gap shows.
    pub sequence: u64,
    /// CRC-32C of the body without its padding.
    pub body_crc: u32,
}

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Start`]: the first frame.
    Start,
    /// [`Kernel`]: before the first launch that names it.
    Kernel,
    /// [`Launch`]: before its data.
    Launch,
    /// [`Data`]: one map of one launch, or what a persistent map held in the end.
    Data,
    /// [`Count`]: how often a kernel was launched and not probed, and why.
    Count,
    /// A line of text for the coverage report.
    Note,
    /// [`End`]: the last frame.
    End,
    /// From a newer version: skipped, and said.
    Unknown(u16),
}

impl Kind {
    fn number(self) -> u16 {
        match self {
            Kind::Start => 1,
            Kind::Kernel => 2,
            Kind::Launch => 3,
            Kind::Data => 4,
            Kind::Count => 5,
            Kind::Note => 6,
            Kind::End => 7,
            Kind::Unknown(n) => n,
        }
    }

    fn of(number: u16) -> Kind {
        match number {
            1 => Kind::Start,
            2 => Kind::Kernel,
            3 => Kind::Launch,
            4 => Kind::Data,
            5 => Kind::Count,
            6 => Kind::Note,
            7 => Kind::End,
            n => Kind::Unknown(n),
        }
    }
}

impl Head {
    /// Its size in the file.
    pub const SIZE: usize = 64;

    /// Its bytes: mark 16, kind u16, zero u16, body_crc u32, len u64, sequence u64, zeros, crc u32 of all before it.
    pub fn encode(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..16].copy_from_slice(&MARK);
        bytes[16..18].copy_from_slice(&self.kind.number().to_le_bytes());
        bytes[20..24].copy_from_slice(&self.body_crc.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.len.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads it back.
    ///
    /// # Errors
    /// No mark, a wrong checksum, a body over [`LIMIT`], or fewer than 64 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Head, Malformed> {
        let bytes: &[u8; Self::SIZE] = bytes.first_chunk().ok_or(Malformed)?;
        let crc = crc32c::crc32c(&bytes[..60]);
        if bytes[..16] != MARK || bytes[60..] != crc.to_le_bytes() {
            return Err(Malformed);
        }
        let mut r = Reader::new(&bytes[16..]);
        let (kind, _, body_crc) = (Kind::of(r.u16()?), r.u16()?, r.u32()?);
        let head = Head { kind, len: r.u64()?, sequence: r.u64()?, body_crc };
        if head.len <= LIMIT { Ok(head) } else { Err(Malformed) }
    }

    /// Bytes from this head to the next.
    pub fn stride(self) -> u64 {
        Self::SIZE as u64 + self.len.next_multiple_of(ALIGN as u64)
    }
}

/// A body that is small enough to be built in memory.
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

    /// Head, body and padding in one buffer.
    fn frame(&self, sequence: u64) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes.resize(Head::SIZE, 0);
        self.encode(&mut w);
        let len = (w.bytes.len() - Head::SIZE) as u64;
        let body_crc = crc32c::crc32c(&w.bytes[Head::SIZE..]);
        w.bytes[..Head::SIZE].copy_from_slice(&Head { kind: Self::KIND, len, sequence, body_crc }.encode());
        w.bytes.resize(w.bytes.len().next_multiple_of(ALIGN), 0);
        w.bytes
    }
}

/// Who wrote the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// [`crate::PROTOCOL`].
    pub protocol: u32,
    /// The process.
    pub pid: u32,
    /// Ticks since boot at which it started.
    pub start: u64,
    /// Nanoseconds since 1970, when this frame was made.
    pub wall_ns: u64,
    /// CLOCK_MONOTONIC at the same moment, which the times of launches are in.
    pub monotonic_ns: u64,
    /// Its machine.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot: String,
    /// Its program.
    pub exe: String,
    /// Its command line.
    pub command: Vec<String>,
    /// The version of the tool that wrote the file.
    pub version: String,
}

impl Body for Start {
    const KIND: Kind = Kind::Start;
    fn encode(&self, w: &mut Writer) {
        w.u32(self.protocol);
        w.u32(self.pid);
        w.u64(self.start);
        w.u64(self.wall_ns);
        w.u64(self.monotonic_ns);
        w.text(&self.host);
        w.text(&self.boot);
        w.text(&self.exe);
        w.u32(u32::try_from(self.command.len()).unwrap_or(0));
        for word in &self.command {
            w.text(word);
        }
        w.text(&self.version);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Start {
            protocol: r.u32()?,
            pid: r.u32()?,
            start: r.u64()?,
            wall_ns: r.u64()?,
            monotonic_ns: r.u64()?,
            host: r.text()?,
            boot: r.text()?,
            exe: r.text()?,
            command: r.list(Reader::text)?,
            version: r.text()?,
        })
    }
}

/// A kernel whose launches follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kernel {
    /// Its number in this file.
    pub id: u32,
    /// Compute capability, 90 for 9.0.
    pub arch: u32,
    /// Its mangled name.
    pub name: String,
    /// The manifest's entry for it, JSON; empty for a kernel that is not probed.
    pub manifest: Vec<u8>,
}

impl Body for Kernel {
    const KIND: Kind = Kind::Kernel;
    fn encode(&self, w: &mut Writer) {
        w.u32(self.id);
        w.u32(self.arch);
        w.text(&self.name);
        w.blob(&self.manifest);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Kernel { id: r.u32()?, arch: r.u32()?, name: r.text()?, manifest: r.blob()?.to_vec() })
    }
}

/// A launch that was probed and collected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// Its number, counted over all probed launches of the process.
    pub number: u64,
    /// [`Kernel::id`].
    pub kernel: u32,
    /// The device's ordinal in the process.
    pub device: u32,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads a block.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    /// Multiprocessors of the device.
    pub sms: u32,
    /// The stream's handle, as a name.
    pub stream: u64,
    /// The context's handle, as a name.
    pub context: u64,
    /// CLOCK_MONOTONIC before the launch call.
    pub launched_ns: u64,
    /// CLOCK_MONOTONIC when its data was seen to be complete: an upper bound of its end.
    pub complete_ns: u64,
    /// The highest SM clock of the device in kHz, 0 if unknown.
    pub clock_khz: u32,
    /// The values of the kernel's parameters, as they lay in parameter space, where what was saved is to be read with
    /// them ([`crate::message::Twin::wants_params`]); else empty.
    pub params: Vec<u8>,
}

impl Body for Launch {
    const KIND: Kind = Kind::Launch;
    fn encode(&self, w: &mut Writer) {
        w.u64(self.number);
        w.u32(self.kernel);
        w.u32(self.device);
        w.three(self.grid);
        w.three(self.block);
        w.u32(self.shared);
        w.u32(self.sms);
        w.u64(self.stream);
        w.u64(self.context);
        w.u64(self.launched_ns);
        w.u64(self.complete_ns);
        w.u32(self.clock_khz);
        w.blob(&self.params);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Launch {
            number: r.u64()?,
            kernel: r.u32()?,
            device: r.u32()?,
            grid: r.three()?,
            block: r.three()?,
            shared: r.u32()?,
            sms: r.u32()?,
            stream: r.u64()?,
            context: r.u64()?,
            launched_ns: r.u64()?,
            complete_ns: r.u64()?,
            clock_khz: r.u32()?,
            params: r.blob()?.to_vec(),
        })
    }
}

/// The fixed part of a data frame; it takes 64 bytes, and the data follows.
///
/// Data of a launch follows the launch's frame. Data of a persistent map ([`Data::PERSISTENT`]) comes once for every
/// buffer, when its context or module ends or the process does, and is what all launches between the buffer's clearing
/// and its end have left: frames of one map add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Data {
    /// [`Launch::number`], or [`Data::PERSISTENT`].
    pub launch: u64,
    /// Which map, in the manifest's order: its maps, then its tables.
    pub map: u32,
    /// [`Kernel::id`]; for a launch's data, the launch's.
    pub kernel: u32,
    /// Units that the launch has; of a persistent map, multiprocessors of the device.
    pub units: u64,
    /// Units that the data has room for; columns of an `array<thread>` are that long. Of a stream, slots.
    pub capacity: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// The context's handle, as a name.
    pub context: u64,
    /// The device's ordinal in the process.
    pub device: u32,
}

impl Data {
    /// Stands for a launch in data of no single one.
    pub const PERSISTENT: u64 = u64::MAX;

    /// Bytes before the data.
    pub const SIZE: usize = 64;

    /// Head and fixed part, for a body whose data is `data`. The caller writes these, then `data`, then
    /// [`padding`] zeros, in one call.
    pub fn begin(&self, sequence: u64, data: &[u8]) -> Vec<u8> {
        self.begin_pieces(sequence, &[data])
    }

    /// The same for data that lies in pieces, one behind the other.
    pub fn begin_pieces(&self, sequence: u64, pieces: &[&[u8]]) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes.resize(Head::SIZE, 0);
        w.u64(self.launch);
        w.u32(self.map);
        w.u32(self.kernel);
        w.u64(self.units);
        w.u64(self.capacity);
        w.u64(self.bytes);
        w.u64(self.context);
        w.u32(self.device);
        w.bytes.resize(Head::SIZE + Self::SIZE, 0);
        let fixed = crc32c::crc32c(&w.bytes[Head::SIZE..]);
        let body_crc = pieces.iter().fold(fixed, |crc, piece| crc32c::crc32c_append(crc, piece));
        let len = (Self::SIZE + pieces.iter().map(|piece| piece.len()).sum::<usize>()) as u64;
        w.bytes[..Head::SIZE].copy_from_slice(&Head { kind: Kind::Data, len, sequence, body_crc }.encode());
        w.bytes
    }

    /// The fixed part and the data of a body.
    ///
    /// # Errors
    /// The body is cut.
    pub fn decode(body: &[u8]) -> Result<(Data, &[u8]), Malformed> {
        let (fixed, data) = body.split_at_checked(Self::SIZE).ok_or(Malformed)?;
        let mut r = Reader::new(fixed);
        let fixed = Data {
            launch: r.u64()?,
            map: r.u32()?,
            kernel: r.u32()?,
            units: r.u64()?,
            capacity: r.u64()?,
            bytes: r.u64()?,
            context: r.u64()?,
            device: r.u32()?,
        };
        if fixed.bytes == data.len() as u64 { Ok((fixed, data)) } else { Err(Malformed) }
    }
}

/// CRC-32C (Castagnoli), as heads hold it of themselves and of their bodies.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// How many zeros follow a body of `len` bytes.
pub fn padding(len: usize) -> usize {
    len.next_multiple_of(ALIGN) - len
}

/// How often a kernel was launched, a line of the coverage table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Count {
    /// Its mangled name; empty for launches whose handle was never seen given out.
    pub kernel: String,
    /// Launches.
    pub launches: u64,
    /// Of these, probed.
    pub probed: u64,
    /// Of the probed, collected: all that they have saved is in the file, what they have counted in persistent maps
    /// included. Launches that have counted in such maps alone have no frames of their own.
    pub collected: u64,
    /// Why the others were not; empty if all were.
    pub reason: String,
}

impl Body for Count {
    const KIND: Kind = Kind::Count;
    fn encode(&self, w: &mut Writer) {
        w.text(&self.kernel);
        w.u64(self.launches);
        w.u64(self.probed);
        w.u64(self.collected);
        w.text(&self.reason);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Count {
            kernel: r.text()?,
            launches: r.u64()?,
            probed: r.u64()?,
            collected: r.u64()?,
            reason: r.text()?,
        })
    }
}

/// A line for the coverage report that belongs to no kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Note {
    /// The line.
    pub text: String,
}

impl Body for Note {
    const KIND: Kind = Kind::Note;
    fn encode(&self, w: &mut Writer) {
        w.text(&self.text);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Note { text: r.text()? })
    }
}

/// The process ended as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct End {
    /// Launches seen.
    pub launches: u64,
    /// Of these, launched as twins.
    pub probed: u64,
    /// Of these, collected.
    pub collected: u64,
}

impl Body for End {
    const KIND: Kind = Kind::End;
    fn encode(&self, w: &mut Writer) {
        w.u64(self.launches);
        w.u64(self.probed);
        w.u64(self.collected);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(End { launches: r.u64()?, probed: r.u64()?, collected: r.u64()? })
    }
}
