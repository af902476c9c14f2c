//! What the hook's tests share: C programs compiled when they are needed, a folder with a driver in it, a parent at the
//! other end of the socket, and a reader of what came out.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first thing that is wrong")]

pub mod parent;
pub mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

pub use parent::{Fate, Parent};
pub use trace::Trace;

/// The library of a package of this workspace, as cargo has just built it.
pub fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let candidates = [deps.join(name), deps.parent().unwrap().join(name)];
    // A dependency's library lies beside the test, the package's own a folder up; the newer one is meant.
    let found = candidates.into_iter().filter(|path| path.exists());
    let newest = found.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("{name} was not built"))
}

/// A C program or library from `tests/programs`, compiled once a test binary.
pub fn program(source: &str, flags: &[&str]) -> PathBuf {
    program_as(&format!("{source} {}", flags.join(" ")), source, flags)
}

/// The same, known by a name.
fn program_as(key: &str, source: &str, flags: &[&str]) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(path) = built.get(key) {
        return path.clone();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs.{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.join(format!("{}-{}", source.file_stem().unwrap().to_str().unwrap(), built.len()));
    let done = Command::new("cc")
        .args(["-O1", "-Wall", "-Wno-unused-function", "-o"])
        .args([&out, &source])
        .args(flags)
        .args(["-ldl", "-lpthread"])
        .status()
        .expect("cc is needed to build the tests' programs");
    assert!(done.success(), "cc {}", source.display());
    built.insert(key.to_owned(), out.clone());
    out
}

/// Starts a program that was copied just now: a child that another test is starting may still hold the copy open for
/// writing, for as long as it takes to its own `exec`.
pub fn spawn(command: &mut Command) -> std::process::Child {
    for _ in 0..200 {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            child => return child.unwrap(),
        }
    }
    panic!("the program stays busy");
}

/// A folder with `libcuda.so.1`, a run folder, a log, and a parent that listens.
pub struct Scene {
    folder: tempfile::TempDir,
    pub parent: Option<Parent>,
    pub fault: String,
    pub variables: Vec<(String, String)>,
    pub driver: bool,
}

/// What a run left behind.
pub struct Run {
    pub output: Output,
    pub traces: Vec<Trace>,
    /// Lines of the driver's log, split at spaces.
    pub log: Vec<Vec<String>>,
    pub parent: Option<parent::Seen>,
}

impl Scene {
    /// With a parent that selects `chosen` and has a twin for it.
    pub fn new() -> Scene {
        Scene::with(Fate::default())
    }

    pub fn with(fate: Fate) -> Scene {
        let mut scene = Scene::without_parent();
        scene.parent = Some(Parent::start(&scene.run_folder(), fate));
        scene
    }

    pub fn without_parent() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("run")).unwrap();
        std::fs::create_dir_all(folder.path().join("lib")).unwrap();
        std::os::unix::fs::symlink(library("libnt_vgpu_cuda.so"), folder.path().join("lib/libcuda.so.1"))
            .unwrap();
        Scene { folder, parent: None, fault: String::new(), variables: Vec::new(), driver: true }
    }

    pub fn run_folder(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn driver_path(&self) -> String {
        self.path("lib/libcuda.so.1").to_str().unwrap().to_owned()
    }

    /// `app`, linking the driver.
    pub fn linked(&self) -> PathBuf {
        let library = self.path("lib/libcuda.so.1");
        self.beside("app.c", &["-DLINKED", library.to_str().unwrap()], "linked")
    }

    /// `app`, opening the driver itself.
    pub fn app(&self) -> PathBuf {
        self.beside("app.c", &[], "app")
    }

    /// A program in the scene's folder that looks for libraries in `lib` there, in an empty environment too.
    fn beside(&self, source: &str, flags: &[&str], name: &str) -> PathBuf {
        let built = program_as(name, source, &[flags, &["-Wl,-rpath,$ORIGIN/lib"]].concat());
        let here = self.path(name);
        std::fs::copy(built, &here).unwrap();
        here
    }

    /// The command, with the hook in front.
    pub fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .env("LD_PRELOAD", library("libnt_hook.so"))
            .env("NT_RUN", self.run_folder())
            .env("NT_VGPU_LOG", self.path("log"))
            .env_remove("LD_LIBRARY_PATH")
            .stdin(Stdio::null());
        if !self.fault.is_empty() {
            command.env("NT_VGPU_FAULT", &self.fault);
        }
        if self.driver {
            command.env("LD_LIBRARY_PATH", self.path("lib"));
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a program to its end, which must come within half a minute.
    pub fn run(self, program: &Path, words: &[&str]) -> Run {
        let mut command = self.command(program, words);
        let child = spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        self.wait(child)
    }

    pub fn wait(self, child: std::process::Child) -> Run {
        let pid = child.id().to_string();
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if end.recv_timeout(Duration::from_secs(30)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").arg("-9").arg(pid).status();
            }
        });
        let output = child.wait_with_output().unwrap();
        drop(ended);
        watch.join().unwrap();
        self.end(output)
    }

    fn end(mut self, output: Output) -> Run {
        let parent = self.parent.take().map(Parent::stop);
        let mut traces = Vec::new();
        for entry in std::fs::read_dir(self.run_folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "ntt") {
                traces.push(Trace::read(&path));
            }
        }
        traces.sort_by_key(|trace| trace.start.as_ref().map(|start| start.pid));
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let log = log.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
        Run { output, traces, log, parent }
    }
}

impl Run {
    /// The program must not have noticed anything: it says "ok" and nothing else, on either stream.
    pub fn ok(&self) -> &Run {
        let (out, err) =
            (String::from_utf8_lossy(&self.output.stdout), String::from_utf8_lossy(&self.output.stderr));
        let fine = self.output.status.success() && out.ends_with("ok\n") && err.is_empty();
        assert!(fine, "{:?}\n{out}{err}", self.output.status);
        self
    }

    /// The one trace.
    pub fn trace(&self) -> &Trace {
        assert_eq!(self.traces.len(), 1, "traces");
        &self.traces[0]
    }

    /// How often the driver was asked to launch a kernel: as it is, and with one parameter more.
    pub fn launched(&self, kernel: &str) -> (usize, usize) {
        let lines = self.log.iter().filter(|line| line[0] == "launch" && line[2] == kernel);
        let params = lines.map(|line| line.last().unwrap().split(',').count());
        let (mut plain, mut twins) = (0, 0);
        for count in params {
            if count > if kernel == "bare" { 1 } else { 2 } {
                twins += 1;
            } else {
                plain += 1;
            }
        }
        (plain, twins)
    }

    /// Lines of the driver's log that begin with a word.
    pub fn logged(&self, word: &str) -> usize {
        self.log.iter().filter(|line| line[0] == word).count()
    }
}
