//! Sums of `warp` probes at `kernel:exit`, end to end on the software GPU: once a warp, though its lanes leave apart.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Place, compiled, done};
use std::path::Path;

/// `tests/programs/saves.ptx`: three blocks of two warps, of which lanes go on without the others, launched twice.
#[test]
fn once_a_warp() {
    let place = Place::with_driver();
    let program = compiled("cc", "tests/programs/images.c", "images-leaves", &["-std=gnu11"]);
    std::os::unix::fs::symlink(program, place.path("images")).unwrap();
    let ptx = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/saves.ptx");
    let probe = "warp kernel:exit { @left = count(); @threes = sum(3); }";
    let mut command = place.driver_run(["-e", probe]);
    command.env("NT_VGPU", "1").args(["./images", "dlsym-data"]).arg(ptx).args(["saves", "2"]);
    let done = done(command.output().unwrap());
    assert_eq!((done.code, done.stdout.as_str()), (0, "ok\n"), "{}", done.stderr);
    for line in ["nt-run: 2 of 2 launches probed, 2 collected\n", "@left: 12\n", "@threes: 36\n"] {
        assert!(done.stderr.contains(line), "{line}{}", done.stderr);
    }
    // By what they know to be the last is nobody's business.
    assert!(!done.stderr.contains("nt_gone"), "{}", done.stderr);
}
