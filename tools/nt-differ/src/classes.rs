//! A table for each tracepoint of section Tracepoints, and what it must hold: the software GPU's counts, sorted by what it
//! decoded instructions to.
//!
//! ```text
//! inst:load.shared { @load_shared = count(); }     lanes for which a load's own address led to shared memory
//! bb:loop          { @rounds = count(); }          lanes that came to where some branch goes back to
//! ```
//!
//! Who sorts here is not who sorts for the weaver. The weaver has its table of opcodes, and looks at the text. Here an
//! instruction is what the interpreter does when it executes it ([`nt_vgpu::Operation`]): a load is what reads memory into
//! registers, its space where each lane's address led, a block's beginning where control was sent. What has no trace in
//! the execution is looked up in the opcode's words, by hand: `.uni`, `::cluster`, whether a space is spelled, and what type
//! a wider product has.

use crate::counted::{By, Cells, Counted, Instruction};
use crate::device::Text;
use nt_vgpu::{Barriers, Count, Element, Family, Group, Mbarriers, Space};
use std::collections::{BTreeMap, BTreeSet};

/// What a table of a run must hold.
pub type Expected = dyn Fn(&Text<'_>, &Counted<'_>) -> Cells;

/// A table, and how it is counted.
pub struct Asked {
    /// Its name.
    pub table: String,
    /// The probe that adds to it.
    pub probe: String,
    /// What must be in it.
    pub cells: Box<Expected>,
}

/// Tables that one program holds; programs are apart where a kernel may refuse one and take another.
pub struct Questions {
    /// What they are about.
    pub name: &'static str,
    /// The tables.
    pub asked: Vec<Asked>,
}

impl Questions {
    /// The program.
    pub fn program(&self) -> String {
        self.asked.iter().map(|asked| format!("{}\n", asked.probe)).collect()
    }
}

/// The class of an instruction, as the language reference has them.
pub fn class(one: &Instruction) -> &'static str {
    match one.operation.family {
        Family::Load => "load",
        Family::Store => "store",
        Family::Atomic => "atomic",
        Family::Reduce => "reduce",
        Family::Copy => "async_copy",
        Family::BulkCopy => "bulk_copy",
        Family::Prefetch => "prefetch",
        Family::Matrix => "mma",
        Family::Barrier(_) => "barrier",
        Family::Mbarrier(_) => "mbarrier",
        Family::Commit => "commit",
        Family::Wait => "wait",
        Family::Fence => "fence",
        Family::Pause => "sleep",
        // What may part a warp: a jump that some take and some do not, and one that each takes to where it wants.
        Family::Branch if one.operation.is_guarded && !has(one, "uni") => "split",
        Family::Table if !has(one, "uni") => "split",
        Family::Branch | Family::Table => "branch",
        Family::Call => "call",
        Family::Return | Family::Exit => "exit",
        Family::Shuffle => "shuffle",
        Family::Vote => "vote",
        Family::Special => "sfu",
        Family::Convert => "convert",
        Family::Integer => "int",
        Family::Float => "float",
        Family::Logic => "logic",
        Family::Compare => "compare",
        Family::Move => "move",
        Family::Other | Family::Trap => "other",
        Family::Missing => "",
    }
}

/// All that `class` may give, and what the software GPU has none of.
pub const CLASSES: [&str; 30] = [
    "load",
    "store",
    "atomic",
    "reduce",
    "async_copy",
    "bulk_copy",
    "tensor_copy",
    "prefetch",
    "texture",
    "mma",
    "barrier",
    "mbarrier",
    "commit",
    "wait",
    "fence",
    "sleep",
    "branch",
    "split",
    "call",
    "exit",
    "shuffle",
    "vote",
    "sfu",
    "convert",
    "int",
    "float",
    "logic",
    "compare",
    "move",
    "other",
];
const GROUPS: [(&str, &[&str]); 4] = [
    ("branch", &["branch", "split"]),
    ("access", &["load", "store", "atomic", "reduce"]),
    ("copy", &["async_copy", "bulk_copy", "tensor_copy"]),
    ("sync", &["barrier", "mbarrier", "commit", "wait", "fence"]),
];
const ACCESSES: [&str; 4] = ["load", "store", "atomic", "reduce"];
const ARITHMETIC: [&str; 9] =
    ["shuffle", "vote", "sfu", "convert", "int", "float", "logic", "compare", "move"];
