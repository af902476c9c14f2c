//! What names mean: reported faults about scopes, labels and kernels, reach and parameters.
//!
//! Texts and right answers are those of the list of field cases; ptxas takes every text here. Offsets of parameters
//! are those that `cuobjdump -elf` shows of what ptxas 13.0 made (EIATTR_KPARAM_INFO).

#![allow(clippy::panic, reason = "a test's own text that is wrong ends the run")]

use nt_ptx::syntax::Module;
use nt_ptx::{ModuleInfo, flow, identifiers_with_prefix, parse, resolve};
use std::process::Command;

const HEAD: &str = ".version 8.5\n.target sm_90a\n.address_size 64\n";

/// Does ptxas take it? Nobody knows where there is none.
fn assembles(text: &str) -> Option<bool> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("k.ptx");
    std::fs::write(&path, text).ok()?;
    let mut command = Command::new("ptxas");
    command.arg("-arch=sm_90a").arg(&path).arg("-o").arg(folder.path().join("k.cubin"));
    Some(command.output().ok()?.status.success())
}

/// Reads a text that must be sound and hands it on.
fn with(text: &str, check: impl FnOnce(&Module<'_>, &ModuleInfo<'_>)) {
    let text = format!("{HEAD}{text}");
    let (module, mut found) = parse(&text);
    let info = resolve(&module, &mut found);
    assert!(found.is_empty(), "{text}: {found:?}");
    assert_ne!(assembles(&text), Some(false), "ptxas refuses {text}");
    check(&module, &info);
}

/// The place of the `n`th occurrence of `part`.
fn place(module: &Module<'_>, part: &str, n: usize) -> u32 {
    let at = module.text.match_indices(part).nth(n).unwrap_or_else(|| panic!("no {part}")).0;
    u32::try_from(at).expect("a short text")
}

/// The type that a register has at the `n`th occurrence of `part`.
fn register(module: &Module<'_>, info: &ModuleInfo<'_>, part: &str, n: usize, name: &str) -> String {
    info.register_at(0, place(module, part, n), name).map_or("none".to_owned(), |found| found.ty.to_owned())
}

#[test]
fn registers_are_those_of_the_innermost_scope() {
    let text = ".entry k() { .reg .b32 %r<12>; { .reg .b64 %r1; mov.u64 %r1,3; { mov.u64 %r1,4; } } mov.u32 %r2,%r1; ret; }";
    with(text, |module, info| {
        assert_eq!(register(module, info, "mov.u64", 0, "%r1"), ".b64");
        assert_eq!(register(module, info, "mov.u64", 1, "%r1"), ".b64");
        assert_eq!(register(module, info, "mov.u32", 0, "%r1"), ".b32");
        assert_eq!(register(module, info, "mov.u64", 0, "%r11"), ".b32");
        assert_eq!(register(module, info, "mov.u64", 0, "%r12"), "none");
        assert_eq!(register(module, info, "mov.u64", 0, "%r"), "none");
        assert_eq!(register(module, info, "mov.u64", 0, "%clock"), "none");
        assert_eq!(register(module, info, "{ .reg", 1, "%r1"), ".b32", "before the brace");
        assert_eq!(register(module, info, ".reg .b64", 0, "%r1"), ".b32", "before it is declared");
        assert_eq!(register(module, info, "} mov.u32", 0, "%r1"), ".b64", "before the closing brace");
    });
}

#[test]
fn special_registers_can_be_shadowed() {
    with(
        ".entry k() { .reg .b32 %clock; mov.u32 %clock, 1; { .reg .b64 %tid; mov.b64 %tid, 1; } ret; }",
        |module, info| {
            assert_eq!(register(module, info, "mov.u32", 0, "%clock"), ".b32");
            assert_eq!(register(module, info, "mov.u32", 0, "%tid"), "none");
            assert_eq!(register(module, info, "mov.b64", 0, "%tid"), ".b64");
            assert_eq!(register(module, info, "ret", 0, "%tid"), "none");
        },
    );
}

