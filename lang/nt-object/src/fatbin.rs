//! Fatbins: NVIDIA's container of PTX and cubins for several architectures.
//!
//! ```text
//! container  u32 magic 0xba55ed50, u16 version 1, u16 header size 16, u64 size of all entries
//! entry      a header of 64 bytes and more, then the payload, padded to 8; as many as fit the container's size
//!              0 u16 kind   2 u16 version 0x0101    4 u32 header size         8 u64 payload size, with padding
//!             16 u32 compressed size               20 u32 descriptor offset  24 u16 minor  26 u16 major
//!             28 u32 architecture                  32 u32 source offset      36 u32 source length
//!             40 u64 flags                         48 u64 key                56 u64 uncompressed size
//! descriptor u32 offset of a string, u32 its length: what ptxas is to be told
//! group      kind 0x100: instead of the descriptor u32 count, u32 size of the table, and a header for each image
//! ```
//!
//! Containers stand back to back, with zeros between. Whatever is damaged is told with its place, and the reading goes
//! on at the next place that can be trusted: the next entry, the next container, else the next magic.

use crate::arch::{Arch, Suffix};
use crate::cubin;
use crate::entry::{Compression, Entry, Kind, SourceLines, Stored};
use crate::error::{Error, Fault};
use crate::strings;
use crate::view::View;
use std::borrow::Cow;
use std::sync::Arc;

/// `50 ed 55 ba`
pub(crate) const MAGIC: [u8; 4] = 0xba55_ed50_u32.to_le_bytes();
/// Of the pointer that a program registers, which is no container.
pub(crate) const WRAPPER: [u8; 4] = 0x4662_43b1_u32.to_le_bytes();
/// Of the containers of before 2012.
pub(crate) const OLD: [u8; 4] = 0x1ee5_5a01_u32.to_le_bytes();

/// The kind of an entry that holds several images in one stream.
const GROUP: u16 = 0x100;
const ENTRY_VERSION: u16 = 0x0101;
const ENTRY_HEADER: u64 = 64;

/// What a file gave so far.
#[derive(Debug, Default)]
pub(crate) struct Found<'a> {
    pub entries: Vec<Entry<'a>>,
    pub faults: Vec<Error>,
    pub containers: u32,
}

impl<'a> Found<'a> {
    /// Adds an entry, and the PTX in it if it is a cubin that is stored as it is.
    pub(crate) fn push(&mut self, entry: Entry<'a>) {
        let image = match entry.kind {
            Kind::Elf if entry.compression == Compression::Raw => entry.image(entry.stored.bytes).ok(),
            _ => None,
        };
        let at = entry.stored.at.saturating_add(entry.part.map_or(0, |(offset, _)| offset));
        let section = entry.section.clone();
        self.number(entry);
        // What is wrong with a cubin is told when it is read.
        let Some(cubin) = image.filter(|image| cubin::is_cubin(image)) else { return };
        if let Ok(told) = cubin::tell(cubin, at) {
            let lines = Arc::default();
            for text in &told.debug_ptx {
                let lines = SourceLines {
                    section: text.section.clone(),
                    texts: told.debug_ptx.len(),
                    cubin,
                    lines: Arc::clone(&lines),
                };
                self.number(strings::debug_ptx(text, &told, section.as_deref(), lines));
            }
        }
    }

    /// Adds an entry, giving it its numbers.
    fn number(&mut self, entry: Entry<'a>) {
        // A file of 2^32 entries would have 256 GiB of headers.
        let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.entries.push(Entry { index, container: self.containers, ..entry });
    }

    /// Reads all of `view` as containers back to back, with zeros between.
    pub(crate) fn walk(&mut self, view: View<'a>, section: Option<&Arc<str>>) {
        let mut pos = 0;
        loop {
            let rest = view.rest(pos);
            let Some(zeros) = rest.bytes.iter().position(|byte| *byte != 0) else { return };
            // A magic has no zero in it, so the first byte that is none begins one.
            pos += zeros as u64;
            let rest = view.rest(pos);
            pos += match self.container(rest, section) {
                Ok(len) => len,
                Err(error) => {
                    self.faults.push(error);
                    match next_container(rest, 4) {
                        Some(next) => next,
                        None => return,
                    }
                }
            };
        }
    }

