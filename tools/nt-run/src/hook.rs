//! Finds the library that is preloaded.

use crate::environment::can_be_listed;
use crate::folder::RunFolder;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Its name where it is installed, and where cargo puts it.
const NAME: &str = "libnt_hook.so";

/// The hook: `given`, else beside this program, else in `../lib/nt/`.
///
/// # Errors
/// It is not there, or is no shared library.
pub(crate) fn find(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => {
            // The program may have been started through a link.
            let program = std::env::current_exe().and_then(|path| path.canonicalize());
            let program = program.context("failed to find this program's own file")?;
            let folder = program.parent().unwrap_or(Path::new("/"));
            let places = [folder.join(NAME), folder.join("../lib/nt").join(NAME)];
            match places.iter().find(|place| place.is_file()) {
                Some(found) => found.clone(),
                None => bail!(
                    "the hook is neither {} nor {}: name it with `--hook FILE`",
                    places[0].display(),
                    places[1].display()
                ),
            }
        }
    };
    let path = path.canonicalize().with_context(|| format!("failed to find the hook {}", path.display()))?;
    let mut head = [0; 18];
    let read =
        std::fs::File::open(&path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head));
    // A 64-bit ELF file of type ET_DYN: anything else would only make the loader complain at every start.
    if read.is_err() || !head.starts_with(b"\x7fELF\x02") || head[16] != 3 {
        bail!("{} is no shared library", path.display());
    }
    Ok(path)
}

/// A path to the hook that can stand in LD_PRELOAD: its own, or a link in the run folder.
///
/// # Errors
/// The link cannot be made.
pub(crate) fn listed(hook: &Path, folder: &RunFolder) -> anyhow::Result<PathBuf> {
    if can_be_listed(hook) {
        return Ok(hook.to_owned());
    }
    let link = folder.reach.join("hook.so");
    std::os::unix::fs::symlink(hook, &link).with_context(|| format!("failed to make {}", link.display()))?;
    Ok(link)
}
