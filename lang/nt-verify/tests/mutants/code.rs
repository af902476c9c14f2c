//! Classes of mutants that break what the code of spans does: V6 to V12.

use crate::text::{
    Class, Pair, each_instruction, each_place, insert, instructions, moved, opcode, register_of_its_kernel,
    spans, take_away, written,
};
use nt_verify::Rule;
use std::collections::BTreeSet;

pub(crate) const CLASSES: &[Class] = &[
    // V6
    Class {
        name: "an instruction that is not on the list",
        rules: &[Rule::V6],
        mutate: |pair| {
            let more = [
                "ret;",
                "exit;",
                "trap;",
                "membar.gl;",
                "fence.acq_rel.gpu;",
                "fence.proxy.async;",
                "call f;",
                "bra.uni $nt_L1;",
                "st.shared.u32 [%rd1], 1;",
                "st.local.u32 [%rd1], 1;",
                "st.u32 [%rd1], 1;",
                "st.volatile.global.u32 [%rd1], 1;",
                "ld.global.u32 %r1, [%rd1];",
                "ld.const.u32 %r1, [%rd1];",
                "ld.shared.u32 %r1, [%rd1];",
                "ld.param.v2.u64 {%rd1, %rd2}, [nt_ctx];",
                "div.u64 %rd1, %rd1, 3;",
                "rem.s64 %rd1, %rd1, 3;",
                "div.u16 %rs1, %rs1, 3;",
                "div.rn.f32 %f1, %f1, %f1;",
                "sqrt.rn.f32 %f1, %f1;",
                "add.cc.u32 %r1, %r1, 1;",
                "addc.u32 %r1, %r1, 1;",
                "madc.lo.u32 %r1, %r1, %r1, 1;",
                "atom.global.add.s32 %r1, [%rd1], 1;",
                "red.global.min.u32 [%rd1], 1;",
                "ld.const.s64 %rd1, [%rd1];",
                "mbarrier.arrive.b64 %rd1, [%rd1];",
                "cp.async.commit_group;",
                "griddepcontrol.wait;",
                "nanosleep.u32 100;",
                "prefetch.global.L2 [%rd1];",
                "frobnicate.x7;",
            ];
            more.iter().flat_map(|text| insert(pair, text)).collect()
        },
    },
    Class {
        name: "a stronger or other form of a store or load",
        rules: &[Rule::V6],
        mutate: |pair| {
            let forms = [
                ("st.global", "st"),
                ("st.global", "st.shared"),
                ("st.global", "st.volatile.global"),
                ("st.global", "st.release.sys.global"),
                ("st.global", "st.global.wt"),
                ("st.global", "red.global.inc"),
                ("ld.param", "ld.global"),
                ("ld.param", "ld"),
                ("ld.param", "ld.shared"),
                ("ld.param", "ld.param::func"),
                ("mad.lo.u32", "mad.lo.cc.u32"),
                ("add.u64", "add.cc.u64"),
                ("mul.lo.u32", "div.u64"),
                ("bra", "bra.uni"),
            ];
            forms
                .iter()
                .flat_map(|(old, new)| {
                    each_instruction(pair, |text| {
                        let op = opcode(text);
                        let there = op == *old || op.starts_with(&format!("{old}."));
                        there.then(|| text.replacen(old, new, 1))
                    })
                })
                .collect()
        },
    },
    // V7
    Class {
        name: "a destination is a register of the kernel",
        rules: &[Rule::V7],
        mutate: |pair| {
            each_instruction(pair, |text| {
                let name = written(text)?;
                Some(text.replacen(name, register_of_its_kernel(opcode(text)), 1))
            })
        },
    },
    // V8
    Class {
        name: "a wait for lanes that may not come",
        rules: &[Rule::V8],
        mutate: |pair| {
            let more = [
                "bar.sync 0;",
                "barrier.sync 0;",
                "bar.warp.sync 0xffffffff;",
                "barrier.cluster.arrive.sync;",
                "elect.sync _|%p1, 0xffffffff;",
                "vote.sync.ballot.b32 %r1, %p1, 0xffffffff;",
                "shfl.sync.idx.b32 %r1, %r1, 0, 31, 0xffffffff;",
                "wgmma.fence.sync.aligned;",
                "redux.sync.add.u32 %r1, %r1, 0xffffffff;",
                "match.any.sync.b32 %r1, %r1, -1;",
                "setmaxnreg.dec.sync.aligned.u32 40;",
            ];
            more.iter().flat_map(|text| insert(pair, text)).collect()
        },
    },
    // V9
    Class {
        name: "a definition is gone",
        rules: &[Rule::V6, Rule::V9, Rule::V11, Rule::V12],
        mutate: |pair| {
            // The first definition of each name in its span, where the name is read behind it.
            let mut mutants = Vec::new();
            for span in spans(&pair.woven) {
                let mut seen = BTreeSet::new();
                for range in
                    instructions(&pair.woven).into_iter().filter(|range| span.inner.contains(&range.start))
                {
                    // State has the value that it had before.
                    let declared = |name: &str| {
                        let at = span.inner.start + pair.woven[span.inner.clone()].find(name).unwrap();
                        pair.woven[..at].rsplit(['{', ';', '\n']).next().unwrap().contains(".reg")
                    };
                    // One that reads what it writes is none: `{%nt_lo, %nt_hi}` was written before.
                    let own = |name: &str| pair.woven[range.clone()].matches(name).count() > 1;
                    let name =
                        written(&pair.woven[range.clone()]).filter(|name| declared(name) && !own(name));
                    let Some(name) = name.filter(|name| seen.insert(*name)) else {
                        continue;
                    };
                    let read = |rest: &str| {
                        let ends = |at: usize| {
                            !rest[at..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                        };
                        rest.match_indices(name).any(|(at, _)| ends(at + name.len()))
                    };
                    if read(&pair.woven[range.end..span.inner.end]) {
                        let mut woven = pair.woven.clone();
                        woven.replace_range(range, "");
                        mutants.push(Pair { original: pair.original.clone(), woven });
                    }
                }
            }
            mutants
        },
    },
    Class {
        name: "a source is a register of the kernel",
        rules: &[Rule::V9, Rule::V11],
        mutate: |pair| {
            each_instruction(pair, |text| {
                let (before, source) = text.rsplit_once(", ")?;
                let plain = source.starts_with("%nt") && !source.contains(['}', ']']);
                plain.then(|| format!("{before}, %r2;"))
            })
        },
    },
    Class {
        name: "a field beyond the context, two at once, or half of another",
        rules: &[Rule::V9, Rule::V11],
        mutate: |pair| {
            let far = [
                ("ld.param.u64", "ld.const.u64"),
                ("[nt_ctx+", "[nt_ctx+4"),
                ("[nt_ctx+16]", "[nt_ctx+12]"),
                ("[nt_ctx+8]", "[nt_ctx+1000]"),
                ("[nt1_ctx]", "[nt1_ctx+-8]"),
                ("[nt_ctx+8]", "[scale_param_0]"),
            ];
            far.iter()
                .flat_map(|(old, new)| {
                    each_instruction(pair, |text| text.contains(old).then(|| text.replace(old, new)))
                })
                .collect()
        },
    },
    Class {
        name: "the kernel shadows a special register",
        rules: &[Rule::V9],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for name in [
                "%clock",
                "%clock64",
                "%smid",
                "%laneid",
                "%ctaid",
                "%tid",
                "%ntid",
                "%lanemask_lt",
                "%globaltimer",
            ] {
                // Its own declaration, in the kernel and so in both texts; used by a span of that kernel.
                let read = instructions(&pair.woven)
                    .into_iter()
                    .any(|range| pair.woven[range].contains(&format!(" {name}")));
                // Of a clone's the kernel's names are none.
                if read && !pair.woven.contains("/*nt:clone") {
                    let more = |text: &str| {
                        let entry = text.find(".entry").unwrap();
                        let body = ["{\n", "{ .reg"].iter().filter_map(|open| text[entry..].find(open)).min();
                        let body = entry + body.unwrap();
                        format!("{} .reg .b32 {name}; {}", &text[..=body], &text[body + 1..])
                    };
                    mutants.push(Pair { original: more(&pair.original), woven: more(&pair.woven) });
                }
            }
            mutants.retain(|mutant| take_away(&mutant.woven) == mutant.original);
            mutants
        },
    },
    // V11
    Class {
        name: "the comparison with the capacity is not heeded",
        rules: &[Rule::V11],
        mutate: |pair| {
            // The branch behind a comparison of 64 bits or with the field of the capacity, or the guard of a store.
            let mut mutants = each_instruction(pair, |text| {
                (opcode(text) == "bra" && text.contains("nt_q bra")).then(String::new)
            });
            mutants.extend(each_instruction(pair, |text| text.contains("$nt_done").then(String::new)));
            mutants.extend(each_instruction(pair, |text| {
                text.split_once(' ')
                    .filter(|(guard, rest)| guard.starts_with('@') && rest.starts_with("st."))
                    .map(|(_, rest)| rest.to_owned())
            }));
            mutants
        },
    },
    Class {
        name: "the comparison with the capacity is another one",
        rules: &[Rule::V11, Rule::V12],
        mutate: |pair| {
            let others = [
                ("setp.ge.u64", "setp.gt.u64"),
                ("setp.ge.u64", "setp.lt.u64"),
                ("setp.ge.u64", "setp.ge.s64"),
                ("setp.ge.u64", "setp.eq.u64"),
                ("setp.lt.u64", "setp.le.u64"),
                ("setp.lt.u64", "setp.ge.u64"),
                ("setp.lt.u64", "setp.ne.u64"),
                ("setp.lt.u32", "setp.lt.s32"),
                ("setp.lt.u32", "setp.le.u32"),
                ("setp.gt.and.u64", "setp.gt.or.u64"),
                ("setp.gt.and.u64", "setp.ge.and.u64"),
                ("setp.gt.and.u64", "setp.lt.and.u64"),
                ("and.pred", "or.pred"),
            ];
            let mut mutants: Vec<Pair> = others
                .iter()
                .flat_map(|(old, new)| {
                    each_instruction(pair, |text| text.contains(old).then(|| text.replace(old, new)))
                })
                .collect();
            for cap in ["%nt_c;", "%nt_cap;"] {
                mutants.extend(each_instruction(pair, |text| {
                    (opcode(text).starts_with("setp") && text.ends_with(cap))
                        .then(|| text.replace(cap, "1000000;"))
                }));
            }
            // The guard the other way round.
            mutants.extend(each_instruction(pair, |text| {
                text.starts_with("@%nt_q bra").then(|| text.replacen('@', "@!", 1))
            }));
            mutants.extend(each_instruction(pair, |text| {
                text.starts_with("@!%nt_p bra").then(|| text.replacen("@!", "@", 1))
            }));
            // At the entry of a kernel only a state depends on it.
            let entry = |woven: &str| woven[spans(woven)[0].inner.clone()].to_owned();
            let stores = entry(&pair.woven).contains("st.");
            mutants.retain(|mutant| stores || entry(&mutant.woven) == entry(&pair.woven));
            mutants
        },
    },
    Class {
        name: "base and capacity exchanged",
        rules: &[Rule::V9, Rule::V11, Rule::V15],
        mutate: |pair| {
            let fields =
                [("[nt_ctx+8]", "[nt_ctx+16]"), ("[nt_ctx]", "[nt_ctx+8]"), ("[nt1_ctx]", "[nt1_ctx+8]")];
            let mut mutants = Vec::new();
            for (base, cap) in fields {
                for (old, new) in [(base, cap), (cap, base)] {
                    mutants.extend(each_instruction(pair, |text| {
                        (opcode(text).ends_with("64") && text.contains(old)).then(|| text.replace(old, new))
                    }));
                }
            }
            mutants
        },
    },
    Class {
        name: "an address that is not base + index · stride",
        rules: &[Rule::V11],
        mutate: |pair| {
            let others = [
                (", 4;", ", 5;"),
                (", 4;", ", 3;"),
                (", 16, ", ", 32, "),
                (", 3;", ", 2;"),
                (", 12;", ", 9;"),
                (", 8, ", ", 4, "),
                (", 4, ", ", 8, "),
                ("%nt_i, 4,", "%nt_cap, 4,"),
                ("%nt_b, %nt_a", "%nt_b, %nt_b"),
                ("%nt_w, 16, %nt_b", "%nt_x, 16, %nt_b"),
                ("mov.b64 %nt1_i, 3", "mov.b64 %nt1_i, 2"),
            ];
            others
                .iter()
                .flat_map(|(old, new)| {
                    each_instruction(pair, |text| {
                        // Only what 64-bit addresses are made of, not the index.
                        let address = [
                            "shl.b64",
                            "mad.wide.u32 %nt_a",
                            "mad.lo.u64",
                            "mul.lo.u64 %nt_a",
                            "add.u64 %nt_a",
                            "mov.b64 %nt1_i",
                        ];
                        let there = address.iter().any(|op| text.starts_with(op)) && text.contains(old);
                        there.then(|| text.replacen(old, new, 1))
                    })
                })
                .filter(|mutant| !mutant.woven.contains("mul.lo.u64 %nt_w, %nt_w, %nt_b"))
                .collect()
        },
    },
    Class {
        name: "a store beyond its record, or askew in it",
        rules: &[Rule::V11, Rule::V15],
        mutate: |pair| {
            let stores = |change: fn(&str) -> String| {
                each_instruction(pair, |text| {
                    let (before, rest) = text.split_once('[').filter(|_| opcode(text).starts_with("st."))?;
                    let (address, rest) = rest.split_once(']')?;
                    Some(format!("{before}[{}]{rest}", change(address)))
                })
            };
            let mut mutants = stores(|address| match address.split_once('+') {
                Some((base, offset)) => format!("{base}+{}", offset.parse::<i64>().unwrap() + 32),
                None => format!("{address}+32"),
            });
            mutants.extend(stores(|address| match address.split_once('+') {
                Some((base, offset)) => format!("{base}+{}", offset.parse::<i64>().unwrap() - 1),
                None => format!("{address}+-1"),
            }));
            mutants.extend(stores(|_| "%rd1".to_owned()));
            mutants.extend(stores(|_| "nt_counter".to_owned()));
            mutants
        },
    },
    Class {
        name: "a claim of smaller records, or of the fields exchanged",
        rules: &[Rule::V11],
        mutate: |pair| {
            let smaller = [
                ("stride.block_sched=16", "stride.block_sched=8"),
                ("stride.block_sched=16", "columns.block_sched=8,4,4"),
                ("columns.t=8,4,4,1", "stride.t=17"),
                ("columns.t=8,4,4,1", "columns.t=8,4,1,4"),
                ("stride.m=32", "stride.m=16"),
                ("base.m@0:8 cap.m@8:8", "base.m@8:8 cap.m@0:8"),
            ];
            // In every declaration of the kernel at once.
            let all = smaller.iter().filter(|(old, _)| pair.woven.contains(old));
            all.map(|(old, new)| Pair {
                original: pair.original.clone(),
                woven: pair.woven.replace(old, new),
            })
            .collect()
        },
    },
    // V12
    Class {
        name: "an effect outside of the guard of its site",
        rules: &[Rule::V12],
        mutate: |pair| {
            let mut mutants = each_instruction(pair, |text| text.starts_with("@!%p1 bra").then(String::new));
            mutants.extend(each_instruction(pair, |text| {
                text.starts_with("@!%p1 bra").then(|| text.replacen("@!", "@", 1))
            }));
            mutants.extend(each_instruction(pair, |text| {
                text.strip_prefix("@!%p1 add").map(|rest| format!("add{rest}"))
            }));
            mutants.extend(each_instruction(pair, |text| {
                text.strip_prefix("@!%p1 add").map(|rest| format!("@%p1 add{rest}"))
            }));
            mutants
        },
    },
    Class {
        name: "state is assigned too late, or not always",
        rules: &[Rule::V12, Rule::V9],
        mutate: |pair| {
            let mut mutants = Vec::new();
            // Each entry span, to where the next span stands.
            let all = spans(&pair.woven);
            for two in all
                .windows(2)
                .filter(|two| pair.woven[two[0].inner.clone()].trim_start().starts_with(".reg .b32"))
            {
                mutants.push(moved(pair, two[0].start, two[0].end, two[1].start));
            }
            mutants.extend(each_place(pair, false, "mov.u32 %nt_start, %clock;", ""));
            mutants.extend(each_place(pair, false, "mov.b32 %nt_n, 0;", ""));
            mutants.extend(each_place(
                pair,
                false,
                "mov.u32 %nt1_u, 7;",
                ".reg .pred %nt1_z; setp.eq.u32 %nt1_z, 1, 2; @%nt1_z mov.u32 %nt1_u, 7;",
            ));
            mutants
        },
    },
];
