//! Runs `ptxas`: the only place in the tool chain that starts an assembler.
//!
//! A text goes into a temporary folder, `ptxas -arch=sm_90 -v` makes a cubin of it there, with the [`Options`] that its
//! image asks for, and both the cubin and what was said come back. NVIDIA's assembler is never required: without one, woven PTX goes to the driver, which
//! assembles it with its own, and the registers stay unknown.
//!
//! Promises: an assembler that hangs is ended after [`Assembler::TIME_OUT`] with all it started, one that talks
//! without end is cut off, and neither a terminal's Ctrl-C nor a `wait(-1)` of anybody sees it (its process group is
//! its own, and it is this process's child alone). <https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/>

mod arch;
mod find;
mod options;
mod place;
mod verbose;

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub use arch::{Arch, Suffix};
pub use options::Options;
pub use place::{Place, place};
pub use verbose::{Remark, Usage, Verbose, Weight, read};

/// A `ptxas` that was found and said its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembler {
    path: PathBuf,
    version: String,
    time_out: Duration,
}

/// What an assembler made of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assembled {
    /// The machine code.
    pub cubin: Vec<u8>,
    /// All that was said, as it was said; [`read`] makes sense of it.
    pub output: String,
}

/// Why there is no machine code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It could not be started, or its files could not be written or read: `ptxas` without the x bit.
    #[error("failed to run {0}: {1}")]
    System(PathBuf, String),
    /// It took too long, and was ended.
    #[error("{0} took longer than {1:?} and was ended")]
    TimedOut(PathBuf, Duration),
    /// It was killed by a signal: out of memory, a fault of its own.
    #[error("{0} was killed by signal {1}")]
    Killed(PathBuf, i32),
    /// It is older than the text or the device: `Unsupported .version 9.9; current version is '9.0'`. The driver's own
    /// assembler may know both.
    #[error("ptxas {version} is too old: {why}")]
    TooOld {
        /// Of the assembler.
        version: String,
        /// What it does not know.
        why: String,
    },
    /// It refuses the text.
    #[error("ptxas refuses the text: {}", said(.0))]
    Refused(Vec<Remark>),
}

/// The errors among remarks, on one line.
fn said(remarks: &[Remark]) -> String {
    let mut errors = remarks.iter().filter(|remark| remark.weight == Weight::Error);
    let first = match errors.next() {
        Some(Remark { line: Some(line), text, .. }) => format!("line {line}: {text}"),
        Some(Remark { text, .. }) => text.clone(),
        None => return "it does not say why".to_owned(),
    };
    match errors.count() {
        0 => first,
        more => format!("{first} (and {more} more)"),
    }
}

/// What the kernels of `ptx` take on `arch`, by mangled name. A kernel that the assembler does not speak of is absent.
///
/// # Errors
/// As [`Assembler::run`].
pub fn registers(assembler: &Assembler, ptx: &str, arch: Arch) -> Result<BTreeMap<String, Usage>, Failure> {
    let assembled = assembler.run(ptx, arch)?;
    Ok(read(&assembled.output, SOURCE).kernels)
}

/// The file name that messages of an assembler repeat; paths of temporary folders do not get into outputs.
pub const SOURCE: &str = "module.ptx";

/// More than this of an assembler's words is cut off.
const WORDS: u64 = 4 << 20;

impl Assembler {
    /// How long an assembler may take, unless [`Assembler::with_time_out`] says otherwise. A hook waits a minute for its
    /// answer, and is to hear the reason.
    pub const TIME_OUT: Duration = Duration::from_secs(45);

