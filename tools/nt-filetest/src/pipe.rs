//! Runs one RUN line: programs joined by pipes, without a shell.

use crate::{Setup, Step};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What a RUN line printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// The last program's exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What the last program wrote to stdout.
    pub stdout: Vec<u8>,
    /// What all programs wrote to stderr, program by program.
    pub stderr: Vec<u8>,
}

/// Runs `step` of the test `file` in its folder; `%t` is `temporary`.
pub(crate) fn run(step: &Step, file: &Path, temporary: &Path, setup: &Setup) -> anyhow::Result<Printed> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fill = |word: &str| word.replace("%t", &temporary.to_string_lossy()).replace('%', &name);
    let mut path = OsString::from(&setup.programs);
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }

    let commands: Vec<&[String]> = step.words.split(|word| word == "|").collect();
    let mut children: Vec<Child> = Vec::new();
    let mut logs = Vec::new();
    let mut next = Stdio::null();
    let mut redirected = false;
    for (i, words) in commands.iter().enumerate() {
        let (mut args, mut input, mut output) = (Vec::new(), None, None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let target = match word.as_str() {
                "<" => &mut input,
                ">" => &mut output,
                word => {
                    args.push(fill(word));
                    continue;
                }
            };
            *target = Some(folder.join(fill(words.next().context("a redirection without a file")?)));
        }
        let Some((program, args)) = args.split_first() else { bail!("an empty command") };
        let log = tempfile::tempfile()?;
        let mut command = Command::new(program);
        command.args(args).current_dir(folder).env("PATH", &path).env_remove("BLESS").env("NO_COLOR", "1");
        command.stdin(match input {
            Some(file) => File::open(&file).with_context(|| file.display().to_string())?.into(),
            None => std::mem::replace(&mut next, Stdio::null()),
        });
        command.stderr(log.try_clone()?);
        command.stdout(Stdio::piped());
        if let Some(file) = output {
            redirected = i + 1 == commands.len();
            command.stdout(File::create(&file).with_context(|| file.display().to_string())?);
        }
        let mut child = command.spawn().with_context(|| format!("cannot run `{program}`"))?;
        if i + 1 < commands.len() {
            next = child.stdout.take().map_or_else(Stdio::null, Stdio::from);
        }
        logs.push(log);
        children.push(child);
    }

    let mut printed = Printed::default();
    if let (Some(last), false) = (children.last_mut(), redirected)
        && let Some(mut out) = last.stdout.take()
    {
        out.read_to_end(&mut printed.stdout)?;
    }
    for child in &mut children {
        printed.code = child.wait()?.code();
    }
    for mut log in logs {
        std::io::Seek::rewind(&mut log)?;
        log.read_to_end(&mut printed.stderr)?;
    }
    // Goldens hold no path of this machine.
    for text in [&mut printed.stdout, &mut printed.stderr] {
        if let Ok(whole) = std::str::from_utf8(text) {
            let whole = whole.replace(&*temporary.to_string_lossy(), "%t");
            *text = whole.into_bytes();
        }
    }
    Ok(printed)
}
