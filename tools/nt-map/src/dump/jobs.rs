//! Lines are made on all cores, some thousand a job, and written in the order of the jobs.
//!
//! While one round of jobs is made into lines, the lines of the round before are written; so memory is bounded by two
//! rounds, however long the trace is.

use super::events;
use super::lines::{Field, Lines};
use nt_trace::ntm::Table;
use nt_trace::ntt::{Cells, KnownKernel, Piece, Reader, Records, Saves, Value};
use rayon::prelude::*;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

/// What is made by itself, and written in its turn.
pub(super) trait Job: Send + Sync {
    /// Appends its bytes; says how many units had no record.
    fn put(&self, out: &mut Vec<u8>) -> u64;
}

/// Some lines.
pub(super) struct Text<'s> {
    /// What they have in common.
    pub(super) lines: Arc<Lines>,
    /// What they are of.
    pub(super) rows: Rows<'s>,
}

/// A run of rows of one data frame.
pub(super) enum Rows<'s> {
    /// Of a map.
    Records(Arc<Records<'s>>, Range<u64>),
    /// Of an array with a capacity, of these units.
    Saves(Arc<Saves<'s>>, Range<u64>),
    /// Of a table.
    Cells {
        /// Its cells.
        cells: Cells<'s>,
        /// The kernel whose table it is.
        kernel: Arc<KnownKernel>,
        /// Which.
        index: usize,
        /// The device's ordinal.
        device: u32,
        /// Which units.
        units: Range<u64>,
    },
    /// Of a stream.
    Events {
        /// How they are read.
        reader: Arc<Reader>,
        /// Some of its chunks.
        piece: Piece<'s>,
        /// A row a lane?
        lanes: bool,
    },
}

/// Makes and writes lines.
pub(super) struct Press<'p, J> {
    out: &'p mut dyn Write,
    jobs: Vec<J>,
    round: usize,
    /// Lines that are to be written, and room that was used before.
    made: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    absent: u64,
}

impl<'p, J: Job> Press<'p, J> {
    /// Writes to `out`.
    pub(super) fn new(out: &'p mut dyn Write) -> Press<'p, J> {
        // More than threads, since not all jobs are of one size.
        let round = 4 * rayon::current_num_threads().clamp(1, 32);
        Press { out, jobs: Vec::new(), round, made: Vec::new(), spare: Vec::new(), absent: 0 }
    }

    /// Takes a job; it is done sooner or later.
    pub(super) fn take(&mut self, job: J) -> std::io::Result<()> {
        self.jobs.push(job);
        if self.jobs.len() < self.round { Ok(()) } else { self.turn() }
    }

    /// Makes the lines of all jobs at hand, and writes those that were made before.
    fn turn(&mut self) -> std::io::Result<()> {
        let jobs = std::mem::take(&mut self.jobs);
        let mut room = std::mem::take(&mut self.spare);
        room.resize_with(jobs.len().max(room.len()), Vec::new);
        let mut absent = 0;
        let mut written = Ok(());
        rayon::in_place_scope(|scope| {
            scope.spawn(|_| {
                let make = |(job, out): (&J, &mut Vec<u8>)| job.put(out);
                absent = jobs.par_iter().zip(room.par_iter_mut()).map(make).sum();
            });
            written = self.made.iter().try_for_each(|lines| self.out.write_all(lines));
        });
        written?;
        self.absent += absent;
        self.made.iter_mut().for_each(Vec::clear);
        self.spare = std::mem::replace(&mut self.made, room);
        Ok(())
    }

    /// Writes what is left; says how many units had no record.
    pub(super) fn finish(mut self) -> std::io::Result<u64> {
        self.turn()?;
        self.turn()?;
        self.out.flush()?;
        Ok(self.absent)
    }
}

impl Job for Text<'_> {
    fn put(&self, out: &mut Vec<u8>) -> u64 {
        let lines = &self.lines;
        match &self.rows {
            Rows::Records(records, units) => {
                let mut absent = 0;
                for unit in units.clone() {
                    match records.row(unit) {
                        Some(row) => lines.put(out, unit, |column| row.value(column).map(Field::Value)),
                        None => absent += 1,
                    }
                }
                absent
            }
            Rows::Saves(saves, units) => {
                let mut head = Vec::new();
                for unit in units.clone() {
                    head.clear();
                    lines.put_head(&mut head, unit);
                    for save in saves.of(unit) {
                        let cursor = saves.has_others().then(|| lines.cursor(save.cursor));
                        lines.put_save(out, &head, cursor, save.sequence, |column| {
                            save.row.value(column).map(Field::Value)
                        });
                    }
                }
                0
            }
            Rows::Cells { cells, kernel, index, device, units } => {
                let Some(table) = kernel.tables().get(*index) else { return 0 };
                for unit in units.clone() {
                    for (texts, value) in table.cells.iter().zip(cells.of(unit)) {
                        lines.put(out, unit, |column| cell_field(table, *device, texts, value, column));
                    }
                }
                0
            }
            Rows::Events { reader, piece, lanes } => {
                events::put(lines, reader, piece, *lanes, out);
                0
            }
        }
    }
}

/// One of the columns of a cell.
fn cell_field<'c>(
    table: &Table,
    device: u32,
    texts: &'c [String],
    value: Value,
    column: usize,
) -> Option<Field<'c>> {
    let key = match (table.persistent, column) {
        (true, 0) => return Some(Field::Value(Value::Unsigned(device.into()))),
        (true, column) => column - 1,
        (false, column) => column,
    };
    Some(texts.get(key).map_or(Field::Value(value), |text| Field::Text(text)))
}
