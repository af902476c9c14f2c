//! Finds the assembler: `--ptxas FILE`, else `ptxas` on PATH, else under CUDA_HOME, else where installers put it.

use super::{Assembler, Failure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

impl Assembler {
    /// The assembler to use. `given` is what the user named; without it none may be found, which is no failure.
    ///
    /// # Errors
    /// The one that was named cannot be run, or does not say that it is a `ptxas`.
    pub fn find(given: Option<&Path>) -> Result<Option<Assembler>, Failure> {
        match given {
            Some(path) => Assembler::at(path).map(Some),
            // One that is there and broken is passed over for the next.
            None => Ok(candidates(|name| std::env::var_os(name)).find_map(|path| Assembler::at(&path).ok())),
        }
    }

    /// The assembler at a path, asked for its version.
    fn at(path: &Path) -> Result<Assembler, Failure> {
        let system = |why: String| Failure::System(path.to_owned(), why);
        // It is run from a temporary folder, where a relative path leads elsewhere.
        let path = std::path::absolute(path).map_err(|error| system(error.to_string()))?;
        let asked = Assembler { path, version: String::new(), time_out: Duration::from_secs(20) };
        let mut command = Command::new(&asked.path);
        command.arg("--version");
        let (status, output) = asked.wait(command)?;
        match version(&output) {
            Some(version) if status.success() => {
                Ok(Assembler { version: version.to_owned(), time_out: Assembler::TIME_OUT, ..asked })
            }
            _ => Err(system("it does not answer `--version` as ptxas does".to_owned())),
        }
    }
}

/// Places to look at, in order, that hold a file.
fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> impl Iterator<Item = PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).filter(|p| p.is_absolute()).collect();
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(&variable).map(PathBuf::from);
    places.extend(homes.chain([PathBuf::from("/usr/local/cuda")]).map(|home| home.join("bin")));
    places.into_iter().map(|place| place.join("ptxas")).filter(|path| path.is_file())
}

/// `Cuda compilation tools, release 13.0, V13.0.88` is version 13.0.88.
fn version(output: &str) -> Option<&str> {
    output.lines().find_map(|line| {
        let (_, version) = line.strip_prefix("Cuda compilation tools, release ")?.rsplit_once(", V")?;
        let number = version.trim();
        number.bytes().all(|b| b.is_ascii_digit() || b == b'.').then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_comes_before_cuda_home() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a", "b", "home/bin"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["b/ptxas", "home/bin/ptxas"] {
            std::fs::write(at(name), "").unwrap();
        }
        let path = std::env::join_paths([at("a"), "relative".into(), at("b")]).unwrap();
        let found: Vec<_> = candidates(|name| match name {
            "PATH" => Some(path.clone()),
            "CUDA_HOME" => Some(at("home").into()),
            _ => None,
        })
        .filter(|found| found.starts_with(folder.path()))
        .collect();
        assert_eq!(found, [at("b/ptxas"), at("home/bin/ptxas")]);
    }

    #[test]
    fn versions_as_they_are_said() {
        // From 11.8.89 and 13.0.88.
        let said = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCopyright (c) 2005-2022 NVIDIA Corporation\n\
                    Built on Wed_Sep_21_10:31:54_PDT_2022\nCuda compilation tools, release 11.8, V11.8.89\n\
                    Build cuda_11.8.r11.8/compiler.31833905_0\n";
        assert_eq!(version(said), Some("11.8.89"));
        assert_eq!(version("Cuda compilation tools, release 13.0, V13.0.88"), Some("13.0.88"));
        assert_eq!(version("ls (GNU coreutils) 9.1"), None);
    }

    #[test]
    fn what_is_named_must_be_one() {
        let error = Assembler::find(Some(Path::new("/bin/ls"))).unwrap_err().to_string();
        assert_eq!(error, "failed to run /bin/ls: it does not answer `--version` as ptxas does");
        assert!(Assembler::find(Some(Path::new("/nowhere/ptxas"))).is_err());
    }
}
