//! Whatever goes wrong on our side, the program runs as it would without us, and the trace says why.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use common::{Fate, Run, Scene};
use nt_wire::message::{Kind, Settings};

const ALL: (u64, u64, u64) = (20, 20, 20);
const NONE: (u64, u64, u64) = (20, 0, 0);

fn run_in(scene: Scene, life: &str) -> Run {
    let app = scene.app();
    let run = scene.run(&app, &["dlsym", life, "20"]);
    run.ok();
    run
}

/// A program that cannot be probed, and what is said about it.
fn check(fate: Fate, fault: &str, reason: &str) -> Run {
    let mut scene = Scene::with(fate);
    scene.fault = fault.into();
    let run = run_in(scene, "one");
    assert_eq!(run.trace().count("chosen"), NONE);
    assert_eq!(run.launched("chosen"), (20, 0));
    assert_eq!(run.trace().count("other"), NONE);
    assert!(run.trace().end.is_some());
    let said = format!("{} {}", run.trace().reason("chosen"), run.trace().notes.join("; "));
    assert!(said.contains(reason), "{said}");
    run
}

#[test]
fn refused() {
    let fate = Fate { refuse: Some("it reaches `.global counters`"), ..Fate::default() };
    let run = check(fate, "", "it reaches `.global counters`");
    assert_eq!(run.parent.unwrap().needs.len(), 1);
}

#[test]
fn a_twin_that_does_not_load() {
    // The program's own module is the first load, the twin the second.
    check(Fate::default(), "load=2", "the driver refused its twin: error 218 (invalid PTX)");
}

#[test]
fn a_twin_without_the_kernel() {
    let module = b".version 8.0\n.target sm_90\n.visible .entry somebody(.param .u64 x) { ret; }".to_vec();
    check(Fate { module: Some(module), ..Fate::default() }, "", "error 500 (not found)");
}

#[test]
fn a_twin_that_is_noise() {
    check(Fate { module: Some(vec![0xff; 100]), ..Fate::default() }, "", "error 200 (invalid image)");
}

/// Everything runs twice at most: the twin is asked once and then never again.
#[test]
fn a_twin_out_of_resources() {
    let run = check(
        Fate::default(),
        "twin-launch=701",
        "its twin could not be launched: error 701 (out of resources)",
    );
    assert_eq!(run.logged("refused"), 1);
}

#[test]
fn layouts_that_do_not_fit_the_kernel() {
    let check = |bend, reason| {
        check(Fate { bend, ..Fate::default() }, "", reason);
    };
    check(|twin| twin.params[1].offset = 16, "its parameter 1 is not where its PTX says");
    check(|twin| twin.params.truncate(1), "it has more parameters than its PTX says");
    check(|twin| twin.slots[0].offset = 4, "its layout is larger than the hook can hold");
    check(|twin| twin.slots[3].offset = 32, "its layout is larger than the hook can hold");
    check(|twin| twin.maps.clear(), "its layout is larger than the hook can hold");
    check(|twin| twin.context = 1 << 20, "its layout is larger than the hook can hold");
    check(
        |twin| twin.maps[0].stride = u32::MAX,
        "whose maps take more than half of the pool; --pool makes it larger",
    );
    check(|twin| twin.size = u64::MAX, "a module shorter than it should be");
}

#[test]
fn another_protocol() {
    let settings = Settings { protocol: 77, ..Fate::default().settings };
    let run = check(Fate { settings, ..Fate::default() }, "", "nt-run 77: nothing was probed");
    assert!(run.parent.unwrap().images.is_empty());
}

#[test]
fn nobody_at_the_socket() {
    let run = run_in(Scene::without_parent(), "one");
    assert_eq!(run.trace().count("chosen"), NONE);
    assert!(run.trace().notes[0].contains("nt-run could not be reached"));
    assert_eq!(run.launched("chosen"), (20, 0));
}

#[test]
fn a_parent_that_dies_in_the_middle_of_a_question() {
    for kind in [Kind::Image, Kind::Need] {
        check(Fate { dies_at: Some(kind), ..Fate::default() }, "", "nt-run is gone");
    }
    let run = run_in(Scene::with(Fate { dies_at: Some(Kind::Hello), ..Fate::default() }), "one");
    assert_eq!(run.trace().count("chosen"), NONE);
}

#[test]
fn a_parent_that_babbles() {
    for kind in [Kind::Image, Kind::Need] {
        check(Fate { babbles_at: Some(kind), ..Fate::default() }, "", "a malformed head");
    }
}

