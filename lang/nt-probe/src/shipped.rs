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
