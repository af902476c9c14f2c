//! Images of every form through nt-run, the hook and the driver that runs nothing: fat binaries, alone and in the
//! wrapper that nvcc puts before them, cubins and PTX, by all ways in that programs of the runtime and of the driver take.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Done, Place, compiled, launched, testdata};
use std::path::PathBuf;
use std::sync::OnceLock;

const LAUNCHES: u64 = 4;

fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("cc", "tests/programs/images.c", "images", &["-std=gnu11"])).clone()
}

fn place() -> Place {
    let place = Place::with_driver();
    std::os::unix::fs::symlink(program(), place.path("images")).unwrap();
    for way in ["raw", "lz4", "zstd", "group"] {
        let fatbin = testdata(&format!("../fatbin/tiny.{way}.fatbin"));
        std::os::unix::fs::symlink(fatbin, place.path(&format!("{way}.fatbin"))).unwrap();
    }
    place
}

fn load(place: &Place, options: &[&str], way: &str, image: &str, kernel: &str) -> Done {
    let launches = LAUNCHES.to_string();
    place.run_driver(&[options, &["./images", way, image, kernel, &launches]].concat())
}

/// All launches ran, as twins, and each was collected.
fn assert_probed(place: &Place, done: &Done, what: &str) {
    assert_eq!((done.code, done.stdout.as_str()), (0, "ok\n"), "{what}: {}", done.stderr);
    let headline = format!("nt-run: {LAUNCHES} of {LAUNCHES} launches probed, {LAUNCHES} collected\n");
    assert!(done.stderr.starts_with(&headline), "{what}: {}", done.stderr);
    assert_eq!(launched(place), (LAUNCHES, LAUNCHES), "{what}");
}

fn check_ways_in(lookup: &str) {
    for load_by in ["data", "wrapper", "fatbin", "file", "library", "function", "module", "linked", "libfile"]
    {
        let (place, way) = (place(), format!("{lookup}-{load_by}"));
        assert_probed(&place, &load(&place, &[], &way, "zstd.fatbin", "tiny"), &way);
    }
}

#[test]
fn fat_binaries_by_symbols() {
    check_ways_in("dlsym");
}

#[test]
fn fat_binaries_as_the_runtime_loads_them() {
    check_ways_in("proc");
}

#[test]
fn however_they_are_packed() {
    for image in ["raw.fatbin", "lz4.fatbin", "group.fatbin"] {
        let place = place();
        assert_probed(&place, &load(&place, &[], "proc-library", image, "tiny"), image);
    }
}

/// The device is of compute capability 9.0: of PTX for sm_80 and for sm_90a the latter is woven.
#[test]
fn the_text_that_suits_the_device_is_woven() {
    let place = place();
    assert_probed(&place, &load(&place, &["--keep"], "dlsym-library", "zstd.fatbin", "tiny"), "kept");
    let kept = std::fs::read_dir(place.path("trace.ntt/kept")).unwrap().next().unwrap().unwrap().path();
    // By the target, and what was relied on of its launch.
    assert!(kept.to_string_lossy().ends_with(".sm_90.flat_grid.flat_block"), "{}", kept.display());
    let original = std::fs::read_to_string(kept.join("original.ptx")).unwrap();
    assert!(original.contains(".target sm_90a") && original.contains(".entry tiny"), "{original}");
}

#[test]
fn machine_code_alone_runs_as_it_is() {
    let fatbin = std::fs::read(testdata("../fatbin/tiny.raw.fatbin")).unwrap();
    let container = nt_object::open(&fatbin).unwrap();
    let entry = container.entries.iter().find(|entry| entry.kind == nt_object::Kind::Elf).unwrap();
    let place = place();
    std::fs::write(place.path("cubin"), entry.payload(nt_object::LIMIT).unwrap()).unwrap();
    let done = load(&place, &["-k", "=tiny"], "proc-data", "cubin", "tiny");
    assert_eq!((done.code, done.stdout.as_str()), (0, "ok\n"), "{}", done.stderr);
    let reason = "no PTX: cubin for sm_80 only (compile with -lineinfo)";
    let headline = format!("nt-run: nothing was probed: no chosen kernel can be: {reason}\n");
    assert!(done.stderr.starts_with(&headline), "{}", done.stderr);
    assert_eq!(launched(&place), (LAUNCHES, 0));
    let row = done.stderr.lines().find(|line| line.trim_start().starts_with("tiny ")).unwrap();
    assert!(row.ends_with(reason), "{row}");
}

#[test]
fn a_failure_of_the_program_stays_its_own() {
    let place = place();
    let done = load(&place, &[], "proc-data", "nowhere", "tiny");
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert!(done.stderr.contains("images: cannot read nowhere"), "{}", done.stderr);
}
