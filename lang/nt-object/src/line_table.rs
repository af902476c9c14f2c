//! Which source line each line of a cubin's PTX is of, told by the two line tables of its machine code.
//!
//! ```text
//! .debug_line            0x10 ─> kernels.py 20     0x20 ─> kernels.py 22      machine code ─> source
//! .nv_debug_line_sass    0x10 ─> PTX line 46       0x20 ─> PTX line 39        machine code ─> PTX
//!                        PTX line 46 is of kernels.py 20, PTX line 39 of kernels.py 22
//! ```
//!
//! Both are DWARF line tables (version 2 in all that were seen), whose sequences begin at functions that relocations name.
//! A row says of an address either that it begins there, or nothing where the table goes on with what was before. The
//! second is weaker: ptxas writes no row for code of line 0, which then seems to be of the line in front.

use crate::cubin::{self, Open};
use gimli::{AttributeValue, DebugLine, DebugLineOffset, LineProgramHeader, Reader, RelocateReader};
use object::Endianness;
use object::elf::{FileHeader32, FileHeader64, SHT_SYMTAB};
use object::read::elf::{FileHeader, Rel, Rela, SectionHeader, Sym};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The lines of all PTX texts of a cubin.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Source files, as `.debug_line` names them, with their folders.
    pub(crate) files: Vec<String>,
    /// The sections of texts; one name that is empty where the table does not say.
    texts: Vec<String>,
    /// By text and line, rising.
    places: Vec<(usize, Place)>,
}

/// A piece of machine code that comes from a line of PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The line of PTX, from 1 on.
    pub(crate) line: u32,
    /// File and line of the source, if a row covers it.
    pub(crate) source: Option<Source>,
    /// Does the row begin here?
    pub(crate) begins: bool,
}

/// A line of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    /// An index into [`Lines::files`].
    pub(crate) file: usize,
    /// From 1 on.
    pub(crate) line: u32,
}

/// Paths are shorter.
const LONGEST_PATH: usize = 4096;
/// Tables have fewer: those of the largest kernels that were seen had some 100,000.
const MOST_ROWS: usize = 1 << 22;
/// Functions are shorter; what is above is the function's number.
const ADDRESS_BITS: u32 = 40;

impl Lines {
    /// Reads both tables. What is damaged or missing gives no lines.
    pub(crate) fn read(cubin: &[u8]) -> Lines {
        match cubin.get(4) {
            Some(1) => lines_of::<FileHeader32<Endianness>>(cubin, 4),
            _ => lines_of::<FileHeader64<Endianness>>(cubin, 8),
        }
        .unwrap_or_default()
    }

    /// What is known of the text in `section`, by its lines. `is_alone`: it is the only one of its cubin, and so the one
    /// that a table without names means.
    pub(crate) fn of(&self, section: &str, is_alone: bool) -> impl Iterator<Item = Place> {
        let meant = |name: &String| name == section || is_alone && name.is_empty();
        let text = self.texts.iter().position(meant).unwrap_or(usize::MAX);
        let from = self.places.partition_point(|(of, _)| *of < text);
        let here = self.places.get(from..).unwrap_or_default();
        here.iter().take_while(move |(of, _)| *of == text).map(|(_, place)| *place)
    }
}

fn lines_of<H: FileHeader<Endian = Endianness>>(cubin: &[u8], address_size: u8) -> Option<Lines> {
    let open = cubin::open::<H>(cubin, 0).ok()?;
    let source = table(&open, cubin, b".debug_line", address_size)?;
    let ptx = table(&open, cubin, b".nv_debug_line_sass", address_size)?;

    // A row covers what follows it in its function, up to the next; the end of a sequence covers with nothing.
    let covering = |address: u64| {
        let row = source.rows.partition_point(|row| row.address <= address).checked_sub(1)?;
        let row = source.rows.get(row)?;
        (row.address >> ADDRESS_BITS == address >> ADDRESS_BITS).then_some(row)
    };
    let places = ptx.rows.iter().filter_map(|row| {
        let at = row.at.filter(|at| at.line > 0)?;
        let covering = covering(row.address);
        let place = Place {
            line: at.line,
            source: covering.and_then(|row| row.at).filter(|source| source.line > 0),
            begins: covering.is_some_and(|covering| covering.address == row.address),
        };
        Some((at.file, place))
    });
    let mut places: Vec<_> = places.collect();
    places.sort_unstable();
    Some(Lines { files: source.files, texts: ptx.files, places })
}

#[derive(Default)]
struct Table {
    files: Vec<String>,
    /// By address, rising; one an address.
    rows: Vec<Row>,
}

struct Row {
    /// A function's number, then the offset in it.
    address: u64,
    /// Nothing at the end of a sequence.
    at: Option<Source>,
}

