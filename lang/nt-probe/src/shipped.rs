//! The probes that come with the toolchain, embedded: what `-p WORD` means when WORD is no file.

/// A probe that comes with the toolchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    /// What `-p` takes.
    pub name: &'static str,
    /// Its program text.
    pub text: &'static str,
}

impl Shipped {
    /// The first line of its header, without the name: what it tells.
    pub fn summary(&self) -> &'static str {
        let line = self.text.lines().next().unwrap_or("");
        line.trim_start_matches("//").split_once(": ").map_or("", |(_, summary)| summary)
    }
}

macro_rules! shipped {
    ($($name:literal)*) => {
        /// All shipped probes, by name.
        pub const SHIPPED: &[Shipped] =
            &[$(Shipped { name: $name, text: include_str!(concat!("../probes/", $name, ".nt")) }),*];
    };
}

shipped! {
    "async_copy_flow"
    "bank_conflicts"
    "barrier_wait"
    "block_sched"
    "coalescing"
    "divergence"
    "dmat"
    "gmem_bytes"
    "hot_addresses"
    "hot_lines"
    "last_waits"
    "load_latency"
    "occupancy_timeline"
    "program_progress"
    "tail"
    "tensorop_count"
    "value_hist"
    "warp_lifetime"
}

/// The text of the shipped probe `name`.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|probe| probe.name == name).map(|probe| probe.text)
}

/// The names of all shipped probes, in order.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|probe| probe.name)
}

/// What the WORD of `-p WORD`, or of `nt-probec WORD`, means; programs read files, this crate does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// `-`
    Stdin,
    /// A word with `/` or an ending: `heat.nt`, `./heat`.
    File,
    /// The name of a shipped probe.
    Shipped(&'static Shipped),
    /// Any other word, and the shipped name that comes nearest.
    Unknown(Option<&'static str>),
}

impl Named {
    /// The one place that tells files from shipped names.
    ///
    /// ```
    /// use nt_probe::Named;
    /// assert_eq!(Named::by("./block_sched"), Named::File);
    /// assert!(matches!(Named::by("block_sched"), Named::Shipped(_)));
    /// assert_eq!(Named::by("block_shed"), Named::Unknown(Some("block_sched")));
    /// ```
    pub fn by(word: &str) -> Self {
        if word == "-" {
            return Named::Stdin;
        }
        if word.contains(['/', '.']) {
            return Named::File;
        }
        match SHIPPED.iter().find(|probe| probe.name == word) {
            Some(probe) => Named::Shipped(probe),
            None => Named::Unknown(nt_diag::nearest(word, shipped_names())),
        }
    }
}
