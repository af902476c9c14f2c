//! Chooses what can be woven, and says by name what cannot.
//!
//! A module is refused whole if it was woven before (its spans would be taken for ours) or has 32-bit addresses. A
//! kernel is refused if what a probe promises would not hold in it:
//!
//! * its own symbol is an operand, as for launches from the device: a caller that we do not see would not pass the
//!   context (docs/injection.md);
//! * a `kernel:exit` probe, and lanes could leave past it (`leaves.rs`).
//!
//! What is called and cannot be probed is told (`uncovered.rs`).

use crate::Refused;
use crate::bodies::{Body, Site};
use crate::instructions::Wanted;
use crate::leaves;
use crate::pins::Pins;
use crate::sites::{Blocks, Found, Point};
use nt_diag::{Diagnostic, Span};
use nt_ir::glob_matches;
use nt_ir::program::{Key, Op, Operand, Part, Probe, Program, SiteKey, Tracepoint};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::{Kind, Module};
use std::collections::{BTreeMap, BTreeSet};

/// What opens every comment of a woven text.
const MARK: &str = "/*nt:";

/// Can anything in this module be woven?
pub(crate) fn module(module: &Module<'_>) -> Result<(), Refused> {
    if let Some(at) = module.text.find(MARK) {
        let span = Span::from(at..at + MARK.len());
        return Err(Box::new(
            Diagnostic::error("woven-already", span, "the module has been woven already")
                .help("weave the original, with all probes in one program"),
        ));
    }
    if module.address_size == Some(32) {
        let at = module.text.find(".address_size").unwrap_or(0);
        let span = Span::from(at..at + ".address_size".len());
        return Err(Box::new(Diagnostic::error(
            "address-size",
            span,
            "modules with 32-bit addresses cannot be probed",
        )));
    }
    if let Some(at) = split_comment(module.text) {
        let what = "a `//` comment with a carriage return in it: assemblers and readers disagree on its end";
        return Err(Box::new(Diagnostic::error("split-comment", Span::at(at), what)));
    }
    Ok(())
}

/// A carriage return without its line feed behind `//`: ptxas goes on with the comment there, others end it.
fn split_comment(text: &str) -> Option<u32> {
    // Most texts have none at all.
    text.find('\r')?;
    let bytes = text.as_bytes();
    let mut in_comment = false;
    for (at, pair) in bytes.windows(2).enumerate() {
        match pair {
            [b'\n', _] => in_comment = false,
            b"//" => in_comment = true,
            [b'\r', next] if in_comment && *next != b'\n' => return Some(Span::from(at..at).start),
            _ => {}
        }
    }
    None
}

/// Those of `chosen` that are kernels, each once, in text order, so that positions are found in one walk of the text.
pub(crate) fn kernels(module: &Module<'_>, chosen: &[usize]) -> impl Iterator<Item = usize> {
    let mut kernels: Vec<usize> = chosen
        .iter()
        .copied()
        .filter(|&f| {
            module.functions.get(f).is_some_and(|function| function.is_entry && function.body.is_some())
        })
        .collect();
    kernels.sort_unstable();
    kernels.dedup();
    kernels.into_iter()
}

/// The name of a function.
pub(crate) fn name(module: &Module<'_>, function: usize) -> String {
    module.functions.get(function).map_or_else(String::new, |f| module.at(f.name).to_owned())
}

/// Which probes of the program want which points of this kernel.
pub(crate) fn points<'p>(module: &Module<'_>, program: &'p Program, function: usize) -> Vec<Point<'p>> {
    let name = name(module, function);
    let wants = |kernel: &Option<String>| kernel.as_ref().is_none_or(|glob| glob_matches(glob, &name));
    let mut points = Vec::new();
    for (probe, code) in program.probes.iter().enumerate() {
        let mut point = of_code(program, probe, code);
        for tracepoint in &code.points {
            match tracepoint {
                Tracepoint::KernelEntry { kernel } => point.entry |= wants(kernel),
                Tracepoint::KernelExit { kernel } if wants(kernel) => {
                    point.exit = true;
                    point.wanted.push(Wanted::Exit);
                }
                Tracepoint::KernelExit { .. } => {}
                of_instructions => of_instruction(of_instructions, &mut point),
            }
        }
        if !point.is_empty() {
            points.push(point);
        }
    }
    points
}

/// Does a probe of the program stand in functions by their names?
pub(crate) fn asks_for_functions(program: &Program) -> bool {
    let mut points = program.probes.iter().flat_map(|probe| &probe.points);
    points.any(|point| matches!(point, Tracepoint::FuncEntry { .. } | Tracepoint::FuncExit { .. }))
}

