//! One kernel of an image, from PTX to something to launch in its place. The stages in order:
//!
//! ```text
//! image ─> module ─> may it? ─> pruned ─> woven ─> verified ─> assembled ─> held against the original ─> Prepared
//! ```
//!
//! The twin module holds the woven kernel alone, with what it needs; the original image stays loaded beside it. What a
//! kernel shares with others by way of the module must not exist twice: the weaver has it use the original's variables,
//! and a kernel that reaches what cannot be shared is refused by name.

use crate::assemble::{Arch, Assembler, Failure, Options};
use crate::cache::Cache;
use crate::compare::Both;
use crate::image::{Parsed, Resolved};
use crate::manifest;
use crate::probe::Probe;
use crate::{state, unmatched};
use nt_diag::{Diagnostic, Found, Source, Span};
use nt_ir::launch::Conditions;
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::{Function, Module};
use nt_trace::Manifest;
use nt_wire::message::Twin;
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A kernel that is ready to be launched.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// A cubin; or PTX that ends in a NUL, where no assembler could be used.
    pub image: Vec<u8>,
    /// Is it machine code?
    pub is_cubin: bool,
    /// The manifest of this kernel alone.
    pub manifest: Manifest,
    /// The module before: the kernel and what it needs.
    pub original: String,
    /// The same with probes in it.
    pub woven: String,
    /// What the reader of a summary should know.
    pub notes: Vec<String>,
    /// What it cost.
    pub cost: Cost,
}

/// How long a kernel took to prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Our own part: reading, pruning, weaving, verifying.
    pub ours: Duration,
    /// The assembler's part, or the cache's.
    pub assembler: Duration,
    /// How often the assembler ran; the cache had the rest.
    pub assembled: u32,
}

/// Why a kernel runs as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// On one line, lower case, without a full stop.
    pub reason: String,
    /// It is a fault of ours, and this shows it again.
    pub bug: Option<Bug>,
}

/// What shows a fault of ours again: files by name, to be saved together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bug {
    /// The pass that is to blame.
    pub pass: &'static str,
    /// Names and contents.
    pub files: Vec<(&'static str, String)>,
}

impl Refusal {
    /// The input's fault.
    pub(crate) fn input(reason: impl Into<String>) -> Self {
        Refusal { reason: reason.into(), bug: None }
    }

    /// Our own fault.
    pub(crate) fn bug(pass: &'static str, what: &str, files: Vec<(&'static str, String)>) -> Self {
        Refusal { reason: format!("our own bug, in pass `{pass}`: {what}"), bug: Some(Bug { pass, files }) }
    }
}

impl Prepared {
    /// What the hook is told, the image apart.
    pub fn twin(&self) -> Twin {
        // A prepared kernel has a manifest of exactly one.
        let Some(kernel) = self.manifest.kernels.first() else { return Twin::default() };
        let entry = self.manifest.entry(&kernel.name).unwrap_or_default();
        kernel.twin(self.image.len() as u64, entry)
    }
}

/// What all kernels of a run are prepared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tools<'t> {
    pub(crate) probe: &'t Probe,
    pub(crate) assembler: Option<&'t Assembler>,
    pub(crate) cache: &'t Cache,
}

