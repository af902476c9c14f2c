//! Mutants: accepted texts with one thing changed, each of which must be refused, by the rule that is there for it.
//!
//! The texts are those of `good/`, written by hand, and one that was woven; no weaver is linked. A class says what is changed and how, and gives
//! every place in every text where that can be done. Each class must have mutants, each mutant must break one of the
//! class's rules, and every rule that `--explain` knows must have a class: so no rule is only words.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod clones;
mod code;
mod counters;
mod counts;
mod frame;
mod streams;
mod text;
mod times;

use nt_verify::{Rule, check, check_pruned, explain};
use std::collections::BTreeSet;
use text::{Class, accepted};

fn classes() -> impl Iterator<Item = &'static Class> {
    frame::CLASSES
        .iter()
        .chain(code::CLASSES)
        .chain(counters::CLASSES)
        .chain(streams::CLASSES)
        .chain(counts::CLASSES)
        .chain(times::CLASSES)
        .chain(clones::CLASSES)
}

#[test]
fn every_mutant_is_refused() {
    let texts = accepted();
    let mut killed = 0;
    let mut alive = String::new();
    for class in classes() {
        let mut count = 0;
        for (name, pair) in &texts {
            assert!(check(&pair.original, &pair.woven).is_accepted(), "{name}");
            let mutants = (class.mutate)(pair);
            for mutant in mutants.into_iter().filter(|mutant| mutant.woven != pair.woven) {
                count += 1;
                let report = check(&mutant.original, &mutant.woven);
                let caught =
                    report.violations().iter().any(|violation| class.rules.contains(&violation.rule));
                if !caught {
                    let told: Vec<_> =
                        report.violations().iter().map(|v| format!("{}: {}", v.rule, v.message)).collect();
                    let difference = difference(&pair.woven, &mutant.woven)
                        + "\n<<"
                        + &difference(&mutant.woven, &pair.woven);
                    alive += &format!("{name}: {}: {told:?}\n{difference}\n", class.name);
                }
            }
        }
        assert!(count > 0, "no text has a place for: {}", class.name);
        killed += count;
    }
    assert!(alive.is_empty(), "{alive}");
    println!("{killed} mutants of {} classes", classes().count());
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
    let mut covered: BTreeSet<Rule> = classes().flat_map(|class| class.rules).copied().collect();
    covered.insert(Rule::V17);
    assert!(covered.iter().eq(Rule::ALL.iter()), "{covered:?}");
    for rule in covered {
        assert!(explain(rule.name()).is_some());
    }
    let names: BTreeSet<_> = classes().map(|class| class.name).collect();
    assert_eq!(names.len(), classes().count());
}

/// The lines of a mutant that are other than before.
fn difference(before: &str, after: &str) -> String {
    let old: BTreeSet<_> = before.lines().collect();
    after.lines().filter(|line| !old.contains(line)).collect::<Vec<_>>().join("\n")
}
