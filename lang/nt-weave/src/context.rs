//! Gives a kernel the context block: one parameter more, by value, last.
//!
//! ```text
//! before  .visible .entry k(.param .u64 k_param_0) {
//! after   .visible .entry k(.param .u64 k_param_0/*nt:edit {*/,
//!             .param .align 8 .b8 nt_ctx[24]/*nt:ctx prefix=nt_ zero@0:8 base.heat@8:8 cap.heat@16:8 stride.heat=16*//*}nt:edit*/) {
//! ```
//!
//! By value, because its words are then operands in the constant bank; a pointer would cost a dependent load before
//! the first address. The comment is a claim: the verifier checks it against the code, and whoever launches the kernel
//! against what it fills in. Forward declarations of the same entry get the same edit, or ptxas finds "inconsistent
//! prototypes". A kernel `.entry k {` without a list gets one behind its name.

use crate::UsedTable;
use crate::choose::Names;
use crate::pins::Pins;
use nt_ir::layout::{Layout, Presence};
use nt_ir::program::Program;
use nt_ptx::Edits;
use nt_ptx::syntax::Module;
use std::fmt::Write;

/// What stands in the block, and its text.
pub(crate) struct Context {
    /// Bytes.
    pub(crate) size: u32,
    /// By offset.
    pub(crate) slots: Vec<Slot>,
    /// The parameter and its claim.
    declaration: String,
}

/// A word of the context block, 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Bytes into the block.
    pub offset: u32,
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
    /// How many units that map or table has room for.
    Capacity(u32),
    /// The number of the launch.
    Launch,
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
        let mut fills = vec![Fill::Zero];
        for number in (0..).take(maps.len() + tables.len()) {
            fills.extend([Fill::Base(number), Fill::Capacity(number)]);
        }
        if launch {
            fills.push(Fill::Launch);
        }
        let slots: Vec<Slot> =
            (0..).step_by(8).zip(fills).map(|(offset, fill)| Slot { offset, fill }).collect();
        let size = 8 * u32::try_from(slots.len()).unwrap_or(u32::MAX / 8);

        let map_names = maps.iter().filter_map(|&map| program.maps.get(map)).map(|map| map.name.clone());
        let table_names = tables.iter().map(|table| format!("@{}", table.name));
        let names: Vec<String> = map_names.chain(table_names).collect();
        let name = |number: u32| names.get(number as usize).map_or("", String::as_str);
        let mut declaration = format!(".param .align 8 .b8 {prefix}ctx[{size}]/*nt:ctx prefix={prefix}");
        // Writing to a String cannot fail.
        for slot in &slots {
            let at = slot.offset;
            let _ = match slot.fill {
                Fill::Zero => write!(declaration, " zero@{at}:8"),
                Fill::Base(map) => write!(declaration, " base.{}@{at}:8", name(map)),
                Fill::Capacity(map) => write!(declaration, " cap.{}@{at}:8", name(map)),
                Fill::Launch => write!(declaration, " launch@{at}:8"),
            };
        }
        for (number, layout) in (0..).zip(maps.iter().filter_map(|&map| layouts.get(map))) {
            let _ = match layout.columnar {
                false => write!(declaration, " stride.{}={}", name(number), layout.stride),
                true => write!(declaration, " columns.{}={}", name(number), widths(layout)),
            };
        }
        for (name, table) in names.iter().skip(maps.len()).zip(tables) {
            let _ = write!(declaration, " stride.{name}={}", table.stride());
        }
        for pin in pins.list() {
            let _ = write!(declaration, " pin.{}={}", pin.symbol, pin.index);
        }
        declaration.push_str("*/");
        Context { size, slots, declaration }
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
        let declaration = &context.declaration;
        let (at, text) = match (entry.params.last(), entry.list) {
            (Some(last), _) => (last.span.end, format!(",\n\t{declaration}")),
            // Between the parentheses of `()`.
            (None, Some(list)) => (list.end.saturating_sub(1), declaration.clone()),
            (None, None) => (entry.name.end, format!("({declaration})")),
        };
        edits.insert(at, crate::place::replacement("", &text));
    }
}
