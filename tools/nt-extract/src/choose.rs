//! Which images: by kind, architecture, device, number and kernel.

use crate::cli::Args;
use crate::images;
use nt_cli::choose::{choose, nearest};
use nt_object::{Container, Entry, Error, Kind, NoPtx, best_ptx};

/// The images that were chosen, and what is to be said of the choice.
pub(crate) struct Chosen<'e, 'a> {
    /// In the file's order.
    pub(crate) entries: Vec<&'e Entry<'a>>,
    /// Why these: for `--device`, and what matched for `-k`.
    pub(crate) reasons: Vec<String>,
    /// Images that could not be looked into for `-k`.
    pub(crate) faults: Vec<(u32, Error)>,
    /// The kernels that are nearest to what `-k` asked for, if it matched none.
    pub(crate) nearest: Vec<String>,
}

/// Chooses as the command line says.
pub(crate) fn run<'e, 'a>(args: &Args, container: &'e Container<'a>) -> Chosen<'e, 'a> {
    let kind = |entry: &&Entry<'a>| match entry.kind {
        Kind::Ptx => args.ptx || !args.elf,
        Kind::Elf => args.elf || !args.ptx,
        _ => !args.ptx && !args.elf,
    };
    let arch = |entry: &&Entry<'a>| {
        args.archs.is_empty() || entry.arch.is_some_and(|arch| args.archs.contains(&arch))
    };
    let index = |entry: &&Entry<'a>| args.indexes.is_empty() || args.indexes.contains(&entry.index);
    let entries: Vec<_> = container.entries.iter().filter(kind).filter(arch).filter(index).collect();
    let mut chosen = Chosen { entries, reasons: Vec::new(), faults: Vec::new(), nearest: Vec::new() };

    // Kernels before the device: of a fatbin whose PTX hold different kernels, the best is the best of those with the
    // kernel.
    if !args.kernels.is_empty() {
        by_kernel(args, &mut chosen);
    }
    if let Some(device) = args.device {
        let mut best = Vec::new();
        let none = NoPtx::of(chosen.entries.iter().copied(), Some(device.0));
        for module in chosen.entries.chunk_by(|a, b| a.container == b.container) {
            let module: Vec<Entry<'a>> = module.iter().map(|entry| (*entry).clone()).collect();
            if let Ok(found) = best_ptx(&module, device.0) {
                chosen.reasons.push(format!("entry {}: {}", found.entry.index, found.reason));
                best.push(found.entry.index);
            }
        }
        if best.is_empty() && !chosen.entries.is_empty() {
            chosen.reasons.push(none.to_string());
        }
        chosen.entries.retain(|entry| best.contains(&entry.index));
    }
    chosen
}

fn by_kernel(args: &Args, chosen: &mut Chosen<'_, '_>) {
    let names = images::each(&chosen.entries, args.limit, Entry::kernels);
    let (mut kept, mut all) = (Vec::new(), Vec::new());
    for (entry, names) in chosen.entries.iter().zip(names) {
        match names {
            Ok(names) => {
                let matched = choose(&args.kernels, names.iter().map(String::as_str));
                if !matched.is_empty() {
                    chosen.reasons.push(format!("entry {}: matched {}", entry.index, matched.join(", ")));
                    kept.push(*entry);
                }
                all.extend(names);
            }
            Err(error) => chosen.faults.push((entry.index, error)),
        }
    }
    if kept.is_empty() {
        all.sort();
        all.dedup();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        chosen.nearest = nearest(&args.kernels, &all, 3).into_iter().map(str::to_owned).collect();
    }
    chosen.entries = kept;
}
