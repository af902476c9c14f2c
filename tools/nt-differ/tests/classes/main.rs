//! Every tracepoint, on every kernel of the corpora that runs on the software GPU: what probes count is what was executed,
//! sorted by somebody else (`src/classes.rs` says how), and each instruction is of one class.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first thing that is wrong, and say what"
)]

#[path = "../common/mod.rs"]
mod common;

use common::{files, read};
use nt_differ::classes::{self, Questions};
use nt_differ::counted::{By, Cells, Counted, within};
use nt_differ::device::{self, Job, Text};
use nt_differ::probed::{self, Probed};
use nt_differ::random::Random;
use nt_differ::records;
use nt_differ::sidecar::Sidecar;
use nt_ir::Prepared;
use nt_ir::launch::Conditions;
use nt_vgpu::Options;
use nt_weave::Uncovered;
use std::collections::{BTreeMap, BTreeSet};

/// Launches of a kernel that are tried: the others go the same ways.
const LAUNCHES: usize = 1;

/// Why a kernel may be refused a question; it is then asked the others.
const MAY_BE_REFUSED: [&str; 2] = [
    // Lanes may leave the kernel in what is called through a pointer.
    "indirect-call",
    // Kernels with asynchronous matrix instructions, which the software GPU does not run.
    "among-wgmma",
];

/// What was asked and found.
#[derive(Default)]
struct Asked {
    runs: usize,
    /// Lanes by class, over all runs: what no kernel has cannot be found wrong.
    lanes: BTreeMap<String, u64>,
    /// Tables in which there was something.
    filled: BTreeSet<String>,
    refused: BTreeSet<String>,
    faults: Vec<String>,
}

impl Asked {
    /// Holds one run of a program against what was counted.
    fn judge(
        &mut self,
        (text, job, counted): (&Text<'_>, &Job, &Counted<'_>),
        questions: &Questions,
        probed: &Probed,
        ran: &device::Ran,
    ) -> Result<(), String> {
        for asked in &questions.asked {
            let found = records::table(probed, job, ran, &asked.table)?;
            let cells = (asked.cells)(text, counted);
            if !cells.is_empty() {
                self.filled.insert(asked.table.clone());
            }
            if asked.table == "all" {
                self.whole(counted, &cells)?;
            }
            let what = format!("`@{}`", asked.table);
            // What is called through a pointer is executed, and no probe is in it.
            if probed
                .kernel(&job.kernel)
                .is_some_and(|kernel| kernel.uncovered.iter().any(Uncovered::is_of_program))
            {
                within(&what, &Cells::new(), &found, &cells)?;
            } else {
                counted.expect(&what, By::Sm, cells, found)?;
            }
        }
        Ok(())
    }

    /// The classes together are all that was executed, nothing twice.
    fn whole(&mut self, counted: &Counted<'_>, cells: &Cells) -> Result<(), String> {
        let all = counted.cells(By::Sm, &|_| Vec::new(), &|one, count| one.passes(count).1);
        let (all, sum): (u64, u64) = (all.values().sum(), cells.values().sum());
        for ((_, names), lanes) in cells {
            *self.lanes.entry(names.join(", ")).or_default() += lanes;
        }
        if all == sum { Ok(()) } else { Err(format!("the classes have {sum} lanes of {all}")) }
    }

    fn text(&mut self, name: &str, text: &Text<'_>, sidecar: &Sidecar, programs: &[(Questions, Prepared)]) {
        let mut woven = Vec::new();
        for (questions, prepared) in programs {
            let probed = Probed::weave(text, prepared, Conditions::NONE)
                .unwrap_or_else(|why| panic!("{name}, {}: {why}", questions.name));
            for (kernel, why) in &probed.woven.refused {
                if self.refused.insert(format!("{}: {}", questions.name, why.slug)) {
                    eprintln!("{name}, {kernel}, {}: {}: {}", questions.name, why.slug, why.label);
                }
            }
            woven.push((questions, probed));
        }
        for kernel in text.program.kernels() {
            let Some(Some(known)) = sidecar.find(&kernel.name) else { continue };
            if text.is_missing(&kernel.name) {
                continue;
            }
            for (number, shape) in known.launches.iter().take(LAUNCHES).enumerate() {
                let job = Job::new(&kernel.name, sidecar, known, *shape, &mut Random::new(number as u64));
                let at = format!("{name}, {}, {:?} x {:?}", kernel.name, shape.grid, shape.block);
                let plain = device::run(&text.program, &job, &OPTIONS, None);
                let plain = plain.unwrap_or_else(|why| panic!("{at}: {why}"));
                let counted = Counted::new(text, &job, &plain);
                for (questions, probed) in &woven {
                    if let Err(why) = self.run(questions, probed, (text, &job, &counted), &plain) {
                        self.faults.push(format!("{at}, {}: {why}", questions.name));
                    }
                }
            }
        }
    }

