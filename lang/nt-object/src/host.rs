//! Programs, libraries, object files and archives: where in them device code lies.
//!
//! ```text
//! .nv_fatbin        containers, back to back (PE: .nv_fatb, __nv_rel; Mach-O: __nv_fatbin)
//! __nv_relfatbin    the same for relocatable code; also in programs that were linked from it
//! .nvFatBinSegment  pointers to them, for the runtime
//! ```
//!
//! Section names alone are not enough: cuFFT keeps its 18,227 containers in `.data`. So data sections of other names
//! are searched for containers too. Where section headers are stripped or damaged, the loaded segments are searched,
//! and where these are damaged as well, the whole file.

use crate::error::{Error, Fault};
use crate::fatbin::Found;
use crate::view::View;
use goblin::container::{Container as Class, Ctx};
use goblin::elf::program_header::{PT_LOAD, ProgramHeader};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection, SectionKind};
use std::sync::Arc;

/// Sections that hold nothing but containers. PE cuts names to eight characters.
const FATBINS: [&str; 5] = [".nv_fatbin", "__nv_relfatbin", "__nv_fatbin", ".nv_fatb", "__nv_rel"];
/// HIP's, which hold AMD's code objects.
const HIP: [&str; 2] = [".hip_fatbin", ".hip_fat"];

/// What a host file was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Host {
    /// Does it hold code for AMD's devices?
    pub hip: bool,
}

/// Reads an ELF, PE or Mach-O file. `member` is its name in an archive.
pub(crate) fn read<'a>(view: View<'a>, member: Option<&str>, found: &mut Found<'a>) -> Host {
    let name = |section: &str| -> Arc<str> {
        match member {
            Some(member) => format!("{member}:{section}").into(),
            None => section.into(),
        }
    };
    let file = match object::File::parse(view.bytes) {
        Ok(file) if file.sections().next().is_some() => file,
        // Stripped of section headers, which is no fault.
        Ok(_) => {
            segments(view, &name, found);
            return Host { hip: false };
        }
        Err(error) => {
            found.faults.push(Error::new(
                view.at,
                "section headers",
                Fault::Reader(lower(&error.to_string())),
            ));
            segments(view, &name, found);
            return Host { hip: false };
        }
    };

    let mut hip = false;
    for section in file.sections() {
        let Ok(section_name) = section.name() else { continue };
        hip |= HIP.contains(&section_name);
        let named = FATBINS.contains(&section_name);
        if !named && !may_hold(section.kind()) {
            continue;
        }
        let Some((at, _)) = section.file_range() else { continue };
        let label = name(section_name);
        let place = view.at.saturating_add(at);
        match section.data() {
            Ok(data) if named => found.walk(View::new(data, place), Some(&label)),
            Ok(data) => found.scan(View::new(data, place), Some(&label)),
            // Only of sections that matter: a header of another may be odd in many ways.
            Err(_) if named => {
                let rest = view.rest(at);
                let fault = Fault::Cut { needed: section.size(), there: rest.len() };
                found.faults.push(Error::new(place, "section", fault));
                found.walk(rest, Some(&label));
            }
            Err(_) => {}
        }
    }
    Host { hip }
}

/// May containers lie in a section of that kind? Machine code and debug information hold none.
fn may_hold(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::ReadOnlyDataWithRel)
}

/// Searches the loaded segments of an ELF file without sound section headers; the whole file if there are none.
fn segments<'a>(view: View<'a>, name: &dyn Fn(&str) -> Arc<str>, found: &mut Found<'a>) {
    let label = name("segment");
    let mut searched = false;
    // Segments may overlap in the file; a byte is searched once, in the file's order.
    let mut done = 0;
    for segment in loaded(view.bytes) {
        let start = segment.p_offset.max(done).min(view.len());
        let end = segment.p_offset.saturating_add(segment.p_filesz).min(view.len());
        if let Some(len) = end.checked_sub(start).filter(|len| *len > 0)
            && let Ok(part) = view.part("segment", start, len)
        {
            found.scan(part, Some(&label));
            searched = true;
            done = end;
        }
    }
    if !searched {
        found.scan(view, Some(&label));
    }
}

/// The loaded segments by their place in the file; none if the program headers are damaged.
fn loaded(bytes: &[u8]) -> Vec<ProgramHeader> {
    let read = || {
        let header = goblin::elf::Elf::parse_header(bytes).ok()?;
        let class = if header.e_ident.get(4) == Some(&1) { Class::Little } else { Class::Big };
        let context = Ctx::new(class, header.endianness().ok()?);
        let offset = usize::try_from(header.e_phoff).ok()?;
        ProgramHeader::parse(bytes, offset, header.e_phnum.into(), context).ok()
    };
    let mut all = read().unwrap_or_default();
    all.retain(|segment| segment.p_type == PT_LOAD);
    all.sort_by_key(|segment| segment.p_offset);
    all
}

/// Reads each member of an `ar` archive.
pub(crate) fn archive<'a>(view: View<'a>, found: &mut Found<'a>) -> Host {
    let mut hip = false;
    let fault =
        |error: object::Error| Error::new(view.at, "archive", Fault::Reader(lower(&error.to_string())));
    let archive = match ArchiveFile::parse(view.bytes) {
        Ok(archive) => archive,
        Err(error) => {
            found.faults.push(fault(error));
            return Host { hip };
        }
    };
    if archive.is_thin() {
        found.faults.push(Error::new(
            view.at,
            "archive",
            Fault::Unread("a thin archive, whose members are other files"),
        ));
        return Host { hip };
    }
    for member in archive.members() {
        // The reader cannot go on behind a damaged header.
        let member = match member {
            Ok(member) => member,
            Err(error) => {
                found.faults.push(fault(error));
                break;
            }
        };
        let (at, _) = member.file_range();
        match member.data(view.bytes) {
            Ok(data) => {
                let name = String::from_utf8_lossy(member.name());
                let inner = View::new(data, view.at.saturating_add(at));
                hip |= crate::read_into(inner, Some(&name), found).is_some_and(|host| host.hip);
            }
            Err(error) => found.faults.push(fault(error)),
        }
    }
    Host { hip }
}

/// Errors of the readers begin with a capital, ours do not.
fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
