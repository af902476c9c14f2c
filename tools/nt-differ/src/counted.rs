//! What the software GPU counted while the *original* ran, summed up as the cells of a table are.

use crate::device::{Job, Part, Ran, Text};
use nt_ptx::syntax::{Body, Function};
use nt_vgpu::{Count, Family, Operation};
use std::collections::{BTreeMap, BTreeSet};

/// What is not 0: by block or SM, and by what the sites are called.
pub type Cells = BTreeMap<(u64, Vec<String>), u64>;

/// An instruction of the kernel that ran, or of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Index into the program's counts.
    pub index: usize,
    /// What it does, as the software GPU decoded it.
    pub operation: Operation,
    /// Its opcode with all modifiers.
    pub opcode: String,
    /// What `line` calls it: `kernels.cu:12`, or `ptx:184` without lines of a source.
    pub line: String,
}

impl Instruction {
    /// Is it a jump? Probes of these run for all lanes that come to it, of others for those whose guard holds.
    pub fn is_branch(&self) -> bool {
        matches!(self.opcode.split('.').next(), Some("bra" | "brx"))
    }

    /// The groups of lanes, and the lanes, for which a probe runs where none says `before` or `reach`.
    pub fn passes(&self, count: &Count) -> (u64, u64) {
        match self.is_branch() {
            true => (count.groups_there, count.lanes_there),
            false => (count.groups, count.lanes),
        }
    }
}

/// The counts of a run.
#[derive(Debug)]
pub struct Counted<'r> {
    /// The instructions of the kernel and of functions.
    pub instructions: Vec<Instruction>,
    job: &'r Job,
    parts: &'r [Part],
}

/// What tells the units of a table apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Something of the launch: a block, or what is in one.
    Block,
    /// Nothing: every SM has cells of its own.
    Sm,
}

impl<'r> Counted<'r> {
    /// The counts of a kernel, and of the functions that it called: all that ran was called by it.
    pub fn new(text: &Text<'_>, job: &'r Job, ran: &'r Ran) -> Self {
        let own = |f: &&Function| !f.is_entry || text.module.at(f.name) == job.kernel;
        let bodies = text.module.functions.iter().filter(own).filter_map(|function| function.body.as_ref());
        let bodies: Vec<&Body> = bodies.collect();
        let body = |statement: u32| bodies.iter().find(|body| body.statements.contains(&statement));
        let lines = Lines::of(text.text);
        let instructions = text.program.places().iter().enumerate();
        let instructions = instructions
            // Where lanes leave at the closing brace is no instruction.
            .filter(|(_, place)| &*place.opcode != "}")
            .filter_map(|(index, place)| {
                let from = body(place.statement)?.span.start as usize;
                let line = lines.name(from, place.span.start as usize, place.line);
                let operation = text.program.operations().get(index)?.clone();
                Some(Instruction { index, operation, opcode: place.opcode.to_string(), line })
            });
        Counted { instructions: instructions.collect(), job, parts: &ran.parts }
    }

    /// Adds up what `amount` says of each instruction's counts, in cells that `names` names.
    pub fn cells(
        &self,
        by: By,
        names: &dyn Fn(&Instruction) -> Vec<String>,
        amount: &dyn Fn(&Instruction, &Count) -> u64,
    ) -> Cells {
        let mut cells = Cells::new();
        for instruction in &self.instructions {
            let names = names(instruction);
            for (number, part) in (0..).zip(self.parts) {
                let count = part.stats.counts.get(instruction.index).copied().unwrap_or_default();
                let sum = amount(instruction, &count);
                if sum != 0 {
                    let key = match by {
                        By::Block => number,
                        By::Sm => u64::from(part.sm),
                    };
                    *cells.entry((key, names.clone())).or_default() += sum;
                }
            }
        }
        cells
    }

