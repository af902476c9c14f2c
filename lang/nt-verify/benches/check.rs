//! How fast a large module is verified: it always is, so it should not be noticed. `cargo bench -p nt-verify`

#[path = "../tests/real/weaving.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod weaving;

use divan::{Bencher, counter::BytesCount};

fn main() {
    divan::main();
}

/// A woven text of many kernels, and its original.
#[divan::bench]
fn kernels(bencher: Bencher<'_, '_>) {
    let woven = include_str!("../tests/good/block_sched.ptx");
    let (head, kernel) = woven.split_at(woven.find(".visible").unwrap_or(0));
    let (mut text, mut original) = (head.to_owned(), head.to_owned());
    for number in 0..2000 {
        let mut rest = kernel.replace("scale", &format!("scale_{number}_"));
        for span in 0..3 {
            let (old, new) = (format!("nt:{span}"), format!("nt:{}", number * 3 + span));
            rest = rest
                .replace(&format!("/*{old}{{"), &format!("/*{new}{{"))
                .replace(&format!("/*}}{old}*"), &format!("/*}}{new}*"));
        }
        text.push_str(&rest);
        // Spans out; the one edit is an insertion.
        let mut left = rest.as_str();
        while let Some((before, mark)) = left.split_once("/*nt:") {
            original.push_str(before);
            let closed = mark.split_once("/*}nt:").and_then(|(_, behind)| behind.split_once("*/"));
            left = closed.map_or("", |(_, behind)| behind);
        }
        original.push_str(left);
    }
    assert!(nt_verify::check(&original, &text).is_accepted());
    bencher.counter(BytesCount::of_str(&text)).bench(|| nt_verify::check(&original, &text));
}

/// Real texts, with a counter at every access.
#[divan::bench]
fn counters(bencher: Bencher<'_, '_>) {
    real(bencher, weaving::CLAIM, 24, weaving::counter);
}

/// Real texts, with an event of a stream at every access: nearly all of the text is inserted.
#[divan::bench]
fn events(bencher: Bencher<'_, '_>) {
    real(bencher, weaving::STREAM, 40, weaving::event);
}

fn real(bencher: Bencher<'_, '_>, claim: &str, size: u32, span: fn(&weaving::Access<'_>) -> String) {
    let entry = ".reg .b32 %nt_n; { mov.u32 %nt_n, 0; }";
    let weave = |(_, text): (_, String)| {
        let (woven, _) = weaving::weave(&text, claim, size, entry, span);
        (text, woven)
    };
    let pairs: Vec<(String, String)> = weaving::texts().into_iter().map(weave).collect();
    let bytes: usize = pairs.iter().map(|(_, woven)| woven.len()).sum();
    bencher
        .counter(BytesCount::new(bytes))
        .bench(|| pairs.iter().all(|(original, woven)| nt_verify::check(original, woven).is_accepted()));
}