/// Prepares `kernel` of a module, whose image has the hash `image`, for a device and launches of which `holds` holds;
/// assembled with `options`.
pub(crate) fn run(
    tools: Tools<'_>,
    (parsed, options): (&Parsed, &Options),
    image: &str,
    kernel: &str,
    (device, holds): (u32, Conditions),
) -> Result<Prepared, Refusal> {
    let started = Instant::now();
    let (text, Resolved { module, info }) = (parsed.text(), parsed.resolved());
    let Some((function, entry)) = module
        .functions
        .iter()
        .enumerate()
        .find(|(_, f)| f.is_entry && f.body.is_some() && module.at(f.name) == kernel)
    else {
        return Err(Refusal::input("the module has no such kernel"));
    };

    // Before any work: what would make the twin compute something else, or not run there at all.
    state::may_be_twin(module, info, function)?;
    let target = module.arch().unwrap_or("");
    let target = Arch::parse(target).ok_or_else(|| Refusal::input(format!("unknown target `{target}`")))?;
    let arch = target.on(device).map_err(Refusal::input)?;

    let original = nt_weave::prune(module, info, function);
    let report = nt_verify::check_pruned_module(module, &original);
    if !report.is_accepted() {
        let files = vec![("original.ptx", text.to_owned()), ("pruned.ptx", original)];
        return Err(Refusal::bug("prune", &violations(&report), files));
    }

    let (woven, mut kernel, not_covered) = weave(tools.probe, module, &original, entry, holds)?;
    let twin = without_variables(&woven, &kernel)?;
    let ours = started.elapsed();

    let started = Instant::now();
    let mut notes: Vec<String> = not_covered
        .iter()
        .map(|one| format!("`{}` is not covered wholly, its counts are lower bounds: {one}", kernel.name))
        .collect();
    if !options.left_out().is_empty() {
        let left_out = options.left_out().join("`, `");
        notes.push(format!("an image asks for `{left_out}` when it is assembled, which was not passed on"));
    }
    let mut assembled = None;
    let mut runs = 0;
    if let Some(assembler) = tools.assembler {
        let both = Both { original: &original, woven: &twin, arch, options, assembler, cache: tools.cache };
        match both.assemble() {
            Ok(compared) => {
                both.nothing_new(&compared)?;
                compared.launchable(module, entry)?;
                [kernel.before, kernel.after] = compared.resources(&kernel.name);
                (assembled, runs) = (Some(compared.cubin), compared.runs);
            }
            // The driver's own assembler is as new as the driver, and took the original.
            Err(Failure::TooOld { version, why }) => {
                notes.push(format!("ptxas {version} is too old ({why}): the driver assembles instead"));
                notes.extend(without(options));
            }
            Err(other) => return Err(both.refused(&other)),
        }
    }
    if tools.assembler.is_none() {
        notes.extend(without(options));
    }
    let cost = Cost { ours, assembler: started.elapsed(), assembled: runs };

    let manifest = Manifest {
        schema: nt_trace::ntm::SCHEMA,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        probe: tools.probe.manifest(),
        original: image.to_owned(),
        target: arch.to_string(),
        woven_bytes: woven.len() as u64,
        kernels: vec![kernel],
        refused: Vec::new(),
    };
    let is_cubin = assembled.is_some();
    let image = assembled.unwrap_or_else(|| [twin.as_bytes(), b"\0"].concat());
    Ok(Prepared { image, is_cubin, manifest, original, woven, notes, cost })
}

/// Says what the driver's own assembler is not told.
fn without(options: &Options) -> Option<String> {
    let words = options.words();
    (!words.is_empty())
        .then(|| format!("the driver assembles without `{}`, which an image asks for", words.join(" ")))
}

/// Reads and resolves a module, which must have no errors.
pub(crate) fn module(text: &str) -> Result<(Module<'_>, ModuleInfo<'_>), Refusal> {
    let (module, mut found) = nt_ptx::parse(text);
    let info = nt_ptx::resolve(&module, &mut found);
    if found.has_errors() { Err(Refusal::input(first_error(text, &found))) } else { Ok((module, info)) }
}

/// The first error, with its place, and how many more there are.
fn first_error(text: &str, found: &Found) -> String {
    let errors: Vec<Diagnostic> =
        found.clone().sorted().into_iter().filter(|d| d.severity == nt_diag::Severity::Error).collect();
    match errors.as_slice() {
        [] => String::new(),
        [one] => on_a_line(text, one),
        [first, more @ ..] => format!("{} (and {} more)", on_a_line(text, first), more.len()),
    }
}

/// `line 7: message: label`
fn on_a_line(text: &str, diagnostic: &Diagnostic) -> String {
    let line = Source::new("", text).position(diagnostic.span.start).line;
    let label = if diagnostic.label.is_empty() { String::new() } else { format!(": {}", diagnostic.label) };
    format!("line {line}: {}{label}", diagnostic.message)
}

/// The first violations of a report on one line.
fn violations(report: &nt_verify::Report) -> String {
    let first =
        report.violations().first().map_or_else(String::new, |v| format!("{} ({})", v.message, v.rule));
    match report.violations().len() + report.left_out() {
        0 | 1 => first,
        all => format!("{first}, and {} more", all - 1),
    }
}