const TYPES: [&str; 12] = ["f16", "bf16", "f32", "f64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];

/// Is a word among those of the opcode?
fn has(one: &Instruction, word: &str) -> bool {
    one.opcode.split('.').skip(1).any(|own| own == word)
}

fn is_in(one: &Instruction, word: &str) -> bool {
    let class = class(one);
    class == word || GROUPS.iter().any(|(name, classes)| *name == word && classes.contains(&class))
}

/// The lanes for which a probe runs whose tracepoint does not say where.
fn lanes(one: &Instruction, count: &Count) -> u64 {
    one.passes(count).1
}

fn by_class(one: &Instruction) -> Vec<String> {
    vec![class(one).to_owned()]
}

/// A table of the instructions for which `amount` is not 0, by class.
fn classes(point: &str, table: &str, amount: impl Fn(&Instruction, &Count) -> u64 + 'static) -> Asked {
    Asked {
        table: table.to_owned(),
        probe: format!("{point} {{ @{table}[class] = count(); }}"),
        cells: Box::new(move |_, counted| counted.cells(By::Sm, &by_class, &amount)),
    }
}

/// The same without a key.
fn plain(point: &str, table: &str, amount: impl Fn(&Instruction, &Count) -> u64 + 'static) -> Asked {
    Asked {
        table: table.to_owned(),
        probe: format!("{point} {{ @{table} = count(); }}"),
        cells: Box::new(move |_, counted| counted.cells(By::Sm, &|_| Vec::new(), &amount)),
    }
}

/// All questions.
pub fn questions() -> Vec<Questions> {
    vec![
        Questions { name: "classes", asked: all_classes() },
        Questions { name: "groups", asked: groups() },
        Questions { name: "spaces", asked: spaces(&["global", "shared", "local", "const", "generic"]) },
        Questions { name: "parameters", asked: spaces(&["param"]) },
        Questions { name: "clusters", asked: spaces(&["cluster"]) },
        Questions { name: "elements", asked: elements() },
        Questions { name: "qualifiers", asked: qualifiers() },
        Questions { name: "placements", asked: placements() },
        Questions { name: "blocks", asked: blocks() },
        Questions { name: "functions", asked: functions() },
    ]
}

/// Each class by its word, and all of them at once by their names.
fn all_classes() -> Vec<Asked> {
    let mut asked = vec![classes("inst:*", "all", lanes)];
    asked.extend(CLASSES.iter().map(|&word| {
        plain(
            &format!("inst:{word}"),
            word,
            move |one, count| if is_in(one, word) { lanes(one, count) } else { 0 },
        )
    }));
    asked.extend(GROUPS.iter().skip(1).map(|&(word, _)| {
        plain(
            &format!("inst:{word}"),
            word,
            move |one, count| if is_in(one, word) { lanes(one, count) } else { 0 },
        )
    }));
    asked
}

/// Groups of lanes instead of lanes.
fn groups() -> Vec<Asked> {
    vec![classes("warp inst:*", "groups", |one, count| one.passes(count).0)]
}

/// The lanes whose address led to a space, or some side of whose copy does.
fn within(one: &Instruction, count: &Count, word: &str) -> u64 {
    let operation = &one.operation;
    let is_cluster = one.opcode.contains("shared::cluster");
    if word == "cluster" {
        return if is_cluster { lanes(one, count) } else { 0 };
    }
    let spelled = [
        "global",
        "shared",
        "shared::cta",
        "shared::cluster",
        "local",
        "const",
        "param",
        "param::entry",
        "param::func",
    ];
    if word == "generic" {
        return if spelled.iter().any(|space| has(one, space)) { 0 } else { lanes(one, count) };
    }
    let space = match word {
        "global" => Space::Global,
        "shared" => Space::Shared,
        "local" => Space::Local,
        "const" => Space::Const,
        _ => Space::Param,
    };
    let is_side = |side: Option<Space>| side == Some(space);
    match operation.family {
        // Nothing is fetched ahead, so that nothing but the text says where from; a generic one nobody tells.
        Family::Prefetch if has(one, word) => lanes(one, count),
        Family::Prefetch => 0,
        // A barrier lies in shared memory, whatever its address is called.
        Family::Mbarrier(_) if is_cluster || space != Space::Shared => 0,
        Family::Mbarrier(_) => lanes(one, count),
        _ if is_side(operation.source) => lanes(one, count),
        // One of two sides is the cluster's.
        _ if is_cluster && space == Space::Shared => 0,
        _ if is_side(operation.space) => lanes(one, count),
        Family::Load | Family::Store | Family::Atomic | Family::Reduce if operation.space.is_none() => {
            count.accesses[space as usize]
        }
        _ => 0,
    }
}

fn spaces(words: &'static [&'static str]) -> Vec<Asked> {
    let classes = ["load", "store", "atomic", "reduce", "async_copy", "bulk_copy", "prefetch", "mbarrier"];
    let mut asked = Vec::new();
    for (class, &word) in classes.iter().flat_map(|class| words.iter().map(move |word| (*class, word))) {
        let amount = move |one: &Instruction, count: &Count| {
            if is_in(one, class) { within(one, count, word) } else { 0 }
        };
        asked.push(plain(&format!("inst:{class}.{word}"), &format!("{class}_{word}"), amount));
    }
    asked
}

