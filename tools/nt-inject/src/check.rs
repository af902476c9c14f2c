//! `--check` and `--explain`: the verifier by itself.

use nt_cli::{Input, Outcome, Report, Stdin};

/// Holds a woven text against its original. All that is needed is in the two texts.
pub(crate) fn run(
    original: &Input,
    probed: &Input,
    stdin: &mut Stdin,
    report: &Report,
) -> anyhow::Result<Outcome> {
    let (original, probed) = (original.read(stdin)?, probed.read(stdin)?);
    let verdict = nt_verify::check(original.utf8()?, probed.utf8()?);
    report.tell(&probed.name, probed.utf8()?, &verdict.to_found());
    if !verdict.is_accepted() {
        return Ok(Outcome::Refused);
    }
    report.say(format_args!("nt-inject: {} is {} and harmless insertions", probed.name, original.name));
    Ok(Outcome::Done)
}

/// A paragraph on a rule, to standard output.
pub(crate) fn explain(rule: &str, report: &Report) -> anyhow::Result<Outcome> {
    let Some(text) = nt_verify::explain(rule) else {
        report.warn(format_args!(
            "nt-inject: no rule is called `{rule}`: they are V1 to V17, as refusals name them"
        ));
        return Ok(Outcome::Nothing);
    };
    nt_cli::Output::Stdout.write(format!("{text}\n").as_bytes())?;
    Ok(Outcome::Done)
}
