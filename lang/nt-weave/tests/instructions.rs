//! Which instructions a probe means, what is known of them, and what is refused; and that what is added is what the
//! instructions move.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod common;

use common::{Ptxas, obeys, prepare, refusals, testdata, weave};
use nt_ptx::opcode::{Bytes, Space};
use nt_ptx::syntax::Kind;

const HEADER: &str = ".version 8.5\n.target sm_90\n.address_size 64\n";
const REGISTERS: &str = ".reg .pred %p<3>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<4>;\nmov.u64 %rd1, 0;\nmov.u32 %r1, 0;\n\
                         setp.eq.u32 %p1, %r1, 0;\n";

/// A program that counts at a tracepoint.
fn counting(unit: &str, point: &str) -> String {
    format!("program \"t\"\ntable @n: count u64 [site, op, space]\nprobe {unit} {point} {{ count @n }}\n")
}

/// The cells `op space` of a kernel's sites, in text order.
fn cells(body: &str, point: &str) -> Vec<String> {
    let ptx = format!("{HEADER}.entry k()\n{{\n{REGISTERS}{body}\nret;\n}}\n");
    let woven = weave(&ptx, &prepare(&counting("thread", point)));
    assert_eq!(refusals(&ptx, &woven), "", "{point}");
    obeys(&ptx, &woven, "t.ptx");
    if let Some(ptxas) = Ptxas::find() {
        ptxas.assemble(&ptx).unwrap_or_else(|said| panic!("as it was: {said}"));
        ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{said}\n{}", woven.text));
    }
    let Some(kernel) = woven.kernels.first() else { return Vec::new() };
    let cells = &kernel.tables[0].cells;
    // Numbered as the manifest's sites are, of which one has a cell for each space that its address may lead into.
    let numbers: Vec<usize> = cells.iter().map(|cell| cell[0].parse().unwrap()).collect();
    for (cell, &number) in cells.iter().zip(&numbers) {
        assert_eq!(cell[1], kernel.sites[number].opcode);
    }
    let sites: std::collections::BTreeSet<usize> = numbers.iter().copied().collect();
    assert!(numbers.is_sorted() && sites.into_iter().eq(0..kernel.sites.len()));
    cells.iter().map(|cell| cell[1..].join(" ")).collect()
}

#[test]
fn spaces_are_meant_and_not_spelled() {
    let body = ".shared .b32 s[4];\nld.global.u32 %r1, [%rd1];\nld.u32 %r1, [%rd1];\nld.shared.u32 %r1, [s];\n\
                st.u32 [%rd1+4], %r1;\nld.u32 %r2, [s];";
    assert_eq!(cells(body, "inst:load.global"), ["ld.global.u32 global", "ld.u32 global"]);
    assert_eq!(cells(body, "inst:load.shared"), ["ld.u32 shared", "ld.shared.u32 shared", "ld.u32 shared"]);
    assert_eq!(
        cells(body, "inst:load.generic"),
        ["ld.u32 global", "ld.u32 shared", "ld.u32 cluster", "ld.u32 local", "ld.u32 const", "ld.u32 shared"]
    );
    assert_eq!(
        cells(body, "inst:load|store.global|shared"),
        [
            "ld.global.u32 global",
            "ld.u32 global",
            "ld.u32 shared",
            "ld.shared.u32 shared",
            "st.u32 global",
            "st.u32 shared",
            "ld.u32 shared"
        ]
    );
    assert_eq!(cells(body, "inst:atomic.global"), [""; 0]);
}

#[test]
fn classes_qualifiers_and_globs() {
    let body = "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];\nld.global.u64 %rd2, [%rd1];\n\
                red.global.add.u32 [%rd1], 1;\natom.global.add.u32 %r1, [%rd1], 1;\n@%p1 st.global.u8 [%rd1], %r1;";
    assert_eq!(cells(body, "inst:access.global.v4"), ["ld.global.v4.u32 global"]);
    assert_eq!(cells(body, "inst:access.*.b64|b8"), ["ld.global.u64 global", "st.global.u8 global"]);
    assert_eq!(
        cells(body, "inst:reduce|atomic"),
        ["red.global.add.u32 global", "atom.global.add.u32 global"]
    );
    assert_eq!(cells(body, "ptx:\"ld.global.u*\""), ["ld.global.u64 global"]);
    assert_eq!(cells(body, "ptx:\"*.add.u32\":reach").len(), 2);
}

