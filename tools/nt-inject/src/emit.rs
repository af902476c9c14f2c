//! `--emit=plan` and `--emit=spans`: what is put where, and the code that is.
//!
//! ```text
//! kernel fill_blocks
//!   context nt_ctx: 24 bytes, zero@0 base.block_sched@8 cap.block_sched@16
//!   map block_sched: warp, records of 16 bytes: end u64@0 elapsed u32@8 cu u32@12, written if bit 31 of cu is set
//!   site 0: kernel:entry at 33:2
//!   site 1: kernel:exit at 51:2, before `ret`
//! ```

use nt_ir::layout::Presence;
use nt_ir::program::{Key, Limit};
use nt_ptx::syntax::Module;
use nt_weave::{Assumed, Code, Fill, Form, Linear, Site, UsedMap, UsedTable, Woven, WovenKernel};
use std::fmt::Write;

/// Context, maps, limits and sites of each kernel.
pub(crate) fn plan(module: &Module<'_>, woven: &Woven) -> String {
    let mut out = String::new();
    for kernel in &woven.kernels {
        let (major, minor) = kernel.minimum_version;
        let arch = module.arch().unwrap_or("-");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "kernel {}", kernel.name);
        let _ = writeln!(out, "  needs .version {major}.{minor}, target {arch}");
        let _ = writeln!(out, "  context: {} bytes,{}", kernel.context_size, slots(kernel));
        for map in &kernel.maps {
            let _ = writeln!(out, "  map {}: {}", map.name, layout(map));
        }
        for map in &kernel.maps {
            let Some(stream) = &map.stream else { continue };
            let _ = writeln!(out, "  stream {}: chunks of {} slots", map.name, stream.chunk);
            for (number, code) in stream.codes.iter().enumerate() {
                let _ = writeln!(out, "    code {number}: {}", self::code(map, code));
            }
        }
        if !kernel.assumes.is_empty() {
            let _ = writeln!(out, "  only in launches that are {}", kernel.assumes);
        }
        for table in &kernel.tables {
            let _ = writeln!(out, "  table @{}: {}", table.name, cells(table));
        }
        for limit in &kernel.limits {
            let Limit::LaunchCycles(cycles) = limit;
            let _ = writeln!(out, "  exact in launches of less than {cycles} cycles");
        }
        for site in &kernel.sites {
            let _ = writeln!(out, "  site {}: {}", site.id, place(site));
        }
        for one in &kernel.uncovered {
            let (line, column) = one.position;
            let _ = writeln!(out, "  not covered: {line}:{column}, `{}` {}", one.function, one.what());
        }
    }
    out
}

/// The inserted code of each site, under a line that says where it stands.
pub(crate) fn spans(woven: &Woven) -> String {
    let mut out = String::new();
    for kernel in &woven.kernels {
        for site in &kernel.sites {
            let (open, close) = (format!("/*nt:{}{{*/", site.id), format!("/*}}nt:{}*/", site.id));
            let inside = woven.text.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
            let code = inside.map_or("", |(code, _)| code).trim();
            let _ = writeln!(out, "// span {} in {}: {}\n{code}\n", site.id, kernel.name, place(site));
        }
    }
    out
}

fn slots(kernel: &WovenKernel) -> String {
    let maps = kernel.maps.iter().map(|map| map.name.clone());
    let names: Vec<String> =
        maps.chain(kernel.tables.iter().map(|table| format!("@{}", table.name))).collect();
    let name = |map: u32| names.get(map as usize).map_or("?", String::as_str);
    let mut out = String::new();
    for slot in &kernel.slots {
        let at = slot.offset;
        let _ = match slot.fill {
            Fill::Zero => write!(out, " zero@{at}"),
            Fill::Base(map) => write!(out, " base.{}@{at}", name(map)),
            Fill::Capacity(map) => write!(out, " cap.{}@{at}", name(map)),
            Fill::Cursor(map) => write!(out, " cursor.{}@{at}", name(map)),
            Fill::Drops(map) => write!(out, " drops.{}@{at}", name(map)),
            Fill::Units(map) => write!(out, " units.{}@{at}", name(map)),
            Fill::Counts(map) => write!(out, " counts.{}@{at}", name(map)),
            Fill::Launch => write!(out, " launch@{at}"),
        };
    }
    out
}

