//! What a probed launch is made of: arguments, context block, segments, frames.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

mod common;

use common::parent::MANIFEST;
use common::{Fate, Run, Scene};
use nt_wire::PROTOCOL;
use nt_wire::message::{FLAT_BLOCK, FLAT_GRID, Fill, MapShape, Settings, Slot, Twin, Unit, WHOLE_ROWS};

fn run(life: &str, launches: u32, fault: &str, fate: Fate) -> Run {
    let mut scene = Scene::with(fate);
    scene.fault = fault.into();
    let app = scene.app();
    let run = scene.run(&app, &["dlsym", life, &launches.to_string()]);
    run.ok();
    run
}

/// A line of the driver's log, a field by its name.
fn field<'l>(line: &'l [String], name: &str) -> &'l str {
    line.iter().find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

fn twins(run: &Run) -> Vec<&Vec<String>> {
    let twin = |line: &&Vec<String>| line[0] == "launch" && field(line, "params").split(',').count() == 3;
    run.log.iter().filter(twin).collect()
}

#[test]
fn the_twin_gets_the_arguments_and_its_context() {
    let run = run("one", 3, "", Fate::default());
    let trace = run.trace();
    for (i, (line, launch)) in twins(&run).iter().zip(&trace.launches).enumerate() {
        assert_eq!(field(line, "grid"), "4,2,1");
        assert_eq!(field(line, "block"), "128,1,1");
        let params: Vec<&str> = field(line, "params").split(',').collect();
        // The program's second argument counts up from 1000.
        assert_eq!(u32::from_str_radix(params[1], 16).unwrap().swap_bytes(), 1000 + i as u32);
        let words: Vec<u64> = params[2]
            .as_bytes()
            .chunks(16)
            .map(|word| u64::from_str_radix(std::str::from_utf8(word).unwrap(), 16).unwrap().swap_bytes())
            .collect();
        // Zero, base, capacity (8 blocks, rounded up to 16), number of the launch.
        let [zero, base, capacity, number] = words[..] else { panic!("{words:?}") };
        assert_eq!((zero, capacity, number), (0, 16, i as u64));
        assert!(base != 0 && base % 256 == 0);
        assert_eq!((launch.number, launch.kernel), (number, trace.kernels[0].id));
        assert_eq!((launch.grid, launch.block, launch.shared), ([4, 2, 1], [128, 1, 1], 0));
        assert_eq!((launch.sms, launch.clock_khz, launch.device), (132, 1_980_000, 0));
        assert!(launch.launched_ns <= launch.complete_ns && launch.context != 0);
    }
    assert_eq!(twins(&run).len(), 3);
}

#[test]
fn the_trace_says_who_wrote_it_and_what_a_kernel_is() {
    let run = run("one", 1, "", Fate::default());
    let trace = run.trace();
    let start = trace.start.as_ref().unwrap();
    assert_eq!(start.protocol, PROTOCOL);
    assert_eq!(start.command[1..], ["dlsym", "one", "1"]);
    assert!(start.exe.ends_with("/app") && start.version.starts_with("nt ") && !start.boot.is_empty());
    let hello = &run.parent.as_ref().unwrap().hellos[0];
    assert_eq!((hello.pid, hello.start), (start.pid, start.start));
    let [kernel] = &trace.kernels[..] else { panic!("{:?}", trace.kernels) };
    assert_eq!((kernel.name.as_str(), kernel.arch, kernel.manifest.as_slice()), ("chosen", 90, MANIFEST));
}

/// The driver's side of this writes a number of its own into each record, and looks whether it was zero.
#[test]
fn segments_are_handed_out_clean_and_come_home_whole() {
    let run = run("threads", 200, "scribble", Fate::default());
    assert_eq!((run.logged("dirty"), run.logged("wild")), (0, 0));
    let trace = run.trace();
    assert_eq!(trace.count("chosen"), (1600, 1600, 1600));
    let mut numbers = Vec::new();
    for (fixed, data) in &trace.data {
        assert_eq!((fixed.map, fixed.units, fixed.capacity, fixed.bytes), (0, 8, 16, 256));
        let record = &data[..16];
        assert_eq!(record[..8], 0x6e74u64.to_le_bytes());
        assert!(data.chunks(16).all(|other| other == record), "records of different launches in one segment");
        numbers.push(u64::from_le_bytes(record[8..].try_into().unwrap()));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..1600).collect::<Vec<_>>());
}

