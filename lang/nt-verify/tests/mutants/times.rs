//! Classes of mutants that break when something is read or done: asynchronous results, spans after instructions.

use crate::text::{self, Class, Pair, each_place, marks, spans, take_away};
use nt_verify::Rule;

/// The same change in both texts, at each place outside of spans and edits where the original has it.
fn each_in_both(pair: &Pair, old: &str, new: &str) -> Vec<Pair> {
    let all = marks(&pair.woven);
    let places = pair.woven.match_indices(old).map(|(at, _)| at);
    places
        .filter(|&at| all.iter().all(|mark| at < mark.start || mark.end <= at))
        .map(|at| {
            let mut woven = pair.woven.clone();
            woven.replace_range(at..at + old.len(), new);
            Pair { original: take_away(&woven), woven }
        })
        .collect()
}

fn is_after(pair: &Pair) -> bool {
    pair.woven.contains(".entry chase(")
}

/// One replacement at each place of the spans of the text with spans after instructions.
fn changes(pair: &Pair, changes: &[(&str, &str)]) -> Vec<Pair> {
    text::changes(pair, is_after(pair), false, changes)
}

pub(crate) const CLASSES: &[Class] = &[
    // V10
    Class {
        name: "asynchronous results are not waited for",
        rules: &[Rule::V10],
        mutate: |pair| {
            let wait = "wgmma.wait_group.sync.aligned 0;";
            let mut mutants = Vec::new();
            for new in [
                "",
                "wgmma.wait_group.sync.aligned 1;",
                "@%p1 wgmma.wait_group.sync.aligned 0;",
                "bar.sync 0;",
            ] {
                mutants.extend(each_in_both(pair, wait, new));
            }
            // The last way round is over when its group is; on the way past the wait it is not.
            let first = each_in_both(pair, wait, &format!("@%p1 bra $L_past; {wait} $L_past:"));
            mutants.extend(first);
            // What no group holds is waited for by nothing. In the loop, a later group takes it in.
            mutants.extend(each_in_both(pair, "wgmma.commit_group.sync.aligned;", "").into_iter().take(1));
            mutants.extend(
                each_in_both(
                    pair,
                    "wgmma.commit_group.sync.aligned;",
                    "@%p1 wgmma.commit_group.sync.aligned;",
                )
                .into_iter()
                .take(1),
            );
            mutants
        },
    },
    Class {
        name: "a span after an instruction stands elsewhere",
        rules: &[Rule::V2, Rule::V9, Rule::V10, Rule::V12],
        mutate: |pair| {
            let mut mutants = Vec::new();
            for mark in spans(&pair.woven).into_iter().filter(|mark| mark.name.ends_with(" after")) {
                // Behind a call, before what is unguarded too, nothing but a state is counted.
                if mark.name != "11 after" {
                    let mut woven = pair.woven.clone();
                    let at = mark.start + "/*nt:".len() + mark.name.len() - " after".len();
                    woven.replace_range(at..at + " after".len(), "");
                    mutants.push(Pair { original: pair.original.clone(), woven });
                }
                for between in
                    [" $L_between: ", " .loc 1 1 1\n", " { } ", " bra $L_x; ", " .reg .b32 %between; "]
                {
                    let mut woven = pair.woven.clone();
                    woven.insert_str(mark.start, between);
                    mutants.push(Pair { original: take_away(&woven), woven });
                }
                let mut woven = pair.woven.clone();
                woven.insert_str(mark.inner.start, ".reg .b64 %nt_z9; ");
                mutants.push(Pair { original: pair.original.clone(), woven });
            }
            mutants
        },
    },
    Class {
        name: "what an instruction wrote or had is read outside of its guard, or never saved",
        rules: &[Rule::V9, Rule::V10],
        mutate: |pair| {
            changes(
                pair,
                &[
                    ("@!%p1 bra $nt_L5;", ""),
                    ("@!%p1 bra $nt_L5;", "@%p1 bra $nt_L5;"),
                    ("@%p1 mov.b64 %nt_v4, %rd2;", ""),
                    ("@%p1 mov.b64 %nt_v4, %rd2;", "mov.b64 %nt_v4, %rd2;"),
                    ("@%p1 mov.b64 %nt_v4, %rd2;", "@!%p1 mov.b64 %nt_v4, %rd2;"),
                    ("mov.b64 %nt_v1, %rd1;", ""),
                    ("mov.u32 %nt_c1, %clock;", ""),
                    ("mov.u32 %nt_c1, %clock;", "@%nt_q9 mov.u32 %nt_c1, %clock;"),
                    ("mov.pred %nt_g6, %p2;", ""),
                    ("%nt_x, %r3, %r8, %p3", "%nt_x, %r3, %r4, %p3"),
                    ("%nt_x, %r3, %r8, %p3", "%nt_x, %r3, %r8, %p2"),
                    ("[%nt_z], %nt_v1", "[%nt_z], %nt_v4"),
                    ("[%nt_z+8], %rd1", "[%nt_z+8], %rd2"),
                ],
            )
        },
    },
    // V12
    Class {
        name: "an effect after an instruction that was not executed",
        rules: &[Rule::V12],
        mutate: |pair| {
            changes(
                pair,
                &[
                    ("@%p1 add.u32 %nt_s_n", "add.u32 %nt_s_n"),
                    ("@%p1 add.u32 %nt_s_n", "@!%p1 add.u32 %nt_s_n"),
                    ("@!%nt_g6 add", "@%nt_g6 add"),
                    ("@!%nt_g6 add", "@!%p2 add"),
                    ("@!%nt_g6 add", "add"),
                    ("@%nt_h6 add", "@!%nt_h6 add"),
                    ("not.pred %nt_h6, %p2;", "mov.pred %nt_h6, %p2;"),
                    ("mov.pred %nt_g6, %p2;", "not.pred %nt_g6, %p2;"),
                    ("mov.pred %nt_g6, %p2;", "setp.eq.u32 %nt_g6, %r8, %r1;"),
                ],
            )
        },
    },
    Class {
        name: "a span for all lanes does not say so, or stands before no guard",
        rules: &[Rule::V12],
        mutate: |pair| {
            let reaching = spans(&pair.woven).into_iter().filter(|mark| mark.name.ends_with(" reach"));
            let mut mutants = Vec::new();
            for mark in reaching {
                let at = mark.start + "/*nt:".len() + mark.name.len() - " reach".len();
                // Before a branch it need not say so.
                if !pair.woven[mark.end..].trim_start().starts_with("@%p2 bra") {
                    let mut woven = pair.woven.clone();
                    woven.replace_range(at..at + " reach".len(), "");
                    mutants.push(Pair { original: pair.original.clone(), woven });
                }
                for between in [" $L_between: ", " mov.u32 %r8, 1; "] {
                    let mut woven = pair.woven.clone();
                    woven.insert_str(mark.end, between);
                    mutants.push(Pair { original: take_away(&woven), woven });
                }
            }
            mutants
        },
    },
    Class {
        name: "a span for all lanes reads what only those have whose guard holds",
        rules: &[Rule::V9, Rule::V10],
        mutate: |pair| {
            let changes = [
                ("@%p1 mov.b64 %nt_a, %rd4;", "mov.b64 %nt_a, %rd4;"),
                ("@%p1 mov.b64 %nt_a, %rd4;", "@!%p1 mov.b64 %nt_a, %rd4;"),
                ("@!%p1 mov.b64 %nt_a, 0;", ""),
                ("@%p1 mov.b64 %nt_a, %rd4;", ""),
                ("@%p1 ld.global.u32 %nt_o, [%rd3];", "ld.global.u32 %nt_o, [%rd3];"),
                ("@%p1 ld.global.u32 %nt_o, [%rd3];", "@!%p1 ld.global.u32 %nt_o, [%rd3];"),
            ];
            let there = changes.iter().filter(|_| pair.woven.contains(".entry sparse("));
            there.flat_map(|(old, new)| each_place(pair, false, old, new)).collect()
        },
    },
];