#[test]
fn what_cannot_be_reached_is_no_site() {
    let body = "bra.uni L;\nld.global.u32 %r1, [%rd1];\nL: ld.global.u64 %rd2, [%rd1];\ntrap;\nld.global.u8 %r1, [%rd1];";
    assert_eq!(cells(body, "inst:load.global"), ["ld.global.u64 global"]);
}

#[test]
fn spans_stay_off_what_speaks_of_the_next_instruction() {
    let body = "L: .pragma \"nounroll\";\n.loc 1 2 3\n.pragma \"used_bytes_mask 1\";\n.loc 1 2 4\n@%p1 ld.global.u32 %r1, [%rd1];\n@%p1 bra L;";
    let ptx = format!("{HEADER}.file 1 \"k.cu\"\n.entry k()\n{{\n{REGISTERS}{body}\nret;\n}}\n");
    let woven = weave(&ptx, &prepare(&counting("thread", "inst:load.global")));
    obeys(&ptx, &woven, "t.ptx");
    let before = "/*}nt:0*/.pragma \"used_bytes_mask 1\";";
    assert!(woven.text.contains(before), "{}", woven.text);
    assert_eq!(woven.kernels[0].sites[0].source, Some(("k.cu".to_owned(), 2)));
}

/// A probe on a branch that ran only when it is taken could not see divergence.
#[test]
fn branches_are_reached_by_all_lanes() {
    let text = "program \"t\"\ntable @n: count u64 [block]\nprobe thread inst:branch|split:reach {\n  \
                %0: bool = operand pred\n  %1: bool = not %0\n  count @n if %1\n}\n";
    let ptx = format!("{HEADER}.entry k()\n{{\n{REGISTERS}@!%p1 bra L;\nL: bra.uni M;\nM: ret;\n}}\n");
    let woven = weave(&ptx, &prepare(text));
    assert_eq!(refusals(&ptx, &woven), "");
    obeys(&ptx, &woven, "t.ptx");
    // Where there is no guard it holds, so that the second is no site.
    assert_eq!(woven.kernels[0].sites.len(), 1);
    assert!(!woven.text.contains("bra $nt_"), "{}", woven.text);
    if let Some(ptxas) = Ptxas::find() {
        ptxas.assemble(&woven.text).unwrap_or_else(|said| panic!("{said}\n{}", woven.text));
    }
}

#[test]
fn sums_stay_out_of_asynchronous_matrix_instructions() {
    let matmul = std::fs::read_to_string(testdata().join("ptx/triton/matmul.sm_90a.ptx")).unwrap();
    let why = |point: &str| {
        let woven = weave(&matmul, &prepare(&counting("thread", point).replace(", space", "")));
        woven.refused.first().map_or("woven", |(_, why)| why.slug)
    };
    assert_eq!(why("inst:mma"), "among-wgmma");
    assert_eq!(why("inst:commit"), "among-wgmma");
    assert_eq!(why("ptx:\"wgmma.fence*\""), "woven");
    assert_eq!(why("inst:wait"), "woven");
}

#[test]
fn an_operand_that_a_site_lacks() {
    let program = |body: &str| {
        let head = "program \"t\"\ntable @n: sum u64 []\nprobe thread inst:mma|move {\n";
        prepare(&format!("{head}{body}}}\n"))
    };
    let ptx = format!("{HEADER}.entry k() {{\n{REGISTERS}ret;\n}}\n");
    let asks = "%0: u32 uniform = site macs\n%1: u64 uniform = cast %0\n";
    let woven = weave(&ptx, &program(&format!("{asks}sum @n(%1)\n")));
    let (_, why) = &woven.refused[0];
    assert_eq!(why.slug, "operand-absent");
    assert!(why.label.contains("`if has(macs)` would leave it out"), "{}", why.label);
    let woven = weave(&ptx, &program(&format!("{asks}%2: bool uniform = has macs\nsum @n(%1) if %2\n")));
    assert!(woven.refused.is_empty() && woven.kernels.is_empty(), "it does nothing there");
}

