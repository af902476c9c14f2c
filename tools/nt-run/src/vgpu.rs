//! `--vgpu`: the command runs above the software GPU, a `libcuda.so.1` of ours that executes PTX on the CPU.
//!
//! ```text
//! LD_LIBRARY_PATH=/opt/lib   ->   LD_LIBRARY_PATH=/run/vgpu:/opt/lib   NT_VGPU=1   NT_VGPU_SEED=7
//! ```
//!
//! The loader looks for the driver by name, so the run folder gets a folder with a link of that name, and the command
//! a list that begins with it. Twins go to it as PTX; an assembler, if there is one, only says what they would cost.
//! `docs/vgpu.md` tells what it can do.

use crate::folder::{self, RunFolder};
use crate::target::Target;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Its name where cargo puts it.
const BUILT: &str = "libnt_vgpu_cuda.so";
/// Where `make install` puts it, from the programs' folder.
const INSTALLED: &str = "../lib/nt/vgpu/libcuda.so.1";
/// The variable that the loader reads.
const PATHS: &str = "LD_LIBRARY_PATH";

/// What was asked of the software GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Vgpu {
    /// Shuffles its schedule.
    pub(crate) seed: Option<u64>,
}

impl FromStr for Vgpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Vgpu::default());
        }
        let seed = text.strip_prefix("seed=").and_then(|number| number.parse().ok());
        let seed = seed.ok_or_else(|| format!("`{text}` is not `seed=` and a number"))?;
        Ok(Vgpu { seed: Some(seed) })
    }
}

/// The software GPU's library: beside this program, else in `../lib/nt/vgpu/`.
///
/// # Errors
/// It is not there.
pub(crate) fn find() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let program = program.context("failed to find this program's own file")?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(BUILT), folder.join(INSTALLED)];
    let Some(found) = places.iter().find(|place| place.is_file()) else {
        bail!("the software GPU is neither {} nor {}", places[0].display(), places[1].display())
    };
    found.canonicalize().with_context(|| format!("failed to find {}", found.display()))
}

/// Puts the library where the loader will find it, and gives the variables to set.
///
/// # Errors
/// The run folder does not take it.
pub(crate) fn place(
    vgpu: Vgpu,
    library: &Path,
    target: &Target,
    run: &RunFolder,
    current: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Vec<(&'static str, OsString)>> {
    if target.hostile {
        return Ok(Vec::new());
    }
    let place = run.path.join(folder::VGPU);
    let link = place.join("libcuda.so.1");
    std::fs::create_dir(&place)
        .and_then(|()| std::os::unix::fs::symlink(library, &link))
        .with_context(|| format!("failed to make {}", link.display()))?;
    Ok(changes(vgpu, &run.reach.join(folder::VGPU), current))
}

fn changes(
    vgpu: Vgpu,
    place: &Path,
    current: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, OsString)> {
    let mut paths = place.as_os_str().to_owned();
    if let Some(others) = current(PATHS).filter(|others| !others.is_empty()) {
        paths.push(":");
        paths.push(others);
    }
    let mut changes = vec![(PATHS, paths), ("NT_VGPU", "1".into())];
    changes.extend(vgpu.seed.map(|seed| ("NT_VGPU_SEED", seed.to_string().into())));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_asked() {
        let check = |text: &str, expected: Result<Option<u64>, ()>| {
            assert_eq!(text.parse::<Vgpu>().map(|vgpu| vgpu.seed).map_err(|_| ()), expected, "{text}");
        };
        check("", Ok(None));
        check("seed=7", Ok(Some(7)));
        for wrong in ["7", "seed", "seed=", "seed=x", "seed=-1", "sm=90"] {
            check(wrong, Err(()));
        }
    }

    #[test]
    fn the_loader_finds_ours_first() {
        let check = |current: Option<&str>, expected: &str| {
            let current = |name: &str| current.filter(|_| name == PATHS).map(OsString::from);
            let changes = changes(Vgpu { seed: Some(7) }, Path::new("/run/vgpu"), current);
            let expected = [(PATHS, expected), ("NT_VGPU", "1"), ("NT_VGPU_SEED", "7")];
            assert_eq!(changes, expected.map(|(name, value)| (name, OsString::from(value))));
        };
        check(None, "/run/vgpu");
        check(Some(""), "/run/vgpu");
        check(Some("/opt/lib:/lib"), "/run/vgpu:/opt/lib:/lib");
    }
}