/// Kernels that take their time: what is copied too early is zero, what is handed out too early is dirty.
#[test]
fn nothing_is_copied_or_reused_before_its_time() {
    for fault in ["scribble,delay=2", "scribble,delay=2,no-write-value"] {
        let run = run("threads", 20, fault, Fate::default());
        assert_eq!((run.logged("dirty"), run.logged("wild")), (0, 0), "{fault}");
        assert_eq!(run.trace().count("chosen"), (160, 160, 160), "{fault}");
        for (_, data) in &run.trace().data {
            assert_eq!(data[..8], 0x6e74u64.to_le_bytes(), "{fault}");
        }
    }
}

#[test]
fn launches_that_nobody_waits_for_are_collected_at_the_end() {
    let run = run("no-wait", 30, "scribble,delay=3", Fate::default());
    assert_eq!(run.trace().count("chosen"), (30, 30, 30));
}

#[test]
fn extended_launches_keep_their_config() {
    let run = run("extended", 5, "", Fate::default());
    assert_eq!(run.trace().count("chosen"), (5, 5, 5));
    assert_eq!((run.launched("chosen"), run.logged("attributes")), ((0, 5), 5));
}

/// What holds of the launches of `shapes`, in their order.
const SHAPES: [u8; 5] = [
    FLAT_GRID | FLAT_BLOCK | WHOLE_ROWS,
    FLAT_BLOCK | WHOLE_ROWS,
    FLAT_GRID | WHOLE_ROWS,
    FLAT_GRID | FLAT_BLOCK,
    0,
];

/// What the twins of a run of `shapes` rely on, launch by launch: of twins whose assumptions differ, each has a frame.
fn relied_on(run: &Run) -> Vec<u8> {
    let needs = &run.parent.as_ref().unwrap().needs;
    assert_eq!(needs.iter().map(|need| need.holds).collect::<Vec<_>>(), SHAPES);
    let mut relied = Vec::new();
    for launch in &run.trace().launches {
        let manifest =
            &run.trace().kernels.iter().find(|kernel| kernel.id == launch.kernel).unwrap().manifest;
        relied.push(manifest[0]);
    }
    relied
}

fn shapes(relies: u8, refuse: Option<u8>) -> Run {
    let bend = |twin: &mut Twin| twin.manifest = vec![twin.assumes];
    let refuse_where = refuse;
    let refuse = refuse.map(|_| "too many registers");
    run("shapes", 2, "", Fate { relies, bend, refuse, refuse_where, ..Fate::default() })
}

#[test]
fn launches_run_twins_that_rely_on_what_holds() {
    let run = shapes(FLAT_GRID | FLAT_BLOCK | WHOLE_ROWS, None);
    assert_eq!(relied_on(&run), [SHAPES, SHAPES].concat());
    assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((10, 10, 10), (0, 10)));
}

/// Five answers, of which three rely on one row of blocks: the same twin.
#[test]
fn twins_that_rely_on_the_same_are_one() {
    let run = shapes(FLAT_GRID, None);
    assert_eq!(relied_on(&run), [1, 0, 1, 1, 0, 1, 0, 1, 1, 0]);
    assert_eq!((run.trace().kernels.len(), run.logged("load")), (2, 3));
    let run = shapes(0, None);
    assert_eq!(relied_on(&run), [0; 10]);
    assert_eq!((run.trace().kernels.len(), run.logged("load")), (1, 2));
}

