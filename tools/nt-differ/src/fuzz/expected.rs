//! What a measure of a probe made by chance should come to.
//!
//! ```text
//! inst:load.global { @t0[block] = count(); }        of every block, lanes that loaded from global memory
//! ```
//!
//! Lanes are known to the instruction. A group's passes are where the schedule was the plain one and the text says what
//! the point means there; elsewhere they are between what lanes need and what lanes there are.

use crate::counted::{By, Cells, Instruction, within};
use crate::fuzz::probe::{Form, Measure, Point, State};
use crate::judge::Case;
use crate::records;
use nt_vgpu::Count;

type Amount<'a> = dyn Fn(&Instruction, &Count) -> u64 + 'a;

impl Measure {
    fn by(&self) -> By {
        let of_the_launch = |key: &&str| matches!(*key, "block" | "warp" | "thread");
        if self.keys.iter().any(of_the_launch) { By::Block } else { By::Sm }
    }

    fn names(&self, instruction: &Instruction) -> Vec<String> {
        let name = |key: &&str| match *key {
            "op" => Some(instruction.opcode.clone()),
            "line" => Some(instruction.line.clone()),
            "kernel" => Some("k".to_owned()),
            _ => None,
        };
        self.keys.iter().filter_map(name).collect()
    }

    /// The groups of lanes, and the lanes, that came by an instruction for the measure's purposes, if it were meant.
    fn passes(&self, one: &Instruction, count: &Count) -> (u64, u64) {
        match self.reach {
            true => (count.groups_there, count.lanes_there),
            false => one.passes(count),
        }
    }

    /// Lanes that came by this instruction and meant the point.
    fn lanes(&self, one: &Instruction, count: &Count) -> u64 {
        let (_, lanes) = self.passes(one, count);
        let is_meant = match self.point {
            Point::Entry | Point::Exit => false,
            Point::Any => true,
            Point::Branch => one.is_branch(),
            Point::Ptx(glob) => nt_ir::glob_matches(glob, &one.opcode),
            Point::Access(classes, space) => match access(&one.opcode) {
                Some((class, size)) if classes.contains(&class) => match space {
                    // Those whose address led there.
                    Some(space) => return count.bytes[space as usize] / size,
                    None => true,
                },
                _ => false,
            },
        };
        if is_meant { lanes } else { 0 }
    }

    /// Is it the same for all lanes of a group whether the point is meant?
    fn is_told(&self, opcode: &str) -> bool {
        let is_generic =
            || !["global", "shared", "local", "const", "param"].iter().any(|space| opcode.contains(space));
        !matches!(self.point, Point::Access(_, Some(_))) || !is_generic()
    }

    /// What was counted of the original, in cells like the table's; `all` is a block's where the point is no instruction.
    fn counted(&self, case: &Case<'_>, amount: &Amount<'_>, all: u64) -> Cells {
        match self.point {
            // All threads begin, and all end, since nobody traps.
            Point::Entry | Point::Exit => self.of_blocks(case, all),
            _ => case.counted.cells(self.by(), &|one| self.names(one), amount),
        }
    }

