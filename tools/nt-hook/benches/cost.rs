//! What the hook costs a program that it does not probe: `cargo bench -p nt-hook`.
//!
//! A C program times look-ups and launches above the stub driver, whose launches do nothing (`NT_VGPU_FAULT=idle`), once
//! without the hook, once with it and a run folder. Aims: a look-up of a foreign name +2 ns, a launch +5 ns.
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

fn main() {
    let mut scene = Scene::with(Fate { selected: vec!["chosen"], ..Fate::default() });
    scene.fault = "idle".into();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/cost.c");
    let program = scene.path("cost");
    let built =
        Command::new("cc").args(["-O2", "-o"]).args([&program, &source]).arg("-ldl").status().unwrap();
    assert!(built.success());
    let run = |hook: bool| {
        let mut command = scene.command(&program, &[]);
        command.env_remove("NT_VGPU_LOG");
        if !hook {
            command.env_remove("LD_PRELOAD");
        }
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let (without, with) = (run(false), run(true));
    println!("{:<44} {:>9} {:>9}   ns", "", "without", "with");
    for (without, with) in without.lines().zip(with.lines()).skip(1) {
        let number = |line: &str| line.split_whitespace().rev().nth(1).unwrap().to_owned();
        let name: String = without.chars().take(44).collect();
        println!("{name} {:>9} {:>9}", number(without), number(with));
    }
}
