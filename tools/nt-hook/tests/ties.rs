//! Variables of the original that a twin shares with it: pins and constants.
#![allow(clippy::unwrap_used, reason = "tests stop at the first thing that is wrong")]

mod common;

use common::{Fate, Run, Scene};
use nt_wire::message::{Constant, MapShape, Pin, Twin, Unit};

/// The program's module has `.global .b64 counter` and `.const .b32 scale[4]`.
const TWIN: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.const .align 8 .b64 nt_pin[2];\n\
    .const .align 4 .b32 scale[4];\n\
    .visible .entry chosen(.param .u64 out, .param .u32 n, .param .align 8 .b8 nt_ctx[32])\n{ ret; }\n";

fn ties(twin: &mut Twin) {
    twin.pins = vec![Pin { symbol: "counter".into(), index: 1 }];
    twin.constants = vec![Constant { symbol: "scale".into(), size: 16 }];
}

fn run(life: &str, launches: u32, fault: &str, module: &str, bend: fn(&mut Twin)) -> Run {
    let mut scene = Scene::with(Fate { bend, module: Some(module.into()), ..Fate::default() });
    scene.fault = format!("look,{fault}");
    let app = scene.app();
    let run = scene.run(&app, &["dlsym", life, &launches.to_string()]);
    run.ok();
    run
}

/// What twins saw, in their order, of a constant: its words.
fn seen(run: &Run, constant: &str, size: usize) -> Vec<Vec<u64>> {
    let lines = run.log.iter().filter(|line| line[0] == "sees" && line[2] == "chosen");
    let values = lines.filter_map(|line| line[3].strip_prefix(constant)?.strip_prefix('='));
    let words = |hex: &str| {
        let word = |i: usize| {
            let bytes = (0..size)
                .map(|b| u64::from_str_radix(&hex[2 * (i * size + b)..][..2], 16).unwrap() << (8 * b));
            bytes.sum()
        };
        (0..hex.len() / 2 / size).map(word).collect()
    };
    values.map(words).collect()
}

/// The addresses that the driver gave for a variable, in their order: one a home.
fn addresses(run: &Run, variable: &str) -> Vec<u64> {
    let lines = run.log.iter().filter(|line| line[0] == "global" && line[2] == variable);
    lines.map(|line| u64::from_str_radix(line[3].trim_start_matches("0x"), 16).unwrap()).collect()
}

#[test]
fn pins_hold_the_originals_addresses_and_constants_its_values() {
    for fault in ["", "delay=1", "no-libraries"] {
        let run = run("constants", 20, fault, TWIN, ties);
        assert_eq!(run.trace().count("chosen"), (20, 20, 20), "{fault}");
        let counter = addresses(&run, "counter");
        assert_eq!(counter.len(), 1);
        assert_eq!(seen(&run, "nt_pin", 8), vec![vec![0, counter[0]]; 20], "{fault}");
        // The program writes 100, 101, … in stream order, each before a launch.
        let scale: Vec<u64> = seen(&run, "scale", 4).iter().map(|words| words[0]).collect();
        assert_eq!(scale, (100..120).collect::<Vec<_>>(), "{fault}");
    }
}

/// Nobody has asked where it is: it holds what it was loaded with, and is copied once.
#[test]
fn constants_that_cannot_have_been_written_are_not_copied() {
    let copies = |life| {
        let run = run(life, 20, "calls", TWIN, ties);
        assert_eq!(run.trace().count("chosen"), (20, 20, 20), "{life}");
        run.log.iter().filter(|line| line[0] == "call" && line[3] == "cuMemcpyDtoDAsync_v2").count()
    };
    assert_eq!(copies("one"), 1);
    assert_eq!(copies("constants"), 1 + 20);
}

/// What twins saw of a word of `scale`, with the number that their launch has for it.
fn parts(run: &Run, word: impl Fn(u64) -> usize) -> Vec<(u64, u64)> {
    let lines = run.log.iter().filter(|line| line[0] == "sees" && line[3].starts_with("scale="));
    let numbers = lines.map(|line| line[4].parse::<u64>().unwrap());
    let seen = seen(run, "scale", 4);
    numbers.zip(seen).map(|(number, words)| (number, words[word(number)])).collect()
}

/// Two streams that write a part each and are not ordered with each other: what one copies too early or too late must
/// not reach the other's kernels.
#[test]
fn streams_that_use_a_constant_in_parts() {
    for fault in ["slow-copy", "slow-copy,delay=1,uneven", "slow-copy,no-libraries"] {
        let run = run("parts", 30, fault, TWIN, ties);
        assert_eq!(run.trace().count("chosen"), (70, 70, 70), "{fault}");
        let parts = parts(&run, |number| if number < 2000 { 0 } else { 2 });
        assert_eq!(parts.len(), 70);
        assert!(parts.iter().all(|(number, seen)| number == seen), "{fault}: {parts:?}");
        // The program's module, and the twin once for each stream.
        assert_eq!(run.logged("load"), 3, "{fault}");
    }
}

