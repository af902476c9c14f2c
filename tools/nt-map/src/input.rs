//! Traces as bytes: folders become files, files are mapped, processes get their labels.
//!
//! A trace is larger than memory more often than not, so files are mapped and only the frames in hand are touched.

use anyhow::Context;
use memmap2::Mmap;
use nt_trace::ntt::{Content, Frames, Item};
use nt_wire::frame::{MARK, Start};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A trace file.
pub(crate) struct Source {
    /// Its path, for messages.
    pub(crate) name: String,
    /// What the `process` column shows: the pid, with more behind it where files of the input share one.
    pub(crate) process: String,
    /// Who wrote it; `None` if that frame is lost.
    pub(crate) start: Option<Start>,
    /// Mapped; `None` for an empty file, which cannot be.
    map: Option<Mmap>,
}

impl Source {
    /// What is in it.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Its process, 0 if unknown.
    pub(crate) fn pid(&self) -> u32 {
        self.start.as_ref().map_or(0, |start| start.pid)
    }
}

/// The trace files that `paths` name, in order of host, pid and start.
///
/// # Errors
/// One cannot be read. A folder may hold none.
pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.is_dir() {
            for file in traces_in(path)? {
                sources.push(map(&file)?);
            }
        } else {
            sources.push(map(path)?);
        }
    }
    sources.sort_by(|a, b| key(a).cmp(&key(b)));
    label(&mut sources);
    Ok(sources)
}

/// Is there a file that does not even begin as a trace does? One that was cut within its first frame does.
pub(crate) fn foreign(sources: &[Source]) -> bool {
    sources.iter().any(|source| source.bytes().iter().zip(&MARK).any(|(byte, mark)| byte != mark))
}

/// The files, for a message.
pub(crate) fn names(sources: &[Source]) -> String {
    sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn key(source: &Source) -> (Option<(&str, u32, u64)>, &str) {
    (source.start.as_ref().map(|start| (start.host.as_str(), start.pid, start.start)), &source.name)
}

fn traces_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let failed = || format!("failed to read {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "ntt") && path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

#[allow(unsafe_code, reason = "a file can be mapped in no other way")]
fn map(path: &Path) -> anyhow::Result<Source> {
    let failed = || format!("failed to read {}", path.display());
    let file = File::open(path).with_context(failed)?;
    let length = file.metadata().with_context(failed)?.len();
    let map = if length == 0 {
        None
    } else {
        // SAFETY: the map is only read, and as bytes, any of which are valid. Rust cannot know that nobody else writes
        // the file meanwhile. A writer of traces only appends, behind the length that is mapped; somebody who cuts
        // the file while it is read ends this program with SIGBUS, which harms nobody else. Checksums are computed
        // before a frame is used, but bytes changed in between could show as wrong numbers, never as a wild access:
        // every access is bounds-checked against the length of the map.
        let map = unsafe { Mmap::map(&file) }.with_context(failed)?;
        // Read once, from front to back: pages behind need not stay. A kernel that does not listen does no harm.
        let _ = map.advise(memmap2::Advice::Sequential);
        Some(map)
    };
    let name = path.display().to_string();
    let mut source = Source { name, process: String::new(), start: None, map };
    // It is the first frame, if it is sound.
    source.start = Frames::skim(source.bytes()).take(2).find_map(|item| match item {
        Item::Frame(frame) => match frame.content {
            Content::Start(start) => Some(start),
            _ => None,
        },
        Item::Trouble(_) => None,
    });
    Ok(source)
}

/// The pid; where that is not enough, the start as well; then the host; then the file.
fn label(sources: &mut [Source]) {
    let longer = |source: &Source, words: usize| match &source.start {
        None => source.name.clone(),
        Some(start) => match words {
            0 => start.pid.to_string(),
            1 => format!("{}.{}", start.pid, start.start),
            2 => format!("{}.{}@{}", start.pid, start.start, start.host),
            _ => source.name.clone(),
        },
    };
    for words in 0..=3 {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for source in sources.iter() {
            *counts.entry(source.process.clone()).or_default() += 1;
        }
        for source in sources.iter_mut() {
            if words == 0 || counts.get(&source.process).is_some_and(|&count| count > 1) {
                source.process = longer(source, words);
            }
        }
    }
}
