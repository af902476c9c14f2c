//! Tokens of inserted text, read more narrowly than PTX is.
//!
//! ```text
//! @!%p1 bra $nt_L1;     At Not Name(%p1) Name(bra) Name($nt_L1) Semicolon
//! ```
//!
//! What is inserted is ours, so whatever readers of PTX could disagree about is refused instead of read: bytes beyond
//! ASCII, control characters, strings, a carriage return without its line feed (ptxas 13.0 goes on with a `//` comment
//! there, others end it), a backslash, `/*` within a comment, blanks within an opcode. V3 speaks of what is refused.

use nt_diag::Span;

/// One token, with its place in the woven text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'w> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'w str,
    pub(crate) span: Span,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// `mov.u32`, `%nt_x`, `$nt_L1`, `%tid.x`: a name with all that hangs on it by dots.
    Name,
    /// `.reg`, `.b32`
    Dotted,
    /// `12`, `0x1F`, `0f3F800000`; not yet checked to be one.
    Number,
    /// `{ } [ ] ( ) < > , ; : @ ! | + - _`, one byte.
    Sign(u8),
    /// A whole `/* … */`.
    Comment,
}

/// Where a text cannot be read, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LexError {
    pub(crate) span: Span,
    pub(crate) message: &'static str,
}

/// All tokens of `text`, which begins at `at` in the woven text. Block comments are tokens; line comments are dropped.
pub(crate) fn tokens(text: &str, at: u32) -> Result<Vec<Token<'_>>, LexError> {
    let bytes = text.as_bytes();
    let span = |from: usize, to: usize| Span::new(at + from as u32, at + to as u32);
    let fail = |from: usize, to: usize, message| Err(LexError { span: span(from, to), message });
    // About what spans have, most names being long.
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let mut from = 0;
    while let Some(&byte) = bytes.get(from) {
        let (kind, to) = match byte {
            b' ' | b'\t' | b'\n' => {
                from += 1;
                continue;
            }
            b'\r' if bytes.get(from + 1) == Some(&b'\n') => {
                from += 2;
                continue;
            }
            b'/' if bytes.get(from + 1) == Some(&b'/') => {
                let Some(length) = bytes[from..].iter().position(|&b| b == b'\n') else {
                    return fail(from, bytes.len(), "a `//` comment that does not end");
                };
                let comment = &bytes[from..from + length];
                if !is_plain(comment.strip_suffix(b"\r").unwrap_or(comment)) {
                    return fail(from, from + length, "a comment holds more than plain ASCII");
                }
                from += length;
                continue;
            }
            b'/' if bytes.get(from + 1) == Some(&b'*') => {
                let Some(length) = bytes[from + 2..].windows(2).position(|pair| pair == b"*/") else {
                    return fail(from, bytes.len(), "a comment that does not end");
                };
                let inner = &bytes[from + 2..from + 2 + length];
                if inner.windows(2).any(|pair| pair == b"/*") {
                    return fail(from, from + length + 4, "a comment that opens another");
                }
                let lines = inner.split(|&b| b == b'\n');
                if !lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).all(is_plain) {
                    return fail(from, from + length + 4, "a comment holds more than plain ASCII");
                }
                (TokenKind::Comment, from + length + 4)
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'$' | b'%' | b'_' => {
                let end = run(bytes, from + 1, is_word);
                let name = &bytes[from..end];
                if name == b"%" {
                    return fail(from, end, "a `%` without a name");
                }
                if name == b"_" {
                    (TokenKind::Sign(b'_'), end)
                } else {
                    (TokenKind::Name, dotted(bytes, end))
                }
            }
            b'.' => {
                let end = dotted(bytes, from);
                if end == from {
                    return fail(from, from + 1, "a dot without a word");
                }
                (TokenKind::Dotted, end)
            }
            b'0'..=b'9' => {
                (TokenKind::Number, run(bytes, from, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.'))
            }
            b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b',' | b';' | b':' | b'@' | b'!'
            | b'|' | b'+' | b'-' => (TokenKind::Sign(byte), from + 1),
            b'"' => return fail(from, from + 1, "a string"),
            _ => return fail(from, from + 1, "a byte that inserted text may not hold"),
        };
        // Cut at ASCII bytes, so this is always some.
        let Some(token) = text.get(from..to) else { return fail(from, from, "text cut within a character") };
        tokens.push(Token { kind, text: token, span: span(from, to) });
        from = to;
    }
    Ok(tokens)
}

/// Printable ASCII and tabs, no backslash: what cannot end a line or join two for any reader.
fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|&b| matches!(b, b'\t' | b' '..=b'~') && b != b'\\')
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$'
}

