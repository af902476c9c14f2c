//! Tells which tracepoints match nothing, in the probe's own text, with the nearest of what there is.
//!
//! ```text
//! <-e>:1:1: warning: `line:"gemm.cu":120` matches nothing
//!   1 | line:"gemm.cu":120 { @ = count(); }
//!     | ^^^^^^^^^^^^^^^^^^
//!   help: the nearest lines of `gemm.cu` with code are 118 and 121
//! ```
//!
//! Where nothing was woven all are told; where something was, those that name a thing of the program's text. That a kernel has
//! no atomics is told under `--verbose`.

use nt_cli::Report;
use nt_diag::{Diagnostic, Found, Span};
use nt_engine::Unmatched;
use nt_ir::program::Program;

/// Tells `unmatched` of a program whose source is `source`. `all`: nothing was woven.
pub(crate) fn tell(
    unmatched: &[Unmatched],
    program: &Program,
    (name, source): (&str, &str),
    all: bool,
    report: &Report,
) {
    let mut found = Found::new();
    for one in unmatched {
        let Some(probe) = program.probes.get(one.probe) else { continue };
        let span = part(source, probe.span, one.point, probe.points.len());
        let message = format!("`{}` matches nothing", one.text);
        let diagnostic = if all || one.is_named {
            Diagnostic::warning("no-site", span, message)
        } else {
            Diagnostic::remark("no-site", span, message)
        };
        found.push(diagnostic.help(one.hint.clone()));
    }
    report.tell(name, source, &found);
}

/// The place of a tracepoint of `count` in the list of them; the whole list where they cannot be told apart.
fn part(source: &str, list: Span, point: usize, count: usize) -> Span {
    let Some(text) = source.get(list.start as usize..list.end as usize) else { return list };
    let mut quoted = false;
    let outside = |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    };
    let parts: Vec<&str> = text.split(outside).collect();
    let Some(part) = parts.get(point).filter(|_| parts.len() == count) else { return list };
    // Parts follow each other with a comma between.
    let before: usize = parts.iter().take(point).map(|part| part.len() + 1).sum();
    let blank = part.len() - part.trim_start().len();
    let start = list.start + (before + blank) as u32;
    Span::new(start, start + part.trim().len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_tracepoints_in_a_list() {
        let source = "x  ptx:\"a,b\" , bb:loop,\nkernel:exit {";
        let list = Span::new(3, 35);
        let check = |point: usize, count: usize, expected: &str| {
            assert_eq!(part(source, list, point, count).of(source), expected);
        };
        check(0, 3, "ptx:\"a,b\"");
        check(1, 3, "bb:loop");
        check(2, 3, "kernel:exit");
        // An alternative of names is two points of one text.
        check(1, 4, "ptx:\"a,b\" , bb:loop,\nkernel:exit");
        assert_eq!(part("", list, 0, 1), list);
    }
}
