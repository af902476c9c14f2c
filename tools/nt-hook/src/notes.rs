//! What should be said at the end and belongs to no kernel.
//!
//! The hook prints nothing: words go into the trace's note frames and into the parent's summary. Things that may happen
//! often are counters, which can be raised anywhere, in a signal handler too.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::{lock, lock_until};
use crate::time::Deadline;

/// Something that is counted and then said in a sentence.
pub(crate) struct Note {
    count: AtomicU64,
    /// Follows the number.
    text: &'static str,
}

impl Note {
    const fn new(text: &'static str) -> Self {
        Note { count: AtomicU64::new(0), text }
    }

    /// Once more.
    pub(crate) fn count(&self) {
        self.add(1);
    }

    /// So many times more.
    pub(crate) fn add(&self, times: u64) {
        self.count.fetch_add(times, Ordering::Relaxed);
    }
}

macro_rules! notes {
    ($($(#[doc = $doc:literal])* $name:ident: $text:literal;)*) => {
        $($(#[doc = $doc])* pub(crate) static $name: Note = Note::new($text);)*
        static ALL: &[&Note] = &[$(&$name),*];
    };
}

notes! {
    /// See `enter::flags`.
    DEEPBIND: "libraries were asked for with RTLD_DEEPBIND and loaded without it";
    /// See `table::bind`.
    OTHER_COPY: "lookups found a second copy of the driver, which is not hooked";
    /// See `table::swap`.
    NEW_VARIANT: "lookups were answered by the driver with a variant that this version does not know";
    /// See `exec::Environment`.
    ENVIRONMENT: "children were started with an environment too large to add the hook to";
    /// See `load::keep_image`.
    ODD_IMAGE: "modules are in a form whose length is not known; nothing in them is probed";
    /// The tables are fixed in size.
    TABLE_FULL: "functions or modules found no room in the hook's tables and are not probed";
    /// See `batch::Batch`.
    EVENTS: "events found no room in the streams of their launches; --stream gives them more";
    /// See `record::launch`.
    SAVES: "saves found no room in their arrays, and were dropped or overwritten by later ones";
    /// Replays, whose kernels were seen when they were captured.
    GRAPHS: "graph launches ran as they are; kernels in graphs are not probed (run the program without CUDA graphs, if it can)";
    /// Old and multi-device forms.
    OTHER_LAUNCHES: "launches used a form that is not probed (cuLaunch, cuLaunchGrid, multi-device)";
}

/// Whether calls of the driver may have passed us.
#[inline]
pub(crate) fn unseen_calls() -> bool {
    OTHER_COPY.count.load(Ordering::Relaxed) != 0 || NEW_VARIANT.count.load(Ordering::Relaxed) != 0
}

/// Sentences, the first few of them.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
const MOST: usize = 64;

/// Keeps a sentence, once.
pub(crate) fn say(text: String) {
    let mut said = lock(&SAID);
    if said.len() < MOST && !said.contains(&text) {
        said.push(text);
    }
}

/// All of them, for the end.
pub(crate) fn all(deadline: Deadline) -> Vec<String> {
    let mut lines = lock_until(&SAID, deadline).map(|said| said.clone()).unwrap_or_default();
    for note in ALL {
        match note.count.load(Ordering::Relaxed) {
            0 => {}
            n => lines.push(format!("{n} {}", note.text)),
        }
    }
    lines
}
