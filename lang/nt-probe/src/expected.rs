//! LALRPOP's lists of expected terminals, in words: thirty terminals that may begin an expression are "an expression".

use crate::token::Token;
use nt_diag::Span;

/// Terminals that stand together as one thing, if all of the first list are expected; those of both lists are then
/// covered by the words.
struct Group {
    words: &'static str,
    all: &'static [&'static str],
    also: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group {
        words: "an item (`const`, `state`, `map`, a probe …)",
        all: &["config", "include", "const", "arg", "state", "map"],
        also: &["IDENT", "thread", "warp", "block"],
    },
    Group { words: "a statement", all: &["let", "if", "asm"], also: &["IDENT", "ATNAME"] },
    Group {
        words: "an expression",
        all: &["INT", "FLOAT", "true", "false", "("],
        also: &["IDENT", "STR", "PARAM", "-", "!", "~", "thread", "warp", "block"],
    },
    Group {
        words: "an operator",
        all: &["+", "*", "/"],
        also: &[
            "-", "%", "<<", ">>", "&", "^", "|", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "?", "as",
            ".", "[",
        ],
    },
    Group {
        words: "an assignment",
        all: &["=", "+=", "-="],
        also: &["*=", "&=", "|=", "^=", "<<=", ">>=", "++"],
    },
    Group {
        words: "a word, a glob in quotes or `*`",
        all: &["STR", "*", "const", "IDENT"],
        also: &["thread", "warp", "block"],
    },
    Group { words: "a tracepoint", all: &["IDENT", "thread", "warp", "block"], also: &[] },
    Group { words: "a name", all: &["IDENT", "ATNAME"], also: &[] },
    Group { words: "`thread`, `warp` or `block`", all: &["thread", "warp", "block"], also: &[] },
];

/// "`;`, an operator or `.`", from LALRPOP's names of the terminals.
pub(crate) fn expected(terminals: &[String]) -> String {
    let mut left: Vec<&str> = terminals.iter().map(|terminal| terminal.trim_matches('"')).collect();
    let mut words = Vec::new();
    for group in GROUPS {
        if group.all.iter().all(|terminal| left.contains(terminal)) {
            left.retain(|terminal| !group.all.contains(terminal) && !group.also.contains(terminal));
            words.push(group.words.to_owned());
        }
    }
    left.sort_unstable();
    words.extend(left.iter().map(|terminal| one(terminal)));
    match words.split_last() {
        None => "nothing more".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

fn one(terminal: &str) -> String {
    match terminal {
        "IDENT" => "a name".to_owned(),
        "ATNAME" => "a name with `@`".to_owned(),
        "PARAM" => "`$1`".to_owned(),
        "INT" => "an integer".to_owned(),
        "FLOAT" => "a number with a point".to_owned(),
        "STR" => "a string".to_owned(),
        "RAW" => "a string in three quotes".to_owned(),
        "PRED_END" => "`/` before `{`".to_owned(),
        punctuation => format!("`{punctuation}`"),
    }
}

/// What was found, in words.
pub(crate) fn describe(token: Token<'_>, text: &str, span: Span) -> String {
    match token {
        Token::Str(_) | Token::Raw(_) => "a string".to_owned(),
        Token::PredEnd => "`/` before `{`".to_owned(),
        _ if token.is_reserved() => format!("the word `{}`", span.of(text)),
        _ => format!("`{}`", span.of(text)),
    }
}
