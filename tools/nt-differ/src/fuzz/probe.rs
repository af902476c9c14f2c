//! Probe programs made by chance, of what compiles, with what each should come to.
//!
//! ```text
//! inst:load.global { @t0[block, op] = count(); }                   lanes that executed such a load, by block and opcode
//! state s1: u64; inst:store { s1 += bytes; } kernel:exit { @t1[warp] = sum(s1); }        bytes that they stored
//! inst:access /lane < 7/ { @t2 = count(); }  inst:access /!(lane < 7)/ { @t2x = count(); }        together, all lanes
//! ```
//!
//! A program is a list of such *measures*, each with names of its own.

use crate::counted::{By, Cells, Counted, Instruction, within};
use crate::device::Job;
use crate::judge::Case;
use crate::random::Random;
use crate::records;
use nt_vgpu::{Count, Space};
use std::fmt::Write;

/// Something that a program measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Its number, by which its names are its own.
    number: usize,
    point: Point,
    /// Once a group of lanes, or in every lane?
    warp: bool,
    keys: Vec<&'static str>,
    form: Form,
}

/// Where.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Point {
    Entry,
    Exit,
    /// Memory of some kinds, in one space or any.
    Access(&'static [&'static str], Option<Space>),
    /// By its spelling.
    Ptx(&'static str),
    Any,
}

