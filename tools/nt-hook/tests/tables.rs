//! Maps that outlive launches: one buffer a twin and context, fetched when context, module or process end.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

mod common;

use common::{Fate, Run, Scene, Trace};
use nt_wire::frame::Data;
use nt_wire::message::{Fill, MapShape, Slot, Twin, Unit};

/// A cell of 8 bytes a multiprocessor, to each of which the stub's `add` adds one a launch.
fn table(twin: &mut Twin) {
    twin.maps = vec![MapShape { persistent: true, ..MapShape::records(Unit::Sm, 8) }];
}

/// The same behind a map of launches.
fn map_and_table(twin: &mut Twin) {
    twin.maps.push(MapShape { persistent: true, ..MapShape::records(Unit::Sm, 8) });
    twin.slots = vec![
        Slot { offset: 0, size: 8, fill: Fill::Base(0) },
        Slot { offset: 8, size: 8, fill: Fill::Base(1) },
        Slot { offset: 16, size: 8, fill: Fill::Capacity(1) },
        Slot { offset: 24, size: 8, fill: Fill::Capacity(0) },
    ];
}

fn run(way: &str, life: &str, launches: u32, fault: &str, bend: fn(&mut Twin)) -> Run {
    let mut scene = Scene::with(Fate { bend, ..Fate::default() });
    scene.fault = fault.into();
    let app = scene.app();
    let run = scene.run(&app, &[way, life, &launches.to_string()]);
    run.ok();
    run
}

/// What the frames of persistent maps hold: in each frame all cells are the same.
fn counted(trace: &Trace) -> Vec<u64> {
    let tables = trace.data.iter().filter(|(fixed, _)| fixed.launch == Data::PERSISTENT);
    let cells = tables.map(|(fixed, data)| {
        // 132 multiprocessors, rounded up to a multiple of 16.
        assert_eq!((fixed.units, fixed.capacity, fixed.bytes), (132, 144, 144 * 8));
        assert_eq!((fixed.kernel, fixed.device), (trace.kernels[0].id, 0));
        assert_ne!(fixed.context, 0);
        assert!(data.chunks(8).all(|cell| cell == &data[..8]));
        u64::from_le_bytes(data[..8].try_into().unwrap())
    });
    cells.collect()
}

/// Lives, each with what its frames hold.
fn check(way: &str, life: &str, launches: u32, fault: &str, expected: &[u64]) -> Run {
    let run = run(way, life, launches, &format!("add,{fault}"), table);
    let trace = run.trace();
    let all = expected.iter().sum();
    assert_eq!(counted(trace), expected, "{way} {life} {fault}");
    assert_eq!((run.logged("wild"), run.logged("broken-capture")), (0, 0));
    let (seen, probed, collected) = trace.count("chosen");
    assert_eq!((probed, collected), (all, all), "{way} {life} {fault}");
    assert!(seen >= probed);
    assert_eq!((trace.launches.len(), trace.kernels.len()), (0, 1));
    assert_eq!(trace.notes, Vec::<String>::new());
    assert!(trace.end.is_some());
    run
}

#[test]
fn one_frame_says_what_all_launches_have_counted() {
    let run = check("dlsym", "one", 20, "", &[20]);
    assert_eq!(run.trace().count("chosen"), (20, 20, 20));
    assert_eq!(run.launched("chosen"), (0, 20));
}

#[test]
fn every_way_out() {
    for life in ["_exit", "_Exit", "quick_exit"] {
        check("dlsym", life, 20, "", &[20]);
    }
    let run = run("dlsym", "fork-first", 20, "add", table);
    assert_eq!(run.traces.iter().map(counted).collect::<Vec<_>>(), [[20], [20]]);
}

/// What is copied too early lacks launches.
#[test]
fn launches_in_flight_are_waited_for() {
    check("dlsym", "no-wait", 30, "delay=3", &[30]);
    check("dlsym", "threads", 50, "delay=1,uneven", &[400]);
    check("dlsym", "no-wait", 30, "delay=1,no-write-value,no-libraries", &[30]);
}

/// A stream that the program destroys has to be waited for all the same.
#[test]
fn streams_that_are_gone() {
    check("dlsym", "streams", 100, "delay=1,uneven", &[100]);
}

/// These streams have no names that another thread could use.
#[test]
fn default_streams_of_threads() {
    check("proc-ptsz", "no-wait", 20, "delay=1", &[20]);
}

#[test]
fn a_frame_a_context() {
    check("dlsym", "contexts", 20, "delay=1", &[20, 20, 20]);
    check("dlsym", "contexts", 20, "no-libraries", &[20, 20, 20]);
}

#[test]
fn a_frame_a_module() {
    check("dlsym", "reload", 0, "", &[1, 1]);
    check("dlsym", "library-reload", 3, "delay=2", &[2, 2, 2]);
}

#[test]
fn captures_stay_whole() {
    let run = check("dlsym", "capture", 10, "", &[10]);
    assert_eq!(run.trace().reason("chosen"), "3 captured into a graph");
    check("dlsym", "unload-captured", 10, "delay=1", &[30]);
}

/// A launch is collected when its own map and its table are.
#[test]
fn a_map_and_a_table() {
    let mixed = run("dlsym", "threads", 20, "add,delay=1", map_and_table);
    let trace = mixed.trace();
    assert_eq!((trace.count("chosen"), trace.launches.len()), ((160, 160, 160), 160));
    let tables: Vec<_> = trace.data.iter().filter(|(fixed, _)| fixed.launch == Data::PERSISTENT).collect();
    let [(fixed, data)] = &tables[..] else { panic!("{} frames", tables.len()) };
    assert_eq!((fixed.map, data[..8].to_vec()), (1, 160u64.to_le_bytes().to_vec()));
    assert!(trace.data.iter().all(|(fixed, _)| fixed.launch == Data::PERSISTENT || fixed.map == 0));
    let gone = run("dlsym", "reload", 0, "add", map_and_table);
    assert_eq!((gone.trace().count("chosen"), gone.trace().launches.len()), ((2, 2, 2), 2));
}

