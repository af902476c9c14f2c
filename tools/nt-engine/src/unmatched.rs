//! Tracepoints that match nothing, and what they may have meant.
//!
//! ```text
//! line:"gemm.cu":120        the nearest lines of `gemm.cu` with code are 118 and 121
//! kernel:"gem*":exit        the nearest are `gemm`, `gemv`
//! inst:load.global.v4       there are inst:load.global.b32 (3)
//! ```
//!
//! Nearest by spelling, of lines by number. Where nothing comes near, what there is is told, the first few of it.

use crate::choose::{self, Choice, demangle};
use crate::tracepoints::instructions;
use nt_ir::program::{Placement, Program, Tracepoint};
use nt_ptx::ModuleInfo;
use nt_ptx::opcode;
use nt_ptx::syntax::Module;
use nt_weave::{Site, Sought, is_end_of_path, list_sites_of};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// A tracepoint that matches nothing in the kernels that are asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// Index into the program's probes.
    pub probe: usize,
    /// Index into the points of that probe.
    pub point: usize,
    /// The tracepoint as one writes it: `line:"gemm.cu":120`.
    pub text: String,
    /// Does it name something of the program's text, so that it was meant to be there? That a kernel has no atomics is
    /// no news.
    pub is_named: bool,
    /// What it may have meant.
    pub hint: String,
}

/// How many names are told.
const MOST: usize = 3;
/// How many tracepoints are told.
const MOST_POINTS: usize = 6;

/// The tracepoints of `program` that match nothing in `kernels`, indices into [`Module::functions`].
pub fn unmatched(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    kernels: &[usize],
    program: &Program,
) -> Vec<Unmatched> {
    let there = There::of(module, info, kernels);
    let mut unmatched = Vec::new();
    for (probe, code) in program.probes.iter().enumerate() {
        for (point, tracepoint) in code.points.iter().enumerate() {
            if !there.has(tracepoint) {
                let (text, hint) = (text(tracepoint), there.hint(tracepoint));
                unmatched.push(Unmatched { probe, point, text, is_named: is_named(tracepoint), hint });
            }
        }
    }
    unmatched
}

/// Does it name something of the program's text?
fn is_named(tracepoint: &Tracepoint) -> bool {
    use Tracepoint::{FuncEntry, FuncExit, KernelEntry, KernelExit, Line, Mark};
    match tracepoint {
        KernelEntry { kernel } | KernelExit { kernel } => kernel.is_some(),
        other => matches!(other, FuncEntry { .. } | FuncExit { .. } | Line { .. } | Mark { .. }),
    }
}

/// The hint on a kernel in which no tracepoint of the program is: of the first that does not choose kernels by name.
pub(crate) fn hint(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    kernel: usize,
    program: &Program,
) -> Option<String> {
    let mut points = program.probes.iter().flat_map(|probe| &probe.points);
    let point =
        points.find(|p| !matches!(p, Tracepoint::KernelEntry { .. } | Tracepoint::KernelExit { .. }))?;
    Some(format!("of `{}`, {}", text(point), There::of(module, info, &[kernel]).hint(point)))
}

/// What of a program's named tracepoints was found so far, kernel by kernel.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// By the texts of tracepoints: what the last kernel has instead of it; nothing where it was found.
    points: BTreeMap<String, Option<String>>,
}

impl Seen {
    /// Looks for those that were not found yet.
    pub(crate) fn look(
        &mut self,
        module: &Module<'_>,
        info: &ModuleInfo<'_>,
        kernel: usize,
        program: &Program,
    ) {
        let points = || program.probes.iter().flat_map(|probe| &probe.points).filter(|point| is_named(point));
        if points().all(|point| matches!(self.points.get(&text(point)), Some(None))) {
            return;
        }
        let kernels = [kernel];
        let there = There::of(module, info, &kernels);
        for point in points() {
            let slot = self.points.entry(text(point)).or_insert_with(|| Some(String::new()));
            if slot.is_some() {
                *slot = (!there.has(point)).then(|| there.hint(point));
            }
        }
    }

