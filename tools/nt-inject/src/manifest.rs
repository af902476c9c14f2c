//! `--manifest`: what was woven, how to launch it, and what it takes.

use crate::cli::Args;
use nt_cli::{Bug, Loaded, Report};
use nt_engine::Probe;
use nt_engine::assemble::{Arch, Assembler, Usage, registers};
use nt_ptx::syntax::Module;
use nt_trace::ntm::{Manifest, Refused, Resources, SCHEMA};
use nt_weave::Woven;
use std::collections::BTreeMap;

/// A loaded probe, made ready for the weaver, and its compiled form.
pub(crate) fn prepare(loaded: Loaded, report: &Report) -> anyhow::Result<(Probe, Vec<u8>)> {
    let compiled = nt_trace::ntp::encode(&nt_trace::ntp::Compiled {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        source_name: loaded.source_name.clone(),
        source: loaded.source.clone(),
        program: loaded.program.clone(),
    })?;
    match Probe::new(loaded.program, &compiled) {
        Ok(probe) => Ok((probe, compiled)),
        Err(broken) => {
            report.tell(&loaded.source_name, &loaded.source, &broken.found);
            Err(Bug { pass: broken.pass, detail: "the IR is refused".to_owned(), reproducer: None }.into())
        }
    }
}

/// The manifest of what was woven.
pub(crate) fn of(
    args: &Args,
    module: &Module<'_>,
    probe: &Probe,
    woven: &Woven,
    ptx: &str,
    report: &Report,
) -> anyhow::Result<Manifest> {
    let (before, after) = measured(args, module, woven, ptx, report)?;
    tell_spills(&before, &after, report);
    let kernels = woven.kernels.iter().map(|kernel| {
        let mut entry = nt_engine::manifest::kernel(kernel, &probe.prepared);
        (entry.before, entry.after) = (resources(&before, &kernel.name), resources(&after, &kernel.name));
        entry
    });
    let refused =
        woven.refused.iter().map(|(name, why)| Refused { name: name.clone(), reason: why.message.clone() });
    Ok(Manifest {
        schema: SCHEMA,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        probe: probe.manifest(),
        original: blake3::hash(ptx.as_bytes()).to_hex().to_string(),
        target: module.arch().unwrap_or("").to_owned(),
        woven_bytes: woven.text.len() as u64,
        kernels: kernels.collect(),
        refused: refused.collect(),
    })
}

type Usages = BTreeMap<String, Usage>;

/// What the assembler says of the text before and after; nothing without an assembler for it.
fn measured(
    args: &Args,
    module: &Module<'_>,
    woven: &Woven,
    ptx: &str,
    report: &Report,
) -> anyhow::Result<(Usages, Usages)> {
    let assembler = Assembler::find(args.ptxas.as_deref())?;
    let (Some(assembler), Some(arch)) = (assembler, module.arch().and_then(Arch::parse)) else {
        report.detail("nt-inject: no assembler, so registers are unknown");
        return Ok(Default::default());
    };
    let before = match registers(&assembler, ptx, arch) {
        Ok(before) => before,
        Err(why) => {
            // The text may be for a target that this assembler has not yet, or no more: nothing to compare with.
            report.warn(format_args!("nt-inject: registers are unknown: {why}"));
            return Ok(Default::default());
        }
    };
    match registers(&assembler, &woven.text, arch) {
        Ok(after) => Ok((before, after)),
        Err(why) => {
            let detail = format!("ptxas takes the text without the probe and not with it: {why}");
            Err(Bug { pass: "weave", detail, reproducer: None }.into())
        }
    }
}

/// Names the kernels that have too few registers for the probe, and what there is to do about it: each spilled byte is a
/// round trip to memory where the kernel had none.
fn tell_spills(before: &Usages, after: &Usages, report: &Report) {
    let bytes = |usage: &Usage| usage.spill_stores.unwrap_or(0) + usage.spill_loads.unwrap_or(0);
    let mut is_any = false;
    for (kernel, is) in after {
        let was = before.get(kernel).copied().unwrap_or_default();
        let (more, registers) = (bytes(is).saturating_sub(bytes(&was)), is.registers.unwrap_or(0));
        if more != 0 {
            report.say(format_args!(
                "nt-inject: {kernel}: {more} bytes more spilled with the probe, at {registers} registers"
            ));
            is_any = true;
        }
    }
    if is_any {
        report.say(
            "nt-inject: fewer sites or fields need fewer registers, and so do sums that are kept in a `state` up to \
             `kernel:exit`; launch bounds, `.maxnreg` and `setmaxnreg` say how many there may be",
        );
    }
}

fn resources(usages: &Usages, kernel: &str) -> Option<Resources> {
    let usage = usages.get(kernel)?;
    Some(Resources {
        registers: usage.registers?,
        spill_stores: usage.spill_stores.unwrap_or(0),
        spill_loads: usage.spill_loads.unwrap_or(0),
        shared: usage.shared.unwrap_or(0),
        stack: usage.stack.unwrap_or(0),
    })
}
