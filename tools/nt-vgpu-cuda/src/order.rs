//! Whether a kernel can tell in which order its blocks run.
//!
//! Blocks of one that cannot run side by side on several threads; the others run one after the other, so that sums of
//! floats, tickets and locks come out the same every time. It can if blocks speak to each other while they run: by
//! atomics whose result is used or depends on the order, or by loads that wait for another's store. Blocks that race
//! by plain loads and stores are not seen here; `NT_VGPU_THREADS=1` gives them an order.

use nt_ptx::syntax::{Function, Kind, Module};
use std::collections::BTreeSet;

/// The kernels of a module that cannot tell.
pub(crate) fn unordered(module: &Module<'_>) -> BTreeSet<String> {
    let tells = |function: &Function| instructions(module, function).any(waits);
    let tells = |function: &Function| tells(function) || adds_in_order(module, function);
    // Which function is called is not asked: any may be.
    let functions_tell = module.functions.iter().filter(|function| !function.is_entry).any(tells);
    let calls = |function: &Function| instructions(module, function).any(|opcode| opcode.starts_with("call"));
    let kernels = module.kernels().filter(|kernel| !(tells(kernel) || functions_tell && calls(kernel)));
    kernels.map(|kernel| module.at(kernel.name).to_owned()).collect()
}

fn instructions<'s>(module: &Module<'s>, function: &Function) -> impl Iterator<Item = &'s str> {
    let opcodes = module.body(function).iter().filter_map(|statement| match &statement.kind {
        Kind::Instruction(instruction) => Some(module.at(instruction.opcode)),
        _ => None,
    });
    opcodes.collect::<Vec<_>>().into_iter()
}

/// A load that may wait for another block's store.
fn waits(opcode: &str) -> bool {
    let mut words = opcode.split('.');
    words.next() == Some("ld")
        && words.clone().any(|word| matches!(word, "volatile" | "acquire" | "relaxed" | "mmio" | "cv"))
        && !words.any(|word| matches!(word, "shared" | "shared::cta" | "local"))
}

/// An atomic operation on memory that blocks share, whose order shows.
fn adds_in_order(module: &Module<'_>, function: &Function) -> bool {
    module.body(function).iter().any(|statement| {
        let Kind::Instruction(instruction) = &statement.kind else { return false };
        let opcode = module.at(instruction.opcode);
        let mut words = opcode.split('.');
        let (first, words) = (words.next(), words.collect::<Vec<_>>());
        if words.iter().any(|word| word.starts_with("shared")) {
            return false;
        }
        match first {
            Some("red") if is_free(&words) => false,
            Some("atom") if is_free(&words) => {
                let (_, operands) = module.at(statement.span).split_once(opcode).unwrap_or_default();
                let result = operands.split([',', '{']).next().unwrap_or_default().trim();
                // A bare `_`, or a register that nothing reads.
                result != "_" && uses(module.at(function.span), result) > 1
            }
            Some("red" | "atom" | "multimem") => true,
            Some("cp") => words.contains(&"reduce"),
            _ => false,
        }
    })
}

/// An operation on integers that gives the same in any order.
fn is_free(words: &[&str]) -> bool {
    let operation = words.iter().any(|word| matches!(*word, "add" | "min" | "max" | "and" | "or" | "xor"));
    operation && !words.iter().any(|word| word.starts_with('f') || word.starts_with("bf"))
}

/// How often a register stands in a text, its declaration aside: that is `%r<25>`, or this very name.
fn uses(text: &str, register: &str) -> usize {
    if register.is_empty() {
        return usize::MAX;
    }
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    text.match_indices(register)
        .filter(|&(at, _)| !text[at + register.len()..].starts_with(part) && !text[..at].ends_with(part))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: bool) {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.func f() {{ .reg .b32 %r<3>; .reg .b64 %rd<2>;\n\
             atom.global.exch.b32 %r1, [%rd1], %r2; ret; }}\n\
             .entry k() {{ .reg .b32 %r<30>; .reg .f32 %f<3>; .reg .b64 %rd<2>;\n{body}\nret; }}\n"
        );
        let (module, found) = nt_ptx::parse(&text);
        assert!(!found.has_errors(), "{found:?}");
        assert_eq!(unordered(&module).contains("k"), expected, "{body}");
    }

    #[test]
    fn what_shows_an_order() {
        check("ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1;", true);
        check("red.global.add.u32 [%rd1], %r1;", true);
        check("red.relaxed.gpu.global.add.u64 [%rd1], %rd1;", true);
        check("red.global.add.f32 [%rd1], %f1;", false);
        check("red.global.add.noftz.bf16x2 [%rd1], %r1;", false);
        check("atom.global.add.u32 %r2, [%rd1], %r1; mov.u32 %r1, %r20;", true);
        check("atom.global.add.u32 _, [%rd1], %r1;", true);
        check("atom.global.add.u32 %r2, [%rd1], %r1; mov.u32 %r1, %r2;", false);
        check("atom.add.u32 %r2, [%rd1], %r1; mov.u32 %r1, %r2;", false);
        check("atom.global.add.f32 %f2, [%rd1], %f1;", false);
        check("atom.global.cas.b32 %r2, [%rd1], %r1, %r3;", false);
        check("atom.shared.exch.b32 %r2, [%r3], %r1; mov.u32 %r1, %r2;", true);
        check("ld.volatile.global.u32 %r1, [%rd1];", false);
        check("ld.acquire.gpu.u32 %r1, [%rd1];", false);
        check("ld.volatile.shared.u32 %r1, [%r2];", true);
        check("call f;", false);
    }

    #[test]
    fn the_benchmarks() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ptx/nvcc/kernels.sm_90.ptx");
        let text = std::fs::read_to_string(path).unwrap();
        let (module, _) = nt_ptx::parse(&text);
        let all: BTreeSet<String> = module.kernels().map(|k| module.at(k.name).to_owned()).collect();
        let unordered = unordered(&module);
        let ordered: Vec<&String> = all.difference(&unordered).collect();
        // Its blocks add floats.
        assert_eq!(ordered, ["reduce_sum"]);
    }
}