/// Which probes of the program want which points of a function that the kernel calls.
pub(crate) fn points_in<'p>(
    module: &Module<'_>,
    program: &'p Program,
    kernel: usize,
    function: usize,
) -> Vec<Point<'p>> {
    let (kernel, function) = (name(module, kernel), name(module, function));
    let mut points = Vec::new();
    for (probe, code) in program.probes.iter().enumerate() {
        let mut point = of_code(program, probe, code);
        for tracepoint in &code.points {
            match tracepoint {
                Tracepoint::KernelExit { kernel: glob }
                    if glob.as_ref().is_none_or(|glob| glob_matches(glob, &kernel)) =>
                {
                    point.wanted.push(Wanted::Leave);
                }
                Tracepoint::FuncEntry { glob } => point.entry |= glob_matches(glob, &function),
                Tracepoint::FuncExit { glob } if glob_matches(glob, &function) => {
                    point.exit = true;
                    point.wanted.push(Wanted::Exit);
                }
                of_instructions => of_instruction(of_instructions, &mut point),
            }
        }
        if !point.is_empty() {
            points.push(point);
        }
    }
    points
}

/// What a tracepoint of instructions, blocks and marks wants.
fn of_instruction<'p>(tracepoint: &'p Tracepoint, point: &mut Point<'p>) {
    match tracepoint {
        Tracepoint::Block { looped: true } => point.blocks = point.blocks.or(Some(Blocks::Looped)),
        Tracepoint::Block { looped: false } => point.blocks = Some(Blocks::All),
        Tracepoint::Mark { glob } => point.marks.push(glob),
        Tracepoint::Inst { .. } | Tracepoint::Ptx { .. } | Tracepoint::Line { .. } => {
            point.wanted.push(Wanted::Point(tracepoint));
        }
        Tracepoint::KernelEntry { .. }
        | Tracepoint::KernelExit { .. }
        | Tracepoint::FuncEntry { .. }
        | Tracepoint::FuncExit { .. } => {}
    }
}

/// What a probe wants of sites, wherever these are.
fn of_code<'p>(program: &Program, probe: usize, code: &Probe) -> Point<'p> {
    let (values, out, space) = (asks_for_values(code), asks_for_out(code), asks_for_space(program, code));
    Point { values, out, space, ..Point::of(probe) }
}

/// Does a probe ask for what instructions give?
fn asks_for_out(probe: &Probe) -> bool {
    let is_out = |operand: &Operand| matches!(operand, Operand::Out(_));
    probe.code.iter().any(|inst| match &inst.op {
        Op::Operand(one) | Op::CastOperand(one) | Op::BitsOperand(one) | Op::ClockAfterOperand(_, one) => {
            is_out(one)
        }
        Op::CompareOperands(_, one, other) => is_out(one) || is_out(other),
        Op::Has(part) => *part == Part::Out,
        _ => false,
    })
}

/// Does a probe ask for what instructions take or give, other than addresses and sizes?
fn asks_for_values(probe: &Probe) -> bool {
    let is_value = |operand: &Operand| {
        !matches!(operand, Operand::Addr | Operand::Bytes | Operand::Pred | Operand::Taken)
    };
    probe.code.iter().any(|inst| match &inst.op {
        Op::Operand(operand) => is_value(operand),
        Op::Has(part) => matches!(part, Part::Out | Part::In(_) | Part::Old | Part::Saddr | Part::Done),
        Op::CastOperand(_) | Op::BitsOperand(_) | Op::CompareOperands(..) | Op::ClockAfterOperand(..) => true,
        _ => false,
    })
}

/// Does a probe ask in which space an access is?
fn asks_for_space(program: &Program, probe: &Probe) -> bool {
    probe.code.iter().any(|inst| match &inst.op {
        Op::Match { what, .. } => *what == SiteKey::Space,
        Op::Aggregate { table, .. } => {
            let keys = program.tables.get(table.0 as usize).map_or(&[][..], |table| &table.keys);
            keys.contains(&Key::Site(SiteKey::Space))
        }
        _ => false,
    })
}

/// Functions and entries by name, declarations included: looked up for every kernel, so made once a module.
pub(crate) struct Names<'s> {
    functions: BTreeMap<&'s str, Vec<usize>>,
    aliases: BTreeMap<&'s str, &'s str>,
}

impl<'s> Names<'s> {
    pub(crate) fn of(info: &ModuleInfo<'s>) -> Self {
        let mut functions: BTreeMap<&'s str, Vec<usize>> = BTreeMap::new();
        for (index, function) in info.functions.iter().enumerate() {
            functions.entry(function.name).or_default().push(index);
        }
        Names { functions, aliases: info.aliases.iter().map(|alias| (alias.name, alias.target)).collect() }
    }

