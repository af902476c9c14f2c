//! Streams: a line an event, a line a lane, an array, and how much was stored and dropped.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;
mod synthetic;

use common::Folder;
use synthetic::Trace;
use synthetic::accesses::{ATOMIC, Device, GATHER, LOAD, STORE, STRIDED, Values, access, dmat, sites};

/// Two blocks of 40 threads, so 4 warps; chunks of 16 slots, room for 6 of them, and all lanes' own.
fn trace() -> Vec<u8> {
    in_the_making().end()
}

fn in_the_making() -> Trace {
    let mut trace = Trace::new(42);
    let kernel = trace.traced("_Z4copyPf", "dmat", vec![dmat(16)], &sites());
    let launch = trace.launch(kernel, [2, 1, 1], [40, 1, 1]);
    let mut device = Device::new(16, 4, 16 * 6);
    let mut save = |warp, mask, code, at, base, values| {
        device.save(&access(warp, mask, code, at, base, values));
    };
    save(0, u32::MAX, LOAD, 100, 0x7f00_0000_1000, Values::Nothing);
    save(0, 0b111, STRIDED, 150, 0x7f00_0000_2000, Values::Stride(-32));
    let mut words = [0; 32];
    (words[1], words[3], words[31]) = (0, 0x1000, -0x2000i32 as u32);
    save(0, 1 << 1 | 1 << 3 | 1 << 31, GATHER, 160, 0x7f00_0000_3000, Values::Words(words));
    save(3, 0xff, STORE, 200, 0xffff_ff00_0000_1000, Values::Nothing);
    save(3, 0x81, ATOMIC, 210, 0x10, Values::Nothing);
    // Lane 5 claims the last chunk, lane 6 finds none.
    save(3, 1 << 5, LOAD, 220, 0x2000, Values::Nothing);
    save(3, 1 << 6, LOAD, 230, 0x2000, Values::Nothing);
    save(3, 1 << 6, LOAD, 240, 0x2000, Values::Nothing);
    trace.stream(launch, 0, &device.parts(2));
    trace
}

const HEADER: &str = "process\tlaunch\tkernel\tmap\tunit\tblock\twarp\tlane\tevent\tmask\top\twhere\tat\tsite\taddr\tbytes\tdemangled\n";

#[test]
fn dump_prints_a_line_an_event() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace());
    let run = folder.run(&["dump", "t.ntt"]);
    assert_eq!((run.code, run.err.as_str()), (0, "nt-map: 2 events had no room\n"));
    let line = |unit, block, warp, rest: &str| {
        let rest = rest.replace(' ', "\t");
        format!("42\t0\t_Z4copyPf\tdmat\t{unit}\t{block}\t{warp}\t{rest}\tcopy(float*)\n")
    };
    let expected = [
        HEADER.to_owned(),
        line(0, 0, 0, "0 0 0xffffffff ld.global.f32 a.cu:12 100 7 0x7f0000001000+4 4"),
        line(0, 0, 0, "0 1 0x7 ld.global.v4.f32 a.cu:13 150 9 0x7f0000002000-32 16"),
        line(3, 1, 1, "0 0 0xff st.global.f32 48:2 200 11 0xffffff0000001000+4 4"),
        line(3, 1, 1, "0 1 0x81 atom.global.add.u32 50:2 210 12 0x10 4"),
        line(
            0,
            0,
            0,
            "1 0 0x8000000a ld.global.v4.f32 a.cu:13 160 9 0x7f0000003000,0x7f0000004000,0x7f0000001000 16",
        ),
        line(3, 1, 1, "5 0 0x20 ld.global.f32 a.cu:12 220 7 0x2000 4"),
    ];
    assert_eq!(run.out, expected.concat());
    let csv = folder.run(&["dump", "t.ntt", "--format", "csv", "-q"]).out;
    assert!(csv.contains(",160,9,\"0x7f0000003000,0x7f0000004000,0x7f0000001000\",16,"), "{csv}");
    let json = folder.run(&["dump", "t.ntt", "--format", "json", "-q"]).out;
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines[1],
        serde_json::json!({
            "process": "42", "launch": 0, "kernel": "_Z4copyPf", "map": "dmat", "unit": 0, "block": 0, "warp": 0,
            "lane": 0, "event": 1, "mask": "0x7", "op": "ld.global.v4.f32", "where": "a.cu:13",
            "record": { "at": 150, "site": 9, "addr": { "first": "0x7f0000002000", "step": -32 }, "bytes": 16 },
            "demangled": "copy(float*)"
        })
    );
    assert_eq!(
        lines[4]["record"]["addr"],
        serde_json::json!(["0x7f0000003000", "0x7f0000004000", "0x7f0000001000"])
    );
}

