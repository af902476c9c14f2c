//! Where text comes from and where it goes.

use crate::Ending;
use anyhow::{Context, bail};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A FILE argument: a path, or `-` for standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// `-`
    Stdin,
    /// Anything else; `./-` is a file called `-`.
    Path(PathBuf),
}

/// An `-o` argument: a path, or `-` for standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// `-`, and where `-o` is not given.
    Stdout,
    /// Anything else.
    Path(PathBuf),
}

impl FromStr for Input {
    type Err = std::convert::Infallible;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(if word == "-" { Input::Stdin } else { Input::Path(word.into()) })
    }
}

impl FromStr for Output {
    type Err = std::convert::Infallible;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(if word == "-" { Output::Stdout } else { Output::Path(word.into()) })
    }
}

/// Standard input, which can be read once: a probe and a FILE cannot both be `-`.
#[derive(Debug, Default)]
pub struct Stdin {
    taken: bool,
}

/// A text that was read, and what messages call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The path as given, or `<stdin>`.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Text {
    /// The bytes as UTF-8.
    ///
    /// # Errors
    /// They are not; where is said. It refuses the input.
    pub fn utf8(&self) -> anyhow::Result<&str> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            let at = error.valid_up_to();
            Ending::refused(format!("{} is no text: byte {at} is not UTF-8", self.name)).into()
        })
    }
}

impl Input {
    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Input::Stdin => "<stdin>".to_owned(),
            Input::Path(path) => path.display().to_string(),
        }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// It cannot be read, or it is standard input for the second time, or standard input is a terminal, where a
    /// program that waits in silence looks broken.
    pub fn read(&self, stdin: &mut Stdin) -> anyhow::Result<Text> {
        let mut bytes = Vec::new();
        match self {
            Input::Stdin => {
                if std::mem::replace(&mut stdin.taken, true) {
                    bail!("standard input can be read only once: give one of the two `-` as a file");
                }
                let mut input = std::io::stdin().lock();
                if input.is_terminal() {
                    bail!("standard input is a terminal: give a FILE, or pipe one in");
                }
                input.read_to_end(&mut bytes).context("failed to read standard input")?;
            }
            Input::Path(path) => {
                bytes = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
            }
        }
        Ok(Text { name: self.name(), bytes })
    }
}

impl Output {
    /// Writes `bytes` as a whole: to stdout, or into a file beside the path that is then renamed over it, so that a
    /// failure leaves what was there.
    ///
    /// # Errors
    /// Writing failed. A pipe whose reader left is an error too, which [`crate::main`] takes for success.
    pub fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Output::Stdout => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush()).context("failed to write standard output")
            }
            Output::Path(path) => {
                replace(path, bytes).with_context(|| format!("failed to write {}", path.display()))
            }
        }
    }

    /// Refuses to write bytes that are no text to a terminal, where they would be read as commands.
    ///
    /// # Errors
    /// The output is standard output and that is a terminal.
    pub fn refuse_terminal(&self, what: &str) -> anyhow::Result<()> {
        if *self == Output::Stdout && std::io::stdout().is_terminal() {
            bail!("{what} is binary and standard output is a terminal: use `-o FILE`, or pipe it on");
        }
        Ok(())
    }

    /// A buffered writer for output that is made piece by piece: stdout, or the file itself (for output too large to
    /// be held; a failure leaves what was written so far).
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn stream(&self) -> anyhow::Result<Box<dyn Write>> {
        Ok(match self {
            Output::Stdout => Box::new(BufWriter::with_capacity(1 << 16, std::io::stdout().lock())),
            Output::Path(path) => {
                let file =
                    File::create(path).with_context(|| format!("failed to write {}", path.display()))?;
                Box::new(BufWriter::with_capacity(1 << 16, file))
            }
        })
    }
}

/// Writes beside `path` and renames. A device or pipe in its place (`-o /dev/null`) is written to as it is; a link
/// keeps being one.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if path.metadata().is_ok_and(|data| !data.is_file()) {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".nt-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    // A temporary file is made for its owner alone; the result gets what any new file would, or keeps what it had.
    let mode = path.metadata().map_or_else(|_| permissions(), |data| Ok(data.permissions()))?;
    file.as_file().set_permissions(mode)?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// The permissions that a new file gets: 0666 less the umask.
fn permissions() -> std::io::Result<std::fs::Permissions> {
    use std::os::unix::fs::PermissionsExt;
    // The mask can only be read by setting it, which races with other threads; Linux shows it instead.
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o022);
    Ok(std::fs::Permissions::from_mode(0o666 & !mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ntp");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        Output::Path(path.clone()).write(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = Output::Path("/nowhere/x".into()).write(b"").unwrap_err();
        assert!(format!("{error:#}").starts_with("failed to write /nowhere/x: "), "{error:#}");
    }

    #[test]
    fn stdin_is_read_once() {
        let mut stdin = Stdin { taken: true };
        assert!(Input::Stdin.read(&mut stdin).is_err());
    }
}
