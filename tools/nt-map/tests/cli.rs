//! The program as its users meet it: lines, words and exit codes, on traces made by hand.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;
mod synthetic;

use common::{Folder, Run};
use nt_trace::ntm::Unit;
use nt_wire::frame::{Count, End, Launch, Note, Start};
use std::process::Stdio;
use synthetic::{ABSENT, Trace, block_sched, record, values};

/// A launch of 2 blocks of 2 warps, of which the last left no record; then one of a thread map, 1 block of 3 threads.
fn two_maps() -> Vec<u8> {
    let mut trace = Trace::new(4242);
    let fill = trace.kernel("_Z4fillPfi", "block_sched", vec![block_sched()]);
    let launch = trace.launch(fill, [2, 1, 1], [64, 1, 1]);
    trace.records(launch, 0, &[record(1000, 31, 5), record(1001, 40, 5), record(1 << 40, 7, 131), ABSENT]);
    let show = trace.kernel("show", "values", vec![values()]);
    let launch = trace.launch(show, [1, 1, 1], [3, 1, 1]);
    // Columns of 16 units: at, x, delta, odd, and the byte that tells presence.
    let mut data = vec![0u8; 16 * 16];
    for (unit, at, x, delta, odd) in [(0, 0x7f00u64, 0.5f32, -3i16, 0u8), (2, 0, f32::NAN, 300, 1)] {
        data[unit * 8..][..8].copy_from_slice(&at.to_le_bytes());
        data[128 + unit * 4..][..4].copy_from_slice(&x.to_le_bytes());
        data[192 + unit * 2..][..2].copy_from_slice(&delta.to_le_bytes());
        data[224 + unit] = odd;
        data[240 + unit] = 1;
    }
    trace.data(launch, 0, 3, &data);
    trace.end()
}

#[test]
fn dump_prints_a_line_a_record() {
    let folder = Folder::new();
    folder.file("trace.ntt/4242.100.ntt", &two_maps());
    let run = folder.run(&["dump"]);
    assert_eq!(
        run.out,
        "process\tlaunch\tkernel\tmap\tunit\tblock\twarp\tstart\telapsed\tcu\tat\tx\tdelta\todd\tdemangled\n\
         4242\t0\t_Z4fillPfi\tblock_sched\t0\t0\t0\t1000\t31\t5\t-\t-\t-\t-\tfill(float*, int)\n\
         4242\t0\t_Z4fillPfi\tblock_sched\t1\t0\t1\t1001\t40\t5\t-\t-\t-\t-\tfill(float*, int)\n\
         4242\t0\t_Z4fillPfi\tblock_sched\t2\t1\t0\t1099511627776\t7\t131\t-\t-\t-\t-\tfill(float*, int)\n\
         4242\t1\tshow\tvalues\t0\t0\t0\t-\t-\t-\t0x7f00\t0.5\t-3\tfalse\tshow\n\
         4242\t1\tshow\tvalues\t2\t0\t0\t-\t-\t-\t0x0\tNaN\t300\ttrue\tshow\n"
    );
    assert_eq!((run.code, run.err.as_str()), (0, "nt-map: 2 units left no record\n"));
}

#[test]
fn dump_has_three_forms() {
    let folder = Folder::new();
    let trace = folder.file("a.ntt", &two_maps());
    let trace = trace.to_str().unwrap();
    assert_eq!(
        folder.run(&["dump", trace, "--map", "values", "--format=csv", "-q"]).out,
        "process,launch,kernel,map,unit,block,warp,at,x,delta,odd,demangled\r\n\
         4242,1,show,values,0,0,0,0x7f00,0.5,-3,false,show\r\n\
         4242,1,show,values,2,0,0,0x0,NaN,300,true,show\r\n"
    );
    assert_eq!(
        folder.run(&["dump", trace, "-k", "show", "--format", "json", "-q"]).out,
        "{\"process\":\"4242\",\"launch\":1,\"kernel\":\"show\",\"map\":\"values\",\"unit\":0,\"block\":0,\"warp\":0,\
         \"record\":{\"at\":\"0x7f00\",\"x\":0.5,\"delta\":-3,\"odd\":false},\"demangled\":\"show\"}\n\
         {\"process\":\"4242\",\"launch\":1,\"kernel\":\"show\",\"map\":\"values\",\"unit\":2,\"block\":0,\"warp\":0,\
         \"record\":{\"at\":\"0x0\",\"x\":\"NaN\",\"delta\":300,\"odd\":true},\"demangled\":\"show\"}\n"
    );
}