    /// Finds containers in bytes that also hold other things. Only what is sure is taken: the magic alone occurs in
    /// machine code too.
    pub(crate) fn scan(&mut self, view: View<'a>, section: Option<&Arc<str>>) {
        let mut pos = 0;
        while let Some(next) = next_container(view.rest(pos), 0) {
            pos += next;
            match self.container(view.rest(pos), section) {
                Ok(len) => pos += len,
                Err(error) => {
                    self.faults.push(error);
                    pos += 4;
                }
            }
        }
    }

    /// Reads the container that `view` begins with, and says how long it is. The error is one of its header; faults
    /// further in are kept.
    fn container(&mut self, view: View<'a>, section: Option<&Arc<str>>) -> Result<u64, Error> {
        let magic = view.u32("fatbin magic", 0)?;
        if magic.to_le_bytes() == OLD {
            let fault = Fault::Unread("a fatbin of the oldest kind (magic 0x1ee55a01), which is not read");
            return Err(Error::new(view.at, "fatbin magic", fault));
        }
        if magic.to_le_bytes() != MAGIC {
            return Err(Error::value(view.at, "fatbin magic", magic, "0xba55ed50"));
        }
        let version = view.u16("fatbin version", 4)?;
        if version != 1 {
            return Err(Error::value(view.at + 4, "fatbin version", version, "1"));
        }
        let header = u64::from(view.u16("fatbin header size", 6)?);
        if header < 16 {
            return Err(Error::value(view.at + 6, "fatbin header size", header, "16 or more"));
        }
        let size = view.u64("fatbin size", 8)?;
        self.containers += 1;

        // A container that is cut, or whose size is damaged, still has sound entries in what is there.
        let (body, mut wrong) = match view.part("fatbin size", header, size) {
            Ok(body) => (body, None),
            Err(error) => (view.rest(header), Some(Error { at: view.at + 8, ..error })),
        };
        let (reached, sound) = self.entries_of(body, section);
        let next = view.rest(header.saturating_add(reached));
        let next_begins = next.bytes.starts_with(&MAGIC) && looks_sound(next);
        let mut len = body.len();
        match sound {
            // The next container stands where this one should go on: its size is what is wrong.
            Err(_) if next_begins => {
                len = reached;
                wrong =
                    wrong.or(Some(Error::value(view.at + 8, "fatbin size", size, "the size of its entries")));
            }
            // Where it is cut inside of an entry, the entry says more than the container's size does.
            Err(error) => {
                wrong = Some(error);
                // A size that lies says nothing of where the next one is.
                if view.part("", header, size).is_err() {
                    let rest = body.rest(reached);
                    len = reached + next_container(rest, 0).unwrap_or(rest.len());
                }
            }
            Ok(()) => {}
        }
        self.faults.extend(wrong);
        Ok(header.saturating_add(len))
    }

    /// Reads entries until nothing is left, and says how far that was.
    fn entries_of(&mut self, body: View<'a>, section: Option<&Arc<str>>) -> (u64, Result<(), Error>) {
        let mut pos = 0;
        while pos < body.len() {
            let rest = body.rest(pos);
            // Some writers pad behind the last entry.
            if rest.bytes.iter().all(|byte| *byte == 0) {
                break;
            }
            let read = Header::read(rest).and_then(|header| {
                let payload = rest.part("payload size", header.header_size, header.payload_size);
                Ok((payload.map_err(|error| Error { at: rest.at + 8, ..error })?, header))
            });
            let (payload, header) = match read {
                Ok(read) => read,
                Err(error) => return (pos, Err(error)),
            };
            if let Err(error) = self.entry(&header, payload, section) {
                self.faults.push(error);
            }
            pos = pos.saturating_add(header.header_size).saturating_add(header.payload_size);
        }
        (body.len(), Ok(()))
    }

