//! Classes of mutants that break clones of functions and their calls: V15.

use crate::text::{self, Class, Pair, all_marks, each_instruction, each_place, marks, opcode, take_away};
use nt_verify::Rule;

fn has_clones(pair: &Pair) -> bool {
    pair.woven.contains("/*nt:clone")
}

/// Is it the text of one kernel's clones?
fn is_of_one(pair: &Pair) -> bool {
    pair.woven.contains("/*nt:clone leaf calls{*/")
}

/// One replacement at each place of the spans, or of the edits, for each of the changes.
fn changes(pair: &Pair, in_edits: bool, changes: &[(&str, &str)]) -> Vec<Pair> {
    text::changes(pair, is_of_one(pair), in_edits, changes)
}

/// The text with a range replaced, and the original as it is.
fn replaced(pair: &Pair, range: std::ops::Range<usize>, new: &str) -> Pair {
    let mut woven = pair.woven.clone();
    woven.replace_range(range, new);
    Pair { original: pair.original.clone(), woven }
}

pub(crate) const CLASSES: &[Class] = &[
    Class {
        name: "a byte of a clone is another than its function's",
        rules: &[Rule::V15],
        mutate: |pair| {
            let inner = all_marks(&pair.woven);
            let clones = marks(&pair.woven).into_iter().filter(|mark| mark.name.starts_with("clone"));
            let places = clones.flat_map(|mark| mark.inner).filter(|&at| {
                let byte = pair.woven.as_bytes()[at];
                byte.is_ascii_graphic() && inner.iter().all(|mark| at < mark.start || mark.end <= at)
            });
            places.map(|at| replaced(pair, at..at + 1, "~")).collect()
        },
    },
    Class {
        name: "a clone is gone, twice, or stands elsewhere",
        rules: &[Rule::V1, Rule::V15],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for mark in marks(&pair.woven).into_iter().filter(|mark| mark.name.starts_with("clone")) {
                let whole = pair.woven[mark.start..mark.end].to_owned();
                mutants.push(replaced(pair, mark.start..mark.end, ""));
                mutants.push(replaced(pair, mark.end..mark.end, &whole));
                let without = replaced(pair, mark.start..mark.end, "");
                let body = without.woven.find("setp.").unwrap();
                mutants.push(replaced(&without, body..body, &whole));
                mutants.push(replaced(pair, mark.start..mark.start + "/*nt:clone ".len(), "/*nt:clone x"));
                let mut named = pair.clone();
                named.woven.insert(mark.inner.start - "{*/".len(), 'x');
                mutants.push(named);
            }
            mutants
        },
    },
    Class {
        name: "a word that a clone gets is another",
        rules: &[Rule::V9, Rule::V15],
        mutate: |pair| {
            let give = |change: fn(&str) -> Option<String>| {
                each_instruction(pair, |text| {
                    opcode(text).starts_with("st.param").then(|| change(text)).flatten()
                })
            };
            let mut mutants = give(|_| Some(String::new()));
            mutants.extend(give(|text| Some(format!("{text} {text}"))));
            mutants.extend(give(|text| Some(format!("bra $nt_G; $nt_G: {text}"))));
            mutants.extend(give(|text| {
                let (before, _) = text.rsplit_once(", ")?;
                Some(format!("{before}, 0;"))
            }));
            mutants.extend(give(|text| Some(text.replacen(']', "+4]", 1).replacen("+8+4", "+12", 1))));
            mutants.extend(changes(
                pair,
                false,
                &[
                    ("nt_arg1[32]", "nt_arg1[24]"),
                    ("nt_arg1[32]", "nt_arg1[40]"),
                    ("nt_arg4[32]", "nt_arg3[32]"),
                    ("[nt_ctx+24]; st.param.b64", "[nt_ctx+8]; st.param.b64"),
                    ("%nt_l, [nt_ctx+16]; st", "%nt_l, [nt_ctx+20]; st"),
                    ("[nt_arg5], %nt_s_n", "[nt_arg5], %nt_ctx"),
                    (".param .align 8 .b8 nt_arg5[8]; ", ""),
                ],
            ));
            mutants
        },
    },
    Class {
        name: "a call of a clone is redirected to another, or lacks the argument",
        rules: &[Rule::V1, Rule::V15],
        mutate: |pair| {
            let mut mutants = changes(
                pair,
                true,
                &[
                    (", nt_arg1", ", nt_arg4"),
                    (", nt_arg1", ", param0"),
                    (", nt_arg1", "nt_arg1"),
                    (", nt_arg4", ""),
                    (", (nt_arg5)", "(nt_arg5)"),
                    (", (nt_arg5)", ", nt_arg5"),
                    ("step__nt", "leaf__nt"),
                    ("step__nt", "step"),
                    ("leaf__nt", "step__nt"),
                    ("leaf__nt", "leaf_nt"),
                    ("__calls", "__call"),
                ],
            );
            // One of the two edits of a call, or of a clone's head, is taken back.
            for mark in all_marks(&pair.woven) {
                let text = &pair.woven[mark.inner.clone()];
                if has_clones(pair)
                    && mark.name.starts_with("edit")
                    && (text.contains("__nt") || text.contains("nt_arg"))
                {
                    let whole = take_away(&pair.woven[mark.start..mark.end]);
                    mutants.push(replaced(pair, mark.start..mark.end, &whole));
                }
            }
            mutants
        },
    },
    Class {
        name: "a clone is called that is for another kernel",
        rules: &[Rule::V15],
        mutate: |pair| {
            if !pair.woven.contains("/*nt:clone down two{*/") {
                return Vec::new();
            }
            // The clones are alike, so that nothing but the kernel tells them apart.
            let alike = pair.woven.replace("stride.@=16", "stride.@=8").replace("%nt_a, 16,", "%nt_a, 8,");
            let pair =
                Pair { original: pair.original.clone(), woven: alike.replace("[%nt_b+8], 1", "[%nt_b], 1") };
            let mut mutants = each_place(&pair, true, "__one", "__two");
            mutants.extend(each_place(&pair, true, "__two", "__one"));
            mutants.extend(each_place(&pair, true, "__two", "__three"));
            for (here, there) in [("one", "two"), ("two", "one"), ("one", "three")] {
                let (old, new) =
                    (format!("/*nt:clone down {here}{{*/"), format!("/*nt:clone down {there}{{*/"));
                assert_eq!(pair.woven.matches(&old).count(), 2);
                mutants.push(Pair { original: pair.original.clone(), woven: pair.woven.replace(&old, &new) });
                mutants.push(Pair {
                    original: pair.original.clone(),
                    woven: pair.woven.replacen(&old, &new, 1),
                });
            }
            mutants
        },
    },
    Class {
        name: "the claim of a clone is not what its callers give",
        rules: &[Rule::V15],
        mutate: |pair| {
            let claims = [
                ("base.@@0:8 cap.@@8:8 stride.@=8", "cap.@@0:8 base.@@8:8 stride.@=8"),
                ("cap.@@8:8 stride.@=8 state", "cap.@@8:8 stride.@=16 state"),
                ("state.n@16:4", "state.m@16:4"),
                ("state.n@16:4 launch@20:4", "launch@16:4 state.n@20:4"),
                ("zero@24:8 base", "launch@24:8 base"),
                ("base.@@0:8 cap.@@8:8 stride.@=8", "base.m@0:8 cap.m@8:8 stride.m=8"),
                ("prefix=nt_ state.n@0:8", "prefix=nt_ state.k@0:8"),
                ("prefix=nt_ state.n@0:8", "prefix=nt_ state.n@0:4"),
                ("prefix=nt_ state.n@0:8", "prefix=nt1_ state.n@0:8"),
                ("prefix=nt_ state.n@0:8", "prefix=nt_ state.n@0:8 pin.seen=0"),
            ];
            let there = claims.iter().filter(|_| is_of_one(pair));
            there
                .map(|(old, new)| {
                    assert!(pair.woven.contains(old), "{old}");
                    Pair { original: pair.original.clone(), woven: pair.woven.replace(old, new) }
                })
                .collect()
        },
    },
];
