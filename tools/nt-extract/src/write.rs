//! Writing what was chosen: into a folder, or one image to standard output.

use crate::cli::Args;
use crate::{images, name};
use anyhow::Context;
use nt_cli::Output;
use nt_object::{Compression, Entry, Error, Kind};
use std::path::Path;

/// What came of writing.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// File names of what was written, with the entries' numbers.
    pub(crate) names: Vec<(u32, String)>,
    /// Images that could not be taken out.
    pub(crate) faults: Vec<(u32, Error)>,
    /// What is worth knowing of what was written.
    pub(crate) notes: Vec<String>,
}

/// Writes `entries`, of a file with `count`, into `folder`.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn folder(
    args: &Args,
    folder: &Path,
    stem: &str,
    entries: &[&Entry<'_>],
    count: usize,
) -> anyhow::Result<Written> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("failed to make the folder {}", folder.display()))?;
    let mut written = Written::default();
    let write = |entry: &Entry<'_>, bytes: &[u8]| {
        let name = name::image(stem, entry, count);
        Output::Path(folder.join(&name)).write(bytes).map(|()| name)
    };
    let (sealed, open): (Vec<_>, Vec<_>) = entries.iter().copied().partition(|entry| is_sealed(entry));
    let results =
        images::each(&open, args.limit, |entry, bytes| Ok((write(entry, bytes), entry.disagreement(bytes))));
    for (entry, result) in open.into_iter().zip(results) {
        match result {
            Ok((name, words)) => {
                written.names.push((entry.index, name?));
                written.notes.extend(words.map(|words| format!("entry {}: {words}", entry.index)));
            }
            Err(error) => written.faults.push((entry.index, error)),
        }
    }
    // What no tool reads is kept as it is stored: another build of this program may know it.
    for entry in sealed {
        written.names.push((entry.index, write(entry, entry.verbatim())?));
        written.notes.push(format!("entry {}: compressed LTO-IR, written as it is stored", entry.index));
    }
    Ok(written)
}

fn is_sealed(entry: &Entry<'_>) -> bool {
    entry.compression == Compression::Sealed
}

/// Writes one image to standard output.
///
/// # Errors
/// Writing failed, or it is binary and standard output is a terminal.
pub(crate) fn stdout(args: &Args, entry: &Entry<'_>) -> anyhow::Result<Written> {
    let mut written = Written::default();
    let contents =
        images::each(&[entry], args.limit, |entry, bytes| Ok((bytes.to_vec(), entry.disagreement(bytes))));
    for result in contents {
        match result {
            Ok((bytes, words)) => {
                if entry.kind != Kind::Ptx {
                    Output::Stdout.refuse_terminal("this image")?;
                }
                Output::Stdout.write(&bytes)?;
                written.names.push((entry.index, "-".to_owned()));
                written.notes.extend(words.map(|words| format!("entry {}: {words}", entry.index)));
            }
            Err(error) => written.faults.push((entry.index, error)),
        }
    }
    Ok(written)
}
