//! Weaver and verifier: what the one makes of any text can be undone, and no text makes the other panic.

use nt_ir::Prepared;
use nt_verify::Rule;
use std::sync::LazyLock;

/// block_sched: state, entry and exit, a map a warp.
static PROBE: LazyLock<Prepared> = LazyLock::new(|| {
    let text = nt_probe::shipped("block_sched").unwrap_or_default();
    let (program, found) = nt_probe::compile(text, "block_sched");
    let program = program.unwrap_or_else(|| panic!("a shipped probe compiles: {found:?}"));
    nt_ir::prepare(program, nt_ir::Options::default()).unwrap_or_else(|broken| panic!("{broken:?}"))
});

/// PTX that is read without an error is woven, or each kernel is refused with a reason. What was woven differs from the
/// text by spans and edits alone (V1), and is read again without an error.
///
/// The verifier may refuse it nevertheless: much that the reader lets pass is no PTX, and it is the stricter one. That it
/// accepts what is woven into real texts and their mutants is a property of nt-weave's tests.
pub fn weave(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (module, mut found) = nt_ptx::parse(&text);
    let info = nt_ptx::resolve(&module, &mut found);
    if found.has_errors() {
        return;
    }
    let all: Vec<usize> = (0..module.functions.len()).collect();
    let woven = nt_weave::weave(&module, &info, &PROBE, &all);
    assert!(woven.refused.iter().all(|(_, why)| !why.message.is_empty()));
    if woven.kernels.is_empty() {
        assert_eq!(woven.text, text);
        return;
    }
    let report = nt_verify::check(&text, &woven.text);
    let differs = report.violations().iter().find(|violation| violation.rule == Rule::V1);
    assert!(differs.is_none(), "{differs:?}\n{}", woven.text);
    let (_, again) = nt_ptx::parse(&woven.text);
    assert!(!again.has_errors(), "{again:?}\n{}", woven.text);
}

/// Any two texts are held against each other without a panic: what stands before and after the first NUL.
pub fn verify(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (original, woven) = text.split_once('\0').unwrap_or((&text, &text));
    let _ = nt_verify::check(original, woven);
    let _ = nt_verify::check_pruned(original, woven);
}
