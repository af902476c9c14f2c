//! Where the corpora are, and what is in them.

use std::path::{Path, PathBuf};

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx")
}

/// The files below the corpora with this ending, by their path from there.
pub(crate) fn files(ending: &str) -> Vec<String> {
    let mut files = Vec::new();
    for folder in
        std::fs::read_dir(corpora()).unwrap().map(|entry| entry.unwrap().path()).filter(|p| p.is_dir())
    {
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|e| e == ending) {
                files.push(file.strip_prefix(corpora()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

pub(crate) fn read(file: &str) -> String {
    std::fs::read_to_string(corpora().join(file)).unwrap()
}