/// Reads a line table and puts it in the order of addresses.
fn table<'a, H: FileHeader<Endian = Endianness>>(
    open: &Open<'a, H>,
    cubin: &'a [u8],
    name: &[u8],
    address_size: u8,
) -> Option<Table> {
    let (index, section) = open.section(cubin, name)?;
    let bytes = section.data(open.endian, cubin).ok()?;
    let starts = starts(open, cubin, index.0);
    let reader = gimli::EndianSlice::new(bytes, gimli::LittleEndian);
    let lines = DebugLine::from(RelocateReader::new(reader, Functions(&starts)));

    let mut table = Table::default();
    let mut numbers_of_paths = BTreeMap::new();
    // Files of one long folder would give far more than the section has.
    let mut room = bytes.len().saturating_mul(16);
    let mut offset = 0;
    // The next program begins where this one ends, so that all together take no more than the section has.
    while offset < bytes.len() {
        let Ok(program) = lines.program(DebugLineOffset(offset), address_size, None, None) else { break };
        let header = program.header();
        let length_of_length = usize::from(header.format().initial_length_size());
        offset = offset.checked_add(length_of_length)?.checked_add(header.unit_length())?;

        // The files of this program as numbers of the table's; file 0 is none.
        let mut numbers = BTreeMap::new();
        let mut rows = program.rows();
        while let (Ok(Some((header, row))), true) = (rows.next_row(), table.rows.len() < MOST_ROWS) {
            let file = match numbers.entry(row.file_index()) {
                Entry::Occupied(number) => *number.get(),
                Entry::Vacant(number) => {
                    let path = path(header, row.file_index());
                    let (path, left) =
                        room.checked_sub(path.len()).map_or((String::new(), room), |left| (path, left));
                    room = left;
                    let next = numbers_of_paths.len();
                    *number.insert(*numbers_of_paths.entry(path).or_insert(next))
                }
            };
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok()).unwrap_or(0);
            let at = (!row.end_sequence()).then_some(Source { file, line });
            // What no relocation places lies in function 0, which is no section.
            if row.address() >> ADDRESS_BITS != 0 {
                table.rows.push(Row { address: row.address(), at });
            }
        }
    }
    let mut files: Vec<(usize, String)> =
        numbers_of_paths.into_iter().map(|(path, number)| (number, path)).collect();
    files.sort_unstable();
    table.files = files.into_iter().map(|(_, path)| path).collect();

    // Where two begin at one place, the later one holds; but no end hides what begins where it stands.
    table.rows.sort_by_key(|row| (row.address, row.at.is_some()));
    table.rows.dedup_by(|later, kept| {
        let same = later.address == kept.address;
        if same {
            kept.at = later.at;
        }
        same
    });
    Some(table)
}

/// The path of a program's file, with its folder; empty if there is none of this number.
fn path<R: Reader<Offset = usize>>(header: &LineProgramHeader<R>, file: u64) -> String {
    let Some(file) = header.file(file) else { return String::new() };
    let text = |value: AttributeValue<R>| match value {
        AttributeValue::String(reader) => Some(reader.to_string_lossy().ok()?.into_owned()),
        _ => None,
    };
    let name = text(file.path_name()).unwrap_or_default();
    let folder = file.directory(header).and_then(text).unwrap_or_default();
    let path = match folder.as_str() {
        _ if name.starts_with('/') => name,
        "" => name,
        folder => format!("{folder}/{name}"),
    };
    if path.len() > LONGEST_PATH { String::new() } else { path }
}

/// Puts the addresses of sequences into their functions.
#[derive(Debug, Clone)]
struct Functions<'s>(&'s BTreeMap<usize, Start>);

/// Where a sequence begins.
#[derive(Debug)]
struct Start {
    address: u64,
    /// Is what stands in the table to be added?
    adds: bool,
}

impl gimli::Relocate for Functions<'_> {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(match self.0.get(&offset) {
            Some(start) => start.address.wrapping_add(if start.adds { value } else { 0 }),
            None => value & ((1 << ADDRESS_BITS) - 1),
        })
    }

    fn relocate_offset(&self, _: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}

/// Where in section `index` an address is to be put, and which.
fn starts<'a, H: FileHeader<Endian = Endianness>>(
    open: &Open<'a, H>,
    cubin: &'a [u8],
    index: usize,
) -> BTreeMap<usize, Start> {
    let Open { endian, sections, .. } = open;
    let endian = *endian;
    let mut starts = BTreeMap::new();
    let Ok(symbols) = sections.symbols(endian, cubin, SHT_SYMTAB) else { return starts };
    let mut add = |offset: u64, symbol: u32, addend: Option<i64>| {
        let Ok(symbol) = symbols.symbol(object::SymbolIndex(symbol as usize)) else { return };
        let function = u64::from(symbol.st_shndx(endian).0) << ADDRESS_BITS;
        let value: u64 = symbol.st_value(endian).into();
        if let Ok(offset) = usize::try_from(offset) {
            let address = function.wrapping_add(value).wrapping_add_signed(addend.unwrap_or(0));
            starts.insert(offset, Start { address, adds: addend.is_none() });
        }
    };
    // Sections that share their bytes, as a hostile file's may, are taken up to the file's size.
    let mut room = cubin.len();
    for section in sections.iter().filter(|section| section.sh_info(endian) as usize == index) {
        if let Ok(Some((entries, _))) = section.rel(endian, cubin) {
            let Some(left) = room.checked_sub(size_of_val(entries)) else { break };
            room = left;
            // The addend stands in the table itself.
            entries.iter().for_each(|entry| add(entry.r_offset(endian).into(), entry.r_sym(endian), None));
        }
        if let Ok(Some((entries, _))) = section.rela(endian, cubin) {
            let Some(left) = room.checked_sub(size_of_val(entries)) else { break };
            room = left;
            for entry in entries {
                let addend: i64 = entry.r_addend(endian).into();
                add(entry.r_offset(endian).into(), entry.r_sym(endian, false), Some(addend));
            }
        }
    }
    starts
}
