//! PTX text as tokens.
//!
//! Opcodes are not tokens of their own: `ld.global.L2::128B.u32` is the name `ld` and three dotted words, blanks
//! between which PTX allows. Blanks are dropped, comments are kept: the weaver's marks are comments.
//!
//! Every byte that is no blank belongs to one token. What no token may hold is [`TokenKind::Bad`], one token a run,
//! so that a binary gives few of them.
//!
//! Source: PTX ISA 9.0, section 4.4 (identifiers) and 4.5 (constants); ptxas 13.0 where the manual is silent.

use crate::syntax::Module;
use logos::{Lexer, Logos};
use nt_diag::Span;

/// What a token is.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[logos(skip r"[ \t\r\n]+")]
pub enum TokenKind {
    /// `mov`, `%r1`, `$L__BB0_2`, `_Z1kPf`, `_`
    #[regex(r"[A-Za-z_$][A-Za-z0-9_$]*")]
    #[regex(r"%[A-Za-z0-9_$]+")]
    Name,
    /// `.global`, `.shared::cta`, `.L2::128B`, `.sp::2:4`: a directive, a modifier, or the field of a register.
    #[regex(r"\.[A-Za-z0-9_$]+(::[A-Za-z0-9_$]+(:[0-9]+)?)*")]
    Dotted,
    /// `12`, `0x1FU`, `0f3F800000`, `8.5`, `1e-3`; letters that do not belong there are part of it.
    #[regex(r"[0-9][0-9A-Za-z_]*")]
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")]
    #[regex(r"[0-9]+[eE][+-][0-9]+")]
    Number,
    /// `"nounroll"`, quotes included. PTX has no escapes, and a line end may stand in it.
    #[token("\"", string)]
    String,
    /// `// to the end of the line`
    #[regex(r"//[^\r\n]*", allow_greedy = true)]
    LineComment,
    /// `/* … */`, which does not nest.
    #[token("/*", block_comment)]
    BlockComment,
    /// `# 1 "file.cu"`: where a preprocessor says the text came from. Allowed between any two tokens, as a comment.
    #[regex(r"#[^\r\n]*", allow_greedy = true)]
    LineMarker,
    /// `,`
    #[token(",")]
    Comma,
    /// `;`
    #[token(";")]
    Semicolon,
    /// `:` behind a label.
    #[token(":")]
    Colon,
    /// `{`
    #[token("{")]
    OpenBrace,
    /// `}`
    #[token("}")]
    CloseBrace,
    /// `[`
    #[token("[")]
    OpenBracket,
    /// `]`
    #[token("]")]
    CloseBracket,
    /// `(`
    #[token("(")]
    OpenParen,
    /// `)`
    #[token(")")]
    CloseParen,
    /// `@` of a guard.
    #[token("@")]
    At,
    /// `!` of a guard or of a predicate operand.
    #[token("!")]
    Not,
    /// `|` between two destinations, or "or" in a constant.
    #[token("|")]
    Bar,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `<` of `%r<9>`
    #[token("<")]
    Less,
    /// `>` of `%r<9>`
    #[token(">")]
    Greater,
    /// `=` of an initialiser.
    #[token("=")]
    Equal,
    /// Another sign of constant expressions: `* / % ~ ^ & ? << >> && || == != <= >=`
    #[token("*")]
    #[token("/")]
    #[token("%")]
    #[token("~")]
    #[token("^")]
    #[token("&")]
    #[token("?")]
    #[token("<<")]
    #[token(">>")]
    #[token("&&")]
    #[token("||")]
    #[token("==")]
    #[token("!=")]
    #[token("<=")]
    #[token(">=")]
    Operator,
    /// What PTX has no use for: control characters, `\`, letters beyond ASCII, an unclosed string or comment.
    #[regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f'\\`\x7f-\u{10ffff}]+")]
    Bad,
}

impl TokenKind {
    /// A comment of either form, or a line marker: what may stand between any two tokens and means nothing.
    pub fn is_comment(self) -> bool {
        matches!(self, TokenKind::LineComment | TokenKind::BlockComment | TokenKind::LineMarker)
    }
}

/// Ends a block comment; an unclosed one takes the rest of the text and is bad.
fn block_comment(lexer: &mut Lexer<'_, TokenKind>) -> Result<(), ()> {
    match memchr::memmem::find(lexer.remainder().as_bytes(), b"*/") {
        Some(end) => {
            lexer.bump(end + 2);
            Ok(())
        }
        None => {
            lexer.bump(lexer.remainder().len());
            Err(())
        }
    }
}

/// Ends a string; an unclosed one takes the rest of the text and is bad.
fn string(lexer: &mut Lexer<'_, TokenKind>) -> Result<(), ()> {
    match memchr::memchr(b'"', lexer.remainder().as_bytes()) {
        Some(end) => {
            lexer.bump(end + 1);
            Ok(())
        }
        None => {
            lexer.bump(lexer.remainder().len());
            Err(())
        }
    }
}

/// The tokens of a part of a text, in order, blanks left out.
#[derive(Clone)]
pub struct Tokens<'s> {
    lexer: Lexer<'s, TokenKind>,
    /// Where the part begins in the text.
    base: u32,
}

impl<'s> Tokens<'s> {
    /// The tokens of `text` from byte `start` to `end`; none if that cuts a character.
    pub(crate) fn new(text: &'s str, span: Span) -> Self {
        Tokens { lexer: TokenKind::lexer(span.of(text)), base: span.start }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (TokenKind, Span);

    fn next(&mut self) -> Option<(TokenKind, Span)> {
        let kind = self.lexer.next()?.unwrap_or(TokenKind::Bad);
        let range = self.lexer.span();
        // The text is shorter than 4 GiB and the part lies in it, so the sum does not wrap.
        let at = |offset: usize| self.base.saturating_add(u32::try_from(offset).unwrap_or(u32::MAX));
        Some((kind, Span::new(at(range.start), at(range.end))))
    }
}

impl std::fmt::Debug for Tokens<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'s> Module<'s> {
    /// The tokens of a part of the text, comments included.
    pub fn tokens(&self, span: Span) -> Tokens<'s> {
        Tokens::new(self.text, span)
    }

    /// The tokens of a part of the text, without its comments.
    pub fn code(&self, span: Span) -> impl Iterator<Item = (TokenKind, Span)> + use<'s> {
        self.tokens(span).filter(|(kind, _)| !kind.is_comment())
    }
}
