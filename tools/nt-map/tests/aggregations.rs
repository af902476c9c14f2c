//! Aggregations as users meet them: lines, words and exit codes, on traces made by hand.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;
mod synthetic;

use common::Folder;
use synthetic::{Trace, block_sched, by_block, by_op, record};

/// gmem_bytes by block and bytes by opcode, in two kernels, two launches of the first and one of the second.
fn counted() -> Vec<u8> {
    let mut trace = Trace::new(7);
    let tables = || vec![by_block("sync"), by_block("copied")];
    let copy = trace.counted(
        "_Z4copyPfi",
        "p",
        [tables(), vec![by_op("bytes", &["ld.global.f32", "st.global.f32"])]].concat(),
    );
    for sync in [[512, 512, 1024], [256, 512, 1024]] {
        let launch = trace.launch(copy, [3, 1, 1], [64, 1, 1]);
        trace.cells(launch, 0, 3, &sync);
        trace.cells(launch, 1, 3, &[0; 3]);
    }
    let fill = trace.counted("fill", "p", [tables(), vec![by_op("bytes", &["st.global.f32"])]].concat());
    let launch = trace.launch(fill, [1, 1, 1], [64, 1, 1]);
    trace.cells(launch, 0, 1, &[100]);
    trace.cells(launch, 1, 1, &[0]);
    trace.persistent(copy, 2, 0, &[1000, 900, 0, 0, 20, 20, 0, 0]);
    trace.persistent(copy, 2, 1, &[0, 1, 0, 0, 0, 0, 0, 0]);
    trace.persistent(fill, 2, 0, &[100, 0, 0, 0]);
    trace.end()
}

#[test]
fn report_adds_up() {
    let folder = Folder::new();
    folder.file("t.ntt", &counted());
    // ld: 1000 + 20; st: 900 + 20 + 1 + 100. Blocks of copy: 256 512 512 512 1024 1024, the lower in the middle 512; its
    // launches 2048 and 1792.
    folder.check(
        &["report", "t.ntt"],
        "\
@bytes[ld.global.f32]: 1020
@bytes[st.global.f32]: 1021

@copied[block]: 0 in 3 launches
  2 rows of 0

@sync[block]: 3940 in 3 launches
  kernel             launches  total  a launch  a block: least  median  most
  fill                      1    100       100             100     100   100
  copy(float*, int)         2   3840      1920             256     512  1024
",
    );
    folder.check(
        &["report", "t.ntt", "--rows", "1", "--map", "bytes"],
        "@bytes: 1 smaller row, together 1020\n@bytes[st.global.f32]: 1021\n",
    );
    folder.check(
        &["report", "t.ntt", "-k", "fill", "--map", "@sync", "--map", "@bytes"],
        "\
@bytes[st.global.f32]: 100

@sync[block]: 100 in 1 launch
  kernel  launches  total  a launch  a block: least  median  most
  fill           1    100       100             100     100   100
",
    );
}

#[test]
fn report_tells_records_first() {
    let mut trace = Trace::new(7);
    let kernel = trace.kernel("k", "block_sched", vec![block_sched()]);
    let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
    trace.records(launch, 0, &[record(10, 5, 1)]);
    let kernel = trace.counted("k", "p", vec![by_op("n", &["ret"])]);
    trace.persistent(kernel, 0, 0, &[0, 0, 0, 3]);
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());
    let report = folder.run(&["report", "t.ntt"]).out;
    assert!(
        report.starts_with("kernel k\n  of          process 7") && report.ends_with("\n\n@n[ret]: 3\n"),
        "{report}"
    );
}

