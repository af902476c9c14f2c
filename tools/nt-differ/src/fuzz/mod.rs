//! The fuzzer: a kernel by chance, a probe program by chance, woven together and compared.
//!
//! What fails is cut smaller, a statement or a measure at a time, as long as it still fails, and printed: the seed, the
//! kernel, the program.

mod expected;
pub mod kernel;
pub mod probe;

use crate::counted::Counted;
use crate::device::{self, Given, Job, Text};
use crate::events::Access;
use crate::judge::{self, Case};
use crate::probed::{self, Probed, Room};
use crate::random::Random;
use crate::sidecar::Shape;
use kernel::Kernel;
use nt_ir::launch::Conditions;
use nt_vgpu::Options;
use probe::Measure;
use std::fmt;

/// A kernel, a program, and a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What it was made from.
    pub seed: u64,
    /// The kernel.
    pub kernel: Kernel,
    /// The program.
    pub program: Vec<Measure>,
    /// The launch.
    pub shape: Shape,
    /// The seed of a second schedule.
    pub schedule: u64,
}

/// How a trial went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing differed; whether the second schedule could be compared too.
    Same {
        /// Not if the schedule matters to the kernel.
        both: bool,
    },
    /// The weaver does not do this yet, and says so.
    Refused(String),
    /// Something is wrong.
    Wrong(String),
}

/// Blocks that are partly a warp, whole warps, and both; of one to three axes.
const BLOCKS: [[u32; 3]; 8] =
    [[1, 1, 1], [31, 1, 1], [32, 1, 1], [11, 3, 1], [4, 6, 2], [16, 4, 1], [70, 1, 1], [3, 5, 7]];
const GRIDS: [[u32; 3]; 4] = [[1, 1, 1], [4, 1, 1], [2, 3, 1], [1, 2, 2]];

impl Trial {
    /// The trial of a seed.
    pub fn new(seed: u64) -> Trial {
        let mut random = Random::new(seed);
        let kernel = Kernel::new(&mut random);
        let program = probe::program(&mut random);
        let shape =
            Shape { grid: random.of(&GRIDS), block: random.of(&BLOCKS), shared: 0, cooperative: false };
        Trial { seed, kernel, program, shape, schedule: random.bits() }
    }

    /// Weaves, runs and compares.
    pub fn run(&self) -> Verdict {
        match self.try_run() {
            Ok(verdict) => verdict,
            Err(why) => Verdict::Wrong(why),
        }
    }