#[test]
fn output_goes_where_it_is_sent() {
    let folder = Folder::new();
    folder.file("trace.ntt/1.ntt", &two_maps());
    let run = folder.run(&["dump", "-o", "records.tsv", "-q"]);
    assert_eq!(run, Run { code: 0, out: String::new(), err: String::new() });
    assert_eq!(std::fs::read_to_string(folder.0.path().join("records.tsv")).unwrap().lines().count(), 6);
}

#[test]
fn a_block_map_has_no_warps_and_a_column_may_be_called_as_ours() {
    let mut map = block_sched();
    map.unit = Unit::Block;
    map.columns[0].name = "block".to_owned();
    let mut trace = Trace::new(1);
    let kernel = trace.kernel("k", "p", vec![map]);
    let launch = trace.launch(kernel, [2, 1, 1], [64, 1, 1]);
    trace.records(launch, 0, &[record(10, 1, 0), record(20, 2, 0)]);
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());
    folder.check(
        &["dump", "t.ntt"],
        "process\tlaunch\tkernel\tmap\tunit\tblock\twarp\trecord.block\telapsed\tcu\tdemangled\n\
         1\t0\tk\tblock_sched\t0\t0\t-\t10\t1\t0\tk\n\
         1\t0\tk\tblock_sched\t1\t1\t-\t20\t2\t0\tk\n",
    );
}

#[test]
fn ls_lists_kernels_and_launches() {
    let folder = Folder::new();
    folder.file("t.ntt", &two_maps());
    folder.check(
        &["ls", "t.ntt"],
        "process\tkernel\tarch\tlaunches\tmap\tunit\tunits\tbytes\tstored\tdropped\tcolumns\tdemangled\n\
         4242\t_Z4fillPfi\tsm_90\t1\tblock_sched\twarp\t4\t256\t-\t0\tstart:u64,elapsed:u64,cu:u32\tfill(float*, int)\n\
         4242\tshow\tsm_90\t1\tvalues\tthread\t3\t256\t-\t0\tat:ptr,x:f32,delta:s64,odd:bool\tshow\n",
    );
    folder.check(
        &["ls", "t.ntt", "--launches", "--launch", "1.."],
        "process\tlaunch\tkernel\tgrid\tblock\tshared\tdevice\tsms\tstream\tlaunched_ns\tat_most_us\tdemangled\n\
         4242\t1\tshow\t1x1x1\t3x1x1\t0\t0\t4\t0x0\t1000000\t10.0\tshow\n",
    );
}

#[test]
fn processes_are_merged_in_order_and_told_apart() {
    let of = |pid: u32, start: u64, host: &str, elapsed: u32| {
        let host = host.to_owned();
        let mut trace =
            Trace::of(&Start { protocol: nt_wire::PROTOCOL, pid, start, host, ..Start::default() });
        let kernel = trace.kernel("k", "block_sched", vec![block_sched()]);
        let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
        trace.records(launch, 0, &[record(10, elapsed, 0)]);
        trace.end()
    };
    let folder = Folder::new();
    // File names sort otherwise than pids do.
    folder.file("trace.ntt/10.ntt", &of(10, 1, "a", 1));
    folder.file("trace.ntt/9.ntt", &of(9, 1, "a", 2));
    folder.file("trace.ntt/x.ntt", &of(10, 2, "a", 3));
    folder.file("trace.ntt/y.ntt", &of(10, 2, "b", 4));
    folder.file("trace.ntt/readme", b"not a trace");
    let shown = |words: &[&str]| -> Vec<String> {
        let run = folder.run(words);
        let cells = |line: &str| {
            let cells: Vec<&str> = line.split('\t').collect();
            format!("{} {}", cells[0], cells[8])
        };
        run.out.lines().skip(1).map(cells).collect()
    };
    assert_eq!(shown(&["dump"]), ["9 2", "10.1 1", "10.2@a 3", "10.2@b 4"]);
    assert_eq!(shown(&["dump", "--process", "9"]), ["9 2"]);
    folder.refused(
        &["dump", "--process", "11"],
        4,
        "nt-map: no such process in the trace, there are: 9, 10\n",
    );
}

