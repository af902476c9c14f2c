//! Text to tokens: logos rules, one a line, and the one rule that needs a look ahead.
//!
//! `/pred/ {` cannot be told from a division by a parser that sees one token. Since no expression is ever followed by
//! `{` right after a `/`, a `/` whose next token is `{` closes a predicate ([`Token::PredEnd`]); every other one
//! divides, or opens a predicate.
//!
//! Lexing never fails: what is no token is told in a list of [`Fault`]s and left out or replaced by a token of the
//! kind that was begun, so that the parser goes on. Language reference, Lexical rules.

use logos::Logos;
use nt_diag::Span;

/// A token's text and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'s> {
    /// As written.
    pub(crate) text: &'s str,
    /// Where.
    pub(crate) span: Span,
}

/// Why a piece of text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fault {
    /// `§`: a byte that begins no token.
    #[default]
    Stray,
    /// `$x`: a sigil of other languages.
    Sigil,
    /// `12ab`
    Number,
    /// `/* …`
    Comment,
    /// `"…` up to the end of the line, `"""…` up to the end of the text.
    Str,
}

/// One token. Those whose text matters carry it.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
#[logos(error = Fault)]
#[logos(skip r"[ \t\r\n]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
pub(crate) enum Token<'s> {
    // The reserved words.
    #[token("config")]
    Config,
    #[token("include")]
    Include,
    #[token("const")]
    Const,
    #[token("arg")]
    Arg,
    #[token("state")]
    State,
    #[token("map")]
    Map,
    #[token("let")]
    Let,
    #[token("if")]
    If,
    #[token("else")]
    Else,
    #[token("asm")]
    Asm,
    #[token("as")]
    As,
    #[token("bits")]
    Bits,
    #[token("true")]
    True,
    #[token("false")]
    False,
    // These three may also name fields and arguments.
    #[token("thread", word)]
    Thread(Word<'s>),
    #[token("warp", word)]
    Warp(Word<'s>),
    #[token("block", word)]
    Block(Word<'s>),

    // Names and literals.
    #[regex("[A-Za-z_][A-Za-z0-9_]*", word)]
    Ident(Word<'s>),
    #[regex("@[A-Za-z_][A-Za-z0-9_]*|@", word)]
    At(Word<'s>),
    #[regex(r"\$[0-9]+", word)]
    Param(Word<'s>),
    #[regex(r"[0-9][0-9_]*(KiB|MiB|GiB|ns|us|ms|s)?", word)]
    #[regex(r"0x[0-9a-fA-F][0-9a-fA-F_]*|0b[01][01_]*|0o[0-7][0-7_]*", word)]
    Int(Word<'s>),
    #[regex(r"[0-9][0-9_]*\.[0-9][0-9_]*([eE][+-]?[0-9]+)?|[0-9][0-9_]*[eE][+-]?[0-9]+", word)]
    Float(Word<'s>),
    #[regex(r#""([^"\\\n]|\\.)*""#, word, priority = 3)]
    Str(Word<'s>),
    #[token("\"\"\"", raw)]
    Raw(Word<'s>),

    // What is begun and goes wrong; of lower priority than the rules above.
    #[regex(r"[0-9][0-9A-Za-z_]*", |_| refuse(Fault::Number), priority = 1)]
    #[regex(r"\$[A-Za-z_][A-Za-z0-9_]*", |_| refuse(Fault::Sigil))]
    #[token("/*", |_| refuse(Fault::Comment))]
    #[regex(r#""([^"\\\n]|\\.)*"#, |_| refuse(Fault::Str), priority = 2)]
    Wrong(Word<'s>),

    // Punctuation.
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token(",")]
    Comma,
    #[token(";")]
    Semi,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("?")]
    Question,
    #[token("=")]
    Assign,
    #[token("+=")]
    AddAssign,
    #[token("-=")]
    SubAssign,
    #[token("*=")]
    MulAssign,
    #[token("&=")]
    AndAssign,
    #[token("|=")]
    OrAssign,
    #[token("^=")]
    XorAssign,
    #[token("<<=")]
    ShlAssign,
    #[token(">>=")]
    ShrAssign,
    #[token("++")]
    Increment,
    #[token("||")]
    OrOr,
    #[token("&&")]
    AndAnd,
    #[token("|")]
    Or,
    #[token("^")]
    Xor,
    #[token("&")]
    And,
    #[token("==")]
    Eq,
    #[token("!=")]
    Ne,
    #[token("<")]
    Lt,
    #[token("<=")]
    Le,
    #[token(">")]
    Gt,
    #[token(">=")]
    Ge,
    #[token("<<")]
    Shl,
    #[token(">>")]
    Shr,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("!")]
    Bang,
    #[token("~")]
    Tilde,
    /// Made by [`lex`], never by logos: a `/` whose next token is `{`.
    PredEnd,
}

impl Token<'_> {
    /// What `--emit=tokens` calls its kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Token::Ident(_) => "name",
            Token::At(_) => "map",
            Token::Param(_) => "parameter",
            Token::Int(_) => "integer",
            Token::Float(_) => "float",
            Token::Str(_) => "string",
            Token::Raw(_) => "raw",
            Token::PredEnd => "predicate-end",
            _ if self.is_reserved() => "word",
            _ => "punctuation",
        }
    }

    /// Is it a word that cannot be a name?
    pub(crate) fn is_reserved(&self) -> bool {
        matches!(
            self,
            Token::Config
                | Token::Include
                | Token::Const
                | Token::Arg
                | Token::State
                | Token::Map
                | Token::Let
                | Token::If
                | Token::Else
                | Token::Asm
                | Token::As
                | Token::Bits
                | Token::True
                | Token::False
                | Token::Thread(_)
                | Token::Warp(_)
                | Token::Block(_)
        )
    }
}

/// A token and its place.
pub(crate) type Lexed<'s> = (Token<'s>, Span);

/// All tokens of `text` (of at most 4 GiB), and what in it is none.
pub(crate) fn lex(text: &str) -> (Vec<Lexed<'_>>, Vec<(Fault, Span)>) {
    let mut lexer = Token::lexer(text);
    // An executable script: `#!/usr/bin/env -S nt-run -p`.
    if text.starts_with("#!") {
        lexer.bump(text.find('\n').unwrap_or(text.len()));
    }
    let (mut tokens, mut faults): (Vec<Lexed<'_>>, Vec<(Fault, Span)>) = (Vec::new(), Vec::new());
    while let Some(token) = lexer.next() {
        let span = Span::from(lexer.span());
        let token = match token {
            Ok(token) => token,
            Err(fault) => {
                let span = if fault == Fault::Comment { Span::new(span.start, end(text)) } else { span };
                match faults.last_mut() {
                    // A run of stray bytes is one fault.
                    Some((Fault::Stray, last)) if fault == Fault::Stray && last.end == span.start => {
                        last.end = span.end;
                    }
                    _ => faults.push((fault, span)),
                }
                let word = Word { text: span.of(text), span };
                match fault {
                    Fault::Number => Token::Int(word),
                    Fault::Str => Token::Str(word),
                    Fault::Sigil => Token::Ident(word),
                    Fault::Stray => continue,
                    Fault::Comment => break,
                }
            }
        };
        if token == Token::LBrace
            && let Some((slash @ Token::Slash, _)) = tokens.last_mut()
        {
            *slash = Token::PredEnd;
        }
        tokens.push((token, span));
    }
    (tokens, faults)
}

fn end(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

fn word<'s>(lexer: &mut logos::Lexer<'s, Token<'s>>) -> Word<'s> {
    Word { text: lexer.slice(), span: Span::from(lexer.span()) }
}

/// The type that a callback of a token with text has, though this one always fails.
fn refuse<'s>(fault: Fault) -> Result<Word<'s>, Fault> {
    Err(fault)
}

/// `"""…"""`, with what stands between as its text.
fn raw<'s>(lexer: &mut logos::Lexer<'s, Token<'s>>) -> Result<Word<'s>, Fault> {
    let rest = lexer.remainder();
    match rest.find("\"\"\"") {
        Some(length) => {
            lexer.bump(length + 3);
            Ok(Word { text: &rest[..length], span: Span::from(lexer.span()) })
        }
        None => {
            lexer.bump(rest.len());
            Err(Fault::Str)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let (tokens, faults) = lex(text);
        let mut shown: Vec<String> =
            tokens.iter().map(|(token, span)| format!("{}:{}", token.kind(), span.of(text))).collect();
        shown.extend(faults.iter().map(|(fault, span)| format!("{fault:?}!{}", span.of(text))));
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn a_slash_before_a_brace_closes_a_predicate() {
        check("/a / b/ // why\n{", "punctuation:/ name:a punctuation:/ name:b predicate-end:/ punctuation:{");
        check(
            "/a /* { */ /* */ {",
            "predicate-end:/ name:a punctuation:{".replace("predicate-end", "punctuation").as_str(),
        );
    }

    #[test]
    fn words_and_numbers() {
        check("map maps @m @ $1 warp", "word:map name:maps map:@m map:@ parameter:$1 word:warp");
        check(
            "1_000 0xff 0b101 0o17 4KiB 10ms",
            "integer:1_000 integer:0xff integer:0b101 integer:0o17 integer:4KiB integer:10ms",
        );
        check("1.5 2e-3 1.5e3 1.x", "float:1.5 float:2e-3 float:1.5e3 integer:1 punctuation:. name:x");
        check(r#""a\"b" """x "y" z""""#, r#"string:"a\"b" raw:"""x "y" z""""#);
        check("#!/usr/bin/nt\nx", "name:x");
    }

    #[test]
    fn what_is_no_token_is_told_and_passed() {
        check("12ab + 0x", "integer:12ab punctuation:+ integer:0x Number!12ab Number!0x");
        check("a /* b", "name:a Comment!/* b");
        check("a \"b\nc", "name:a string:\"b name:c Str!\"b");
        check("\"\"\" x", "string:\"\"\" x Str!\"\"\" x");
        check("a §§ b $x", "name:a name:b name:$x Stray!§§ Sigil!$x");
    }
}
