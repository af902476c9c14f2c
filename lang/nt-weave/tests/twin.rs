//! Kernels that run beside their originals: their variables are the original's, reached through `nt_pin`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, obeys, probe, refusals, testdata};
use nt_weave::{Options, Woven, prune, weave_with};

const HEADER: &str = ".version 8.5\n.target sm_90\n.address_size 64\n";

fn twin(ptx: &str, program: &str) -> Woven {
    let (module, mut found) = nt_ptx::parse(ptx);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors(), "{found:?}");
    let all: Vec<usize> = (0..module.functions.len()).collect();
    let options = Options { twin: true, ..Options::default() };
    weave_with(&module, &info, &probe(program), &all, options)
}

/// The lines of the text that have an instruction with an edit in them, without the marks.
fn check(text: &str, pins: &[&str], constants: &[(&str, u64)], expected: &[&str]) {
    let ptx = format!("{HEADER}{text}");
    let woven = twin(&ptx, "block_sched");
    assert_eq!(refusals(&ptx, &woven), "");
    obeys(&ptx, &woven, "twin.ptx");
    let kernel = &woven.kernels[0];
    assert_eq!(kernel.pins.iter().map(|pin| pin.symbol.as_str()).collect::<Vec<_>>(), pins);
    let found: Vec<(&str, u64)> = kernel.constants.iter().map(|c| (c.symbol.as_str(), c.size)).collect();
    assert_eq!(found, constants);
    let lines = woven.text.lines().filter(|line| line.contains("%nt_g"));
    assert_eq!(lines.collect::<Vec<_>>(), expected, "{}", woven.text);
    if let Some(ptxas) = Ptxas::find() {
        ptxas.assemble(&ptx).unwrap_or_else(|said| panic!("as it was: {said}"));
        ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{said}\n{}", woven.text));
    }
}

const VARIABLES: &str =
    ".global .align 4 .b8 lut[256];\n.global .u64 total;\n.const .align 4 .b8 scale[16];\n";

#[test]
fn uses_in_every_form() {
    let text = format!(
        "{VARIABLES}.entry k()\n{{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n\
         ld.const.u32 %r1, [scale+4];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 ld.global.u32 %r2, [lut+16];\n\
         ld.global.u32 %r3, [lut+-4];\nL: mov.u64 %rd1, lut+8;\ncvta.global.u64 %rd2, total;\n\
         atom.global.add.u64 %rd3, [total], %rd2;\nret;\n}}\n"
    );
    check(
        &text,
        &["lut", "total"],
        &[("scale", 16)],
        &[
            "/*nt:2{*/.reg .b64 %nt_g0; { ld.const.b64 %nt_g0, [nt_pin+0]; }/*}nt:2*/@%p1 ld.global.u32 %r2, [/*nt:edit 6c7574{*/%nt_g0/*}nt:edit*/+16];",
            "/*nt:3{*/.reg .b64 %nt_g1; { ld.const.b64 %nt_g1, [nt_pin+0]; }/*}nt:3*/ld.global.u32 %r3, [/*nt:edit 6c7574{*/%nt_g1/*}nt:edit*/+-4];",
            "L: /*nt:4{*/.reg .b64 %nt_g2; { ld.const.b64 %nt_g2, [nt_pin+0]; add.s64 %nt_g2, %nt_g2, 8; }/*}nt:4*/mov.u64 %rd1, /*nt:edit 6c75742b38{*/%nt_g2/*}nt:edit*/;",
            "/*nt:5{*/.reg .b64 %nt_g3; { ld.const.b64 %nt_g3, [nt_pin+8]; }/*}nt:5*/cvta.global.u64 %rd2, /*nt:edit 746f74616c{*/%nt_g3/*}nt:edit*/;",
            "/*nt:6{*/.reg .b64 %nt_g4; { ld.const.b64 %nt_g4, [nt_pin+8]; }/*}nt:6*/atom.global.add.u64 %rd3, [/*nt:edit 746f74616c{*/%nt_g4/*}nt:edit*/], %rd2;",
        ],
    );
}

#[test]
fn a_name_of_a_function_is_not_the_modules() {
    let text = format!(
        "{VARIABLES}.entry k()\n{{\n.reg .b32 %r<3>;\n.shared .b32 lut[4];\nld.shared.u32 %r1, [lut];\n\
         {{ .reg .b64 total; cvt.u32.u64 %r2, total; }}\nret;\n}}\n"
    );
    check(&text, &[], &[], &[]);
}

#[test]
fn what_cannot_be_shared_is_named() {
    let refused = |text: &str, slug: &str| {
        let ptx = format!("{HEADER}{text}");
        let woven = twin(&ptx, "block_sched");
        let slugs: Vec<&str> = woven.refused.iter().map(|(_, why)| why.slug).collect();
        assert_eq!(slugs, [slug], "{text}");
        assert_eq!(woven.text, ptx);
    };
    let body = "{ .reg .b64 %rd<3>; mov.u64 %rd1, v; ret; }";
    refused(&format!(".global .attribute(.managed) .u32 v;\n.entry k() {body}"), "pin");
    refused(&format!(".func f() {{ ret; }}\n.global .u64 v[1] = {{f}};\n.entry k() {body}"), "pin");
    refused(".global .u32 v;\n.entry k() { .global .u64 w = v; ret; }", "pin");
    refused(".const .u32 c[] = {1};\n.entry k() { .reg .b32 %r; ld.const.u32 %r, [c]; ret; }", "pin");
    refused(
        ".global .u32 v;\n.entry k() { .reg .b32 %r;\nL: .pragma \"used_bytes_mask 1\"; ld.global.u32 %r, [v]; ret; }",
        "unclear-place",
    );
}