/// Two SMs. On one, two slots: blocks 0..10 and 14..30, 2..16 and 20..24. On the other, one slot: 1000..1050 and
/// 1060..1100. Each block has two warps, of which one starts first and the other ends last.
fn fill_blocks(trace: &mut Trace, kernel: u32, shift: u64) {
    let launch = trace.launch(kernel, [6, 1, 1], [64, 1, 1]);
    let lives = [(0, 10, 0), (2, 16, 0), (14, 30, 0), (20, 24, 0), (1000, 1050, 5), (1060, 1100, 5)];
    let warps = lives.map(|(start, end, sm)| {
        let length = (end - start - 1) as u32;
        [record(shift + start, length, sm), record(shift + start + 1, length, sm)]
    });
    trace.records(launch, 0, warps.as_flattened());
}

#[test]
fn report_tells_what_scheduling_costs() {
    let mut trace = Trace::new(7);
    let kernel = trace.kernel("fill_blocks", "block_sched", vec![block_sched()]);
    (0..3).for_each(|i| fill_blocks(&mut trace, kernel, i * 5000));
    let kernel = trace.kernel("fill_persistent", "block_sched", vec![block_sched()]);
    let launch = trace.launch(kernel, [2, 1, 1], [32, 1, 1]);
    trace.records(launch, 0, &[record(100, 40, 3), record(102, 38, 3)]);
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());
    // Slots x cycles: 2 x 30 + 1 x 100 = 160. Occupied: (10 + 14 + 16 + 4) + (50 + 40) = 134. Fill: 0..2 = 2.
    // Turnover: (10..14 + 16..20) + 1050..1060 = 18. Tail: 24..30 = 6. Gaps: 4 + 4 + 10 = 18 of 18 + 134.
    // No block ran: 1050..1060, of spans of 30 + 100. Blocks take 4, 10, 14, 16, 40, 50 cycles; of six the median is the third, 95 % the fifth.
    // Persistent: slots x cycles 2 x 40 = 80, of which 2 are empty until the second block comes.
    folder.check(
        &["report", "t.ntt"],
        "\
kernel fill_blocks
  of          process 7, sm_90, grid 6, block 64 (64 threads, 2 warps), map block_sched of probe block_sched
  registers   8 without the probe, 10 with it; no spills
  launches    3; numbers are medians over them
  recorded    6 of 6 blocks a launch, 12 of 12 warps
  time        at least 0.05 µs (100 cycles, the longest span of an SM, at 2000 MHz, the highest SM clock); at most 10.0 µs, as the host saw it
  SMs         2 of 4 ran blocks; 3 (2 to 4) blocks an SM; at most 2 at once on one
  span        65 (30 to 100) cycles an SM, from its first start to its last end, on its own clock
  running     60 (30 to 90) cycles an SM, in which at least one block ran
  block       14 cycles, the median block; 4 the least, 40 at 95 %, 50 the most
  slots       of slots x cycles over all SMs (an SM's most blocks at once x its span):
              occupied   83.75 %  a block ran
              fill        1.25 %  empty until the SM first held its most
              turnover   11.25 %  empty, one block left and the next had not started
              tail        3.75 %  empty after the SM's last start
  scheduling    7.69 %  of SM time no block ran, though one was still to start
               12.50 %  of slots x cycles a slot was empty, though a block was still to start (fill + turnover)
               11.84 %  of gaps and blocks are gaps between the blocks of a slot

kernel fill_persistent
  of          process 7, sm_90, grid 2, block 32 (32 threads, 1 warps), map block_sched of probe block_sched
  registers   8 without the probe, 10 with it; no spills
  launches    1; numbers are medians over them
  recorded    2 of 2 blocks a launch, 2 of 2 warps
  time        at least 0.02 µs (40 cycles, the longest span of an SM, at 2000 MHz, the highest SM clock); at most 10.0 µs, as the host saw it
  SMs         1 of 4 ran blocks; 2 (2 to 2) blocks an SM; at most 2 at once on one
  span        40 (40 to 40) cycles an SM, from its first start to its last end, on its own clock
  running     40 (40 to 40) cycles an SM, in which at least one block ran
  block       38 cycles, the median block; 38 the least, 38 at 95 %, 40 the most
  slots       of slots x cycles over all SMs (an SM's most blocks at once x its span):
              occupied   97.50 %  a block ran
              fill        2.50 %  empty until the SM first held its most
              turnover    0.00 %  empty, one block left and the next had not started
              tail        0.00 %  empty after the SM's last start
  scheduling    0.00 %  of SM time no block ran, though one was still to start
                2.50 %  of slots x cycles a slot was empty, though a block was still to start (fill + turnover)
                0.00 %  of gaps and blocks are gaps between the blocks of a slot

comparison: medians a launch; time from the longest span of an SM at the highest SM clock
  kernel           grid  launches  blocks  time µs  idle %  idle µs  slots %  gaps %  tail %
  fill_blocks         6         3       6     0.05    7.69     0.00    12.50   11.84    3.75
  fill_persistent     2         1       2     0.02    0.00     0.00     2.50    0.00    0.00
fill_persistent takes 0.03 µs (60.0 %) less a launch than fill_blocks
",
    );
}

#[test]
fn report_names_what_is_missing_and_what_may_have_wrapped() {
    let mut trace = Trace::new(7);
    let kernel = trace.kernel("k", "block_sched", vec![block_sched()]);
    let launch = trace.launch(kernel, [5, 1, 1], [64, 1, 1]);
    // Block 0 left nothing, block 2 a warp only, block 3 names two SMs.
    let (a, b) = (record(10, 5, 1), record(20, 5, 1));
    trace.records(launch, 0, &[ABSENT, ABSENT, a, a, ABSENT, b, record(0, 1, 1), record(0, 1, 2), b, b]);
    // 2³² cycles at 2 GHz are 2.147483648 s.
    for (number, nanoseconds, clock_khz) in
        [(1, 2_147_483_647, 2_000_000), (2, 2_147_483_648, 2_000_000), (3, 1, 0)]
    {
        let times = Launch { launched_ns: 5, complete_ns: 5 + nanoseconds, clock_khz, ..Launch::default() };
        trace.launch_as(&Launch { number, kernel, grid: [5, 1, 1], block: [64, 1, 1], sms: 4, ..times });
        trace.records(number, 0, &[a; 10]);
    }
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());
    let run = folder.run(&["report", "t.ntt"]);
    let line = |text: &str| assert!(run.out.lines().any(|line| line.trim() == text), "{text}\n{}", run.out);
    line("launch 0: 3 warps without a record: 0, 1, 4");
    line("1 blocks whose warps name two SMs are left out");
    line("1 launches may have wrapped: they may have taken 4294967296 cycles or more: 2");
    line("1 launches may have wrapped: their clock is unknown");
    let alone = folder.run(&["report", "t.ntt", "--launch", "0"]).out;
    assert!(alone.contains("recorded    4 of 5 blocks a launch, 7 of 10 warps"), "{alone}");
}

