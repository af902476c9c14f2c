//! Cubins: ELF files of machine code for one architecture, alone or in a fatbin.
//!
//! ```text
//! .text.KERNEL          machine code; its symbol is a function with bit 0x10 of st_other
//! .nv_debug_ptx_txt     the PTX it was made of (`debug_ptx`); with -lineinfo or -G alone. Of relocatable code
//!                       `.nv_debug_ptx_txt.HASH`, so that a linker keeps them apart
//! .nv.compat            attributes; 0x09 says that the code is for exactly this architecture (`a`)
//! .note.nv.tkinfo       who made it, with its command line: `-arch sm_100f`
//! ```
//!
//! Where the architecture stands changed with CUDA 12.8, and EI_ABIVERSION says which way it is. Bit 0x8 for `a` was
//! written for a while only, and nothing but the tool's note tells `f` from plain.

use crate::arch::{Arch, Suffix};
use crate::error::{Error, Fault};
use crate::view::View;
use object::elf::{FileHeader32, FileHeader64, SHT_LOPROC, SHT_SYMTAB, STT_FUNC};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, SectionIndex};

/// What a cubin says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin<'a> {
    /// What it runs on.
    pub arch: Arch,
    /// Is the suffix known? Some compilers left no trace of it.
    pub suffix_known: bool,
    /// The names of its kernels, as the host registers them, in the order of its symbol table.
    pub kernels: Vec<String>,
    /// The PTX that it was made of. A cubin that was linked from several has several.
    pub debug_ptx: Vec<DebugPtx<'a>>,
    /// What ptxas was told that bears on the code: `-O 0 -fmad false`; empty if nothing. Known where the cubin has a note
    /// of it: ptxas 12.9 leaves one for sm_100 and later, 13.0 and later always.
    pub options: Option<String>,
    /// How many bytes it has by its own tables; a stored one may be padded.
    pub len: u64,
}

/// A section that holds PTX text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugPtx<'a> {
    /// The section's name: `.nv_debug_ptx_txt`, perhaps with a number behind.
    pub section: String,
    /// The text as stored: [`crate::debug_ptx::restore`] makes PTX of it.
    pub raw: &'a [u8],
    /// Where it begins in the file.
    pub at: u64,
}

/// What the sections of a cubin tell without its symbols.
pub(crate) struct Told<'a> {
    pub(crate) arch: Arch,
    suffix_known: bool,
    pub(crate) debug_ptx: Vec<DebugPtx<'a>>,
    pub(crate) options: Option<String>,
}

/// The names of sections that are looked for are shorter.
const LONGEST_NAME: usize = 64;
/// So are the command lines of tools.
const LONGEST_LINE: usize = 4096;
/// A section type without bytes in the file.
const SHARED: u32 = 0x7000_000a;
const EM_CUDA: u16 = 190;
const EM_AMDGPU: u16 = 224;

/// Is this the beginning of a cubin?
pub fn is_cubin(bytes: &[u8]) -> bool {
    machine(bytes) == Some(EM_CUDA)
}

/// Is this the beginning of AMD's code object?
pub(crate) fn is_amd(bytes: &[u8]) -> bool {
    machine(bytes) == Some(EM_AMDGPU)
}

fn machine(bytes: &[u8]) -> Option<u16> {
    bytes.starts_with(b"\x7fELF").then(|| View::new(bytes, 0).u16("e_machine", 18).ok()).flatten()
}

/// Reads a cubin that begins at `at` in its file.
///
/// # Errors
/// It is none, or its tables reach beyond its end.
pub fn read(bytes: &[u8], at: u64) -> Result<Cubin<'_>, Error> {
    if !is_cubin(bytes) {
        return Err(Error::new(at, "cubin", Fault::Unread("no ELF file for EM_CUDA")));
    }
    match bytes.get(4) {
        Some(1) => read_class::<FileHeader32<Endianness>>(bytes, at),
        _ => read_class::<FileHeader64<Endianness>>(bytes, at),
    }
}

/// [`read`] for what needs no symbols and no check of the file's length.
pub(crate) fn tell(bytes: &[u8], at: u64) -> Result<Told<'_>, Error> {
    fn of<H: FileHeader<Endian = Endianness>>(bytes: &[u8], at: u64) -> Result<Told<'_>, Error> {
        let Open { header, endian, sections, .. } = open::<H>(bytes, at)?;
        Ok(told_by(header, endian, bytes, &sections, at))
    }
    match bytes.get(4) {
        Some(1) => of::<FileHeader32<Endianness>>(bytes, at),
        _ => of::<FileHeader64<Endianness>>(bytes, at),
    }
}

