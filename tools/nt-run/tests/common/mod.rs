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
