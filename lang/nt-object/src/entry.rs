//! Entries: one image of device code, and how to get its bytes.
//!
//! Sizes in a header are claims. What is allocated is bounded by the caller's limit and by what the stored bytes can
//! give at all, so that sixteen bytes that claim a gigabyte are refused before anything is allocated.

use crate::arch::Arch;
use crate::cubin;
use crate::debug_ptx;
use crate::error::{Error, Fault};
use crate::line_table::Lines;
use crate::loc;
use crate::ptx;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// PTX text.
    Ptx,
    /// A cubin.
    Elf,
    /// NVVM's intermediate form, for linking at run time.
    LtoIr,
    /// CUDA Tile bytecode.
    TileIr,
    /// Any other number in the kind field.
    Other(u16),
}

impl Kind {
    /// By the number in an entry's header.
    pub(crate) fn of(number: u16) -> Self {
        match number {
            1 => Kind::Ptx,
            2 => Kind::Elf,
            8 => Kind::LtoIr,
            0x80 => Kind::TileIr,
            other => Kind::Other(other),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Ptx => f.write_str("ptx"),
            Kind::Elf => f.write_str("elf"),
            Kind::LtoIr => f.write_str("lto-ir"),
            Kind::TileIr => f.write_str("tile-ir"),
            Kind::Other(number) => write!(f, "kind {number}"),
        }
    }
}

/// How an image is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// As it is.
    Raw,
    /// An LZ4 block.
    Lz4,
    /// A zstd frame.
    Zstd,
    /// A scheme of old compilers (flag 0x1000), not read.
    Old,
    /// Compressed LTO-IR (flag 0x10000): no stream that a decoder takes.
    Sealed,
    /// PTX as a cubin keeps it: see [`crate::debug_ptx`].
    Debug,
}

impl Compression {
    /// By an entry's flags.
    pub(crate) fn of(flags: u64) -> Self {
        const RULES: [(u64, Compression); 4] = [
            (0x1_0000, Compression::Sealed),
            (0x8000, Compression::Zstd),
            (0x2000, Compression::Lz4),
            (0x1000, Compression::Old),
        ];
        let rule = RULES.iter().find(|(bit, _)| flags & bit != 0);
        rule.map_or(Compression::Raw, |(_, compression)| *compression)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Raw => "raw",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
            Compression::Old => "old",
            Compression::Sealed => "sealed",
            Compression::Debug => "debug",
        })
    }
}

/// Stored bytes, which one entry or all entries of a group share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    /// The bytes, without padding if they are compressed.
    pub bytes: &'a [u8],
    /// Where in the file.
    pub at: u64,
    /// How.
    pub compression: Compression,
    /// How many bytes come out, by the header.
    pub size: u64,
}

/// One image in a container.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// Its number in the file, from 1 on.
    pub index: u32,
    /// Which container of the file holds it, from 1 on. A runtime loads a container as one module and takes from it
    /// the entry that fits the device.
    pub container: u32,
    /// What it is.
    pub kind: Kind,
    /// What it is for, by the header; of a bare image, by itself. PTX may fail to say.
    pub arch: Option<Arch>,
    /// PTX: the version of the language. ELF: of its ABI.
    pub version: Option<(u16, u16)>,
    /// The flags of its header; 0 of a bare image.
    pub flags: u64,
    /// How it is stored.
    pub compression: Compression,
    /// How many bytes it has, by the header; a raw image may be padded.
    pub size: u64,
    /// The source file or what `fatbinary -ident` was told.
    pub source: Option<&'a str>,
    /// PTX: what ptxas is to be told when it is compiled: `-O1  -maxrregcount=32 `. Of the PTX in a cubin, what it was
    /// told, if that is known ([`cubin::Cubin::options`]).
    pub options: Option<Cow<'a, str>>,
    /// The section, of an archive's member `member.o:section`, of the PTX in a cubin `section:.nv_debug_ptx_txt`; nothing
    /// where the file itself is the container.
    pub section: Option<Arc<str>>,
    /// Of the PTX in a cubin: what the cubin is for.
    pub cubin: Option<Arch>,
    pub(crate) stored: Stored<'a>,
    /// Its part of what the stored bytes give, if it is one of a group.
    pub(crate) part: Option<(u64, u64)>,
    /// Of the PTX in a cubin: where the cubin tells its source lines.
    pub(crate) source_lines: Option<SourceLines<'a>>,
}

/// Where the source lines of a text stand.
#[derive(Debug, Clone)]
pub(crate) struct SourceLines<'a> {
    /// The section of the text.
    pub(crate) section: String,
    /// How many texts the cubin has.
    pub(crate) texts: usize,
    pub(crate) cubin: &'a [u8],
    /// The tables, read once for all texts of the cubin.
    pub(crate) lines: Arc<OnceLock<Lines>>,
}

