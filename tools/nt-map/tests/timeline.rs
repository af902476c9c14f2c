//! Timelines: every number against the records that they are made of.

#![allow(clippy::unwrap_used, reason = "a test stops at the first thing that is wrong")]

mod common;
mod synthetic;

use common::Folder;
use serde_json::{Value, json};
use synthetic::accesses::{Device, LOAD, STORE, Values, access, dmat, sites};
use synthetic::{Trace, block_sched, record};

fn events(text: &str) -> Vec<Value> {
    let timeline: Value = serde_json::from_str(text).unwrap();
    timeline["traceEvents"].as_array().unwrap().clone()
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["ph"] == kind).collect()
}

#[test]
fn blocks_are_on_their_multiprocessors() {
    let folder = Folder::new();
    let mut trace = Trace::new(9);
    let kernel = trace.kernel("_Z4fillPf", "block_sched", vec![block_sched()]);
    let launch = trace.launch(kernel, [4, 1, 1], [64, 1, 1]);
    // Blocks of two warps. On SM 0 blocks 0 and 1 overlap, block 3 comes behind 0; SM 2 has a clock of its own.
    let warps = [
        record(1000, 100, 0),
        record(1010, 110, 0),
        record(1050, 200, 0),
        record(1050, 150, 0),
        record(77, 10, 2),
        record(78, 10, 2),
        record(1130, 20, 0),
        record(1130, 40, 0),
    ];
    trace.records(launch, 0, &warps);
    folder.file("t.ntt", &trace.end());
    folder.check(&["timeline", "t.ntt", "-o", "x.json"], "");
    let events = events(&std::fs::read_to_string(folder.0.path().join("x.json")).unwrap());
    // At 2 GHz a cycle is half a nanosecond.
    let block = |name: &str, track: u64, ts: f64, dur: f64, start: u64, cycles: u64| {
        json!({ "ph": "X", "name": name, "pid": 1, "tid": track, "ts": ts, "dur": dur,
                "args": { "start": start, "cycles": cycles } })
    };
    assert_eq!(
        of(&events, "X"),
        [
            &block("block 0", 0, 0.0, 0.06, 1000, 120),
            &block("block 1", 1, 0.025, 0.1, 1050, 200),
            &block("block 3", 0, 0.065, 0.02, 1130, 40),
            &block("block 2", 128, 0.0, 0.0055, 77, 11),
        ]
    );
    let named: Vec<&Value> =
        of(&events, "M").into_iter().filter(|e| e["name"] != "thread_sort_index").collect();
    let names: Vec<&str> = named.iter().map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fill(float*) launch 0 process 9", "SM 0", "SM 0, 2", "SM 2"]);
}

#[test]
fn events_are_marks_of_their_warps() {
    let folder = Folder::new();
    let mut trace = Trace::new(9);
    let kernel = trace.traced("k", "dmat", vec![dmat(16)], &sites());
    for number in 0..2 {
        let launch = trace.launches;
        trace.launch_as(&nt_wire::frame::Launch {
            number: launch,
            kernel,
            grid: [1, 1, 1],
            block: [64, 1, 1],
            sms: 4,
            launched_ns: 5_000 + number * 2_500,
            ..nt_wire::frame::Launch::default()
        });
        let mut device = Device::new(16, 2, 64);
        device.save(&access(0, 1, LOAD, 40, 64, Values::Nothing));
        device.save(&access(1, 1, STORE, 1500, 64, Values::Nothing));
        trace.stream(launch, 0, &device.parts(1));
    }
    folder.file("t.ntt", &trace.end());
    let run = folder.run(&["timeline", "t.ntt"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let events = events(&run.out);
    let marks: Vec<(u64, u64, f64, &str)> = of(&events, "i")
        .into_iter()
        .map(|e| {
            let number = |key: &str| e[key].as_u64().unwrap();
            (number("pid"), number("tid") - (1 << 20), e["ts"].as_f64().unwrap(), e["name"].as_str().unwrap())
        })
        .collect();
    // The clock is not known: 1 GHz. The second launch was called 2.5 µs after the first.
    assert_eq!(
        marks,
        [
            (1, 0, 0.04, "ld.global.f32 a.cu:12"),
            (1, 1, 1.5, "st.global.f32 48:2"),
            (2, 0, 2.54, "ld.global.f32 a.cu:12"),
            (2, 1, 4.0, "st.global.f32 48:2"),
        ]
    );
    assert_eq!(of(&events, "i")[1]["args"], json!({ "lane": 0, "event": 0, "at": 1500, "site": 11 }));
    let run = folder.run(&["timeline", "t.ntt", "--limit", "3"]);
    assert_eq!(of(&self::events(&run.out), "i").len(), 3);
    assert_eq!(run.err, "nt-map: 1 blocks and events are left out: `--limit` says how many may be there\n");
}

#[test]
fn nothing_with_a_time_is_told_as_nothing() {
    let folder = Folder::new();
    let mut trace = Trace::new(9);
    let kernel = trace.kernel("k", "values", vec![synthetic::values()]);
    let launch = trace.launch(kernel, [1, 1, 1], [1, 1, 1]);
    trace.data(launch, 0, 1, &[1; 256]);
    folder.file("t.ntt", &trace.end());
    let run = folder.run(&["timeline", "t.ntt", "-o", "x.json"]);
    assert_eq!((run.code, run.err.as_str()), (4, "nt-map: nothing in what is chosen has a time\n"));
}