#[test]
fn report_tells_the_spread_of_any_other_map() {
    let folder = Folder::new();
    folder.file("t.ntt", &two_maps());
    folder.check(
        &["report", "t.ntt", "--map", "values"],
        "\
kernel show
  of          process 4242, sm_90, grid 1, block 3 (3 threads, 1 warps), map values of probe values
  registers   8 without the probe, 10 with it; no spills
  launches    1
  recorded    2 of 3 threads
  column  type    min  median    mean     max
  at      ptr     0x0       -       -  0x7f00
  x       f32     0.5    0.50    0.50     0.5
  delta   s64      -3      -3  148.50     300
  odd     bool  false       0    0.50    true
              1 of x are NaN and left out
",
    );
}

#[test]
fn coverage_tells_what_was_not_probed_and_why() {
    let mut trace = Trace::new(7);
    trace.frame(&Count {
        kernel: "_Z4spinv".to_owned(),
        launches: 9,
        probed: 0,
        collected: 0,
        reason: "reaches the variable `table`".to_owned(),
    });
    trace.frame(&Count { kernel: String::new(), launches: 1, ..Count::default() });
    trace.frame(&Note { text: "process 8 has no hook".to_owned() });
    let folder = Folder::new();
    folder.file("trace.ntt/run.ntt", &trace.end());
    folder.check(
        &["coverage"],
        "process\tkernel\tlaunches\tprobed\tcollected\tstored\tdropped\treason\tdemangled\n\
         7\t_Z4spinv\t9\t0\t0\t-\t-\treaches the variable `table`\tspin()\n\
         7\t(unknown)\t1\t0\t0\t-\t-\t-\t-\n\
         7\t(note)\t-\t-\t-\t-\t-\tprocess 8 has no hook\t-\n\
         7\t(all)\t0\t0\t0\t-\t-\t-\t-\n",
    );
    folder.refused(&["dump"], 4, "nt-map: no kernel in the trace\nnt-map: note: process 8 has no hook\n");
}