impl SourceLines<'_> {
    fn put_back(&self, text: String) -> String {
        let lines = self.lines.get_or_init(|| Lines::read(self.cubin));
        let places: Vec<_> = lines.of(&self.section, self.texts == 1).collect();
        loc::put_back(text, lines, &places)
    }
}

impl<'a> Entry<'a> {
    /// Where its stored bytes begin in the file. All entries of a group have the same place.
    pub fn at(&self) -> u64 {
        self.stored.at
    }

    /// How many bytes it takes in the file.
    pub fn stored_size(&self) -> u64 {
        self.stored.bytes.len() as u64
    }

    /// May a device run it? PTX in a cubin counts where the cubin runs, for elsewhere no driver takes it.
    pub fn runs_on(&self, device: u32) -> bool {
        self.cubin.is_none_or(|cubin| cubin.machine_code_runs_on(device))
            && self.arch.is_none_or(|arch| match self.kind {
                Kind::Elf => arch.machine_code_runs_on(device),
                _ => arch.runs_on(device),
            })
    }

    /// Its bytes, decompressed, at most `limit` of them; padding included.
    ///
    /// # Errors
    /// The limit, a damaged stream, a scheme that is not read.
    pub fn payload(&self, limit: usize) -> Result<Cow<'a, [u8]>, Error> {
        let stream = self.stream(limit)?;
        if self.part.is_none() {
            return Ok(stream);
        }
        Ok(match stream {
            Cow::Borrowed(stream) => Cow::Borrowed(self.image(stream)?),
            Cow::Owned(stream) => Cow::Owned(self.image(&stream)?.to_vec()),
        })
    }

    /// What its stored bytes give: its payload, or those of its whole group. With [`Entry::image`] a group is
    /// decompressed once.
    ///
    /// # Errors
    /// As [`Entry::payload`].
    pub fn stream(&self, limit: usize) -> Result<Cow<'a, [u8]>, Error> {
        let Stored { bytes, at, compression, size } = self.stored;
        let bounded = |most_by_byte: u64| bound(at, size, bytes, most_by_byte, limit);
        match compression {
            Compression::Raw => Ok(Cow::Borrowed(bytes)),
            Compression::Debug if bytes.len() > limit => {
                Err(Error::new(at, "PTX text", Fault::Limit { needed: size, limit: limit as u64 }))
            }
            Compression::Debug => {
                let text = debug_ptx::restore(bytes, at)?;
                let text = match &self.source_lines {
                    Some(lines) => lines.put_back(text),
                    None => text,
                };
                Ok(Cow::Owned(text.into_bytes()))
            }
            // A match of any length costs a byte for each 255 bytes of it; the first token gives 19 more.
            Compression::Lz4 => unpack_lz4(bytes, at, bounded(255)?).map(Cow::Owned),
            // A block of up to 128 KiB that repeats one byte takes four.
            Compression::Zstd => unpack_zstd(bytes, at, bounded(1 << 15)?).map(Cow::Owned),
            Compression::Old => {
                Err(Error::new(at, "payload", Fault::Unread("compressed in an old way (flag 0x1000)")))
            }
            Compression::Sealed => Err(Error::new(
                at,
                "payload",
                Fault::Unread("compressed LTO-IR (flag 0x10000), which no tool reads"),
            )),
        }
    }

    /// Its part of the stream.
    ///
    /// # Errors
    /// It lies outside of it.
    pub fn image<'s>(&self, stream: &'s [u8]) -> Result<&'s [u8], Error> {
        let Some((offset, size)) = self.part else { return Ok(stream) };
        crate::view::View::new(stream, 0).part("image in its group", offset, size).map(|view| view.bytes)
    }

    /// The bytes as a file would hold them: PTX without NULs, a cubin without padding, all else as it is.
    ///
    /// # Errors
    /// PTX that goes on after a NUL; a cubin that is cut.
    pub fn contents<'s>(&self, image: &'s [u8]) -> Result<&'s [u8], Error> {
        match self.kind {
            Kind::Ptx => ptx::text(image, self.stored.at),
            Kind::Elf if cubin::is_cubin(image) => {
                let len = cubin::read(image, self.stored.at)?.len;
                Ok(usize::try_from(len).ok().and_then(|len| image.get(..len)).unwrap_or(image))
            }
            _ => Ok(image),
        }
    }

    /// Its PTX as text, for whoever reads on: decompressed, without NULs.
    ///
    /// # Errors
    /// As [`Entry::payload`] and [`Entry::contents`]; it is no PTX, or no UTF-8.
    pub fn text(&self, limit: usize) -> Result<String, Error> {
        let refuse = |why: String| Error::new(self.stored.at, "PTX text", Fault::Reader(why));
        if self.kind != Kind::Ptx {
            return Err(refuse(format!("the entry is no PTX but {}", self.kind)));
        }
        let payload = self.payload(limit)?;
        let contents = self.contents(&payload)?;
        let text = std::str::from_utf8(contents);
        text.map(str::to_owned).map_err(|error| refuse(format!("byte {} is not UTF-8", error.valid_up_to())))
    }

    /// The names of the kernels in `contents`.
    ///
    /// # Errors
    /// A cubin whose tables are damaged.
    pub fn kernels(&self, contents: &[u8]) -> Result<Vec<String>, Error> {
        match self.kind {
            Kind::Ptx => Ok(ptx::kernels(contents)),
            Kind::Elf if cubin::is_cubin(contents) => Ok(cubin::read(contents, self.stored.at)?.kernels),
            _ => Ok(Vec::new()),
        }
    }

    /// The stored bytes as they are, for forms that no reader takes.
    pub fn verbatim(&self) -> &'a [u8] {
        self.stored.bytes
    }

    /// What header and image say differently: `the header says sm_90, the PTX says sm_80`.
    pub fn disagreement(&self, contents: &[u8]) -> Option<String> {
        let said = self.arch?;
        match self.kind {
            Kind::Ptx => {
                let head = ptx::head(contents);
                if let Some(target) = head.target.filter(|target| *target != said) {
                    return Some(format!("the header says {said}, the PTX says {target}"));
                }
                let (header, text) = (self.version?, head.version?);
                let differ = header != text;
                differ.then(|| {
                    format!(
                        "the header says PTX {}.{}, the PTX says {}.{}",
                        header.0, header.1, text.0, text.1
                    )
                })
            }
            Kind::Elf if cubin::is_cubin(contents) => {
                let cubin = cubin::read(contents, self.stored.at).ok()?;
                let differ =
                    cubin.arch.sm != said.sm || cubin.suffix_known && cubin.arch.suffix != said.suffix;
                differ.then(|| format!("the header says {said}, the cubin says {}", cubin.arch))
            }
            _ => None,
        }
    }
}