    /// Those that are in no kernel, as sentences. `kernels` are the names of all.
    pub(crate) fn told(&self, program: &Program, kernels: &BTreeSet<String>) -> Vec<String> {
        let names: Vec<&str> = kernels.iter().map(String::as_str).collect();
        let mut told = Vec::new();
        for point in program.probes.iter().flat_map(|probe| &probe.points) {
            let text = text(point);
            if let Some(Some(hint)) = self.points.get(&text) {
                let hint = match point {
                    Tracepoint::KernelEntry { kernel: Some(glob) }
                    | Tracepoint::KernelExit { kernel: Some(glob) } => near(glob, &names, "kernel"),
                    _ => hint.clone(),
                };
                told.push(format!("`{text}` matches nothing that was launched: {hint}"));
            }
        }
        told.dedup();
        told
    }
}

/// What there is.
struct There<'a, 's> {
    sought: Sought<'a, 's>,
    module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    kernels: &'a [usize],
    sites: OnceCell<Vec<Site>>,
}

impl<'a, 's> There<'a, 's> {
    fn of(module: &'a Module<'s>, info: &'a ModuleInfo<'s>, kernels: &'a [usize]) -> Self {
        There { sought: Sought::new(module, info), module, info, kernels, sites: OnceCell::new() }
    }

    fn has(&self, tracepoint: &Tracepoint) -> bool {
        self.kernels.iter().any(|&kernel| self.sought.is_there(tracepoint, kernel))
    }

    /// All instructions of the kernels and of what they call.
    fn sites(&self) -> &[Site] {
        self.sites.get_or_init(|| {
            let called = self.kernels.iter().flat_map(|&kernel| self.sought.functions(kernel));
            let all: BTreeSet<usize> = self.kernels.iter().copied().chain(called).collect();
            let all: Vec<usize> = all.into_iter().collect();
            list_sites_of(self.module, self.info, &all, true).concat()
        })
    }

    fn hint(&self, tracepoint: &Tracepoint) -> String {
        match tracepoint {
            Tracepoint::KernelEntry { kernel } | Tracepoint::KernelExit { kernel } => {
                let names: Vec<&str> = self.kernels.iter().map(|&kernel| self.name(kernel)).collect();
                match kernel {
                    Some(glob) => near(glob, &names, "kernel"),
                    None => "no way through the kernel ends".to_owned(),
                }
            }
            Tracepoint::FuncEntry { glob } | Tracepoint::FuncExit { glob } => {
                let called = self.kernels.iter().flat_map(|&kernel| self.sought.functions(kernel));
                let names: BTreeSet<&str> = called.map(|function| self.name(function)).collect();
                match names.is_empty() {
                    true => {
                        "no function is called: what the compiler has inlined is none any more".to_owned()
                    }
                    false => near(glob, &names.into_iter().collect::<Vec<_>>(), "function"),
                }
            }
            Tracepoint::Mark { glob } => {
                let marks: BTreeSet<&str> =
                    self.kernels.iter().flat_map(|&kernel| self.sought.marks(kernel)).collect();
                match marks.is_empty() {
                    true => "there are no marks: `.pragma \"nt.mark NAME\";` sets one".to_owned(),
                    false => near(glob, &marks.into_iter().collect::<Vec<_>>(), "mark"),
                }
            }
            Tracepoint::Line { file, first, last, .. } => self.lines(file, (*first, *last)),
            Tracepoint::Block { .. } => {
                let blocks = Tracepoint::Block { looped: false };
                match self.has(&blocks) {
                    true => "there is no loop: `bb:entry` stands at each basic block".to_owned(),
                    false => "there are no instructions".to_owned(),
                }
            }
            Tracepoint::Ptx { glob, .. } => {
                let opcodes: BTreeSet<&str> = self
                    .sites()
                    .iter()
                    .map(|site| site.opcode.as_str())
                    .filter(|word| !word.is_empty())
                    .collect();
                match nearest_opcode(glob, &opcodes) {
                    Some(near) => format!("the nearest opcode is `{near}`"),
                    None => self.classes(),
                }
            }
            Tracepoint::Inst { classes, spaces, quals, .. } => self.instructions(classes, spaces, quals),
        }
    }

