//! Tokens to tree. LALRPOP's errors become diagnostics in one function, [`explain`].
//!
//! The tokens are cut into items first, and each is parsed by itself: an error in one leaves the others alone, so
//! that the errors of all items are reported at once. Within a body the grammar's `!` picks up at the next `;`.

use crate::ast::Item;
use crate::expected::{describe, expected};
use crate::hints::hint;
use crate::literal::{integer, unescape};
use crate::nesting::too_deep;
use crate::token::{Fault, Lexed, Token, lex};
use lalrpop_util::{ErrorRecovery, ParseError, lalrpop_mod};
use nt_diag::{Diagnostic, Found, Span};
use std::collections::BTreeSet;
use std::convert::Infallible;

lalrpop_mod!(
    #[allow(
        unreachable_pub,
        unused_qualifications,
        rust_2018_idioms,
        missing_docs,
        clippy::all,
        clippy::unwrap_used,
        clippy::panic,
        clippy::match_same_arms,
        clippy::needless_pass_by_value,
        clippy::redundant_closure_for_method_calls,
        clippy::semicolon_if_nothing_returned,
        clippy::unnested_or_patterns,
        clippy::cloned_instead_of_copied,
        reason = "generated"
    )]
    grammar,
    "/probe.rs"
);

/// What the grammar's `!` passed over.
pub(crate) type Recovered<'s> = ErrorRecovery<usize, Token<'s>, Infallible>;
/// An error of LALRPOP's, as this grammar has it: the lexer has told its own already.
pub(crate) type Error<'s> = ParseError<usize, Token<'s>, Infallible>;

/// Parses a program. Items and statements with errors are left out or bad; the errors are in `found`.
pub(crate) fn parse<'s>(text: &'s str, found: &mut Found) -> Vec<Item<'s>> {
    if u32::try_from(text.len()).is_err() {
        found.push(Diagnostic::error("syntax", Span::default(), "a program of more than 4 GiB"));
        return Vec::new();
    }
    check_version(text, found);
    let (tokens, faults) = lex(text);
    for &(fault, span) in &faults {
        found.push(tell(fault, span, text));
    }
    check_literals(&tokens, &faults, found);

    let mut items = Vec::new();
    for tokens in cut(&tokens) {
        if let Some(refused) = too_deep(tokens) {
            found.push(refused);
            continue;
        }
        let mut errors = Vec::new();
        let stream = tokens.iter().map(|&(token, span)| Ok((span.start as usize, token, span.end as usize)));
        let parsed = grammar::ProgramParser::new().parse(&mut errors, stream);
        // Where a piece of the item was no token, what the parser says is a consequence of that.
        let place = Span::new(tokens[0].1.start, tokens[tokens.len() - 1].1.end);
        if faulty(&faults, place) {
            items.extend(parsed.unwrap_or_default());
            continue;
        }
        for recovered in &errors {
            found.push(explain(&recovered.error, tokens, text));
        }
        match parsed {
            Ok(parsed) => items.extend(parsed),
            Err(error) => found.push(explain(&error, tokens, text)),
        }
    }
    items
}

/// Is there a fault within `place`? Faults are in the order of the text.
fn faulty(faults: &[(Fault, Span)], place: Span) -> bool {
    let next = faults.partition_point(|(_, span)| span.start < place.start);
    faults.get(next).is_some_and(|(_, span)| span.start < place.end)
}

/// Cuts tokens into items, none of them empty: each ends with a `;` or `}` outside of brackets, or where a word that only
/// begins an item shows that a `}` is missing.
fn cut<'t, 's>(mut tokens: &'t [Lexed<'s>]) -> Vec<&'t [Lexed<'s>]> {
    let mut items = Vec::new();
    while !tokens.is_empty() {
        let (item, rest) = tokens.split_at(item_length(tokens));
        items.push(item);
        tokens = rest;
    }
    items
}

