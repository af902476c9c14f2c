//! Large inputs: compilers' output from testdata, repeated under different names to some 16 MB, the size of a large
//! framework's module.

use nt_diag::Span;
use nt_ptx::{Edits, ModuleInfo, TokenKind};
use std::path::Path;

pub(crate) const FILES: &[&str] =
    &["nvcc/kernels.sm_90.ptx", "nvcc/kernels.debug.sm_90.ptx", "triton/attention.sm_100a.ptx"];
pub(crate) const SIZE: usize = 16 << 20;

/// `file` without its header, again and again, every name of module level with the number of its copy.
pub(crate) fn large(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (module, mut found) = nt_ptx::parse(&text);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors(), "{}: {found:?}", path.display());
    let header = module.items.iter().take_while(|item| item.kind == nt_ptx::syntax::ItemKind::Header).last();
    let start = header.map_or(0, |item| item.span.end);
    let mut out = text[..start as usize].to_owned();
    for copy in 0.. {
        if out.len() >= SIZE {
            break;
        }
        let mut edits = Edits::new();
        for (kind, at) in module.code(Span::from(start as usize..text.len())) {
            let is_ours =
                |info: &ModuleInfo<'_>, name| info.function(name).is_some() || info.variable(name).is_some();
            if kind == TokenKind::Name && is_ours(&info, module.at(at)) {
                edits.insert(at.end, format!("_{copy}"));
            }
        }
        let edited = edits.apply(&text).unwrap_or_else(|error| panic!("{error}"));
        out.push_str(&edited[start as usize..]);
    }
    out
}
