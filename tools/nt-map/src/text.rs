//! Fields of lines: how a text and a value look in TSV, CSV and JSON.
//!
//! | | TSV | CSV | JSON |
//! |---|---|---|---|
//! | text | tab, line feed and other control characters as `\t` `\n` `\xNN`, `\` as `\\` | quoted as RFC 4180 has it | escaped as RFC 8259 has it |
//! | no value | `-` | nothing | no key |
//! | address | `0x7f00` | `0x7f00` | `"0x7f00"` |
//! | NaN, ∞ | `NaN` `inf` | the same | `"NaN"` `"inf"` |

use crate::cli::Format;
use nt_trace::ntt::Value;
use std::io::Write;

/// Appends a text as one field.
pub(crate) fn put_text(out: &mut Vec<u8>, format: Format, text: &str) {
    match format {
        Format::Tsv => {
            for c in text.chars() {
                match c {
                    '\t' => out.extend_from_slice(b"\\t"),
                    '\n' => out.extend_from_slice(b"\\n"),
                    '\r' => out.extend_from_slice(b"\\r"),
                    '\\' => out.extend_from_slice(b"\\\\"),
                    c if c.is_control() => put(out, format_args!("\\x{:02x}", u32::from(c))),
                    c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                }
            }
        }
        Format::Csv => {
            if !text.contains([',', '"', '\n', '\r']) {
                out.extend_from_slice(text.as_bytes());
                return;
            }
            out.push(b'"');
            for (i, part) in text.split('"').enumerate() {
                if i > 0 {
                    out.extend_from_slice(b"\"\"");
                }
                out.extend_from_slice(part.as_bytes());
            }
            out.push(b'"');
        }
        Format::Json => out.extend_from_slice(nt_diag::json_escape(text).as_bytes()),
    }
}

/// Appends a number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number in hex, as of an address or a mask.
pub(crate) fn put_hex(out: &mut Vec<u8>, format: Format, number: u64) {
    // Quotes, `0x` and sixteen digits: the place never goes below 1.
    let mut text = [b'"'; 20];
    let (mut at, mut rest) = (19, number);
    loop {
        at -= 1;
        text[at] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            break;
        }
    }
    text[at - 2] = b'0';
    text[at - 1] = b'x';
    let quotes = usize::from(format == Format::Json);
    out.extend_from_slice(&text[at - 2 - quotes..19 + quotes]);
}

/// Appends a value of a record.
pub(crate) fn put_value(out: &mut Vec<u8>, format: Format, value: Value) {
    match value {
        Value::Unsigned(value) => put_number(out, value),
        Value::Signed(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
        Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        Value::Address(value) => put_hex(out, format, value),
        Value::Single(_) | Value::Double(_) if format == Format::Json && !value.to_f64().is_finite() => {
            put(out, format_args!("\"{value}\""));
        }
        Value::Single(_) | Value::Double(_) => put(out, format_args!("{value}")),
    }
}

/// Appends what is formatted. Writing to memory cannot fail.
pub(crate) fn put(out: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(what);
}

/// A line of texts with tabs between them.
pub(crate) fn put_line<'t>(out: &mut Vec<u8>, fields: impl IntoIterator<Item = &'t str>) {
    for (i, field) in fields.into_iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        put_text(out, Format::Tsv, if field.is_empty() { "-" } else { field });
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let check = |text: &str, expected: [&str; 3]| {
            for (format, expected) in [Format::Tsv, Format::Csv, Format::Json].into_iter().zip(expected) {
                let mut out = Vec::new();
                put_text(&mut out, format, text);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{format:?}");
            }
        };
        check("plain", ["plain", "plain", "\"plain\""]);
        check(
            "f<a,b>(int)::{lambda()#1} \"x\"",
            [
                "f<a,b>(int)::{lambda()#1} \"x\"",
                "\"f<a,b>(int)::{lambda()#1} \"\"x\"\"\"",
                "\"f<a,b>(int)::{lambda()#1} \\\"x\\\"\"",
            ],
        );
        check("a\tb\nc\\", ["a\\tb\\nc\\\\", "\"a\tb\nc\\\"", "\"a\\tb\\nc\\\\\""]);
        check("\u{1b}[31m", ["\\x1b[31m", "\u{1b}[31m", "\"\\u001b[31m\""]);
    }

    #[test]
    fn values() {
        let check = |value: Value, expected: [&str; 2]| {
            for (format, expected) in [Format::Tsv, Format::Json].into_iter().zip(expected) {
                let mut out = Vec::new();
                put_value(&mut out, format, value);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{format:?}");
            }
        };
        check(Value::Unsigned(u64::MAX), ["18446744073709551615"; 2]);
        check(Value::Signed(i64::MIN), ["-9223372036854775808"; 2]);
        check(Value::Address(0x7f00), ["0x7f00", "\"0x7f00\""]);
        check(Value::Address(0), ["0x0", "\"0x0\""]);
        check(Value::Address(u64::MAX), ["0xffffffffffffffff", "\"0xffffffffffffffff\""]);
        check(Value::Single(0.1), ["0.1"; 2]);
        check(Value::Double(1e300), ["1e300"; 2]);
        check(Value::Double(f64::NAN), ["NaN", "\"NaN\""]);
        check(Value::Single(f32::NEG_INFINITY), ["-inf", "\"-inf\""]);
        check(Value::Bool(true), ["true"; 2]);
    }
}