    /// The same with another time-out.
    #[must_use]
    pub fn with_time_out(self, time_out: Duration) -> Self {
        Assembler { time_out, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it calls itself: `13.0.88`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Assembles `ptx` for `arch`.
    ///
    /// # Errors
    /// It cannot be run, takes too long, is too old, or refuses the text.
    pub fn run(&self, ptx: &str, arch: Arch) -> Result<Assembled, Failure> {
        self.run_with(ptx, arch, &Options::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_with(&self, ptx: &str, arch: Arch, options: &Options) -> Result<Assembled, Failure> {
        let system = |error: std::io::Error| Failure::System(self.path.clone(), error.to_string());
        let folder = tempfile::Builder::new().prefix("nt-ptxas-").tempdir().map_err(system)?;
        std::fs::write(folder.path().join(SOURCE), ptx).map_err(system)?;
        let mut command = Command::new(&self.path);
        command
            .arg(format!("-arch={arch}"))
            .args(options.words())
            .args(["-v", "-o", "module.cubin", SOURCE])
            .current_dir(folder.path());
        let (status, output) = self.wait(command)?;
        if status.success() {
            let cubin = std::fs::read(folder.path().join("module.cubin")).map_err(system)?;
            return Ok(Assembled { cubin, output });
        }
        if let Some(signal) = status.signal() {
            return Err(Failure::Killed(self.path.clone(), signal));
        }
        let remarks = read(&output, SOURCE).remarks;
        let unknown = remarks.iter().find(|remark| {
            let text = &remark.text;
            text.starts_with("Unsupported .version") || text.contains("is not defined for option 'gpu-name'")
        });
        Err(match unknown {
            Some(remark) => Failure::TooOld { version: self.version.clone(), why: remark.text.clone() },
            None => Failure::Refused(remarks),
        })
    }

    /// Runs `command` to its end, and gives how it ended and what it said on both streams.
    fn wait(&self, mut command: Command) -> Result<(ExitStatus, String), Failure> {
        let system = |error: std::io::Error| Failure::System(self.path.clone(), error.to_string());
        let (reader, writer) = std::io::pipe().map_err(system)?;
        // What a user preloads is meant for the command, which the assembler is none of.
        command
            .env("LC_ALL", "C")
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(system)?)
            .stderr(writer)
            .process_group(0);
        let mut child = command.spawn().map_err(system)?;
        // The command holds the pipe's other end, and the reader waits until all of these are closed.
        drop(command);
        let (sender, words) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = Vec::new();
            let mut reader = reader.take(WORDS);
            let read = reader.read_to_end(&mut output);
            // Beyond the limit the words are read and dropped, lest the assembler wait for a reader for ever.
            let rest = std::io::copy(&mut reader.into_inner(), &mut std::io::sink());
            // The waiter may have given up.
            let _ = sender.send(read.and(rest).map(|_| output));
        });
        let started = Instant::now();
        let Ok(output) = words.recv_timeout(self.time_out) else {
            end(&mut child);
            return Err(Failure::TimedOut(self.path.clone(), self.time_out));
        };
        // Both streams are closed, which an assembler does by ending; one that lives on is given the rest of its time.
        let status = loop {
            if let Some(status) = child.try_wait().map_err(system)? {
                break status;
            }
            if started.elapsed() > self.time_out {
                end(&mut child);
                return Err(Failure::TimedOut(self.path.clone(), self.time_out));
            }
            std::thread::sleep(Duration::from_micros(200));
        };
        Ok((status, String::from_utf8_lossy(&output.map_err(system)?).into_owned()))
    }
}

/// Ends a child and its process group, and takes its status so that no zombie stays.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // It was not waited for yet, so the number is still its own. Gone already is as good as ended.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A stand-in that is a shell script; what the real one says is tested in `verbose` and in `tests/`.
    fn script(body: &str) -> (tempfile::TempDir, Assembler) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ptxas");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let time_out = Duration::from_secs(10);
        (folder, Assembler { path, version: "0.0.1".to_owned(), time_out })
    }

    fn check(body: &str, expected: &str) {
        let (_folder, assembler) = script(body);
        let result = assembler.run("// text", Arch::plain(90)).map_err(|error| match error {
            // The path is a temporary folder's.
            Failure::System(..) => "system".to_owned(),
            other => other.to_string().replace(&*assembler.path.to_string_lossy(), "ptxas"),
        });
        let text = match result {
            Ok(done) => format!("{} | {}", String::from_utf8_lossy(&done.cubin), done.output),
            Err(error) => error,
        };
        assert_eq!(text, expected);
    }

    #[test]
    fn the_text_goes_in_and_the_cubin_comes_out() {
        check(
            r#"test "$1 $2 $3" = "-arch=sm_90 -v -o" && tr a-z A-Z <"$5" >"$4" && echo said >&2"#,
            "// TEXT | said\n",
        );
    }

    #[test]
    fn refusals_and_deaths_are_told_apart() {
        check(
            r#"echo "ptxas $5, line 2; error   : Unknown symbol 'x'"; exit 255"#,
            "ptxas refuses the text: line 2: Unknown symbol 'x'",
        );
        check("exit 1", "ptxas refuses the text: it does not say why");
        check(
            r#"echo "ptxas $5, line 9; fatal   : Unsupported .version 9.9; current version is '9.0'"; exit 255"#,
            "ptxas 0.0.1 is too old: Unsupported .version 9.9; current version is '9.0'",
        );
        check("kill -9 $$", "ptxas was killed by signal 9");
        check("exit 0", "system");
    }

    #[test]
    fn one_that_hangs_is_ended_with_its_children() {
        for body in ["sleep 600 & sleep 600", "exec >&- 2>&-; sleep 600"] {
            let (_folder, assembler) = script(body);
            let assembler = assembler.with_time_out(Duration::from_millis(200));
            let started = Instant::now();
            let result = assembler.run("", Arch::plain(90));
            assert!(matches!(result, Err(Failure::TimedOut(..))), "{result:?}");
            assert!(started.elapsed() < Duration::from_secs(5));
        }
    }

    #[test]
    fn one_that_talks_without_end_is_cut_off() {
        let (_folder, assembler) = script("head -c 9000000 /dev/zero | tr '\\0' x; : >module.cubin");
        let done = assembler.run("", Arch::plain(90)).unwrap();
        assert_eq!(done.output.len() as u64, WORDS);
    }
}
