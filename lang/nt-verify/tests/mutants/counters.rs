//! Classes of mutants that break counters, operands and pins: V6, V8 to V12, V16.

use crate::text::{Class, Pair, each_instruction, each_place, marks, opcode, take_away};
use nt_verify::Rule;

/// The same change in both texts, once, where the original has it.
fn in_both(pair: &Pair, old: &str, new: &str) -> Option<Pair> {
    let mutant =
        Pair { original: pair.original.replacen(old, new, 1), woven: pair.woven.replacen(old, new, 1) };
    (mutant.original != pair.original && take_away(&mutant.woven) == mutant.original).then_some(mutant)
}

/// A change of the claims, in all declarations at once.
fn in_claims(pair: &Pair, changes: &[(&str, &str)]) -> Vec<Pair> {
    let there = changes.iter().filter(|(old, _)| pair.woven.contains(old));
    there
        .map(|(old, new)| Pair { original: pair.original.clone(), woven: pair.woven.replace(old, new) })
        .collect()
}

fn each_red(pair: &Pair, change: impl Fn(&str) -> Option<String>) -> Vec<Pair> {
    each_instruction(pair, |text| opcode(text).starts_with("red.").then(|| change(text)).flatten())
}

pub(crate) const CLASSES: &[Class] = &[
    Class {
        name: "another atomic, of another order, type or memory",
        rules: &[Rule::V6],
        mutate: |pair| {
            let forms = [
                ("global.add", "global.max"),
                ("global.add", "add"),
                ("global.add", "shared.add"),
                ("global.add.u64", "global.add.s64"),
                ("global.add.u64", "global.add.f64"),
                ("global.add", "global.add.noftz"),
                ("red.global", "red.release.gpu.global"),
                ("red.global", "red.relaxed.sys.global"),
                ("red.relaxed.gpu", "red.acq_rel.gpu"),
                ("red.", "atom."),
            ];
            let change = |(old, new): &(&'static str, &'static str)| {
                let (old, new) = (*old, *new);
                each_red(pair, move |text| text.contains(old).then(|| text.replacen(old, new, 1)))
            };
            forms.iter().flat_map(change).collect()
        },
    },
    Class {
        name: "an addition behind its cells, askew, or through another pointer",
        rules: &[Rule::V11],
        mutate: |pair| {
            let address = |text: &str, new: fn(&str, i64) -> String| {
                let (before, rest) = text.split_once('[')?;
                let (address, rest) = rest.split_once(']')?;
                let (base, offset) = address.split_once('+').unwrap_or((address, "0"));
                Some(format!("{before}[{}]{rest}", new(base, offset.parse().unwrap())))
            };
            let mut mutants =
                each_red(pair, |text| address(text, |base, offset| format!("{base}+{}", offset + 24)));
            mutants.extend(each_red(pair, |text| {
                address(text, |base, offset| format!("{base}+{}", offset + 2))
            }));
            mutants.extend(each_red(pair, |text| address(text, |base, _| format!("{base}+-8"))));
            mutants.extend(each_red(pair, |text| address(text, |_, _| "%rd1".to_owned())));
            mutants.extend(each_red(pair, |text| address(text, |_, _| "lut".to_owned())));
            mutants
        },
    },
    Class {
        name: "an addition where a store belongs, a store where an addition does",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = each_red(pair, |text| Some(text.replacen(opcode(text), "st.global.u64", 1)));
            mutants.extend(each_instruction(pair, |text| {
                matches!(opcode(text), "st.global.u64")
                    .then(|| text.replacen("st.global.u64", "red.global.add.u64", 1))
            }));
            mutants.extend(
                in_claims(
                    pair,
                    &[("stride.@lines=16", "stride.lines=16"), ("stride.last=8", "stride.@last=8")],
                )
                .into_iter()
                .map(|mut mutant| {
                    for name in ["lines", "last"] {
                        let (is_map, is_table) = (format!("stride.{name}="), format!("stride.@{name}="));
                        for half in ["base", "cap"] {
                            if mutant.woven.contains(&is_map) {
                                mutant.woven = mutant
                                    .woven
                                    .replace(&format!("{half}.@{name}@"), &format!("{half}.{name}@"));
                            } else if mutant.woven.contains(&is_table) {
                                mutant.woven = mutant
                                    .woven
                                    .replace(&format!("{half}.{name}@"), &format!("{half}.@{name}@"));
                            }
                        }
                    }
                    mutant
                }),
            );
            mutants
        },
    },
    Class {
        name: "a cell's index is not compared with its own table's room",
        rules: &[Rule::V11],
        mutate: |pair| {
            let mut mutants = each_red(pair, |text| {
                text.split_once(' ')
                    .filter(|(guard, _)| guard.starts_with('@'))
                    .map(|(_, rest)| rest.to_owned())
            });
            for (old, new) in [
                ("setp.lt.and.u32 %nt_q, %nt_sm, %nt_c, %nt_g", "setp.lt.or.u32 %nt_q, %nt_sm, %nt_c, %nt_g"),
                (
                    "setp.lt.and.u32 %nt_q, %nt_sm, %nt_c, %nt_g",
                    "setp.le.and.u32 %nt_q, %nt_sm, %nt_c, %nt_g",
                ),
                ("[nt_ctx+32]", "[nt_ctx+16]"),
                ("[nt_ctx+48]", "[nt_ctx+16]"),
                ("setp.ge.u64 %nt_q, %nt_sm, %nt_c", "setp.gt.u64 %nt_q, %nt_sm, %nt_c"),
                ("and.pred %nt_q, %nt_q, %p2", "or.pred %nt_q, %nt_q, %p2"),
                ("shl.b64 %nt_sm, %nt_sm, 3", "shl.b64 %nt_sm, %nt_sm, 2"),
                ("shl.b64 %nt_sm, %nt_sm, 3", "shl.b64 %nt_sm, %nt_sm, 4"),
                ("%nt_sm, 24, %nt_b", "%nt_sm, 16, %nt_b"),
                ("%nt_sm, 24, %nt_b", "%nt_c, 24, %nt_b"),
            ] {
                mutants.extend(each_place(pair, false, old, new));
            }
            mutants.extend(in_claims(
                pair,
                &[
                    ("stride.@=24", "stride.@=16"),
                    ("stride.@=24", "stride.@=32"),
                    ("stride.@bytes=8", "stride.@bytes=16"),
                    ("stride.@lines=16", "stride.@lines=8"),
                ],
            ));
            mutants
        },
    },
    Class {
        name: "a count outside of the guard of its site",
        rules: &[Rule::V12],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for (old, new) in [
                ("@%p1 add.u32 %nt_n", "add.u32 %nt_n"),
                ("@%p1 add.u32 %nt_n", "@%nt_g add.u32 %nt_n"),
                ("and.pred %nt_g, %nt_g, %p1", "or.pred %nt_g, %nt_g, %p1"),
                ("and.pred %nt_g, %nt_g, %p1", "not.pred %nt_g, %nt_g"),
                ("and.pred %nt_q, %nt_q, %p2", "not.pred %nt_g, %p2; and.pred %nt_q, %nt_q, %nt_g"),
            ] {
                let same = new.contains("@%nt_g add") || new.contains("%nt_g, %p2;");
                mutants.extend(each_place(pair, false, old, new).into_iter().filter(|_| !same));
            }
            mutants
        },
    },
    Class {
        name: "a membermask that is not the lanes that are here",
        rules: &[Rule::V8, Rule::V9],
        mutate: |pair| {
            let sync = |change: fn(&str) -> String| {
                each_instruction(pair, |text| opcode(text).contains(".sync").then(|| change(text)))
            };
            let mut mutants = sync(|text| text.replace("%nt_m;", "0xffffffff;"));
            mutants.extend(sync(|text| text.replace("%nt_m;", "%nt_l;")));
            mutants.extend(sync(|text| format!("@%nt_p bra $nt_L7; {text}")));
            mutants.extend(sync(|text| format!("$nt_M: {text}")));
            mutants.extend(sync(|text| format!("or.b32 %nt_m, %nt_m, 1; {text}")));
            mutants.extend(sync(|text| format!("setp.eq.u32 %nt_p, 1, 2; @%nt_p {text}")));
            mutants.extend(sync(|text| text.replacen(opcode(text), "bar.warp.sync", 1)));
            mutants.extend(each_place(
                pair,
                false,
                "activemask.b32 %nt_m; redux",
                "mov.u32 %nt_m, %lanemask_ge; redux",
            ));
            // A target and a version that do not have them.
            if pair.woven.contains("redux") {
                mutants.extend(in_both(pair, "sm_80", "sm_75"));
                mutants.extend(in_both(pair, ".version 7.0", ".version 6.4"));
            }
            mutants
        },
    },
    Class {
        name: "a source that the instruction does not read, or is no such width",
        rules: &[Rule::V9],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for name in ["%rd3;", "%rd1;", "%rd4,", "%r7,", "%r5;", "%r3;", "lut;", "tile;"] {
                let behind = &name[name.len() - 1..];
                for other in ["%rd9", "%r9", "%p3", "%f1", "gather_param_0", "$L_loop"] {
                    mutants.extend(each_instruction(pair, |text| {
                        let source = format!(", {name}");
                        let there = text.contains(&source) && pair.woven.contains("gather_param_0");
                        there.then(|| text.replacen(&source, &format!(", {other}{behind}"), 1))
                    }));
                }
            }
            // The program declares another width, or the instruction is another.
            mutants.extend(in_both(
                pair,
                ".reg .b64 \t%rd<12>;",
                ".reg .b64 \t%rd<3>;\n\t.reg .b32 \t%rd3, %rd4;",
            ));
            mutants.extend(in_both(pair, "ld.f32 \t%f1, [%rd3+64];", "ld.f32 \t%f1, [%rd2+64];"));
            mutants.extend(in_both(
                pair,
                "cp.async.ca.shared.global [%r5+16], [%rd1], 16, %r7;",
                "mov.u32 %r7, %r5;",
            ));
            mutants.extend(in_both(pair, "\tst.global.u32 [lut+12]", "$L_x: st.global.u32 [lut+12]"));
            mutants
        },
    },
    // V10
    Class {
        name: "a source that is not there yet, or not always",
        rules: &[Rule::V10, Rule::V12],
        mutate: |pair| {
            let mut mutants = Vec::new();
            mutants.extend(in_both(pair, "add.s64 \t%rd3, %rd1", "@%p1 add.s64 \t%rd3, %rd1"));
            mutants.extend(each_instruction(pair, |text| {
                text.starts_with("@!%p1 bra $nt_L2").then(String::new)
            }));
            for text in [
                "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r7}, [%r2];",
                "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r6, %r5}, [%r2];",
                "@%p1 wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r3, %r7}, %rd1, %rd1, 1, 1, 1, 0, 0;",
            ] {
                mutants.extend(in_both(
                    pair,
                    "\tmov.u32 \t%r7, 8;",
                    &format!("\tmov.u32 \t%r7, 8;\n\t{text}"),
                ));
            }
            mutants
        },
    },
    // V16
    Class {
        name: "a pinned operand is another variable, another place or another instruction's",
        // What a span loads of such a variable itself is V6's.
        rules: &[Rule::V16, Rule::V6],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for (old, new) in [
                ("[nt_pin]", "[nt_pin+8]"),
                ("[nt_pin+8]", "[nt_pin]"),
                ("add.u64 %nt_g5, %nt_g5, 8", "add.u64 %nt_g5, %nt_g5, 4"),
                ("add.u64 %nt_g5, %nt_g5, 8;", ""),
            ] {
                // Not where a span loads it for itself.
                mutants.extend(each_place(pair, false, old, new));
            }
            for (old, new) in [
                ("+4]", "+8]"),
                ("%nt_g1", "%nt_g0"),
                ("%nt_g6", "%rd1"),
                ("%nt_g4+4", "%nt_g4"),
                ("%nt_g5", "[%nt_g5]"),
            ] {
                mutants.extend(each_place(pair, true, old, new));
            }
            // Without its span, or with an instruction or a label between.
            for mark in marks(&pair.woven)
                .into_iter()
                .filter(|mark| pair.woven[mark.inner.clone()].starts_with(".reg .b64 %nt_g"))
            {
                let mut woven = pair.woven.clone();
                woven.replace_range(mark.start..mark.end, "");
                mutants.push(Pair { original: pair.original.clone(), woven });
                for text in [" $more: ", " add.u32 %r1, %r1, 1; "] {
                    let mut woven = pair.woven.clone();
                    woven.insert_str(mark.end, text);
                    mutants.push(Pair { original: take_away(&woven), woven });
                }
            }
            mutants
        },
    },
    Class {
        name: "a use of a pinned variable is left as it was",
        rules: &[Rule::V16],
        mutate: |pair| {
            let edits = marks(&pair.woven).into_iter().filter(|mark| {
                mark.name.starts_with("edit ") && pair.woven[mark.inner.clone()].contains("%nt_g")
            });
            edits
                .map(|mark| {
                    let mut woven = pair.woven.clone();
                    woven.replace_range(mark.start..mark.end, &take_away(&pair.woven[mark.start..mark.end]));
                    Pair { original: pair.original.clone(), woven }
                })
                .collect()
        },
    },
    Class {
        name: "the pins are not declared as claimed",
        rules: &[Rule::V16],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for (old, new) in [
                ("nt_pin[2];", "nt_pin[3];"),
                ("nt_pin[2];", "nt_pin[1];"),
                ("nt_pin[2];", "nt_pin[2] = {0, 0};"),
                (".const .align 8 .b64", ".global .align 8 .b64"),
                (".const .align 8 .b64", ".const .b64"),
                ("nt_pin[2];", "nt_pin[2]; .const .b32 nt_z;"),
                ("nt_pin[2]", "nt_pim[2]"),
            ] {
                mutants.extend(each_place(pair, true, old, new));
            }
            mutants.extend(in_claims(
                pair,
                &[
                    ("pin.lut=0 pin.total=1", "pin.lut=1 pin.total=0"),
                    ("pin.lut=0 pin.total=1", "pin.lut=0 pin.total=2"),
                    ("pin.total=1", "pin.total=1 pin.scale=2"),
                    ("pin.total=1", "pin.total=1 pin.nobody=2"),
                    ("pin.total=1", ""),
                ],
            ));
            mutants.iter_mut().for_each(|mutant| mutant.woven = mutant.woven.replace(" */", "*/"));
            // A text and a reference to a texture are no variables.
            mutants.extend(in_both(pair, ".global .align 4 .b8 lut[256]", ".const .align 4 .b8 lut[256]"));
            mutants.extend(in_both(pair, ".global .align 4 .b8 lut[256]", ".global .texref lut"));
            mutants
        },
    },
];
