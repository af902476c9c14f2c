//! Compiled probes: round trips, and every way in which a file can be wrong.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

use nt_trace::ntp::{Compiled, Error, LIMIT, MAGIC, decode, encode, is_ntp};

const IR: &str = r#"program "heat"
map heat: array<warp> { end: u64 } !0:35
state start: u64 = 0 !36:55
probe warp kernel:exit !57:90 {
  %0: u64 uniform = clock !80:87
  save heat(end = %0) !70:88
}
"#;

fn heat(source: &str) -> Compiled {
    let (program, found) = nt_ir::text::parse(IR);
    assert!(!found.has_errors());
    Compiled {
        tool: "0.1.0".to_owned(),
        source_name: "probes/heat.nt".to_owned(),
        source: source.to_owned(),
        program: program.unwrap(),
    }
}

#[test]
fn what_was_written_is_read_back() {
    for source in ["", "map heat: array<warp> { end: u64 }", "// é\r\n\0\u{10ffff}", &"x".repeat(70_000)] {
        let bytes = encode(&heat(source)).unwrap();
        assert!(is_ntp(&bytes));
        assert_eq!(decode(&bytes), Ok(heat(source)));
        assert_eq!(encode(&heat(source)).unwrap(), bytes, "the same input, the same bytes");
    }
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let bytes = encode(&heat("s")).unwrap();
    assert_eq!(bytes[..8], *b"\x93ntp\x01\0\0\0");
    // bincode's standard configuration: a length below 251 is one byte, then the text.
    let texts = &bytes[12..];
    assert!(texts.starts_with(b"\x050.1.0\x04heat\x0eprobes/heat.nt\x01s"), "{texts:?}");
    assert!(texts.ends_with(IR.as_bytes()), "the IR is stored as text, with its places");
    assert_eq!(bytes[8..12], nt_wire::frame::checksum(texts).to_le_bytes());
}

#[test]
fn every_cut_is_found() {
    let bytes = encode(&heat("source")).unwrap();
    for length in 0..bytes.len() {
        let error = decode(&bytes[..length]).unwrap_err();
        let expected = if length < 4 { Error::Foreign } else { Error::Damaged("") };
        assert_eq!(std::mem::discriminant(&error), std::mem::discriminant(&expected), "{length}: {error}");
    }
    let longer = [bytes, vec![0]].concat();
    assert!(matches!(decode(&longer), Err(Error::Damaged(_))));
}

#[test]
fn every_changed_byte_is_found() {
    let bytes = encode(&heat("source")).unwrap();
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= change;
            assert!(decode(&bytes).is_err(), "byte {at} ^ {change:#x}");
        }
    }
}

/// A file of `texts` with a right checksum: what a hostile writer would make.
fn made(version: u32, texts: &[u8]) -> Vec<u8> {
    let sum = nt_wire::frame::checksum(texts).to_le_bytes();
    [MAGIC.as_slice(), &version.to_le_bytes(), &sum, texts].concat()
}

fn check(bytes: &[u8], expected: &str) {
    assert_eq!(decode(bytes).unwrap_err().to_string(), expected);
}

#[test]
fn what_is_refused() {
    check(b"map heat: array<warp> { end: u64 }", "not a compiled probe (.ntp)");
    check(b"", "not a compiled probe (.ntp)");
    check(&made(2, b""), "a compiled probe of format 2, this version reads 1: recompile it with nt-probec");
    check(&made(1, b""), "the compiled probe is damaged (not five texts): recompile it with nt-probec");
    // A text of 2⁶³ bytes, of 4 GiB, and one that is not UTF-8: nothing is allocated for them.
    for texts in [b"\xfd\0\0\0\0\0\0\0\x80x".as_slice(), b"\xfc\xff\xff\xff\xffx", b"\x01\xff\0\0\0\0"] {
        check(&made(1, texts), "the compiled probe is damaged (not five texts): recompile it with nt-probec");
    }
    check(
        &made(1, b"\0\0\0\0\0\0"),
        "the compiled probe is damaged (bytes behind its end): recompile it with nt-probec",
    );
    check(
        &made(1, b"\0\0\0\0\0"),
        "the compiled probe holds IR that is refused: expected `program`, found the end",
    );
    check(
        &made(1, b"\0\x01a\0\0\x0bprogram \"b\""),
        "the compiled probe is damaged (it names two programs): recompile it with nt-probec",
    );
}

#[test]
fn the_limit_holds_both_ways() {
    let mut compiled = heat("");
    compiled.source = "x".repeat(LIMIT);
    assert!(matches!(encode(&compiled), Err(Error::Long(_))));
    let mut bytes = made(1, &[]);
    bytes.resize(LIMIT + 1, 0);
    assert_eq!(decode(&bytes), Err(Error::Long(LIMIT + 1)));
}
