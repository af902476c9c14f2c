//! The run's log: a line an event, with milliseconds since the start. For the one who asks "why was that not probed".

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The file `log` of a run folder. What cannot be written is lost in silence: a log must not fail a run.
#[derive(Debug)]
pub(crate) struct Log {
    file: Mutex<Option<File>>,
    started: Instant,
}

impl Log {
    /// A new file in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Log { file: Mutex::new(File::create(folder.join("log")).ok()), started: Instant::now() }
    }

    /// Writes a line; line feeds in it become spaces.
    pub(crate) fn line(&self, text: impl std::fmt::Display) {
        let at = self.started.elapsed().as_secs_f64() * 1000.0;
        let line = format!("{at:9.1} {}\n", text.to_string().replace('\n', " "));
        if let Some(file) = self.file.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            let _ = file.write_all(line.as_bytes());
        }
    }
}