    /// All declarations and definitions of a name.
    pub(crate) fn all(&self, name: &str) -> &[usize] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }

    /// The function that an alias stands for.
    pub(crate) fn target(&self, name: &str) -> Option<&'s str> {
        self.aliases.get(name).copied()
    }

    /// What a kernel reaches by direct calls, itself first.
    pub(crate) fn reached(&self, info: &ModuleInfo<'s>, kernel: usize) -> Vec<usize> {
        let mut seen = BTreeSet::from([kernel]);
        let mut reached = vec![kernel];
        let mut next = 0;
        while let Some(&function) = reached.get(next) {
            next += 1;
            for &name in info.functions.get(function).map_or(&[][..], |f| &f.calls) {
                let target = self.aliases.get(name).copied();
                for name in std::iter::once(name).chain(target) {
                    reached.extend(self.all(name).iter().filter(|&&callee| seen.insert(callee)));
                }
            }
        }
        reached
    }
}

/// Would the probes' promises hold in this kernel?
pub(crate) fn kernel(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    names: &Names<'_>,
    points: &[Point<'_>],
    function: usize,
) -> Result<(), Refused> {
    let (Some(entry), Some(known)) = (module.functions.get(function), info.functions.get(function)) else {
        return Ok(());
    };
    let name = known.name;
    if known.is_operand {
        return Err(Box::new(
            Diagnostic::error("kernel-is-operand", entry.name, format!("kernel `{name}` cannot be probed"))
                .label("its own symbol is an operand in this module")
                .note("whoever launches it from the device would not pass the context that probes need"),
        ));
    }
    if let Some(clusters) = entry.directives.iter().find(|d| module.at(d.name) == ".blocksareclusters") {
        return Err(Box::new(
            Diagnostic::error(
                "blocks-are-clusters",
                clusters.name,
                format!("kernel `{name}` cannot be probed"),
            )
            .label("its grid counts clusters, not blocks")
            .note("records are kept by block and warp, counted from the grid that a launch gives"),
        ));
    }
    if points.iter().any(|point| point.exit) {
        leaves::in_sight(module, info, names, function, leaves::EXIT)?;
    }
    Ok(())
}

/// Might these probes have sites in functions that the kernel calls?
pub(crate) fn asks_in_callees(program: &Program, points: &[Point<'_>]) -> bool {
    let is_of_kernel = |point: &Point<'_>| {
        let exits = point.wanted.iter().all(|wanted| *wanted == Wanted::Exit);
        exits && point.blocks.is_none() && point.marks.is_empty()
    };
    !points.iter().all(is_of_kernel) || asks_for_functions(program)
}

/// Is the text before each site, and before each use of a pinned variable, understood well enough to put something
/// behind it?
pub(crate) fn surroundings(
    module: &Module<'_>,
    function: usize,
    sites: &[Site<'_>],
    pins: &Pins,
) -> Result<(), Refused> {
    let mut functions: Vec<usize> = sites.iter().map(|site| site.found.function).collect();
    functions.push(function);
    functions.sort_unstable();
    functions.dedup();
    for function in functions {
        let own = || sites.iter().filter(move |site| site.found.function == function);
        let saved = |found: &Found| found.statement.filter(|_| !found.access.written.is_empty());
        let saved = own().filter_map(|site| saved(&site.found));
        let saved = saved.filter_map(|at| crate::instructions::place(module, at)).map(|(_, next)| next);
        let nexts = own().map(|site| site.found.next).chain(saved).collect();
        places(module, function, nexts)?;
        among_matrix_instructions(module, function, own())?;
    }
    for next in pins.places(module) {
        // A pinned variable may be used in any function.
        let is_there =
            |f: &nt_ptx::syntax::Function| f.body.as_ref().is_some_and(|b| b.statements.contains(&next));
        if let Some(function) = module.functions.iter().position(is_there) {
            places(module, function, vec![next])?;
        }
    }
    Ok(())
}

/// Is something stored or added between `wgmma.fence` and `wgmma.commit_group`? ptxas makes a branch of what stands under a
/// predicate, and serialises asynchronous matrix instructions around one (its notice C7519).
fn among_matrix_instructions<'s, 'p: 's>(
    module: &Module<'_>,
    function: usize,
    sites: impl Iterator<Item = &'s Site<'p>>,
) -> Result<(), Refused> {
    let Some(entry) = module.functions.get(function) else { return Ok(()) };
    let adding = sites.filter(|site| site.bodies.iter().any(Body::stores));
    let mut adding: Vec<u32> = adding.filter_map(|site| site.found.stands_at()).collect();
    adding.sort_unstable();
    let mut adding = adding.into_iter().peekable();
    if adding.peek().is_none() || !module.at(entry.span).contains("wgmma.fence") {
        return Ok(());
    }
    let start = entry.body.as_ref().map_or(0, |body| body.statements.start);
    let mut is_among = false;
    for (number, statement) in (start..).zip(module.body(entry)) {
        let Kind::Instruction(instruction) = statement.kind else { continue };
        let opcode = module.at(instruction.opcode);
        let mut is_here = false;
        while let Some(site) = adding.next_if(|&site| site <= number) {
            is_here |= site == number;
        }
        if is_here && is_among {
            let name = module.at(entry.name);
            let what =
                "what is saved or summed here would serialise the asynchronous matrix instructions around it";
            return Err(Box::new(
                Diagnostic::error("among-wgmma", statement.span, format!("kernel `{name}` cannot be probed"))
                    .label(what)
                    .help("keep it in a `state`, and save it or add it to the table at `kernel:exit`"),
            ));
        }
        if opcode.starts_with("wgmma.fence") {
            is_among = true;
        } else if opcode.starts_with("wgmma.commit_group") {
            is_among = false;
        }
    }
    Ok(())
}

/// May something be put before these statements?
pub(crate) fn places(module: &Module<'_>, function: usize, nexts: Vec<u32>) -> Result<(), Refused> {
    let Some(entry) = module.functions.get(function) else { return Ok(()) };
    let start = entry.body.as_ref().map_or(0, |body| body.statements.start);
    for next in nexts {
        let before = module.statements.get(start as usize..next as usize).unwrap_or(&[]);
        // Line marks belong to what follows them. Compilers write one or two in a row.
        let near = before.iter().rev().take(LINE_MARKS).find(|statement| statement.kind != Kind::Loc);
        let (at, what) = match near.map(|statement| (statement.span, statement.kind)) {
            None if before.len() < LINE_MARKS => continue,
            None => (entry.name, "too many line marks stand before a site"),
            Some((at, Kind::Unknown)) => (at, "what stands before a site cannot be read"),
            Some((at, Kind::Directive)) if !is_plain_directive(module.at(at)) => {
                (at, "what this directive before a site means is not known")
            }
            Some((at, Kind::Pragma(text))) if !is_block_pragma(module.at(text)) => {
                (at, "this pragma may speak of the very next instruction, which would be an inserted one")
            }
            Some((at, kind)) if is_label_or_mark(module, kind) && is_before_pragma(module, next) => {
                (at, "between this label or mark and the pragma behind it nothing may stand")
            }
            Some(_) => continue,
        };
        let name = module.at(entry.name);
        let why = Diagnostic::error("unclear-place", at, format!("kernel `{name}` cannot be probed"));
        return Err(Box::new(why.label(what)));
    }
    Ok(())
}

/// May a pragma behind it speak of what a label before it begins?
fn is_label_or_mark(module: &Module<'_>, kind: Kind) -> bool {
    match kind {
        Kind::Label(_) => true,
        Kind::Pragma(text) => module.at(text).trim_matches('"').starts_with(crate::marks::MARK),
        _ => false,
    }
}

/// Does a pragma stand behind the place, but for line marks?
fn is_before_pragma(module: &Module<'_>, next: u32) -> bool {
    let behind = module.statements.get(next as usize..).unwrap_or(&[]);
    let behind = behind.iter().take(LINE_MARKS).find(|statement| statement.kind != Kind::Loc);
    behind.is_some_and(|statement| matches!(statement.kind, Kind::Pragma(_)))
}

/// More than this in a row nobody reads.
const LINE_MARKS: usize = 64;

/// Directives after which an instruction may stand.
fn is_plain_directive(text: &str) -> bool {
    text.starts_with(".file") || text.starts_with(".section")
}

/// Pragmas that speak of a block or of the function (PTX ISA 9.0, chapter 12), and marks, which speak of nothing.
fn is_block_pragma(text: &str) -> bool {
    let text = text.trim_matches('"');
    let begins = ["frequency ", crate::marks::MARK].iter().any(|begin| text.starts_with(begin));
    matches!(text, "nounroll" | "enable_smem_spilling") || begins
}

/// A pragma that speaks of the next instruction, which a span goes before: `"used_bytes_mask 0xff"` (12.6).
pub(crate) fn is_of_next(text: &str) -> bool {
    text.trim_matches('"').starts_with("used_bytes_mask ")
}
