//! `-l`: what could be probed in the command's own file. A table on stdout, the same as `nt-inject -l`'s; what cannot be
//! listed, on stderr.

use anyhow::Context;
use nt_cli::choose::{Choice, demangle};
use nt_cli::{Outcome, Report};
use nt_engine::tracepoints::{self, HEAD};
use std::io::Write;
use std::path::Path;

/// More kernels than this are not named one by one.
const NAMED: usize = 5;

/// Lists the kernels of `file` that are chosen.
///
/// # Errors
/// It cannot be read, or nobody takes the table.
pub(crate) fn run(file: &Path, choices: &[Choice], report: &Report) -> anyhow::Result<Outcome> {
    let bytes = std::fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
    let found = tracepoints::list(&bytes, choices);
    let shown = file.display();
    for fault in &found.faults {
        report.warn(format_args!("nt-run: {shown} is damaged: {fault}"));
    }
    for (kernel, reason) in &found.refused {
        report.warn(format_args!("nt-run: {}: {reason}", demangle(kernel)));
    }
    if !found.closed.is_empty() {
        let named: Vec<_> = found.closed.iter().take(NAMED).map(|name| demangle(name)).collect();
        let more = found.closed.len() - named.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        report.warn(format_args!("nt-run: {}: {}{more}", found.reason, named.join(", ")));
    }
    if found.rows.is_empty() {
        if found.closed.is_empty() && found.refused.is_empty() {
            let near = found.nearest.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let why = match (found.reason.as_str(), near.as_str()) {
                ("", "") => "no kernel matched".to_owned(),
                ("", near) => format!("no kernel matched: the nearest are {near}"),
                (reason, _) => reason.to_owned(),
            };
            report.warn(format_args!("nt-run: {shown}: {why}"));
        }
        return Ok(Outcome::Nothing);
    }
    let mut out = std::io::stdout().lock();
    out.write_all(HEAD.as_bytes())?;
    out.write_all(found.rows.as_bytes())?;
    out.flush()?;
    let whole = found.refused.is_empty() && found.faults.is_empty();
    Ok(if whole { Outcome::Done } else { Outcome::Partial })
}
