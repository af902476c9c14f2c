//! Arrays with a capacity, end to end on the software GPU: what each unit of `tests/programs/saves.ptx` saves is known.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first thing that is wrong")]

mod common;

use common::{Done, Place, compiled, done, traces};
use nt_trace::ntt::{Cursor, Event, Saves, Tally, Trace};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compiled("cc", "tests/programs/images.c", "images-saves", &["-std=gnu11"]))
}

/// Its three blocks of two warps, launched twice.
fn run(options: &[&str], probe: &str) -> (Place, Done) {
    let place = Place::with_driver();
    std::os::unix::fs::symlink(program(), place.path("images")).unwrap();
    let ptx = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/saves.ptx");
    let mut command = place.driver_run(["-e", probe]);
    command.env("NT_VGPU", "1").args(options).args(["./images", "dlsym-data"]).arg(ptx).args(["saves", "2"]);
    let done = done(command.output().unwrap());
    assert_eq!((done.code, done.stdout.as_str()), (0, "ok\n"), "{}", done.stderr);
    (place, done)
}

/// Gives the arrays of each launch, in order.
fn each(place: &Place, mut with: impl FnMut(&str, u64, &Saves<'_>)) {
    for bytes in traces(place) {
        for event in Trace::new(&bytes) {
            match event {
                Event::Saves(batch) => {
                    batch.agree().unwrap();
                    with(&batch.map().unwrap().name, batch.launch.number, &batch.saves().unwrap());
                }
                Event::Trouble(trouble) => panic!("{trouble}"),
                _ => {}
            }
        }
    }
}

/// Cursor, number and value of each save of a unit.
fn saved(saves: &Saves<'_>, unit: u64) -> Vec<(Cursor, u64, u64)> {
    saves.of(unit).map(|save| (save.cursor, save.sequence.unwrap(), save.row.unsigned(0).unwrap())).collect()
}

/// How often lane 0 of a warp of the launch comes to the store, and how often the lanes do that go on without it.
fn rounds(warp: u64) -> (u64, u64) {
    (3 * (warp % 2 + 1) + warp / 2, 2)
}

#[test]
fn warps_keep_the_newest_or_the_first() {
    let probe =
        "map last: array<warp>[4] wrap { n: u32 } map begun: array<warp>[5] drop { n: u32 } state n: u32;
                 warp inst:store.shared { last.save(n); begun.save(n); n += 1; }";
    let (place, done) = run(&[], probe);
    let headline = "nt-run: 2 of 2 launches probed, 2 collected\n";
    assert!(done.stderr.starts_with(headline), "{}", done.stderr);
    let (mut frames, mut beyond) = (0, 0);
    each(&place, |name, _, saves| {
        frames += 1;
        assert_eq!(saves.units(), 6);
        for warp in 0..6 {
            let (own, other) = rounds(warp);
            let room = if name == "last" { 4 } else { 5 };
            let kept = if name == "last" { own.saturating_sub(room)..own } else { 0..own.min(room) };
            let mut expected: Vec<_> = kept.map(|n| (Cursor::Own, n, n)).collect();
            // A quarter of the room and one: two of both.
            expected.extend((0..other).map(|n| (Cursor::Other, n, own + n)));
            assert_eq!(saved(saves, warp), expected, "{name}, warp {warp}");
            let stored = own.min(room) + other;
            let tally = Tally { counted: true, taken: own + other, stored };
            assert_eq!(saves.tally(warp), tally, "{name}, warp {warp}");
            beyond += tally.lost();
        }
    });
    assert_eq!(frames, 4);
    // It is said at the end of the run, too.
    let said = format!(
        "{beyond} saves found no room in their arrays, and were dropped or overwritten by later ones"
    );
    assert!(done.stderr.contains(&said), "{said} is not in {}", done.stderr);
}

#[test]
fn threads_keep_what_they_have_room_for() {
    let probe = "map last: array<thread>[3] wrap { n: u32, odd: bool } state n: u32;
                 inst:store.shared { last.save(n, n & 1 == 1); n += 1; }";
    let (place, _) = run(&[], probe);
    let mut frames = 0;
    each(&place, |_, _, saves| {
        frames += 1;
        assert_eq!((saves.units(), saves.has_others()), (3 * 64, false));
        for thread in 0..saves.units() {
            let (own, more) = rounds(thread / 32);
            let taken = if thread % 32 < 16 { own } else { own + more };
            let expected: Vec<_> = (taken.saturating_sub(3)..taken).map(|n| (Cursor::Own, n, n)).collect();
            assert_eq!(saved(saves, thread), expected, "thread {thread}");
            assert_eq!(saves.tally(thread).taken, taken);
        }
    });
    assert_eq!(frames, 2);
}

/// 6 warps of 65,536 + 16,385 records of 16 bytes are 7.5 MiB: half of a pool of 8 MiB is less, and coverage says so.
#[test]
fn what_does_not_fit_the_pool_runs_unprobed_and_is_told() {
    let probe =
        "map m: array<warp>[65536] { n: u32 } state n: u32; warp inst:store.shared { m.save(n); n += 1; }";
    let (place, done) = run(&["--pool", "8MiB"], probe);
    let why = "2 whose maps take more than half of the pool; --pool makes it larger";
    assert!(done.stderr.starts_with(&format!("nt-run: nothing was probed: {why}\n")), "{}", done.stderr);
    each(&place, |_, _, _| panic!("nothing was probed"));
    let (_, done) = run(&["--pool", "32MiB"], probe);
    assert!(done.stderr.starts_with("nt-run: 2 of 2 launches probed, 2 collected"), "{}", done.stderr);
}
