//! Probe programs and the text of their IR.

use nt_ir::Options;
use nt_ir::program::Program;

/// The compiler of probes: its messages have a place in the text, and what it compiles keeps the IR's rules.
pub fn probe(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (program, found) = nt_probe::compile(&text, "t");
    assert_eq!(program.is_none(), found.has_errors());
    for diagnostic in found.iter() {
        assert!(diagnostic.span.end as usize <= text.len(), "{diagnostic:?}");
        assert!(!diagnostic.message.is_empty());
    }
    nt_probe::tokens(&text);
    nt_probe::tree(&text);
    let Some(program) = program else { return };
    let broken = nt_ir::check(&program);
    assert!(broken.is_empty(), "{broken:?}");
    passes(&program);
}

/// The reader of IR: what it reads and the IR's checks accept is prepared, and printed is read again.
pub fn ir(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (program, _) = nt_ir::text::parse(&text);
    let Some(program) = program else { return };
    if nt_ir::check(&program).is_empty() {
        passes(&program);
    }
}

fn passes(program: &Program) {
    let printed = nt_ir::text::print_with_spans(program);
    assert_eq!(nt_ir::text::parse(&printed).0.as_ref(), Some(program), "{printed}");
    for wide in [false, true] {
        if let Err(broken) = nt_ir::prepare(program.clone(), Options { wide }) {
            panic!("{broken:?}\n{printed}");
        }
    }
}
