//! The stages of a run, in order.

use crate::cli::{Args, OnFull};
use crate::counts::Counts;
use crate::folder::RunFolder;
use crate::server::Server;
use crate::summary::{self, Facts};
use crate::target::{self, NotRunnable, Target};
use crate::{aggregations, child, coverage, dry, environment, hook, list, vgpu};
use anyhow::Context;
use nt_cli::{Report, Stdin};
use nt_engine::assemble::Assembler;
use nt_engine::cache::Cache;
use nt_engine::{Engine, Probe};
use nt_wire::message::Settings;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// nt-run's own failures.
pub(crate) const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How long processes that outlive the command may take to say bye.
const GRACE: Duration = Duration::from_millis(300);

/// Runs the command.
///
/// # Errors
/// What keeps the command from being started; its own failure is its exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let report = Report::new(args.common);
    let Some((command, arguments)) = args.command.split_first() else { anyhow::bail!("no command given") };

    let path = std::env::var_os("PATH");
    if args.list {
        // A library or a text will do as well; only what has no path is looked for as a command.
        let file = if command.as_encoded_bytes().contains(&b'/') {
            PathBuf::from(command)
        } else {
            match find(command, path, &report) {
                Ok(file) => file,
                Err(code) => return Ok(code.into()),
            }
        };
        return Ok(list::run(&file, &args.kernels, &report)?.into());
    }
    // The user's own text first: all that is wrong with it is told at once, before anything is touched.
    let Some(probe) = probe(args, &report)? else { return Ok(FAILED.into()) };

    // A command that cannot be run leaves the run folder of an earlier run as it is.
    let shown = command.to_string_lossy();
    let file = match find(command, path.clone(), &report) {
        Ok(file) => file,
        Err(code) => return Ok(code.into()),
    };
    let target = target::inspect(&file, path.as_deref());
    let hook = hook::find(args.hook.as_deref())?;
    let software = args.vgpu.map(|vgpu| Ok::<_, anyhow::Error>((vgpu, vgpu::find()?))).transpose()?;
    let assembler = Assembler::find(args.ptxas.as_deref())?;
    if args.dry_run {
        return dry_run(args, probe, &file, &target, &hook, assembler.as_ref());
    }

    // From here on the run folder is ours, and hooks can talk to us.
    let folder = RunFolder::create(&args.output)?;
    let listed = hook::listed(&hook, &folder)?;
    let settings = settings(args, &probe);
    let engine = Engine::new(probe, args.kernels.clone(), assembler, cache(args.cache.as_deref()));
    let words: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let start = coverage::start(&words);
    let mut server = Server::start(&folder, engine, settings, args.keep, software.is_some())?;

    // The command, with nothing changed but what hooks need.
    let forwarding = child::Forwarding::start().context("failed to catch signals")?;
    let mut started = Command::new(command);
    started.args(arguments);
    started.envs(environment::changes(|name| std::env::var_os(name), &target, &listed, &folder.reach));
    if let Some((vgpu, library)) = &software {
        started.envs(vgpu::place(*vgpu, library, &target, &folder, |name| std::env::var_os(name))?);
    }
    let mut running = match started.spawn() {
        Ok(running) => running,
        Err(error) => {
            report.warn(format_args!("nt-run: failed to start {shown}: {error}"));
            let gone = error.kind() == std::io::ErrorKind::NotFound;
            return Ok(if gone { NOT_FOUND } else { NOT_EXECUTABLE }.into());
        }
    };
    let status = forwarding.wait(&mut running).context("failed to wait for the command")?;
    drop(forwarding);

    // It has ended. Whatever fails from here on must not change its exit status.
    let alive = server.finish(GRACE);
    let shared = server.shared();
    let counts = Counts::read(&folder.path).unwrap_or_else(|error| {
        shared.ledger.note(format!("{} cannot be read: {error}", folder.path.display()));
        Counts::default()
    });
    let aggregations = if shared.engine.probe().prepared.program.tables.is_empty() {
        String::new()
    } else {
        let (text, missing) = aggregations::text(&folder.path, &counts.traces, args.rows);
        missing.into_iter().for_each(|note| shared.ledger.note(note));
        text
    };
    if !shared.ledger.open().selected.is_empty() {
        for (choice, near) in shared.engine.not_found(3) {
            let near =
                if near.is_empty() { String::new() } else { format!("; the nearest: {}", near.join(", ")) };
            shared.ledger.note(format!("no kernel matches `{choice}`{near}"));
        }
        shared.engine.unmatched().into_iter().for_each(|note| shared.ledger.note(note));
    }
    let entries = shared.ledger.open().clone();
    let choices: Vec<String> = args.kernels.iter().map(ToString::to_string).collect();
    let facts = Facts {
        command: &shown,
        folder: &folder.shown.to_string_lossy(),
        obstacle: target.obstacle.as_deref(),
        choices: &choices,
        nearest: &shared.engine.nearest(3),
        alive,
        entries: &entries,
        counts: &counts,
        aggregations: &aggregations,
    };
    let headline = summary::headline(&facts);
    let notes: Vec<String> = std::iter::once(headline.clone()).chain(summary::notes(&facts)).collect();
    if let Err(error) = coverage::write(&folder.path, &start, &notes) {
        report.warn(format_args!("nt-run: failed to write {}: {error}", coverage::FILE));
    }
    // The command has the terminal to itself until now; stdout stays its own.
    report.say(format_args!("nt-run: {headline}\n{}", summary::body(&facts).trim_end()));
    Ok(child::code(status).into())
}

