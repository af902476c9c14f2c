//! Mutants: accepted texts with one thing changed, each of which must be refused, by the rule that is there for it.
//!
//! The texts are those of `good/`, written by hand; no weaver is linked. A class says what is changed and how, and gives
//! every place in every text where that can be done. Each class must have mutants, each mutant must break one of the
//! class's rules, and every rule that `--explain` knows must have a class: so no rule is only words.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

use nt_verify::{Rule, check, check_pruned, explain};
use std::collections::BTreeSet;
use std::path::Path;

/// An original and a woven text.
#[derive(Clone)]
struct Pair {
    original: String,
    woven: String,
}

/// One way to break a text.
struct Class {
    name: &'static str,
    /// A mutant must break at least one of them.
    rules: &'static [Rule],
    mutate: fn(&Pair) -> Vec<Pair>,
}

fn accepted() -> Vec<(String, Pair)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good");
    let mut texts: Vec<(String, Pair)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let woven = std::fs::read_to_string(&path).unwrap();
            let original = take_away(&woven);
            (path.file_name().unwrap().to_string_lossy().into_owned(), Pair { original, woven })
        })
        .collect();
    texts.sort_by(|a, b| a.0.cmp(&b.0));
    texts
}

/// Spans out, edits back.
fn take_away(woven: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for mark in marks(woven) {
        out.push_str(&woven[at..mark.start]);
        let hex = mark.name.strip_prefix("edit ").unwrap_or("");
        (0..hex.len())
            .step_by(2)
            .for_each(|i| out.push(u8::from_str_radix(&hex[i..i + 2], 16).unwrap() as char));
        at = mark.end;
    }
    out + &woven[at..]
}

/// A span or edit of a text.
struct Mark<'w> {
    name: &'w str,
    start: usize,
    /// Of what stands between the marks.
    inner: std::ops::Range<usize>,
    end: usize,
}

fn marks(woven: &str) -> Vec<Mark<'_>> {
    let mut marks = Vec::new();
    let mut at = 0;
    while let Some(start) = woven[at..].find("/*nt:").map(|found| at + found) {
        let name = woven[start + 5..].split_once("{*/").unwrap().0;
        let from = start + 5 + name.len() + 3;
        let close = format!("/*}}nt:{}*/", name.split(' ').next().unwrap());
        let to = from + woven[from..].find(&close).unwrap();
        at = to + close.len();
        marks.push(Mark { name, start, inner: from..to, end: at });
    }
    marks
}

fn spans(woven: &str) -> Vec<Mark<'_>> {
    marks(woven).into_iter().filter(|mark| !mark.name.starts_with("edit")).collect()
}

/// The instructions of all spans: their ranges from the first byte to the `;`.
fn instructions(woven: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    for span in spans(woven) {
        let mut at = span.inner.start;
        while let Some(length) = woven[at..span.inner.end].find(';') {
            let end = at + length + 1;
            // Behind comments, braces and labels.
            let mut from = at;
            loop {
                let rest = &woven[from..end];
                from += rest.len() - rest.trim_start().len();
                let rest = &woven[from..end];
                let label = rest.split(':').next().unwrap();
                from += match rest {
                    _ if rest.starts_with("//") => rest.find('\n').unwrap(),
                    _ if rest.starts_with(['{', '}']) => 1,
                    _ if rest.starts_with('$') && rest.contains(':') && !label.contains([' ', ';']) => {
                        label.len() + 1
                    }
                    _ => break,
                };
            }
            if !woven[from..end].starts_with(".reg") {
                found.push(from..end);
            }
            at = end;
        }
    }
    found
}

/// Mutants by a change of one instruction of a span; `None` leaves it alone.
fn each_instruction(pair: &Pair, change: impl Fn(&str) -> Option<String>) -> Vec<Pair> {
    let change = |range: std::ops::Range<usize>| {
        let new = change(&pair.woven[range.clone()])?;
        let mut woven = pair.woven.clone();
        woven.replace_range(range, &new);
        Some(Pair { original: pair.original.clone(), woven })
    };
    instructions(&pair.woven).into_iter().filter_map(change).collect()
}

/// Mutants by one replacement at each place where `old` stands within a span, or within an edit.
fn each_place(pair: &Pair, in_edits: bool, old: &str, new: &str) -> Vec<Pair> {
    let all = marks(&pair.woven).into_iter().filter(|mark| mark.name.starts_with("edit") == in_edits);
    let places = all.flat_map(|mark| {
        let inner = &pair.woven[mark.inner.clone()];
        inner.match_indices(old).map(move |(at, _)| mark.inner.start + at).collect::<Vec<_>>()
    });
    places
        .map(|at| {
            let mut woven = pair.woven.clone();
            woven.replace_range(at..at + old.len(), new);
            Pair { original: pair.original.clone(), woven }
        })
        .collect()
}