fn layout(map: &UsedMap) -> String {
    let layout = &map.layout;
    let mut out = format!("{}, ", map.unit.word());
    let _ = match layout.columnar {
        true => write!(out, "columns of {} bytes a unit in all:", layout.stride),
        false => write!(out, "records of {} bytes:", layout.stride),
    };
    for (field, slot) in map.fields.iter().zip(&layout.slots) {
        let _ = write!(out, " {} {}@{}", field.name, field.ty.word(), slot.offset);
    }
    let _ = match layout.presence {
        Presence::Bit { field, bit } => {
            let field = map.fields.get(field as usize).map_or("?", |field| field.name.as_str());
            write!(out, ", written if bit {bit} of {field} is set")
        }
        Presence::Byte(slot) => write!(out, ", written if the byte @{} is 1", slot.offset),
        Presence::Mask => write!(out, ", written if the mask @{} is not 0", nt_ir::layout::MASK.offset),
    };
    out
}

/// `site 1: addr bits 4 8 16 32 64, bytes known 4, if 32 bits do not overflow`
fn code(map: &UsedMap, code: &Code) -> String {
    let mut out = format!("site {}:", code.site);
    for (number, (field, form)) in code.lanes.iter().enumerate() {
        let name = map.fields.get(*field as usize).map_or("?", |field| field.name.as_str());
        let _ = write!(out, "{} {name} ", if number == 0 { "" } else { "," });
        let _ = match form {
            Form::Known(value) => write!(out, "known {value}"),
            Form::Bits(strides) => {
                let strides: Vec<String> = strides.iter().map(linear).collect();
                write!(out, "bits {}", strides.join(" "))
            }
            Form::Stride => write!(out, "stride"),
            Form::List32 => write!(out, "list32"),
            Form::List64 => write!(out, "list64"),
        };
    }
    let Assumed { wraps, joins } = code.assumes;
    if wraps {
        out.push_str(", if 32 bits do not overflow");
    }
    if joins {
        out.push_str(", if lanes meet where ways join");
    }
    out
}

/// `4`, `12·param@16`
fn linear(number: &Linear) -> String {
    let mut parts: Vec<String> =
        number.terms.iter().map(|term| format!("{}·param@{}", term.factor, term.param_offset)).collect();
    if number.constant != 0 || parts.is_empty() {
        parts.push(number.constant.to_string());
    }
    parts.join("+")
}

fn cells(table: &UsedTable) -> String {
    let keys: Vec<&str> = table
        .keys
        .iter()
        .map(|key| match key {
            Key::Site(key) => key.word(),
            Key::Unit(unit) => unit.word(),
            Key::Bounded(builtin) => builtin.word(),
        })
        .collect();
    let unit = table.unit.map_or("multiprocessor", |unit| unit.word());
    let (func, keys, count) = (table.func.word(), keys.join(", "), table.cells.len());
    format!("{func} [{keys}], {count} cell{} a {unit}", if count == 1 { "" } else { "s" })
}

fn place(site: &Site) -> String {
    let mut out = format!("{} at {}:{}", site.kind.tracepoint(), site.line, site.column);
    if !site.opcode.is_empty() {
        let guard = site.guard.as_ref().map_or_else(String::new, |guard| {
            format!("@{}{} ", if guard.negated { "!" } else { "" }, guard.register)
        });
        let _ = write!(out, ", before `{guard}{}`", site.opcode);
    }
    if let Some((file, line)) = &site.source {
        let _ = write!(out, ", {file}:{line}");
    }
    out
}
