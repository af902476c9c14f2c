//! The stages, in order.

use crate::cli::{Args, Stage};
use crate::time::Clock;
use crate::{check, emit, list, manifest, reproduce, unmatched};
use anyhow::bail;
use nt_cli::choose::{Choice, choose, nearest};
use nt_cli::{Outcome, Output, Report, Stdin};
use nt_diag::{Diagnostic, Found, Severity};
use nt_ir::launch::Conditions;
use nt_ptx::syntax::{Function, Module};
use nt_weave::Woven;
use std::collections::BTreeSet;

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let report = Report::new(args.common);
    if let Some(rule) = &args.explain {
        return check::explain(rule, &report);
    }
    let mut stdin = Stdin::default();
    if let Some([original, probed]) = args.check.as_deref() {
        return check::run(original, probed, &mut stdin, &report);
    }
    if args.manifest.as_ref() == Some(&args.output) && args.output == Output::Stdout {
        bail!("woven PTX and manifest cannot both go to standard output: use `-o FILE`");
    }
    let mut clock = Clock::start(args.time, report);
    let input = args.file.read(&mut stdin)?;
    let ptx = input.utf8()?;
    clock.lap("read");

    // All that is wrong with the text is told at once; beyond this point it is well formed.
    let (module, mut found) = nt_ptx::parse(ptx);
    let info = nt_ptx::resolve(&module, &mut found);
    let found = if args.strict { strictly(&found) } else { found };
    if report.tell(&input.name, ptx, &found) {
        return Ok(Outcome::Refused);
    }
    clock.lap("parse");

    let kernels: Vec<&str> = module.kernels().map(|kernel| module.at(kernel.name)).collect();
    let chosen = choose(&args.kernels, kernels.iter().copied());
    if chosen.is_empty() {
        say_nearest(args, &kernels, &report);
        return give_back(args, ptx);
    }
    say_not_found(args, &kernels, &report);
    let chosen = indices(&module, &chosen);
    if args.list {
        args.output.write(list::run(&module, &info, &chosen).as_bytes())?;
        return Ok(Outcome::Done);
    }

    let Some(probe) = args.probe.load(&mut stdin, &report)? else { return Ok(Outcome::Refused) };
    let (source_name, source) = (probe.source_name.clone(), probe.source.clone());
    let (probe, compiled) = manifest::prepare(probe, &report)?;
    if args.emit == Some(Stage::Ir) {
        args.output.write(probe.text().as_bytes())?;
        return Ok(Outcome::Done);
    }
    clock.lap("compile");

    let assume = args.assume.iter().fold(Conditions::NONE, |all, one| all.union(*one));
    let options = nt_weave::Options { assume, ..nt_weave::Options::default() };
    let woven = nt_weave::weave_with(&module, &info, &probe.prepared, &chosen, options);
    clock.lap("weave");
    let refused = tell_refused(&input.name, ptx, &woven, &report);
    let unmatched = nt_engine::unmatched(&module, &info, &chosen, &probe.prepared.program);
    let all = woven.kernels.is_empty() && !refused;
    unmatched::tell(&unmatched, &probe.prepared.program, (&source_name, &source), all, &report);
    if woven.kernels.is_empty() {
        if refused {
            return Ok(Outcome::Refused);
        }
        report.warn(format_args!(
            "nt-inject: 0 sites: no tracepoint of `{}` is in what was chosen",
            probe.name()
        ));
        return give_back(args, ptx);
    }

    // Our own text is held to the law by a crate that does not know how it was made.
    let verdict = nt_verify::check(ptx, &woven.text);
    if !verdict.is_accepted() {
        return Err(reproduce::save("weave", &verdict, ptx, &woven.text, &compiled).into());
    }
    clock.lap("verify");

    if let Some(to) = &args.manifest {
        let manifest = manifest::of(args, &module, &probe, &woven, ptx, &report)?;
        to.write(manifest.to_json().as_bytes())?;
        clock.lap("manifest");
    }
    match args.emit {
        Some(Stage::Plan) => args.output.write(emit::plan(&module, &woven).as_bytes())?,
        Some(Stage::Spans) => args.output.write(emit::spans(&woven).as_bytes())?,
        _ => args.output.write(woven.text.as_bytes())?,
    }
    clock.lap("write");
    say_done(&woven, probe.name(), &report);
    Ok(if refused { Outcome::Partial } else { Outcome::Done })
}