    /// Lanes that left functions, by returning or for good, in cells that the functions name. At a closing brace too,
    /// which is no instruction.
    pub fn leaving(&self, text: &Text<'_>) -> Cells {
        let functions = text.module.functions.iter().filter(|function| !function.is_entry);
        let mut cells = Cells::new();
        for (function, body) in functions.filter_map(|function| Some((function, function.body.as_ref()?))) {
            let places = text.program.places().iter().zip(text.program.operations()).enumerate();
            // The brace counts as what follows the body.
            let own = places.filter(|(_, (place, _))| {
                body.statements.contains(&place.statement)
                    || (place.statement == body.statements.end && &*place.opcode == "}")
            });
            for (index, (_, operation)) in own {
                if !matches!(operation.family, Family::Return | Family::Exit) {
                    continue;
                }
                for part in self.parts {
                    let lanes = part.stats.counts.get(index).map_or(0, |count| count.lanes);
                    if lanes != 0 {
                        let key = (u64::from(part.sm), vec![text.module.at(function.name).to_owned()]);
                        *cells.entry(key).or_default() += lanes;
                    }
                }
            }
        }
        cells
    }

    /// The counts, by cluster.
    pub fn parts(&self) -> &'r [Part] {
        self.parts
    }

    /// The SM of a block.
    pub fn sm(&self, block: u64) -> Option<u32> {
        self.has_blocks().then(|| self.parts.get(block as usize).map(|part| part.sm)).flatten()
    }

    /// Are counts known by block? Not where blocks run together, as clusters do.
    pub fn has_blocks(&self) -> bool {
        self.parts.len() as u64 == self.job.blocks()
    }

    /// Cells by block, as far as counts are known by block.
    pub fn as_known(&self, cells: Cells) -> Cells {
        if self.has_blocks() {
            return cells;
        }
        let mut known = Cells::new();
        for ((_, names), sum) in cells {
            *known.entry((0, names)).or_default() += sum;
        }
        known
    }

    /// Holds a table against what was counted.
    ///
    /// # Errors
    /// The first cell in which they differ.
    pub fn expect(&self, what: &str, by: By, counted: Cells, found: Cells) -> Result<(), String> {
        let (counted, found) = match by {
            By::Block => (self.as_known(counted), self.as_known(found)),
            By::Sm => (counted, found),
        };
        let keys: BTreeSet<_> = counted.keys().chain(found.keys()).collect();
        for key in keys {
            let of = |cells: &Cells| cells.get(key).copied().unwrap_or(0);
            let (counted, found) = (of(&counted), of(&found));
            if counted != found {
                let (unit, names) = key;
                let unit = if by == By::Block { format!("block {unit}") } else { format!("SM {unit}") };
                return Err(format!("{what} of {unit} {names:?} is {found}, counted were {counted}"));
            }
        }
        Ok(())
    }
}

/// Holds each cell of what was found to bounds.
///
/// # Errors
/// The first cell outside of them.
pub fn within(what: &str, least: &Cells, found: &Cells, most: &Cells) -> Result<(), String> {
    for key in least.keys().chain(found.keys()) {
        let of = |cells: &Cells| cells.get(key).copied().unwrap_or(0);
        let (least, found, most) = (of(least), of(found), of(most));
        if !(least..=most).contains(&found) {
            return Err(format!("{what} of {key:?} is {found}, which is not from {least} to {most}"));
        }
    }
    Ok(())
}

/// The `.file` and `.loc` lines of a text, found by reading its lines.
struct Lines<'t> {
    files: BTreeMap<&'t str, &'t str>,
    /// Offset, file, line.
    locs: Vec<(usize, &'t str, &'t str)>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let mut lines = Lines { files: BTreeMap::new(), locs: Vec::new() };
        for line in text.split_inclusive('\n') {
            // Both are slices of the text.
            let offset = line.as_ptr() as usize - text.as_ptr() as usize;
            let mut words = line.split_whitespace();
            match words.next() {
                Some(".file") => {
                    let (number, name) = (words.next(), line.split('"').nth(1));
                    lines.files.extend(number.zip(name));
                }
                Some(".loc") => {
                    if let (Some(file), Some(line)) = (words.next(), words.next()) {
                        lines.locs.push((offset, file, line));
                    }
                }
                _ => {}
            }
        }
        lines
    }

    /// What the instruction at `at` of a body that begins at `from` is called.
    fn name(&self, from: usize, at: usize, line: u32) -> String {
        let before = self.locs.partition_point(|(offset, ..)| *offset < at);
        let last = self.locs.get(..before).and_then(|locs| locs.last()).filter(|(offset, ..)| *offset > from);
        match last {
            Some((_, file, line)) => format!("{}:{line}", self.files.get(file).copied().unwrap_or("")),
            None => format!("ptx:{line}"),
        }
    }
}
