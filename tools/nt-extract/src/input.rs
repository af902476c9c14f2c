//! Files as bytes: mapped, since a library of 500 MB may hold one image of interest.

use anyhow::Context;
use memmap2::Mmap;
use nt_cli::{Input, Stdin};
use std::fs::File;
use std::path::Path;

/// A file's bytes.
pub(crate) enum Bytes {
    /// Those of a regular file.
    Mapped(Mmap),
    /// Those of anything else.
    Held(Vec<u8>),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Held(bytes) => bytes,
        }
    }
}

/// Opens a file.
///
/// # Errors
/// It cannot be read.
pub(crate) fn open(input: &Input, stdin: &mut Stdin) -> anyhow::Result<Bytes> {
    if let Input::Path(path) = input
        && let Some(map) = map(path)?
    {
        return Ok(Bytes::Mapped(map));
    }
    Ok(Bytes::Held(input.read(stdin)?.bytes))
}

/// `None` for what cannot be mapped: pipes, devices, the empty file.
#[allow(unsafe_code, reason = "a file can be mapped in no other way")]
fn map(path: &Path) -> anyhow::Result<Option<Mmap>> {
    let failed = || format!("failed to read {}", path.display());
    let file = File::open(path).with_context(failed)?;
    let about = file.metadata().with_context(failed)?;
    if !about.is_file() || about.len() == 0 {
        return Ok(None);
    }
    // SAFETY: The mapping is private and read-only. If another process changes the file meanwhile, the bytes change
    // under us: every reader checks offsets against the mapping's length and takes any bytes, and text is never
    // assumed to be UTF-8 because it was once. If another process cuts it, reading raises SIGBUS and ends this
    // program, as it does every program that maps its input; nothing half-written is left, for output files are
    // renamed into their place.
    let map = unsafe { Mmap::map(&file) };
    Ok(Some(map.with_context(failed)?))
}
