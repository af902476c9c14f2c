//! Bare images: a file that is PTX or a cubin, and such images inside of other files, or of a cubin.
//!
//! ```text
//! static const char source[] = ".version 7.5\n.target sm_80\n…";     a string of .rodata, found by `search`
//! ```

use crate::arch::Arch;
use crate::cubin::{self, DebugPtx, Told};
use crate::entry::{Compression, Entry, Kind, SourceLines, Stored};
use crate::fatbin::Found;
use crate::ptx;
use crate::view::View;
use std::borrow::Cow;
use std::sync::Arc;

/// Within how many bytes a module's `.version` and `.target` stand. A bound keeps the search linear.
const FIRST_LINES: usize = 1 << 10;
/// After so many things that look like cubins and are none no more are tried, which bounds the time that a file made
/// of nothing else takes.
const MOST_FAILURES: u32 = 1000;

/// Finds PTX strings and cubins by their content, wherever they lie; also those that stand raw in fatbins.
pub(crate) fn scan(bytes: &[u8]) -> Vec<Entry<'_>> {
    let mut found = Found::default();
    let mut pos = 0;
    while let Some(next) = memchr::memmem::find(bytes.get(pos..).unwrap_or_default(), b".version") {
        let at = pos + next;
        let rest = bytes.get(at..).unwrap_or_default();
        // Compilers hold the words of PTX as strings too; a module says what it is for.
        let near = rest.get(..rest.len().min(FIRST_LINES)).unwrap_or_default();
        let near = near.split(|byte| *byte == 0).next().unwrap_or_default();
        let head = ptx::head(near);
        if head.version.is_some() && head.target.is_some() {
            let end = memchr::memchr(0, rest).unwrap_or(rest.len());
            let text = rest.get(..end).unwrap_or_default();
            push_ptx(View::new(text, at as u64), Some(&"string".into()), &mut found);
            pos = at + end;
        } else {
            pos = at + b".version".len();
        }
    }
    let (mut pos, mut failures) = (0, 0);
    while let Some(next) = memchr::memmem::find(bytes.get(pos..).unwrap_or_default(), b"\x7fELF") {
        let at = pos + next;
        let rest = bytes.get(at..).unwrap_or_default();
        pos = at + 4;
        if !cubin::is_cubin(rest) || failures > MOST_FAILURES {
            continue;
        }
        let read = cubin::read(rest, at as u64).ok();
        match read.and_then(|cubin| rest.get(..usize::try_from(cubin.len).ok()?)) {
            Some(image) => {
                push_cubin(View::new(image, at as u64), Some(&"embedded".into()), &mut found);
                // A cubin has at least a header, so this goes on.
                pos = at + image.len();
            }
            None => failures += 1,
        }
    }
    let mut entries = found.entries;
    entries.sort_by_key(Entry::at);
    entries
}

/// Adds a cubin that is a file of its own.
pub(crate) fn push_cubin<'a>(view: View<'a>, section: Option<&Arc<str>>, found: &mut Found<'a>) {
    found.containers += 1;
    match cubin::read(view.bytes, view.at) {
        Ok(cubin) => {
            let abi = view.bytes.get(8).map(|minor| (1, u16::from(*minor)));
            found.push(bare(view, Kind::Elf, Some(cubin.arch), abi, section));
        }
        Err(error) => found.faults.push(error),
    }
}

/// Adds PTX that is a file of its own.
pub(crate) fn push_ptx<'a>(view: View<'a>, section: Option<&Arc<str>>, found: &mut Found<'a>) {
    found.containers += 1;
    let head = ptx::head(view.bytes);
    found.push(bare(view, Kind::Ptx, head.target, head.version, section));
}

/// The PTX in a cubin, which stands in `section`.
pub(crate) fn debug_ptx<'a>(
    text: &DebugPtx<'a>,
    cubin: &Told<'a>,
    section: Option<&str>,
    lines: SourceLines<'a>,
) -> Entry<'a> {
    let near = text.raw.get(..text.raw.len().min(FIRST_LINES)).unwrap_or_default();
    let near: Vec<u8> = near.iter().map(|byte| if *byte == 0 { b'\n' } else { *byte }).collect();
    let head = ptx::head(&near);
    let section = section.map_or_else(|| text.section.clone(), |outer| format!("{outer}:{}", text.section));
    let mut entry =
        bare(View::new(text.raw, text.at), Kind::Ptx, head.target, head.version, Some(&section.into()));
    entry.compression = Compression::Debug;
    entry.stored.compression = Compression::Debug;
    entry.options = cubin.options.clone().map(Cow::Owned);
    entry.cubin = Some(cubin.arch);
    entry.source_lines = Some(lines);
    entry
}

fn bare<'a>(
    view: View<'a>,
    kind: Kind,
    arch: Option<Arch>,
    version: Option<(u16, u16)>,
    section: Option<&Arc<str>>,
) -> Entry<'a> {
    let stored = Stored { bytes: view.bytes, at: view.at, compression: Compression::Raw, size: view.len() };
    Entry {
        index: 0,
        container: 0,
        kind,
        arch,
        version,
        flags: 0,
        compression: Compression::Raw,
        size: view.len(),
        source: None,
        options: None,
        section: section.cloned(),
        cubin: None,
        stored,
        part: None,
        source_lines: None,
    }
}
