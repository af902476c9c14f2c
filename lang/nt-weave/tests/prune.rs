//! A pruned module holds one kernel and what it needs, and means what it meant.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, testdata};
use expect_test::{Expect, expect};
use nt_diag::{Paint, Source, render};

/// Prunes to the kernel `keep`, and holds the result against the verifier's rule.
fn prune(ptx: &str, keep: &str) -> String {
    let (module, mut found) = nt_ptx::parse(ptx);
    let info = nt_ptx::resolve(&module, &mut found);
    assert!(!found.has_errors(), "{}", render(&Source::new("in.ptx", ptx), found, &Paint::PLAIN));
    let keep =
        module.functions.iter().position(|f| f.is_entry && f.body.is_some() && module.at(f.name) == keep);
    let pruned = nt_weave::prune(&module, &info, keep.unwrap());
    let report = nt_verify::check_pruned(ptx, &pruned);
    assert!(
        report.is_accepted(),
        "{}",
        render(&Source::new("pruned.ptx", &pruned), report.to_found(), &Paint::PLAIN)
    );
    pruned
}

#[allow(clippy::needless_pass_by_value, reason = "`expect!` makes a value")]
fn check(items: &str, keep: &str, expected: Expect) {
    let ptx = format!(".version 8.5\n.target sm_90\n.address_size 64\n{items}");
    let pruned = prune(&ptx, keep);
    if let Some(ptxas) = Ptxas::find() {
        ptxas.assemble(&ptx).unwrap_or_else(|said| panic!("as it was: {said}"));
        ptxas.assemble(&pruned).unwrap_or_else(|said| panic!("pruned: {said}\n{pruned}"));
    }
    expected.assert_eq(pruned.split_once("64\n").unwrap().1);
}

#[test]
fn other_entries_go_and_what_only_they_need() {
    check(
        "\
.global .b32 mine[4];
.global .b32 theirs[4096];
.func f() { ret; }
.func g() { ret; }
// of both
.shared .b32 tile[32];
.visible .entry a() { .reg .b64 %r; call f, (); mov.u64 %r, mine; mov.u64 %r, tile; ret; }
.visible .entry b() { .reg .b64 %r; call g, (); mov.u64 %r, theirs; mov.u64 %r, tile; ret; }
",
        "a",
        expect![[r#"
            .global .b32 mine[4];

            .func f() { ret; }

            // of both
            .shared .b32 tile[32];
            .visible .entry a() { .reg .b64 %r; call f, (); mov.u64 %r, mine; mov.u64 %r, tile; ret; }

        "#]],
    );
}

#[test]
fn addresses_and_initialisers_count() {
    check(
        "\
.func f() { ret; }
.visible .func g();
.visible .func g() { ret; }
.func h() { ret; }
.visible .global .u64 inner[1] = { f };
.visible .global .u64 outer[2] = { inner, g };
.visible .entry a() { .reg .b64 %r; mov.u64 %r, outer; ret; }
",
        "a",
        expect![[r#"
            .func f() { ret; }
            .visible .func g();
            .visible .func g() { ret; }

            .visible .global .u64 inner[1] = { f };
            .visible .global .u64 outer[2] = { inner, g };
            .visible .entry a() { .reg .b64 %r; mov.u64 %r, outer; ret; }
        "#]],
    );
}

#[test]
fn declarations_and_aliases_go_together() {
    check(
        "\
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.visible .func real() { ret; }
.visible .func other();
.alias other, real;
.visible .func lost() { ret; }
.visible .func lone();
.alias lone, lost;
.visible .entry a() { call other, (); ret; }
",
        "a",
        expect![[r#"
            .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
            .visible .func real() { ret; }
            .visible .func other();
            .alias other, real;



            .visible .entry a() { call other, (); ret; }
        "#]],
    );
}

#[test]
fn an_entry_that_is_launched_from_the_kernel_stays() {
    check(
        "\
.visible .entry child();
.visible .entry child() { ret; }
.visible .entry a() { .reg .b64 %r; mov.u64 %r, child; ret; }
",
        "a",
        expect![[r#"
            .visible .entry child();
            .visible .entry child() { ret; }
            .visible .entry a() { .reg .b64 %r; mov.u64 %r, child; ret; }
        "#]],
    );
}

#[test]
fn every_kernel_of_the_features_assembles_alone() {
    let ptxas = Ptxas::find();
    for file in ["features.sm_90.ptx", "features.debug.sm_90.ptx", "features.rdc.sm_90.ptx"] {
        let ptx = std::fs::read_to_string(testdata().join("ptx/nvcc").join(file)).unwrap();
        let (module, _) = nt_ptx::parse(&ptx);
        for kernel in module.kernels() {
            let name = module.at(kernel.name);
            let pruned = prune(&ptx, name);
            assert!(pruned.len() < ptx.len(), "{file}: {name}");
            if let Some(ptxas) = &ptxas {
                ptxas.assemble(&pruned).unwrap_or_else(|said| panic!("{file}: {name}: {said}"));
            }
        }
    }
}
