//! `-l`: a line an image, columns by tabs, `-` where there is no value.

use crate::cli::Args;
use crate::images;
use nt_cli::choose::choose;
use nt_object::{Entry, Error, Kind};
use std::fmt::Write;

/// The first line.
pub(crate) const HEADER: &str = "file\tindex\tkind\tarch\tptx\tbytes\tcompression\tsection\tkernels\n";

/// What `-l` says of one file.
pub(crate) struct Listing {
    /// The lines.
    pub(crate) text: String,
    /// Images that cannot be taken out.
    pub(crate) faults: Vec<(u32, Error)>,
    /// Headers and images that disagree.
    pub(crate) notes: Vec<String>,
}

/// What is known of an image when its contents are.
struct Inside {
    bytes: usize,
    kernels: Vec<String>,
    disagreement: Option<String>,
}

/// Lists `entries` of the file that messages call `file`.
pub(crate) fn run(args: &Args, file: &str, entries: &[&Entry<'_>]) -> Listing {
    let inside = images::each(entries, args.limit, |entry, contents| {
        let kernels = entry.kernels(contents)?;
        Ok(Inside { bytes: contents.len(), kernels, disagreement: entry.disagreement(contents) })
    });
    let mut listing = Listing { text: String::new(), faults: Vec::new(), notes: Vec::new() };
    let file = cell(file);
    for (entry, inside) in entries.iter().zip(inside) {
        let (bytes, kernels) = match inside {
            Ok(inside) => {
                listing
                    .notes
                    .extend(inside.disagreement.map(|words| format!("entry {}: {words}", entry.index)));
                (inside.bytes as u64, names(args, &inside.kernels))
            }
            Err(error) => {
                listing.faults.push((entry.index, error));
                (entry.size, "-".to_owned())
            }
        };
        let arch = entry.arch.map_or_else(|| "-".to_owned(), |arch| arch.to_string());
        let version = match (entry.kind, entry.version) {
            (Kind::Ptx, Some((major, minor))) => format!("{major}.{minor}"),
            _ => "-".to_owned(),
        };
        let section = entry.section.as_deref().map_or_else(|| "-".to_owned(), cell);
        let Entry { index, kind, compression, .. } = entry;
        // Writing to a String cannot fail.
        let _ = writeln!(
            listing.text,
            "{file}\t{index}\t{kind}\t{arch}\t{version}\t{bytes}\t{compression}\t{section}\t{kernels}"
        );
    }
    listing
}

/// The kernels by commas; with `-k` those that matched.
fn names(args: &Args, kernels: &[String]) -> String {
    let shown = choose(&args.kernels, kernels.iter().map(String::as_str));
    if shown.is_empty() {
        return "-".to_owned();
    }
    // A comma is in no name that a compiler makes.
    let shown: Vec<String> = shown.into_iter().map(|name| cell(name).replace(',', "\\x2c")).collect();
    shown.join(",")
}

/// Text that stays in its cell, whatever a hostile file calls its kernels.
fn cell(text: &str) -> String {
    if !text.contains(|c: char| c.is_control()) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}
