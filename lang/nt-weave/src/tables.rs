//! Gives the tables of a kernel their cells: one for each combination of what its sites are called.
//!
//! ```text
//! @bytes[block, op] = sum(bytes)      at `ld.global.f32`, `ld.global.f32`, `st.global.f32`
//! cells: ["ld.global.f32"], ["st.global.f32"]                      cell 0, 0, 1 of each block; blocks 32 bytes apart
//! ```
//!
//! The cell of a site is known when the kernel is woven, so that its address takes no arithmetic; cells are numbered
//! in the order of the text. A table without a key from the launch is replicated by multiprocessor, since one cell for
//! the device is 6.8 times slower in the mean (docs/injection.md); readers add the copies up.

use crate::Refused;
use crate::bodies::{Closer, Site};
use nt_diag::Diagnostic;
use nt_ir::layout::table_stride;
use nt_ir::program::{Func, Key, Op, Program, TableId, Type, Unit};
use std::collections::BTreeMap;

/// A table that a kernel adds to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedTable {
    /// Index into the program's tables.
    pub table: usize,
    /// Its name, without the `@`.
    pub name: String,
    /// What is done to a cell.
    pub func: Func,
    /// The type of a cell.
    pub ty: Type,
    /// What tells the cells apart.
    pub keys: Vec<Key>,
    /// Whose cells they are, by a key of the launch; without one every multiprocessor has its own, which outlive
    /// launches.
    pub unit: Option<Unit>,
    /// The cells of a unit: for each, a text for every key that sites tell, in their order.
    pub cells: Vec<Vec<String>>,
}

impl UsedTable {
    /// Bytes from the cells of a unit to those of the next.
    pub fn stride(&self) -> u32 {
        table_stride(&self.keys, self.cells.len())
    }
}

/// The cells of a table, while they are numbered.
#[derive(Default)]
struct Cells {
    numbers: BTreeMap<Vec<String>, u32>,
    list: Vec<Vec<String>>,
}

/// A claim's strides are below 2^24.
const MOST_CELLS: usize = (1 << 24) / 8 - 1;

/// The table in which lanes that leave apart count themselves.
pub(crate) fn gone(program: &Program) -> Option<TableId> {
    let table = program.tables.iter().position(|table| table.func == Func::Gone)?;
    u32::try_from(table).ok().map(TableId)
}

/// Numbers the cells, and tells every body its own.
pub(crate) fn number(closer: &Closer<'_>, sites: &mut [Site<'_>]) -> Result<Vec<UsedTable>, Refused> {
    let program = closer.program;
    // Of each table, the number of each cell, and the cells by number.
    let mut cells: BTreeMap<TableId, Cells> = BTreeMap::new();
    let gone = gone(program);
    for (number, site) in (0..).zip(&mut *sites) {
        let mut told: Vec<Vec<(TableId, u32)>> = Vec::with_capacity(site.bodies.len());
        for body in &site.bodies {
            let mut of_body: Vec<(TableId, u32)> = Vec::new();
            for inst in &body.code.code {
                let Op::Aggregate { table, .. } = inst.op else { continue };
                if of_body.iter().any(|(known, _)| *known == table) {
                    continue;
                }
                let names = closer.names(site, body, number, table);
                let Cells { numbers, list } = cells.entry(table).or_default();
                let next = list.len() as u32;
                let cell = *numbers.entry(names.clone()).or_insert_with(|| {
                    list.push(names);
                    next
                });
                if MOST_CELLS < list.len() {
                    let name = program.tables.get(table.0 as usize).map_or("", |table| &table.name);
                    let message = format!("kernel `{}` cannot be probed", closer.kernel);
                    let what = format!("`@{name}` has more than {MOST_CELLS} cells");
                    return Err(Box::new(Diagnostic::error("map-bound", closer.at, message).label(what)));
                }
                of_body.push((table, cell));
            }
            if let Some(table) = gone.filter(|_| body.is_of_last()) {
                cells.entry(table).or_default().list = vec![Vec::new()];
                of_body.push((table, 0));
            }
            told.push(of_body);
        }
        for (body, cells) in site.bodies.iter_mut().zip(told) {
            body.cells = cells;
        }
    }
    let used = cells.into_iter().filter_map(|(id, Cells { list: cells, .. })| {
        let table = program.tables.get(id.0 as usize)?;
        let unit = table.keys.iter().find_map(|key| match key {
            Key::Unit(unit) => Some(*unit),
            Key::Site(_) | Key::Bounded(_) => None,
        });
        Some(UsedTable {
            table: id.0 as usize,
            name: table.name.clone(),
            func: table.func,
            ty: table.ty,
            keys: table.keys.clone(),
            unit,
            cells,
        })
    });
    Ok(used.collect())
}