#[test]
fn numbered_names_are_looked_up_as_ptxas_does() {
    // All last digits count, and leading zeros do not: `mov.u32 %y001, 1` assembles, `mov.u32 %x12, 1` is of `%x<30>`.
    with(
        ".entry k() { .reg .b32 %x<30>, %y<3>; .reg .b64 %x1<3>; .reg .v4 .f32 v; ret; }",
        |module, info| {
            assert_eq!(register(module, info, "ret", 0, "%x12"), ".b32");
            assert_eq!(register(module, info, "ret", 0, "%y001"), ".b32");
            assert_eq!(register(module, info, "ret", 0, "%y3"), "none");
            assert_eq!(register(module, info, "ret", 0, "%y99999999999999999999999"), "none");
            assert_eq!(info.register_at(0, place(module, "ret", 0), "v").map(|found| found.lanes), Some(4));
        },
    );
}

#[test]
fn other_declarations_have_their_space() {
    with(
        ".entry k(.param .u64 .ptr .global .align 16 p) { .shared .align 4 .b8 a[4], b[8]; ret; }",
        |module, info| {
            let at = place(module, "ret", 0);
            let space = |name| {
                info.declared_at(0, at, name).map(|found| (found.space.to_owned(), found.ty.to_owned()))
            };
            assert_eq!(space("p"), Some((".param".to_owned(), ".u64".to_owned())));
            assert_eq!(space("b"), Some((".shared".to_owned(), ".b8".to_owned())));
            assert_eq!(space("c"), None);
            assert_eq!(info.register_at(0, at, "p"), None);
        },
    );
    with(".func (.reg .b32 r) f(.reg .b64 x) { mov.b32 r, 1; ret; }", |module, info| {
        assert_eq!(register(module, info, "mov", 0, "r"), ".b32");
        assert_eq!(register(module, info, "mov", 0, "x"), ".b64");
    });
}

#[test]
fn labels_resolve_by_scope() {
    let text = ".entry k() { .reg .pred %p; { L: @%p bra L; } { M: L: @%p bra L; bra M; } L: ret; }";
    with(text, |module, info| {
        let label = |part, n, name| {
            let found = info.label_at(0, place(module, part, n), name);
            found.map(|statement| module.statements[statement as usize].span.start)
        };
        assert_eq!(label("bra L", 0, "L"), Some(place(module, "L:", 0)));
        assert_eq!(label("bra L", 1, "L"), Some(place(module, "L:", 1)));
        assert_eq!(label("ret", 0, "L"), Some(place(module, "L:", 2)));
        assert_eq!(label("ret", 0, "M"), None);
        assert_eq!(label("bra L", 0, "M"), None);
    });
}

#[test]
fn kernels_are_entries_with_a_body() {
    let text = ".func gemm_() { ret; } .visible .entry gemm(); .visible .entry gemm() { ret; } .entry gemm_kernel() { ret; }";
    with(text, |module, info| {
        let kernels: Vec<&str> = module.kernels().map(|kernel| module.at(kernel.name)).collect();
        assert_eq!(kernels, ["gemm", "gemm_kernel"]);
        assert_eq!(info.function("gemm"), Some(2), "the definition");
        assert_eq!(info.function("gem"), None);
    });
}

#[test]
fn facts_of_functions() {
    let text = ".global .u32 g; .const .b32 c[2]; .shared .u32 s; .global .u32 unused;
.func leaf() { exit; ret; }
.func f() { call leaf; ret; }
.entry k() {
    .reg .b64 h, q;
    .loc 1 2 3
    .reg .pred %p; .reg .b32 g2, s;
    $begin: ld.global.u32 g2, [g]; ld.const.u32 g2, [c+4]; mov.u32 s, 1;
    mov.u64 h, leaf;
    T: .calltargets leaf;
    call h, T;
    call f; call f;
    @%p bra $begin;
}
.file 1 \"a\"";
    with(text, |module, info| {
        let k = &info.functions[2];
        assert_eq!((k.name, k.calls.as_slice(), k.addresses.as_slice()), ("k", &["f"][..], &["leaf"][..]));
        let named: Vec<(&str, &str)> = k.variables.iter().map(|named| (named.name, named.space)).collect();
        assert_eq!(named, [("g", ".global"), ("c", ".const")], "`s` is the function's own");
        assert_eq!(k.indirect_calls.len(), 1);
        assert!(!k.has_exit && !k.has_ret && k.end_reachable && !k.is_operand);
        assert_eq!(module.statements[k.first as usize].span.start, place(module, "$begin:", 0));
        let leaf = &info.functions[0];
        assert!(leaf.has_exit && leaf.has_ret && !leaf.end_reachable && leaf.is_operand);
        let reach = info.reach(&[2]);
        assert_eq!((reach.functions, reach.variables), (vec![0, 1, 2], vec![0, 1]));
        assert_eq!((reach.exits, reach.indirect), (vec![0], vec![2]));
    });
}