/// How.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// `@t = count();`
    Count,
    /// `@t = sum(3);`
    Sum(u64),
    /// `@t = sum(bytes);`
    Bytes,
    /// `s += bytes;`, or a constant, and `@t = sum(s);` at the exit; of 32 bits or 64.
    State { bytes: bool, amount: u64, narrow: bool },
    /// `s++;`, and a record of it a thread at the exit.
    Record,
    /// Under a predicate, and under its contrary.
    Both(&'static str),
    /// `if c { a += 1; } else { b += 1; }`, and sums of both at the exit.
    Arms(&'static str),
    /// Addresses added up in cells of blocks, of threads, and in states.
    Addresses,
}

/// Groups of lanes that came by are known where the schedule was the plain one.
type Amount<'a> = dyn Fn(&Instruction, &Count) -> u64 + 'a;

const LOAD: &[&str] = &["load"];
const STORE: &[&str] = &["store"];
const ATOMIC: &[&str] = &["atomic", "reduce"];
const ACCESS: &[&str] = &["load", "store", "atomic", "reduce"];

/// Predicates that may differ between lanes.
const VARYING: [&str; 6] = [
    "lane < 7",
    "tid.x % 2 == 0",
    "thread & 3 == 1",
    "lane % 5 == 2 || cu == 1",
    "tid.y > 0",
    "min(lane, 3) == lane",
];
/// Predicates that are the same for a group.
const UNIFORM: [&str; 6] =
    ["cu == 0", "ctaid.x % 2 == 0", "block & 1 == 0", "wid == 0", "nctaid.y > 1", "warp & 2 == 0 && true"];
/// Of accesses.
const OF_ACCESS: [&str; 4] = ["width == 32", "bytes > 4", "line % 2 == 0", "pred && elems * width > 32"];
/// Of accesses with an address, which those to parameters lack.
const OF_ADDRESS: [&str; 3] = ["addr & 16 == 0", "addr as u32 & 4 == 4", "bytes == 4 && addr & 8 == 0"];

/// A program by chance.
pub fn program(random: &mut Random) -> Vec<Measure> {
    (0..1 + random.below(4) as usize).map(|number| measure(number, random)).collect()
}

fn measure(number: usize, random: &mut Random) -> Measure {
    let spaces =
        [None, None, Some(Space::Global), Some(Space::Global), Some(Space::Shared), Some(Space::Local)];
    let point = match random.below(10) {
        0 => Point::Entry,
        1 => Point::Exit,
        2..=6 => Point::Access(random.of(&[LOAD, STORE, ATOMIC, ACCESS]), random.of(&spaces)),
        7..=8 => Point::Ptx(random.of(&[
            "*.u32",
            "mad*",
            "ld.*",
            "set?.*",
            "st.*.v?.*",
            "and.b32",
            "bar.*",
            "[a-z]*",
            "xor.*",
        ])),
        _ => Point::Any,
    };
    let is_access = matches!(point, Point::Access(..));
    let has_address = matches!(point, Point::Access(_, Some(_)));
    let mut warp = random.once_in(2);
    let form = match random.below(10) {
        0..=2 => Form::Count,
        3 => Form::Sum(random.of(&[0, 1, 3, 1 << 33])),
        4 if is_access => Form::Bytes,
        5..=6 => Form::State {
            bytes: is_access && random.once_in(2),
            amount: random.of(&[1, 4, 12]),
            narrow: random.once_in(2),
        },
        7 => Form::Record,
        8 if has_address && random.once_in(2) => Form::Addresses,
        8 => Form::Arms(random.of(&VARYING)),
        _ if warp => Form::Both(random.of(&UNIFORM)),
        _ if has_address && random.once_in(2) => Form::Both(random.of(&OF_ADDRESS)),
        _ if is_access && random.once_in(2) => Form::Both(random.of(&OF_ACCESS)),
        _ => Form::Both(if random.once_in(2) { random.of(&VARYING) } else { random.of(&UNIFORM) }),
    };
    // What varies between lanes is no warp's, and what states hold is each lane's own.
    if !matches!(form, Form::Count | Form::Sum(_) | Form::Both(_)) {
        warp = false;
    }
    let by_site = is_access || matches!(point, Point::Ptx(_) | Point::Any);
    let by_site =
        by_site && !matches!(form, Form::State { .. } | Form::Record | Form::Arms(_) | Form::Addresses);
    let mut keys = Vec::new();
    if random.once_in(2) {
        keys.extend(match warp {
            true => [random.of(&["block", "warp", "cu"])],
            false => [random.of(&["block", "warp", "thread", "cu"])],
        });
    }
    for key in ["op", "line", "kernel"] {
        if by_site && random.once_in(3) {
            keys.push(key);
        }
    }
    Measure { number, point, warp, keys, form }
}

/// The text of a program.
pub fn text(measures: &[Measure]) -> String {
    let mut text = String::new();
    for measure in measures {
        measure.write(&mut text);
    }
    text
}

impl Measure {
    fn write(&self, text: &mut String) {
        let n = self.number;
        let point = match &self.point {
            Point::Entry => "kernel:entry".to_owned(),
            Point::Exit => "kernel:exit".to_owned(),
            Point::Access(classes, space) => {
                let space = space.map_or(String::new(), |space| format!(".{}", space.word()));
                format!("inst:{}{space}", classes.join("|"))
            }
            Point::Ptx(glob) => format!("ptx:\"{glob}\""),
            Point::Any => "inst:*".to_owned(),
        };
        let unit = if self.warp { "warp " } else { "" };
        let keys = if self.keys.is_empty() { String::new() } else { format!("[{}]", self.keys.join(", ")) };
        // Writing to a String cannot fail.
        let _ = match &self.form {
            Form::Count => writeln!(text, "{unit}{point} {{ @t{n}{keys} = count(); }}"),
            Form::Sum(amount) => writeln!(text, "{unit}{point} {{ @t{n}{keys} = sum({amount}); }}"),
            Form::Bytes => writeln!(text, "{unit}{point} {{ @t{n}{keys} = sum(bytes); }}"),
            Form::State { bytes, amount, narrow } => {
                let ty = if *narrow { "u32" } else { "u64" };
                let amount = if *bytes { "bytes".to_owned() } else { amount.to_string() };
                writeln!(
                    text,
                    "state s{n}: {ty};\n{point} {{ s{n} += {amount}; }}\nkernel:exit {{ @t{n}{keys} = sum(s{n}); }}"
                )
            }
            Form::Record => writeln!(
                text,
                "map m{n}: array<thread> {{ n: u32, lane: u32 }}\nstate s{n}: u32;\n{point} {{ s{n}++; }}\n\
                 kernel:exit {{ m{n}.save(s{n}, lane); }}"
            ),
            Form::Both(predicate) => writeln!(
                text,
                "{unit}{point} /{predicate}/ {{ @t{n}{keys} = count(); }}\n\
                 {unit}{point} /!({predicate})/ {{ @t{n}x{keys} = count(); }}"
            ),
            Form::Arms(condition) => writeln!(
                text,
                "state s{n}: u32;\nstate s{n}x: u32;\n\
                 {point} {{ if {condition} {{ s{n} += 1; }} else {{ s{n}x += 1; }} }}\n\
                 kernel:exit {{ @t{n}{keys} = sum(s{n}); @t{n}x{keys} = sum(s{n}x); }}"
            ),
            Form::Addresses => writeln!(
                text,
                "state s{n}: u64;\n{point} {{ @t{n}a[block] = sum(addr & 0xfff); @t{n}b[thread] = sum(addr & 0xfff); \
                 s{n} += addr & 0xfff; }}\nkernel:exit {{ @t{n}c[block] = sum(s{n}); }}"
            ),
        };
    }

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

    /// Lanes that came by this instruction and meant the point.
    fn lanes(&self, instruction: &Instruction, count: &Count) -> u64 {
        let opcode = &instruction.opcode;
        match &self.point {
            Point::Entry | Point::Exit => 0,
            Point::Any => count.lanes,
            Point::Ptx(glob) => {
                if nt_ir::glob_matches(glob, opcode) {
                    count.lanes
                } else {
                    0
                }
            }
            Point::Access(classes, space) => match access(opcode) {
                Some((class, size)) if classes.contains(&class) => match space {
                    // Those whose address led there.
                    Some(space) => count.bytes[*space as usize] / size,
                    None => count.lanes,
                },
                _ => 0,
            },
        }
    }

    /// Is it the same for all lanes of a group whether the point is meant?
    fn is_told(&self, opcode: &str) -> bool {
        let is_generic =
            || !["global", "shared", "local", "const", "param"].iter().any(|space| opcode.contains(space));
        !matches!(self.point, Point::Access(_, Some(_))) || !is_generic()
    }

    /// What was counted of the original, in cells like the table's.
    fn counted(&self, counted: &Counted<'_>, job: &Job, amount: &Amount<'_>, threads: u64) -> Cells {
        match self.point {
            // All threads begin, and all end, since nobody traps.
            Point::Entry | Point::Exit => {
                let mut cells = Cells::new();
                for block in 0..job.blocks() {
                    let unit = match self.by() {
                        By::Block => block,
                        By::Sm => counted.sm(block).map_or(0, u64::from),
                    };
                    *cells
                        .entry((
                            unit,
                            self.keys
                                .iter()
                                .filter(|key| **key == "kernel")
                                .map(|_| "k".to_owned())
                                .collect(),
                        ))
                        .or_default() += threads;
                }
                cells.retain(|_, sum| *sum != 0);
                cells
            }
            _ => counted.cells(self.by(), &|one| self.names(one), amount),
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
            self.counted(case.counted, case.job, &amount, case.job.threads().wrapping_mul(each))
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
            Form::Count | Form::Sum(_) | Form::Both(_) => {
                let each = if let Form::Sum(amount) = self.form { amount } else { 1 };
                let mut found = table(format!("t{n}"))?;
                if let Form::Both(_) = self.form {
                    add(&mut found, table(format!("t{n}x"))?);
                }
                match self.warp {
                    false => case.counted.expect(&what, self.by(), lanes(each), found),
                    true => self.check_groups(case, &what, each, &found),
                }
            }
            Form::Bytes => case.counted.expect(&what, self.by(), bytes(), table(format!("t{n}"))?),
            Form::State { bytes: of_bytes, amount, .. } => {
                let counted = if *of_bytes { bytes() } else { lanes(*amount) };
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
                let counted = by_block.counted(case.counted, case.job, &amount, case.job.threads());
                case.counted.expect(&what, By::Block, counted, found)
            }
            Form::Arms(_) => {
                let mut found = table(format!("t{n}"))?;
                add(&mut found, table(format!("t{n}x"))?);
                case.counted.expect(&what, self.by(), lanes(1), found)
            }
            Form::Addresses => {
                let [a, b, c] = ["a", "b", "c"].map(|letter| table(format!("t{n}{letter}")));
                let (a, b, c) = (a?, b?, c?);
                case.counted.expect(&format!("{what} of threads"), By::Block, a.clone(), b)?;
                case.counted.expect(&format!("{what} in states"), By::Block, a, c)
            }
        }
    }

    /// Groups are known where the schedule was the plain one and the space is told; elsewhere between what lanes need
    /// and what lanes there are.
    fn check_groups(&self, case: &Case<'_>, what: &str, each: u64, found: &Cells) -> Result<(), String> {
        let warps = case.job.threads().div_ceil(32);
        let threads = case.job.threads();
        let is_exit = self.point == Point::Exit;
        let least = |one: &Instruction, count: &Count| {
            let lanes = self.lanes(one, count);
            let groups =
                if case.is_plain && self.is_told(&one.opcode) && lanes != 0 { count.groups } else { 0 };
            lanes.div_ceil(32).max(groups).wrapping_mul(each)
        };
        let most = |one: &Instruction, count: &Count| {
            let lanes = self.lanes(one, count);
            let groups = if case.is_plain { count.groups } else { lanes };
            lanes.min(groups).wrapping_mul(each)
        };
        let least = self.counted(case.counted, case.job, &least, warps.wrapping_mul(each));
        // Lanes may leave one by one.
        let ways_out = if is_exit { threads } else { warps };
        let most = self.counted(case.counted, case.job, &most, ways_out.wrapping_mul(each));
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
