//! Kernels and probes by chance. `make fuzz-differ` runs more of them: `FUZZ_SECONDS` says how long, `FUZZ_SEED` from where.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first thing that is wrong, and say what"
)]

use nt_differ::fuzz::{Trial, Verdict};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Trials of `cargo test`.
const TRIALS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

#[test]
fn probes_leave_kernels_alone_and_count_what_happens() {
    let first = number("FUZZ_SEED").unwrap_or(0);
    let until = number("FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut verdicts: BTreeMap<String, u64> = BTreeMap::new();
    let goes_on = |seed: u64| match until {
        Some(until) => Instant::now() < until,
        None => seed < first + TRIALS,
    };
    for seed in (first..).take_while(|&seed| goes_on(seed)) {
        let trial = Trial::new(seed);
        let verdict = match trial.run() {
            Verdict::Same { both: true } => "the same in both schedules".to_owned(),
            Verdict::Same { both: false } => "the same in the plain schedule".to_owned(),
            Verdict::Refused(slug) => format!("refused: {slug}"),
            Verdict::Wrong(why) => {
                let (small, small_why) = trial.shrink();
                panic!("{why}\nFUZZ_SEED={seed} makes this again. Cut smaller: {small_why}\n{small}");
            }
        };
        *verdicts.entry(verdict).or_default() += 1;
    }
    eprintln!("{verdicts:#?}");
    let refused: u64 =
        verdicts.iter().filter(|(verdict, _)| verdict.starts_with("refused")).map(|(_, n)| n).sum();
    let all: u64 = verdicts.values().sum();
    assert!(refused * 2 < all, "most trials are refused: {verdicts:#?}");
}
