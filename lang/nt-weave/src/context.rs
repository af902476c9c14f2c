//! Gives a kernel the context block: one parameter more, by value, last.
//!
//! ```text
//! before  .visible .entry k(.param .u64 k_param_0) {
//! after   .visible .entry k(.param .u64 k_param_0/*nt:edit {*/,
//!             .param .align 8 .b8 nt_ctx[24]/*nt:ctx prefix=nt_ zero@0:8 base.heat@8:8 cap.heat@16:8 stride.heat=16*//*}nt:edit*/) {
//! ```
//!
//! An array with a capacity has `counts.last@24:8 units.last@32:4` too. A stream has five words: `base.ev@8:8 cap.ev@16:4 units.ev@20:4 cursor.ev@24:8 drops.ev@32:8`.
//!
//! By value, because its words are then operands in the constant bank; a pointer would cost a dependent load before
//! the first address. The comment is a claim: the verifier checks it against the code, and whoever launches the kernel
//! against what it fills in. Forward declarations of the same entry get the same edit, or ptxas finds "inconsistent
//! prototypes". A kernel `.entry k {` without a list gets one behind its name.

use crate::UsedTable;
use crate::choose::Names;
use crate::clones::{Carried, Passed};
use crate::pins::Pins;
use crate::returns::Out;
use nt_ir::layout::{Layout, Presence, SLOT};
use nt_ir::program::{MapKind, Program};
use nt_ptx::Edits;
use nt_ptx::syntax::{Function, Module};
use std::fmt::Write;

/// What stands in the block, and its text.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// Bytes.
    pub(crate) size: u32,
    /// By offset.
    pub(crate) slots: Vec<Slot>,
    /// Of a clone, the registers of its caller that it is given.
    pub(crate) passed: Vec<Passed>,
    /// Of a clone, what it gives back, if anything.
    pub(crate) out: Option<Out>,
    /// The parameter and its claim.
    declaration: String,
    /// What a claim calls each map and table, and what it says of its shape.
    names: Vec<String>,
    shapes: Vec<String>,
}

/// A word of the context block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Bytes into the block, a multiple of the size.
    pub offset: u32,
    /// Bytes it takes: 4 or 8.
    pub size: u32,
    /// What it holds.
    pub fill: Fill,
}

/// What a word of the context block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Always 0.
    Zero,
    /// The device address of a map, by its index in [`crate::WovenKernel::maps`]; [`crate::WovenKernel::tables`] are
    /// counted on behind them.
    Base(u32),
    /// How many units that map or table has room for; of an array with a capacity, how many records; of a stream, slots.
    Capacity(u32),
    /// The device address of the count of chunks that were claimed of a stream, by its index among the maps.
    Cursor(u32),
    /// The device address of a stream's counts of events that found no room, 4 bytes a unit.
    Drops(u32),
    /// How many units of a stream, or of an array with a capacity, the launch has.
    Units(u32),
    /// The device address of the counts of an array with a capacity, 8 bytes a warp or 4 a thread.
    Counts(u32),
    /// The number of the launch.
    Launch,
}

impl Fill {
    /// What a claim calls a word of a map or table.
    fn word(self) -> &'static str {
        match self {
            Fill::Zero => "zero",
            Fill::Base(_) => "base",
            Fill::Capacity(_) => "cap",
            Fill::Cursor(_) => "cursor",
            Fill::Drops(_) => "drops",
            Fill::Units(_) => "units",
            Fill::Counts(_) => "counts",
            Fill::Launch => "launch",
        }
    }

    /// The map or table that it is of.
    fn map(self) -> Option<u32> {
        match self {
            Fill::Base(map)
            | Fill::Capacity(map)
            | Fill::Cursor(map)
            | Fill::Drops(map)
            | Fill::Units(map)
            | Fill::Counts(map) => Some(map),
            Fill::Zero | Fill::Launch => None,
        }
    }
}

impl Context {
    /// The block for these maps and tables.
    pub(crate) fn lay_out(
        program: &Program,
        layouts: &[Layout],
        maps: &[usize],
        tables: &[UsedTable],
        launch: bool,
        pins: &Pins,
        prefix: &str,
    ) -> Context {
        let mut words = vec![(Fill::Zero, 8)];
        let kind = |number: u32| {
            let map = maps.get(number as usize).and_then(|&map| program.maps.get(map));
            map.map_or(MapKind::Array, |map| map.kind)
        };
        for number in (0..).take(maps.len() + tables.len()) {
            words.push((Fill::Base(number), 8));
            match kind(number) {
                MapKind::Array => words.push((Fill::Capacity(number), 8)),
                MapKind::Slots { .. } => words.extend([
                    (Fill::Capacity(number), 8),
                    (Fill::Counts(number), 8),
                    (Fill::Units(number), 4),
                ]),
                MapKind::Stream => words.extend([
                    (Fill::Capacity(number), 4),
                    (Fill::Units(number), 4),
                    (Fill::Cursor(number), 8),
                    (Fill::Drops(number), 8),
                ]),
            }
        }
        if launch {
            words.push((Fill::Launch, 8));
        }
        let mut size: u32 = 0;
        let mut slots: Vec<Slot> = Vec::with_capacity(words.len());
        for (fill, bytes) in words {
            let offset = size.next_multiple_of(bytes);
            slots.push(Slot { offset, size: bytes, fill });
            size = offset + bytes;
        }
        let size = size.next_multiple_of(8);

        let map_names = maps.iter().filter_map(|&map| program.maps.get(map)).map(|map| map.name.clone());
        let table_names = tables.iter().map(|table| format!("@{}", table.name));
        let names: Vec<String> = map_names.chain(table_names).collect();
        let name = |number: u32| names.get(number as usize).map_or("", String::as_str);
        let mut declaration = format!(".param .align 8 .b8 {prefix}ctx[{size}]/*nt:ctx prefix={prefix}");
        // Writing to a String cannot fail.
        for Slot { offset, size, fill } in &slots {
            let word = fill.word();
            let _ = match fill.map() {
                Some(map) => write!(declaration, " {word}.{}@{offset}:{size}", name(map)),
                None => write!(declaration, " {word}@{offset}:{size}"),
            };
        }
        let mut shapes = Vec::with_capacity(names.len());
        for (number, layout) in (0..).zip(maps.iter().filter_map(|&map| layouts.get(map))) {
            shapes.push(match (layout.columnar, layout.stream) {
                (_, Some(_)) => format!(" stride.{}={SLOT}", name(number)),
                (false, None) => format!(" stride.{}={}", name(number), layout.stride),
                (true, None) => format!(" columns.{}={}", name(number), widths(layout)),
            });
        }
        for (name, table) in names.iter().skip(maps.len()).zip(tables) {
            shapes.push(format!(" stride.{name}={}", table.stride()));
        }
        shapes.iter().for_each(|shape| declaration.push_str(shape));
        for pin in pins.list() {
            let _ = write!(declaration, " pin.{}={}", pin.symbol, pin.index);
        }
        declaration.push_str("*/");
        Context { size, slots, passed: Vec::new(), out: None, declaration, names, shapes }
    }

