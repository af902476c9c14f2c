//! The stages in order: find the program, compile it, write it; or show a stage of it.

use crate::cli::{Args, Stage};
use crate::list;
use anyhow::bail;
use nt_cli::{Input, Outcome, Report, Stdin};
use nt_diag::nearest;
use nt_probe::Named;
use nt_trace::ntp::{self, Compiled};
use std::path::Path;

/// Compiles, lists, shows or explains.
///
/// # Errors
/// The program cannot be read, or the output not written.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let report = Report::new(args.common);
    if args.list {
        args.output.write(list::run().as_bytes())?;
        return Ok(Outcome::Done);
    }
    if let Some(name) = &args.show {
        let text = nt_probe::shipped(name).map(str::to_owned);
        return answer(args, &report, text, "shipped probe", name, nt_probe::shipped_names());
    }
    if let Some(slug) = &args.explain {
        let text = nt_probe::explain(slug).map(ToString::to_string);
        return answer(
            args,
            &report,
            text,
            "kind of error",
            slug,
            nt_probe::EXPLANATIONS.iter().map(|e| e.slug),
        );
    }
    let Some(word) = &args.input else { bail!("no program given") };
    match find(word, &report)? {
        Found::Source(source) => compile(args, &report, &source),
        Found::Compiled(compiled) => show_compiled(args, &compiled),
        Found::Nothing => Ok(Outcome::Nothing),
    }
}

/// Prints what was asked for by name, or says what comes near.
fn answer(
    args: &Args,
    report: &Report,
    text: Option<String>,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'static str>,
) -> anyhow::Result<Outcome> {
    if let Some(text) = text {
        args.output.write(text.as_bytes())?;
        return Ok(Outcome::Done);
    }
    let near = nearest(name, known).map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
    report.warn(format_args!("nt-probec: no {what} is called `{name}`{near}"));
    Ok(Outcome::Nothing)
}

/// A program's text.
struct Source {
    /// What the program is called: a shipped name, or the file's stem.
    name: String,
    /// What messages call the text.
    file: String,
    text: String,
}

/// What the argument names.
enum Found {
    Source(Source),
    Compiled(Box<Compiled>),
    /// No shipped probe, which has been told.
    Nothing,
}

fn find(word: &str, report: &Report) -> anyhow::Result<Found> {
    match Named::by(word) {
        Named::Stdin | Named::File => {}
        Named::Shipped(probe) => {
            let file = format!("{word}.nt");
            return Ok(Found::Source(Source { name: word.to_owned(), file, text: probe.text.to_owned() }));
        }
        Named::Unknown(near) => {
            let hint = near.map_or_else(
                || "`-l` lists them; a file needs a `/` or an ending".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            report.warn(format_args!("nt-probec: no shipped probe is called `{word}`: {hint}"));
            return Ok(Found::Nothing);
        }
    }
    let text = word.parse::<Input>()?.read(&mut Stdin::default())?;
    if ntp::is_ntp(&text.bytes) {
        let compiled = ntp::decode(&text.bytes).map_err(|error| anyhow::anyhow!("{}: {error}", text.name))?;
        return Ok(Found::Compiled(Box::new(compiled)));
    }
    let stem = Path::new(word).file_stem().filter(|_| word != "-");
    let name = stem.map_or_else(|| "probe".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let source = text.utf8()?.to_owned();
    Ok(Found::Source(Source { name, file: text.name, text: source }))
}

fn compile(args: &Args, report: &Report, source: &Source) -> anyhow::Result<Outcome> {
    let shown = match args.emit {
        Some(Stage::Tokens) => Some(nt_probe::tokens(&source.text)),
        Some(Stage::Ast) => Some(nt_probe::tree(&source.text)),
        Some(Stage::Ir) | None => None,
    };
    if let Some((text, found)) = shown {
        if report.tell(&source.file, &source.text, &found) {
            return Ok(Outcome::Refused);
        }
        args.output.write(text.as_bytes())?;
        return Ok(Outcome::Done);
    }

    // All that is wrong with the text is reported at once, and nothing is written then.
    let (program, found) = nt_probe::compile(&source.text, &source.name);
    let refused = report.tell(&source.file, &source.text, &found);
    let Some(program) = program.filter(|_| !refused) else { return Ok(Outcome::Refused) };
    if args.emit == Some(Stage::Ir) {
        args.output.write(nt_ir::text::print(&program).as_bytes())?;
        return Ok(Outcome::Done);
    }

    let compiled = Compiled {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        source_name: source.file.clone(),
        source: source.text.clone(),
        program,
    };
    let bytes = ntp::encode(&compiled)?;
    args.output.refuse_terminal("a compiled probe")?;
    args.output.write(&bytes)?;
    Ok(Outcome::Done)
}

/// A compiled probe holds its source, so that every stage can be shown of it too.
fn show_compiled(args: &Args, compiled: &Compiled) -> anyhow::Result<Outcome> {
    let text = match args.emit {
        Some(Stage::Tokens) => nt_probe::tokens(&compiled.source).0,
        Some(Stage::Ast) => nt_probe::tree(&compiled.source).0,
        Some(Stage::Ir) => nt_ir::text::print(&compiled.program),
        None => bail!("this is a compiled probe already; `--emit=ir` shows it"),
    };
    args.output.write(text.as_bytes())?;
    Ok(Outcome::Done)
}
