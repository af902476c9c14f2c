//! Chooses what can be woven, and says by name what cannot.
//!
//! A module is refused whole if it was woven before (its spans would be taken for ours) or has 32-bit addresses. A
//! kernel is refused if what a probe promises would not hold in it:
//!
//! * its own symbol is an operand, as for launches from the device: a caller that we do not see would not pass the
//!   context (docs/injection.md, "The context");
//! * a `kernel:exit` probe, and a function it calls holds `exit`, or it calls through a pointer, so that lanes could
//!   leave past the probe.

use crate::Refused;
use crate::sites::Point;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Program, Tracepoint};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::Module;

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
    Ok(())
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
pub(crate) fn points(module: &Module<'_>, program: &Program, function: usize) -> Vec<Point> {
    let name = name(module, function);
    let wants = |kernel: &Option<String>| kernel.as_ref().is_none_or(|glob| glob_matches(glob, &name));
    let mut points = Vec::new();
    for (probe, code) in program.probes.iter().enumerate() {
        let mut point = Point { probe, entry: false, exit: false };
        for tracepoint in &code.points {
            match tracepoint {
                Tracepoint::KernelEntry { kernel } => point.entry |= wants(kernel),
                Tracepoint::KernelExit { kernel } => point.exit |= wants(kernel),
            }
        }
        if point.entry || point.exit {
            points.push(point);
        }
    }
    points
}

/// Would the probes' promises hold in this kernel?
pub(crate) fn kernel(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    points: &[Point],
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
        let reach = info.reach(&[function]);
        if let Some(&exiting) = reach.exits.first() {
            let callee = info.functions.get(exiting as usize).map_or("", |f| f.name);
            let mut why = Diagnostic::error(
                "exit-in-callee",
                entry.name,
                format!("`kernel:exit` cannot be probed in `{name}`"),
            )
            .label(format!("it reaches `{callee}`, which holds `exit`"));
            if let Some(callee) = module.functions.get(exiting as usize) {
                why = why.note_at(callee.name, "declared here");
            }
            return Err(Box::new(why.help("probe `kernel:entry` alone, or choose other kernels with `-k`")));
        }
        if let Some(&caller) = reach.indirect.first() {
            let caller = info.functions.get(caller as usize);
            let at = caller
                .and_then(|f| f.indirect_calls.first())
                .and_then(|&call| module.statements.get(call as usize))
                .map_or(entry.name, |statement| statement.span);
            let caller = caller.map_or("", |f| f.name);
            return Err(Box::new(
                Diagnostic::error("indirect-call", at, format!("`kernel:exit` cannot be probed in `{name}`"))
                    .label(format!("`{caller}` calls through a pointer"))
                    .note(
                        "what is called there may hold `exit`, past which no probe would see the lane leave",
                    )
                    .help("probe `kernel:entry` alone, or choose other kernels with `-k`"),
            ));
        }
    }
    Ok(())
}

/// Does the whole of `text` match `glob`, in which `*` stands for anything and `?` for one character?
pub fn glob_matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut g, mut t) = (0, 0);
    // Where to go back to when a match fails: behind the last `*`, one more character swallowed by it. Earlier stars
    // need no second try, so this is quadratic at worst.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some('*') => {
                retry = Some((g + 1, t));
                g += 1;
            }
            Some(&c) if c == '?' || Some(&c) == text.get(t) => (g, t) = (g + 1, t + 1),
            _ => match retry {
                Some((star, swallowed)) => {
                    retry = Some((star, swallowed + 1));
                    (g, t) = (star, swallowed + 1);
                }
                None => return false,
            },
        }
    }
    glob.iter().skip(g).all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let matches = |glob: &str, yes: &[&str], no: &[&str]| {
            yes.iter().for_each(|text| assert!(glob_matches(glob, text), "`{glob}` is to match `{text}`"));
            no.iter()
                .for_each(|text| assert!(!glob_matches(glob, text), "`{glob}` is not to match `{text}`"));
        };
        matches("gemm", &["gemm"], &["gemm_", "xgemm", ""]);
        matches("gemm*", &["gemm", "gemm_kernel"], &["xgemm"]);
        matches("*reduce*", &["reduce", "block_reduce_sum"], &["redce"]);
        matches("a*b*c", &["abc", "aXbYbZc"], &["ab", "acb"]);
        matches("k?", &["k1"], &["k", "k12"]);
        matches("*", &["", "x"], &[]);
        matches("", &[""], &["x"]);
    }
}
