//! Real texts, with spans at every access: what a careful probe reads and counts there is not refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod weaving;

use nt_verify::check;
use std::process::Command;
use weaving::{Access, CLAIM, STREAM, counter, event, texts, weave};

fn accepted(name: &str, entry: &str, span: impl Fn(&Access<'_>) -> String) {
    accepted_with(name, CLAIM, 24, entry, span);
}

fn accepted_with(name: &str, claim: &str, size: u32, entry: &str, span: impl Fn(&Access<'_>) -> String) {
    let mut sites = 0;
    for (path, text) in texts() {
        let (woven, count) = weave(&text, claim, size, entry, &span);
        let report = check(&text, &woven);
        let told: Vec<_> =
            report.violations().iter().take(5).map(|v| (v.span.of(&woven), &v.message)).collect();
        assert!(
            report.is_accepted(),
            "{name}: {}: {count} spans, {} refused: {told:?}",
            path.display(),
            report.violations().len()
        );
        sites += count;
    }
    assert!(sites > 1000, "{sites}");
}

#[test]
fn the_address_of_every_access_is_read() {
    accepted("address", "", |access| {
        let Access { base, bits, .. } = access;
        format!("{{ .reg .b{bits} %nt_a; mov.b{bits} %nt_a, {base}; }}")
    });
}

#[test]
fn the_address_of_every_access_is_read_where_it_happens() {
    accepted("guarded address", "", |access| {
        let Access { base, bits, number, .. } = access;
        let read = format!("mov.b{bits} %nt_a, {base};");
        match access.guard {
            None => format!("{{ .reg .b{bits} %nt_a; {read} }}"),
            Some(guard) => {
                let skip = guard.strip_prefix('!').map_or(format!("!{guard}"), str::to_owned);
                format!("{{ .reg .b{bits} %nt_a; @{skip} bra $nt_L{number}; {read} $nt_L{number}: }}")
            }
        }
    });
}

#[test]
fn every_access_to_global_memory_is_counted() {
    accepted("count", ".reg .b32 %nt_n; { mov.u32 %nt_n, 0; }", counter);
}

#[test]
fn every_access_is_an_event_of_a_stream() {
    accepted_with("event", STREAM, 40, ".reg .b32 %nt_n; { mov.u32 %nt_n, 0; }", event);
}

/// What is accepted must assemble too, and in silence: of each compiler the text with most kinds of accesses.
#[test]
fn counted_texts_assemble() {
    let entry = ".reg .b32 %nt_n; { mov.u32 %nt_n, 0; }";
    for (path, text) in texts() {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !["features.sm_90", "matmul.sm_90a"].contains(&name.as_str()) {
            continue;
        }
        let woven = [weave(&text, CLAIM, 24, entry, counter).0, weave(&text, STREAM, 40, entry, event).0];
        let folder = std::env::temp_dir().join(format!("nt-verify-real-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let assemble = |text: &str| {
            let (input, output) = (folder.join("in.ptx"), folder.join("out.cubin"));
            std::fs::write(&input, text).unwrap();
            let arch = name.rsplit('.').next().unwrap();
            Command::new("ptxas").arg(format!("-arch={arch}")).arg(&input).arg("-o").arg(&output).output()
        };
        let Ok(before) = assemble(&text) else {
            return println!("skipped: no ptxas on PATH, nothing was assembled");
        };
        for woven in woven {
            let after = assemble(&woven).unwrap();
            let told = String::from_utf8_lossy(&after.stderr).into_owned();
            assert!(before.status.success() && after.status.success(), "{name}: {told}");
            assert_eq!(told, String::from_utf8_lossy(&before.stderr), "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