/// How many of `tokens`, at least one, make the first item.
fn item_length(tokens: &[Lexed<'_>]) -> usize {
    let mut open = Vec::new();
    for (at, &(token, _)) in tokens.iter().enumerate() {
        match token {
            Token::LBrace | Token::LParen | Token::LBracket => open.push(token),
            Token::RParen | Token::RBracket => {
                // A `)` or `]` without its partner closes nothing.
                let partner = if token == Token::RParen { Token::LParen } else { Token::LBracket };
                if open.last() == Some(&partner) {
                    open.pop();
                }
            }
            Token::RBrace => {
                // A `}` closes what was left open within its braces.
                while open.pop().is_some_and(|opener| opener != Token::LBrace) {}
                if open.is_empty() {
                    return at + 1;
                }
            }
            Token::Semi if open.is_empty() => return at + 1,
            _ if at > 0 && !open.is_empty() && begins_item(&tokens[at..]) => return at,
            _ => {}
        }
    }
    tokens.len()
}

/// Can `tokens`, found inside of brackets, only be the beginning of an item?
fn begins_item(tokens: &[Lexed<'_>]) -> bool {
    let kind = |at: usize| tokens.get(at).map(|&(token, _)| token);
    match tokens[0].0 {
        Token::Config => kind(1) == Some(Token::LBrace),
        Token::Include => matches!(kind(1), Some(Token::Str(_))),
        Token::Map => {
            matches!((kind(1), kind(2)), (Some(Token::Ident(_) | Token::At(_)), Some(Token::Colon)))
        }
        Token::Const | Token::Arg | Token::State => matches!(kind(1), Some(Token::Ident(_))),
        // `warp kernel:`, where an expression would go on with an operator, or the `:` of a select.
        Token::Thread(_) | Token::Warp(_) | Token::Block(_) => {
            matches!((kind(1), kind(2)), (Some(Token::Ident(_)), Some(Token::Colon)))
        }
        _ => false,
    }
}

/// LALRPOP's error in words: what was expected, what was found, and a hint where other languages' habits explain it.
fn explain(error: &Error<'_>, item: &[Lexed<'_>], text: &str) -> Diagnostic {
    // Tokens are in the order of the text.
    let index = |span: Span| item.binary_search_by_key(&span.start, |&(_, place)| place.start).ok();
    let (at, span, words) = match error {
        ParseError::UnrecognizedToken { token: (start, _, end), expected } => {
            let span = Span::from(*start..*end);
            (index(span), span, expected.as_slice())
        }
        ParseError::UnrecognizedEof { location, expected } => {
            (None, Span::from(*location..*location), expected.as_slice())
        }
        ParseError::ExtraToken { token: (start, _, end) } => {
            let span = Span::from(*start..*end);
            (index(span), span, [].as_slice())
        }
        ParseError::InvalidToken { location } => (None, Span::from(*location..*location), [].as_slice()),
        ParseError::User { error } => match *error {},
    };
    if let Some(hinted) = hint(item, at, span, words, text) {
        return hinted;
    }
    let found = at.map_or_else(|| "the end".to_owned(), |at| describe(item[at].0, text, span));
    Diagnostic::error("syntax", span, format!("expected {}, found {found}", expected(words)))
}

/// What is wrong with a piece of text that is no token.
fn tell(fault: Fault, span: Span, text: &str) -> Diagnostic {
    let shown = span.of(text);
    match fault {
        Fault::Stray => {
            let message = if shown.is_ascii() {
                format!("`{shown}` has no meaning here")
            } else {
                format!("`{shown}`: only comments and strings may hold other characters than ASCII")
            };
            Diagnostic::error("syntax", span, message)
        }
        Fault::Sigil => Diagnostic::error("syntax", span, format!("variables have no sigil: `{shown}`"))
            .help(format!("write `{}`, and declare it with `state` or `let`", shown.trim_start_matches('$')))
            .help("`$1`, `$2` … are the arguments without a name"),
        Fault::Number => {
            let diagnostic = Diagnostic::error("bad-number", span, format!("`{shown}` is no number"));
            diagnostic.help(
                "suffixes are KiB MiB GiB and ns us ms s; other bases 0x 0b 0o; a name begins with a letter",
            )
        }
        Fault::Comment => Diagnostic::error(
            "open-comment",
            Span::new(span.start, span.start + 2),
            "this comment has no end",
        )
        .help("comments do not nest; the first `*/` ends one"),
        Fault::Str if shown.starts_with("\"\"\"") => {
            Diagnostic::error("open-string", Span::new(span.start, span.start + 3), "this string has no end")
                .help("a string that begins with three quotes ends with three")
        }
        Fault::Str => Diagnostic::error("open-string", span, "this string has no end on its line")
            .help("a string over several lines stands in three quotes, and only in `asm`"),
    }
}

/// Literals whose shape is right and whose value is not.
fn check_literals(tokens: &[Lexed<'_>], faults: &[(Fault, Span)], found: &mut Found) {
    let faulty: BTreeSet<u32> = faults.iter().map(|(_, span)| span.start).collect();
    for &(token, span) in tokens.iter().filter(|(_, span)| !faulty.contains(&span.start)) {
        match token {
            Token::Int(word) => {
                if let Err(message) = integer(word.text) {
                    found.push(Diagnostic::error("bad-number", span, message));
                }
            }
            Token::Str(word) => {
                if let Err(offset) = unescape(word.text) {
                    let start = span.start + offset;
                    let message = "strings know the escapes \\\" \\\\ \\n \\t \\xNN";
                    found.push(Diagnostic::error("syntax", Span::new(start, start + 2), message));
                }
            }
            _ => {}
        }
    }
}

/// `// nt 1` before the first item names the language's version.
fn check_version(text: &str, found: &mut Found) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim();
        let is_comment = body.is_empty() || body.starts_with("//") || (start == 0 && body.starts_with("#!"));
        if !is_comment {
            return;
        }
        if let Some(version) = body.strip_prefix("// nt ")
            && !version.is_empty()
            && version.bytes().all(|byte| byte.is_ascii_digit())
            && version != "1"
        {
            let at = start + line.find(version).unwrap_or(0);
            let message = format!("version {version} of the language, where this program knows version 1");
            found.push(Diagnostic::error("version", Span::from(at..at + version.len()), message));
        }
        start += line.len();
    }
}
