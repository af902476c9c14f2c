//! Which PTX is best for a device.
//!
//! ```text
//! PTX for sm_75, sm_80, sm_90a      device 8.6 → sm_80     9.0 → sm_90a     10.0, 12.0 → sm_80
//! ```
//!
//! The newest that the device may run, for the compiler that made it knew most of the device. `a` PTX counts for its
//! own architecture alone, `f` PTX for its family, and the PTX in a cubin for what the cubin runs on.

use crate::arch::{Arch, Suffix};
use crate::entry::{Entry, Kind};
use std::collections::BTreeSet;
use std::fmt;

/// The PTX that was chosen, and why.
#[derive(Debug, Clone)]
pub struct Best<'e, 'a> {
    /// The entry.
    pub entry: &'e Entry<'a>,
    /// `sm_80 is the newest of sm_75, sm_80, sm_90a that runs on sm_86`
    pub reason: String,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPtx {
    /// What PTX is for, none of which suits.
    pub ptx: Vec<Arch>,
    /// What cubins are for.
    pub cubins: Vec<Arch>,
    /// How many entries are neither.
    pub others: usize,
    /// How many of the cubins' PTX are kept in them.
    pub kept: usize,
    /// The device, if one was asked for.
    pub device: Option<u32>,
}

impl NoPtx {
    /// Says of entries without PTX what there is instead.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry<'a>>, device: Option<u32>) -> Self {
        let (mut ptx, mut cubins, mut others, mut kept) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
        for entry in entries {
            match entry.kind {
                // What stands in a cubin is told by the cubin.
                Kind::Ptx if entry.cubin.is_some() => kept += 1,
                Kind::Ptx => ptx.extend(entry.arch),
                Kind::Elf => cubins.extend(entry.arch),
                _ => others += 1,
            }
        }
        NoPtx { ptx: ptx.into_iter().collect(), cubins: cubins.into_iter().collect(), others, kept, device }
    }
}

impl fmt::Display for NoPtx {
    /// `no PTX; cubin for sm_80 present; a cubin compiled with -lineinfo holds its PTX`, `no PTX for sm_100; PTX for sm_90a present`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device {
            Some(device) => write!(f, "no PTX for sm_{device}")?,
            None => f.write_str("no PTX")?,
        }
        let mut present = Vec::new();
        if !self.ptx.is_empty() {
            present.push(format!("PTX for {}", list(&self.ptx)));
        }
        match self.cubins.len() {
            0 => {}
            1 => present.push(format!("cubin for {}", list(&self.cubins))),
            _ => present.push(format!("cubins for {}", list(&self.cubins))),
        }
        if self.others > 0 {
            present.push(format!("{} of other kinds", self.others));
        }
        if !present.is_empty() {
            write!(f, "; {} present", present.join(", "))?;
        }
        let bare = self.ptx.is_empty() && !self.cubins.is_empty() && self.kept == 0;
        if bare { f.write_str("; a cubin compiled with -lineinfo holds its PTX") } else { Ok(()) }
    }
}

/// The PTX among `entries` that is best for a device of compute capability `device` / 10 . `device` % 10: 86 for 8.6.
///
/// The entries should be of one container, for that is what a program loads as one module.
///
/// # Errors
/// None of them runs there; what there is instead is said.
pub fn best_ptx<'e, 'a>(entries: &'e [Entry<'a>], device: u32) -> Result<Best<'e, 'a>, NoPtx> {
    // PTX whose header names no architecture is taken only where nothing else is there. Of the same PTX as such and in a
    // cubin, the one in the cubin lacks its source lines.
    let rank = |entry: &Entry<'_>| entry.arch.map(|arch| (arch.sm, arch.suffix, entry.cubin.is_none()));
    let mut best: Option<&Entry<'a>> = None;
    for entry in entries.iter().filter(|entry| entry.kind == Kind::Ptx) {
        // Of equals the first: a runtime takes it too.
        if entry.runs_on(device) && best.is_none_or(|best| rank(best) < rank(entry)) {
            best = Some(entry);
        }
    }
    match best {
        Some(entry) => Ok(Best { entry, reason: reason(entry, entries, device) }),
        None => Err(NoPtx::of(entries, Some(device))),
    }
}

fn reason(best: &Entry<'_>, entries: &[Entry<'_>], device: u32) -> String {
    let all: BTreeSet<Arch> = entries.iter().filter(|e| e.kind == Kind::Ptx).filter_map(|e| e.arch).collect();
    let Some(arch) = best.arch else {
        return "the only PTX, which does not say what it is for".to_owned();
    };
    let mut reason = match arch.suffix {
        _ if best.cubin.is_some() => format!("{arch} stands in the cubin that sm_{device} runs"),
        _ if all.len() == 1 => format!("{arch} is the only PTX, and sm_{device} runs it"),
        Suffix::Specific => format!("{arch} is made for exactly this device"),
        Suffix::None | Suffix::Family => {
            let all: Vec<Arch> = all.iter().copied().collect();
            format!("{arch} is the newest of {} that sm_{device} runs", list(&all))
        }
    };
    let newer: Vec<Arch> = all
        .into_iter()
        .filter(|other| other.sm > arch.sm && other.sm <= device && !other.runs_on(device))
        .collect();
    if !newer.is_empty() {
        reason += &format!("; {} is not forward compatible", list(&newer));
    }
    reason
}

fn list(archs: &[Arch]) -> String {
    let names: Vec<String> = archs.iter().map(Arch::to_string).collect();
    names.join(", ")
}
