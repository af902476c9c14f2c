//! What the command's environment gets: our library first in LD_PRELOAD, and where the run folder is.
//!
//! ```text
//! LD_PRELOAD=libother.so           ->   LD_PRELOAD=/run/hook.so:libother.so   NT_RUN=/run
//! LD_PRELOAD=libasan.so:libx.so    ->   LD_PRELOAD=libasan.so:/run/hook.so:libx.so
//! ```
//!
//! Ours goes first because another library that answers `dlsym` without asking the next one would hide it; a user's
//! own list is kept behind it. Only AddressSanitizer goes before: it refuses to start anywhere else.

use crate::target::Target;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The variable that leads a hook to its run folder; it reads no other.
pub(crate) const RUN: &str = "NT_RUN";

/// Can a loader's list name this path? It splits at spaces and colons, and knows no quotes.
pub(crate) fn can_be_listed(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|b| matches!(b, b' ' | b':' | b'\t' | b'\n'))
}

/// Variables to set, given those that are there. A `hostile` target must not see the library.
pub(crate) fn changes(
    current: impl Fn(&str) -> Option<OsString>,
    target: &Target,
    hook: &Path,
    run: &Path,
) -> Vec<(&'static str, OsString)> {
    let mut changes = vec![(RUN, run.as_os_str().to_owned())];
    if target.hostile {
        return changes;
    }
    changes.push(("LD_PRELOAD", preload(&current("LD_PRELOAD").unwrap_or_default(), hook)));
    if target.asan {
        let mut options = current("ASAN_OPTIONS").unwrap_or_default();
        if !options.is_empty() {
            options.push(":");
        }
        // The last of two settings of one option counts.
        options.push("verify_asan_link_order=0");
        changes.push(("ASAN_OPTIONS", options));
    }
    changes
}

/// The user's list with the hook in front, and AddressSanitizer before that.
fn preload(current: &OsStr, hook: &Path) -> OsString {
    let words = current.as_bytes().split(|b| matches!(b, b' ' | b':')).filter(|word| !word.is_empty());
    let (first, rest): (Vec<&[u8]>, Vec<&[u8]>) = words.partition(|word| is_asan(word));
    let all: Vec<&[u8]> = first.into_iter().chain([hook.as_os_str().as_bytes()]).chain(rest).collect();
    OsString::from_vec(all.join(&b':'))
}

fn is_asan(word: &[u8]) -> bool {
    let name = word.rsplit(|&b| b == b'/').next().unwrap_or(word);
    name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(preload: &str, expected: &str) {
        let current = |name: &str| (name == "LD_PRELOAD").then(|| preload.into());
        let changes = changes(current, &Target::default(), Path::new("/h.so"), Path::new("/run"));
        assert_eq!(changes, [("NT_RUN", "/run".into()), ("LD_PRELOAD", OsString::from(expected))]);
    }

    #[test]
    fn ours_goes_first_and_asan_before() {
        check("", "/h.so");
        check("libother.so", "/h.so:libother.so");
        check("a.so b.so::c.so", "/h.so:a.so:b.so:c.so");
        check("x.so:/usr/lib/libasan.so.8", "/usr/lib/libasan.so.8:/h.so:x.so");
    }

    #[test]
    fn a_program_with_asan_linked_in() {
        let target = Target { asan: true, ..Target::default() };
        let current = |name: &str| (name == "ASAN_OPTIONS").then(|| "detect_leaks=0".into());
        let changes = changes(current, &target, Path::new("/h.so"), Path::new("/run"));
        assert_eq!(changes[2], ("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0".into()));
    }

    #[test]
    fn a_hostile_target_sees_no_library() {
        let target = Target { hostile: true, ..Target::default() };
        assert_eq!(changes(|_| None, &target, Path::new("/h.so"), Path::new("/run")).len(), 1);
    }

    #[test]
    fn what_a_list_can_name() {
        assert!(can_be_listed(Path::new("/a/b.so")));
        assert!(!can_be_listed(Path::new("/a b/c.so")));
        assert!(!can_be_listed(Path::new("/a:b/c.so")));
    }
}