/// The declared size, if it is within the limit and within what the bytes can give.
fn bound(at: u64, size: u64, bytes: &[u8], most_by_byte: u64, limit: usize) -> Result<usize, Error> {
    let most = (bytes.len() as u64).saturating_add(8).saturating_mul(most_by_byte);
    if size > most {
        let why =
            format!("{size} bytes are declared, but {} compressed ones cannot give that many", bytes.len());
        return Err(Error::new(at, "uncompressed size", Fault::Reader(why)));
    }
    match usize::try_from(size) {
        Ok(size) if size <= limit => Ok(size),
        _ => Err(Error::new(at, "uncompressed size", Fault::Limit { needed: size, limit: limit as u64 })),
    }
}

fn stream_error(at: u64, scheme: &'static str, why: impl fmt::Display) -> Error {
    Error::new(at, "payload", Fault::Stream { scheme, why: why.to_string() })
}

/// An empty buffer of `size` bytes' capacity.
fn buffer(at: u64, size: usize) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    match out.try_reserve_exact(size) {
        Ok(()) => Ok(out),
        Err(error) => Err(Error::new(at, "uncompressed size", Fault::Reader(error.to_string()))),
    }
}

fn unpack_lz4(bytes: &[u8], at: u64, size: usize) -> Result<Vec<u8>, Error> {
    let mut out = buffer(at, size)?;
    out.resize(size, 0);
    match lz4_flex::block::decompress_into(bytes, &mut out) {
        Ok(len) if len == size => Ok(out),
        Ok(len) => Err(stream_error(at, "LZ4", format_args!("{len} bytes instead of the declared {size}"))),
        Err(error) => Err(stream_error(at, "LZ4", error)),
    }
}

fn unpack_zstd(bytes: &[u8], at: u64, size: usize) -> Result<Vec<u8>, Error> {
    // The frame states its size too; a liar is refused before anything is allocated.
    if let Ok(Some(framed)) = zstd::zstd_safe::get_frame_content_size(bytes)
        && framed != size as u64
    {
        return Err(stream_error(
            at,
            "zstd",
            format_args!("a frame of {framed} bytes instead of the declared {size}"),
        ));
    }
    let mut out = buffer(at, size)?;
    let done =
        zstd::bulk::Decompressor::new().and_then(|mut zstd| zstd.decompress_to_buffer(bytes, &mut out));
    match done {
        Ok(len) if len == size => Ok(out),
        Ok(len) => Err(stream_error(at, "zstd", format_args!("{len} bytes instead of the declared {size}"))),
        Err(error) => Err(stream_error(at, "zstd", error)),
    }
}
