//! What the tests of nt-run share: running it in a folder of its own.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses a part, and stops at the first thing that is wrong"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A probe that saves a record a warp.
pub const PROBE: &str = "block_sched";

/// A folder for one test.
pub struct Place {
    folder: tempfile::TempDir,
}

/// How a run ended.
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// An executable script.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// nt-run in this folder, with a cache of its own and a library for a hook that does nothing.
    pub fn nt_run(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nt-run"));
        command.current_dir(self.folder.path()).env("XDG_CACHE_HOME", self.path("cache"));
        command.args(["-p", PROBE, "--hook"]).arg(idle_library());
        command
    }

    /// A place with a driver in it.
    pub fn with_driver() -> Self {
        let place = Place::new();
        std::fs::create_dir(place.path("lib")).unwrap();
        std::os::unix::fs::symlink(library("libnt_vgpu_cuda.so"), place.path("lib/libcuda.so.1")).unwrap();
        place
    }

    /// nt-run with the real hook, and the driver of this place; without an assembler but one that is named. `probe` is `-p
    /// NAME` or `-e TEXT`.
    pub fn driver_run(&self, probe: [&str; 2]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nt-run"));
        command
            .current_dir(self.path("."))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("LD_LIBRARY_PATH", self.path("lib"))
            .env("NT_VGPU_LOG", self.path("driver.log"))
            .env("PATH", "/usr/bin:/bin")
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH")
            .args(probe)
            .arg("--hook")
            .arg(library("libnt_hook.so"));
        command
    }

    /// Runs `words` so, with a probe that saves a record a warp.
    pub fn run_driver(&self, words: &[&str]) -> Done {
        done(self.driver_run(["-p", PROBE]).args(words).output().unwrap())
    }

    /// Runs `words` under nt-run.
    pub fn run(&self, words: &[&str]) -> Done {
        done(self.nt_run().args(words).output().unwrap())
    }
}

pub fn done(output: Output) -> Done {
    use std::os::unix::process::ExitStatusExt;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    // nt-run itself is never killed by what kills its command.
    assert_eq!(output.status.signal(), None);
    Done { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A library of this workspace, which cargo built beside this test as one of its dependencies.
pub fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().join(name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// A program of C or C++, built of a source below this crate's folder. Test processes that build the same at the same
/// time do not see each other's half-written files.
pub fn compiled(compiler: &str, source: &str, name: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let fresh = built.with_extension(std::process::id().to_string());
    let mut command = Command::new(compiler);
    command.arg("-O2").args(options).arg("-o").arg(&fresh).arg(&source).arg("-ldl");
    let built_well = command.status().is_ok_and(|status| status.success());
    assert!(built_well, "{compiler} is needed to build {}", source.display());
    std::fs::rename(&fresh, &built).unwrap();
    built
}

/// What the driver was asked to launch: how often in all, and how often with a context block as the last parameter.
pub fn launched(place: &Place) -> (u64, u64) {
    let log = std::fs::read_to_string(place.path("driver.log")).unwrap_or_default();
    let params: Vec<_> = log.lines().filter(|line| line.starts_with("launch ")).collect();
    let twins = params.iter().filter(|line| {
        // Two hexadecimal digits a byte; no parameter of the kernels here has more than 8 bytes.
        line.rsplit([',', '=']).next().is_some_and(|last| last.len() > 16)
    });
    (params.len() as u64, twins.count() as u64)
}

/// The traces that hooks left in the run folder of `place`.
pub fn traces(place: &Place) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(place.path("trace.ntt")).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|e| e == "ntt") && !path.ends_with("run.ntt"))
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// A library of the system that does nothing when it is preloaded.
pub fn idle_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .find(|path| path.contains("libc.so"))
        .unwrap();
    Path::new(libc).with_file_name("libm.so.6")
}

/// The testdata of the workspace.
pub fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx").join(name)
}