/// Mutants with a statement more behind the first `{` of each span.
fn insert(pair: &Pair, statement: &str) -> Vec<Pair> {
    let open = |mark: Mark<'_>| pair.woven[mark.inner.clone()].find('{').map(|at| mark.inner.start + at + 1);
    spans(&pair.woven)
        .into_iter()
        .filter_map(open)
        .map(|at| {
            let mut woven = pair.woven.clone();
            woven.insert_str(at, &format!(" {statement} "));
            Pair { original: pair.original.clone(), woven }
        })
        .collect()
}

/// Moves the span that stands at `mark` to `to`, a place of the woven text outside of it.
fn moved(pair: &Pair, start: usize, end: usize, to: usize) -> Pair {
    let span = pair.woven[start..end].to_owned();
    let mut woven = pair.woven.clone();
    if to <= start {
        woven.replace_range(start..end, "");
        woven.insert_str(to, &span);
    } else {
        woven.insert_str(to, &span);
        woven.replace_range(start..end, "");
    }
    Pair { original: pair.original.clone(), woven }
}

/// The opcode of an instruction, its guard left out.
fn opcode(instruction: &str) -> &str {
    let bare =
        if instruction.starts_with('@') { instruction.split_once(' ').unwrap().1 } else { instruction };
    bare.split([' ', ';']).next().unwrap()
}

/// `name`, the first operand of an instruction if that is a register of the span that it writes.
fn written(instruction: &str) -> Option<&str> {
    let opcode = opcode(instruction);
    let rest = instruction.split_once(opcode)?.1;
    let name = rest.trim_start().split([',', ';', ' ']).next()?;
    (name.starts_with("%nt") && opcode != "bra" && !opcode.starts_with("st.")).then_some(name)
}

fn register_of_its_kernel(opcode: &str) -> &'static str {
    match opcode {
        _ if opcode.starts_with("setp") || opcode.ends_with(".pred") => "%p1",
        _ => "%r1",
    }
}

const CLASSES: &[Class] = &[
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
        rules: &[Rule::V1],
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
                "atom.global.add.u32 %r1, [%rd1], 1;",
                "red.global.add.u32 [%rd1], 1;",
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
                ("st.global", "red.global.add"),
                ("ld.param", "ld.global"),
                ("ld.param", "ld"),
                ("ld.param", "ld.const"),
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
        rules: &[Rule::V9, Rule::V11, Rule::V12],
        mutate: |pair| {
            // The first definition of each name in its span, where the name is read behind it.
            let mut mutants = Vec::new();
            for span in spans(&pair.woven) {
                let mut seen = BTreeSet::new();
                for range in
                    instructions(&pair.woven).into_iter().filter(|range| span.inner.contains(&range.start))
                {
                    let Some(name) = written(&pair.woven[range.clone()]).filter(|name| seen.insert(*name))
                    else {
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
                if read {
                    let more = |text: &str| {
                        let body =
                            text.find("{\n").or_else(|| text.find(") { .reg").map(|at| at + 2)).unwrap();
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
        rules: &[Rule::V11],
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
            mutants
        },
    },
    Class {
        name: "base and capacity exchanged",
        rules: &[Rule::V11],
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
        rules: &[Rule::V11],
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
        rules: &[Rule::V12],
        mutate: |pair| {
            let mut mutants = Vec::new();
            // Each entry span, to where the next span stands.
            let all = spans(&pair.woven);
            for two in
                all.windows(2).filter(|two| pair.woven[two[0].inner.clone()].trim_start().starts_with(".reg"))
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
    // V13
    Class {
        name: "the context parameter is not as claimed",
        rules: &[Rule::V13],
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
        rules: &[Rule::V13, Rule::V2],
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
            let name = ["scale", "spin", "a"].into_iter().find(|name| {
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

#[test]
fn every_mutant_is_refused() {
    let texts = accepted();
    let mut killed = 0;
    for class in CLASSES {
        let mut count = 0;
        for (name, pair) in &texts {
            assert!(check(&pair.original, &pair.woven).is_accepted(), "{name}");
            for mutant in (class.mutate)(pair) {
                count += 1;
                let report = check(&mutant.original, &mutant.woven);
                let caught =
                    report.violations().iter().any(|violation| class.rules.contains(&violation.rule));
                let told: Vec<_> =
                    report.violations().iter().map(|v| format!("{}: {}", v.rule, v.message)).collect();
                assert!(
                    caught,
                    "{name}: {}: {told:?}\n{}",
                    class.name,
                    difference(&pair.woven, &mutant.woven)
                );
            }
        }
        assert!(count > 0, "no text has a place for: {}", class.name);
        killed += count;
    }
    println!("{killed} mutants of {} classes", CLASSES.len());
}

/// V17 has texts of its own.
#[test]
fn every_dropped_item_that_is_named_is_missed() {
    let items = [
        ".global .b32 table[4];\n",
        ".func used(.param .b32 x) { .reg .b64 %d; mov.u64 %d, table; ret; }\n",
        ".const .u64 names[1] = {used};\n",
        ".entry wanted() { .reg .b64 %d; mov.u64 %d, names; ret; }\n",
    ];
    let original = format!(".version 8.0\n.target sm_90\n{}.entry other() {{ ret; }}\n", items.concat());
    for item in &items[..3] {
        let report = check_pruned(&original, &original.replace(item.trim_end(), ""));
        assert!(report.violations().iter().any(|violation| violation.rule == Rule::V17), "{item}");
    }
    assert!(check_pruned(&original, &original.replace(".entry other() { ret; }", "")).is_accepted());
}

#[test]
fn the_classes_are_the_rules_that_explain_themselves() {
    let mut covered: BTreeSet<Rule> = CLASSES.iter().flat_map(|class| class.rules).copied().collect();
    covered.insert(Rule::V17);
    assert!(covered.iter().eq(Rule::ALL.iter()), "{covered:?}");
    for rule in covered {
        assert!(explain(rule.name()).is_some());
    }
    let names: BTreeSet<_> = CLASSES.iter().map(|class| class.name).collect();
    assert_eq!(names.len(), CLASSES.len());
}

/// The lines of a mutant that are other than before.
fn difference(before: &str, after: &str) -> String {
    let old: BTreeSet<_> = before.lines().collect();
    after.lines().filter(|line| !old.contains(line)).collect::<Vec<_>>().join("\n")
}
