//! The kept inputs of each law, which include all that was ever wrong.

#![allow(clippy::panic, reason = "a missing folder ends the run")]

use std::path::Path;

#[test]
fn laws_hold_for_all_that_was_kept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fuzz");
    for (target, law) in nt_fuzz::TARGETS {
        let folder = root.join(target);
        let files =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut count = 0;
        for file in files {
            let path = file.unwrap_or_else(|error| panic!("{error}")).path();
            let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            if std::panic::catch_unwind(|| law(&bytes)).is_err() {
                panic!("{}: the law is broken", path.display());
            }
            count += 1;
        }
        assert!(count >= 10, "{target}: {count} inputs");
    }
}

#[test]
fn targets_are_named_and_unknown_ones_refused() {
    assert!(nt_fuzz::run("wire", b"").is_ok());
    assert!(nt_fuzz::run("wier", b"").is_err_and(|why| why.contains("there are ptx, weave")));
}
