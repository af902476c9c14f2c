//! The memory access timeline: counts in cells against counts by hand, and its forms.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;
mod synthetic;

use common::Folder;
use synthetic::Trace;
use synthetic::accesses::{ATOMIC, Device, GATHER, LOAD, STORE, STRIDED, Saved, Values, access, dmat, sites};
use synthetic::{block_sched, record};

const A: u64 = 0x7f00_0000_0000;
const B: u64 = 0x7f00_4000_0000;

/// Three pages in one range, one in another, from time 0 to 9.
fn events() -> Vec<Saved> {
    let mut words = [0; 32];
    (words[4], words[9]) = (0x1000, 0x2000);
    vec![
        // 32 lanes on one page, and 32 half and half on two.
        access(0, u32::MAX, LOAD, 0, A, Values::Nothing),
        access(0, u32::MAX, LOAD, 3, A + 0xfc0, Values::Nothing),
        access(1, u32::MAX, STORE, 3, A + 0x1000, Values::Nothing),
        // A lane on each of three.
        access(1, 1 | 1 << 4 | 1 << 9, GATHER, 7, A, Values::Words(words)),
        access(1, 0b11, ATOMIC, 9, B, Values::Nothing),
    ]
}

fn trace_of(events: &[Saved]) -> Vec<u8> {
    let mut trace = Trace::new(42);
    let kernel = trace.traced("_Z4copyPf", "dmat", vec![dmat(16)], &sites());
    let launch = trace.launch(kernel, [1, 1, 1], [64, 1, 1]);
    let mut device = Device::new(16, 2, 16 * 16);
    for event in events {
        device.save(event);
    }
    trace.stream(launch, 0, &device.parts(1));
    trace.end()
}

/// By hand: a column is a cycle, a row a page.
const CELLS: &str = "cycle_from\tcycle_to\taddress_from\taddress_to\tpages\taccesses
0\t1\t0x7f0000000000\t0x7f0000001000\t1\t32
3\t4\t0x7f0000000000\t0x7f0000001000\t1\t16
7\t8\t0x7f0000000000\t0x7f0000001000\t1\t1
3\t4\t0x7f0000001000\t0x7f0000002000\t1\t48
7\t8\t0x7f0000001000\t0x7f0000002000\t1\t1
7\t8\t0x7f0000002000\t0x7f0000003000\t1\t1
9\t10\t0x7f0040000000\t0x7f0040001000\t1\t2
";

#[test]
fn cells_are_counts() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace_of(&events()));
    folder.check(&["dmat", "t.ntt", "-q"], CELLS);
    // Five columns of two cycles, one row a range: pages of a row are told, and so is where they end.
    folder.check(
        &["dmat", "t.ntt", "-q", "--bins", "5x2"],
        "cycle_from\tcycle_to\taddress_from\taddress_to\tpages\taccesses
0\t2\t0x7f0000000000\t0x7f0000003000\t3\t32
2\t4\t0x7f0000000000\t0x7f0000003000\t3\t64
6\t8\t0x7f0000000000\t0x7f0000003000\t3\t3
8\t10\t0x7f0040000000\t0x7f0040001000\t1\t2
",
    );
    folder.check(
        &["dmat", "t.ntt", "-q", "--page", "2MiB", "--only", "store,atomic"],
        "cycle_from\tcycle_to\taddress_from\taddress_to\tpages\taccesses
3\t4\t0x7f0000000000\t0x7f0000200000\t1\t32
9\t10\t0x7f0040000000\t0x7f0040200000\t1\t2
",
    );
}

#[test]
fn the_order_of_events_does_not_matter() {
    let folder = Folder::new();
    let mut events = events();
    for turn in 0..events.len() {
        events.rotate_left(1);
        if turn % 2 == 1 {
            events.swap(0, 3);
        }
        folder.file("t.ntt", &trace_of(&events));
        folder.check(&["dmat", "t.ntt", "-q"], CELLS);
    }
}

/// The picture, as it was looked at: `BLESS=1` writes it anew.
#[test]
fn a_drawing_of_a_few_accesses() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace_of(&events()));
    folder.check(&["dmat", "t.ntt", "-o", "x.svg"], "");
    let drawn = std::fs::read_to_string(folder.0.path().join("x.svg")).unwrap();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/dmat.svg");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(golden, &drawn).unwrap();
    }
    assert_eq!(drawn, std::fs::read_to_string(golden).unwrap());
    // The cells again, from the drawing: areas of all runs are the cells that are not empty.
    let paths = drawn.lines().filter(|line| line.starts_with("<path fill=\"#"));
    assert_eq!(paths.map(|line| line.matches('M').count()).sum::<usize>(), 7);
    for stated in ["pages of 4 KiB", "a column: 1 cycle", "a row: 1 touched page", "log scale", "own start"] {
        assert!(drawn.contains(stated), "{stated}");
    }
}