#[test]
fn a_warp_that_leaves_adds_once() {
    let ptx = format!("{HEADER}.entry k() {{ ret; }}\n");
    let text = "program \"t\"\ntable @n: count u64 [block]\nprobe warp kernel:exit { count @n }\n";
    let woven = weave(&ptx, &prepare(text));
    assert_eq!(refusals(&ptx, &woven), "");
    obeys(&ptx, &woven, "t.ptx");
    // Those that leave apart count themselves, and tell by that which are the last.
    assert!(woven.text.contains("atom.global.add.u64"), "{}", woven.text);
    let tables: Vec<&str> = woven.kernels[0].tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(tables, ["n", "nt_gone"]);
    // Where it is the instruction that counts, each group of lanes that comes to it does.
    let woven = weave(&ptx, &prepare(&text.replace("kernel:exit", "inst:exit")));
    assert_eq!(woven.kernels.len(), 1, "{:?}", woven.refused);
}

/// Over kernels without a way back: what the weaver adds, read off its text, is what the instructions move.
#[test]
fn bytes_that_are_added_are_those_that_are_moved() {
    let probe = common::probe("gmem_bytes");
    let mut kernels = 0;
    for name in [
        "nvcc/kernels.sm_90.ptx",
        "nvcc/features.sm_80.ptx",
        "triton/vector_add.sm_80.ptx",
        "triton/softmax.sm_90a.ptx",
    ] {
        let ptx = std::fs::read_to_string(testdata().join("ptx").join(name)).unwrap();
        let (module, mut found) = nt_ptx::parse(&ptx);
        let info = nt_ptx::resolve(&module, &mut found);
        for (index, function) in module.functions.iter().enumerate() {
            let flow = nt_ptx::flow(&module, &info, index);
            if !function.is_entry || function.body.is_none() || !flow.backward.is_empty() {
                continue;
            }
            let woven = nt_weave::weave(&module, &info, &probe, &[index]);
            let first = function.body.as_ref().unwrap().statements.start;
            let mut moved = 0;
            for (number, statement) in (first..).zip(module.body(function)) {
                let Kind::Instruction(instruction) = statement.kind else { continue };
                let Some(facts) = module.facts(&instruction) else { continue };
                let is_access = ["load", "store", "atomic", "reduce"].contains(&facts.class.name());
                let may_be_global = matches!(facts.space, Some(Space::Global | Space::Generic));
                if let (true, true, true, Bytes::Known(bytes)) =
                    (is_access, may_be_global, flow.is_reachable(number), facts.bytes)
                {
                    moved += u64::from(bytes);
                }
            }
            let Some(kernel) = woven.kernels.first() else {
                assert!(moved == 0 || !woven.refused.is_empty(), "{name}: {moved} bytes are not counted");
                continue;
            };
            // `add.u32 %nt_s_sync, %nt_s_sync, 2;`, in units that the sum at the exit is multiplied by.
            let amounts = woven.text.split("%nt_s_sync, %nt_s_sync, ").skip(1);
            let number = |text: &str| text.split(';').next().unwrap().parse::<u64>().unwrap();
            let added: u64 = amounts.map(number).sum();
            let (_, sum) = woven.text.split_once("redux.sync.add.u32 ").unwrap();
            let result = sum.split(',').next().unwrap();
            // `mad.wide.u32 %nt_d1, %nt_r3, 4, %nt_d0;`
            let (_, times) = sum.split_once("mad.wide.u32 ").unwrap();
            let operands: Vec<&str> = times.split(';').next().unwrap().split(", ").collect();
            assert_eq!(operands[1], result, "{name}: {}", kernel.name);
            let unit = number(operands[2]);
            assert_eq!(added * unit, moved, "{name}: {}", kernel.name);
            kernels += 1;
        }
    }
    assert!(5 <= kernels, "{kernels} kernels without a way back");
}