    /// Adds what one header speaks of. An error leaves the next entry's place known.
    fn entry(
        &mut self,
        header: &Header<'a>,
        payload: View<'a>,
        section: Option<&Arc<str>>,
    ) -> Result<(), Error> {
        let compression = Compression::of(header.flags);
        let stored = match compression {
            Compression::Raw => {
                Stored { bytes: payload.bytes, at: payload.at, compression, size: header.payload_size }
            }
            _ => {
                let len = header.compressed_size;
                let bytes = payload.part("compressed size", 0, len);
                let bytes = bytes.map_err(|error| Error { at: header.view.at + 16, ..error })?;
                Stored { bytes: bytes.bytes, at: payload.at, compression, size: header.uncompressed_size }
            }
        };
        if header.kind == GROUP {
            return self.group(header, stored, section);
        }
        let entry = header.entry(stored, section, &mut self.faults);
        self.push(Entry { size: stored.size, ..entry });
        Ok(())
    }

    /// Adds the images of a group, each of which has a header of its own in the group's.
    fn group(
        &mut self,
        group: &Header<'a>,
        stored: Stored<'a>,
        section: Option<&Arc<str>>,
    ) -> Result<(), Error> {
        let place = u64::from(group.descriptor);
        let outside = |error: Error| Error { at: group.view.at + 20, ..error };
        let count = group.view.u32("descriptor offset", place).map_err(outside)?;
        let bytes = u64::from(group.view.u32("descriptor offset", place + 4).map_err(outside)?);
        if bytes < 8 {
            return Err(Error::value(group.view.at + place + 4, "group's table size", bytes, "8 or more"));
        }
        let mut table = group.view.part("group's table size", place, bytes)?.rest(8);
        for _ in 0..count {
            let image = Header::read_image(table)?;
            // What is a header's size in an entry is the image's offset here.
            let (offset, size) = (image.header_size, image.payload_size);
            if offset.checked_add(size).is_none_or(|end| end > stored.size) {
                let fault = Fault::Cut { needed: size, there: stored.size.saturating_sub(offset) };
                return Err(Error::new(table.at + 8, "image size", fault));
            }
            let entry = image.entry(stored, section, &mut self.faults);
            self.push(Entry { compression: stored.compression, size, part: Some((offset, size)), ..entry });
            table = table.rest(image.record_size()?);
        }
        Ok(())
    }
}

/// The offset of the next container in `view`, from `from` on, that begins as one must.
fn next_container(view: View<'_>, from: u64) -> Option<u64> {
    let mut pos = from;
    loop {
        let rest = view.rest(pos);
        pos += memchr::memmem::find(rest.bytes, &MAGIC)? as u64;
        if looks_sound(view.rest(pos)) {
            return Some(pos);
        }
        pos += MAGIC.len() as u64;
    }
}

/// Does a container begin here, by more than its magic? Containers are aligned to 8 in all files seen.
fn looks_sound(view: View<'_>) -> bool {
    let sound = || {
        let fixed = view.u16("", 4).ok()? == 1 && view.u16("", 6).ok()? == 16;
        let size = view.u64("", 8).ok()?;
        let first = size == 0 || view.u16("", 18).ok()? == ENTRY_VERSION;
        Some(fixed && first && size.is_multiple_of(8))
    };
    sound().unwrap_or(false)
}

/// The fields of an entry's header.
struct Header<'a> {
    /// The header's bytes, extension included.
    view: View<'a>,
    kind: u16,
    header_size: u64,
    payload_size: u64,
    compressed_size: u64,
    descriptor: u32,
    version: (u16, u16),
    sm: u32,
    source: (u32, u32),
    flags: u64,
    uncompressed_size: u64,
}

impl<'a> Header<'a> {
    /// An entry's header, in bytes that go on with its payload.
    fn read(view: View<'a>) -> Result<Self, Error> {
        let mut header = Header::read_image(view)?;
        if header.header_size < ENTRY_HEADER {
            return Err(Error::value(view.at + 4, "entry header size", header.header_size, "64 or more"));
        }
        let whole = view.part("entry header size", 0, header.header_size);
        header.view = whole.map_err(|error| Error { at: view.at + 4, ..error })?;
        Ok(header)
    }