    fn name(&self, function: usize) -> &'s str {
        self.module.functions.get(function).map_or("", |function| self.module.at(function.name))
    }

    /// Of a line: the nearest ones with code; else the files.
    fn lines(&self, file: &str, (first, last): (u32, u32)) -> String {
        let sources = || self.sites().iter().filter_map(|site| site.source.as_ref());
        let files: BTreeSet<&str> = sources().map(|(file, _)| file.as_str()).collect();
        if files.is_empty() {
            return "its PTX tells no source lines: compile with `-lineinfo`, or mean the PTX itself by `line:\"ptx\":N`".to_owned();
        }
        let meant: Vec<&str> = files.iter().copied().filter(|path| is_end_of_path(file, path)).collect();
        if meant.is_empty() {
            // People type the last name of a path.
            let short = |path: &'_ str| path.rsplit('/').next().unwrap_or(path).to_owned();
            let names: Vec<(String, &str)> = files.iter().map(|path| (short(path), *path)).collect();
            let slip = nt_diag::nearest(&short(file), names.iter().map(|(name, _)| name.as_str()));
            let near: Vec<&str> =
                names.iter().filter(|(name, _)| Some(name.as_str()) == slip).map(|(_, path)| *path).collect();
            return match near.is_empty() {
                true => format!("its code is of {}", list(&files.into_iter().collect::<Vec<_>>(), MOST)),
                false => format!("the nearest file is {}", list(&near, MOST)),
            };
        }
        // Line 0 is none.
        let lines: BTreeSet<u32> = sources()
            .filter(|(path, line)| meant.contains(&path.as_str()) && *line > 0)
            .map(|(_, line)| *line)
            .collect();
        let below = lines.range(..first).next_back().map(ToString::to_string);
        let above = lines.range(last..).next().map(ToString::to_string);
        let near: Vec<String> = [below, above].into_iter().flatten().collect();
        match near.as_slice() {
            [] => format!("`{file}` has no line with code here"),
            [one] => format!("the nearest line of `{file}` with code is {one}"),
            both => format!("the nearest lines of `{file}` with code are {}", both.join(" and ")),
        }
    }

    /// Of instructions: what of the same class there is, else which classes there are.
    fn instructions(&self, classes: &[String], spaces: &[String], quals: &[Vec<String>]) -> String {
        let of = |spaces: &[String], quals: &[Vec<String>]| Tracepoint::Inst {
            classes: classes.to_vec(),
            spaces: spaces.to_vec(),
            quals: quals.to_vec(),
            placement: Placement::Before,
        };
        if !self.has(&of(&[], &[])) {
            return self.classes();
        }
        let told = |points: Vec<Tracepoint>| {
            let there: Vec<String> =
                points.into_iter().filter(|point| self.has(point)).map(|point| text(&point)).collect();
            let there: Vec<&str> = there.iter().map(String::as_str).collect();
            match there.is_empty() {
                true => format!("there are {} that are of another sort", text(&of(&[], &[]))),
                false => format!("there are {}", list(&there, MOST_POINTS)),
            }
        };
        let sort_of = |word: &str| sort(word).iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        if !self.has(&of(spaces, &[])) {
            return told(opcode::SPACES.iter().map(|space| of(&[(*space).to_owned()], &[])).collect());
        }
        // The first of the steps without which there is something; then others of its sort in its place.
        for at in 0..quals.len() {
            let without = |other: Option<String>| -> Vec<Vec<String>> {
                let others = quals.iter().enumerate().filter(|(index, _)| *index != at);
                others.map(|(_, qual)| qual.clone()).chain(other.map(|word| vec![word])).collect()
            };
            let word = quals.get(at).and_then(|qual| qual.first()).map_or("", String::as_str);
            if self.has(&of(spaces, &without(None))) {
                let others = sort_of(word).into_iter().map(|other| of(spaces, &without(Some(other))));
                return told(others.collect());
            }
        }
        format!("there are {}", text(&of(spaces, &[])))
    }

    /// `there are inst:load.global (3), inst:exit (1)`
    fn classes(&self) -> String {
        let there = instructions(self.sites());
        let there: Vec<String> =
            there.iter().map(|((_, point), at)| format!("{point} ({})", at.len())).collect();
        match there.is_empty() {
            true => "there are no instructions".to_owned(),
            false => format!("there are {}", there.join(", ")),
        }
    }
}

