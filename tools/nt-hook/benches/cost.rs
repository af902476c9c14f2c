//! What the hook costs a program that it does not probe: `cargo bench -p nt-hook`.
//!
//! A C program times look-ups and launches above the stub driver, whose launches do nothing (`NT_VGPU_FAULT=idle`), once
//! without the hook, then with it and a run folder. Aims: a look-up of a foreign name +2 ns, a launch +5 ns. Launches of
//! a kernel that is probed hold the stub's own calls, among them an event in a queue behind a lock.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints, and stops at the first thing that is wrong"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::process::Command;

use common::{Fate, Scene};
use nt_wire::message::{MapShape, Settings, StreamShape, Twin, Unit};

fn main() {
    let nothing = |twin: &mut Twin| twin.maps[0].stride = 16;
    let table = |twin: &mut Twin| {
        twin.maps = vec![MapShape { persistent: true, ..MapShape::records(Unit::Sm, 8) }];
    };
    let stream = |twin: &mut Twin| {
        twin.maps[0].stream = Some(StreamShape { chunk: 16, bytes: 64 << 10 });
        twin.maps[0].unit = Unit::Warp;
    };
    let without = run(None);
    let all: Vec<String> =
        [nothing as fn(&mut Twin), table, stream].into_iter().map(|bend| run(Some(bend))).collect();
    println!("{:<44} {:>9} {:>9}   ns", "", "without", "with");
    for (line, without) in without.lines().enumerate().skip(1) {
        let number = |line: &str| line.split_whitespace().rev().nth(1).unwrap().to_owned();
        let name: String = without.chars().take(44).collect();
        let with: Vec<String> = all.iter().map(|with| number(with.lines().nth(line).unwrap())).collect();
        match with.as_slice() {
            [map, table, stream] if name.contains("chosen") => {
                let name = name.trim();
                println!("{:<44} {:>9} {map:>9}", format!("{name}, which saves records"), number(without));
                println!("{:<44} {:>9} {stream:>9}", format!("{name}, which has a stream"), "");
                println!("{:<44} {:>9} {table:>9}", format!("{name}, which counts in a table"), "");
            }
            _ => println!("{name} {:>9} {:>9}", number(without), with[0]),
        }
    }
}

/// Runs the program, without the hook or with it and a twin of that layout.
fn run(hook: Option<fn(&mut Twin)>) -> String {
    let settings = Settings { pool_bytes: 1 << 30, ..Fate::default().settings };
    let bend = hook.unwrap_or(|_| ());
    let mut scene = Scene::with(Fate { selected: vec!["chosen"], settings, bend, ..Fate::default() });
    scene.fault = "idle".into();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/cost.c");
    let program = scene.path("cost");
    let built =
        Command::new("cc").args(["-O2", "-o"]).args([&program, &source]).arg("-ldl").status().unwrap();
    assert!(built.success());
    let mut command = scene.command(&program, &[]);
    command.env_remove("NT_VGPU_LOG");
    if hook.is_none() {
        command.env_remove("LD_PRELOAD");
    }
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}
