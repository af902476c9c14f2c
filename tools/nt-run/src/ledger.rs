//! What the parent learns while the command runs: who spoke to it, what was prepared, what was refused.

use nt_engine::{Conditions, Cost, Refusal};
use nt_trace::ntm::Resources;
use nt_wire::message::Bye;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All of it, shared by the threads that serve hooks.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    inner: Mutex<Entries>,
}

/// What a [`Ledger`] holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
    /// Processes that said hello, in that order.
    pub(crate) processes: Vec<Process>,
    /// Each kernel that was asked for, by its name, architecture and what holds of the launches.
    pub(crate) kernels: BTreeMap<(String, u32, Conditions), Outcome>,
    /// Images of which nothing can be probed, by reason: how many.
    pub(crate) images: BTreeMap<String, u64>,
    /// Images that were seen.
    pub(crate) seen: u64,
    /// Kernels that were selected in some image.
    pub(crate) selected: BTreeSet<String>,
    /// Kernels that were chosen and are in some image as machine code alone.
    pub(crate) closed: BTreeSet<String>,
    /// Sentences for the summary, each once.
    pub(crate) notes: Vec<String>,
    /// Reproducers that were saved.
    pub(crate) bugs: u32,
}

/// A process that has a hook.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: u32,
    /// Its program.
    pub(crate) exe: String,
    /// What it said when it ended; `None` if it was killed, or lives on.
    pub(crate) bye: Option<Bye>,
}

/// What became of a kernel on an architecture, for launches of some shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// It is probed.
    Probed {
        /// What it takes without probes and with them.
        resources: [Option<Resources>; 2],
        /// What that took.
        cost: Cost,
        /// What it relies on; twins that rely on the same are one.
        assumes: Conditions,
    },
    /// It runs as it is.
    Refused(Arc<Refusal>),
}

impl Ledger {
    /// To read or change it; held for a few lines only.
    pub(crate) fn open(&self) -> MutexGuard<'_, Entries> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sentence, once.
    pub(crate) fn note(&self, text: impl Into<String>) {
        let text = text.into();
        let mut entries = self.open();
        if !entries.notes.contains(&text) {
            entries.notes.push(text);
        }
    }
}