    /// The header of an image in a group, in bytes that go on with the next one.
    fn read_image(view: View<'a>) -> Result<Self, Error> {
        let fixed = view.part("entry header", 0, ENTRY_HEADER)?;
        let version = fixed.u16("entry version", 2)?;
        if version != ENTRY_VERSION {
            return Err(Error::value(view.at + 2, "entry version", version, "0x101"));
        }
        Ok(Header {
            view,
            kind: fixed.u16("kind", 0)?,
            header_size: u64::from(fixed.u32("entry header size", 4)?),
            payload_size: fixed.u64("payload size", 8)?,
            compressed_size: u64::from(fixed.u32("compressed size", 16)?),
            descriptor: fixed.u32("descriptor offset", 20)?,
            version: (fixed.u16("major version", 26)?, fixed.u16("minor version", 24)?),
            sm: fixed.u32("architecture", 28)?,
            source: (fixed.u32("source offset", 32)?, fixed.u32("source length", 36)?),
            flags: fixed.u64("flags", 40)?,
            uncompressed_size: fixed.u64("uncompressed size", 56)?,
        })
    }

    /// How long the header of an image in a group is, which no field says: the fixed part, the source name, then a
    /// descriptor with its string, each padded to 8.
    fn record_size(&self) -> Result<u64, Error> {
        let padded = |len: u32| (u64::from(len) + 1).next_multiple_of(8);
        let mut size = ENTRY_HEADER;
        if self.source.0 != 0 {
            size += padded(self.source.1);
        }
        if self.descriptor != 0 {
            let len = self.view.u32("descriptor offset", u64::from(self.descriptor) + 4);
            size += 8 + padded(len.map_err(|error| Error { at: self.view.at + 20, ..error })?);
        }
        Ok(size)
    }

    /// The entry that this speaks of, but for numbers and sizes. An image is sound without its source's name and the
    /// options that it was made with, so what is wrong with these is only told.
    fn entry(&self, stored: Stored<'a>, section: Option<&Arc<str>>, faults: &mut Vec<Error>) -> Entry<'a> {
        let suffix = match (self.flags & 0x10_0000 != 0, self.flags & 0x20_0000 != 0) {
            (true, _) => Suffix::Specific,
            (_, true) => Suffix::Family,
            _ => Suffix::None,
        };
        let kind = Kind::of(self.kind);
        let mut told = |field: u64, text: Result<Option<&'a str>, Error>| {
            text.unwrap_or_else(|error| {
                faults.push(Error { at: self.view.at + field, ..error });
                None
            })
        };
        let source = told(32, self.source());
        // Of cubins the descriptor's string is empty, with other bytes behind it.
        let options = if kind == Kind::Ptx { told(20, self.options()) } else { None };
        Entry {
            index: 0,
            container: 0,
            kind,
            arch: (self.sm != 0).then_some(Arch { sm: self.sm, suffix }),
            version: Some(self.version),
            flags: self.flags,
            compression: stored.compression,
            size: 0,
            source,
            options: options.map(Cow::Borrowed),
            section: section.cloned(),
            cubin: None,
            stored,
            part: None,
            source_lines: None,
        }
    }

    fn source(&self) -> Result<Option<&'a str>, Error> {
        match self.source {
            (0, _) => Ok(None),
            (offset, len) => Ok(text(self.view.part("source name", offset.into(), len.into())?)),
        }
    }

    fn options(&self) -> Result<Option<&'a str>, Error> {
        if self.descriptor == 0 {
            return Ok(None);
        }
        let place = self.view.u32("descriptor offset", self.descriptor.into())?;
        let len = self.view.u32("descriptor offset", u64::from(self.descriptor) + 4)?;
        // Old compilers left offset and length zero.
        if len == 0 {
            return Ok(None);
        }
        Ok(text(self.view.part("options", place.into(), len.into())?))
    }
}

/// A string of the extension area, if it is one.
fn text(view: View<'_>) -> Option<&str> {
    std::str::from_utf8(view.bytes).ok()
}
