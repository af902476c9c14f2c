//! Every kernel of the corpora that runs on the software GPU, with and without every shipped probe: equal memory, and
//! maps that hold what the software GPU counted.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may stop at the first thing that is wrong, and say what"
)]

mod common;

use common::{files, read};
use nt_differ::counted::Counted;
use nt_differ::device::{self, Job, Text};
use nt_differ::events::Access;
use nt_differ::judge::{self, Case};
use nt_differ::probed::{self, Probed, Room};
use nt_differ::random::Random;
use nt_differ::sidecar::Sidecar;
use nt_ir::launch::Conditions;
use nt_vgpu::Options;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Seeds of the schedules in which a launch is tried: the plain one, and for every other launch one that keeps lanes apart.
fn seeds(launch: usize) -> impl Iterator<Item = Option<u64>> {
    [None].into_iter().chain(launch.is_multiple_of(2).then_some(Some(launch as u64 + 1)))
}

fn sidecar(file: &str) -> Sidecar {
    Sidecar::parse(&read(file)).unwrap_or_else(|why| panic!("{file}: {why}"))
}

fn refused_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("refused.txt")
}

fn refused_text() -> String {
    std::fs::read_to_string(refused_path()).unwrap()
}

/// The lines of `refused.txt` without comments.
fn refused() -> BTreeSet<String> {
    let text = refused_text();
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// The shipped probes that compile, and for the others a line of `refused.txt`.
fn shipped() -> (Vec<(&'static str, nt_ir::Prepared)>, BTreeSet<String>) {
    let (mut probes, mut lines) = (Vec::new(), BTreeSet::new());
    for shipped in nt_probe::SHIPPED {
        let missing = nt_probe::missing(shipped.text);
        match probed::compile(shipped.text, shipped.name) {
            Ok(probe) => probes.push((shipped.name, probe)),
            Err(why) if missing.is_empty() => panic!("{}: {why}", shipped.name),
            Err(_) => {
                lines.insert(format!("{}: not compiled", shipped.name));
            }
        }
    }
    (probes, lines)
}

/// Runs everything that a sidecar says with every probe; `takes` chooses among its texts.
fn differ(file: &str, takes: impl Fn(&str) -> bool) {
    let (sidecar, refused, (probes, _)) = (sidecar(file), refused(), shipped());
    let (mut texts, mut plains, mut runs, mut faults, mut racy) = (0, 0, 0, Vec::new(), BTreeSet::new());
    for name in files("ptx") {
        if !takes(&name) || !sidecar.of.iter().any(|glob| nt_ir::glob_matches(glob, &name)) {
            continue;
        }
        texts += 1;
        let ptx = read(&name);
        let text = Text::load(&ptx).unwrap_or_else(|why| panic!("{name}: {why}"));
        let weave = |assume| -> Vec<(&str, Probed)> {
            let one = |(probe, prepared): &(&'static str, _)| {
                let woven = Probed::weave(&text, prepared, assume);
                (*probe, woven.unwrap_or_else(|why| panic!("{name}, {probe}, {assume}: {why}")))
            };
            probes.iter().map(one).collect()
        };
        let mut woven: BTreeMap<Conditions, Vec<(&str, Probed)>> = BTreeMap::new();
        for kernel in text.program.kernels() {
            let Some(Some(known)) = sidecar.find(&kernel.name) else { continue };
            if text.is_missing(&kernel.name) {
                continue;
            }
            let launches = known.launches.iter().enumerate();
            for (number, shape, seed) in
                launches.flat_map(|(n, shape)| seeds(n).map(move |seed| (n, shape, seed)))
            {
                let mut random = Random::new(number as u64);
                let job = Job::new(&kernel.name, &sidecar, known, *shape, &mut random);
                let options = Options { seed, sms: 3, max_steps: 1 << 26 };
                let at =
                    format!("{name}, {}, {:?} x {:?}, seed {seed:?}", kernel.name, shape.grid, shape.block);
                let mut accesses = Vec::new();
                let mut watch =
                    |_: &[u8], seen: &nt_vgpu::Accessed<'_>| accesses.extend(Access::of(&text, &job, seen));
                let plain = device::run_watched(&text.program, &job, &options, None, &mut watch)
                    .unwrap_or_else(|why| panic!("{at}: {why}"));
                // Where the schedule matters, as for sums of floats, only the plain one is the same with a probe, whose
                // branches change every other. One more schedule may agree by chance; several hardly do.
                if let Some(seed) = seed {
                    let others = [None, Some(seed + 1000), Some(seed + 2000), Some(seed + 3000)];
                    let is_other = |seed| {
                        let options = Options { seed, ..options.clone() };
                        let other = device::run(&text.program, &job, &options, None).unwrap();
                        device::same(&plain, &other).is_err()
                    };
                    if others.into_iter().any(is_other) {
                        racy.insert(format!("{} with seed {seed}", kernel.name));
                        continue;
                    }
                }
                plains += 1;
                let counted = Counted::new(&text, &job, &plain);
                // Under the plain schedule nothing is relied on of launches, under the others what holds of this one.
                let assume = seed.map_or(Conditions::NONE, |_| Conditions::of(shape.grid, shape.block));
                for (probe, probed) in woven.entry(assume).or_insert_with(|| weave(assume)) {
                    let Some(of_kernel) = probed.kernel(&kernel.name) else { continue };
                    // What it calls and cannot be probed is counted by the software GPU.
                    let is_lower_bound = of_kernel.uncovered.iter().any(nt_weave::Uncovered::is_of_program);
                    let one = |probed: &Probed| {
                        let ran = device::run(&probed.program, &job, &options, Some(probed))?;
                        device::same(&plain, &ran)?;
                        if is_lower_bound {
                            return Ok(());
                        }
                        let case = Case {
                            text: &text,
                            job: &job,
                            counted: &counted,
                            accesses: &accesses,
                            assume,
                            sms: options.sms,
                            probed,
                            ran: &ran,
                            is_plain: seed.is_none(),
                        };
                        match judge::judge(probe, &case) {
                            Some(judged) => judged,
                            None if refused.contains(&format!("{probe}: not judged")) => Ok(()),
                            None => Err("nobody says what this probe should show: src/judge.rs".to_owned()),
                        }
                    };
                    // Streams with room for all, for some, and for nothing.
                    let rooms = [Room::More(1 << 11), Room::More(0), Room::Fewer(2), Room::Fewer(u64::MAX)];
                    let rooms = if probed.has_streams() { &rooms[..] } else { &rooms[..1] };
                    for &room in rooms {
                        probed.room = room;
                        let why = match one(probed) {
                            // Lanes part at the branches of events and of records too. Where they race, the schedule tells who wins, and
                            // how often they go round.
                            Err(_) if seed.is_some() && probed.parts_lanes() && shares(&text, &accesses) => {
                                racy.insert(kernel.name.clone());
                                None
                            }
                            one => one.err(),
                        };
                        faults.extend(why.map(|why: String| format!("{at}, {probe}, {room:?}: {why}")));
                        runs += 1;
                    }
                }
            }
        }
    }
    assert!(plains > 0 || texts == 0, "{file}: nothing ran");
    eprintln!("{file}: {runs} runs with probes; not compared, since the schedule matters: {racy:?}");
    assert!(
        faults.is_empty(),
        "{} of {runs}:\n{}",
        faults.len(),
        faults.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// Do threads of a launch write where others read or write?
fn shares(text: &Text<'_>, accesses: &[Access]) -> bool {
    let mut of: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
    for access in accesses {
        let opcode = text.program.instruction(access.statement).and_then(|at| text.program.places().get(at));
        let writes = opcode.is_some_and(|place| !place.opcode.starts_with("ld"));
        for lane in (0..32u32).filter(|lane| access.lanes >> lane & 1 == 1) {
            let thread = access.warp * 32 + u64::from(lane);
            match of.entry(access.addresses[lane as usize]).or_insert((thread, writes)) {
                (first, written) if *first == thread => *written |= writes,
                (_, written) if *written || writes => return true,
                _ => {}
            }
        }
    }
    false
}

#[test]
fn benchmarks() {
    differ("nvcc/kernels.launches", |name| name.starts_with("nvcc/") && !name.contains("debug"));
}

#[test]
fn benchmarks_of_other_releases_and_unoptimized() {
    differ("nvcc/kernels.launches", |name| !name.starts_with("nvcc/") || name.contains("debug"));
}

#[test]
fn features() {
    differ("nvcc/features.launches", |_| true);
}

#[test]
fn triton() {
    differ("triton/kernels.launches", |_| true);
}

#[test]
fn other_compilers() {
    let own = ["nvcc/kernels.launches", "nvcc/features.launches", "triton/kernels.launches"];
    for file in files("launches").iter().filter(|file| !own.contains(&file.as_str())) {
        differ(file, |_| true);
    }
}

#[test]
fn every_kernel_is_launched_or_skipped_for_a_reason() {
    let sidecars: Vec<Sidecar> = files("launches").iter().map(|file| sidecar(file)).collect();
    for name in files("ptx") {
        let of: Vec<&Sidecar> =
            sidecars.iter().filter(|s| s.of.iter().any(|glob| nt_ir::glob_matches(glob, &name))).collect();
        assert_eq!(of.len(), 1, "{name}: sidecars that speak of it");
        let ptx = read(&name);
        for kernel in Text::load(&ptx).unwrap().program.kernels() {
            assert!(of[0].find(&kernel.name).is_some(), "{name}: kernel `{}` is in no sidecar", kernel.name);
        }
    }
}

/// What is refused is known, and what is known to be refused is.
#[test]
fn the_list_of_what_is_refused_only_shrinks() {
    let (probes, mut found) = shipped();
    for (probe, _) in &probes {
        if !judge::JUDGED.contains(probe) {
            found.insert(format!("{probe}: not judged"));
        }
    }
    for name in files("ptx") {
        let ptx = read(&name);
        let text = Text::load(&ptx).unwrap();
        for (probe, prepared) in &probes {
            let chosen: Vec<usize> = (0..text.module.functions.len()).collect();
            let woven = nt_weave::weave(&text.module, &text.info, prepared, &chosen);
            found
                .extend(woven.refused.iter().map(|(kernel, why)| format!("{probe}: {kernel}: {}", why.slug)));
        }
    }
    let known = refused();
    let new: Vec<&String> = found.difference(&known).collect();
    assert!(new.is_empty(), "refused, and not in refused.txt:\n{new:#?}");
    let gone: Vec<&String> = known.difference(&found).collect();
    if !gone.is_empty() && std::env::var_os("BLESS").is_some() {
        let keep = |line: &&str| !gone.iter().any(|gone| **gone == line.trim());
        let kept: String = refused_text().lines().filter(keep).map(|line| format!("{line}\n")).collect();
        std::fs::write(refused_path(), kept).unwrap();
        return;
    }
    assert!(gone.is_empty(), "refused no more: `make bless` takes these out of refused.txt:\n{gone:#?}");
}
