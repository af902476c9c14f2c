//! What a manifest says of a woven kernel: from the weaver's structs to those of the file.

use nt_ir::Prepared;
use nt_ir::program::Limit;
use nt_trace::ntm;
use nt_weave::{Fill, Site, WovenKernel};

/// The manifest's entry for a woven kernel; registers are not known yet.
pub fn kernel(woven: &WovenKernel, probe: &Prepared) -> ntm::Kernel {
    let params = woven.params.iter().map(|p| ntm::Param { offset: p.offset, size: p.size });
    let slots = woven.slots.iter().map(|slot| ntm::ContextSlot {
        offset: slot.offset,
        fill: match slot.fill {
            Fill::Zero => ntm::Fill::Zero,
            Fill::Base(map) => ntm::Fill::Base { map },
            Fill::Capacity(map) => ntm::Fill::Capacity { map },
            Fill::Launch => ntm::Fill::Launch,
        },
    });
    let maps = woven.maps.iter().filter_map(|used| {
        // The weaver's indices are of the program that it was given.
        Some(ntm::Map::of(probe.program.maps.get(used.map)?, &used.layout))
    });
    let mut limits = ntm::Limits::default();
    for limit in &woven.limits {
        match *limit {
            Limit::LaunchCycles(cycles) => {
                limits.launch_cycles = Some(limits.launch_cycles.map_or(cycles, |known| known.min(cycles)));
            }
        }
    }
    ntm::Kernel {
        name: woven.name.clone(),
        params: params.collect(),
        context: ntm::Context { size: woven.context_size, slots: slots.collect() },
        maps: maps.collect(),
        tables: Vec::new(),
        pins: Vec::new(),
        constants: Vec::new(),
        sites: woven.sites.iter().map(site).collect(),
        limits,
        before: None,
        after: None,
    }
}

fn site(site: &Site) -> ntm::Site {
    ntm::Site {
        id: site.id,
        kind: site.kind.tracepoint().to_owned(),
        opcode: site.opcode.clone(),
        line: site.line,
        column: site.column,
        file: site.source.as_ref().map(|(file, _)| file.clone()),
        source_line: site.source.as_ref().map(|&(_, line)| line),
    }
}

/// Gives the sites of a kernel that was woven in a part of a module their places in the whole, where `whole` lists
/// every place that a probe could be at. If the two do not go together, places stay as they are.
pub(crate) fn take_places(kernel: &mut ntm::Kernel, whole: &[Site]) {
    // A probe is at all places of a kind in a kernel, or at none.
    let probed = |place: &&Site| kernel.sites.iter().any(|site| site.kind == place.kind.tracepoint());
    let whole: Vec<&Site> = whole.iter().filter(probed).collect();
    let same = kernel.sites.len() == whole.len()
        && kernel
            .sites
            .iter()
            .zip(&whole)
            .all(|(part, whole)| part.opcode == whole.opcode && part.kind == whole.kind.tracepoint());
    if same {
        for (part, whole) in kernel.sites.iter_mut().zip(whole) {
            (part.line, part.column) = (whole.line, whole.column);
        }
    }
}