/// The end of the bytes from `from` that belong.
fn run(bytes: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|&&b| belongs(b)).count()
}

/// The end of `.a.b::c` from `from`, without blanks.
fn dotted(bytes: &[u8], mut from: usize) -> usize {
    while bytes.get(from) == Some(&b'.') {
        let end = run(bytes, from + 1, |b| is_word(b) || b == b':');
        // A label's colon is no part of it: only a double one is.
        let end = from + 1 + bytes[from + 1..end].iter().rposition(|&b| b != b':').map_or(0, |last| last + 1);
        if end == from + 1 {
            break;
        }
        from = end;
    }
    from
}

/// How many bytes of `text`, from its start, are blanks and comments of PTX that end within it.
///
/// A `//` comment ends with its line feed only; the caller sees to it that no carriage return stands in one. Bytes that
/// follow are the first of something else, or of a comment that is not closed.
pub(crate) fn trivia(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at = run(bytes, at, |b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'));
        let rest = &bytes[at..];
        let length = if rest.starts_with(b"//") {
            memchr::memchr(b'\n', rest).map(|end| end + 1)
        } else if rest.starts_with(b"/*") {
            memchr::memmem::find(&rest[2..], b"*/").map(|end| end + 4)
        } else {
            None
        };
        match length {
            Some(length) => at += length,
            None => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found = tokens(text, 7).expect("is read");
        assert_eq!(found.iter().map(|t| t.text).collect::<Vec<_>>(), expected);
        for token in found {
            assert_eq!(&text[token.span.start as usize - 7..token.span.end as usize - 7], token.text);
        }
    }

    fn refused(text: &str, message: &str) {
        assert_eq!(tokens(text, 0).expect_err("must be refused").message, message, "{text:?}");
    }

    #[test]
    fn tokens_of_a_span() {
        check("@!%p1 bra $nt_L1;", &["@", "!", "%p1", "bra", "$nt_L1", ";"]);
        check("$nt_L:}", &["$nt_L", ":", "}"]);
        check(
            "st.global.v4.b32[%nt_a+4],{_,%tid.x};",
            &["st.global.v4.b32", "[", "%nt_a", "+", "4", "]", ",", "{", "_", ",", "%tid.x", "}", ";"],
        );
        check(
            "ld.global.L2::128B.b32 x; // word\r\n.reg .b32 %r<4>",
            &["ld.global.L2::128B.b32", "x", ";", ".reg", ".b32", "%r", "<", "4", ">"],
        );
        check("0x1F /* a * b */ 0f3F800000", &["0x1F", "/* a * b */", "0f3F800000"]);
    }

    #[test]
    fn what_readers_could_disagree_about() {
        refused("ret; // open", "a `//` comment that does not end");
        refused("// a\rb\n", "a comment holds more than plain ASCII");
        refused("// a\\\n", "a comment holds more than plain ASCII");
        refused("/* é */", "a comment holds more than plain ASCII");
        refused("/* a\rb */", "a comment holds more than plain ASCII");
        refused("/* /* */", "a comment that opens another");
        refused("/*/", "a comment that does not end");
        refused("\"x\"", "a string");
        refused("mov \u{b} x", "a byte that inserted text may not hold");
        refused("é", "a byte that inserted text may not hold");
        refused("a \r b", "a byte that inserted text may not hold");
        refused("% x", "a `%` without a name");
        refused(". x", "a dot without a word");
        refused("#1", "a byte that inserted text may not hold");
    }

    #[test]
    fn blanks_and_comments_between_statements() {
        assert_eq!(trivia(" \t// a\r\n /* b */\n"), 17);
        assert_eq!(trivia(" // a"), 1);
        assert_eq!(trivia("/* a"), 0);
        assert_eq!(trivia("/*/ x"), 0);
        assert_eq!(trivia("\n ret;"), 2);
    }
}
