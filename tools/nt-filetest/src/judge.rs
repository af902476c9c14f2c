//! Who says whether what was printed is right: the file's own expectations, the assembler, the goldens.

use crate::{Case, Printed};
use anyhow::{Context, bail, ensure};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the assembler says of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It assembles.
    Accepted,
    /// It does not, with the assembler's words.
    Refused(String),
    /// There is no assembler.
    Unknown,
}

/// The first executable file of that name on PATH.
pub fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Every fault that the file announces was told on its line, and no error beyond these.
pub(crate) fn expected_faults(case: &Case, file: &Path, printed: &Printed) -> anyhow::Result<()> {
    if case.faults.is_empty() {
        return Ok(());
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stderr = String::from_utf8_lossy(&printed.stderr);
    let mut told: Vec<(u32, &str, &str)> = Vec::new();
    for line in stderr.lines() {
        let Some(rest) = line.strip_prefix(&*name).and_then(|rest| rest.strip_prefix(':')) else { continue };
        let mut parts = rest.splitn(3, ':');
        let (Some(line), Some(_), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (Ok(line), Some((severity, message))) = (line.parse(), rest.trim_start().split_once(": ")) else {
            continue;
        };
        told.push((line, severity, message));
    }
    for (line, severity, message) in &case.faults {
        ensure!(
            told.iter().any(|t| t.0 == *line && t.1 == *severity && t.2.contains(message.as_str())),
            "line {line}: expected `{severity}: {message}`, told was:\n{stderr}"
        );
    }
    for (line, severity, message) in told {
        let expected =
            case.faults.iter().any(|f| f.0 == line && f.1 == severity && message.contains(f.2.as_str()));
        ensure!(expected || severity != "error", "line {line}: not expected: `{severity}: {message}`");
    }
    Ok(())
}

/// Output that is PTX must assemble.
pub(crate) fn assembler(printed: &Printed, bless: bool) -> anyhow::Result<()> {
    let Ok(text) = std::str::from_utf8(&printed.stdout) else { return Ok(()) };
    if !text.lines().any(|line| line.starts_with(".version")) {
        return Ok(());
    }
    match assemble(text)? {
        Verdict::Refused(why) => bail!("ptxas refuses what was printed:\n{why}"),
        Verdict::Unknown if bless => bail!("a golden of PTX is not blessed without ptxas: run `make deps`"),
        Verdict::Accepted | Verdict::Unknown => Ok(()),
    }
}

fn assemble(text: &str) -> anyhow::Result<Verdict> {
    let Some(ptxas) = find_on_path("ptxas") else { return Ok(Verdict::Unknown) };
    let target = text.lines().find_map(|line| line.trim().strip_prefix(".target")).unwrap_or("sm_90");
    let arch = target.split([',', ' ', '\t', ';']).find(|word| word.starts_with("sm_")).unwrap_or("sm_90");
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("k.ptx");
    std::fs::write(&input, text)?;
    let done = Command::new(ptxas)
        .arg(format!("-arch={arch}"))
        .arg(&input)
        .arg("-o")
        .arg(folder.path().join("k.cubin"))
        .output()?;
    let words = [done.stdout, done.stderr].concat();
    Ok(if done.status.success() {
        Verdict::Accepted
    } else {
        Verdict::Refused(String::from_utf8_lossy(&words).into_owned())
    })
}

/// What was printed is what lies beside the file; or, blessing, will be.
pub(crate) fn goldens(file: &Path, printed: &Printed, bless: bool) -> anyhow::Result<()> {
    let mut differences = String::new();
    for (ending, got) in [("stdout", &printed.stdout), ("stderr", &printed.stderr)] {
        let golden = PathBuf::from(format!("{}.{ending}", file.display()));
        let expected = match std::fs::read(&golden) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(|| golden.display().to_string()),
        };
        if *got == expected {
            continue;
        }
        if !bless {
            // Writing to a String cannot fail.
            let _ = write!(differences, "{ending} differs:\n{}", difference(&expected, got));
        } else if got.is_empty() {
            std::fs::remove_file(&golden)?;
        } else {
            std::fs::write(&golden, got)?;
        }
    }
    ensure!(differences.is_empty(), "{differences}  (`make bless` takes what was printed as right)");
    Ok(())
}

/// The lines around the first that differs.
fn difference(expected: &[u8], got: &[u8]) -> String {
    let (expected, got) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(got));
    let (expected, got): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), got.lines().collect());
    let same = expected.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let mut out = String::new();
    for line in expected.iter().skip(same.saturating_sub(2)).take(8) {
        let _ = writeln!(out, "  - {line}");
    }
    for line in got.iter().skip(same.saturating_sub(2)).take(8) {
        let _ = writeln!(out, "  + {line}");
    }
    out
}