/// M01: noise in the middle of a trace.
#[test]
fn noise_costs_what_it_hit() {
    let mut trace = Trace::new(1);
    let kernel = trace.kernel("k", "block_sched", vec![block_sched()]);
    let mut cut = (0, 0);
    for i in 0..384u32 {
        let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
        trace.records(launch, 0, &[record(10, i, 0)]);
        if i == 18 {
            cut.0 = trace.bytes.len();
            trace.bytes.extend((0..11_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8));
            cut.1 = trace.bytes.len();
        }
    }
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());
    for words in [["dump", "t.ntt"], ["report", "t.ntt"], ["ls", "t.ntt"], ["coverage", "t.ntt"]] {
        let run = folder.run(&words);
        let expected =
            format!("nt-map: t.ntt: bytes {}..{} are damaged: 11000 bytes skipped\n", cut.0, cut.1);
        assert_eq!((run.code, run.err), (5, expected), "{words:?}");
    }
    assert_eq!(folder.run(&["dump", "t.ntt"]).out.lines().count(), 1 + 384);
}

#[test]
fn a_cut_trace_gives_what_is_sound() {
    let whole = two_maps();
    let folder = Folder::new();
    // Beyond the body of the end frame, 24 bytes behind its head, only zeros are lost.
    for length in (0..whole.len() - 128 + 64 + 24).step_by(41) {
        folder.file("t.ntt", &whole[..length]);
        let run = folder.run(&["dump", "t.ntt", "-q"]);
        assert_eq!(run.code, 5, "{length}: {}", run.err);
        assert!(run.err.lines().last().unwrap().contains(": cut at frame "), "{length}: {}", run.err);
    }
    // Without its end frame alone: all records, and a word.
    folder.file("t.ntt", &whole[..whole.len() - 128]);
    let run = folder.run(&["dump", "t.ntt", "-q"]);
    assert_eq!((run.code, run.out.lines().count()), (5, 6));
    let at = whole.len() - 128;
    assert_eq!(run.err, format!("nt-map: t.ntt: cut at frame 7, byte {at}: no end frame follows\n"));
}

/// M06 and M07: names that are long, or full of what tables use.
#[test]
fn names_survive_every_form() {
    let (a, b) = (format!("{}a", "x".repeat(19_999)), format!("{}b", "x".repeat(19_999)));
    let odd = "f<a,b>(int)::{lambda()#1} \"x\".kd";
    let mut trace = Trace::new(1);
    for name in [&a, &b, odd] {
        let kernel = trace.kernel(name, "block_sched", vec![block_sched()]);
        let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
        trace.records(launch, 0, &[record(10, 1, 0)]);
    }
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());

    let csv = folder.run(&["dump", "t.ntt", "--format", "csv"]).out;
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_reader(csv.as_bytes()).records().map(Result::unwrap).collect();
    let kernels: Vec<&str> = rows.iter().map(|row| &row[2]).collect();
    assert_eq!((kernels[2], &rows[2][10]), (odd, odd));
    assert_ne!(kernels[0], kernels[1]);
    assert!(kernels[0].starts_with(&"x".repeat(200)) && kernels[0].len() == 217, "{}", kernels[0]);

    let json = folder.run(&["dump", "t.ntt", "--format", "json"]).out;
    let objects: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.iter().map(|object| object["kernel"].as_str().unwrap()).collect::<Vec<_>>(), kernels);

    // The list has the whole names; what a line shows chooses its kernel.
    let list = folder.run(&["ls", "t.ntt"]).out;
    assert!(list.contains(&a) && list.contains(&b));
    let chosen = folder.run(&["ls", "t.ntt", "-k", &format!("={}", kernels[1])]).out;
    assert!(!chosen.contains(&a) && chosen.contains(&b));
    assert_eq!(folder.run(&["dump", "t.ntt", "-k", "lambda"]).out.lines().count(), 2);
}

