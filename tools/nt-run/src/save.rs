//! Files that outlive a run: what shows a fault of ours again, and under `--keep` every step of a kernel.

use crate::server::Shared;
use nt_engine::Prepared;
use std::path::Path;

/// More faults than this are one fault.
const MOST: u32 = 16;

/// Saves what shows a fault again in `bug-N/` of the run folder; its name, if that could be done.
pub(crate) fn bug(shared: &Shared, what: &str, files: &[(&str, &[u8])]) -> Option<String> {
    let number = {
        let mut entries = shared.ledger.open();
        entries.bugs += 1;
        entries.bugs
    };
    if number > MOST {
        return None;
    }
    let name = format!("bug-{number}");
    let what = format!("nt {}\n{what}\n", env!("CARGO_PKG_VERSION"));
    let all = [&[("what", what.as_bytes())], files].concat();
    write(&shared.folder.join(&name), &all).ok().map(|()| name)
}

/// The reason for a panic, which is saved as a bug.
pub(crate) fn panic(shared: &Shared, words: &str, files: &[(&str, &[u8])]) -> String {
    match bug(shared, words, files) {
        Some(place) => format!("our own bug: {words} (saved in {place})"),
        None => format!("our own bug: {words}"),
    }
}

/// Saves a kernel's text before and after, and what was made of it.
pub(crate) fn kept(shared: &Shared, kernel: &str, arch: u32, prepared: &Prepared) {
    // The longest names of C++ are longer than a file's may be.
    let clean: String = kernel
        .chars()
        .take(150)
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .collect();
    let hash: String = prepared.manifest.original.chars().take(8).collect();
    let assumes = prepared.manifest.kernels.iter().flat_map(|kernel| &kernel.assumes);
    let assumes: String = assumes.map(|name| format!(".{name}")).collect();
    let folder = shared.folder.join("kept").join(format!("{clean}.{hash}.sm_{arch}{assumes}"));
    let manifest = prepared.manifest.to_json();
    let mut files: Vec<(&str, &[u8])> = vec![
        ("original.ptx", prepared.original.as_bytes()),
        ("woven.ptx", prepared.woven.as_bytes()),
        ("manifest.ntm", manifest.as_bytes()),
    ];
    if prepared.is_cubin {
        files.push(("woven.cubin", &prepared.image));
    }
    if let Err(error) = write(&folder, &files) {
        shared.ledger.note(format!("{} could not be written: {error}", folder.display()));
    }
}

fn write(folder: &Path, files: &[(&str, &[u8])]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    files.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes))
}
