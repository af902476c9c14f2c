//! Containers of device code: bytes in, structure out.
//!
//! ```
//! let ptx = b".version 8.5\n.target sm_80\n.entry k() { ret; }\n\0";
//! let container = nt_object::open(ptx)?;
//! let entry = &container.entries[0];
//! assert_eq!(entry.arch.unwrap().to_string(), "sm_80");
//!
//! let payload = entry.payload(nt_object::LIMIT)?;
//! let text = entry.contents(&payload)?; // without the NUL
//! assert_eq!(entry.kernels(text)?, ["k"]);
//! # Ok::<(), nt_object::Error>(())
//! ```
//!
//! [`open`] reads programs and libraries (ELF, PE, Mach-O), archives, fatbins, cubins and PTX. It looks at headers only and
//! borrows from the input; [`Entry::payload`] decompresses. A cubin that keeps the PTX that it was made of is followed by an
//! entry of that PTX, unless the cubin is compressed. Nothing here panics or allocates without bound, whatever
//! the input: sizes in headers are claims, checked against what is there. What is damaged is listed in
//! [`Container::faults`] with offset and field, and the sound entries are given all the same.
//!
//! `docs/extract.md` describes the formats.

mod arch;
mod choose;
pub mod cubin;
pub mod debug_ptx;
mod entry;
mod error;
mod fatbin;
mod host;
mod line_table;
mod loc;
pub mod ptx;
mod strings;
mod view;

pub use arch::{Arch, ArchError, Suffix};
pub use choose::{Best, NoPtx, best_ptx};
pub use entry::{Compression, Entry, Kind};
pub use error::{Error, Fault};

use fatbin::Found;
use host::Host;
use std::sync::Arc;
use view::View;

/// How much one entry may decompress to, unless the caller says otherwise. The largest seen in public libraries had
/// 21 MB.
pub const LIMIT: usize = 1 << 28;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// PTX text.
    Ptx,
    /// A cubin.
    Cubin,
    /// Fatbins, back to back.
    Fatbin,
    /// A program, library or object file of the host.
    Host,
    /// An `ar` archive of such files.
    Archive,
    /// None of these; [`search`] alone reads it.
    Other,
}

/// What was read.
#[derive(Debug, Clone)]
pub struct Container<'a> {
    /// What the file is.
    pub form: Form,
    /// Its images, in the file's order.
    pub entries: Vec<Entry<'a>>,
    /// What could not be read, in the file's order.
    pub faults: Vec<Error>,
    /// How many fatbins were found, empty ones included.
    pub containers: u32,
    /// Does it hold code for AMD's devices, which is not read?
    pub hip: bool,
}

/// Reads the structure of a file, or of any bytes that a program loads as device code.
///
/// # Errors
/// It is no container of device code; what it is instead is said where that is known.
pub fn open(bytes: &[u8]) -> Result<Container<'_>, Error> {
    Ok(read(bytes, form(bytes)?))
}

/// [`open`], and a search of the whole file for what it does not look for: PTX kept as a string, and cubins that stand
/// in no fatbin. Any file can be searched.
///
/// A string of PTX ends at its NUL; its section is given as `string`, that of a cubin as `embedded`.
pub fn search(bytes: &[u8]) -> Container<'_> {
    let mut container = read(bytes, form(bytes).unwrap_or(Form::Other));
    // Entries stand in the file's order, but sections and members of an archive need not.
    let mut known: Vec<(u64, u64)> = container
        .entries
        .iter()
        .filter(|entry| entry.cubin.is_none())
        .map(|entry| (entry.at(), entry.at().saturating_add(entry.stored_size())))
        .collect();
    known.sort_unstable();
    let inside = |at: u64| {
        let before = known.partition_point(|(start, _)| *start <= at);
        before.checked_sub(1).and_then(|last| known.get(last)).is_some_and(|(_, end)| at < *end)
    };
    for entry in strings::scan(bytes) {
        if !inside(entry.at()) {
            // PTX in a cubin is of the cubin's container.
            container.containers += u32::from(entry.cubin.is_none());
            let index = u32::try_from(container.entries.len()).unwrap_or(u32::MAX).saturating_add(1);
            container.entries.push(Entry { index, container: container.containers, ..entry });
        }
    }
    container
}

fn read(bytes: &[u8], form: Form) -> Container<'_> {
    let view = View::new(bytes, 0);
    let mut found = Found::default();
    let host = match form {
        Form::Archive => Some(host::archive(view, &mut found)),
        _ => read_into(view, None, &mut found),
    };
    let Found { entries, faults, containers } = found;
    Container { form, entries, faults, containers, hip: host.is_some_and(|host| host.hip) }
}

/// Tells by the first bytes what a file is.
fn form(bytes: &[u8]) -> Result<Form, Error> {
    let refuse = |why| Err(Error::new(0, "container", Fault::Unread(why)));
    if bytes.starts_with(&fatbin::MAGIC) {
        return Ok(Form::Fatbin);
    }
    if bytes.starts_with(&fatbin::WRAPPER) {
        return refuse("a fatbin wrapper, which is a pointer; the fatbin that it points to is needed");
    }
    if bytes.starts_with(&fatbin::OLD) {
        return refuse("a fatbin of the oldest kind (magic 0x1ee55a01), which is not read");
    }
    if cubin::is_cubin(bytes) {
        return Ok(Form::Cubin);
    }
    if cubin::is_amd(bytes) || bytes.starts_with(b"CCOB") || bytes.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") {
        return refuse("code for AMD's devices, which is not read yet");
    }
    if bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(&[0xde, 0xc0, 0x17, 0x0b]) {
        return refuse("LLVM bitcode, which holds no device code of its own");
    }
    if bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n") {
        return Ok(Form::Archive);
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return refuse("a zip archive, as wheels are; unpack it first");
    }
    if is_host(bytes) {
        return Ok(Form::Host);
    }
    if ptx::is_ptx(bytes) {
        return Ok(Form::Ptx);
    }
    // A fatbin with its first bytes missing, or padded in front.
    if bytes.is_empty() { refuse("an empty file") } else { refuse("no container of device code, and no PTX") }
}

fn is_host(bytes: &[u8]) -> bool {
    use object::FileKind::{Coff, Elf32, Elf64, MachO32, MachO64, Pe32, Pe64};
    // Its header may be cut or damaged further on; that is told when it is read.
    bytes.starts_with(b"\x7fELF")
        || matches!(
            object::FileKind::parse(bytes),
            Ok(Elf32 | Elf64 | MachO32 | MachO64 | Pe32 | Pe64 | Coff)
        )
}

/// Reads what is no archive. Nothing is told of a member of an archive that has no device code.
fn read_into<'a>(view: View<'a>, member: Option<&str>, found: &mut Found<'a>) -> Option<Host> {
    let section: Option<Arc<str>> = member.map(Into::into);
    match form(view.bytes).ok()? {
        Form::Host => return Some(host::read(view, member, found)),
        Form::Fatbin => found.walk(view, section.as_ref()),
        Form::Cubin => strings::push_cubin(view, section.as_ref(), found),
        Form::Ptx => strings::push_ptx(view, section.as_ref(), found),
        // Archives do not nest, and `form` gives no other.
        Form::Archive | Form::Other => {}
    }
    None
}