/// Words of the sort that `word` is of.
fn sort(word: &str) -> &'static [&'static str] {
    let mut sorts = opcode::CLASSES.iter().flat_map(|class| class.qualifiers.iter().copied());
    sorts.find(|words| words.contains(&word)).unwrap_or_default()
}

/// The names that a glob comes closest to, as one would write them there.
fn near(glob: &str, names: &[&str], what: &str) -> String {
    let plain: String = glob.chars().filter(|c| !matches!(c, '*' | '?')).collect();
    let choice = [Choice::Name(plain.clone())];
    let near = if plain.is_empty() { Vec::new() } else { choose::nearest(&choice, names, MOST) };
    let shown = |names: &[&str]| {
        let shown: Vec<String> = names
            .iter()
            .map(|name| match demangle(name) {
                source if source == *name => format!("`{name}`"),
                source => format!("`{name}` ({source})"),
            })
            .collect();
        shown.join(", ")
    };
    match near.as_slice() {
        [] if names.len() == 1 => format!("the only {what} is {}", shown(names)),
        [] => {
            let more = names.len().saturating_sub(MOST);
            let some = shown(names.get(..MOST.min(names.len())).unwrap_or_default());
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("the {what}s are {some}{more}")
        }
        [one] => format!("the nearest is {}", shown(&[one])),
        near => format!("the nearest are {}", shown(near)),
    }
}

/// `a`, `b` and 3 more
fn list(words: &[&str], most: usize) -> String {
    let shown: Vec<String> = words.iter().take(most).map(|word| format!("`{word}`")).collect();
    match words.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The opcode that a glob comes closest to: by spelling, as far as the glob goes, else the one that begins with most of
/// its letters.
fn nearest_opcode<'o>(glob: &str, opcodes: &BTreeSet<&'o str>) -> Option<&'o str> {
    let plain = glob.trim_end_matches('*').trim_end_matches('.');
    let words = plain.split('.').count();
    // `ld.global` of `ld.global.u32`, for `ld.globl.*`.
    let start = |opcode: &'o str| {
        opcode.match_indices('.').nth(words.saturating_sub(1)).map_or(opcode, |(at, _)| opcode.split_at(at).0)
    };
    if let Some(near) = nt_diag::nearest(plain, opcodes.iter().map(|opcode| start(opcode))) {
        return opcodes.iter().copied().find(|opcode| start(opcode) == near);
    }
    let common = |opcode: &str| opcode.bytes().zip(plain.bytes()).take_while(|(a, b)| a == b).count();
    opcodes.iter().copied().max_by_key(|opcode| common(opcode)).filter(|opcode| 2 < common(opcode))
}

/// A tracepoint as one writes it, without its placement.
fn text(tracepoint: &Tracepoint) -> String {
    let kernel =
        |glob: &Option<String>| glob.as_ref().map_or_else(String::new, |glob| format!("\"{glob}\":"));
    match tracepoint {
        Tracepoint::KernelEntry { kernel: glob } => format!("kernel:{}entry", kernel(glob)),
        Tracepoint::KernelExit { kernel: glob } => format!("kernel:{}exit", kernel(glob)),
        Tracepoint::FuncEntry { glob } => format!("func:\"{glob}\":entry"),
        Tracepoint::FuncExit { glob } => format!("func:\"{glob}\":exit"),
        Tracepoint::Block { looped } => format!("bb:{}", if *looped { "loop" } else { "entry" }),
        Tracepoint::Mark { glob } => format!("mark:\"{glob}\""),
        Tracepoint::Ptx { glob, .. } => format!("ptx:\"{glob}\""),
        Tracepoint::Line { file, first, last, .. } if first == last => format!("line:\"{file}\":{first}"),
        Tracepoint::Line { file, first, last, .. } => format!("line:\"{file}\":{first}-{last}"),
        Tracepoint::Inst { classes, spaces, quals, .. } => {
            let steps = std::iter::once(classes).chain((!spaces.is_empty()).then_some(spaces)).chain(quals);
            let steps: Vec<String> = steps.map(|words| words.join("|")).collect();
            format!("inst:{}", steps.join("."))
        }
    }
}
