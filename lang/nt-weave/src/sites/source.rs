//! Where things stand: lines and columns of the input, and files and lines of the source, as `.file` and `.loc` tell.

use super::Found;
use nt_ptx::syntax::{ItemKind, Kind as StatementKind, Module};
use std::collections::BTreeMap;

/// Lines and columns of rising offsets, found in one walk: a module of megabytes may be one line.
pub(crate) struct Places<'t> {
    text: &'t str,
    offset: usize,
    line: u32,
    column: u32,
}

impl<'t> Places<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Places { text, offset: 0, line: 1, column: 1 }
    }

    /// Line and column of a byte, from 1. A lone `\r` ends a line too. An offset before the last one starts anew.
    pub(crate) fn position(&mut self, offset: u32) -> (u32, u32) {
        let bytes = self.text.as_bytes();
        let offset = (offset as usize).min(bytes.len());
        if offset < self.offset {
            *self = Places::new(self.text);
        }
        for (at, &byte) in bytes.iter().enumerate().take(offset).skip(self.offset) {
            if byte == b'\n' || (byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                (self.line, self.column) = (self.line + 1, 1);
            } else if byte & 0xc0 != 0x80 {
                // Bytes 10xxxxxx go on with a character that has been counted.
                self.column += 1;
            }
        }
        self.offset = offset;
        (self.line, self.column)
    }
}

/// The `.file` table of a module.
pub(crate) struct SourceFiles<'s> {
    names: BTreeMap<u32, &'s str>,
}

impl<'s> SourceFiles<'s> {
    pub(crate) fn of(module: &Module<'s>) -> Self {
        let items = module.items.iter().filter(|item| item.kind == ItemKind::File).map(|item| item.span);
        // Legal inside bodies too.
        let statements =
            module.statements.iter().filter(|s| s.kind == StatementKind::Directive).map(|s| s.span);
        SourceFiles { names: items.chain(statements).filter_map(|span| file(module.at(span))).collect() }
    }

    /// File and line of `.loc 1 12 0`.
    pub(super) fn place(&self, loc: &str) -> Option<(String, u32)> {
        let mut words = loc.strip_prefix(".loc")?.split_ascii_whitespace();
        let file = words.next()?.parse().ok()?;
        let line = words.next()?.parse().ok()?;
        Some(((*self.names.get(&file)?).to_owned(), line))
    }
}

/// `.file 1 "kernels.cu", 1700000000, 4711`
fn file(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(".file")?;
    let (number, rest) = rest.split_once('"')?;
    let (name, _) = rest.split_once('"')?;
    Some((number.trim().parse().ok()?, name))
}

/// Moves the positions of a kernel's sites, which is at `place` in the whole that this module was cut from.
pub(crate) fn move_to(module: &Module<'_>, function: usize, place: Option<(u32, u32)>, found: &mut [Found]) {
    let (Some((line, column)), Some(kernel)) = (place, module.functions.get(function)) else { return };
    let (here, here_column) = Places::new(module.text).position(kernel.span.start);
    for site in found {
        let (at, at_column) = &mut site.position;
        if *at == here {
            *at_column = (*at_column + column).saturating_sub(here_column);
        }
        *at = (*at + line).saturating_sub(here);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_source() {
        let text = "a\r\nbü\rc\nd";
        let source = nt_diag::Source::new("x", text);
        let mut places = Places::new(text);
        for offset in [0, 1, 3, 4, 6, 7, 9, 10, 2] {
            let expected = source.position(offset);
            assert_eq!(places.position(offset), (expected.line, expected.column), "at {offset}");
        }
    }

    #[test]
    fn a_file_line() {
        assert_eq!(file(".file\t12 \"/src/k.cu\""), Some((12, "/src/k.cu")));
        assert_eq!(file(".file 1 \"a b.cu\", 17, 4"), Some((1, "a b.cu")));
        assert_eq!(file(".file"), None);
    }
}
