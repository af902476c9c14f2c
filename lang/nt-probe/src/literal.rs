//! What literals stand for: integers with bases and suffixes, strings with escapes.

/// The value of an integer as the lexer accepts it, or why it has none.
pub(crate) fn integer(text: &str) -> Result<u64, String> {
    let (digits, base, factor) = match text.get(..2) {
        Some("0x") => (&text[2..], 16, 1),
        Some("0b") => (&text[2..], 2, 1),
        Some("0o") => (&text[2..], 8, 1),
        _ => {
            let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
            let factor = match &text[end..] {
                "KiB" => 1 << 10,
                "MiB" => 1 << 20,
                "GiB" => 1 << 30,
                "us" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                _ => 1,
            };
            (&text[..end], 10, factor)
        }
    };
    let digits = digits.replace('_', "");
    if base == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Err(format!(
            "`{text}` begins with a zero: write `0o{0}` for octal, `{0}` for decimal",
            digits.trim_start_matches('0')
        ));
    }
    u64::from_str_radix(&digits, base)
        .ok()
        .and_then(|value| value.checked_mul(factor))
        .ok_or_else(|| format!("`{text}` does not fit 64 bits"))
}

/// What a string in quotes stands for, or the offset of the escape that it does not know.
pub(crate) fn unescape(quoted: &str) -> Result<String, u32> {
    let inner = quoted.strip_prefix('"').unwrap_or(quoted);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let unknown = at as u32 + 1;
        match chars.next().map(|(_, c)| c) {
            Some('"') => out.push('"'),
            Some('\\') => out.push('\\'),
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('x') => {
                let digit =
                    |next: Option<(usize, char)>| next.and_then(|(_, c)| c.to_digit(16)).ok_or(unknown);
                let (high, low) = (digit(chars.next())?, digit(chars.next())?);
                out.push(char::from_u32(high * 16 + low).ok_or(unknown)?);
            }
            _ => return Err(unknown),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (text, value) in [
            ("0", 0),
            ("1_000", 1000),
            ("0xff", 255),
            ("0b101", 5),
            ("0o17", 15),
            ("4KiB", 4096),
            ("3us", 3000),
            ("7ns", 7),
            ("0s", 0),
            ("18446744073709551615", u64::MAX),
            ("16GiB", 1 << 34),
        ] {
            assert_eq!(integer(text), Ok(value), "{text}");
        }
        assert_eq!(
            integer("017").unwrap_err(),
            "`017` begins with a zero: write `0o17` for octal, `17` for decimal"
        );
        assert_eq!(
            integer("18446744073709551616").unwrap_err(),
            "`18446744073709551616` does not fit 64 bits"
        );
        assert!(integer("99999999999s").is_err());
    }

    #[test]
    fn strings() {
        assert_eq!(unescape(r#""a\"\\\n\x41""#), Ok("a\"\\\nA".to_owned()));
        assert_eq!(unescape(r#""ab\q""#), Err(3));
        assert_eq!(unescape(r#""\x4""#), Err(1));
    }
}