/// The command's file; else the code to end with, and why is said.
fn find(command: &OsStr, path: Option<OsString>, report: &Report) -> Result<PathBuf, u8> {
    let shown = command.to_string_lossy();
    target::find(command, path).map_err(|why| match why {
        NotRunnable::NotFound => {
            report.warn(format_args!("nt-run: {shown}: command not found"));
            NOT_FOUND
        }
        NotRunnable::NotExecutable => {
            report.warn(format_args!("nt-run: {shown}: cannot be executed"));
            NOT_EXECUTABLE
        }
    })
}

/// Reads and prepares the probe program. `None` if its text is refused, which has been told.
fn probe(args: &Args, report: &Report) -> anyhow::Result<Option<Probe>> {
    let Some(loaded) = args.probe.load(&mut Stdin::default(), report)? else { return Ok(None) };
    if let Some(argument) = args.arguments.first() {
        anyhow::bail!(
            "`--arg {argument}`: the program `{}` has no `config` of that name",
            loaded.program.name
        );
    }
    let compiled = nt_trace::ntp::encode(&nt_trace::ntp::Compiled {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        source_name: loaded.source_name.clone(),
        source: loaded.source.clone(),
        program: loaded.program.clone(),
    })?;
    let mut program = loaded.program;
    if let Some(bytes) = args.stream {
        if !Probe::streams(&program) {
            anyhow::bail!("`--stream`: the program `{}` has no map that is a stream", program.name);
        }
        program.config.stream = bytes;
    }
    match Probe::new(program, &compiled) {
        Ok(probe) => Ok(Some(probe)),
        Err(broken) => {
            report.tell(&loaded.source_name, &loaded.source, &broken.found);
            Err(nt_cli::Bug { pass: broken.pass, detail: "the IR is refused".to_owned(), reproducer: None }
                .into())
        }
    }
}

/// Where assembled kernels are kept.
fn cache(given: Option<&Path>) -> Cache {
    match given {
        Some(none) if none.as_os_str() == "none" => Cache::none(),
        Some(folder) => Cache::at(folder, Cache::LIMIT),
        None => Cache::users_folder().map_or_else(Cache::none, |folder| Cache::at(&folder, Cache::LIMIT)),
    }
}

/// What hooks are told.
fn settings(args: &Args, probe: &Probe) -> Settings {
    let program = &probe.prepared.program;
    let stream = Probe::streams(program).then_some(program.config.stream);
    Settings {
        protocol: nt_wire::PROTOCOL,
        wait_ms: if args.on_full == OnFull::Drop { 0 } else { args.wait_ms },
        exit_ms: args.exit_ms,
        pool_bytes: pool(args),
        launch_bytes: stream.unwrap_or(0),
    }
}

/// Memory for what launches save; 0 leaves it to the hook, which looks at what is free.
fn pool(args: &Args) -> u64 {
    // A launch gets half of the pool at most, which is a power of two.
    let room = |bytes: u64| bytes.checked_mul(2)?.checked_add(1)?.checked_next_power_of_two();
    match (args.pool, args.stream.and_then(room)) {
        (Some(given), _) => given,
        // The software GPU's memory is the host's: a sixteenth of it would be much for what an interpreter records.
        (None, room) if args.vgpu.is_some() => room.unwrap_or(0).max(SOFTWARE_POOL),
        // What was asked for is to be had, though it be more than the hook would take.
        (None, Some(room)) if room > 1 << 30 => room,
        (None, _) => 0,
    }
}

/// Memory for what launches save, on the software GPU.
const SOFTWARE_POOL: u64 = 64 << 20;

/// Prints what would be done.
fn dry_run(
    args: &Args,
    probe: Probe,
    file: &Path,
    target: &Target,
    hook: &Path,
    assembler: Option<&Assembler>,
) -> anyhow::Result<ExitCode> {
    let kernels: Vec<String> = args.kernels.iter().map(ToString::to_string).collect();
    let kernels = if kernels.is_empty() { "all".to_owned() } else { kernels.join(" and ") };
    let assembler = assembler.map_or_else(
        || "none: the driver assembles".to_owned(),
        |found| format!("{} ({})", found.path().display(), found.version()),
    );
    let mut lines = vec![
        format!("probe\t{}", probe.name()),
        format!("kernels\t{kernels}"),
        format!("command\t{}", file.display()),
        format!("hook\t{}", hook.display()),
        format!("ptxas\t{assembler}"),
        format!("folder\t{}", args.output.display()),
    ];
    lines.extend(target.obstacle.as_ref().map(|obstacle| format!("obstacle\tit {obstacle}")));
    let engine = Engine::new(probe, args.kernels.clone(), None, Cache::none());
    lines.extend(dry::kernels(&engine, file));
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
