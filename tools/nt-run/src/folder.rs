//! The run folder: where a run's traces, its socket and its log are.
//!
//! | entry | what |
//! |---|---|
//! | `.nt-run` | says that the folder is ours, and is locked while a run writes into it |
//! | `sock` | where hooks find us |
//! | `hook.so` | a link to the hook, where its own path cannot stand in LD_PRELOAD |
//! | `vgpu/` | under `--vgpu`: a link to the software GPU, by the driver's name |
//! | `log` | what happened, a line an event |
//! | `run.ntt` | what the run covered |
//! | `PID.START.ntt` | a process' trace, written by its hook |
//! | `kept/` | under `--keep`: each kernel's PTX before and after, and its cubin |
//! | `bug-N/` | what shows a fault of ours again |
//!
//! A folder that a run left is replaced by the next one. One that holds anything else is not: we remove only what we
//! know by name, and only beside our own mark.

use anyhow::{Context, bail};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A folder that this process holds.
#[derive(Debug)]
pub(crate) struct RunFolder {
    /// As the user gave it, for messages.
    pub(crate) shown: PathBuf,
    /// Absolute.
    pub(crate) path: PathBuf,
    /// A path to the same folder that fits everywhere: into LD_PRELOAD and into a socket's address.
    pub(crate) reach: PathBuf,
    /// Held while the run lasts; the lock goes with it.
    _mark: File,
    /// Holds the link that `reach` is, if one was needed.
    _alias: Option<tempfile::TempDir>,
}

/// The file that tells our folders from others'.
const MARK: &str = ".nt-run";

/// The folder of the software GPU.
pub(crate) const VGPU: &str = "vgpu";

/// `sun_path` takes 108 bytes with its NUL, and the hook joins `/sock`.
const LONGEST: usize = 100;

impl RunFolder {
    /// Makes the folder, or takes over one of an earlier run.
    ///
    /// # Errors
    /// Something else is there, another run is using it, or it cannot be written.
    pub(crate) fn create(shown: &Path) -> anyhow::Result<RunFolder> {
        let name = || shown.display();
        if shown.exists() && !shown.is_dir() {
            bail!("{} is a file: choose a folder with `-o`", name());
        }
        std::fs::create_dir_all(shown).with_context(|| format!("failed to make {}", name()))?;
        let path = shown.canonicalize().with_context(|| format!("failed to find {}", name()))?;
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&path).with_context(|| format!("failed to read {}", name()))? {
            entries.push(entry.with_context(|| format!("failed to read {}", name()))?);
        }
        entries.sort_by_key(std::fs::DirEntry::file_name);
        if !entries.is_empty() && !entries.iter().any(|entry| entry.file_name() == MARK) {
            bail!(
                "{} holds files and is no run folder of nt-run: choose another with `-o`, or move it away",
                name()
            );
        }
        // The mark comes first: whatever interrupts us from here on leaves a folder that the next run may replace.
        let mark = File::options().create(true).append(true).open(path.join(MARK));
        let mut mark = mark.with_context(|| format!("failed to write into {}", name()))?;
        // Some network file systems have no locks; there a run that goes on is not seen.
        if rustix::fs::flock(&mark, FlockOperation::NonBlockingLockExclusive)
            == Err(rustix::io::Errno::WOULDBLOCK)
        {
            bail!("{} is in use by another nt-run: choose another folder with `-o`", name());
        }
        if let Some(strange) = entries.iter().find(|entry| !is_ours(&entry.file_name().to_string_lossy())) {
            bail!(
                "{} holds `{}`, which is none of nt-run's: choose another folder with `-o`, or move that away",
                name(),
                strange.file_name().to_string_lossy()
            );
        }
        for entry in entries.iter().filter(|entry| entry.file_name() != MARK) {
            let path = entry.path();
            // The type of a link is the link's: what it leads to stays.
            let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.with_context(|| format!("failed to remove {}", path.display()))?;
        }
        mark.set_len(0)
            .and_then(|()| writeln!(mark, "nt-run {}", env!("CARGO_PKG_VERSION")))
            .with_context(|| format!("failed to write into {}", name()))?;
        let (reach, alias) = reach(&path)?;
        Ok(RunFolder { shown: shown.to_owned(), path, reach, _mark: mark, _alias: alias })
    }

    /// Where the hooks' socket is.
    pub(crate) fn socket(&self) -> PathBuf {
        self.reach.join("sock")
    }
}

