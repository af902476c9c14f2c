//! What aggregations come to: the cells of many data frames, added up by their keys, and the text that shows them.
//!
//! ```text
//! @bytes[st.global.f32]: 1024
//! @bytes[ld.global.f32]: 4096
//!
//! @sync[block]: 12288 in 3 launches
//!   kernel  launches  total  a launch  a block: least  median  most
//!   copy           1   4096      4096             512     512   512
//!   fill           2   8192      4096             512     512   512
//! ```
//!
//! A table whose cells the launch does not shape is a list of rows: what has one key is one row, over all kernels,
//! launches, devices and processes, unless they are keys; the largest is last. Where an index of the launch is a key (`block`), cells of
//! different kernels have nothing in common but their number, so these are told a kernel: sums, and how evenly they are
//! spread over the units. `docs/report.md` defines every number.
//!
//! Promises: the order in which frames are added changes nothing; sums do not wrap (cells do, at 2⁶⁴ each).

mod text;

use crate::Distribution;
use crate::ntm::{Func, Key, KeyKind, Table, Type, Unit};
use crate::ntt::{CellBatch, Cells, Disagreement, Mismatch, Value};
use std::collections::BTreeMap;

/// All that was aggregated.
#[derive(Debug, Clone, Default)]
pub struct Aggregates {
    tables: BTreeMap<Shape, Sums>,
}

/// Tables of one name, function and list of keys are one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    name: String,
    keys: Vec<Key>,
    func: Func,
    ty: Type,
    unit: Unit,
}

/// What a table came to.
#[derive(Debug, Clone, Default)]
struct Sums {
    /// By all keys, where the launch shapes none.
    rows: BTreeMap<Vec<Part>, i128>,
    /// Where it does, by the texts that sites tell, and the kernel.
    spreads: BTreeMap<(Vec<String>, String), Spread>,
    /// Frames, each of one launch.
    launches: u64,
    /// Units that had no cells.
    dropped: u64,
}

/// One key of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// From the site.
    Text(String),
    /// An index.
    Number(u64),
}

/// What one cell of all units of one kernel came to.
#[derive(Debug, Clone, Default)]
struct Spread {
    total: i128,
    /// The sum of each launch.
    launches: Vec<i128>,
    /// The cells of all units of all launches.
    units: Distribution,
}

/// A data frame that was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Its data is too short.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// It is of another launch than it says.
    #[error(transparent)]
    Disagreement(#[from] Disagreement),
}

impl Aggregates {
    /// Is there no table at all?
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Adds the cells of a data frame.
    ///
    /// # Errors
    /// They do not fit the table or the launch; nothing was added then.
    pub fn add(&mut self, batch: &CellBatch<'_>) -> Result<(), Unfit> {
        let Some(table) = batch.table().filter(|table| table.func != Func::Gone) else { return Ok(()) };
        let cells = batch.cells()?;
        batch.agree()?;
        let sums = self.tables.entry(Shape::of(table)).or_default();
        sums.dropped = sums.dropped.saturating_add(cells.dropped());
        sums.launches += 1;
        if table.unit == Unit::Sm {
            sums.add_rows(table, cells);
        } else {
            sums.add_spreads(table, cells, &batch.kernel.name);
        }
        Ok(())
    }
}

impl Shape {
    fn of(table: &Table) -> Shape {
        let Table { name, keys, func, ty, unit, .. } = table;
        Shape { name: name.clone(), keys: keys.clone(), func: *func, ty: *ty, unit: *unit }
    }
}

impl Sums {
    fn add_rows(&mut self, table: &Table, cells: Cells<'_>) {
        let separate = table.keys.iter().any(|key| key.kind == KeyKind::Cu);
        if separate {
            for unit in 0..cells.stored() {
                let values = cells.of(unit).filter_map(Value::to_integer);
                self.add_row_each(table, Some(unit), values);
            }
            return;
        }
        // What is kept in copies is one cell to the program: it wraps as one would.
        let mut sums = vec![0u64; table.cells.len()];
        for unit in 0..cells.stored() {
            for (sum, value) in sums.iter_mut().zip(cells.of(unit)) {
                *sum = sum.wrapping_add(value.to_integer().unwrap_or_default() as u64);
            }
        }
        let signed = table.ty == Type::S64;
        let values =
            sums.into_iter().map(|sum| if signed { i128::from(sum as i64) } else { i128::from(sum) });
        self.add_row_each(table, None, values);
    }

    /// Adds each of the values of one unit's cells to its row.
    fn add_row_each(&mut self, table: &Table, unit: Option<u64>, values: impl Iterator<Item = i128>) {
        for (texts, value) in table.cells.iter().zip(values) {
            let mut texts = texts.iter();
            let parts = table.keys.iter().filter_map(|key| match key.kind {
                KeyKind::Site => texts.next().cloned().map(Part::Text),
                KeyKind::Unit | KeyKind::Cu => unit.map(Part::Number),
            });
            *self.rows.entry(parts.collect()).or_default() += value;
        }
    }

    fn add_spreads(&mut self, table: &Table, cells: Cells<'_>, kernel: &str) {
        let mut spreads: Vec<(i128, Distribution)> = vec![Default::default(); table.cells.len()];
        for unit in 0..cells.stored() {
            for ((sum, units), value) in spreads.iter_mut().zip(cells.of(unit)) {
                *sum += value.to_integer().unwrap_or_default();
                units.add(value);
            }
        }
        for (texts, (sum, units)) in table.cells.iter().zip(spreads) {
            let spread = self.spreads.entry((texts.clone(), kernel.to_owned())).or_default();
            spread.total += sum;
            spread.launches.push(sum);
            spread.units.merge(&units);
        }
    }

    /// What all rows come to.
    fn total(&self) -> i128 {
        self.rows.values().sum::<i128>() + self.spreads.values().map(|spread| spread.total).sum::<i128>()
    }
}

impl Spread {
    /// Twice the median of the launches' sums: of an even number, the sum of the two in the middle.
    fn twice_the_median(&self) -> i128 {
        let mut sums = self.launches.clone();
        sums.sort_unstable();
        let at = |index: usize| sums.get(index).copied().unwrap_or_default();
        match sums.len() {
            0 => 0,
            n => at((n - 1) / 2) + at(n / 2),
        }
    }
}