#[test]
fn dump_prints_a_line_a_cell() {
    let folder = Folder::new();
    folder.file("t.ntt", &counted());
    folder.check(
        &["dump", "t.ntt", "-k", "fill"],
        "process\tlaunch\tkernel\tmap\tunit\tblock\twarp\tvalue\tdevice\top\tdemangled\n\
         7\t2\tfill\t@sync\t0\t0\t-\t100\t-\t-\tfill\n\
         7\t2\tfill\t@copied\t0\t0\t-\t0\t-\t-\tfill\n\
         7\t-\tfill\t@bytes\t0\t-\t-\t100\t0\tst.global.f32\tfill\n\
         7\t-\tfill\t@bytes\t1\t-\t-\t0\t0\tst.global.f32\tfill\n\
         7\t-\tfill\t@bytes\t2\t-\t-\t0\t0\tst.global.f32\tfill\n\
         7\t-\tfill\t@bytes\t3\t-\t-\t0\t0\tst.global.f32\tfill\n",
    );
    let csv = folder.run(&["dump", "t.ntt", "-k", "fill", "--format", "csv"]).out;
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(
        [lines[0], lines[1], lines[3]],
        [
            "process,launch,kernel,map,unit,block,warp,value,device,op,demangled",
            "7,2,fill,@sync,0,0,,100,,,fill",
            "7,,fill,@bytes,0,,,100,0,st.global.f32,fill",
        ]
    );
    let json = folder.run(&["dump", "t.ntt", "-k", "fill", "--format", "json"]).out;
    let lines: Vec<&str> = json.lines().collect();
    assert_eq!(
        [lines[0], lines[2]],
        [
            "{\"process\":\"7\",\"launch\":2,\"kernel\":\"fill\",\"map\":\"@sync\",\"unit\":0,\"block\":0,\
             \"record\":{\"value\":100},\"demangled\":\"fill\"}",
            "{\"process\":\"7\",\"kernel\":\"fill\",\"map\":\"@bytes\",\"unit\":0,\
             \"record\":{\"device\":0,\"op\":\"st.global.f32\",\"value\":100},\"demangled\":\"fill\"}",
        ]
    );
    assert!(lines.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn ls_lists_tables() {
    let folder = Folder::new();
    folder.file("t.ntt", &counted());
    // Room for 3 blocks is rounded up to 16; on an SM two words, four SMs, two devices.
    folder.check(
        &["ls", "t.ntt"],
        "process\tkernel\tarch\tlaunches\tmap\tunit\tunits\tbytes\tstored\tdropped\tcolumns\tdemangled\n\
         7\t_Z4copyPfi\tsm_90\t2\t@sync\tblock\t6\t256\t-\t0\tvalue:u64\tcopy(float*, int)\n\
         7\t_Z4copyPfi\tsm_90\t2\t@copied\tblock\t6\t256\t-\t0\tvalue:u64\tcopy(float*, int)\n\
         7\t_Z4copyPfi\tsm_90\t-\t@bytes\tsm\t8\t128\t-\t0\top,value:u64\tcopy(float*, int)\n\
         7\tfill\tsm_90\t1\t@sync\tblock\t1\t128\t-\t0\tvalue:u64\tfill\n\
         7\tfill\tsm_90\t1\t@copied\tblock\t1\t128\t-\t0\tvalue:u64\tfill\n\
         7\tfill\tsm_90\t-\t@bytes\tsm\t4\t32\t-\t0\top,value:u64\tfill\n",
    );
}

#[test]
fn a_choice_of_launches_leaves_out_what_is_of_all() {
    let folder = Folder::new();
    folder.file("t.ntt", &counted());
    let run = folder.run(&["report", "t.ntt", "--launch", "1..2", "--map", "sync", "--map", "bytes"]);
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (
            0,
            "\
@sync[block]: 1892 in 2 launches
  kernel             launches  total  a launch  a block: least  median  most
  fill                      1    100       100             100     100   100
  copy(float*, int)         1   1792      1792             256     512  1024
",
            "nt-map: left out: aggregations of all launches together, since `--launch` chooses\n"
        )
    );
    let mut trace = Trace::new(7);
    let kernel = trace.counted("k", "p", vec![by_op("n", &["ret"])]);
    trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
    trace.persistent(kernel, 0, 0, &[1, 1, 1, 1]);
    folder.file("u.ntt", &trace.end());
    folder.refused(
        &["report", "u.ntt", "--launch", "0"],
        4,
        "nt-map: the trace has aggregations of all launches together: leave out `--launch`\n",
    );
    folder.refused(
        &["dump", "t.ntt", "--map", "byte"],
        4,
        "nt-map: no map `byte` in the chosen kernels, nearest: `bytes`\n",
    );
}

#[test]
fn damage_costs_what_it_hit() {
    let mut trace = Trace::new(7);
    let kernel = trace.counted("k", "p", vec![by_op("n", &["a", "b"]), by_block("by")]);
    let launch = trace.launch(kernel, [2, 1, 1], [32, 1, 1]);
    trace.cells(launch, 1, 2, &[1, 2]);
    let at = trace.bytes.len();
    trace.persistent(kernel, 0, 0, &[100; 8]);
    let short = trace.bytes.len();
    trace.persistent(kernel, 0, 0, &[100; 7]);
    let other = trace.bytes.len();
    trace.cells(launch, 1, 3, &[7, 7, 7]);
    trace.persistent(kernel, 0, 1, &[1, 2, 0, 0, 0, 0, 0, 0]);
    let mut bytes = trace.end();
    // A bit of a cell.
    bytes[at + 64 + 64 + 8] ^= 1;
    let folder = Folder::new();
    folder.file("t.ntt", &bytes);
    let run = folder.run(&["report", "t.ntt"]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (
            5,
            "\
@by[block]: 3 in 1 launch
  kernel  launches  total  a launch  a block: least  median  most
  k              1      3         3               1       1     2

@n[a]: 1
@n[b]: 2
"
        )
    );
    let words: Vec<&str> = run.err.lines().collect();
    assert_eq!(words.len(), 4, "{}", run.err);
    assert!(words[0].contains(&format!("bytes {at}..{short} are damaged")), "{}", words[0]);
    assert_eq!(
        words[1..],
        [
            format!("nt-map: t.ntt: before byte {short}: frame 4 expected, found 5"),
            format!(
                "nt-map: t.ntt: frame at byte {short}: 56 bytes of data cannot hold 4 units of a map with 16 bytes a unit, room for 4"
            ),
            format!("nt-map: t.ntt: frame at byte {other}: 3 units, and launch 0 has 2"),
        ]
    );
    // Cut anywhere, it is read up to there.
    let whole = counted();
    for length in (0..whole.len() - 128).step_by(97) {
        folder.file("u.ntt", &whole[..length]);
        for words in [["report", "u.ntt", "-q"], ["dump", "u.ntt", "-q"], ["ls", "u.ntt", "-q"]] {
            assert_eq!(folder.run(&words).code, 5, "{length} {words:?}");
        }
    }
}
