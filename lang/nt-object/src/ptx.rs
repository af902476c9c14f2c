//! PTX text as a container needs it: where it ends, what it is for, which kernels it has.
//!
//! This is a scan, not a reader: it knows comments, strings and a handful of directives, takes megabytes in
//! milliseconds, and accepts any bytes. `nt-ptx` reads PTX; a test holds the two to the same kernels.

use crate::Arch;
use crate::error::{Error, Fault};

/// The text of a PTX payload, without the NULs at its end. `at` is where the payload begins, for the error.
///
/// nvcc counts one NUL into the payload and pads with more; a file that keeps it is refused by ptxas.
///
/// # Errors
/// Text after a NUL. A driver would stop at the NUL and lose the rest in silence.
pub fn text(payload: &[u8], at: u64) -> Result<&[u8], Error> {
    let len = payload.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let text = payload.get(..len).unwrap_or_default();
    match memchr::memchr(0, text) {
        Some(byte) => Err(Error::new(at, "PTX text", Fault::InteriorNul { byte: byte as u64 })),
        None => Ok(text),
    }
}

/// Does this begin as PTX does: with `.version`, after comments and white space?
pub fn is_ptx(text: &[u8]) -> bool {
    let mut scan = Scan::new(text);
    scan.skip_blank();
    scan.rest().starts_with(b".version")
}

/// What a PTX module says of itself in its first lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// `.version 8.5`
    pub version: Option<(u16, u16)>,
    /// `.target sm_90a`
    pub target: Option<Arch>,
}

/// Reads `.version` and `.target`.
pub fn head(text: &[u8]) -> Head {
    let mut scan = Scan::new(text);
    let mut head = Head::default();
    loop {
        scan.skip_blank();
        match scan.word() {
            b".version" => {
                scan.skip_blank();
                let word = std::str::from_utf8(scan.word()).unwrap_or_default();
                head.version = word
                    .split_once('.')
                    .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
            }
            b".target" => {
                // Several may be named; the architecture is the one that begins with `sm_`, mostly the first.
                scan.skip_blank();
                head.target = std::str::from_utf8(scan.word()).ok().and_then(|word| word.parse().ok());
                return head;
            }
            _ => return head,
        }
    }
}

