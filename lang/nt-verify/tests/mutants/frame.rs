//! Classes of mutants that break what is around the code of spans: V1 to V5, V13, V14.

use crate::text::{Class, Pair, each_instruction, each_place, insert, marks, moved, spans};
use nt_verify::Rule;

pub(crate) const CLASSES: &[Class] = &[
    // V1
    Class {
        name: "a byte of the kernel is another",
        rules: &[Rule::V1],
        mutate: |pair| {
            let inside = |at: usize| marks(&pair.woven).iter().any(|mark| mark.start <= at && at < mark.end);
            let places =
                (0..pair.woven.len()).step_by(7).filter(|&at| !inside(at) && pair.woven.is_char_boundary(at));
            places
                .map(|at| {
                    let mut woven = pair.woven.clone();
                    let new = if woven.as_bytes()[at] == b'x' { "y" } else { "x" };
                    woven.replace_range(at..at + 1, new);
                    Pair { original: pair.original.clone(), woven }
                })
                .collect()
        },
    },
    Class {
        name: "a mark is gone, or another",
        rules: &[Rule::V1, Rule::V15],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for (old, new) in
                [("{*/", "*/"), ("/*}nt:", "/*nt:"), ("/*}nt:", ""), ("/*nt:", "/*"), ("/*nt:1{", "/*nt:0{")]
            {
                for (at, _) in
                    pair.woven.match_indices(old).filter(|&(at, _)| !pair.woven[at..].starts_with("/*nt:ctx"))
                {
                    let mut woven = pair.woven.clone();
                    woven.replace_range(at..at + old.len(), new);
                    mutants.push(Pair { original: pair.original.clone(), woven });
                }
            }
            mutants
        },
    },
    // V2
    Class {
        name: "a span moves between guard and opcode",
        rules: &[Rule::V2],
        mutate: |pair| {
            let guarded = spans(&pair.woven).into_iter().filter_map(|mark| {
                let rest = &pair.woven[mark.end..];
                let at = mark.end + rest.len() - rest.trim_start().len();
                let guard = pair.woven[at..].split(' ').next().filter(|word| word.starts_with('@'))?;
                Some(moved(pair, mark.start, mark.end, at + guard.len() + 1))
            });
            guarded.collect()
        },
    },
    Class {
        name: "a span moves between a label and its pragma",
        rules: &[Rule::V2],
        mutate: |pair| {
            let pragmas = pair.woven.match_indices(".pragma").map(|(at, _)| at);
            let before = |at: usize| spans(&pair.woven).into_iter().find(|mark| mark.start > at);
            pragmas.filter_map(|at| before(at).map(|mark| moved(pair, mark.start, mark.end, at))).collect()
        },
    },
    Class {
        name: "a span moves into a comment, an instruction or out of its function",
        rules: &[Rule::V2],
        mutate: |pair| {
            let last = spans(&pair.woven).pop().unwrap();
            let places = [".globl", "the list ends", "%r2;", "%r1, 1;", ".target", ".entry", ".maxntid"];
            let places = places.iter().filter_map(|word| pair.woven.find(word));
            let outside =
                |at: &usize| marks(&pair.woven).iter().all(|mark| *at <= mark.start || mark.end <= *at);
            places.filter(outside).map(|at| moved(pair, last.start, last.end, at)).collect()
        },
    },
    // V3
    Class {
        name: "a span is left open, or closes what it did not open",
        rules: &[Rule::V3],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for mark in spans(&pair.woven).into_iter().filter(|mark| !mark.inner.is_empty()) {
                for (more, front) in [
                    ("}", false),
                    ("{", false),
                    ("//", false),
                    ("/*", false),
                    ("\"", false),
                    ("}", true),
                    ("mov.u32", false),
                    ("@%p1", false),
                    ("*/", true),
                ] {
                    let mut woven = pair.woven.clone();
                    woven.insert_str(if front { mark.inner.start } else { mark.inner.end }, more);
                    mutants.push(Pair { original: pair.original.clone(), woven });
                }
            }
            mutants
        },
    },
    Class {
        name: "a directive that is not `.reg`",
        rules: &[Rule::V3],
        mutate: |pair| {
            let directives = [
                ".pragma \"nounroll\";",
                ".shared .b32 %nt_z;",
                ".loc 1 1 1\n",
                ".local .b8 %nt_z[4];",
                ".param .b32 %nt_z;",
                ".branchtargets $nt_L1;",
            ];
            directives.iter().flat_map(|text| insert(pair, text)).collect()
        },
    },
    // V4
    Class {
        name: "a name without the prefix",
        rules: &[Rule::V4],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for kind in [".reg .b32 %", ".reg .b64 %", ".reg .pred %"] {
                for (new, old) in [("x", "nt_"), ("nx_", "nt_"), ("x", "nt1_")] {
                    mutants.extend(each_place(pair, false, &format!("{kind}{old}"), &format!("{kind}{new}")));
                }
            }
            mutants
        },
    },
    Class {
        name: "a name twice in a scope",
        rules: &[Rule::V4],
        mutate: |pair| {
            let prefix = if pair.woven.contains("nt1_ctx") { "nt1_" } else { "nt_" };
            insert(pair, &format!(".reg .b32 %{prefix}z; .reg .b64 %{prefix}z;"))
        },
    },
    Class {
        name: "the kernel uses the prefix",
        rules: &[Rule::V4],
        mutate: |pair| {
            let prefix = if pair.woven.contains("nt1_ctx") { "nt1_" } else { "nt_" };
            let more = format!(".global .b32 {prefix}z;\n");
            vec![Pair {
                original: format!("{}{more}", pair.original),
                woven: format!("{}{more}", pair.woven),
            }]
        },
    },
    // V5
    Class {
        name: "a loop",
        rules: &[Rule::V5],
        mutate: |pair| {
            let prefix = if pair.woven.contains("nt1_ctx") { "nt1_" } else { "nt_" };
            insert(pair, &format!("${prefix}B: bra ${prefix}B;"))
        },
    },
    Class {
        name: "a branch to a label of the kernel, or of nobody",
        rules: &[Rule::V5],
        mutate: |pair| {
            let targets = ["$L", "$nt_nowhere"];
            targets
                .iter()
                .flat_map(|target| {
                    each_instruction(pair, |text| {
                        let to = text.split_once("bra ")?.1;
                        Some(text.replace(to, &format!("{target};")))
                    })
                })
                .collect()
        },
    },
    // V13
    Class {
        name: "the context parameter or the pins are not as claimed",
        rules: &[Rule::V13, Rule::V15, Rule::V16],
        mutate: |pair| {
            let changes = [
                ("_ctx[", "_ctx[1"),
                ("_ctx[", "_ctz["),
                (".align 8", ".align 16"),
                (".b8", ".u8"),
                ("/*nt:ctx", "/*nt:cty"),
                (".param", ".param .u32 nt_z, .param"),
                ("@8:8", "@12:8"),
                ("prefix=nt", "prefix=xt"),
                (" cap.", " cup."),
                ("stride.", "strides."),
                ("columns.t=8", "columns.t=3"),
                ("zero@0:8", "zero@0:8 zero@0:8"),
                (".param .align 8 .b8", ".param .u64"),
            ];
            changes.iter().flat_map(|(old, new)| each_place(pair, true, old, new)).collect()
        },
    },
    Class {
        name: "a declaration or definition of the kernel lacks the parameter",
        rules: &[Rule::V13, Rule::V2, Rule::V15, Rule::V16],
        mutate: |pair| {
            let all = marks(&pair.woven).into_iter().filter(|mark| mark.name == "edit ");
            all.map(|mark| {
                let mut woven = pair.woven.clone();
                woven.replace_range(mark.start..mark.end, "");
                Pair { original: pair.original.clone(), woven }
            })
            .collect()
        },
    },
    Class {
        name: "the kernel's symbol is an operand",
        rules: &[Rule::V13],
        mutate: |pair| {
            let name = [
                "scale", "spin", "a", "gather", "use", "walk", "turn", "k", "chase", "permute", "calls",
                "same", "one", "sparse",
            ]
            .into_iter()
            .find(|name| {
                [".entry ", ".visible .entry "].iter().any(|word| {
                    pair.original.contains(&format!("{word}{name}("))
                        || pair.original.contains(&format!("{word}{name}\n"))
                })
            });
            let more = format!("\n.global .u64 table[1] = {{ {} }};\n", name.unwrap());
            vec![Pair {
                original: format!("{}{more}", pair.original),
                woven: format!("{}{more}", pair.woven),
            }]
        },
    },
    // V14
    Class {
        name: "the version is lowered, the target touched",
        rules: &[Rule::V14],
        mutate: |pair| {
            let mut mutants = each_place(pair, true, ".version 8.0", ".version 6.5");
            mutants.extend(each_place(pair, true, ".version 8.0", ".version 8.x"));
            mutants.extend(each_place(pair, true, ".version 8.0", "8.0"));
            for (old, hex) in [
                ("sm_90\n", "736d5f39300a"),
                ("sm_80\n", "736d5f38300a"),
                (".address_size 64", "2e616464726573735f73697a65203634"),
            ] {
                if let Some(at) = pair.woven.find(old) {
                    let mut woven = pair.woven.clone();
                    woven.replace_range(
                        at..at + old.len(),
                        &format!("/*nt:edit {hex}{{*/sm_75\n/*}}nt:edit*/"),
                    );
                    mutants.push(Pair { original: pair.original.clone(), woven });
                }
            }
            mutants
        },
    },
];
