//! `--generate man|bash|zsh|fish`: man page and completions from the definitions that `--help` is made of.
//!
//! For packagers and `make install`, so it stands in no help text. It must be the first word of the command line.

use crate::Outcome;
use std::io::Write;

/// Answers `--generate FORM`, if that is what the command line asks.
pub(crate) fn asked(command: &mut clap::Command) -> Option<std::io::Result<Outcome>> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != "--generate" {
        return None;
    }
    let form = words.next().unwrap_or_default();
    let mut out = Vec::new();
    let name = command.get_name().to_owned();
    let shell = match form.to_str() {
        Some("man") => None,
        Some("bash") => Some(clap_complete::Shell::Bash),
        Some("zsh") => Some(clap_complete::Shell::Zsh),
        Some("fish") => Some(clap_complete::Shell::Fish),
        _ => {
            let _ = writeln!(std::io::stderr(), "{name}: --generate wants man, bash, zsh or fish");
            return Some(Ok(Outcome::Failed));
        }
    };
    match shell {
        Some(shell) => clap_complete::generate(shell, command, &name, &mut out),
        // The date is left out: the same program gives the same page.
        None => {
            let page = clap_mangen::Man::new(command.clone().disable_help_subcommand(true)).date("");
            if let Err(error) = page.render(&mut out) {
                return Some(Err(error));
            }
        }
    }
    Some(std::io::stdout().lock().write_all(&out).map(|()| Outcome::Done))
}