#[test]
fn a_whole_module_has_no_pins() {
    let ptx =
        format!("{HEADER}{VARIABLES}.entry k() {{ .reg .b64 %rd; ld.global.u64 %rd, [total]; ret; }}\n");
    let woven = common::weave(&ptx, &probe("gmem_bytes"));
    assert!(woven.kernels[0].pins.is_empty() && !woven.text.contains("nt_pin"));
}

/// Every kernel of real texts, alone, with its variables pinned.
#[test]
fn real_kernels() {
    let ptxas = Ptxas::find();
    let mut pinned = 0;
    for name in ["nvcc/features.sm_90.ptx", "nvcc/features.rdc.sm_90.ptx", "nvcc/features.debug.sm_90.ptx"] {
        let ptx = std::fs::read_to_string(testdata().join("ptx").join(name)).unwrap();
        let (module, mut found) = nt_ptx::parse(&ptx);
        let info = nt_ptx::resolve(&module, &mut found);
        for (index, function) in module.functions.iter().enumerate() {
            if !function.is_entry || function.body.is_none() {
                continue;
            }
            let alone = prune(&module, &info, index);
            for program in ["block_sched", "counters", "addresses"] {
                let woven = twin(&alone, program);
                obeys(&alone, &woven, name);
                let Some(kernel) = woven.kernels.first().filter(|kernel| !kernel.pins.is_empty()) else {
                    continue;
                };
                pinned += 1;
                if let Some(ptxas) = &ptxas {
                    ptxas
                        .assemble(&woven.text)
                        .unwrap_or_else(|said| panic!("{name}: {}: {said}", kernel.name));
                }
            }
        }
    }
    assert!(7 <= pinned, "{pinned} kernels have pins");
}

/// The variables of a function are pinned in its clone as they are in the function, also where the kernel was cut out.
#[test]
fn clones_use_the_pins_of_their_functions() {
    let text = format!(
        "{HEADER}.global .u32 total;\n.func (.param .b32 r) f(.param .b32 a)\n{{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [a];\n\
         sub.u32 %r1, %r1, 1;\nst.global.u32 [total], %r1;\nst.param.b32 [r], %r1;\nret;\n}}\n\
         .entry other() {{ .reg .b32 %r<2>; mov.u32 %r1, 1; st.global.u32 [total], %r1; ret; }}\n\
         .entry k()\n{{\n.reg .b32 %r<3>;\nmov.u32 %r1, %tid.x;\n{{\n.param .b32 p; .param .b32 q;\nst.param.b32 [p], %r1;\n\
         call.uni (q), f, (p);\nld.param.b32 %r2, [q];\n}}\nret;\n}}\n"
    );
    let (module, mut found) = nt_ptx::parse(&text);
    let info = nt_ptx::resolve(&module, &mut found);
    let ptx = prune(&module, &info, info.function("k").unwrap());
    assert!(!ptx.contains("other") && ptx.contains("func"), "{ptx}");
    let woven = twin(&ptx, "functions");
    assert_eq!(refusals(&ptx, &woven), "");
    obeys(&ptx, &woven, "twin.ptx");
    assert_eq!(woven.kernels[0].pins.len(), 1);
    // In the function and in its clone.
    assert_eq!(woven.text.matches("st.global.u32 [/*nt:edit 746f74616c{*/%nt_g0/*}nt:edit*/]").count(), 2);
    if let Some(ptxas) = Ptxas::find() {
        ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{said}\n{}", woven.text));
    }
}

/// What a store to a variable of the original overwrites is the original's.
#[test]
fn what_a_store_to_a_pinned_variable_overwrites() {
    let ptx = format!(
        "{HEADER}{VARIABLES}.entry k()\n{{\n.reg .b32 %r<4>;\nmov.u32 %r1, %tid.x;\nst.global.u32 [lut+12], %r1;\nret;\n}}\n"
    );
    let program = "program \"t\"\ntable @n: sum u64 []\nprobe thread inst:store {\n\
                   %0: u64 = cast old[0]\nsum @n(%0)\n}\n";
    let (module, mut found) = nt_ptx::parse(&ptx);
    let info = nt_ptx::resolve(&module, &mut found);
    let options = Options { twin: true, ..Options::default() };
    let woven = weave_with(&module, &info, &common::prepare(program), &[0], options);
    assert_eq!(refusals(&ptx, &woven), "");
    obeys(&ptx, &woven, "twin.ptx");
    let loads: Vec<&str> =
        woven.text.lines().filter(|line| line.contains("nt_pin+") || line.contains("ld.global")).collect();
    assert_eq!(
        loads,
        [
            "\tld.const.b64 %nt_d0, [nt_pin+0];",
            "\tld.global.u32 %nt_r0, [%nt_d0+12];",
            "\t/*}nt:0*//*nt:1{*/.reg .b64 %nt_g0; { ld.const.b64 %nt_g0, [nt_pin+0]; }/*}nt:1*/st.global.u32 [/*nt:edit 6c7574{*/%nt_g0/*}nt:edit*/+12], %r1;"
        ]
    );
}
