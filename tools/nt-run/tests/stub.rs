//! End to end without a GPU: nt-run, the hook, and the driver that runs nothing but counts what is launched.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Done, Place, compiled, launched, testdata, traces};
use nt_trace::ntt::{Event, Trace};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The kernels of `bench/kernels.cu`.
const KERNELS: u64 = 11;
/// The harness launches each three times to warm up, and then as often as it is told.
const LAUNCHES: u64 = 3 + 2;

/// `bench/harness.cpp`, compiled once.
fn harness() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("g++", "../../bench/harness.cpp", "harness", &["-std=c++17"]))
}

/// A place with a driver in it.
fn scene() -> Place {
    let place = Place::with_driver();
    std::os::unix::fs::symlink(harness(), place.path("harness")).unwrap();
    std::os::unix::fs::symlink(testdata("nvcc/kernels.sm_90.ptx"), place.path("kernels.ptx")).unwrap();
    place
}

fn nt_run(place: &Place, words: &[&str]) -> Done {
    place.run_driver(words)
}

/// The harness on the kernels, small.
const RUN: [&str; 5] = ["./harness", "kernels.ptx", "2", "all", "3"];

fn assert_ok(done: &Done, code: i32, headline: &str) {
    assert!(done.stderr.contains(headline), "{}", done.stderr);
    assert_eq!(done.code, code, "{}", done.stderr);
}

#[test]
fn every_launch_is_probed_and_collected() {
    let place = scene();
    let done = nt_run(&place, &RUN);
    let all = KERNELS * LAUNCHES;
    assert_ok(&done, 0, &format!("nt-run: {all} of {all} launches probed, {all} collected\n"));
    assert_eq!(launched(&place), (all, all));
    assert!(done.stdout.starts_with("kernel\tdevice_us\t"), "{}", done.stdout);
    assert_eq!(done.stdout.lines().count() as u64, 1 + KERNELS);
    assert!(done.stderr.contains("next: nt-map report trace.ntt"), "{}", done.stderr);

    // One trace, whole, with the records of every launch.
    let traces = traces(&place);
    let [bytes] = traces.as_slice() else { panic!("{} traces", traces.len()) };
    let (mut launches, mut batches, mut ended) = (0, 0, false);
    for event in Trace::new(bytes) {
        match event {
            Event::Launch(kernel, _) => {
                assert!(kernel.probed().is_some());
                launches += 1;
            }
            Event::Batch(batch) => {
                assert_eq!(
                    batch.records().unwrap().rows().count(),
                    0,
                    "a kernel that does not run writes nothing"
                );
                batches += 1;
            }
            Event::End(_) => ended = true,
            Event::Trouble(trouble) => panic!("{trouble:?}"),
            _ => {}
        }
    }
    assert_eq!((launches, batches, ended), (all, all, true));
}

#[test]
fn chosen_kernels_alone_are_probed() {
    let place = scene();
    let done = nt_run(&place, &[&["-k", "matmul", "-k", "=transpose"][..], &RUN].concat());
    let (all, chosen) = (KERNELS * LAUNCHES, 2 * LAUNCHES);
    assert_ok(&done, 0, &format!("nt-run: {chosen} of {all} launches probed, {chosen} collected\n"));
    assert_eq!(launched(&place), (all, chosen));
    assert!(
        done.stderr.contains("9 other kernels were launched unprobed, 45 times: not selected"),
        "{}",
        done.stderr
    );
}

#[test]
fn nothing_matches() {
    let place = scene();
    let done = nt_run(&place, &[&["-k", "=matmul_tile"][..], &RUN].concat());
    assert_ok(&done, 0, "nothing was probed: no kernel matches `=matmul_tile`; the nearest: matmul_tiled\n");
    assert_eq!(launched(&place), (KERNELS * LAUNCHES, 0));
}