#[test]
fn dump_prints_a_line_a_lane() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace());
    let out = folder.run(&["dump", "t.ntt", "--lanes", "-q"]).out;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 1 + 32 + 3 + 3 + 8 + 2 + 1);
    assert_eq!(lines[0], HEADER.trim_end().replace("lane\tevent\tmask", "lane\tthread\tevent"));
    let line = |n: usize| {
        let fields: Vec<&str> = lines[n].split('\t').collect();
        fields[4..16].join(" ")
    };
    assert_eq!(line(1), "0 0 0 0 0 0 ld.global.f32 a.cu:12 100 7 0x7f0000001000 4");
    assert_eq!(line(32), "0 0 0 31 31 0 ld.global.f32 a.cu:12 100 7 0x7f000000107c 4");
    assert_eq!(line(35), "0 0 0 2 2 1 ld.global.v4.f32 a.cu:13 150 9 0x7f0000001fc0 16");
    // Block 1 begins at thread 40, its second warp at 72.
    assert_eq!(line(36), "3 1 1 0 72 0 st.global.f32 48:2 200 11 0xffffff0000001000 4");
    assert_eq!(line(45), "3 1 1 7 79 1 atom.global.add.u32 50:2 210 12 0x10 4");
    assert_eq!(line(48), "0 0 0 31 31 0 ld.global.v4.f32 a.cu:13 160 9 0x7f0000001000 16");
}

/// What NumPy reads: the header by hand, rows by their offsets.
#[test]
fn dump_writes_an_array() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace());
    let read = |words: &[&str]| {
        let output = folder.command(words).output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        let bytes = output.stdout;
        assert_eq!(bytes[..8], *b"\x93NUMPY\x02\0");
        let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        assert_eq!((12 + length) % 64, 0);
        let text = std::str::from_utf8(&bytes[12..12 + length]).unwrap().to_owned();
        assert!(text.ends_with('\n'));
        (text.trim_end().to_owned(), bytes[12 + length..].to_vec())
    };
    let (header, rows) = read(&["dump", "t.ntt", "--format", "npy", "--lanes", "-q"]);
    assert_eq!(
        header,
        "{'descr': [(\"launch\", '<u8'), (\"thread\", '<u8'), (\"lane\", '|u1'), (\"event\", '<u8'), (\"site\", '<u4'), (\"at\", '<u4'), (\"record.site\", '<u4'), (\"addr\", '<u8'), (\"bytes\", '<u4')], 'fortran_order': False, 'shape': (49,), }"
    );
    let size = 8 + 8 + 1 + 8 + 4 + 4 + 4 + 8 + 4;
    assert_eq!(rows.len(), 49 * size);
    let row = &rows[44 * size..][..size];
    let expected = [
        &0u64.to_le_bytes()[..],
        &79u64.to_le_bytes(),
        &[7],
        &1u64.to_le_bytes(),
        &3u32.to_le_bytes(),
        &210u32.to_le_bytes(),
        &12u32.to_le_bytes(),
        &0x10u64.to_le_bytes(),
        &4u32.to_le_bytes(),
    ];
    assert_eq!(row, expected.concat());
    let (header, rows) = read(&["dump", "t.ntt", "--format", "npy", "-q"]);
    assert!(header.contains("(\"addr\", '<u8', (32,)), (\"bytes\", '<u4', (32,))"), "{header}");
    assert!(header.contains("'shape': (6,)"), "{header}");
    let size = 8 + 8 + 1 + 8 + 4 + 4 + 4 + 4 + 32 * 8 + 32 * 4;
    assert_eq!(rows.len(), 6 * size);
    // The second event has three lanes; the fourth has none.
    let addresses = &rows[size + 41..][..32];
    let words: Vec<u64> = addresses.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
    assert_eq!(words, [0x7f00_0000_2000, 0x7f00_0000_1fe0, 0x7f00_0000_1fc0, 0]);
}

