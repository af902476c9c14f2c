//! Syntax errors that a habit from another language explains, and errors that deserve a name of their own.
//!
//! Each hint looks at the token where the parser stopped and its neighbours, and says what to write here instead.

use crate::check::names::AGGREGATIONS;
use crate::token::{Lexed, Token};
use nt_diag::{Diagnostic, Span};

/// The diagnostic of an error at token `at` (`None`: at the end) of `item`, where `expected` would have done; `None` where
/// there is nothing more to say than that.
pub(crate) fn hint(
    item: &[Lexed<'_>],
    at: Option<usize>,
    span: Span,
    expected: &[String],
    text: &str,
) -> Option<Diagnostic> {
    let token = at.map(|at| item[at].0);
    let before = |n: usize| at.unwrap_or(item.len()).checked_sub(n).map(|at| item[at]);
    let wanted = |terminal: &str| expected.iter().any(|word| word.trim_matches('"') == terminal);

    if let Some(open) = open_predicate(item, at, wanted("PRED_END")) {
        return Some(
            Diagnostic::error(
                "predicate-open",
                open,
                "this predicate is not closed: no `/` stands before `{`",
            )
            .help("a predicate is written `/condition/ { body }`")
            .help("`//` begins a comment, which may have hidden the closing `/`"),
        );
    }
    match (before(1).map(|(token, _)| token), token) {
        // `while (x) {`: a name at the beginning of a statement, and then no assignment.
        (Some(Token::Ident(word)), _) if wanted("=") && wanted("+=") => {
            let habit = habit_of_statement(word.text, word.span);
            habit.or_else(|| (token == Some(Token::LParen)).then(|| call_alone(word.text, word.span)))
        }
        (Some(Token::At(word)), Some(Token::AddAssign | Token::SubAssign | Token::Increment)) => {
            let name = word.text;
            Some(
                Diagnostic::error("syntax", span, format!("`{name}` is an aggregation, which has no `{}`", span.of(text)))
                    .help(format!("write `{name} = count()` to count, `{name} = sum(x)` to add up")),
            )
        }
        (_, Some(Token::Star)) if wanted("INT") && wanted("true") => Some(
            Diagnostic::error("syntax", span, "there are no pointers, and no memory can be read")
                .help("`old` is what a store overwrites, `out` what a load gave, `param(i)` an argument of the kernel"),
        ),
        (_, Some(Token::Lt | Token::Le | Token::Gt | Token::Ge | Token::Eq | Token::Ne))
            if wanted("&&") && !wanted("<") =>
        {
            Some(
                Diagnostic::error("syntax", span, "comparisons do not chain")
                    .help("write `a < b && b < c`, or put parentheses around one of them"),
            )
        }
        (Some(Token::Assign), Some(Token::Assign)) => None,
        (_, Some(Token::Assign)) if wanted("==") => Some(
            Diagnostic::error("syntax", span, "`=` assigns, in a statement of its own").help("`==` compares"),
        ),
        (_, Some(token)) if token.is_reserved() && wanted("IDENT") && !wanted("INT") && !wanted("let") => {
            let word = span.of(text);
            Some(
                Diagnostic::error("reserved", span, format!("`{word}` is a word of the language, not a name"))
                    .help(format!("`{word}_` would do")),
            )
        }
        (_, Some(Token::Semi)) if at == Some(0) => {
            Some(Diagnostic::error("syntax", span, "a `;` without an item before it"))
        }
        _ => None,
    }
}

/// A name that begins a statement and is followed by neither an assignment nor a call of a map.
fn habit_of_statement(name: &str, span: Span) -> Option<Diagnostic> {
    let error = |message: &str| Diagnostic::error("syntax", span, message);
    match name {
        "while" | "for" | "loop" | "do" | "unroll" | "repeat" => Some(
            error(&format!("there is no `{name}`: a probe runs from its first line to its last"))
                .help("the tracepoint `bb:loop` fires once a round of the kernel's own loops; a `state` counts across probes"),
        ),
        "printf" | "print" | "puts" => Some(
            error(&format!("there is no `{name}`: a probe saves, and nt-map shows"))
                .help("save into a record: `map log: stream<warp> { at: u64, value: u32 }` and `log.save(clock(), x);`"),
        ),
        "return" | "break" | "continue" | "exit" => {
            Some(error(&format!("there is no `{name}`: a probe runs from its first line to its last")).help("use `if` and `else`, or a predicate"))
        }
        "var" | "auto" | "int" | "unsigned" | "float" | "double" | "long" | "mut" => {
            Some(error(&format!("`{name}` declares nothing here")).help("write `let name = value;`, or outside of probes `state name: u64;`"))
        }
        "delete" | "clear" | "zero" => {
            Some(error(&format!("there is no `{name}`")).help("devices write maps and never read or clear them"))
        }
        "else" | "elif" | "elsif" => Some(error(&format!("there is no `{name}`")).help("write `else if`")),
        _ => None,
    }
}

/// `clock();`
fn call_alone(name: &str, span: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error("syntax", span, format!("a call of `{name}` alone does nothing"));
    if AGGREGATIONS.contains(&name) {
        diagnostic.help(format!("an aggregation has a name: `@x = {name}(…);`"))
    } else {
        diagnostic.help(format!("keep what it gives: `let x = {name}(…);`"))
    }
}

/// The `/` of a predicate that was opened after the tracepoints and not closed, if the error is a consequence of that.
fn open_predicate(item: &[Lexed<'_>], at: Option<usize>, wants_end: bool) -> Option<Span> {
    let header = item.iter().position(|&(token, _)| token == Token::LBrace).unwrap_or(item.len());
    // A probe begins with a tracepoint: `unit? provider :`.
    let provider =
        usize::from(matches!(item.first()?.0, Token::Thread(_) | Token::Warp(_) | Token::Block(_)));
    let is_probe = matches!(item.get(provider..provider + 2)?, [(Token::Ident(_), _), (Token::Colon, _)]);
    let closed = item[..header].iter().any(|&(token, _)| token == Token::PredEnd);
    let &(_, open) = item[..header].iter().find(|&&(token, _)| token == Token::Slash)?;
    // The parser takes any expression for the predicate, so it is lost where that ends.
    let lost = wants_end || at.is_none_or(|at| at >= header);
    (is_probe && !closed && lost).then_some(open)
}