/// The words of the ELF reader, with a place.
fn told<T>(at: u64, field: &'static str, result: object::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Error::new(at, field, Fault::Reader(error.to_string())))
}

pub(crate) struct Open<'a, H: FileHeader> {
    header: &'a H,
    pub(crate) endian: Endianness,
    pub(crate) sections: SectionTable<'a, H>,
    /// Where the section headers are, or the field that says so wrongly.
    table: u64,
}

pub(crate) fn open<H: FileHeader<Endian = Endianness>>(bytes: &[u8], at: u64) -> Result<Open<'_, H>, Error> {
    let header = told(at, "ELF header", H::parse(bytes))?;
    let endian = told(at, "ELF header", header.endian())?;
    let table = match header.e_shoff(endian).into() {
        offset if offset <= bytes.len() as u64 => at.saturating_add(offset),
        _ => at.saturating_add(if header.is_class_64() { 0x28 } else { 0x20 }),
    };
    let sections = told(table, "section headers", header.sections(endian, bytes))?;
    Ok(Open { header, endian, sections, table })
}

fn read_class<H: FileHeader<Endian = Endianness>>(bytes: &[u8], at: u64) -> Result<Cubin<'_>, Error> {
    let Open { header, endian, sections, table } = open::<H>(bytes, at)?;
    let len = length(header, endian, bytes, &sections, at)?;

    let symbols = told(table, "symbol table", sections.symbols(endian, bytes, SHT_SYMTAB))?;
    let mut kernels = Vec::new();
    // Each name has its own bytes. A hostile file's many symbols may share one long name.
    let mut room = bytes.len();
    for symbol in symbols.iter() {
        /// cuobjdump prints ENTRY for it; functions that kernels call lack it.
        const ENTRY: u8 = 0x10;
        if symbol.st_type() == STT_FUNC && symbol.st_other().0 & ENTRY != 0 && !symbol.is_undefined(endian) {
            let name = told(table, "symbol name", symbol.name(endian, symbols.strings()))?;
            room = room.checked_sub(name.len()).ok_or_else(|| {
                Error::new(table, "symbol name", Fault::Unread("the names are longer than the file"))
            })?;
            kernels.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    let Told { arch, suffix_known, debug_ptx, options } = told_by(header, endian, bytes, &sections, at);
    Ok(Cubin { arch, suffix_known, kernels, debug_ptx, options, len })
}

fn told_by<'a, H: FileHeader<Endian = Endianness>>(
    header: &H,
    endian: Endianness,
    bytes: &'a [u8],
    sections: &SectionTable<'a, H>,
    at: u64,
) -> Told<'a> {
    let name = names(header, endian, bytes, sections);
    let section = |wanted: &[u8]| {
        let section = sections.iter().find(|section| name(section) == wanted)?;
        section.data(endian, bytes).ok()
    };
    let note = section(b".note.nv.tkinfo");
    let (arch, suffix_known) =
        arch(header.e_ident().abi_version, header.e_flags(endian).0, section(b".nv.compat"), note);
    // Each text has its own bytes. Sections that overlap, as a hostile file's may, are taken up to the file's size.
    let mut room = bytes.len();
    let mut debug_ptx = Vec::new();
    for section in sections.iter() {
        let name = name(section);
        let named = name.strip_prefix(b".nv_debug_ptx_txt");
        if named.is_none_or(|rest| !rest.is_empty() && !rest.starts_with(b".")) {
            continue;
        }
        let Some(raw) = section.data(endian, bytes).ok().filter(|raw| !raw.is_empty()) else { continue };
        let Some(left) = room.checked_sub(raw.len()) else { break };
        room = left;
        let offset = section.file_range(endian).map_or(0, |(offset, _)| offset);
        let section = String::from_utf8_lossy(name).into_owned();
        debug_ptx.push(DebugPtx { section, raw, at: at.saturating_add(offset) });
    }
    Told { arch, suffix_known, debug_ptx, options: note.and_then(options) }
}