#[test]
fn an_array_holds_one_map_of_one_process() {
    let folder = Folder::new();
    let mut trace = Trace::new(1);
    let kernel = trace.traced("k", "dmat", vec![dmat(16), synthetic::block_sched()], &sites());
    let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
    let mut device = Device::new(16, 1, 16);
    device.save(&access(0, 1, LOAD, 5, 64, Values::Nothing));
    trace.stream(launch, 0, &device.parts(1));
    trace.records(launch, 1, &[synthetic::record(10, 1, 0)]);
    folder.file("t.ntt", &trace.end());
    let words = ["dump", "t.ntt", "--format", "npy", "-o", "x.npy"];
    folder.refused(
        &words,
        2,
        "nt-map: an array holds one map, and there are `dmat` and `block_sched`: choose by `--map`\n",
    );
    assert_eq!(folder.run(&[&words[..], &["--map", "block_sched"]].concat()).code, 0);
    let bytes = std::fs::read(folder.0.path().join("x.npy")).unwrap();
    let row = [0u64, 0, 10, 1].map(u64::to_le_bytes).concat();
    assert_eq!(bytes[bytes.len() - 36..], [&row[..], &0u32.to_le_bytes()].concat());
}

#[test]
fn a_stream_that_is_damaged_is_named() {
    let folder = Folder::new();
    let mut trace = Trace::new(1);
    let kernel = trace.traced("k", "dmat", vec![dmat(16)], &sites());
    let launch = trace.launch(kernel, [1, 1, 1], [64, 1, 1]);
    let mut device = Device::new(16, 2, 32);
    for warp in [0, 1, 1] {
        device.save(&access(warp, 1, LOAD, 5, 64, Values::Nothing));
    }
    let mut part = device.parts(1).remove(0);
    // The second event of warp 1 gets a code that there is not.
    part[64 + 256 + 32 + 6] = 99;
    trace.stream(launch, 0, &[part]);
    let mut other = Device::new(16, 3, 48).parts(1);
    trace.stream(launch, 0, &other);
    other[0].truncate(100);
    trace.stream(launch, 0, &other);
    let bytes = trace.end();
    folder.file("t.ntt", &bytes);
    let run = folder.run(&["dump", "t.ntt"]);
    assert_eq!((run.code, run.out.lines().count()), (5, 3));
    let words: Vec<&str> = run.err.lines().map(|line| line.split_once(": frame").unwrap().1).collect();
    let words: Vec<&str> = words.into_iter().map(|line| line.split_once(": ").unwrap().1).collect();
    assert_eq!(
        words,
        [
            "1 chunks hold what no event is, and are read up to there",
            "3 units, and launch 0 has 2",
            "the part of a stream contradicts itself",
        ]
    );
}

#[test]
fn ls_and_report_tell_what_was_stored_and_dropped() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace());
    // Two parts: 64 bytes of a head each, 64 of drops, and 6 chunks of 256.
    let bytes = 2 * 64 + 64 + 6 * 256;
    folder.check(
        &["ls", "t.ntt"],
        &format!(
            "process\tkernel\tarch\tlaunches\tmap\tunit\tunits\tbytes\tstored\tdropped\tcolumns\tdemangled\n\
             42\t_Z4copyPf\tsm_90\t1\tdmat\twarp\t4\t{bytes}\t6\t2\tat:u32,site:u32,addr:lanes<ptr>,bytes:lanes<u32>\tcopy(float*)\n"
        ),
    );
    folder.check(
        &["report", "t.ntt"],
        "kernel _Z4copyPf
              copy(float*)
  of          process 42, sm_90, grid 2, block 40 (40 threads, 2 warps), map dmat of probe dmat
  registers   8 without the probe, 10 with it; no spills
  launches    1
  events      8 taken: 6 stored, 2 dropped
              launch 0: 2 dropped, by 1 warps: 3 (2)
  addresses   of events: 4 by proof, 1 by a stride found as they ran, 1 one by one
              2 of those by proof assume that 32-bit index arithmetic does not overflow within a warp; not checked
              1 of those by proof assume that parted lanes meet only where their ways join; not checked
  where    op                   events  lanes  lanes an event           addresses
  a.cu:12  ld.global.f32             2     33           16.50            by proof
  a.cu:13  ld.global.v4.f32          2      6               3     50 % one by one
  48:2     st.global.f32             1      8               8  by proof, assuming
  50:2     atom.global.add.u32       1      2               2  by proof, assuming
",
    );
}

