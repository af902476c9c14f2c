//! V4 and V13 in the original: no identifier begins with the prefix, no probed entry is an operand.
//!
//! ```text
//! .reg .b64 %nt_x;         the prefix `nt_` is taken: the claim must say another
//! mov.u64 %rd1, k;         `k` is launched from the device too: its signature must stay
//! ```
//!
//! One walk over the bytes, which knows comments, strings, numbers and dotted words, and asks about each identifier.

/// Calls `see` with the place and text of each identifier of PTX text: not those in comments and strings, nor dotted
/// words.
pub(crate) fn identifiers<'t>(text: &'t str, mut see: impl FnMut(usize, &'t str)) {
    let bytes = text.as_bytes();
    let word = |from: usize| from + bytes[from..].iter().take_while(|&&b| CLASS[b as usize] >= WORD).count();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at = match CLASS[byte as usize] {
            OTHER => at + 1,
            SPECIAL => match (byte, bytes.get(at + 1)) {
                (b'/', Some(b'/')) => memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end),
                (b'/', Some(b'*')) => {
                    let end = memchr::memmem::find(&bytes[at + 2..], b"*/");
                    end.map_or(bytes.len(), |end| at + 2 + end + 2)
                }
                (b'"', _) => {
                    memchr::memchr(b'"', &bytes[at + 1..]).map_or(bytes.len(), |end| at + 1 + end + 1)
                }
                // `%tid`, or the sign of a remainder.
                (b'%', _) => {
                    let end = word(at + 1);
                    see(at, text.get(at..end).unwrap_or(""));
                    end
                }
                (b'.', _) => word(at + 1),
                _ => at + 1,
            },
            DIGIT => word(at),
            _ => {
                let end = word(at);
                see(at, text.get(at..end).unwrap_or(""));
                end
            }
        };
    }
}

/// Does an identifier begin with the prefix, behind an optional `%` or `$`?
pub(crate) fn begins_with(identifier: &str, prefix: &str) -> bool {
    identifier.strip_prefix(['%', '$']).unwrap_or(identifier).starts_with(prefix)
}

const OTHER: u8 = 0;
/// Begins a comment, a string, a dotted word or a name with `%`.
const SPECIAL: u8 = 1;
const WORD: u8 = 2;
/// A digit, which is part of words but begins none.
const DIGIT: u8 = 3;

/// What each byte begins.
const CLASS: [u8; 256] = {
    let mut class = [OTHER; 256];
    let mut b = 0;
    while b < 256 {
        class[b] = match b as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' => WORD,
            b'0'..=b'9' => DIGIT,
            b'/' | b'"' | b'%' | b'.' => SPECIAL,
            _ => OTHER,
        };
        b += 1;
    }
    class
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_a_text() {
        let text = "k: // nt_a\n @%p1 ld.global.nt_b %nt_c, [$nt_d+0xnt_e]; /* nt_f */ \"nt_g\" x%nt_h é_y";
        let mut found = Vec::new();
        identifiers(text, |at, name| {
            assert!(text[at..].starts_with(name));
            found.push(name);
        });
        assert_eq!(found, ["k", "%p1", "ld", "%nt_c", "$nt_d", "x", "%nt_h", "_y"]);
        for open in ["a /* b", "a // b", "a \"b", "a /", "a ."] {
            let mut found = Vec::new();
            identifiers(open, |_, name| found.push(name));
            assert_eq!(found, ["a"], "{open}");
        }
    }

    #[test]
    fn what_begins_with_a_prefix() {
        assert!(begins_with("%nt_x", "nt_") && begins_with("$nt_", "nt_") && begins_with("nt_ctx", "nt_"));
        assert!(!begins_with("print_", "nt_") && !begins_with("%%nt_", "nt_") && !begins_with("_nt_", "nt_"));
    }
}