/// The type whose elements an instruction counts: what it converts to, else what it computes with.
fn element(one: &Instruction) -> Option<Element> {
    let types = &one.operation.types;
    if class(one) == "convert" { types.first().copied() } else { types.last().copied() }
}

/// The types that an instruction is of: what it reads, and what it makes of that.
fn types(one: &Instruction) -> BTreeSet<&'static str> {
    let types = &one.operation.types;
    let mut words: BTreeSet<&str> = BTreeSet::new();
    if class(one) == "mma" {
        // Of the four the first is the result's, the second that of what is multiplied.
        words.extend(types.iter().take(2).map(|ty| ty.word));
        return words;
    }
    words.extend(types.last().map(|ty| ty.word));
    match one.opcode.split('.').next() {
        Some("setp" | "testp" | "isspacep" | "dp4a" | "dp2a") => {}
        Some("popc" | "clz" | "bfind" | "getctarank") => {
            words.insert("u32");
        }
        Some("mul" | "mad") if has(one, "wide") => {
            words.extend(types.last().and_then(|ty| match ty.word {
                "u16" => Some("u32"),
                "s16" => Some("s32"),
                "u32" => Some("u64"),
                "s32" => Some("s64"),
                _ => None,
            }));
        }
        _ => words.extend(types.first().map(|ty| ty.word)),
    }
    words
}

fn elements() -> Vec<Asked> {
    let words: Vec<&str> = ACCESSES.iter().chain(&ARITHMETIC).copied().collect();
    let of = words.join("|");
    let is_of = move |one: &Instruction| words.contains(&class(one));
    let mut asked = Vec::new();
    for bits in [8, 16, 32, 64] {
        let is_of = is_of.clone();
        let amount = move |one: &Instruction, count: &Count| match element(one) {
            Some(ty) if is_of(one) && ty.bits == bits => lanes(one, count),
            _ => 0,
        };
        asked.push(classes(&format!("inst:{of}.b{bits}"), &format!("b{bits}"), amount));
    }
    for parts in [2, 4, 8] {
        let is_of = is_of.clone();
        let amount = move |one: &Instruction, count: &Count| match element(one) {
            Some(ty) if is_of(one) && ty.packed * one.operation.elements == parts => lanes(one, count),
            _ => 0,
        };
        asked.push(classes(&format!("inst:{of}.v{parts}"), &format!("v{parts}"), amount));
    }
    for word in TYPES {
        let is_of = is_of.clone();
        let amount = move |one: &Instruction, count: &Count| {
            let is_of = is_of(one) || class(one) == "mma";
            if is_of && types(one).contains(word) { lanes(one, count) } else { 0 }
        };
        asked.push(classes(&format!("inst:{of}|mma.{word}"), word, amount));
    }
    asked
}

/// What narrows some class alone.
fn qualifiers() -> Vec<Asked> {
    let barrier = |word: &'static str, holds: fn(Barriers) -> bool| {
        plain(&format!("inst:barrier.{word}"), &format!("barrier_{word}"), move |one, count| {
            match one.operation.family {
                Family::Barrier(barriers) if holds(barriers) => lanes(one, count),
                _ => 0,
            }
        })
    };
    let mbarrier = |word: &'static str, holds: fn(Mbarriers) -> bool| {
        plain(&format!("inst:mbarrier.{word}"), &format!("mbarrier_{word}"), move |one, count| {
            match one.operation.family {
                Family::Mbarrier(mbarriers) if holds(mbarriers) => lanes(one, count),
                _ => 0,
            }
        })
    };
    let branch = |word: &'static str, holds: fn(&Instruction) -> bool| {
        classes(&format!("inst:branch.{word}"), &format!("branch_{word}"), move |one, count| {
            if is_in(one, "branch") && holds(one) { lanes(one, count) } else { 0 }
        })
    };
    let matrix = |word: &'static str| {
        plain(&format!("inst:{word}.matrix"), &format!("{word}_matrix"), move |one, count| {
            if class(one) == word && one.operation.is_matrix { lanes(one, count) } else { 0 }
        })
    };
    vec![
        barrier("warp", |b| b.of == Group::Warp),
        barrier("block", |b| b.of == Group::Block),
        barrier("cluster", |b| b.of == Group::Cluster),
        barrier("sync", |b| b.waits),
        barrier("arrive", |b| !b.waits),
        mbarrier("init", |m| m.init),
        mbarrier("expect", |m| m.expect),
        mbarrier("arrive", |m| m.arrive),
        branch("conditional", |one| one.operation.is_guarded),
        branch("uniform", |one| has(one, "uni")),
        branch("backward", |one| one.operation.targets.iter().any(|&to| to as usize <= one.index)),
        matrix("load"),
        matrix("store"),
    ]
}