/// The buffer and its size are in each launch's context block.
#[test]
fn all_launches_count_in_one_buffer() {
    let run = run("dlsym", "one", 5, "add", table);
    let lines = run.log.iter().filter(|line| line[0] == "launch" && line[2] == "chosen");
    let blocks = lines.map(|line| line.last().unwrap().rsplit(',').next().unwrap().to_owned());
    let words: Vec<Vec<u64>> = blocks
        .map(|block| {
            let word = |i: usize| u64::from_str_radix(&block[16 * i..16 * i + 16], 16).unwrap().swap_bytes();
            (0..4).map(word).collect()
        })
        .collect();
    for (number, block) in words.iter().enumerate() {
        assert_eq!(block[..], [0, words[0][1], 144, number as u64]);
    }
    assert_eq!(words.len(), 5);
}

/// Between two launches of the program's: what a launch asks of the driver, by thread 1.
fn calls(life: &str, bend: fn(&mut Twin)) -> Vec<String> {
    let run = run("dlsym", life, 8, "calls", bend);
    let calls = run.log.iter().filter(|line| line[0] == "call");
    let calls: Vec<&str> = match life {
        // Any one of the program's threads will do: the last one that launched.
        "threads" => {
            let launching = run.log.iter().rfind(|line| line[0] == "call" && line[3] == "cuLaunchKernel");
            let thread = &launching.unwrap()[2];
            calls.filter(|line| line[2] == *thread).map(|line| line[3].as_str()).collect()
        }
        _ => calls.filter(|line| line[1] == line[2]).map(|line| line[3].as_str()).collect(),
    };
    // `chosen` and `other` by turns: two launches are one round.
    let mut launches = calls.iter().enumerate().filter(|(_, call)| **call == "cuLaunchKernel");
    let from = launches.clone().nth(9).unwrap().0;
    let to = launches.nth(11).unwrap().0;
    calls[from + 1..=to].iter().map(|&call| call.to_owned()).collect()
}

/// Where the launch goes to a stream of its own, and to the legacy one, whose context must be asked for.
#[test]
fn calls_of_a_launch() {
    let plain = ["cuStreamIsCapturing", "cuLaunchKernel", "cuEventRecord", "cuLaunchKernel"];
    assert_eq!(calls("threads", |_| ()), plain);
    let legacy =
        ["cuStreamIsCapturing", "cuCtxGetCurrent", "cuLaunchKernel", "cuEventRecord", "cuLaunchKernel"];
    assert_eq!(calls("no-wait", |_| ()), legacy);
    assert_eq!(calls("threads", table), ["cuStreamIsCapturing", "cuLaunchKernel", "cuLaunchKernel"]);
    let legacy = ["cuStreamIsCapturing", "cuCtxGetCurrent", "cuLaunchKernel", "cuLaunchKernel"];
    assert_eq!(calls("no-wait", table), legacy);
}

#[test]
fn residency_is_asked_once() {
    let run = run("dlsym", "resident", 5, "calls", |_| ());
    let asked = |line: &&Vec<String>| line[0] == "call" && line[3].starts_with("cuOccupancy");
    assert_eq!(run.log.iter().filter(asked).count(), 2);
}

#[test]
fn tables_that_cannot_be() {
    let check = |fault: &str, bend, reason: &str| {
        let run = run("dlsym", "one", 20, fault, bend);
        assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((20, 0, 0), (20, 0)));
        assert_eq!(run.trace().reason("chosen"), reason);
    };
    check(
        "no-memory=4096",
        |twin| twin.maps = vec![MapShape { persistent: true, ..MapShape::records(Unit::Sm, 64) }],
        "its tables could not be made: cuMemAlloc: error 2 (out of memory)",
    );
    check(
        "",
        |twin| twin.maps[0].persistent = true,
        "its tables are of units that differ from launch to launch",
    );
}

/// What is lost is not counted as collected.
#[test]
fn tables_that_are_lost() {
    let run = run("dlsym", "one", 20, "add,copy=719", table);
    assert_eq!(run.trace().count("chosen"), (20, 20, 0));
    let lost = [
        "tables of `chosen` were lost: cuMemcpyDtoHAsync: error 719",
        "20 probed launches were not collected",
    ];
    assert_eq!(run.trace().notes, lost);
}

/// Nothing is waited for beyond the deadline for the way out.
#[test]
fn kernels_that_do_not_end() {
    let fate = Fate { bend: table, ..Fate::default() };
    let mut scene = Scene::with(Fate {
        settings: nt_wire::message::Settings { exit_ms: 200, ..fate.settings.clone() },
        ..fate
    });
    scene.fault = "add,delay=20000".into();
    let app = scene.app();
    let begin = std::time::Instant::now();
    let run = scene.run(&app, &["dlsym", "no-wait", "2"]);
    assert!(begin.elapsed().as_secs() < 5);
    assert_eq!(run.trace().count("chosen"), (2, 2, 0));
    assert_eq!(run.trace().notes, ["2 probed launches were not collected"]);
}

/// A process that is killed leaves word of what it has counted, and not the numbers.
#[test]
fn killed() {
    let scene = Scene::with(Fate { bend: table, ..Fate::default() });
    let app = scene.app();
    let run = scene.run(&app, &["dlsym", "kill", "20"]);
    let trace = run.trace();
    assert_eq!((trace.kernels.len(), trace.data.len(), trace.end), (1, 0, None));
}