#[test]
fn coverage_tells_events_of_a_kernel_once() {
    let folder = Folder::new();
    let mut trace = in_the_making();
    let count = |launches, collected, reason: &str| nt_wire::frame::Count {
        kernel: "_Z4copyPf".to_owned(),
        launches,
        probed: collected,
        collected,
        reason: reason.to_owned(),
    };
    trace.frame(&count(1, 1, ""));
    trace.frame(&count(2, 0, "no segment was free"));
    folder.file("t.ntt", &trace.end());
    folder.check(
        &["coverage", "t.ntt"],
        "process\tkernel\tlaunches\tprobed\tcollected\tstored\tdropped\treason\tdemangled\n\
         42\t_Z4copyPf\t1\t1\t1\t6\t2\t-\tcopy(float*)\n\
         42\t_Z4copyPf\t2\t0\t0\t-\t-\tno segment was free\tcopy(float*)\n\
         42\t(all)\t1\t1\t1\t-\t-\t-\t-\n",
    );
}

/// Frames that are whole, with anything in them: every subcommand ends, and says what it could not read.
#[test]
fn any_bytes_in_a_stream_end_every_subcommand() {
    let folder = Folder::new();
    let mut chance = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance
    };
    for _ in 0..3 {
        let mut trace = Trace::new(42);
        let kernel = trace.traced("_Z4copyPf", "dmat", vec![dmat(16)], &sites());
        for _ in 0..4 {
            let launch = trace.launch(kernel, [2, 1, 1], [64, 1, 1]);
            let mut device = Device::new(16, 4, 16 * 12);
            for at in 0..40 {
                let code = [LOAD, STORE, ATOMIC, GATHER, STRIDED][at % 5];
                let values = match code {
                    GATHER => Values::Words(std::array::from_fn(|lane| lane as u32 * 0x0500_0000)),
                    STRIDED => Values::Stride(i32::MIN),
                    _ => Values::Nothing,
                };
                device.save(&access(at as u64 % 4, next() as u32 | 1, code, next() as u32, next(), values));
            }
            let mut part = device.parts(1).remove(0);
            for _ in 0..next() % 12 {
                // Behind the head, where numbers of slots stand.
                let at = 64 + (next() % (part.len() as u64 - 64)) as usize;
                part[at] = next() as u8;
            }
            trace.stream(launch, 0, &[part]);
        }
        folder.file("t.ntt", &trace.end());
        let mut codes = std::collections::BTreeSet::new();
        for words in [
            &["dump", "t.ntt"][..],
            &["coverage", "t.ntt"],
            &["dump", "t.ntt", "--lanes", "--format", "json"],
            &["dump", "t.ntt", "--format", "npy", "-o", "x.npy"],
            &["dump", "t.ntt", "--format", "npy", "--lanes", "-o", "x.npy"],
            &["ls", "t.ntt"],
            &["report", "t.ntt"],
            &["timeline", "t.ntt"],
            &["dmat", "t.ntt", "--launch", "0.."],
            &["dmat", "t.ntt", "--launch", "0..", "--page", "32B", "-o", "x.svg"],
            &["dmat", "t.ntt", "--launch", "0..", "--bins", "1x1", "-o", "x.png"],
            &["dmat", "t.ntt", "--launch", "0..", "--page", "1G", "-o", "x.html"],
        ] {
            let run = folder.run(words);
            codes.insert(run.code);
            assert!([0, 5].contains(&run.code), "{words:?}: {} {}", run.code, run.err);
            assert_eq!(
                run.code == 5,
                run.err.contains("chunks hold what no event is"),
                "{words:?}: {}",
                run.err
            );
        }
        // All find the same faults, or none.
        assert_eq!(codes.len(), 1, "{codes:?}");
    }
}