/// A path that fits everywhere; where the folder's own does not, through a link in the folder for temporary files.
fn reach(path: &Path) -> anyhow::Result<(PathBuf, Option<tempfile::TempDir>)> {
    if path.as_os_str().as_bytes().len() <= LONGEST && crate::environment::can_be_listed(path) {
        return Ok((path.to_owned(), None));
    }
    // TMPDIR may be as long as the path itself.
    let places = [std::env::temp_dir(), PathBuf::from("/tmp")];
    for place in places {
        let Ok(folder) = tempfile::Builder::new().prefix("nt-run-").tempdir_in(&place) else { continue };
        let link = folder.path().join("run");
        if link.as_os_str().as_bytes().len() <= LONGEST
            && crate::environment::can_be_listed(&link)
            && std::os::unix::fs::symlink(path, &link).is_ok()
        {
            return Ok((link, Some(folder)));
        }
    }
    bail!(
        "{} cannot stand in LD_PRELOAD (a space, a colon, or too long), and /tmp takes no link to it",
        path.display()
    )
}

/// Names that runs leave.
fn is_ours(name: &str) -> bool {
    let numbered =
        |name: &str| name.strip_prefix("bug-").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    matches!(name, MARK | "settings" | "sock" | "hook.so" | "log" | "kept" | VGPU)
        || name.ends_with(".ntt")
        || numbered(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_of_ours_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/trace.ntt");
        let first = RunFolder::create(&path).unwrap();
        std::fs::create_dir_all(path.join("bug-1/x")).unwrap();
        for name in ["12.34.ntt", "run.ntt", "log", "sock"] {
            std::fs::write(path.join(name), name).unwrap();
        }
        drop(first);
        let again = RunFolder::create(&path).unwrap();
        assert_eq!(names(&path), [MARK]);
        assert_eq!(again.reach, again.path);
    }

    #[test]
    fn whatever_else_is_there_stays() {
        let place = tempfile::tempdir().unwrap();
        let refused = |path: &Path, part: &str| {
            let error = RunFolder::create(path).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        std::fs::write(place.path().join("thesis.tex"), "").unwrap();
        refused(place.path(), "is no run folder of nt-run");
        refused(&place.path().join("thesis.tex"), "is a file");

        let path = place.path().join("run");
        drop(RunFolder::create(&path).unwrap());
        std::fs::write(path.join("1.2.ntt"), "").unwrap();
        std::fs::write(path.join("notes.txt"), "").unwrap();
        refused(&path, "holds `notes.txt`");
        assert_eq!(names(&path), [MARK, "1.2.ntt", "notes.txt"]);
    }

    #[test]
    fn a_run_that_goes_on_keeps_its_folder() {
        let place = tempfile::tempdir().unwrap();
        let _first = RunFolder::create(place.path()).unwrap();
        let error = RunFolder::create(place.path()).unwrap_err().to_string();
        assert!(error.contains("in use by another nt-run"), "{error}");
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let precious = place.path().join("precious");
        std::fs::create_dir(&precious).unwrap();
        std::fs::write(precious.join("data"), "").unwrap();
        let path = place.path().join("run");
        drop(RunFolder::create(&path).unwrap());
        std::os::unix::fs::symlink(&precious, path.join("kept")).unwrap();
        drop(RunFolder::create(&path).unwrap());
        assert!(precious.join("data").exists() && !path.join("kept").exists());
    }

    #[test]
    fn a_path_that_does_not_fit_is_reached_by_a_link() {
        let place = tempfile::tempdir().unwrap();
        for name in ["a b".to_owned(), "a:b".to_owned(), "x".repeat(150)] {
            let run = RunFolder::create(&place.path().join(&name)).unwrap();
            assert_ne!(run.reach, run.path);
            assert!(run.socket().as_os_str().len() < 108);
            assert_eq!(run.reach.canonicalize().unwrap(), run.path);
        }
    }
}
