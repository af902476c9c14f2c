//! Cubins: ELF files of machine code for one architecture, alone or in a fatbin.
//!
//! ```text
//! .text.KERNEL          machine code; its symbol is a function with bit 0x10 of st_other
//! .nv_debug_ptx_txt     the PTX it was made of, a NUL for each newline; with -lineinfo or -G alone. Of relocatable
//!                       code `.nv_debug_ptx_txt.HASH`, so that a linker keeps them apart
//! .nv.compat            attributes; 0x09 says that the code is for exactly this architecture (`a`)
//! .note.nv.tkinfo       who made it, with its command line: `-arch sm_100f`
//! ```
//!
//! Where the architecture stands changed with CUDA 12.8, and EI_ABIVERSION says which way it is. Bit 0x8 for `a` was
//! written for a while only, and nothing but the tool's note tells `f` from plain.

use crate::arch::{Arch, Suffix};
use crate::error::{Error, Fault};
use crate::view::View;
use object::Endianness;
use object::elf::{FileHeader32, FileHeader64, SHT_LOPROC, SHT_SYMTAB, STT_FUNC};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};

/// What a cubin says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin<'a> {
    /// What it runs on.
    pub arch: Arch,
    /// Is the suffix known? Some compilers left no trace of it.
    pub suffix_known: bool,
    /// The names of its kernels, as the host registers them, in the order of its symbol table.
    pub kernels: Vec<String>,
    /// The PTX that it was made of, as stored: each line ends in a NUL, line comments are gone. A cubin that was linked
    /// from several has several.
    pub debug_ptx: Vec<&'a [u8]>,
    /// How many bytes it has by its own tables; a stored one may be padded.
    pub len: u64,
}

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

/// The words of the ELF reader, with a place.
fn told<T>(at: u64, field: &'static str, result: object::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Error::new(at, field, Fault::Reader(error.to_string())))
}

fn read_class<H: FileHeader<Endian = Endianness>>(bytes: &[u8], at: u64) -> Result<Cubin<'_>, Error> {
    let header = told(at, "ELF header", H::parse(bytes))?;
    let endian = told(at, "ELF header", header.endian())?;
    // A table that lies outside is told by the place of the field that says so.
    let table = match header.e_shoff(endian).into() {
        offset if offset <= bytes.len() as u64 => at.saturating_add(offset),
        _ => at.saturating_add(if header.is_class_64() { 0x28 } else { 0x20 }),
    };
    let sections = told(table, "section headers", header.sections(endian, bytes))?;
    let len = length(header, endian, bytes, &sections, at)?;

    let symbols = told(table, "symbol table", sections.symbols(endian, bytes, SHT_SYMTAB))?;
    let mut kernels = Vec::new();
    for symbol in symbols.iter() {
        /// cuobjdump prints ENTRY for it; functions that kernels call lack it.
        const ENTRY: u8 = 0x10;
        if symbol.st_type() == STT_FUNC && symbol.st_other().0 & ENTRY != 0 && !symbol.is_undefined(endian) {
            let name = told(table, "symbol name", symbol.name(endian, symbols.strings()))?;
            kernels.push(String::from_utf8_lossy(name).into_owned());
        }
    }

    let section = |name: &[u8]| {
        let (_, header) = sections.section_by_name(endian, name)?;
        header.data(endian, bytes).ok()
    };
    let (arch, suffix_known) = arch(
        header.e_ident().abi_version,
        header.e_flags(endian).0,
        section(b".nv.compat"),
        section(b".note.nv.tkinfo"),
    );
    let named = sections.iter().filter(|section| {
        let name = sections.section_name(endian, section).unwrap_or_default();
        name.strip_prefix(b".nv_debug_ptx_txt").is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    });
    let debug_ptx = named.filter_map(|section| section.data(endian, bytes).ok()).collect();
    Ok(Cubin { arch, suffix_known, kernels, debug_ptx, len })
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
