//! The stages in order: open each file, choose, list or write.

use crate::choose::{self, Chosen};
use crate::cli::Args;
use crate::input::{self, Bytes};
use crate::name::Names;
use crate::tell::{Tally, Teller};
use crate::{list, write};
use nt_cli::{Input, Outcome, Output, Report, Stdin};
use nt_object::{Container, Form, Kind, NoPtx};
use std::path::Path;

/// Lists or extracts.
///
/// # Errors
/// Output cannot be written. Inputs that cannot be read are told, and the others go on.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let report = Report::new(args.common);
    let mut tally = Tally::default();
    let mut stdin = Stdin::default();
    let opened: Vec<(&Input, Option<Bytes>)> = args
        .files
        .iter()
        .map(|input| match input::open(input, &mut stdin) {
            Ok(bytes) => (input, Some(bytes)),
            Err(error) => {
                tally.failed = true;
                report.warn(format_args!("nt-extract: {error:#}"));
                (input, None)
            }
        })
        .collect();

    // All files are read before anything is written: whether one image is chosen shows then.
    let mut read: Vec<(&Input, Container<'_>)> = Vec::new();
    for (input, bytes) in &opened {
        let Some(bytes) = bytes.as_deref() else { continue };
        let teller = Teller { report: &report, file: &input.name() };
        match if args.scan { Ok(nt_object::search(bytes)) } else { nt_object::open(bytes) } {
            Ok(container) => {
                teller.damage(&container.faults);
                tally.damaged |= !container.faults.is_empty();
                read.push((input, container));
            }
            Err(error) => {
                teller.fault(&error.fault);
                tally.refused = true;
            }
        }
    }
    let mut chosen = Vec::new();
    for (input, container) in &read {
        let name = input.name();
        let teller = Teller { report: &report, file: &name };
        let choice = choose::run(args, container);
        tell_choice(args, &teller, container, &choice);
        tally.damaged |= !choice.faults.is_empty();
        chosen.push((*input, container, choice));
    }

    if args.list {
        print_list(args, &report, &chosen, &mut tally)?;
    } else {
        write_images(args, &report, &chosen, &mut tally)?;
    }
    Ok(tally.outcome())
}

type Choices<'i, 'e, 'a> = [(&'i Input, &'e Container<'a>, Chosen<'e, 'a>)];

/// Says why these were chosen, and why nothing was.
fn tell_choice(args: &Args, teller: &Teller<'_>, container: &Container<'_>, chosen: &Chosen<'_, '_>) {
    teller.broken(&chosen.faults);
    for reason in &chosen.reasons {
        teller.note(reason);
    }
    let has_ptx = container.entries.iter().any(|entry| entry.kind == Kind::Ptx);
    if container.entries.is_empty() {
        teller.note(if !container.faults.is_empty() {
            "no device code could be read"
        } else if container.hip {
            "holds code for AMD's devices, which is not read yet"
        } else if args.scan {
            "no device code"
        } else {
            "no device code; PTX kept as a string is found with `--scan`"
        });
    } else if chosen.entries.is_empty() && !args.kernels.is_empty() {
        match chosen.nearest.as_slice() {
            [] => teller.note("no kernel matched; `-l` lists them"),
            names => teller.note(format_args!("no kernel matched; the nearest: {}", names.join(", "))),
        }
    } else if !has_ptx && (args.ptx || !args.elf && container.form != Form::Cubin) {
        teller.note(NoPtx::of(&container.entries, None));
    } else if chosen.entries.is_empty() && args.device.is_none() {
        let mut archs: Vec<_> = container.entries.iter().filter_map(|entry| entry.arch).collect();
        archs.sort();
        archs.dedup();
        let archs: Vec<String> = archs.iter().map(ToString::to_string).collect();
        let count = container.entries.len();
        teller.note(format_args!("nothing chosen of {count} images, which are for {}", archs.join(", ")));
    }
}

fn print_list(
    args: &Args,
    report: &Report,
    chosen: &Choices<'_, '_, '_>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let mut text = list::HEADER.to_owned();
    for (input, _, choice) in chosen {
        let name = input.name();
        let teller = Teller { report, file: &name };
        let listing = list::run(args, &name, &choice.entries);
        teller.broken(&listing.faults);
        for note in &listing.notes {
            teller.note(note);
        }
        tally.damaged |= !listing.faults.is_empty();
        tally.done += choice.entries.len();
        text += &listing.text;
    }
    match args.output.as_deref() {
        None => Output::Stdout.write(text.as_bytes()),
        Some(path) => path.to_string_lossy().parse::<Output>()?.write(text.as_bytes()),
    }
}

fn write_images(
    args: &Args,
    report: &Report,
    chosen: &Choices<'_, '_, '_>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let count: usize = chosen.iter().map(|(_, _, choice)| choice.entries.len()).sum();
    let folder = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if folder.is_none() && count > 1 {
        report.warn(format_args!(
            "nt-extract: {count} images are chosen, and standard output takes one: choose with `--ptx`, `--elf`, \
             `--arch`, `--device`, `-k` or `-i`, or give a folder with `-o DIR`; `-l` lists them"
        ));
        tally.refused = true;
        return Ok(());
    }
    let mut names = Names::default();
    for (input, container, choice) in chosen {
        let name = input.name();
        let stem = names.stem(input);
        let teller = Teller { report, file: &name };
        let written = match (folder, choice.entries.as_slice()) {
            (_, []) => continue,
            (Some(folder), entries) => write::folder(args, folder, &stem, entries, container.entries.len())?,
            // There is one over all files.
            (None, [entry, ..]) => write::stdout(args, entry)?,
        };
        teller.broken(&written.faults);
        for note in &written.notes {
            teller.note(note);
        }
        if let Some(folder) = folder {
            for (index, name) in &written.names {
                report.detail(format_args!("nt-extract: entry {index}: {}", folder.join(name).display()));
            }
        }
        tally.damaged |= !written.faults.is_empty();
        tally.done += written.names.len();
    }
    Ok(())
}