/// A stream that is gone leaves its twin to the next, once all that was in it is over.
#[test]
fn streams_that_come_and_go_share_a_twin() {
    let run = run("stream-after-stream", 40, "slow-copy", TWIN, ties);
    assert_eq!(run.trace().count("chosen"), (40, 40, 40));
    assert!(parts(&run, |_| 0).iter().all(|(number, seen)| number == seen));
    // How many it takes depends on how soon the driver comes to their ends: fewer than sixteen, or some launches would
    // have gone unprobed.
    assert!(run.logged("load") < 1 + 16, "{}", run.logged("load"));
}

#[test]
fn more_streams_than_there_can_be_twins() {
    let run = run("many-streams", 20, "", TWIN, ties);
    assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((20, 16, 16), (4, 16)));
    let reason = "4 in one context, module or stream more than there is room for";
    assert_eq!(run.trace().reason("chosen"), reason);
}

#[test]
fn each_module_has_its_own() {
    let run = run("twice", 10, "", TWIN, ties);
    assert_eq!(run.trace().count("chosen"), (21, 21, 21));
    let counters = addresses(&run, "counter");
    assert_eq!(counters.len(), 2);
    let mut expected: Vec<(u64, u64)> =
        (0..10).flat_map(|i| [(counters[0], 100 + i), (counters[1], 200 + i)]).collect();
    expected.push((counters[1], 999));
    let pins = seen(&run, "nt_pin", 8).into_iter().map(|words| words[1]);
    let scale = seen(&run, "scale", 4).into_iter().map(|words| words[0]);
    assert_eq!(pins.zip(scale).collect::<Vec<_>>(), expected);
    // A module of the program's, a second one, and the twin once for each.
    assert_eq!(run.logged("load"), 4);
}

/// Two handles of a library's kernel, and libraries that come and go.
#[test]
fn libraries_own_variables_too() {
    let run = run("library-reload", 5, "delay=1", TWIN, ties);
    assert_eq!(run.trace().count("chosen"), (10, 10, 10));
    let counters = addresses(&run, "counter");
    let pins: Vec<u64> = seen(&run, "nt_pin", 8).into_iter().map(|words| words[1]).collect();
    let expected: Vec<u64> = counters.iter().flat_map(|&address| [address, address]).collect();
    assert_eq!((pins, counters.len()), (expected, 5));
    // The program's module, and each library with the twin that was made for it.
    assert_eq!(run.logged("load"), 1 + 5 + 5);
}

#[test]
fn tables_of_tied_twins_end_with_their_module() {
    let bend = |twin: &mut Twin| {
        ties(twin);
        twin.maps = vec![MapShape { persistent: true, ..MapShape::records(Unit::Sm, 8) }];
    };
    let run = run("twice", 10, "add,delay=1", TWIN, bend);
    let trace = run.trace();
    assert_eq!(trace.count("chosen"), (21, 21, 21));
    let cells: Vec<u64> =
        trace.data.iter().map(|(_, data)| u64::from_le_bytes(data[..8].try_into().unwrap())).collect();
    assert_eq!(cells, [10, 11]);
    assert_eq!(trace.notes, Vec::<String>::new());
}

#[test]
fn another_prefix() {
    let module = TWIN.replace("nt_", "nt1_");
    let run = run("constants", 3, "", &module, ties);
    assert_eq!(run.trace().count("chosen"), (3, 3, 3));
    let counter = addresses(&run, "counter");
    assert_eq!(seen(&run, "nt1_pin", 8), vec![vec![0, counter[0]]; 3]);
}

#[test]
fn ties_that_cannot_be() {
    let check = |module: &str, bend, reason: &str| {
        let run = run("one", 20, "", module, bend);
        assert_eq!((run.trace().count("chosen"), run.launched("chosen")), ((20, 0, 0), (20, 0)));
        assert_eq!(run.trace().reason("chosen"), reason);
    };
    check(
        TWIN,
        |twin| twin.pins = vec![Pin { symbol: "absent".into(), index: 0 }],
        "its module has no variable `absent`",
    );
    check(
        TWIN,
        |twin| twin.pins = vec![Pin { symbol: "counter".into(), index: 2 }],
        "its twin's table of pins ends before `counter`",
    );
    check(
        TWIN,
        |twin| twin.constants = vec![Constant { symbol: "scale".into(), size: 12 }],
        "`scale` takes 16 bytes and 16 in its twin, not 12",
    );
    check(&TWIN.replace("nt_pin", "pin"), ties, "its twin has no table of pins");
    check(&TWIN.replace("scale", "other"), ties, "its twin has no variable `scale`");
}

/// A fat binary is shown to the parent whole, without the wrapper that nvcc puts before it.
#[test]
fn fat_binaries_are_shown() {
    let mut scene = Scene::with(Fate::default());
    scene.fault = "scribble".into();
    let app = scene.app();
    let run = scene.run(&app, &["dlsym", "fatbin"]);
    run.ok();
    let images = &run.parent.as_ref().unwrap().images;
    assert_eq!(images.len(), 2);
    assert_eq!((images[1].len(), &images[1][..4]), (48, &[0x50, 0xed, 0x55, 0xba][..]));
    assert_eq!((run.trace().count("chosen"), run.logged("dirty")), ((2, 2, 2), 0));
}