/// The names of the kernels with a body, in the order of the text, each once.
pub fn kernels(text: &[u8]) -> Vec<String> {
    let mut scan = Scan::new(text);
    let mut names = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    while scan.find_directive(b".entry") {
        scan.skip_blank();
        let name = scan.identifier();
        // `.entry k();` only announces it.
        if !name.is_empty() && scan.has_body() && seen.insert(name) {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    names
}

/// A place in PTX text.
pub(crate) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Scan { text, at: 0 }
    }

    /// The offset of what comes next.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Skips so many bytes.
    pub(crate) fn skip(&mut self, len: usize) {
        self.at = self.at.saturating_add(len).min(self.text.len());
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips white space, comments, and lines that begin with `#`, which preprocessors leave.
    pub(crate) fn skip_blank(&mut self) {
        // A byte order mark, which editors leave.
        if self.at == 0 && self.text.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        loop {
            let rest = self.rest();
            match rest.first() {
                Some(byte) if byte.is_ascii_whitespace() || *byte == 0x0b => self.at += 1,
                Some(b'#') => self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                Some(b'/') if matches!(rest.get(1), Some(b'/' | b'*')) => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// Skips the comment that begins here; a `/` that begins none; an unclosed one with all that follows.
    pub(crate) fn skip_comment(&mut self) {
        let rest = self.rest();
        self.at += match rest.get(1) {
            Some(b'/') => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            Some(b'*') => {
                memchr::memmem::find(rest.get(2..).unwrap_or_default(), b"*/").map_or(rest.len(), |n| n + 4)
            }
            _ => 1,
        };
    }

    /// Skips the string that begins here. PTX strings have no escapes and do not span lines.
    pub(crate) fn skip_string(&mut self) {
        let rest = self.rest().get(1..).unwrap_or_default();
        self.at += 1 + memchr::memchr2(b'"', b'\n', rest).map_or(rest.len(), |n| n + 1);
    }

    /// What stands here up to white space or a comma.
    pub(crate) fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let len = rest.iter().position(|byte| byte.is_ascii_whitespace() || b",;/".contains(byte));
        let word = rest.get(..len.unwrap_or(rest.len())).unwrap_or_default();
        self.at += word.len();
        word
    }

    fn identifier(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let len = rest.iter().position(|byte| !is_identifier(*byte)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    /// Moves behind the next `directive`, with its point, that is code.
    pub(crate) fn find_directive(&mut self, directive: &[u8]) -> bool {
        loop {
            let rest = self.rest();
            // Comments and strings are rare, so nearly all of the text is passed by memchr's two searches.
            let code = memchr::memchr2(b'/', b'"', rest).unwrap_or(rest.len());
            let mut from = 0;
            while let Some(found) = memchr::memmem::find(rest.get(from..code).unwrap_or_default(), directive)
            {
                let start = from + found;
                let end = start + directive.len();
                let before = start.checked_sub(1).and_then(|at| rest.get(at));
                let after = rest.get(end);
                from = end;
                if !before.is_some_and(|b| is_identifier(*b)) && !after.is_some_and(|b| is_identifier(*b)) {
                    self.at += end;
                    return true;
                }
            }
            self.at += code;
            match rest.get(code) {
                Some(b'"') => self.skip_string(),
                Some(_) => self.skip_comment(),
                None => return false,
            }
        }
    }

    /// Is there a `{` before the next `;`? Parameters and launch directives hold neither.
    fn has_body(&mut self) -> bool {
        self.next_of(b"{;") == Some(b'{')
    }

    /// Moves behind the next `byte` that is code; to the end if there is none.
    pub(crate) fn pass(&mut self, byte: u8) -> bool {
        let found = self.next_of(&[byte]).is_some();
        self.skip(1);
        found
    }

    /// Moves to the next of `bytes` that is code, and says which; to the end if there is none.
    fn next_of(&mut self, bytes: &[u8]) -> Option<u8> {
        loop {
            let rest = self.rest();
            let Some(next) = rest.iter().position(|byte| bytes.contains(byte) || b"/\"".contains(byte))
            else {
                self.at = self.text.len();
                return None;
            };
            self.at += next;
            match rest.get(next) {
                Some(b'/') => self.skip_comment(),
                Some(b'"') => self.skip_string(),
                found => return found.copied(),
            }
        }
    }
}

pub(crate) fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_$%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(kernels(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn kernels_are_entries_with_a_body() {
        check(".visible .entry a(.param .u64 p)\n.maxntid 32, 1, 1\n{ ret; }\n.entry b{ret;}", &["a", "b"]);
        check(".visible .func f() { ret; }", &[]);
        check(".visible .entry k();\n.visible .entry k() { ret; }", &["k"]);
        check(".visible .entry k();", &[]);
        check(".entry _ZN2k$a_$_b(.param .u32 $param){}", &["_ZN2k$a_$_b"]);
        check(".entry\t%odd /* ; */ ( ) // {\n { }", &["%odd"]);
        check(".entry /* x */ // y\n k /* ; */ {", &["k"]);
    }

    #[test]
    fn comments_and_strings_hold_no_kernels() {
        check("// .entry a() {}\n/* .entry b {} */ .file 1 \".entry c {\" .entry d { }", &["d"]);
        check("/* .entry a {", &[]);
        check(".section \"x .entry a {", &[]);
        check("mov.u32 %r1, x.entry; .entryway {} .loc.entry {}", &[]);
        check("a / .entry k { }", &["k"]);
    }

    #[test]
    fn first_lines() {
        let check = |text: &str, version, target: Option<&str>| {
            let expected = Head { version, target: target.map(|word| word.parse().unwrap()) };
            assert_eq!(head(text.as_bytes()), expected, "{text}");
        };
        check("\n\n//\n.version 8.5\n.target sm_90a, texmode_independent", Some((8, 5)), Some("sm_90a"));
        check(
            "# 1 \"x.cu\"\n/**/.version 9.0 .target sm_100f .address_size 64",
            Some((9, 0)),
            Some("sm_100f"),
        );
        check(".version 7", None, None);
        check(".version 7.0\n.entry k {}", Some((7, 0)), None);
        check("", None, None);
        assert!(is_ptx(b"\xef\xbb\xbf\n// x\n.version 1.0") && !is_ptx(b"version") && !is_ptx(b""));
    }

    #[test]
    fn text_ends_at_nuls_that_nothing_follows() {
        assert_eq!(text(b".version 8.0\0\0\0", 0).unwrap(), b".version 8.0");
        assert_eq!(text(b"\0\0", 0).unwrap(), b"");
        let error = text(b".version 8.0\0\0junk", 64).unwrap_err();
        assert_eq!(
            error.to_string(),
            "PTX text at 0x40: interior NUL at byte 12, and the text goes on after it"
        );
    }
}