/// Under `--strict` what would pass through is refused.
fn strictly(found: &Found) -> Found {
    let mut strict = Found::new();
    for diagnostic in found.iter() {
        let unknown = diagnostic.severity == Severity::Note && diagnostic.slug.starts_with("unknown-");
        strict.push(if unknown {
            let label = "refused under `--strict`".into();
            Diagnostic { severity: Severity::Error, label, ..diagnostic.clone() }
        } else {
            diagnostic.clone()
        });
    }
    strict
}

/// The kernels of these names, as the weaver counts them.
fn indices(module: &Module<'_>, names: &[&str]) -> Vec<usize> {
    let names: BTreeSet<&str> = names.iter().copied().collect();
    let chosen = |function: &Function| {
        function.is_entry && function.body.is_some() && names.contains(module.at(function.name))
    };
    module
        .functions
        .iter()
        .enumerate()
        .filter(|(_, function)| chosen(function))
        .map(|(index, _)| index)
        .collect()
}

/// Nothing was woven: the input goes out as it came.
fn give_back(args: &Args, ptx: &str) -> anyhow::Result<Outcome> {
    if !args.list && args.emit.is_none() {
        args.output.write(ptx.as_bytes())?;
    }
    Ok(Outcome::Nothing)
}

fn say_nearest(args: &Args, kernels: &[&str], report: &Report) {
    if kernels.is_empty() {
        return report.warn("nt-inject: there is no kernel in it");
    }
    report.warn(format_args!("nt-inject: no kernel matched: {}", near(&args.kernels, kernels)));
}

/// The choices that took nothing, where others did.
fn say_not_found(args: &Args, kernels: &[&str], report: &Report) {
    for choice in &args.kernels {
        let alone = std::slice::from_ref(choice);
        if choose(alone, kernels.iter().copied()).is_empty() {
            report.warn(format_args!("nt-inject: no kernel matched `{choice}`: {}", near(alone, kernels)));
        }
    }
}

fn near(choices: &[Choice], kernels: &[&str]) -> String {
    let near: Vec<String> = nearest(choices, kernels, 3).iter().map(|name| format!("`{name}`")).collect();
    match near.as_slice() {
        [] => format!("there are {}, which `-l` lists", kernels.len()),
        near => format!("the nearest are {}", near.join(", ")),
    }
}

/// True if any of the chosen kernels is refused. What is not covered of the others is told too.
fn tell_refused(name: &str, ptx: &str, woven: &Woven, report: &Report) -> bool {
    let mut found = Found::new();
    for (_, why) in &woven.refused {
        found.push(why.clone());
    }
    woven.uncovered.iter().for_each(|one| found.push(one.to_diagnostic()));
    report.tell(name, ptx, &found)
}

/// Which kernels matched, and what was put into them.
fn say_done(woven: &Woven, probe: &str, report: &Report) {
    for kernel in &woven.kernels {
        report.say(format_args!("nt-inject: {}: {}", kernel.name, count(kernel.sites.len(), "site")));
    }
    if let Some(raised) = &woven.raised {
        let ((from, minor), (to, to_minor)) = (raised.from, raised.to);
        report.say(format_args!(
            "nt-inject: `.version` {from}.{minor} is raised to {to}.{to_minor} for {}",
            raised.reason
        ));
    }
    let sites = woven.kernels.iter().map(|kernel| kernel.sites.len()).sum();
    let (kernels, sites) = (count(woven.kernels.len(), "kernel"), count(sites, "site"));
    report.say(format_args!("nt-inject: {probe} is in {kernels}, at {sites}"));
}

fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}
