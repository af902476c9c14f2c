//! Arrays with a capacity: a line a save, an array for NumPy, and how many were taken, stored, dropped or overwritten.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

#[path = "../../../lang/nt-trace/tests/arrays/mod.rs"]
mod arrays;
mod common;
mod synthetic;

use arrays::{Left, last, some};
use common::Folder;
use nt_trace::ntm::{Policy, Unit};
use synthetic::Trace;

/// Two warps whose array of four and two goes round: of the first, six saves of lane 0 and one of another lane; the second
/// left without a count. Then three threads whose array of four drops: two saves, none, eight.
fn trace() -> Trace {
    let mut trace = Trace::new(42);
    let kernel = trace.kernel("w", "last", vec![last(Unit::Warp, Policy::Wrap)]);
    let launch = trace.launch(kernel, [2, 1, 1], [32, 1, 1]);
    let (capacity, data) = arrays::warps(&[
        Left { own: 7, other: 1, records: some(&[14, 15, 12, 13, 90]) },
        Left { own: 0, other: 0, records: some(&[7]) },
    ]);
    trace.saves(launch, 0, 2, capacity, &data);
    let kernel = trace.kernel("t", "last", vec![last(Unit::Thread, Policy::Drop)]);
    let launch = trace.launch(kernel, [1, 1, 1], [3, 1, 1]);
    let (capacity, data) = arrays::threads(&[
        Left { own: 3, other: 0, records: some(&[1, 2]) },
        Left { own: 1, other: 0, records: vec![] },
        Left { own: 9, other: 0, records: some(&[5, 6, 7, 8]) },
    ]);
    trace.saves(launch, 0, 3, capacity, &data);
    trace
}

const SAID: &str = "nt-map: 4 saves were dropped: their units had no room left
nt-map: 2 saves were overwritten by later ones
nt-map: 1 units did not leave by a probed exit: they may have saved more than is there
";

#[test]
fn dump_prints_a_line_a_save() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace().end());
    let run = folder.run(&["dump", "t.ntt"]);
    assert_eq!((run.code, run.err.as_str()), (0, SAID));
    let lines = [
        "process launch kernel map unit block warp cursor seq at demangled",
        "42 0 w last 0 0 0 0 2 12 w",
        "42 0 w last 0 0 0 0 3 13 w",
        "42 0 w last 0 0 0 0 4 14 w",
        "42 0 w last 0 0 0 0 5 15 w",
        "42 0 w last 0 0 0 other 0 90 w",
        "42 0 w last 1 1 0 0 0 7 w",
        "42 1 t last 0 0 0 - 0 1 t",
        "42 1 t last 0 0 0 - 1 2 t",
        "42 1 t last 2 0 0 - 0 5 t",
        "42 1 t last 2 0 0 - 1 6 t",
        "42 1 t last 2 0 0 - 2 7 t",
        "42 1 t last 2 0 0 - 3 8 t",
    ];
    let expected: String = lines.iter().map(|line| format!("{}\n", line.replace(' ', "\t"))).collect();
    assert_eq!(run.out, expected);
    let json = folder.run(&["dump", "t.ntt", "--format", "json", "-q"]).out;
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        [&lines[4], &lines[6]],
        [
            &serde_json::json!({
                "process": "42", "launch": 0, "kernel": "w", "map": "last", "unit": 0, "block": 0, "warp": 0,
                "cursor": "other", "seq": 0, "record": { "at": 90 }, "demangled": "w"
            }),
            &serde_json::json!({
                "process": "42", "launch": 1, "kernel": "t", "map": "last", "unit": 0, "block": 0, "warp": 0,
                "seq": 0, "record": { "at": 1 }, "demangled": "t"
            }),
        ]
    );
}

/// Beside a stream, whose columns it does not have.
#[test]
fn columns_of_streams_stay_empty() {
    use synthetic::accesses::{Device, LOAD, Values, access, dmat, sites};
    let folder = Folder::new();
    let mut trace = Trace::new(1);
    let kernel = trace.traced("k", "both", vec![dmat(16), last(Unit::Warp, Policy::Drop)], &sites());
    let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
    let mut device = Device::new(16, 1, 16);
    device.save(&access(0, 1, LOAD, 5, 64, Values::Nothing));
    trace.stream(launch, 0, &device.parts(1));
    let (capacity, data) = arrays::warps(&[Left { own: 2, other: 0, records: some(&[70]) }]);
    trace.saves(launch, 1, 1, capacity, &data);
    folder.file("t.ntt", &trace.end());
    let expected = "process launch kernel map unit block warp lane event mask op where cursor seq at site addr bytes demangled
1 0 k dmat 0 0 0 0 0 0x1 ld.global.f32 a.cu:12 - - 5 7 0x40 4 k
1 0 k last 0 0 0 - - - - - 0 0 70 - - - k
";
    folder.check(&["dump", "t.ntt"], &expected.replace(' ', "\t"));
}

