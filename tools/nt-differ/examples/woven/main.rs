//! Weaves probes into texts, and asks assemblers what that cost and whether they have anything new to say.
//!
//! ```text
//! cargo run --release -p nt-differ --example woven -- --ptxas .tools/bin/ptxas --cache .tools/judged \
//!     --probe testdata/probes/points.nt testdata/ptx/*/*.ptx
//! | ptxas | probe | modules | kernels | refused | new notices | registers | most | spilling | spilled bytes |
//! | 13.0.88 | block_sched | 74 | 512 | 3 | 0 | +1.4 | +6 | 2 → 2 | 0 → 0 |
//! ```
//!
//! Probes are the shipped ones that compile, and those of `--probe FILE`. A version that is too new for an assembler is
//! lowered before weaving: little of what compilers write needs the version that they claim. A text that is refused all
//! the same is not judged by that assembler. Answers are kept in `--cache`, by what they depend on.
//!
//! Exits with 1 if an assembler refuses what was woven, has a new notice or warning, or the verifier refuses it.

mod verdict;

use nt_differ::device::Text;
use nt_differ::probed;
use nt_engine::assemble::{Arch, Assembler, Failure, Options, Suffix};
use nt_engine::cache::{Cache, Kept, Key};
use nt_ir::Prepared;
use nt_ptx::Edits;
use nt_ptx::version::of_release;
use std::io::{Error, Result, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use verdict::{Answer, Row, Verdict};

/// The probes at every statement of a large module take their time.
const PATIENCE: Duration = Duration::from_secs(900);

/// What is judged, and by whom.
struct Bench {
    assemblers: Vec<Assembler>,
    probes: Vec<(String, Prepared)>,
    files: Vec<(PathBuf, String)>,
    cache: Cache,
    jobs: usize,
}

fn say(text: &str) {
    // A reader that has seen enough may leave.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn probe(name: &str, source: &str) -> Result<(String, Prepared)> {
    let prepared = probed::compile(source, name).map_err(|why| Error::other(format!("{name}: {why}")))?;
    Ok((name.to_owned(), prepared))
}

impl Bench {
    fn of_arguments() -> Result<Bench> {
        let mut bench = Bench {
            assemblers: Vec::new(),
            probes: Vec::new(),
            files: Vec::new(),
            cache: Cache::none(),
            jobs: 1,
        };
        for shipped in nt_probe::SHIPPED.iter().filter(|one| nt_probe::missing(one.text).is_empty()) {
            bench.probes.push(probe(shipped.name, shipped.text)?);
        }
        let mut args = std::env::args_os().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().map(PathBuf::from).unwrap_or_default();
            match arg.to_str() {
                Some("--ptxas") => {
                    let found = Assembler::find(Some(&value())).map_err(Error::other)?;
                    bench.assemblers.extend(found.map(|one| one.with_time_out(PATIENCE)));
                }
                Some("--cache") => bench.cache = Cache::at(&value(), 4 * Cache::LIMIT),
                Some("--jobs") => bench.jobs = value().to_str().and_then(|n| n.parse().ok()).unwrap_or(1),
                Some("--probe") => {
                    let file = value();
                    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    bench.probes.push(probe(&name, &std::fs::read_to_string(&file)?)?);
                }
                _ => {
                    let file = PathBuf::from(arg);
                    let text = std::fs::read_to_string(&file)?;
                    bench.files.push((file, text));
                }
            }
        }
        Ok(bench)
    }

    /// What an assembler says of a text: of what it refuses, why.
    fn answer(&self, assembler: &Assembler, arch: Arch, text: &str) -> std::result::Result<Answer, Failure> {
        let key = Key::of(text, arch, &Options::default(), assembler, Kept::Words);
        let assembled = match self.cache.get(key) {
            Some(hit) => hit,
            None => {
                let mut assembled = assembler.run(text, arch)?;
                assembled.cubin = Vec::new();
                self.cache.put(key, &assembled);
                assembled
            }
        };
        Ok(Answer::of(&assembled.output))
    }

    /// One file before one assembler, with every probe.
    fn judge(&self, assembler: &Assembler, file: &Path, text: &str) -> Vec<(usize, Verdict)> {
        let (module, _) = nt_ptx::parse(text);
        let mut edits = Edits::new();
        let mut numbers = assembler.version().split('.').map_while(|number| number.parse().ok());
        let newest = numbers.next().zip(numbers.next()).and_then(|(major, minor)| of_release(major, minor));
        if let (Some(own), Some(newest)) = (module.version, newest)
            && newest < own.pair()
        {
            edits.replace(own.number, format!("{}.{}", newest.0, newest.1));
        }
        let lowered = edits.apply(text).unwrap_or_default();
        let Some(arch) = module.arch().and_then(Arch::parse) else { return Vec::new() };
        // From CUDA 13 on ptxas assembles for sm_75 and later, whatever older target the text has.
        let is_old =
            arch.suffix == Suffix::None && arch.number < 75 && !assembler.version().starts_with("12.");
        let arch = if is_old { Arch::plain(75) } else { arch };
        let Ok(text) = Text::load(&lowered) else { return Vec::new() };
        let before = match self.answer(assembler, arch, &lowered) {
            Ok(before) => before,
            Err(why) => {
                let line = format!("ptxas {}, {}: not judged: {why}", assembler.version(), file.display());
                let _ = writeln!(std::io::stderr(), "{line}");
                return Vec::new();
            }
        };
        let judge = |probe: &Prepared| -> Verdict {
            let chosen: Vec<usize> = (0..text.module.functions.len()).collect();
            let woven = nt_weave::weave(&text.module, &text.info, probe, &chosen);
            let refused =
                woven.refused.iter().map(|(kernel, why)| (kernel.clone(), why.slug)).collect::<Vec<_>>();
            if woven.kernels.is_empty() {
                return Verdict { refused, ..Verdict::default() };
            }
            let report = nt_verify::check(text.text, &woven.text);
            let first = report.violations().first();
            let fault = first.map(|one| format!("the verifier refuses it: {} ({})", one.message, one.rule));
            let kernels: Vec<&str> = woven.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            match self.answer(assembler, arch, &woven.text) {
                Ok(after) => Verdict { fault, refused, ..Verdict::of(&before, &after, &kernels) },
                Err(why) => Verdict { fault: Some(why.to_string()), refused, ..Verdict::default() },
            }
        };
        let judged = self.probes.iter().enumerate().map(|(number, (name, probe))| {
            let verdict = judge(probe);
            verdict.tell(&format!("ptxas {}, {}, {name}", assembler.version(), file.display()));
            (number, verdict)
        });
        judged.collect()
    }

    /// Every file before every assembler, so many at a time.
    fn run(&self) -> bool {
        let tasks = self.assemblers.len() * self.files.len();
        let next = AtomicUsize::new(0);
        let mut judged: Vec<(usize, Vec<(usize, Verdict)>)> = std::thread::scope(|scope| {
            let work = || {
                let mut done = Vec::new();
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    if tasks <= task {
                        return done;
                    }
                    // Below the product of both numbers.
                    let assembler = &self.assemblers[task / self.files.len()];
                    let (file, text) = &self.files[task % self.files.len()];
                    done.push((task, self.judge(assembler, file, text)));
                }
            };
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        });
        judged.sort_by_key(|(task, _)| *task);
        say(Row::HEAD);
        let mut is_good = true;
        for (number, assembler) in self.assemblers.iter().enumerate() {
            for (which, (name, _)) in self.probes.iter().enumerate() {
                let of = judged.iter().filter(|(task, _)| task / self.files.len() == number);
                let verdicts = of.flat_map(|(_, all)| all.iter().filter(|(probe, _)| *probe == which));
                let row: Row = verdicts.map(|(_, verdict)| verdict).collect();
                say(&format!("| {} | {name} {row}", assembler.version()));
                is_good &= row.is_good();
            }
        }
        is_good
    }
}

fn main() -> ExitCode {
    match Bench::of_arguments() {
        Ok(bench) if bench.run() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "woven: {error}");
            ExitCode::from(2)
        }
    }
}