/// Where none is to be had for a shape, one that relies on less does; without such a one, the original.
#[test]
fn a_shape_without_a_twin_of_its_own() {
    let run = shapes(FLAT_GRID, Some(FLAT_GRID | FLAT_BLOCK));
    assert_eq!(relied_on(&run), [1, 0, 1, 1, 0, 1, 0, 1, 1, 0]);
    let run = shapes(FLAT_GRID | FLAT_BLOCK | WHOLE_ROWS, Some(0));
    assert_eq!(relied_on(&run), [&SHAPES[..4], &SHAPES[..4]].concat());
    assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((10, 8, 8), (2, 8)));
    assert_eq!(run.trace().reason("chosen"), "2 of a shape that none of its twins is for");
}

#[test]
fn a_twin_that_relies_on_what_does_not_hold() {
    let bend = |twin: &mut Twin| twin.assumes = WHOLE_ROWS;
    let run = run("shapes", 2, "", Fate { bend, ..Fate::default() });
    // The fourth of five has a warp that is not whole, the last one rows that are not.
    assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((10, 6, 6), (4, 6)));
}

#[test]
fn packed_parameters_reach_the_twin() {
    let run = run("packed", 5, "", Fate::default());
    assert_eq!(run.trace().count("chosen"), (5, 5, 5));
    for line in twins(&run) {
        assert_eq!(field(line, "params").split(',').nth(1), Some("07000000"));
    }
}

#[test]
fn a_kernel_without_parameters() {
    let run = run("bare", 5, "", Fate::default());
    assert_eq!((run.trace().count("bare"), run.launched("bare")), ((5, 5, 5), (5, 0)));
    assert!(run.log.iter().filter(|line| line[0] == "launch").all(|line| field(line, "params").len() == 64));
}

#[test]
fn kernels_of_libraries() {
    let run = run("library", 5, "", Fate::default());
    assert_eq!(run.trace().count("chosen"), (5, 5, 5));
}

#[test]
fn other_handles_of_the_same_kernels() {
    let run_of = |life| run(life, 0, "", Fate::default());
    assert_eq!(run_of("library-module").trace().count("chosen"), (2, 2, 2));
    // These handles were never seen given out: the driver is asked whose they are.
    let enumerated = run_of("enumerate");
    let counts = ["chosen", "other", "bare", ""].map(|kernel| enumerated.trace().count(kernel));
    assert_eq!(counts, [(1, 1, 1), (1, 0, 0), (1, 1, 1), (0, 0, 0)]);
}

/// What the program tells the driver's assembler, the parent's is told, and the driver again where it gets PTX. The same
/// image with other options is another one.
#[test]
fn options_of_the_assembler_are_passed_on() {
    let own = |line: &str| line.starts_with("0=32 7=1 5=");
    for (life, fault, others) in
        [("options-library", "", &["14=1", "14=1"][..]), ("options", "no-libraries", &[][..])]
    {
        let run = run(life, 0, fault, Fate::default());
        let all = 1 + others.len() as u64 / 2 + 1;
        assert_eq!(run.trace().count("chosen"), (all, all, all), "{life}");
        let words = ["", "-maxrregcount=32 -O1", "-dlcm=cg"];
        assert_eq!(run.parent.as_ref().unwrap().options, words[..all as usize], "{life}");
        let logged: Vec<String> =
            run.log.iter().filter(|line| line[0] == "jit").map(|line| line[2..].join(" ")).collect();
        assert!(own(&logged[0]), "{logged:?}");
        assert_eq!(logged[1], "0=32 7=1");
        assert_eq!(logged[2..], *others, "{life}");
    }
}