#[test]
fn the_status_is_the_commands_whatever_was_traced() {
    let place = scene();
    let words = |script| ["sh", "-c", script];
    let done = nt_run(&place, &words("./harness kernels.ptx 2 all 3 >/dev/null; exit 3"));
    assert_ok(&done, 3, "55 of 55 launches probed, 55 collected");
    let done = nt_run(&place, &words("./harness kernels.ptx 2 all 3 >/dev/null; kill -9 $$"));
    assert_ok(&done, 137, "55 of 55 launches probed, 55 collected");
    // The driver refuses the image; so the program fails as it does without us.
    std::fs::write(place.path("broken.ptx"), "no PTX").unwrap();
    let done = nt_run(&place, &["./harness", "broken.ptx"]);
    assert_ok(&done, 1, "nothing was probed");
}

#[test]
fn children_share_what_was_prepared() {
    let place = scene();
    let script = "./harness kernels.ptx 2 all 3 >a & ./harness kernels.ptx 2 all 3 >b; wait";
    let done = nt_run(&place, &["sh", "-c", script]);
    assert_ok(&done, 0, "nt-run: 110 of 110 launches probed, 110 collected\n");
    assert!(done.stderr.contains("holds the traces of 2 processes"), "{}", done.stderr);
    assert_eq!(launched(&place), (110, 110));
}

/// A program that overwrites LD_PRELOAD or clears the environment is followed all the same.
#[test]
fn children_are_followed_into_other_environments() {
    for script in [
        "LD_PRELOAD=libm.so.6 ./harness kernels.ptx 2 transpose 3",
        "env -i LD_LIBRARY_PATH=$LD_LIBRARY_PATH ./harness kernels.ptx 2 transpose 3",
    ] {
        let done = nt_run(&scene(), &["sh", "-c", script]);
        assert_ok(&done, 0, "nt-run: 5 of 5 launches probed, 5 collected\n");
    }
}

#[test]
fn a_run_folder_whose_name_a_loader_would_split() {
    let place = scene();
    let done = nt_run(&place, &[&["-o", "my run: 1"][..], &RUN].concat());
    assert_ok(&done, 0, "nt-run: 55 of 55 launches probed, 55 collected\n");
    assert!(place.path("my run: 1/run.ntt").exists());
}

#[test]
fn kernels_that_cannot_be_probed_run_as_they_are() {
    let place = scene();
    let text = std::fs::read_to_string(testdata("nvcc/kernels.sm_90.ptx")).unwrap();
    // Of a managed variable a twin would have another one.
    let changed = text
        .replacen(
            ".visible .entry fill_blocks(",
            ".global .attribute(.managed) .u32 tally;\n.visible .entry fill_blocks(",
            1,
        )
        .replacen("ret;", "{ .reg .u32 %own; ld.global.u32 %own, [tally]; }\n\tret;", 1);
    std::fs::write(place.path("tally.ptx"), changed).unwrap();
    let done = nt_run(&place, &["./harness", "tally.ptx", "2", "all", "3"]);
    assert_ok(&done, 0, "nt-run: 50 of 55 launches probed, 50 collected\n");
    assert!(done.stderr.contains("it uses the managed variable `tally`"), "{}", done.stderr);
    assert_eq!(launched(&place), (55, 50));
}

/// The second run finds everything in the cache.
#[test]
fn ptxas_runs_once_for_a_text() {
    let Some(real) = nt_engine::assemble::Assembler::find(None).unwrap() else {
        eprintln!("skipped: there is no ptxas on PATH (make deps)");
        return;
    };
    let place = scene();
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || echo run >>{}\nexec {} \"$@\"\n",
        place.path("runs").display(),
        real.path().display()
    );
    let counting = place.script("ptxas", &script);
    let words = ["--ptxas", counting.to_str().unwrap(), "-k", "=transpose"];
    let runs = || std::fs::read_to_string(place.path("runs")).unwrap_or_default().lines().count();
    let done = nt_run(&place, &[&words[..], &RUN].concat());
    assert_ok(&done, 0, "nt-run: 5 of 55 launches probed, 5 collected\n");
    assert!(done.stderr.contains(" -> ") && done.stderr.contains(", ptxas "), "{}", done.stderr);
    assert_eq!(runs(), 2);
    let done = nt_run(&place, &[&words[..], &RUN].concat());
    assert_ok(&done, 0, "nt-run: 5 of 55 launches probed, 5 collected\n");
    assert!(done.stderr.contains(" -> ") && done.stderr.contains("ptxas from the cache"), "{}", done.stderr);
    assert_eq!(runs(), 2);
}
