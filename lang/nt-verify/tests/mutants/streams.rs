//! Classes of mutants that break what streams emit: slots, claims of chunks, drops. V8, V11, V12.

use crate::text::{self, Class, Pair, each_opcode, each_place, opcode, spans, without_guard};
use nt_verify::Rule;

/// Is it the text of a stream? The classes below would do other things to other texts.
fn is_stream(pair: &Pair) -> bool {
    pair.woven.contains("cursor.ev")
}

/// One replacement at each place of the spans, for each of the changes.
fn changes(pair: &Pair, changes: &[(&str, &str)]) -> Vec<Pair> {
    text::changes(pair, is_stream(pair), false, changes)
}

/// Changes of the instructions of that opcode.
fn each(pair: &Pair, wanted: &str, change: impl Fn(&str) -> Option<String>) -> Vec<Pair> {
    each_opcode(pair, is_stream(pair), wanted, change)
}

pub(crate) const CLASSES: &[Class] = &[
    Class {
        name: "a slot is not compared with the room of its stream",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = each(pair, "st.", without_guard);
            mutants.extend(changes(
                pair,
                &[
                    ("setp.lt.and.u32 %nt_q, %nt_s_ev", "setp.le.and.u32 %nt_q, %nt_s_ev"),
                    ("setp.lt.and.u32 %nt_q, %nt_s_ev", "setp.lt.or.u32 %nt_q, %nt_s_ev"),
                    ("setp.lt.and.u32 %nt_q, %nt_s_ev", "setp.lt.and.s32 %nt_q, %nt_s_ev"),
                    ("setp.lt.and.u32 %nt_q, %nt_s_ev", "setp.ne.and.u32 %nt_q, %nt_s_ev"),
                    ("setp.lt.and.u32 %nt_q, %nt_e", "setp.le.and.u32 %nt_q, %nt_e"),
                    ("setp.lt.and.u64 %nt_q, %nt_i", "setp.le.and.u64 %nt_q, %nt_i"),
                    ("setp.lt.u32 %nt_r, %nt_j", "setp.lt.u32 %nt_r, %nt_pos"),
                    ("setp.lt.u32 %nt_r, %nt_j", "setp.le.u32 %nt_r, %nt_j"),
                    ("setp.ge.u64 %nt_q, %nt_f", "setp.gt.u64 %nt_q, %nt_f"),
                    ("setp.ge.u64 %nt_q, %nt_f, %nt_cap", "setp.ge.u64 %nt_q, %nt_f, %nt_i"),
                    ("cvt.u64.u32 %nt_cap, %nt_c;", "cvt.u64.u32 %nt_cap, %nt_l;"),
                    ("mad.lo.u64 %nt_a, %nt_f, 16, %nt_b", "mad.lo.u64 %nt_a, %nt_f, 32, %nt_b"),
                    ("%nt_s_ev, 16, %nt_b", "%nt_s_ev, 32, %nt_b"),
                    ("%nt_j, 16, %nt_b", "%nt_rank, 16, %nt_b"),
                    (
                        "add.u32 %nt_j, %nt_j, 1;\n\t\tsetp.lt.u32 %nt_r, %nt_j, %nt_c;",
                        "setp.lt.u32 %nt_r, %nt_j, %nt_c;\n\t\tadd.u32 %nt_j, %nt_j, 1;",
                    ),
                ],
            ));
            // Behind a comparison that stores depend on: another number than the capacity.
            let fields = each_place(pair, false, "%nt_c, [nt_ctx+16]", "%nt_c, [nt_ctx+20]");
            let slow = "setp.ge.u64 %nt_q, %nt_f";
            let in_entry = |mutant: &Pair| {
                let entry = &spans(&mutant.woven)[0];
                mutant.woven[entry.inner.clone()].contains("[nt_ctx+20]")
            };
            mutants.extend(
                fields.into_iter().filter(|m| is_stream(pair) && m.woven.contains(slow) && !in_entry(m)),
            );
            mutants
        },
    },
    Class {
        name: "more slots are stored to than were compared",
        rules: &[Rule::V11],
        mutate: |pair| {
            changes(
                pair,
                &[
                    ("add.u32 %nt_e, %nt_s_ev, 1;", "add.u32 %nt_e, %nt_s_ev, 0;"),
                    ("add.u32 %nt_e, %nt_s_ev, 1;", "mov.u32 %nt_e, %nt_s_ev;"),
                    ("add.u32 %nt_e, %nt_s_ev, 1;", "add.u32 %nt_e, %nt_s_ev, 0x10000;"),
                    ("add.u32 %nt_e, %nt_s_ev, 1;", "add.u32 %nt_e, %nt_s_ev, -1;"),
                    ("setp.lt.and.u32 %nt_q, %nt_e, %nt_c, %nt_q;", ""),
                    (
                        "setp.lt.and.u32 %nt_q, %nt_e, %nt_c, %nt_q;",
                        "setp.lt.and.u32 %nt_q, %nt_e, %nt_c, %nt_p;",
                    ),
                    ("[%nt_a+16]", "[%nt_a+32]"),
                    ("[%nt_a+24]", "[%nt_a+40]"),
                    ("[%nt_a+24]", "[%nt_a+28]"),
                    ("sub.u64 %nt_a, %nt_a, 16;", "sub.u64 %nt_a, %nt_a, 64;"),
                    ("add.u64 %nt_i, %nt_i, 3;", "add.u64 %nt_i, %nt_i, 0;"),
                    ("add.u64 %nt_i, %nt_i, 3;", "add.u64 %nt_i, %nt_i, -3;"),
                    ("and.b32 %nt_w, %nt_rank, 1;", "and.b32 %nt_w, %nt_rank, 3;"),
                    ("and.b32 %nt_w, %nt_rank, 1;", "mov.b32 %nt_w, %nt_rank;"),
                    ("%nt_w, 8, %nt_a", "%nt_w, 16, %nt_a"),
                    ("%nt_w, 8, %nt_a", "%nt_w, 4, %nt_a"),
                    ("and.b32 %nt_w, %nt_w, 12;", "and.b32 %nt_w, %nt_w, 28;"),
                    ("and.b32 %nt_w, %nt_w, 12;", "or.b32 %nt_w, %nt_w, 12;"),
                    ("and.b32 %nt_w, %nt_w, 12;", ""),
                    ("shl.b32 %nt_w, %nt_rank, 2;", "mov.b32 %nt_w, %nt_pos;"),
                    ("and.b32 %nt_w, %nt_w, 12;", "and.b32 %nt_w, %nt_pos, 13;"),
                ],
            )
            .into_iter()
            // Of a mask of 12, bits 2 and 3 of any number are as good.
            .filter(|mutant| !mutant.woven.contains("mov.b32 %nt_w, %nt_pos;"))
            .collect()
        },
    },
    Class {
        name: "a claim by more lanes than one, elsewhere than at the cursor, or of more than one chunk",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = changes(
                pair,
                &[
                    ("setp.eq.and.u32 %nt_g, %nt_k, 0, %nt_p", "setp.eq.or.u32 %nt_g, %nt_k, 0, %nt_p"),
                    ("setp.eq.and.u32 %nt_g, %nt_k, 0, %nt_p", "setp.eq.u32 %nt_g, %nt_k, 0"),
                    ("setp.eq.and.u32 %nt_g, %nt_k, 0, %nt_p", "setp.eq.and.u32 %nt_g, %nt_k, 0, !%nt_p"),
                    ("@!%nt_g bra", "@%nt_g bra"),
                    ("popc.b32 %nt_k, %nt_l;", "popc.b32 %nt_k, %nt_m;"),
                    ("popc.b32 %nt_k, %nt_l;", "mov.u32 %nt_k, %laneid;"),
                    ("popc.b32 %nt_k, %nt_l;", "clz.b32 %nt_k, %nt_l;"),
                    ("popc.b32 %nt_k, %nt_l;", "not.b32 %nt_k, %nt_l;"),
                    (
                        "setp.ne.u32 %nt_p, %nt_l, 0;\n\t\t@%nt_p bra $nt_L4",
                        "setp.ne.u32 %nt_p, %nt_l, 1;\n\t\t@%nt_p bra $nt_L4",
                    ),
                    ("@%nt_p bra $nt_L4;", "@!%nt_p bra $nt_L4;"),
                    ("@%nt_p bra $nt_L4;", ""),
                    ("%nt_f, [%nt_b]", "%nt_f, [%nt_b+8]"),
                    ("%nt_f, [%nt_b]", "%nt_f, [%nt_b+64]"),
                    ("%nt_k, 8, %nt_b", "%nt_m, 8, %nt_b"),
                    ("%nt_k, 8, %nt_b", "%nt_k, 8, %nt_a"),
                    ("%nt_f, [%nt_a]", "%nt_f, [%nt_a+-8]"),
                    ("%nt_b, [nt_ctx+24]", "%nt_b, [nt_ctx+32]"),
                    ("%nt_b, [nt_ctx+24]", "%nt_b, [nt_ctx+8]"),
                ],
            );
            for amount in ["2", "0", "-1", "%nt_b"] {
                mutants.extend(each(pair, "atom.", |text| {
                    Some(text.replacen(", 1;", &format!(", {amount};"), 1))
                }));
            }
            // The first election of a span that claims: before the guard of the claim.
            let elections =
                changes(pair, &[("setp.eq.u32 %nt_p, %nt_l, 0;", "setp.eq.u32 %nt_p, %nt_m, 0;")]);
            mutants.extend(elections.into_iter().take(1));
            mutants
        },
    },
    Class {
        name: "drops of a warp that is not there, or of two",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = each(pair, "red.", without_guard);
            mutants.extend(each(pair, "red.", |text| Some(text.replacen("u32", "u64", 1))));
            mutants.extend(each(pair, "red.", |text| Some(text.replacen(']', "+4]", 1))));
            mutants.extend(changes(
                pair,
                &[
                    ("setp.ge.u32 %nt_q, %nt_x, %nt_u", "setp.gt.u32 %nt_q, %nt_x, %nt_u"),
                    ("setp.ge.u32 %nt_q, %nt_x, %nt_u", "setp.ge.u32 %nt_q, %nt_x, 64"),
                    ("setp.lt.u32 %nt_q, %nt_w, %nt_u", "setp.ne.u32 %nt_q, %nt_w, %nt_u"),
                    ("%nt_x, 4, %nt_b", "%nt_x, 8, %nt_b"),
                    ("%nt_x, 4, %nt_b", "%nt_x, 2, %nt_b"),
                    ("%nt_b, [nt_ctx+32]", "%nt_b, [nt_ctx+24]"),
                    ("%nt_b, [nt_ctx+32]", "%nt_b, [nt_ctx+8]"),
                ],
            ));
            mutants
        },
    },
    Class {
        name: "another effect than the one that is for it",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = each(pair, "atom.", |text| {
                let (before, rest) = text.split_once("atom")?;
                let (_, address) = rest.split_once('[')?;
                Some(format!("{before}red.global.add.u64 [{address}"))
            });
            mutants.extend(each(pair, "atom.", |text| {
                let (before, rest) = text.split_once("atom")?;
                let (_, address) = rest.split_once('[')?;
                Some(format!("{before}st.global.u64 [{address}"))
            }));
            mutants.extend(each(pair, "red.", |text| Some(text.replacen(opcode(text), "st.global.u32", 1))));
            mutants.extend(each(pair, "st.global.u64", |text| {
                Some(text.replacen("st.global.u64", "red.global.add.u64", 1))
            }));
            mutants
        },
    },
    Class {
        name: "the words of a stream exchanged",
        rules: &[Rule::V11],
        mutate: |pair| {
            let words = [
                ("cap.ev@16:4 units.ev@20:4", "units.ev@16:4 cap.ev@20:4"),
                ("cursor.ev@24:8 drops.ev@32:8", "drops.ev@24:8 cursor.ev@32:8"),
                ("base.ev@8:8", "cursor.ev@8:8"),
            ];
            let there = words.iter().filter(|(old, _)| pair.woven.contains(old));
            there
                .map(|(old, new)| {
                    let woven = pair.woven.replace(old, new);
                    let woven = match *new {
                        "cursor.ev@8:8" => woven.replace("cursor.ev@24:8", "base.ev@24:8"),
                        _ => woven,
                    };
                    Pair { original: pair.original.clone(), woven }
                })
                .collect()
        },
    },
    // V12
    Class {
        name: "the branch that all lanes come to is another instruction",
        rules: &[Rule::V12],
        mutate: |pair| {
            let others = ["ret;", "exit;", "trap;", "call f;", "mov.u32 %r3, %r2;", "bra_;", "brkpt;"];
            let there = others.iter().filter(|_| is_stream(pair));
            let change = |new: &&str| {
                let change = |text: &str| text.replacen("bra \t$L_loop;", new, 1);
                let mutant = Pair { original: change(&pair.original), woven: change(&pair.woven) };
                assert_ne!(mutant.original, pair.original);
                mutant
            };
            there.map(change).collect()
        },
    },
    Class {
        name: "a branch of a span leads to an effect that its guard keeps off",
        rules: &[Rule::V12, Rule::V11, Rule::V9],
        mutate: |pair| {
            // A label before each effect of a span, and a branch there from before the guard's own.
            let mut mutants = Vec::new();
            for mark in spans(&pair.woven) {
                let inner = &pair.woven[mark.inner.clone()];
                let Some(guard) = inner.find("@!%p1 bra ") else { continue };
                for (at, _) in inner.match_indices("\n\t\t").filter(|&(at, _)| at > guard) {
                    let line = inner[at + 3..].split('\n').next().unwrap();
                    let text = line.trim();
                    let is_effect = ["st.", "red.", "atom."].iter().any(|op| opcode(text).starts_with(op))
                        || (text.contains("%nt_s_ev, ")
                            && !text.starts_with("setp")
                            && !text.contains(", %nt_s_ev, 15"));
                    if text.is_empty() || text.starts_with("//") || !is_effect {
                        continue;
                    }
                    let mut woven = pair.woven.clone();
                    woven.insert_str(mark.inner.start + at, "\n$nt_Z: ");
                    let into = "setp.eq.u32 %nt_y9, %laneid, 7; @%nt_y9 bra $nt_Z; ";
                    woven.insert_str(mark.inner.start + guard, &format!(".reg .pred %nt_y9; {into}"));
                    mutants.push(Pair { original: pair.original.clone(), woven });
                }
            }
            mutants
        },
    },
];
