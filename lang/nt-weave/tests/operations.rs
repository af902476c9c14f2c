//! Every operation on every type is woven, keeps the verifier's rules, and assembles.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;
#[path = "common/operations.rs"]
mod operations;

use common::{Ptxas, obeys, refusals, weave};

const KERNEL: &str = ".version 7.0\n.target sm_80\n.address_size 64\n\n.visible .entry k()\n{\n\tret;\n}\n";

#[test]
fn every_operation_on_every_type() {
    let ptxas = Ptxas::find();
    for program in operations::programs() {
        let name = program.name.clone();
        let layouts = program.maps.iter().map(|map| nt_ir::layout::lay_out(map, None)).collect();
        // Straight to the weaver: the passes would fold what is constant.
        let woven = weave(KERNEL, &nt_ir::Prepared { program, layouts });
        assert_eq!(refusals(KERNEL, &woven), "", "{name}");
        assert_eq!(woven.kernels.len(), 1, "{name}");
        obeys(KERNEL, &woven, &name);
        if let Some(ptxas) = &ptxas {
            let said =
                ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{name}: {said}\n{}", woven.text));
            // A call would serialise asynchronous matrix instructions.
            assert!(!said.contains("warning"), "{name}: {said}");
        }
    }
}