/// Of 101 accesses 96 + 2 are proved, 34 of them and 2 with a condition; three are stored one by one.
#[test]
fn a_picture_says_what_its_addresses_rest_on() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace_of(&events()));
    let how = "addresses of accesses: 98 by proof, 0 by a stride found as they ran, 3 one by one";
    let granted = [
        "34 of those by proof assume that 32-bit index arithmetic does not overflow within a warp; not checked",
        "2 of those by proof assume that parted lanes meet only where their ways join; not checked",
    ];
    for form in ["svg", "html"] {
        let run = folder.run(&["dmat", "t.ntt", "--format", form]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{form}");
        for line in [how, granted[0], granted[1]] {
            assert!(run.out.contains(line), "{form}: {line}");
        }
    }
    let run = folder.run(&["dmat", "t.ntt"]);
    assert_eq!(run.err, format!("nt-map: {}\nnt-map: {}\n", granted[0], granted[1]));
}

#[test]
fn a_picture_has_the_colours_of_its_cells() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace_of(&events()));
    folder.check(&["dmat", "t.ntt", "-o", "x.png"], "");
    let file = std::fs::File::open(folder.0.path().join("x.png")).unwrap();
    let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let at = |x: u32, y: u32| {
        let at = (y * info.width + x) as usize * 3;
        [pixels[at], pixels[at + 1], pixels[at + 2]]
    };
    // 10 columns of 100 pixels from 250 on; 4 rows of 40 from 108 on, 6 between the upper one and the rest.
    let cell = |column: u32, row_from_top: u32| {
        at(250 + column * 100 + 50, 108 + row_from_top * 40 + if row_from_top > 0 { 6 } else { 0 } + 20)
    };
    let (one, most, none) = ([0xfd, 0xe7, 0x25], [0x44, 0x01, 0x54], [0xf6, 0xf6, 0xf4]);
    assert_eq!([cell(7, 1), cell(7, 2), cell(7, 3)], [one; 3]);
    assert_eq!((cell(3, 2), cell(0, 1), cell(9, 1)), (most, none, none));
    assert!(![one, most, none].contains(&cell(9, 0)));
}

#[test]
fn a_page_needs_nothing_else() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace_of(&events()));
    folder.check(&["dmat", "t.ntt", "-o", "x.html"], "");
    let page = std::fs::read_to_string(folder.0.path().join("x.html")).unwrap();
    for outside in ["http", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["cells"], serde_json::json!([[1, 32, 3, 16, 4, 1], [4, 48, 4, 1], [8, 1], [10, 2]]));
    assert_eq!(data["rows"][3], serde_json::json!(["0x7f0040000000", "0x7f0040001000", 1]));
    assert_eq!(data["ranges"][0]["size"], "12 KiB, 3 pages");
    assert_eq!(data["most"], 48);
}

#[test]
fn names_do_not_end_a_script() {
    let folder = Folder::new();
    let mut trace = Trace::new(1);
    let kernel = trace.traced("k</script><b>&", "dmat", vec![dmat(16)], &sites());
    let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
    let mut device = Device::new(16, 1, 16);
    device.save(&access(0, 1, LOAD, 0, 0, Values::Nothing));
    trace.stream(launch, 0, &device.parts(1));
    folder.file("t.ntt", &trace.end());
    for form in ["html", "svg"] {
        let drawn = folder.run(&["dmat", "t.ntt", "--format", form]).out;
        assert!(
            !drawn.contains("</script><b>") && drawn.contains("k&lt;/script&gt;&lt;b&gt;&amp;"),
            "{form}"
        );
    }
    // One access at address 0 and time 0.
    folder.check(
        &["dmat", "t.ntt"],
        "cycle_from\tcycle_to\taddress_from\taddress_to\tpages\taccesses\n0\t1\t0x0\t0x1000\t1\t1\n",
    );
}