    /// What a clone is given of the kernel's: the words of what it uses, by `uses`, and registers, with their bytes.
    pub(crate) fn of_clone(
        &self,
        program: &Program,
        prefix: &str,
        uses: impl Fn(Fill) -> bool,
        given: &[(Carried, u32)],
        out: Option<Out>,
    ) -> Context {
        let mut words: Vec<Slot> = self.slots.iter().copied().filter(|slot| uses(slot.fill)).collect();
        // Those of 8 bytes first, so that all are aligned.
        words.sort_by_key(|slot| std::cmp::Reverse(slot.size));
        let mut given = given.to_vec();
        given.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        let mut size = 0u32;
        let mut next = |bytes: u32| {
            size = size.next_multiple_of(bytes) + bytes;
            size - bytes
        };
        let wide = |bytes: u32| bytes == 8;
        let mut slots: Vec<Slot> = Vec::new();
        let mut passed: Vec<Passed> = Vec::new();
        for is_wide in [true, false] {
            let of_size = words.iter().filter(|slot| wide(slot.size) == is_wide);
            slots.extend(of_size.map(|slot| Slot { offset: next(slot.size), ..*slot }));
            let of_size = given.iter().filter(|(_, bytes)| wide(*bytes) == is_wide);
            passed.extend(of_size.map(|&(carried, size)| Passed { carried, offset: next(size), size }));
        }
        let size = size.next_multiple_of(8);
        let mut declaration = format!(".param .align 8 .b8 {prefix}ctx[{size}]/*nt:ctx prefix={prefix}");
        let mut used: Vec<u32> = Vec::new();
        for Slot { offset, size, fill } in &slots {
            let word = fill.word();
            let _ = match fill.map() {
                Some(map) => {
                    used.push(map);
                    let name = self.names.get(map as usize).map_or("", String::as_str);
                    write!(declaration, " {word}.{name}@{offset}:{size}")
                }
                None => write!(declaration, " {word}@{offset}:{size}"),
            };
        }
        for Passed { carried, offset, size } in &passed {
            let _ = write!(declaration, " {}@{offset}:{size}", carried.word(program));
        }
        used.sort_unstable();
        used.dedup();
        for map in used {
            declaration.push_str(self.shapes.get(map as usize).map_or("", String::as_str));
        }
        declaration.push_str("*/");
        Context { size, slots, passed, out, declaration, names: Vec::new(), shapes: Vec::new() }
    }
}

/// The widths of the columns, in the order in which they lie: `8,4,1`.
fn widths(layout: &Layout) -> String {
    let mut columns: Vec<(u32, u32)> = layout.slots.iter().map(|slot| (slot.offset, slot.size)).collect();
    if let Presence::Byte(slot) = layout.presence {
        columns.push((slot.offset, slot.size));
    }
    columns.sort_unstable();
    let widths: Vec<String> = columns.iter().map(|(_, width)| width.to_string()).collect();
    widths.join(",")
}

/// Appends the parameter to the kernel and to its forward declarations.
pub(crate) fn edit(
    module: &Module<'_>,
    names: &Names<'_>,
    function: usize,
    context: &Context,
    edits: &mut Edits,
) {
    let Some(kernel) = module.functions.get(function) else { return };
    let same = names.all(module.at(kernel.name)).iter().filter_map(|&same| module.functions.get(same));
    for entry in same.filter(|same| same.is_entry) {
        parameter(entry, context, edits);
    }
}

/// Appends the parameter to one declaration.
pub(crate) fn parameter(function: &Function, context: &Context, edits: &mut Edits) {
    let declaration = &context.declaration;
    let (at, text) = match (function.params.last(), function.list) {
        (Some(last), _) => (last.span.end, format!(",\n\t{declaration}")),
        // Between the parentheses of `()`.
        (None, Some(list)) => (list.end.saturating_sub(1), declaration.clone()),
        (None, None) => (function.name.end, format!("({declaration})")),
    };
    edits.insert(at, crate::place::replacement("", &text));
}