#[test]
fn reach_follows_initialisers_and_aliases() {
    let text = ".func a() { ret; } .func b() { ret; } .func ali(); .alias ali, b;
.global .u32 one; .global .u64 tab[3] = { generic(one), a, 5 }; .global .u32 two;
.entry k() { .reg .b64 x; mov.b64 x, tab; call ali; ret; } .entry other() { ret; }";
    with(text, |module, info| {
        let reach = info.reach(&[3]);
        let functions: Vec<&str> =
            reach.functions.iter().map(|&index| module.at(module.functions[index as usize].name)).collect();
        let variables: Vec<&str> =
            reach.variables.iter().map(|&index| info.variables[index as usize].name).collect();
        assert_eq!(functions, ["a", "b", "ali", "k"]);
        assert_eq!(variables, ["one", "tab"]);
        assert!(info.functions[0].is_operand && !info.functions[4].is_operand);
        assert_eq!(info.reach(&[4]).functions, [4]);
    });
}

#[test]
fn entries_as_operands_are_known() {
    let text = ".visible .entry child() { ret; } .visible .entry k() { .reg .b64 x; mov.b64 x, child; ret; }";
    with(text, |_, info| {
        assert!(info.functions[0].is_operand && !info.functions[1].is_operand);
    });
}

#[test]
fn prefixes_are_found_in_code_alone() {
    let text = ".global .u32 nt_g; // nt_no\n.entry k() { .reg .b32 %nt_x<2>, nt, ant_, $nt_y; $nt_L: mov.b32 %nt_x1, ant_; ret; }";
    with(text, |module, _| {
        assert_eq!(identifiers_with_prefix(module, "nt_"), ["nt_g", "%nt_x", "$nt_y", "$nt_L", "%nt_x1"]);
        assert!(identifiers_with_prefix(module, "nt1_").is_empty());
    });
}

#[test]
fn what_leaves_is_known_from_what_does_not() {
    let text = ".entry k() { .reg .pred %p<4>; @%p1 ret; @%p2 exit; @!%p3 trap; bra.uni L; L: bar.sync 0; trap; exit; }";
    with(text, |module, info| {
        let flow = flow(module, info, 0);
        let runs = |part| {
            let at = place(module, part, 0);
            let index = module.statements.iter().position(|s| s.span.start == at).expect("a statement");
            flow.is_reachable(u32::try_from(index).expect("few"))
        };
        assert!(runs("@%p2 exit") && runs("@!%p3 trap") && runs("bar.sync") && runs("trap; exit"));
        assert!(!runs("exit; }"));
        assert!(!flow.end_reachable && flow.backward.is_empty());
    });
}

#[test]
fn parameters_lie_where_the_assembler_puts_them() {
    let check = |list: &str, expected: &[(&str, u32, u32)]| {
        with(&format!(".entry k({list}) {{ ret; }}"), |module, _| {
            let params = &module.functions[0].params;
            let places: Vec<(&str, u32, u32)> =
                params.iter().map(|param| (module.at(param.name), param.offset, param.size)).collect();
            assert_eq!(places, expected);
        });
    };
    check(
        ".param .b8 a, .param .b64 b, .param .align 16 .b8 c[3], .param .u64 .ptr .global .align 16 p, \
         .param .align 8 .b8 s[24], .param .f32 x, .param .b16 y, .param .align 4 .b64 z",
        &[
            ("a", 0, 1),
            ("b", 8, 8),
            ("c", 16, 3),
            ("p", 0x18, 8),
            ("s", 0x20, 0x18),
            ("x", 0x38, 4),
            ("y", 0x3c, 2),
            ("z", 0x40, 8),
        ],
    );
    check(
        ".param .b32 x, .param .align 4 .b64 z, .param .align 1 .b8 q[3], .param .align 2 .b32 w",
        &[("x", 0, 4), ("z", 8, 8), ("q", 0x10, 3), ("w", 0x14, 4)],
    );
    check("", &[]);
}