#[test]
fn one_launch_is_drawn_or_those_that_are_chosen() {
    let folder = Folder::new();
    let mut trace = Trace::new(1);
    let kernel = trace.traced("k", "dmat", vec![dmat(16)], &sites());
    for page in 0..3 {
        let launch = trace.launch(kernel, [1, 1, 1], [32, 1, 1]);
        let mut device = Device::new(16, 1, 16);
        device.save(&access(0, 1, LOAD, 5, A + page * 0x1000, Values::Nothing));
        trace.stream(launch, 0, &device.parts(1));
    }
    folder.file("t.ntt", &trace.end());
    let run = folder.run(&["dmat", "t.ntt"]);
    assert_eq!((run.code, run.out.lines().count()), (0, 2));
    assert_eq!(
        run.err,
        "nt-map: launch 0 is drawn, the first of 3: `--launch` chooses another, or several together\n"
    );
    let run = folder.run(&["dmat", "t.ntt", "--launch", "1.."]);
    assert_eq!((run.code, run.out.lines().count(), run.err.as_str()), (0, 3, ""));
}

/// Where another map of the probe tells when warps started, they stand where they ran.
#[test]
fn warps_are_placed_by_their_starts_where_these_are_told() {
    let folder = Folder::new();
    let mut trace = Trace::new(1);
    let kernel = trace.traced("k", "both", vec![dmat(16), block_sched()], &sites());
    let launch = trace.launch(kernel, [3, 1, 1], [32, 1, 1]);
    let mut device = Device::new(16, 3, 48);
    for warp in 0..3 {
        device.save(&access(warp, 1, STRIDED, 5, A, Values::Stride(0)));
    }
    trace.stream(launch, 0, &device.parts(1));
    // Two on one multiprocessor, 100 cycles apart; the third alone on another, whose clock has another zero.
    trace.records(launch, 1, &[record(7_000, 50, 0), record(7_100, 50, 0), record(90, 50, 3)]);
    folder.file("t.ntt", &trace.end());
    folder.check(
        &["dmat", "t.ntt"],
        "cycle_from\tcycle_to\taddress_from\taddress_to\tpages\taccesses\n5\t6\t0x7f0000000000\t0x7f0000001000\t1\t2\n105\t106\t0x7f0000000000\t0x7f0000001000\t1\t1\n",
    );
    let drawn = folder.run(&["dmat", "t.ntt", "--format", "svg"]).out;
    assert!(drawn.contains("cycles since the first warp of the same multiprocessor started"));
}

/// A picture says of itself what is missing, and that 32 bits of time are too few for 3 s at 2 GHz.
#[test]
fn what_is_wrong_with_a_picture_stands_in_it() {
    let folder = Folder::new();
    let mut trace = Trace::new(1);
    let kernel = trace.traced("k", "dmat", vec![dmat(16)], &sites());
    trace.launch_as(&nt_wire::frame::Launch {
        kernel,
        grid: [1, 1, 1],
        block: [32, 1, 1],
        launched_ns: 1,
        complete_ns: 3_000_000_001,
        clock_khz: 2_000_000,
        ..nt_wire::frame::Launch::default()
    });
    let mut device = Device::new(16, 1, 16);
    for at in 0..20 {
        device.save(&access(0, 1, LOAD, at, A, Values::Nothing));
    }
    trace.stream(0, 0, &device.parts(1));
    folder.file("t.ntt", &trace.end());
    let alarm = "5 events were dropped and are missing here; times may have wrapped, the launch was long";
    for form in ["svg", "html", "tsv"] {
        let run = folder.run(&["dmat", "t.ntt", "--format", form]);
        assert_eq!((run.code, run.err), (0, format!("nt-map: {alarm}\n")), "{form}");
        assert!(run.out.contains(alarm) || form == "tsv", "{form}");
    }
}

#[test]
fn what_cannot_be_drawn_is_named() {
    let folder = Folder::new();
    folder.file("t.ntt", &trace_of(&events()));
    let mut other = Trace::new(1);
    let kernel = other.kernel("fill", "block_sched", vec![block_sched()]);
    let launch = other.launch(kernel, [1, 1, 1], [32, 1, 1]);
    other.records(launch, 0, &[record(1, 2, 3)]);
    folder.file("b.ntt", &other.end());
    folder.refused(
        &["dmat", "b.ntt"],
        4,
        "nt-map: no stream with a column `at` and addresses of lanes is chosen: `nt-run -p dmat` makes one\n",
    );
    folder.refused(
        &["dmat", "t.ntt", "--only", "lod"],
        4,
        "nt-map: no site of class `lod`, there are: `atomic`, `load`, `store`\n",
    );
    folder.refused(
        &["dmat", "t.ntt", "-o", "x.gif"],
        2,
        "nt-map: x.gif does not end in .svg, .png, .html or .tsv: say `--format`\n",
    );
    folder.refused(
        &["dmat", "t.ntt", "--time", "when"],
        4,
        "nt-map: no stream with a column `when` and addresses of lanes is chosen: `nt-run -p dmat` makes one\n",
    );
}