    /// One launch with one program in it.
    fn run(
        &mut self,
        questions: &Questions,
        probed: &Probed,
        (text, job, counted): (&Text<'_>, &Job, &Counted<'_>),
        plain: &device::Ran,
    ) -> Result<(), String> {
        if probed.kernel(&job.kernel).is_none() {
            let was_refused = probed.woven.refused.iter().any(|(refused, _)| *refused == job.kernel);
            let is_empty = questions.asked.iter().all(|one| (one.cells)(text, counted).is_empty());
            return if was_refused || is_empty {
                Ok(())
            } else {
                Err("no site, and something to count".into())
            };
        }
        let ran = device::run(&probed.program, job, &OPTIONS, Some(probed))?;
        device::same(plain, &ran)?;
        self.runs += 1;
        self.judge((text, job, counted), questions, probed, &ran)
    }

    /// Nothing may differ, and nothing be refused for another reason.
    fn finish(self) -> BTreeSet<String> {
        eprintln!("{} runs; lanes {:?}; refused {:?}", self.runs, self.lanes, self.refused);
        let faults = self.faults.len();
        assert!(self.faults.is_empty(), "{faults} of {}:\n{}", self.runs, self.faults.join("\n"));
        let is_known = |line: &String| MAY_BE_REFUSED.iter().any(|slug| line.ends_with(&format!(": {slug}")));
        let why: Vec<&String> = self.refused.iter().filter(|line| !is_known(line)).collect();
        assert!(why.is_empty(), "{why:?}");
        assert!(self.runs > 0);
        self.filled
    }
}

const OPTIONS: Options = Options { seed: None, sms: 3, max_steps: 1 << 28 };

fn programs() -> Vec<(Questions, Prepared)> {
    let compile = |questions: Questions| {
        let program = probed::compile(&questions.program(), questions.name);
        let program = program.unwrap_or_else(|why| panic!("{}: {why}", questions.name));
        (questions, program)
    };
    classes::questions().into_iter().map(compile).collect()
}

fn ask(takes: impl Fn(&str) -> bool) {
    let (programs, mut asked) = (programs(), Asked::default());
    for sidecar in files("launches").iter().filter(|file| takes(file)) {
        let known = Sidecar::parse(&read(sidecar)).unwrap_or_else(|why| panic!("{sidecar}: {why}"));
        for name in files("ptx") {
            if takes(&name) && known.of.iter().any(|glob| nt_ir::glob_matches(glob, &name)) {
                let ptx = read(&name);
                let text = Text::load(&ptx).unwrap_or_else(|why| panic!("{name}: {why}"));
                asked.text(&name, &text, &known, &programs);
            }
        }
    }
    asked.finish();
}

/// The software GPU has no textures and no tensor maps.
const NEVER: [&str; 2] = ["tensor_copy", "texture"];

#[test]
fn what_no_compiler_writes() {
    let text = Text::load(include_str!("rare.ptx")).unwrap();
    let launches =
        "of rare\nkernel rare u32[128]\n launch 3 x 64\nkernel clustered zero[512]\n launch 2 x 64\n";
    let mut asked = Asked::default();
    asked.text("rare", &text, &Sidecar::parse(launches).unwrap(), &programs());
    let filled = asked.finish();
    let missing: Vec<&str> = classes::CLASSES
        .into_iter()
        .filter(|class| !filled.contains(*class) && !NEVER.contains(class))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn benchmarks() {
    ask(|name| name.contains("/kernels.") && name.starts_with("nvcc/"));
}

#[test]
fn features() {
    ask(|name| name.contains("/features."));
}

#[test]
fn triton() {
    ask(|name| name.starts_with("triton"));
}

#[test]
fn other_compilers() {
    let own = ["nvcc/", "nvcc-", "nvrtc", "triton"];
    ask(|name| !own.iter().any(|own| name.starts_with(own)));
}