    fn try_run(&self) -> Result<Verdict, String> {
        let (ptx, source) = (self.kernel.text(), probe::text(&self.program));
        let text = Text::load(&ptx)?;
        let prepared = probed::compile(&source, "fuzz")?;
        // Half of the trials rely on what holds of their launch.
        let holds = Conditions::of(self.shape.grid, self.shape.block);
        let assume = if self.seed.is_multiple_of(2) { holds } else { Conditions::NONE };
        let probed = Probed::weave(&text, &prepared, assume)?;
        if let Some((_, why)) = probed.woven.refused.first() {
            // By its name, as something that is to come.
            let is_to_come = why.slug == "not-yet" || why.message.contains("not supported yet");
            return if is_to_come {
                Ok(Verdict::Refused(format!("{}: {}", why.slug, why.label)))
            } else {
                Err(format!("refused: {why:?}"))
            };
        }
        let dmat = nt_probe::SHIPPED.iter().find(|shipped| shipped.name == "dmat").ok_or("no dmat")?;
        let mut traced = Probed::weave(&text, &probed::compile(dmat.text, dmat.name)?, assume)?;
        let job = self.job();
        let Some(_) = probed.kernel(&job.kernel) else {
            // No site was meant.
            return Ok(Verdict::Same { both: true });
        };
        for seed in [None, Some(self.schedule)] {
            let at = |why: String| format!("schedule {seed:?}: {why}");
            let options = Options { seed, sms: 3, max_steps: 1 << 22 };
            let mut accesses = Vec::new();
            let mut watch =
                |_: &[u8], seen: &nt_vgpu::Accessed<'_>| accesses.extend(Access::of(&text, &job, seen));
            let original = device::run_watched(&text.program, &job, &options, None, &mut watch);
            let original = original.map_err(|why| at(format!("original: {why}")))?;
            let ran = device::run(&probed.program, &job, &options, Some(&probed));
            let ran = ran.map_err(|why| at(format!("probed: {why}")))?;
            // A probe's own branches take part in a seeded schedule, which then is another one.
            if seed.is_some() && self.kernel.races {
                return Ok(Verdict::Same { both: false });
            }
            device::same(&original, &ran).map_err(at)?;
            let counted = Counted::new(&text, &job, &original);
            let is_plain = seed.is_none();
            let case = Case {
                text: &text,
                job: &job,
                counted: &counted,
                accesses: &accesses,
                assume,
                sms: options.sms,
                probed: &probed,
                ran: &ran,
                is_plain,
            };
            for measure in &self.program {
                measure.check(&case).map_err(at)?;
            }
            for room in [Room::More(1 << 10), Room::Fewer(2)] {
                traced.room = room;
                let why = |why: String| at(format!("dmat, {room:?}: {why}"));
                let ran = device::run(&traced.program, &job, &options, Some(&traced)).map_err(why)?;
                device::same(&original, &ran).map_err(why)?;
                let case = Case { probed: &traced, ran: &ran, ..case };
                judge::judge("dmat", &case).unwrap_or(Ok(())).map_err(why)?;
            }
        }
        Ok(Verdict::Same { both: true })
    }

    fn job(&self) -> Job {
        let mut random = Random::new(self.seed);
        let threads: u64 = self.shape.grid.iter().chain(&self.shape.block).map(|&n| u64::from(n)).product();
        let input = (0..kernel::INPUT).flat_map(|_| (random.bits() as u32 >> random.below(32)).to_le_bytes());
        Job {
            kernel: "k".to_owned(),
            shape: self.shape,
            args: vec![
                Given::Buffer(vec![0; (threads * kernel::WORDS * 4) as usize]),
                Given::Buffer(input.collect()),
                Given::Value(77u32.to_le_bytes().to_vec()),
            ],
            variables: Vec::new(),
        }
    }

    /// The smallest trial that is still wrong, of those that cutting one thing at a time leads to, and what is wrong.
    pub fn shrink(self) -> (Trial, String) {
        let mut small = self;
        let Verdict::Wrong(mut why) = small.run() else { return (small, String::new()) };
        'again: loop {
            let kernels = small.kernel.smaller().into_iter().map(|kernel| Trial { kernel, ..small.clone() });
            let programs = (0..small.program.len()).filter(|_| small.program.len() > 1).map(|at| {
                let mut less = small.clone();
                less.program.remove(at);
                less
            });
            let shapes = [[1, 1, 1], [32, 1, 1]].map(|block| {
                let shape = Shape { grid: [1, 1, 1], block, ..small.shape };
                Trial { shape, ..small.clone() }
            });
            let smaller: Vec<Trial> = programs
                .chain(kernels)
                .chain(shapes.into_iter().filter(|one| {
                    one.shape != small.shape
                        && small.shape.block != [1, 1, 1]
                        && small.shape.block != [32, 1, 1]
                }))
                .collect();
            for trial in smaller {
                if let Verdict::Wrong(found) = trial.run() {
                    (small, why) = (trial, found);
                    continue 'again;
                }
            }
            return (small, why);
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {:?} x {:?}", self.seed, self.shape.grid, self.shape.block)?;
        writeln!(f, "// the probe\n{}", probe::text(&self.program))?;
        write!(f, "// the kernel\n{}", self.kernel.text())
    }
}
