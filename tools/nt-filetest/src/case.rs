//! What a test file asks for: its directives, read from comments.

use anyhow::{Context, bail};

/// A test file's directives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Case {
    /// The RUN lines, in order.
    pub steps: Vec<Step>,
    /// Programs that must be on PATH.
    pub requires: Vec<String>,
    /// Faults that must be told: line, severity, a part of the message.
    pub faults: Vec<(u32, &'static str, String)>,
}

/// One RUN line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its words, `|`, `<` and `>` among them.
    pub words: Vec<String>,
    /// The exit code it must end with.
    pub exit: i32,
    /// Where it stands in the file.
    pub line: u32,
}

impl Case {
    /// Reads the directives of `text`.
    ///
    /// # Errors
    /// No RUN line, an EXIT that is no number, an unclosed quote.
    pub fn parse(text: &str) -> anyhow::Result<Case> {
        let mut case = Case::default();
        let mut exit = 0;
        for (number, line) in (1u32..).zip(text.lines()) {
            for severity in ["error", "warning", "note"] {
                if let Some((_, message)) = line.split_once(&format!("// {severity}: ")) {
                    case.faults.push((number, severity, message.trim().to_owned()));
                }
            }
            let Some(comment) =
                line.trim_start().strip_prefix("//").or_else(|| line.trim_start().strip_prefix('#'))
            else {
                continue;
            };
            let comment = comment.trim();
            if let Some(code) = comment.strip_prefix("EXIT:") {
                exit = code.trim().parse().with_context(|| format!("line {number}: EXIT wants a number"))?;
            } else if let Some(program) = comment.strip_prefix("REQUIRES:") {
                case.requires.push(program.trim().to_owned());
            } else if let Some(command) = comment.strip_prefix("RUN:") {
                let words = split(command).with_context(|| format!("line {number}: {command}"))?;
                case.steps.push(Step { words, exit, line: number });
                exit = 0;
            }
        }
        if case.steps.is_empty() {
            bail!("no `// RUN:` line");
        }
        Ok(case)
    }
}

/// Words, with '…' and "…" as in a shell, without anything else of one.
fn split(command: &str) -> anyhow::Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in command.chars() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (Some(_) | None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        bail!("unclosed quote");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read_from_comments_of_both_kinds() {
        let case = Case::parse("// EXIT: 1\n// RUN: a 'b c' % | d\n# RUN: e\nx // error: no\n").unwrap();
        assert_eq!(case.steps[0].words, ["a", "b c", "%", "|", "d"]);
        assert_eq!((case.steps[0].exit, case.steps[1].exit), (1, 0));
        assert_eq!(case.faults, [(4, "error", "no".to_owned())]);
        assert!(Case::parse("nothing").is_err());
    }
}
