//! Classes of mutants that break what arrays with a capacity emit: places of a unit, claims of other lanes, counts. V11.

use crate::text::{self, Class, Pair, each_opcode, without_guard};
use nt_verify::Rule;

/// Is it the text of such arrays? The classes below would do other things to other texts.
fn has_counts(pair: &Pair) -> bool {
    pair.woven.contains("counts.w")
}

/// One replacement at each place of the spans, for each of the changes.
fn changes(pair: &Pair, changes: &[(&str, &str)]) -> Vec<Pair> {
    text::changes(pair, has_counts(pair), false, changes)
}

/// Changes of the instructions of that opcode, which are of counts if their address is behind `%nt_b`'s word.
fn each(pair: &Pair, wanted: &str, change: impl Fn(&str) -> Option<String>) -> Vec<Pair> {
    each_opcode(pair, has_counts(pair), wanted, change)
}

/// The stores of counts.
fn each_count(pair: &Pair, change: impl Fn(&str) -> Option<String>) -> Vec<Pair> {
    each(pair, "st.", |text| text.ends_with(", %nt_n;").then(|| change(text)).flatten())
}

pub(crate) const CLASSES: &[Class] = &[
    Class {
        name: "a place that was not compared with the capacity, or is another",
        rules: &[Rule::V11],
        mutate: |pair| {
            changes(
                pair,
                &[
                    (
                        "setp.lt.and.u64 %nt_q, %nt_i, %nt_cap, %nt_is",
                        "setp.le.and.u64 %nt_q, %nt_i, %nt_cap, %nt_is",
                    ),
                    (
                        "setp.lt.and.u64 %nt_q, %nt_i, %nt_cap, %nt_is",
                        "setp.lt.or.u64 %nt_q, %nt_i, %nt_cap, %nt_is",
                    ),
                    (
                        "setp.lt.and.u64 %nt_q, %nt_i, %nt_cap, %nt_is",
                        "setp.lt.and.s64 %nt_q, %nt_i, %nt_cap, %nt_is",
                    ),
                    (
                        "setp.lt.and.u64 %nt_q, %nt_i, %nt_cap, %nt_is",
                        "setp.lt.and.u64 %nt_q, %nt_d, %nt_cap, %nt_is",
                    ),
                    (
                        "setp.lt.and.u64 %nt_q, %nt_i, %nt_cap, %nt_p",
                        "setp.lt.or.u64 %nt_q, %nt_i, %nt_cap, %nt_p",
                    ),
                    (
                        "ld.param.u64 %nt_b, [nt_ctx];\n\t\tshl",
                        "add.u64 %nt_i, %nt_i, 1;\n\t\tld.param.u64 %nt_b, [nt_ctx];\n\t\tshl",
                    ),
                    ("shl.b64 %nt_a, %nt_i, 4", "shl.b64 %nt_a, %nt_i, 5"),
                    ("shl.b64 %nt_a, %nt_i, 4", "shl.b64 %nt_a, %nt_d, 4"),
                    // Of the other array, of the units, and of the counts.
                    ("%nt_cap, [nt_ctx+8]", "%nt_cap, [nt_ctx+40]"),
                    ("%nt_cap, [nt_ctx+8]", "%nt_cap, [nt_ctx+64]"),
                    ("%nt_cap, [nt_ctx+40]", "%nt_cap, [nt_ctx+8]"),
                    ("%nt_b, [nt_ctx];", "%nt_b, [nt_ctx+16];"),
                    ("%nt_b, [nt_ctx];", "%nt_b, [nt_ctx+56];"),
                    ("%nt_b, [nt_ctx+32]", "%nt_b, [nt_ctx+48]"),
                ],
            )
        },
    },
    Class {
        name: "places of other lanes that several lanes claim, or not one at a time, or not from their count",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = changes(
                pair,
                &[
                    // Who leads is not known any more, so that ranks tell lanes apart.
                    ("popc.b32 %nt_k, %nt_l;", "popc.b32 %nt_k, %nt_m;"),
                    ("popc.b32 %nt_k, %nt_l;", "popc.b32 %nt_k, %nt_below;"),
                    ("popc.b32 %nt_k, %nt_l;", "mov.u32 %nt_k, %laneid;"),
                    ("popc.b32 %nt_k, %nt_l;", "clz.b32 %nt_k, %nt_l;"),
                    ("setp.eq.u32 %nt_p, %nt_l, 0;\n\t\t@!%nt_p bra $nt_L1;", "setp.eq.u32 %nt_p, %nt_l, 0;"),
                    ("setp.eq.u32 %nt_p, %nt_l, 0;", "setp.ne.u32 %nt_p, %nt_l, 0;"),
                    ("setp.eq.u32 %nt_p, %nt_l, 0;", "setp.eq.u32 %nt_p, %nt_m, 0;"),
                    // The half that is stored, what is behind the count, and another warp's.
                    ("%nt_x, [%nt_b+4]", "%nt_x, [%nt_b]"),
                    ("%nt_x, [%nt_b+4]", "%nt_x, [%nt_b+8]"),
                    ("%nt_x, [%nt_b+4]", "%nt_x, [%nt_b+12]"),
                    ("%nt_x, [%nt_b+4]", "%nt_x, [%nt_b+2]"),
                    ("%nt_x, [%nt_b+4]", "%nt_x, [%nt_b+-4]"),
                    ("mad.lo.u64 %nt_b, %nt_d, 8, %nt_b;", "mad.lo.u64 %nt_b, %nt_d, 4, %nt_b;"),
                    ("mad.lo.u64 %nt_b, %nt_d, 8, %nt_b;", "mad.lo.u64 %nt_b, %nt_d, 16, %nt_b;"),
                    ("mad.lo.u64 %nt_b, %nt_d, 8, %nt_b;", "mad.lo.u64 %nt_b, %nt_n, 8, %nt_b;"),
                    // Warps that are not there.
                    ("@%nt_g atom", "atom"),
                    ("@%nt_g atom", "@!%nt_g atom"),
                    ("setp.lt.u64 %nt_g, %nt_d, %nt_n", "setp.le.u64 %nt_g, %nt_d, %nt_n"),
                    ("setp.lt.u64 %nt_g, %nt_d, %nt_n", "setp.lt.s64 %nt_g, %nt_d, %nt_n"),
                    ("setp.lt.u64 %nt_g, %nt_d, %nt_n", "setp.lt.u64 %nt_g, %nt_n, %nt_d"),
                    (
                        "%nt_u, [nt_ctx+24];\n\t\tcvt.u64.u32 %nt_n",
                        "%nt_u, [nt_ctx+28];\n\t\tcvt.u64.u32 %nt_n",
                    ),
                    (
                        "ld.param.u32 %nt_u, [nt_ctx+24];\n\t\tcvt.u64.u32 %nt_n, %nt_u;",
                        "ld.param.u64 %nt_n, [nt_ctx+8];",
                    ),
                    // Other memory.
                    (
                        "%nt_b, [nt_ctx+16];\n\t\tmad.lo.u64 %nt_b",
                        "%nt_b, [nt_ctx+48];\n\t\tmad.lo.u64 %nt_b",
                    ),
                    ("%nt_b, [nt_ctx+16];\n\t\tmad.lo.u64 %nt_b", "%nt_b, [nt_ctx];\n\t\tmad.lo.u64 %nt_b"),
                ],
            );
            for amount in ["2", "0", "-1", "%nt_s", "%nt_u"] {
                mutants.extend(each(pair, "atom.", |text| {
                    Some(text.replacen(", 1;", &format!(", {amount};"), 1))
                }));
            }
            mutants
        },
    },
    Class {
        name: "a count of a unit that is not there, of another width, or in the half of other lanes",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = each_count(pair, without_guard);
            mutants.extend(each_count(pair, |text| Some(text.replacen(']', "+4]", 1))));
            mutants.extend(each_count(pair, |text| Some(text.replacen(']', "+8]", 1))));
            mutants.extend(each_count(pair, |text| Some(text.replacen(']', "+-4]", 1))));
            mutants.extend(each_count(pair, |text| Some(text.replacen(']', "+1]", 1))));
            mutants.extend(each_count(pair, |text| {
                let (before, rest) = text.split_once("st.global")?;
                let (_, address) = rest.split_once('[')?;
                Some(format!("{before}st.global.v2.b32 [{}", address.replacen("%nt_n", "{%nt_n, %nt_n}", 1)))
            }));
            mutants.extend(changes(
                pair,
                &[
                    (
                        "setp.lt.and.u32 %nt_q, %nt_w, %nt_u, %nt_p",
                        "setp.le.and.u32 %nt_q, %nt_w, %nt_u, %nt_p",
                    ),
                    (
                        "setp.lt.and.u32 %nt_q, %nt_w, %nt_u, %nt_p",
                        "setp.lt.or.u32 %nt_q, %nt_w, %nt_u, %nt_p",
                    ),
                    (
                        "setp.lt.and.u32 %nt_q, %nt_w, %nt_u, %nt_p",
                        "setp.lt.and.u32 %nt_q, %nt_x, %nt_u, %nt_p",
                    ),
                    ("setp.ge.u64 %nt_q, %nt_d, %nt_v", "setp.gt.u64 %nt_q, %nt_d, %nt_v"),
                    ("setp.ge.u64 %nt_q, %nt_d, %nt_v", "setp.lt.u64 %nt_q, %nt_d, %nt_v"),
                    ("setp.ge.u32 %nt_p, %nt_w, %nt_u", "setp.ne.u32 %nt_p, %nt_w, %nt_u"),
                    ("@!%nt_p st.global", "@%nt_p st.global"),
                    ("mad.wide.u32 %nt_a, %nt_w, 8, %nt_b", "mad.wide.u32 %nt_a, %nt_w, 4, %nt_b"),
                    ("mad.wide.u32 %nt_a, %nt_w, 8, %nt_b", "mad.wide.u32 %nt_a, %nt_u, 8, %nt_b"),
                    ("mad.wide.u32 %nt_a, %nt_w, 4, %nt_b", "mad.wide.u32 %nt_a, %nt_w, 8, %nt_b"),
                    ("shl.b64 %nt_a, %nt_d, 2", "shl.b64 %nt_a, %nt_d, 3"),
                    ("shl.b64 %nt_a, %nt_d, 2", "shl.b64 %nt_a, %nt_d, 1"),
                    // The units of the other array, and its capacity.
                    ("%nt_u, [nt_ctx+24];\n\t\tmov.u32 %nt_x", "%nt_u, [nt_ctx+28];\n\t\tmov.u32 %nt_x"),
                    (
                        "%nt_u, [nt_ctx+28];\n\t\tcvt.u64.u32 %nt_v",
                        "%nt_u, [nt_ctx+24];\n\t\tcvt.u64.u32 %nt_v",
                    ),
                    (
                        "%nt_u, [nt_ctx+28];\n\t\tcvt.u64.u32 %nt_v",
                        "%nt_u, [nt_ctx+40];\n\t\tcvt.u64.u32 %nt_v",
                    ),
                    // Its counts, and records.
                    ("%nt_b, [nt_ctx+48]", "%nt_b, [nt_ctx+16]"),
                    ("%nt_b, [nt_ctx+48]", "%nt_b, [nt_ctx+32]"),
                    ("%nt_b, [nt_ctx+16];\n\t\tmad.wide", "%nt_b, [nt_ctx+48];\n\t\tmad.wide"),
                    ("%nt_b, [nt_ctx+16];\n\t\tmad.wide", "%nt_b, [nt_ctx+56];\n\t\tmad.wide"),
                ],
            ));
            mutants
        },
    },
    Class {
        name: "another effect on counts than the one that is for it",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = each_count(pair, |text| {
                Some(text.replacen("st.global.b32", "red.global.add.u32", 1).replacen(
                    "st.global.u32",
                    "red.global.add.u32",
                    1,
                ))
            });
            mutants.extend(each_count(pair, |text| {
                let (before, rest) = text.split_once("st.global")?;
                let (_, address) = rest.split_once('[')?;
                let address = address.replacen("%nt_n", "1", 1);
                Some(format!("{before}atom.global.add.u32 %nt_n, [{address}"))
            }));
            for instead in ["red.global.add.u32 [", "st.global.b32 [", "red.global.add.u64 ["] {
                mutants.extend(each(pair, "atom.", |text| {
                    let (before, rest) = text.split_once("atom")?;
                    let (_, address) = rest.split_once('[')?;
                    Some(format!("{before}{instead}{address}"))
                }));
            }
            mutants
        },
    },
    Class {
        name: "the words of arrays with a capacity exchanged, or their shape",
        rules: &[Rule::V11],
        mutate: |pair| {
            let words = [
                ("base.w@0:8 cap.w@8:8 counts.w@16:8", "counts.w@0:8 cap.w@8:8 base.w@16:8"),
                ("units.w@24:4 units.t@28:4", "units.t@24:4 units.w@28:4"),
                (
                    "counts.w@16:8 units.w@24:4 units.t@28:4 base.t@32:8 cap.t@40:8 counts.t@48:8",
                    "counts.t@16:8 units.w@24:4 units.t@28:4 base.t@32:8 cap.t@40:8 counts.w@48:8",
                ),
                ("stride.w=16", "stride.w=32"),
                ("stride.w=16", "columns.w=8,8"),
                ("columns.t=4,1", "stride.t=16"),
                ("columns.t=4,1", "columns.t=4,4"),
            ];
            let there = words.iter().filter(|_| has_counts(pair));
            let change = |(old, new): &(&str, &str)| {
                assert!(pair.woven.contains(old), "{old}");
                Pair { original: pair.original.clone(), woven: pair.woven.replacen(old, new, 1) }
            };
            there.map(change).collect()
        },
    },
    // V12
    Class {
        name: "a count or a record of lanes that do not come to the site",
        rules: &[Rule::V12],
        mutate: |pair| changes(pair, &[("@!%p1 bra $nt_L1;", ""), ("@!%p1 bra $nt_L3;", "")]),
    },
];
