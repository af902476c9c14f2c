//! The PTX that a cubin was made of, turned back into text that assembles.
//!
//! ```
//! let raw = b".version 8.7\0.target sm_90a\0\0.entry k()\0{\0\0ret;\0}\0.section\t.debug_info\0{\0\0}\0";
//! let text = nt_object::debug_ptx::restore(raw, 0)?;
//! assert_eq!(text, ".version 8.7\n.target sm_90a\n\n.entry k()\n{\n\nret;\n}\n");
//! # Ok::<(), nt_object::Error>(())
//! ```
//!
//! ptxas keeps the text with `-lineinfo` or `-g`, a line at a time: white space in front and a carriage return behind are
//! gone, and of a line that begins with `//`, `#`, `.loc`, `.file`, `@@DWARF`, `.b8`, `.b32` or `.b64` nothing is left but
//! its NUL. All else stays, comments behind code included (ptxas 12.4 to 13.5 do the same, seen by giving them such
//! lines). So debug sections stand there with nothing in them, and what [`restore`] does is to take these out, and the
//! word `debug` of `.target`, which asks for them. No byte moves: a line's number is that of `.nv_debug_line_sass`.
//!
//! Source lines (`.loc`) come from the cubin's tables afterwards (`loc`). What cannot be had back: code behind a `.loc` on its
//! line or declarations that a line begins with `.b8`, which no compiler writes. Where a declaration is lost, what is left of it does not parse.

use crate::error::{Error, Fault};
use crate::ptx::{self, Scan};
use std::ops::Range;

/// The text that stands in `.nv_debug_ptx_txt` as `raw`, which begins at `at` in its file.
///
/// It is never longer than `raw` by more than a byte.
///
/// # Errors
/// It is not UTF-8, or does not begin as PTX does.
pub fn restore(raw: &[u8], at: u64) -> Result<String, Error> {
    let refuse = |why: String| Error::new(at, "PTX text", Fault::Reader(why));
    let lines = raw.iter().map(|byte| if *byte == 0 { b'\n' } else { *byte });
    let mut text: Vec<u8> = lines.collect();
    if !ptx::is_ptx(&text) {
        return Err(refuse("the section holds no PTX".to_owned()));
    }
    let gone: Vec<Range<usize>> = debug_option(&text).into_iter().chain(debug_sections(&text)).collect();
    for range in gone {
        let bytes = text.get_mut(range).unwrap_or_default();
        bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    text.truncate(text.trim_ascii_end().len());
    text.push(b'\n');
    String::from_utf8(text)
        .map_err(|error| refuse(format!("byte {} is not UTF-8", error.utf8_error().valid_up_to())))
}

/// Where `debug` stands among the words of `.target`, with the comma in front of it. ptxas refuses a text with it that has
/// no debug sections.
fn debug_option(text: &[u8]) -> Option<Range<usize>> {
    let mut scan = Scan::new(text);
    if !scan.find_directive(b".target") {
        return None;
    }
    scan.skip_blank();
    scan.word();
    loop {
        scan.skip_blank();
        let comma = scan.at();
        if !scan.rest().starts_with(b",") {
            return None;
        }
        scan.skip(1);
        scan.skip_blank();
        if scan.word() == b"debug" {
            return Some(comma..scan.at());
        }
    }
}

/// Where debug sections stand, from `.section` to the brace that closes it.
fn debug_sections(text: &[u8]) -> Vec<Range<usize>> {
    let mut scan = Scan::new(text);
    let mut sections = Vec::new();
    while scan.find_directive(b".section") {
        let start = scan.at() - b".section".len();
        scan.skip_blank();
        // A section that is not closed is left as it is, for the reader of PTX to say so.
        if scan.rest().starts_with(b".debug") && scan.pass(b'{') && scan.pass(b'}') {
            sections.push(start..scan.at());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str, expected: &str) {
        let raw = format!(".version 8.7\n.target sm_90a\n{lines}\n").replace('\n', "\0");
        let text = restore(raw.as_bytes(), 0).unwrap();
        assert_eq!(text, format!(".version 8.7\n.target sm_90a\n{expected}\n"));
    }

    #[test]
    fn debug_sections_go_and_lines_stay() {
        let kernel = ".visible .entry k()\n{\n\nret; // -- End\n}";
        check(kernel, kernel);
        check(&format!("{kernel}\n.section\t.debug_macinfo\t{{\t}}\n\n"), kernel);
        check(&format!("{kernel}\n.section\t.debug_str\n{{\n$L__info_string0:\n\n}}"), kernel);
        check(
            &format!(".section .debug_loc {{\n}}\n{kernel}"),
            &format!("                     \n \n{kernel}"),
        );
    }

    #[test]
    fn what_only_looks_like_a_section_stays() {
        let same = |text| check(text, text);
        same("// .section .debug_info { }");
        same("/*\n.section .debug_info {\n*/ .entry k() { ret; }");
        same(".section .debug_info");
        same(".section .debug_info {");
        same(".section .data { }");
        same(".sections .debug_info { }");
    }

    #[test]
    fn the_debug_option_of_the_target_goes() {
        let check = |target: &str, expected: &str| {
            let text =
                restore(format!(".version 8.7\0.target {target}\0.entry k(){{}}\0").as_bytes(), 0).unwrap();
            assert_eq!(text, format!(".version 8.7\n.target {expected}\n.entry k(){{}}\n"));
        };
        check("sm_90, debug", "sm_90       ");
        check("sm_90, texmode_independent , debug // x", "sm_90, texmode_independent         // x");
        check("sm_90, debugger", "sm_90, debugger");
        check("sm_90 // , debug", "sm_90 // , debug");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let check = |raw: &[u8], expected: &str| {
            assert_eq!(restore(raw, 0x40).unwrap_err().to_string(), format!("PTX text at 0x40: {expected}"));
        };
        check(b"", "the section holds no PTX");
        check(b"\0\0mov.u32 %r1, 0;\0", "the section holds no PTX");
        check(b".version 8.7\0.target sm_90\0// \xff\0", "byte 30 is not UTF-8");
    }
}
