//! Saves what shows a fault of ours again.

use anyhow::Context;
use nt_cli::Bug;
use nt_verify::Report;
use std::path::PathBuf;

/// The bug that a verdict on our own output is, with everything needed to see it again in a folder of its own.
pub(crate) fn save(
    pass: &'static str,
    verdict: &Report,
    original: &str,
    woven: &str,
    compiled: &[u8],
) -> Bug {
    let first = verdict.violations().first();
    let detail = match first {
        Some(violation) => format!(
            "the woven text breaks rule {}: {}, at byte {}",
            violation.rule, violation.message, violation.span.start
        ),
        None => "the woven text is refused".to_owned(),
    };
    let all: String =
        verdict.violations().iter().map(|v| format!("{:?} {}: {}\n", v.span, v.rule, v.message)).collect();
    let files: [(&str, &[u8]); 4] = [
        ("original.ptx", original.as_bytes()),
        ("woven.ptx", woven.as_bytes()),
        ("probe.ntp", compiled),
        ("violations", all.as_bytes()),
    ];
    // Without a place for them the message is all there is.
    Bug { pass, detail, reproducer: folder(&files).ok() }
}

fn folder(files: &[(&str, &[u8])]) -> anyhow::Result<PathBuf> {
    let folder =
        tempfile::Builder::new().prefix("nt-inject-bug-").tempdir().context("no temporary folder")?.keep();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(folder)
}