/// Puts the probe into the one kernel of a pruned module, and has the result verified; with the calls that lead to what is
/// not probed. `whole` is what it was pruned
/// from, in which a refusal names its line.
fn weave(
    probe: &Probe,
    whole: &Module<'_>,
    original: &str,
    entry: &Function,
    holds: Conditions,
) -> Result<(String, nt_trace::ntm::Kernel, Vec<String>), Refusal> {
    let name = whole.at(entry.name);
    let bug = |pass, what: &str, woven: &str| {
        let files = vec![
            ("original.ptx", original.to_owned()),
            ("woven.ptx", woven.to_owned()),
            ("probe.ir", probe.text()),
        ];
        Refusal::bug(pass, what, files)
    };
    let (module, info) = module(original).map_err(|why| bug("prune", &why.reason, ""))?;
    let Some(function) =
        module.functions.iter().position(|f| f.is_entry && f.body.is_some() && module.at(f.name) == name)
    else {
        return Err(bug("prune", "the kernel is gone", ""));
    };
    // Lines of sites are the image's, of which the pruned module is a part.
    let place = Source::new("", whole.text).position(entry.span.start);
    let options = nt_weave::Options { twin: true, place: Some((place.line, place.column)), assume: holds };
    let mut woven = nt_weave::weave_with(&module, &info, &probe.prepared, &[function], options);
    let (kernels, all) = (&mut woven.kernels, &mut woven.uncovered);
    for one in all.iter_mut().chain(kernels.iter_mut().flat_map(|kernel| &mut kernel.uncovered)) {
        let there = Source::new("", whole.text).position(in_the_whole(whole, &module, one.span).start);
        one.position = (there.line, there.column);
    }
    let not_covered: Vec<String> =
        woven.uncovered.iter().filter(|one| one.is_of_program()).map(told).collect();
    if let Some((_, why)) = woven.refused.first() {
        let mut why = why.clone();
        why.span = in_the_whole(whole, &module, why.span);
        return Err(Refusal::input(on_a_line(whole.text, &why)));
    }
    let Some(kernel) = woven.kernels.first() else {
        if let Some(first) = not_covered.first() {
            let what = format!("no tracepoint of the probe is in what can be probed of it: {first}");
            return Err(Refusal::input(what));
        }
        let hint = unmatched::hint(&module, &info, function, &probe.prepared.program);
        let hint = hint.map_or_else(String::new, |hint| format!(": {hint}"));
        return Err(Refusal::input(format!("no tracepoint of the probe is in it (0 sites){hint}")));
    };
    let report = nt_verify::check(original, &woven.text);
    if !report.is_accepted() {
        return Err(bug("weave", &violations(&report), &woven.text));
    }
    let kernel = manifest::kernel(kernel, &probe.prepared);
    Ok((woven.text, kernel, not_covered))
}

/// `f` calls through a pointer (line 12)
fn told(one: &nt_weave::Uncovered) -> String {
    format!("`{}` {} (line {})", one.function, one.what(), one.position.0)
}

/// The woven text without the variables that no instruction names any more, since they are the original's: the driver
/// would allocate them a second time, however large. What goes is held to the law of pruning.
fn without_variables<'w>(woven: &'w str, kernel: &nt_trace::ntm::Kernel) -> Result<Cow<'w, str>, Refusal> {
    if kernel.pins.is_empty() {
        return Ok(Cow::Borrowed(woven));
    }
    let bug = |what: &str, pruned: &str| {
        let files = vec![("original.ptx", woven.to_owned()), ("pruned.ptx", pruned.to_owned())];
        Refusal::bug("prune", what, files)
    };
    let (module, info) = module(woven).map_err(|why| bug(&why.reason, ""))?;
    let mut functions = module.functions.iter();
    let Some(function) =
        functions.position(|f| f.is_entry && f.body.is_some() && module.at(f.name) == kernel.name)
    else {
        return Err(bug("the kernel is gone", ""));
    };
    let twin = nt_weave::prune(&module, &info, function);
    let report = nt_verify::check_pruned_module(&module, &twin);
    if report.is_accepted() { Ok(Cow::Owned(twin)) } else { Err(bug(&violations(&report), &twin)) }
}

/// Where a place of a pruned module is in the module that it was pruned from: the same function has the same text.
fn in_the_whole(whole: &Module<'_>, part: &Module<'_>, at: Span) -> Span {
    let around = part.functions.iter().find(|f| f.span.start <= at.start && at.end <= f.span.end);
    let same = around.and_then(|f| {
        let text = part.at(f.span);
        Some((f, whole.functions.iter().find(|other| whole.at(other.span) == text)?))
    });
    match same {
        Some((from, to)) => {
            let moved = |offset: u32| to.span.start + (offset - from.span.start);
            Span::new(moved(at.start), moved(at.end))
        }
        None => Span::at(0),
    }
}