/// Two devices of one process: twins are shared where their architecture is the same, else each has its own.
#[test]
fn devices_of_several_architectures() {
    let archs = |run: &Run| -> Vec<u32> { run.trace().kernels.iter().map(|kernel| kernel.arch).collect() };
    for (second, expected) in [("second=90", &[90][..]), ("second=80,delay=1", &[90, 80])] {
        let run = run("devices", 10, second, Fate::default());
        assert_eq!(run.trace().count("chosen"), (20, 20, 20), "{second}");
        assert_eq!(archs(&run), expected, "{second}");
    }
    // One of them has no twin: whichever is first, the other's launches are probed.
    for arch in [90, 80] {
        let fate = Fate { refuse: Some("no PTX for it"), refuse_arch: Some(arch), ..Fate::default() };
        let run = run("devices", 10, "second=80", fate);
        assert_eq!(run.trace().count("chosen"), (20, 10, 10), "{arch}");
        let reason = format!("10 on an architecture that it has no twin for; on sm_{arch}: no PTX for it");
        assert_eq!(run.trace().reason("chosen"), reason);
        // Asked once.
        assert_eq!(run.parent.as_ref().unwrap().needs.len(), 2);
    }
    // Of neither: nothing is asked again.
    let fate = Fate { refuse: Some("it cannot be"), ..Fate::default() };
    let run = run("devices", 10, "second=80", fate);
    assert_eq!((run.trace().count("chosen"), run.parent.as_ref().unwrap().needs.len()), ((20, 0, 0), 2));
}

/// Nodes that a program puts into a graph by itself: counted by the kernel's name.
#[test]
fn kernels_as_nodes_of_graphs() {
    let run = run("nodes", 3, "", Fate::default());
    assert_eq!(run.trace().count("chosen"), (3 + 4, 3, 3));
    assert_eq!(run.trace().reason("chosen"), "4 put into a graph as a node");
    assert_eq!(run.trace().count("other"), (3 + 1, 0, 0));
    assert_eq!(run.trace().reason("other"), "not selected");
}

/// Blocks that are all resident may wait for each other; a probe's registers must not change that.
#[test]
fn grids_that_would_no_longer_be_resident() {
    let run_of = |fault| run("resident", 5, fault, Fate::default());
    assert_eq!(run_of("").trace().count("chosen"), (5, 5, 5));
    assert_eq!(run_of("twin-blocks=8").trace().count("chosen"), (5, 5, 5));
    let run = run_of("twin-blocks=7");
    assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((5, 0, 0), (5, 0)));
    assert_eq!(run.trace().reason("chosen"), "5 whose grid would no longer be resident at once");
}

#[test]
fn without_libraries_the_twin_is_a_module_a_context() {
    // The program's own loads, and one of the twin in each context that launches it.
    for (life, each, loads) in [("one", 20, 1 + 1), ("contexts", 60, 4 + 3)] {
        let run = run(life, 20, "no-libraries,scribble", Fate::default());
        assert_eq!(run.trace().count("chosen"), (each, each, each), "{life}");
        assert_eq!(run.logged("load"), loads, "{life}");
    }
}

#[test]
fn modules_come_and_go() {
    let run = run("reload", 0, "", Fate::default());
    assert_eq!((run.trace().count("chosen"), run.trace().count("other")), ((2, 2, 2), (3, 0, 0)));
    assert_eq!(run.trace().count(""), (5, 0, 0));
    assert_eq!((run.launched("chosen"), run.launched("other")), ((0, 2), (3, 0)));
    assert_eq!(run.parent.as_ref().unwrap().needs.len(), 1);
}

#[test]
fn what_is_set_on_the_original_holds_for_the_twin() {
    let run = run("shared", 0, "", Fate::default());
    assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((2, 2, 2), (0, 2)));
}

/// A capture must stay whole, though a pool is made and a collector starts in the middle of it.
#[test]
fn captured_launches_pass_through() {
    let run = run("capture", 10, "scribble", Fate::default());
    assert_eq!(run.logged("broken-capture"), 0);
    assert_eq!(run.trace().count("chosen"), (13, 10, 10));
    assert_eq!(run.trace().reason("chosen"), "3 captured into a graph");
}

#[test]
fn contexts_are_collected_before_they_end() {
    let run = run("contexts", 20, "scribble,delay=1", Fate::default());
    assert_eq!((run.logged("dirty"), run.logged("wild")), (0, 0));
    assert_eq!(run.trace().count("chosen"), (60, 60, 60));
    assert_eq!(run.trace().notes, Vec::<String>::new());
}

