//! Ways in × lives: whichever way a program finds the driver, whatever becomes of its process, each launch is counted
//! once, each launch of the selected kernel is probed and collected, and the program notices nothing.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

mod common;

use std::path::Path;

use common::{Run, Scene, program};

const LAUNCHES: u64 = 20;

/// What a life should leave: threads that launch, and whether the trace has an end.
fn check(way: &str, life: &str, scene: Scene, program: &Path) {
    let run = scene.run(program, &[way, life, &LAUNCHES.to_string()]);
    run.ok();
    let threads = if life == "threads" { 8 } else { 1 };
    let processes = if life == "fork-first" { 2 } else { 1 };
    assert_eq!(run.traces.len(), processes, "{way} {life}");
    let each = LAUNCHES * threads;
    for trace in &run.traces {
        assert_eq!(trace.count("chosen"), (each, each, each), "{way} {life}");
        assert_eq!(trace.count("other"), (each, 0, 0), "{way} {life}");
        assert_eq!(trace.reason("chosen"), "");
        assert_eq!(trace.reason("other"), "not selected");
        assert_eq!(trace.launches.len() as u64, each);
        assert_eq!(trace.data.len() as u64, each);
        let end = trace.end.expect("an end frame");
        assert_eq!((end.launches, end.probed, end.collected), (2 * each, each, each));
    }
    // The driver saw twins in the place of originals, and no launch twice. (With an empty environment it keeps no log.)
    if !["exec", "spawn"].contains(&life) {
        let (plain, twins) = run.launched("chosen");
        assert_eq!((plain, twins as u64), (0, each * processes as u64), "{way} {life}");
    }
    assert_eq!(run.logged("hooked-itself"), 0);
    let seen = run.parent.as_ref().unwrap();
    assert_eq!((seen.hellos.len(), seen.images.len()), (processes, 1), "{way} {life}");
    assert_eq!((seen.needs.len(), seen.byes.len()), (processes, processes), "{way} {life}");
}

const LIVES: [&str; 10] =
    ["one", "threads", "fork", "fork-first", "exec", "spawn", "execvp", "_exit", "_Exit", "quick_exit"];

fn check_all(way: &str) {
    for life in LIVES {
        let scene = Scene::new();
        let app = scene.app();
        check(way, life, scene, &app);
    }
}

#[test]
fn linked() {
    for life in LIVES {
        let scene = Scene::new();
        let app = scene.linked();
        check("linked", life, scene, &app);
    }
}

#[test]
fn dlopen_and_dlsym() {
    check_all("dlsym");
}

#[test]
fn full_path() {
    for life in LIVES {
        let mut scene = Scene::new();
        scene.driver = false;
        let (app, path) = (scene.app(), scene.driver_path());
        check(&path, life, scene, &app);
    }
}

#[test]
fn rtld_default() {
    check_all("default");
}

#[test]
fn dlopen_null() {
    check_all("null");
}

#[test]
fn deepbind() {
    check_all("deepbind");
}

#[test]
fn get_proc_address() {
    check_all("proc");
}

#[test]
fn get_proc_address_through_itself() {
    check_all("proc-itself");
}

#[test]
fn get_proc_address_of_per_thread_variants() {
    check_all("proc-ptsz");
}

#[test]
fn a_variant_from_the_future_is_left_alone() {
    let scene = Scene::new();
    let app = scene.app();
    let run = scene.run(&app, &["proc-newer", "one"]);
    // The stub's answer to it is 801, which is the program's to see.
    assert!(String::from_utf8_lossy(&run.output.stdout).contains("cuLaunchKernel: 801"));
    let note = "lookups were answered by the driver with a variant that this version does not know";
    assert!(run.trace().notes.iter().any(|text| text.ends_with(note)), "{:?}", run.trace().notes);
}

/// A library like the CUDA runtime, opened so that its own `dlsym` is libc's.
#[test]
fn a_library_under_deepbind() {
    let scene = Scene::new();
    let inner = scene.path("lib/libcurt.so");
    std::fs::copy(program("inner.c", &["-shared", "-fPIC"]), &inner).unwrap();
    let run = scene.run(&program("outer.c", &[]), &[inner.to_str().unwrap(), "7"]);
    run.ok();
    assert_eq!(run.trace().count("chosen"), (7, 7, 7));
    assert!(run.trace().notes.iter().any(|note| note.contains("RTLD_DEEPBIND")));
}

/// One of another family keeps the flag: it is not the hook's business how such libraries bind.
#[test]
fn other_libraries_keep_deepbind() {
    let scene = Scene::new();
    let inner = scene.path("lib/libother.so");
    std::fs::copy(program("inner.c", &["-shared", "-fPIC"]), &inner).unwrap();
    let run = scene.run(&program("outer.c", &[]), &[inner.to_str().unwrap(), "7"]);
    run.ok();
    assert!(run.traces.is_empty());
    assert_eq!(run.launched("chosen"), (7, 0));
}

/// What a program sees without a driver it sees with the hook too, to the letter.
#[test]
fn no_driver_at_all() {
    let app = program("app.c", &[]);
    for way in ["dlsym", "default", "null", "/nowhere/libcuda.so.1"] {
        let mut scene = Scene::new();
        scene.driver = false;
        let without = scene.command(&app, &[way, "one"]).env_remove("LD_PRELOAD").output().unwrap();
        let with: Run = scene.run(&app, &[way, "one"]);
        assert_eq!(with.output, without, "{way}");
        assert!(matches!(with.output.status.code(), Some(2 | 3)));
        assert!(with.traces.is_empty());
    }
}

/// Without a run folder the hook is a bystander.
#[test]
fn no_run_folder() {
    let mut scene = Scene::new();
    scene.variables = vec![("NT_RUN".into(), String::new())];
    let linked = scene.linked();
    let run = scene.run(&linked, &["linked", "one"]);
    run.ok();
    assert!(run.traces.is_empty() && run.parent.as_ref().unwrap().hellos.is_empty());
    assert_eq!(run.launched("chosen"), (20, 0));
}