/// Before jumps for the lanes that jump, and behind all that goes on.
fn placements() -> Vec<Asked> {
    let before = |one: &Instruction, count: &Count| if is_in(one, "branch") { count.lanes } else { 0 };
    let goes_on: Vec<&str> =
        CLASSES.into_iter().filter(|word| !["branch", "split", "call", "exit"].contains(word)).collect();
    let point = format!("inst:{}:after", goes_on.join("|"));
    let after =
        move |one: &Instruction, count: &Count| if goes_on.contains(&class(one)) { count.lanes } else { 0 };
    vec![classes("inst:branch:before", "before", before), classes(&point, "after", after)]
}

/// Where basic blocks begin, by what can be executed: whether a round of a loop begins there.
fn beginnings(text: &Text<'_>) -> BTreeMap<usize, bool> {
    let operations = text.program.operations();
    let mut beginnings = BTreeMap::new();
    let bodies = text.module.functions.iter().filter_map(|function| function.body.as_ref());
    for body in bodies {
        let first = text.program.places().partition_point(|place| place.statement < body.statements.start);
        beginnings.entry(first).or_insert(false);
    }
    for (index, operation) in operations.iter().enumerate() {
        let ends = matches!(
            operation.family,
            Family::Branch | Family::Table | Family::Return | Family::Exit | Family::Trap
        );
        if ends {
            beginnings.entry(index + 1).or_insert(false);
        }
        for &target in &operation.targets {
            let is_loop = beginnings.entry(target as usize).or_insert(false);
            *is_loop |= target as usize <= index;
        }
    }
    beginnings
}

fn blocks() -> Vec<Asked> {
    let of = |table: &str, point: &str, looped: bool| Asked {
        table: table.to_owned(),
        probe: format!("{point} {{ @{table} = count(); }}"),
        cells: Box::new(move |text, counted| {
            let beginnings = beginnings(text);
            let amount = |one: &Instruction, count: &Count| match beginnings.get(&one.index) {
                Some(&is_loop) if is_loop || !looped => count.lanes_there,
                _ => 0,
            };
            counted.cells(By::Sm, &|_| Vec::new(), &amount)
        }),
    };
    vec![of("blocks", "bb:entry", false), of("rounds", "bb:loop", true)]
}

fn functions() -> Vec<Asked> {
    let threads = |table: &str, point: &str| Asked {
        table: table.to_owned(),
        probe: format!("{point} {{ @{table} = count(); }}"),
        cells: Box::new(|_, counted| {
            let mut cells = Cells::new();
            for part in counted.parts().iter().filter(|part| part.stats.threads != 0) {
                *cells.entry((u64::from(part.sm), Vec::new())).or_default() += part.stats.threads;
            }
            cells
        }),
    };
    let entered = Asked {
        table: "entered".into(),
        probe: "func:\"*\":entry { @entered[func] = count(); }".into(),
        cells: Box::new(|text, counted| {
            let is_defined = |name: &str| {
                text.module.functions.iter().any(|f| f.body.is_some() && text.module.at(f.name) == name)
            };
            let callee = |one: &Instruction| {
                let function = text.module.functions.get(one.operation.callee?)?;
                Some(text.module.at(function.name)).filter(|name| is_defined(name))
            };
            let names = |one: &Instruction| callee(one).map(str::to_owned).into_iter().collect();
            let amount =
                |one: &Instruction, count: &Count| if callee(one).is_some() { count.lanes } else { 0 };
            counted.cells(By::Sm, &names, &amount)
        }),
    };
    let left = Asked {
        table: "left".into(),
        probe: "func:\"*\":exit { @left[func] = count(); }".into(),
        cells: Box::new(|text, counted| counted.leaving(text)),
    };
    vec![threads("began", "kernel:entry"), threads("ended", "kernel:exit"), entered, left]
}
