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
        size: 8,
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
    let tables = woven
        .tables
        .iter()
        .filter_map(|used| Some(ntm::Table::of(probe.program.tables.get(used.table)?, used.cells.clone())));
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
        tables: tables.collect(),
        pins: woven.pins.iter().map(|p| ntm::Pin { symbol: p.symbol.clone(), index: p.index }).collect(),
        constants: woven
            .constants
            .iter()
            .map(|c| ntm::Constant { symbol: c.symbol.clone(), size: c.size })
            .collect(),
        sites: woven.sites.iter().map(site).collect(),
        assumes: Vec::new(),
        limits,
        before: None,
        after: None,
    }
}

fn site(site: &Site) -> ntm::Site {
    ntm::Site {
        id: site.id,
        kind: site.kind.tracepoint(),
        opcode: site.opcode.clone(),
        line: site.line,
        column: site.column,
        file: site.source.as_ref().map(|(file, _)| file.clone()),
        source_line: site.source.as_ref().map(|&(_, line)| line),
    }
}
