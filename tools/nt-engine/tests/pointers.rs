//! Functions called through pointers, under a twin in a module of its own: what may be, what is told, what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_engine::cache::Cache;
use nt_engine::{Conditions, Engine, Prepared, Probe};
use std::sync::Arc;

/// Kernel `k` with this body, and two functions, of which one leaves.
fn prepare(source: &str, body: &str) -> Result<Arc<Prepared>, String> {
    let (program, found) = nt_probe::compile(source, "p");
    assert!(!found.has_errors(), "{found:?}");
    let engine = Engine::new(Probe::new(program.unwrap(), b"").unwrap(), Vec::new(), None, Cache::none());
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.func f() {{ .reg .b32 %r; .reg .b64 %d; ld.global.u32 %r, [%d]; ret; }}\n\
         .func g() {{ exit; }}\n.entry other() {{ ret; }}\n.entry k(.param .u64 p) {{\n\
         .reg .b32 %r<3>; .reg .b64 %d<4>; .reg .pred %p<2>;\nld.param.u64 %d1, [p];\nld.global.u32 %r1, [%d1];\n{body}\nret; }}\n"
    );
    let found = engine.inspect(text.as_bytes());
    engine.prepare(found.image, "k", 90, Conditions::NONE).map_err(|refusal| refusal.reason)
}

const LOADS: &str = "inst:load.global { @ = count(); }";
const EXITS: &str = "map m: array<warp> { at: u64 } warp kernel:exit { m.save(clock()); }";
const CALL: &str = "P: .callprototype _ (); call %d2, (), P;";

#[test]
fn what_is_called_by_an_address_of_the_text_is_told() {
    let prepared = prepare(LOADS, &format!("mov.u64 %d2, f;\n{CALL}")).unwrap();
    let told = "`k` is not covered wholly, its counts are lower bounds: `k` calls through a pointer, to `f` (line 12)";
    assert_eq!(prepared.notes.first().map(String::as_str), Some(told));
    let uncovered = &prepared.manifest.kernels[0].uncovered;
    assert_eq!(
        (uncovered.len(), uncovered[0].line, uncovered[0].names.as_slice()),
        (1, 12, &["f".to_owned()][..])
    );
    // A probe that has nothing to do there is told nothing.
    let prepared = prepare(EXITS, &format!("mov.u64 %d2, f;\n{CALL}")).unwrap();
    assert!(prepared.manifest.kernels[0].uncovered.is_empty());
    assert!(prepared.notes.iter().all(|note| !note.contains("covered")), "{:?}", prepared.notes);
}

#[test]
fn what_may_not_be() {
    let refused = |source: &str, body: &str, part: &str| {
        let reason = prepare(source, body).unwrap_err();
        assert!(reason.contains(part), "{body}: {reason}");
    };
    refused(LOADS, &format!("ld.global.u64 %d2, [%d1]; {CALL}"), "it calls functions through pointers");
    refused(LOADS, "mov.u64 %d2, f; st.global.u64 [%d1], %d2;", "it gives away the address of `f`");
    refused(
        LOADS,
        "{ .param .b64 x; mov.u64 %d2, f; st.param.b64 [x], %d2; }",
        "it gives away the address of `f`",
    );
    // Addresses differ between the two modules.
    refused(LOADS, "mov.u64 %d2, f; setp.eq.u64 %p1, %d2, %d1;", "it gives away the address of `f`");
    refused(EXITS, &format!("mov.u64 %d2, g; {CALL}"), "a pointer may lead to `g`, which holds `exit`");
    let stores = "inst:store { @ = count(); }";
    let seen = "in what can be probed of it: `k` calls through a pointer, to `f` (line 11)";
    refused(stores, &format!("mov.u64 %d2, f; {CALL}"), seen);
}
