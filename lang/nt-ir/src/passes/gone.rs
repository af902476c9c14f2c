//! Adds the table that counts how many lanes of each warp have left, where a `warp` probe at `kernel:exit` adds up.
//!
//! ```text
//! warp kernel:exit { @left = count(); }       table @left: count u64 []
//!                                             table @nt_gone: gone u64 [warp]
//! ```
//!
//! Such a probe runs once a warp, with the last lanes to leave. A warp that leaves in parts does not know by itself which
//! part is last; the parts count themselves in memory. Nothing of a program adds to that table but the back end, and readers
//! do not show it.

use crate::program::{Func, Key, Op, Probe, Program, Table, Tracepoint, Type, Unit};
use nt_diag::Span;

/// The name of the table, with a number behind it if a program has one of that name.
const NAME: &str = "nt_gone";

pub(super) fn run(program: &mut Program) {
    if program.tables.iter().any(|table| table.func == Func::Gone) || !program.probes.iter().any(asks) {
        return;
    }
    let mut name = NAME.to_owned();
    // A program has few tables, so this ends.
    for number in 1..=program.tables.len() + 1 {
        if program.tables.iter().all(|table| table.name != name) {
            break;
        }
        name = format!("{NAME}{number}");
    }
    let keys = vec![Key::Unit(Unit::Warp)];
    program.tables.push(Table { name, func: Func::Gone, ty: Type::U64, keys, span: Span::default() });
}

/// Does a probe add up when a warp leaves?
fn asks(probe: &Probe) -> bool {
    let leaves = probe.points.iter().any(|point| matches!(point, Tracepoint::KernelExit { .. }));
    let adds = probe.code.iter().any(|inst| matches!(inst.op, Op::Aggregate { .. }));
    probe.unit == Unit::Warp && leaves && adds
}
