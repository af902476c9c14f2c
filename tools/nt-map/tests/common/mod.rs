//! The program, run in a folder of its own.

#![allow(dead_code, unreachable_pub, reason = "a module of several tests, each of which takes a part of it")]

use std::path::PathBuf;
use std::process::Command;

/// A folder for the files of one test.
pub struct Folder(pub tempfile::TempDir);

/// What a run of the program came to.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nt-map"));
        command.args(words).current_dir(self.0.path()).env_remove("NO_COLOR");
        command
    }

    pub fn run(&self, words: &[&str]) -> Run {
        let output = self.command(words).output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs with success and without a word, and compares the lines.
    pub fn check(&self, words: &[&str], expected: &str) {
        assert_eq!(
            self.run(words),
            Run { code: 0, out: expected.to_owned(), err: String::new() },
            "{words:?}"
        );
    }

    /// Runs without a line, and compares exit code and words.
    pub fn refused(&self, words: &[&str], code: i32, expected: &str) {
        assert_eq!(self.run(words), Run { code, out: String::new(), err: expected.to_owned() }, "{words:?}");
    }
}
