//! What a manifest says of a woven kernel: from the weaver's structs to those of the file.

use nt_ir::Prepared;
use nt_ir::program::Limit;
use nt_trace::ntm;
use nt_weave::{Assumed, Callee, Code, Fill, Form, Linear, Site, Term, Uncovered, WovenKernel};

/// The manifest's entry for a woven kernel; registers are not known yet.
pub fn kernel(woven: &WovenKernel, probe: &Prepared) -> ntm::Kernel {
    let params = woven.params.iter().map(|p| ntm::Param { offset: p.offset, size: p.size });
    let slots = woven.slots.iter().map(|slot| ntm::ContextSlot {
        offset: slot.offset,
        size: slot.size,
        fill: match slot.fill {
            Fill::Zero => ntm::Fill::Zero,
            Fill::Base(map) => ntm::Fill::Base { map },
            Fill::Capacity(map) => ntm::Fill::Capacity { map },
            Fill::Cursor(map) => ntm::Fill::Cursor { map },
            Fill::Drops(map) => ntm::Fill::Drops { map },
            Fill::Units(map) => ntm::Fill::Units { map },
            Fill::Counts(map) => ntm::Fill::Counts { map },
            Fill::Launch => ntm::Fill::Launch,
        },
    });
    let maps = woven.maps.iter().filter_map(|used| {
        // The weaver's indices are of the program that it was given.
        let declared = probe.program.maps.get(used.map)?;
        let mut map = ntm::Map::of(declared, &used.layout);
        if let (Some(stream), Some(layout)) = (&used.stream, used.layout.stream) {
            let codes = stream.codes.iter().map(code).collect();
            let bytes = probe.program.config.stream;
            map.stream = Some(ntm::Stream::of(declared, layout, stream.chunk, bytes, codes));
        }
        Some(map)
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
        uncovered: woven.uncovered.iter().map(uncovered).collect(),
        assumes: woven.assumes.names().map(str::to_owned).collect(),
        limits,
        before: None,
        after: None,
    }
}

fn uncovered(one: &Uncovered) -> ntm::Uncovered {
    let (kind, names) = match &one.callee {
        Callee::Pointer(targets) => (ntm::Callee::Pointer, targets.iter().cloned().collect()),
        Callee::Elsewhere(name) => (ntm::Callee::Elsewhere, vec![name.clone()]),
        Callee::Driver(name) => (ntm::Callee::Driver, vec![name.clone()]),
    };
    let (line, column) = one.position;
    ntm::Uncovered { function: one.function.clone(), kind, names, calls: one.calls, line, column }
}

fn code(code: &Code) -> ntm::Code {
    let told = code.told.iter().map(|&(field, value)| ntm::Told { field, value });
    let lanes = code.lanes.iter().map(|(field, form)| ntm::Lanes { field: *field, form: self::form(form) });
    let Assumed { wraps, joins } = code.assumes;
    let assumes = [(wraps, ntm::Assumption::Wraps), (joins, ntm::Assumption::Joins)];
    let assumes = assumes.into_iter().filter_map(|(is_so, assumption)| is_so.then_some(assumption));
    ntm::Code { site: code.site, told: told.collect(), lanes: lanes.collect(), assumes: assumes.collect() }
}

fn form(form: &Form) -> ntm::Form {
    match form {
        Form::Known(value) => ntm::Form::Known(*value),
        Form::Bits(strides) => ntm::Form::Bits(strides.each_ref().map(linear)),
        Form::Stride => ntm::Form::Stride,
        Form::List32 => ntm::Form::List32,
        Form::List64 => ntm::Form::List64,
    }
}

fn linear(linear: &Linear) -> ntm::Linear {
    let terms = linear.terms.iter().map(|&Term { param_offset, size, signed, factor }| ntm::Term {
        param_offset,
        size,
        signed,
        factor,
    });
    ntm::Linear { constant: linear.constant, terms: terms.collect() }
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
