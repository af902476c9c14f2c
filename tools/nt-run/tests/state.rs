//! Variables of a module stay one, end to end on the software GPU: what the host sets, a twin sees, and what a twin sets,
//! the host and other kernels see. `tests/programs/state.c` computes everything itself.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Done, Place, compiled, done};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const ROUNDS: u64 = 5;
/// `turn`, `scale`, `bump` and `through`.
const KERNELS: u64 = 4;

fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("cc", "tests/programs/state.c", "state", &["-std=gnu11"])).clone()
}

fn run(options: &[&str], probe: [&str; 2], way: &str) -> (Place, Done) {
    let place = Place::with_driver();
    std::os::unix::fs::symlink(program(), place.path("state")).unwrap();
    let ptx = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/state.ptx");
    let mut command = place.driver_run(probe);
    command.env("NT_VGPU", "1").args(options).arg("./state").arg(ptx).arg(ROUNDS.to_string()).arg(way);
    let done = done(command.output().unwrap());
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert_eq!(done.stdout, format!("{ROUNDS} rounds ok\n"), "{}", done.stderr);
    (place, done)
}

fn assert_probed(done: &Done, launches: u64) {
    let of = KERNELS * ROUNDS;
    let headline = format!("nt-run: {launches} of {of} launches probed, {launches} collected\n");
    assert!(done.stderr.starts_with(&headline), "{}", done.stderr);
}

#[test]
fn all_kernels_probed() {
    for way in ["module", "library"] {
        let (_, done) = run(&[], ["-p", "block_sched"], way);
        assert_probed(&done, KERNELS * ROUNDS);
    }
}

/// Some kernels run as they are, others as twins, and all see the same variables.
#[test]
fn some_kernels_probed() {
    for kernel in ["=turn", "=scale", "=bump", "=through"] {
        let (_, done) = run(&["-k", kernel], ["-p", "block_sched"], "library");
        assert_probed(&done, ROUNDS);
    }
}

/// An access to a pinned variable counts as one of global memory, by its name or through a pointer; nt's own to its
/// pins and constants do not.
#[test]
fn accesses_of_variables_are_counted() {
    let (_, done) = run(
        &["-k", "bump", "-k", "through"],
        ["-e", "inst:access.global { @[kernel] = sum(bytes); }"],
        "module",
    );
    assert_probed(&done, 2 * ROUNDS);
    // One thread of `bump` loads and stores 4 bytes. Each of 5 × 48 of `through` loads a pointer, what it points to, an
    // element, and stores that.
    for row in
        [format!("@[bump]: {}\n", ROUNDS * 8), format!("@[through]: {}\n", ROUNDS * 240 * (8 + 4 + 4 + 4))]
    {
        assert!(done.stderr.contains(&row), "{row} is not in {}", done.stderr);
    }
}

/// The module of a twin holds the pins in place of variables, and copies of constants.
#[test]
fn twins_hold_no_variable_twice() {
    let (place, _) = run(&["-k", "scale", "--keep"], ["-p", "block_sched"], "module");
    let kept = std::fs::read_dir(place.path("trace.ntt/kept")).unwrap().next().unwrap().unwrap().path();
    let manifest = nt_trace::Manifest::parse(&std::fs::read(kept.join("manifest.ntm")).unwrap()).unwrap();
    let kernel = &manifest.kernels[0];
    let mut pins: Vec<&str> = kernel.pins.iter().map(|pin| pin.symbol.as_str()).collect();
    pins.sort_unstable();
    assert_eq!(pins, ["bins", "offset", "threads"]);
    let constants: Vec<_> = kernel.constants.iter().map(|c| (c.symbol.as_str(), c.size)).collect();
    assert_eq!(constants, [("factors", 16)]);
}