/// M08: blocks without records, and choices that find nothing.
#[test]
fn nothing_is_told_as_nothing() {
    let mut trace = Trace::new(1);
    let fill = trace.kernel("fill_blocks", "block_sched", vec![block_sched()]);
    let launch = trace.launch(fill, [4, 1, 1], [32, 1, 1]);
    trace.records(launch, 0, &[ABSENT, record(1, 1, 0), record(1, 1, 0), record(1, 1, 0)]);
    let empty = trace.kernel("empty", "block_sched", vec![block_sched()]);
    let launch = trace.launch(empty, [1, 1, 1], [32, 1, 1]);
    trace.records(launch, 0, &[ABSENT]);
    let launch = trace.launch(empty, [0, 1, 1], [32, 1, 1]);
    trace.records(launch, 0, &[]);
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());
    let run = folder.run(&["dump", "t.ntt", "-k", "empty"]);
    assert_eq!(
        (run.code, run.out.lines().count(), run.err.as_str()),
        (0, 1, "nt-map: 1 units left no record\n")
    );
    let report = folder.run(&["report", "t.ntt"]);
    assert_eq!(report.code, 0, "{}", report.err);
    assert!(report.out.contains("launch 0: 1 warps without a record: 0\n"), "{}", report.out);
    assert!(report.out.contains("recorded    0 of 1 blocks a launch, 0 of 1 warps\n"), "{}", report.out);

    folder.refused(
        &["dump", "t.ntt", "-k", "=fill_block"],
        4,
        "nt-map: `-k` matched 0 of 2 kernels, nearest: `fill_blocks`\n",
    );
    folder.refused(
        &["report", "t.ntt", "-k", "zz"],
        4,
        "nt-map: `-k` matched 0 of 2 kernels, nearest: `empty`, `fill_blocks`\n",
    );
    folder.refused(
        &["dump", "t.ntt", "--map", "block_shed"],
        4,
        "nt-map: no map `block_shed` in the chosen kernels, nearest: `block_sched`\n",
    );
    folder.refused(
        &["ls", "t.ntt", "--launch", "7..9"],
        4,
        "nt-map: `--launch 7..9` has none of the 3 launches, which are numbered 0 to 2\n",
    );
    let mut trace = Trace::new(1);
    trace.kernel("k", "block_sched", vec![block_sched()]);
    folder.file("t.ntt", &trace.end());
    folder.refused(&["dump", "t.ntt"], 4, "nt-map: no launch was recorded\n");
}

/// M10: three kernels, one file of a newer version, one kernel of another schema.
#[test]
fn what_is_too_new_is_named_and_the_rest_is_read() {
    let of = |name: &str| {
        let mut trace = Trace::new(1);
        let kernel = trace.kernel(name, "block_sched", vec![block_sched()]);
        let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
        trace.records(launch, 0, &[record(10, 1, 0)]);
        trace
    };
    let mut new = of("c");
    new.frame(&nt_wire::frame::Kernel {
        id: 9,
        arch: 90,
        name: "d".to_owned(),
        manifest: b"{\"schema\":99,\"all\":\"new\"}".to_vec(),
    });
    let mut newer =
        nt_trace::ntt::FileWriter::new().frame(&Start { protocol: 99, pid: 1, ..Start::default() });
    newer.extend(of("x").end());
    let folder = Folder::new();
    folder.file("trace.ntt/a.ntt", &of("a").end());
    folder.file("trace.ntt/b.ntt", &newer);
    folder.file("trace.ntt/c.ntt", &new.end());
    let run = folder.run(&["dump"]);
    let kernels: Vec<&str> = run.out.lines().skip(1).map(|line| line.split('\t').nth(2).unwrap()).collect();
    assert_eq!((run.code, kernels), (5, vec!["a", "c"]));
    let mut words: Vec<&str> = run.err.lines().collect();
    words.sort_unstable();
    assert_eq!(
        words,
        [
            "nt-map: trace.ntt/b.ntt: protocol 99, this version reads 4: use the nt-map that came with the writer",
            "nt-map: trace.ntt/c.ntt: kernel `d`: the manifest has schema 99, this version reads 4: weave again",
        ]
    );
}