#[test]
fn streams_that_are_gone_when_their_launches_are_collected() {
    let run = run("streams", 100, "scribble,delay=1,uneven", Fate::default());
    assert_eq!(run.trace().count("chosen"), (100, 100, 100));
    assert!(run.trace().data.iter().all(|(_, data)| data[..8] == 0x6e74u64.to_le_bytes()));
}

fn settings(pool_bytes: u64, wait_ms: u32) -> Settings {
    Settings { protocol: PROTOCOL, wait_ms, exit_ms: 5000, pool_bytes, launch_bytes: 0 }
}

/// 2^20 blocks save 16 MiB: half of a pool of 32.
#[test]
fn segments_larger_than_a_stage() {
    let run = run("large", 3, "scribble", Fate { settings: settings(32 << 20, 5000), ..Fate::default() });
    assert_eq!((run.logged("dirty"), run.logged("wild")), (0, 0));
    assert_eq!(run.trace().count("chosen"), (3, 3, 3));
    for (fixed, data) in &run.trace().data {
        assert_eq!((fixed.units, fixed.bytes), (1 << 20, 16 << 20));
        assert!(data.chunks(16).all(|record| record[..8] == 0x6e74u64.to_le_bytes()));
    }
}

#[test]
fn segments_larger_than_the_pool() {
    let run = run("large", 3, "", Fate { settings: settings(16 << 20, 1000), ..Fate::default() });
    assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((3, 0, 0), (3, 0)));
    assert_eq!(
        run.trace().reason("chosen"),
        "3 whose maps take more than half of the pool; --pool makes it larger"
    );
}

/// Nothing free: launches wait, or do not, and none is lost from the count.
#[test]
fn back_pressure() {
    let fate = |wait_ms| Fate { settings: settings(1 << 20, wait_ms), ..Fate::default() };
    // 256 segments of 4 KiB, kernels of 1 ms.
    let patient = run("no-wait", 400, "delay=1", fate(5000));
    assert_eq!(patient.trace().count("chosen"), (400, 400, 400));
    let hasty = run("no-wait", 400, "delay=1", fate(0));
    let (launches, probed, collected) = hasty.trace().count("chosen");
    assert_eq!((launches, collected), (400, probed));
    assert!((200..400).contains(&probed), "{probed}");
    let reason = format!("{} without a free segment in time", 400 - probed);
    assert_eq!(hasty.trace().reason("chosen"), reason);
    assert_eq!(hasty.launched("chosen"), (400 - probed as usize, probed as usize));
}

/// Two maps, of warps and of threads: the block's arithmetic against the manual's.
#[test]
fn several_maps_lie_one_behind_the_other() {
    let bend = |twin: &mut Twin| {
        let map = |unit, stride| MapShape::records(unit, stride);
        twin.maps = vec![map(Unit::Warp, 16), map(Unit::Thread, 5)];
        twin.slots = vec![
            Slot { offset: 0, size: 8, fill: Fill::Base(0) },
            Slot { offset: 8, size: 8, fill: Fill::Capacity(0) },
            Slot { offset: 16, size: 8, fill: Fill::Base(1) },
            Slot { offset: 24, size: 8, fill: Fill::Capacity(1) },
        ];
    };
    let run = run("one", 1, "", Fate { bend, ..Fate::default() });
    // 8 blocks of 128 threads: 32 warps, 1024 threads.
    let data: Vec<_> = run.trace().data.iter().map(|(d, _)| (d.map, d.units, d.capacity, d.bytes)).collect();
    assert_eq!(data, [(0, 32, 32, 512), (1, 1024, 1024, 5120)]);
    let context = field(twins(&run)[0], "params").split(',').nth(2).unwrap();
    let word = |i: usize| u64::from_str_radix(&context[16 * i..16 * i + 16], 16).unwrap().swap_bytes();
    assert_eq!((word(1), word(3), word(2) - word(0)), (32, 1024, 512));
}