#[test]
fn an_array_for_numpy() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace().end());
    let words = ["dump", "t.ntt", "--format", "npy", "-q", "-o", "x.npy", "-k", "=w"];
    folder.check(&words, "");
    let bytes = std::fs::read(folder.0.path().join("x.npy")).unwrap();
    let end = 12 + u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    assert_eq!(
        String::from_utf8(bytes[12..end].to_vec()).unwrap().trim_end(),
        "{'descr': [(\"launch\", '<u8'), (\"unit\", '<u8'), (\"cursor\", '|u1'), (\"seq\", '<u8'), (\"at\", '<u4')], 'fortran_order': False, 'shape': (6,), }"
    );
    let rows: Vec<&[u8]> = bytes[end..].chunks(8 + 8 + 1 + 8 + 4).collect();
    let row = |unit: u64, cursor: u8, sequence: u64, at: u32| {
        [&[0; 8][..], &unit.to_le_bytes(), &[cursor], &sequence.to_le_bytes(), &at.to_le_bytes()].concat()
    };
    assert_eq!((rows.len(), rows[0], rows[4]), (6, &row(0, 0, 2, 12)[..], &row(0, 1, 0, 90)[..]));
}

#[test]
fn ls_and_report_tell_what_became_of_saves() {
    let folder = Folder::new();
    let mut trace = trace();
    let count = |kernel: &str| nt_wire::frame::Count {
        kernel: kernel.to_owned(),
        launches: 1,
        probed: 1,
        collected: 1,
        reason: String::new(),
    };
    trace.frame(&count("w"));
    folder.file("t.ntt", &trace.end());
    // 64 bytes of counts, and 16 records of 16 bytes, or of 5.
    folder.check(
        &["ls", "t.ntt"],
        "process\tkernel\tarch\tlaunches\tmap\tunit\tunits\tbytes\tstored\tdropped\tcolumns\tdemangled\n\
         42\tw\tsm_90\t1\tlast\twarp\t2\t320\t6\t2\tat:u32\tw\n\
         42\tt\tsm_90\t1\tlast\tthread\t3\t144\t6\t4\tat:u32\tt\n",
    );
    folder.check(
        &["coverage", "t.ntt"],
        "process\tkernel\tlaunches\tprobed\tcollected\tstored\tdropped\treason\tdemangled\n\
         42\tw\t1\t1\t1\t6\t2\t-\tw\n\
         42\t(all)\t2\t2\t2\t-\t-\t-\t-\n",
    );
    folder.check(
        &["report", "t.ntt"],
        "kernel w
  of          process 42, sm_90, grid 2, block 32 (32 threads, 1 warps), map last of probe last
  registers   8 without the probe, 10 with it; no spills
  launches    1
  saves       8 taken: 6 stored, 2 overwritten
              launch 0: 2 overwritten, by 1 warps: 0 (2)
              launch 0: 1 warps did not leave by a probed exit, and may have saved more: 1
  a warp      7 saves, the median; 7 the least, 7 the most; room for 4
  column  type  min  median   mean  max
  at      u32     7      13  25.17   90

kernel t
  of          process 42, sm_90, grid 1, block 3 (3 threads, 1 warps), map last of probe last
  registers   8 without the probe, 10 with it; no spills
  launches    1
  saves       10 taken: 6 stored, 4 dropped
              launch 1: 4 dropped, by 1 threads: 2 (4)
  a thread    2 saves, the median; 0 the least, 8 the most; room for 4
  column  type  min  median  mean  max
  at      u32     1       5  4.83    8
",
    );
}

#[test]
fn data_that_does_not_fit_is_named() {
    let folder = Folder::new();
    let mut trace = Trace::new(1);
    let kernel = trace.kernel("w", "last", vec![last(Unit::Warp, Policy::Drop)]);
    let launch = trace.launch(kernel, [2, 1, 1], [32, 1, 1]);
    let at = trace.bytes.len();
    trace.saves(launch, 0, 2, 16, &[0; 255]);
    folder.file("t.ntt", &trace.end());
    for subcommand in ["dump", "report", "ls", "coverage"] {
        let run = folder.run(&[subcommand, "t.ntt"]);
        let said = format!(
            "nt-map: t.ntt: frame at byte {at}: 255 bytes of data cannot hold 2 units of a map with 96 bytes a unit, room for 2\n"
        );
        assert_eq!((run.code, run.err), (5, said), "{subcommand}");
    }
}

/// Frames that are whole, with anything in them: every subcommand ends.
#[test]
fn any_bytes_end_every_subcommand() {
    let folder = Folder::new();
    let mut chance = 0x9e37_79b9_7f4a_7c15u64;
    let mut trace = Trace::new(42);
    for unit in [Unit::Warp, Unit::Thread] {
        for policy in [Policy::Drop, Policy::Wrap] {
            let kernel = trace.kernel("k", "last", vec![last(unit, policy)]);
            let launch = trace.launch(kernel, [2, 1, 1], [32, 1, 1]);
            let units = if unit == Unit::Warp { 2 } else { 64 };
            let mut data = vec![0u8; 256 + 256 * 16];
            for byte in &mut data {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                *byte = chance as u8 & (chance >> 8) as u8;
            }
            trace.saves(launch, 0, units, 256, &data);
            trace.saves(launch, 0, u64::MAX, u64::MAX, &data);
            trace.saves(launch, 0, u64::MAX / 6, 256, &data);
        }
    }
    folder.file("t.ntt", &trace.end());
    for words in [
        &["dump"][..],
        &["dump", "--lanes"],
        &["dump", "--format", "json"],
        &["report"],
        &["ls"],
        &["coverage"],
    ] {
        let run = folder.run(&[words, &["t.ntt"]].concat());
        assert!(run.code == 0 || run.code == 5, "{words:?} {}", run.err);
    }
}