#[test]
fn data_that_does_not_fit_is_named() {
    let mut trace = Trace::new(1);
    let kernel = trace.kernel("k", "block_sched", vec![block_sched()]);
    let launch = trace.launch(kernel, [4, 1, 1], [32, 1, 1]);
    let at = trace.bytes.len();
    trace.data(launch, 0, 4, &[0; 48]);
    trace.data(launch, 1, 4, &[0; 256]);
    trace.data(99, 0, 4, &[0; 256]);
    let other = trace.bytes.len();
    trace.records(launch, 0, &[record(1, 2, 3); 3]);
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());
    let run = folder.run(&["dump", "t.ntt"]);
    assert_eq!((run.code, run.out.lines().count()), (5, 4));
    let expected = format!(
        "nt-map: t.ntt: frame at byte {at}: 48 bytes of data cannot hold 4 units of a map with 16 bytes a unit, room for 16\n\
         nt-map: t.ntt: frame 4 at byte {} belongs to a kernel or launch that is not in the file\n\
         nt-map: t.ntt: frame 5 at byte {} belongs to a kernel or launch that is not in the file\n\
         nt-map: t.ntt: frame at byte {other}: 3 units, and launch 0 has 4\n",
        at + 192,
        at + 192 + 384,
    );
    assert_eq!(run.err, expected);
}

#[test]
fn exit_codes_for_what_is_no_trace() {
    let folder = Folder::new();
    folder.file("noise.ntt", &[7; 1000]);
    folder.file("folder.ntt/readme", b"");
    folder.refused(&["dump", "noise.ntt"], 1, "nt-map: not a trace: noise.ntt\n");
    folder.refused(&["dump", "folder.ntt"], 4, "nt-map: no trace (.ntt file) in the folder\n");
    folder.refused(
        &["dump", "absent.ntt"],
        2,
        "nt-map: failed to read absent.ntt: No such file or directory (os error 2)\n",
    );
    for words in [&["dump", "-k", "("][..], &["dump", "--launch", "5..3"], &["draw"], &[]] {
        assert_eq!(folder.run(words).code, 2, "{words:?}");
    }
    folder.file("empty.ntt", b"");
    assert_eq!(folder.run(&["dump", "empty.ntt"]).code, 5);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut trace = Trace::new(1);
    let kernel = trace.kernel("k", "block_sched", vec![block_sched()]);
    for _ in 0..20 {
        let launch = trace.launch(kernel, [4096, 1, 1], [32, 1, 1]);
        trace.records(launch, 0, &vec![record(1, 2, 3); 4096]);
    }
    let folder = Folder::new();
    folder.file("t.ntt", &trace.end());
    let mut child =
        folder.command(&["dump", "t.ntt"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}

#[test]
fn joined_files_are_one() {
    let folder = Folder::new();
    folder.file("t.ntt", &[two_maps(), two_maps()].concat());
    let run = folder.run(&["dump", "t.ntt", "-q"]);
    assert_eq!((run.code, run.out.lines().count()), (0, 1 + 2 * 5));
}

#[test]
fn an_end_frame_ends_it() {
    let mut trace = Trace::new(1);
    trace.frame(&End::default());
    let folder = Folder::new();
    folder.file("t.ntt", &trace.bytes);
    assert_eq!(folder.run(&["coverage", "t.ntt"]).code, 0);
}