    /// Holds what this measure recorded against what was counted.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&self, case: &Case<'_>) -> Result<(), String> {
        let n = self.number;
        let table = |name: String| records::table(case.probed, case.job, case.ran, &name);
        let what = format!("measure {n}, {:?}", self.form);
        let lanes = |each: u64| {
            let amount = move |one: &Instruction, count: &Count| self.lanes(one, count).wrapping_mul(each);
            self.counted(case, &amount, case.job.threads().wrapping_mul(each))
        };
        let bytes = || {
            let Point::Access(classes, space) = &self.point else { return Cells::new() };
            let amount = |one: &Instruction, count: &Count| match access(&one.opcode) {
                Some((class, size)) if classes.contains(&class) => match space {
                    Some(space) => count.bytes[*space as usize],
                    None => count.lanes * size,
                },
                _ => 0,
            };
            case.counted.cells(self.by(), &|one| self.names(one), &amount)
        };
        match &self.form {
            Form::Count | Form::Sum(_) | Form::Both(_) | Form::Choice(_) => {
                let each = if let Form::Sum(amount) = self.form { amount } else { 1 };
                let mut found = table(format!("t{n}"))?;
                if matches!(self.form, Form::Both(_) | Form::Choice(_)) {
                    add(&mut found, table(format!("t{n}x"))?);
                }
                match self.warp {
                    false => case.counted.expect(&what, self.by(), lanes(each), found),
                    true => self.check_groups(case, &what, each, &found),
                }
            }
            Form::Bytes => case.counted.expect(&what, self.by(), bytes(), table(format!("t{n}"))?),
            Form::State(State { bytes: of_bytes, amount, also, init, .. }) => {
                let mut counted = if *of_bytes { bytes() } else { lanes(*amount) };
                let stores = |one: &Instruction, count: &Count| match access(&one.opcode) {
                    Some(("store", _)) => count.lanes * also,
                    _ => 0,
                };
                add(&mut counted, case.counted.cells(self.by(), &|_| Vec::new(), &stores));
                add(&mut counted, self.of_blocks(case, case.job.threads() * init));
                case.counted.expect(&what, self.by(), counted, table(format!("t{n}"))?)
            }
            Form::Record => {
                let records = records::map(case.probed, case.job, case.ran, &format!("m{n}"))?;
                let mut found = Cells::new();
                for (thread, record) in (0u64..).zip(&records.all) {
                    let in_block = thread % case.job.threads();
                    match record.as_deref() {
                        Some([count, lane]) if *lane == in_block % 32 => {
                            *found.entry((thread / records.of_a_block, Vec::new())).or_default() += count;
                        }
                        other => return Err(format!("{what}: thread {thread} has {other:?}")),
                    }
                }
                found.retain(|_, sum| *sum != 0);
                let by_block = Measure { keys: vec!["block"], ..self.clone() };
                let amount = |one: &Instruction, count: &Count| self.lanes(one, count);
                let counted = by_block.counted(case, &amount, case.job.threads());
                case.counted.expect(&what, By::Block, counted, found)
            }
            Form::Arms(_) => {
                let mut found = table(format!("t{n}"))?;
                add(&mut found, table(format!("t{n}x"))?);
                case.counted.expect(&what, self.by(), lanes(1), found)
            }
            Form::Masks(_) => {
                let [a, b] = ["a", "b"].map(|letter| table(format!("t{n}{letter}")));
                case.counted.expect(&what, By::Block, b?, a?)
            }
            Form::Addresses(_) => {
                let [a, b, c] = ["a", "b", "c"].map(|letter| table(format!("t{n}{letter}")));
                let (a, b, c) = (a?, b?, c?);
                case.counted.expect(&format!("{what} of threads"), By::Block, a.clone(), b)?;
                case.counted.expect(&format!("{what} in states"), By::Block, a, c)
            }
        }
    }

    /// The same of every block, of no instruction.
    fn of_blocks(&self, case: &Case<'_>, amount: u64) -> Cells {
        let mut cells = Cells::new();
        for block in 0..case.job.blocks() {
            let unit = match self.by() {
                By::Block => block,
                By::Sm => case.counted.sm(block).map_or(0, u64::from),
            };
            *cells.entry((unit, Vec::new())).or_default() += amount;
        }
        cells.retain(|_, sum| *sum != 0);
        cells
    }

    /// Groups are known where the schedule was the plain one and the space is told; elsewhere between what lanes need
    /// and what lanes there are.
    fn check_groups(&self, case: &Case<'_>, what: &str, each: u64, found: &Cells) -> Result<(), String> {
        let warps = case.job.threads().div_ceil(32);
        let threads = case.job.threads();
        let is_exit = self.point == Point::Exit;
        let least = |one: &Instruction, count: &Count| {
            let lanes = self.lanes(one, count);
            let groups = if case.is_plain && self.is_told(&one.opcode) && lanes != 0 {
                self.passes(one, count).0
            } else {
                0
            };
            lanes.div_ceil(32).max(groups).wrapping_mul(each)
        };
        let most = |one: &Instruction, count: &Count| {
            let lanes = self.lanes(one, count);
            let groups = if case.is_plain { self.passes(one, count).0 } else { lanes };
            lanes.min(groups).wrapping_mul(each)
        };
        let least = self.counted(case, &least, warps.wrapping_mul(each));
        // Lanes may leave one by one.
        let ways_out = if is_exit { threads } else { warps };
        let most = self.counted(case, &most, ways_out.wrapping_mul(each));
        within(what, &least, found, &most)
    }
}

fn add(to: &mut Cells, from: Cells) {
    for (key, sum) in from {
        *to.entry(key).or_default() += sum;
    }
}

/// The class of an instruction that accesses memory as `fuzz/kernel.rs` writes it, and the bytes of a lane.
fn access(opcode: &str) -> Option<(&'static str, u64)> {
    let mut steps = opcode.split('.');
    let class = match steps.next()? {
        "ld" => "load",
        "st" => "store",
        "atom" => "atomic",
        "red" => "reduce",
        _ => return None,
    };
    let (mut elements, mut size) = (1, 0);
    for step in steps {
        match step {
            "v2" => elements = 2,
            "v4" => elements = 4,
            "u8" | "s8" => size = 1,
            "u16" => size = 2,
            "u32" | "b32" => size = 4,
            "u64" => size = 8,
            _ => {}
        }
    }
    Some((class, elements * size))
}