/// Names sections, by no more than the longest that are looked for.
fn names<'a, H: FileHeader<Endian = Endianness>>(
    header: &H,
    endian: Endianness,
    bytes: &'a [u8],
    sections: &SectionTable<'_, H>,
) -> impl Fn(&H::SectionHeader) -> &'a [u8] + use<'a, H> {
    let strings = header.section_strings_index(endian, bytes).and_then(|index| sections.section(index));
    let strings = strings.and_then(|section| section.data(endian, bytes)).unwrap_or_default();
    move |section| {
        let offset = usize::try_from(section.sh_name(endian)).unwrap_or(usize::MAX);
        let name = strings.get(offset..).unwrap_or_default();
        // Cut before the end is looked for, which in a hostile file may be far away.
        let name = name.get(..name.len().min(LONGEST_NAME)).unwrap_or_default();
        name.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

impl<'a, H: FileHeader<Endian = Endianness>> Open<'a, H> {
    /// The first section of this name, with its index.
    pub(crate) fn section(
        &self,
        bytes: &'a [u8],
        wanted: &[u8],
    ) -> Option<(SectionIndex, &'a H::SectionHeader)> {
        let name = names(self.header, self.endian, bytes, &self.sections);
        self.sections.enumerate().find(|(_, section)| name(section) == wanted)
    }
}

/// The end of the last thing that the tables speak of.
fn length<H: FileHeader<Endian = Endianness>>(
    header: &H,
    endian: Endianness,
    bytes: &[u8],
    sections: &SectionTable<'_, H>,
    at: u64,
) -> Result<u64, Error> {
    let table = |offset: u64, count: usize, size: u16| offset.saturating_add(count as u64 * u64::from(size));
    let segments = told(at, "program headers", header.program_headers(endian, bytes))?;
    let mut end = (size_of::<H>() as u64)
        .max(table(header.e_shoff(endian).into(), sections.len(), header.e_shentsize(endian)))
        .max(table(header.e_phoff(endian).into(), segments.len(), header.e_phentsize(endian)));
    let there = bytes.len() as u64;
    let ranges = sections.iter().filter_map(|section| {
        let (offset, size) = section.file_range(endian)?;
        // NVIDIA's own types have more kinds without bytes in the file than NOBITS: 0x7000000a, the shared memory of a
        // relocatable cubin, states a size and an offset all the same.
        let no_bytes = section.sh_type(endian).0 >= SHT_LOPROC && offset.saturating_add(size) > there;
        (section.sh_type(endian).0 != SHARED && !no_bytes).then_some((offset, size))
    });
    for (offset, size) in ranges.chain(segments.iter().map(|segment| segment.file_range(endian))) {
        // An empty section's offset is often the end of the file; an empty segment's is anything.
        if size > 0 {
            end = end.max(offset.saturating_add(size));
        }
    }
    if end > there { Err(Error::new(at, "cubin", Fault::Cut { needed: end, there })) } else { Ok(end) }
}

/// The architecture, and whether its suffix is known.
fn arch(abi: u8, flags: u32, compat: Option<&[u8]>, note: Option<&[u8]>) -> (Arch, bool) {
    let new = abi >= 8;
    let sm = if new { flags >> 8 & 0xff } else { flags & 0xff };
    let specific = if new { flags & 0x8 != 0 } else { flags & 0x800 != 0 };
    let accelerator = compat.and_then(|compat| attribute(compat, 0x09));
    if specific || accelerator == Some(1) {
        return (Arch { sm, suffix: Suffix::Specific }, true);
    }
    if let Some(suffix) = note.and_then(|note| noted_suffix(note, sm)) {
        return (Arch { sm, suffix }, true);
    }
    (Arch::new(sm), !new)
}

/// The value of an attribute of `.nv.compat`: records of format, attribute, and two bytes, which for format 4 are the
/// length of what follows.
fn attribute(mut records: &[u8], wanted: u8) -> Option<u8> {
    while let [format, name, low, high, rest @ ..] = records {
        let more = if *format == 4 { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
        if *name == wanted {
            return if *format == 4 { rest.first().copied() } else { Some(*low) };
        }
        records = rest.get(more.next_multiple_of(4)..)?;
    }
    None
}

/// The suffix in `-arch sm_100f`, as the note of the tool quotes its own command line.
fn noted_suffix(note: &[u8], sm: u32) -> Option<Suffix> {
    let option = format!("-arch sm_{sm}");
    let found = memchr::memmem::find(note, option.as_bytes())?;
    match note.get(found + option.len())? {
        b'a' => Some(Suffix::Specific),
        b'f' => Some(Suffix::Family),
        byte if byte.is_ascii_digit() => None,
        _ => Some(Suffix::None),
    }
}

/// The options in the note of the tool that bear on the code: those of debug data, messages and the architecture are
/// left out.
///
/// The note's strings are found through a table: u32 version, then the offsets of five strings from the sixth word's end,
/// the last of which is the command line.
fn options(note: &[u8]) -> Option<String> {
    const OFFSET: usize = 0x18 + 20;
    const STRINGS: usize = 0x18 + 24;
    let offset = u32::from_le_bytes(*note.get(OFFSET..)?.first_chunk()?);
    let line = note.get(STRINGS..)?.get(usize::try_from(offset).ok()?..)?;
    let line = line.get(..line.len().min(LONGEST_LINE))?;
    let line = std::str::from_utf8(line.split(|byte| *byte == 0).next()?).ok()?;
    let mut kept = Vec::new();
    let mut words = line.split_ascii_whitespace();
    while let Some(word) = words.next() {
        match word {
            "-v" | "-g" | "-lineinfo" | "-suppress-debug-info" => {}
            "-arch" | "-m" => drop(words.next()),
            _ => kept.push(word),
        }
    }
    Some(kept.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(abi: u8, flags: u32, compat: &[u8], note: &[u8], expected: (&str, bool)) {
        let found = arch(abi, flags, Some(compat), Some(note));
        assert_eq!((found.0.to_string().as_str(), found.1), expected, "{abi} {flags:#x}");
    }

    /// Flags as read from files: sm_89 and sm_90a of ptxas 11.8, sm_90a of 12.9, sm_80 and sm_100 of 13.5.
    #[test]
    fn both_layouts_of_flags() {
        check(7, 0x50_0559, b"", b"", ("sm_89", true));
        check(7, 0x5a_0d5a, b"", b"", ("sm_90a", true));
        check(8, 0x0600_5004, b"", b"", ("sm_80", false));
        check(8, 0x0600_6402, b"", b"", ("sm_100", false));
        check(8, 0x0600_640a, b"", b"", ("sm_100a", true));
    }

    #[test]
    fn suffixes_that_flags_do_not_tell() {
        check(8, 0x0600_6402, &[2, 2, 1, 0, 4, 0x0e, 3, 0, 1, 2, 3, 0, 2, 9, 1, 0], b"", ("sm_100a", true));
        check(8, 0x0600_6402, &[2, 9, 0, 0], b"ptxas -arch sm_100f -m 64\0", ("sm_100f", true));
        check(8, 0x0600_6402, &[2, 9], b"ptxas -arch sm_100 \0", ("sm_100", true));
        // Another number, and a length beyond the end.
        check(8, 0x0600_0a02, &[4, 1, 0xff, 0xff], b"ptxas -arch sm_100a ", ("sm_10", false));
    }

    /// The note of ptxas 13.5 for `-lineinfo -O0 -arch sm_90a --fmad=false --maxrregcount 64`, as `readelf -x` shows it.
    #[test]
    fn options_that_bear_on_the_code() {
        let mut note = vec![0x0c, 0, 0, 0, 0xb4, 0, 0, 0, 0xd0, 7, 0, 0];
        note.extend(b"NVIDIA Corp\0");
        note.extend([2_u32, 0, 1, 7, 0x36, 0x60].map(u32::to_le_bytes).as_flattened());
        let mut strings = vec![0; 0x60];
        strings.extend(b"-maxrregcount 64 -lineinfo  -O 0 -arch sm_90a -fmad false \0\0");
        note.extend(&strings);
        assert_eq!(options(&note).as_deref(), Some("-maxrregcount 64 -O 0 -fmad false"));
        note[0x18 + 20] = 0xff;
        assert_eq!(options(&note), None);
        for len in 0..note.len() {
            let _ = options(&note[..len]);
        }
    }

    #[test]
    fn what_is_no_cubin() {
        assert!(!is_cubin(b"\x7fELF"));
        assert!(read(b"", 0).is_err());
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18] = 190;
        assert!(read(&head, 0x40).is_err());
    }
}