/// What is ready stays ready, what comes later runs as it is.
#[test]
fn a_parent_that_dies_between_two_loads() {
    let scene = Scene::new();
    let app = scene.app();
    let mut command = scene.command(&app, &["dlsym", "wait-for-line", "20"]);
    let mut child =
        common::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "launched\n");
    scene.parent.as_ref().unwrap().kill();
    child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "launched\nok\n");
    let run = scene.wait(child);
    assert!(run.output.status.success() && run.output.stderr.is_empty());
    assert_eq!(run.trace().count("chosen"), (40, 20, 20));
    assert!(run.trace().reason("chosen").contains("nt-run is gone"));
    assert_eq!(run.launched("chosen"), (20, 20));
}

/// Panics are the one thing that a debug build can be asked for.
#[test]
#[cfg(debug_assertions)]
fn panics() {
    for place in ["load", "function", "prepare", "collect"] {
        let mut scene = Scene::new();
        scene.variables = vec![("NT_HOOK_PANIC".into(), place.into())];
        let run = run_in(scene, "one");
        let trace = run.trace();
        assert!(trace.notes.iter().any(|note| note.contains("planned at")), "{place} {:?}", trace.notes);
        assert!(trace.end.is_some());
        // Every launch was made once, as it is or as a twin.
        let (plain, twins) = run.launched("chosen");
        assert_eq!(plain + twins, 20, "{place}");
        assert!(place == "collect" || twins == 0, "{place}");
    }
}

#[test]
fn no_memory_for_a_pool() {
    check(
        Fate::default(),
        "no-memory=65536",
        "no pool for probes could be made: cuMemAlloc: error 2 (out of memory)",
    );
}

/// Less than was wanted is taken when there is no more.
#[test]
fn a_smaller_pool() {
    let mut scene = Scene::new();
    scene.fault = "no-memory=2000000".into();
    let run = run_in(scene, "one");
    assert_eq!(run.trace().count("chosen"), ALL);
}

#[test]
fn copies_that_fail() {
    for (fault, call) in [("copy=719", "cuMemcpyDtoHAsync"), ("register=1", "cuMemHostRegister")] {
        let mut scene = Scene::new();
        scene.fault = fault.into();
        let run = run_in(scene, "one");
        let (launches, probed, collected) = run.trace().count("chosen");
        assert_eq!((launches, collected), (20, 0));
        assert_ne!(probed, 0);
        let notes = run.trace().notes.join("; ");
        assert!(notes.contains(&format!("{call} failed")) && notes.contains("were not collected"), "{notes}");
        let (plain, twins) = run.launched("chosen");
        assert_eq!((plain + twins, twins as u64), (20, probed));
    }
}

/// The file is whole up to where the process was when it was killed.
#[test]
fn killed() {
    for life in ["kill", "abort"] {
        let scene = Scene::new();
        let app = scene.app();
        let run = scene.run(&app, &["dlsym", life, "20"]);
        assert!(!run.output.status.success());
        let trace = run.trace();
        assert!(trace.end.is_none() && trace.counts.is_empty());
        // A tenth of a second before the kill, and nothing before the abort.
        if life == "kill" {
            assert_eq!((trace.kernels.len(), trace.launches.len(), trace.data.len()), (1, 20, 20));
        }
    }
}

/// Launches in static destructors come after the driver's end, with us as without us.
#[test]
fn static_destructors() {
    let scene = Scene::new();
    let app = scene.app();
    let run = scene.run(&app, &["dlsym", "static-destructor", "20"]);
    let out = String::from_utf8_lossy(&run.output.stdout);
    assert!(out.contains("ok\n") && out.contains("cuLaunchKernel: 4"), "{out}");
    assert_eq!(run.trace().count("chosen"), ALL);
}

/// A program that closes what it does not know gets the same numbers for its own files: nothing of ours may go there.
#[test]
fn descriptors_that_are_closed_under_us() {
    let mut scene = Scene::new();
    // The driver's log would be such a file too.
    scene.variables = vec![("NT_VGPU_LOG".into(), String::new())];
    let run = run_in(scene, "close-all");
    let trace = run.trace();
    assert_eq!((trace.launches.len(), trace.end), (20, None));
    assert!(run.parent.unwrap().byes.is_empty());
}

/// A file that may not grow ends with a whole frame, and the program lives (SIGXFSZ would end it).
#[test]
fn a_disk_that_is_full() {
    let mut scene = Scene::new();
    scene.variables = vec![("NT_VGPU_LOG".into(), "/dev/null".into())];
    let app = scene.app();
    let line = format!("ulimit -f 8; exec {} dlsym one 200", app.display());
    let run = scene.run(std::path::Path::new("/bin/sh"), &["-c", &line]);
    run.ok();
    let trace = run.trace();
    assert!((1..200).contains(&trace.launches.len()) && trace.end.is_none());
    let [bye] = &run.parent.as_ref().unwrap().byes[..] else { panic!() };
    assert_eq!((bye.launches, bye.probed), (400, 200));
    assert!(
        bye.collected < 200 && bye.notes.iter().any(|note| note.contains("the trace could not be written"))
    );
}
