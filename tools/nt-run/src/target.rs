//! What stands in the way of a preloaded library, read out of the command's own file before it starts.
//!
//! The dynamic loader decides about LD_PRELOAD by the program's ELF headers and mode bits, so we can know beforehand:
//!
//! | the program | LD_PRELOAD |
//! |---|---|
//! | has a glibc interpreter | works |
//! | has musl's interpreter | **kills it**: musl cannot load a glibc library and exits with 127 |
//! | is 32-bit, or of another machine | a warning of the loader's on each start |
//! | has no interpreter (static, static-pie) | ignored, but its children inherit it |
//! | is setuid, setgid or has file capabilities | dropped, for its children too |
//! | is a script | its interpreter is what counts |

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What is known of a command's file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Target {
    /// Why no hook will be in it, as the end of a sentence that begins with its name.
    pub(crate) obstacle: Option<String>,
    /// The library must not even be asked for.
    pub(crate) hostile: bool,
    /// It needs `libasan.so`, which refuses to start behind another preloaded library.
    pub(crate) asan: bool,
}

/// Why a command cannot be started, with the exit code that shells have for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotRunnable {
    /// 127
    NotFound,
    /// 126
    NotExecutable,
}

/// Finds what `command` means: a path if it has a `/`, else the first executable of that name on `path`.
pub(crate) fn find(command: &OsStr, path: Option<OsString>) -> Result<PathBuf, NotRunnable> {
    let executable = |path: &Path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if command.as_bytes().contains(&b'/') {
        let path = PathBuf::from(command);
        return match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(NotRunnable::NotExecutable)
            }
            Err(_) => Err(NotRunnable::NotFound),
            Ok(_) if executable(&path) => Ok(path),
            Ok(_) => Err(NotRunnable::NotExecutable),
        };
    }
    if command.is_empty() {
        return Err(NotRunnable::NotFound);
    }
    // What execvp takes where PATH is not set.
    let path = path.unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut there = false;
    for folder in std::env::split_paths(&path) {
        // An empty entry is the current folder.
        let file =
            if folder.as_os_str().is_empty() { Path::new(".").join(command) } else { folder.join(command) };
        if executable(&file) {
            return Ok(file);
        }
        there |= file.is_file();
    }
    Err(if there { NotRunnable::NotExecutable } else { NotRunnable::NotFound })
}

/// Reads the file of a command. What cannot be read is not in the way: the loader will tell.
pub(crate) fn inspect(path: &Path, search: Option<&OsStr>) -> Target {
    let mut path = path.to_owned();
    // A script's interpreter may be a script; Linux follows four.
    for _ in 0..5 {
        let Ok(file) = File::open(&path) else { return Target::default() };
        let mut head = [0; 256];
        let Ok(len) = read_up_to(&file, &mut head) else { return Target::default() };
        match interpreter(&head[..len]) {
            Some(next) => path = through_env(&head[..len], next, search),
            None if head.starts_with(b"\x7fELF") => {
                let mut target = elf(&file, std::env::consts::ARCH).unwrap_or_default();
                if target.obstacle.is_none() {
                    target.obstacle = privileged(&file, &path);
                }
                return target;
            }
            None => return Target::default(),
        }
    }
    Target::default()
}

fn read_up_to(file: &File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut len = 0;
    let mut file = file;
    while len < buffer.len() {
        match file.read(&mut buffer[len..])? {
            0 => break,
            n => len += n,
        }
    }
    Ok(len)
}

/// The words of a `#!` line.
fn shebang(head: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let line = head.strip_prefix(b"#!")?.split(|&b| b == b'\n').next()?;
    Some(line.split(|b| matches!(b, b' ' | b'\t' | b'\r')).filter(|word| !word.is_empty()))
}

/// The interpreter that a script names.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let word = shebang(head)?.next()?;
    Some(PathBuf::from(OsString::from_vec(word.to_vec())))
}

/// `#!/usr/bin/env python3` is python3's script, and env only starts it.
fn through_env(head: &[u8], interpreter: PathBuf, search: Option<&OsStr>) -> PathBuf {
    if interpreter.file_name() != Some(OsStr::new("env")) {
        return interpreter;
    }
    let word = shebang(head).and_then(|mut words| words.nth(1)).filter(|word| !word.starts_with(b"-"));
    let found = word.and_then(|word| find(OsStr::from_bytes(word), search.map(OsStr::to_owned)).ok());
    found.unwrap_or(interpreter)
}

/// Does the loader run this file in secure mode, where LD_PRELOAD does not count?
fn privileged(file: &File, path: &Path) -> Option<String> {
    let data = file.metadata().ok()?;
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mode = data.permissions().mode();
    if mode & 0o4000 != 0 && data.uid() != user || mode & 0o2000 != 0 && data.gid() != group {
        return Some("is setuid or setgid: the loader drops LD_PRELOAD".to_owned());
    }
    let mut value = [0; 64];
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut value);
    (user != 0 && capabilities.is_ok())
        .then(|| "has file capabilities: the loader drops LD_PRELOAD".to_owned())
}

/// Tables of more entries than this are not read to their end.
const ENTRIES: u64 = 4096;

/// Reads the headers of an ELF file; `None` where they lead nowhere.
fn elf(file: &File, machine: &str) -> Option<Target> {
    let at = |offset: u64, len: usize| -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    };
    let half = |bytes: &[u8], at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |bytes: &[u8], at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let no = |reason: &str| Some(Target { obstacle: Some(reason.to_owned()), ..Target::default() });
    let hostile =
        |reason: &str| Some(Target { obstacle: Some(reason.to_owned()), hostile: true, ..Target::default() });

    let head = at(0, 64)?;
    // ELFCLASS64, ELFDATA2LSB.
    if head[4] != 2 {
        return hostile("is a 32-bit program: there is no 32-bit hook");
    }
    let machines = [(62, "x86_64"), (183, "aarch64")];
    let its = half(&head, 18)?;
    if head[5] != 1 || machines.iter().any(|&(number, name)| name == machine && number != its) {
        return hostile("is a program of another machine");
    }
    let (table, size, count) = (long(&head, 32)?, half(&head, 54)?, half(&head, 56)?);
    if size < 56 {
        return None;
    }
    let mut loads = Vec::new();
    let (mut interpreter, mut dynamic) = (None, None);
    for n in 0..u64::from(count) {
        let part = at(table.checked_add(n * u64::from(size))?, 56)?;
        let (offset, address, length) = (long(&part, 8)?, long(&part, 16)?, long(&part, 32)?);
        match word(&part, 0)? {
            1 => loads.push((address, length, offset)), // PT_LOAD
            2 => dynamic = Some((offset, length / 16)), // PT_DYNAMIC
            3 => interpreter = Some(at(offset, usize::try_from(length.min(4096)).ok()?)?), // PT_INTERP
            _ => {}
        }
    }
    let Some(interpreter) = interpreter else {
        return no("is statically linked: LD_PRELOAD does not reach it");
    };
    if interpreter.windows(7).any(|part| part == b"ld-musl") {
        return hostile("is linked against musl: it would die of a glibc library");
    }

    // The libraries it needs, by name; addresses are turned into offsets by the loaded parts.
    let (mut strings, mut needed) = (None, Vec::new());
    if let Some((offset, count)) = dynamic {
        for n in 0..count.min(ENTRIES) {
            let entry = at(offset.checked_add(n * 16)?, 16)?;
            match (long(&entry, 0)?, long(&entry, 8)?) {
                (0, _) => break,                         // DT_NULL
                (1, name) => needed.push(name),          // DT_NEEDED
                (5, address) => strings = Some(address), // DT_STRTAB
                _ => {}
            }
        }
    }
    let strings = strings.and_then(|address| {
        let &(start, _, offset) =
            loads.iter().find(|(start, len, _)| (*start..start.saturating_add(*len)).contains(&address))?;
        offset.checked_add(address - start)
    });
    let asan = strings.is_some_and(|strings| {
        needed.iter().any(|name| {
            let mut bytes = [0; 10];
            strings.checked_add(*name).is_some_and(|at| file.read_exact_at(&mut bytes, at).is_ok())
                && bytes == *b"libasan.so"
        })
    });
    Some(Target { asan, ..Target::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// A program of two headers: maybe an interpreter, and whatever else.
    fn program(class: u8, machine: u16, interpreter: Option<&str>) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        if let Some(name) = interpreter {
            bytes[64] = 3;
            bytes[72] = 120;
            bytes[96] = u8::try_from(name.len()).unwrap();
            bytes.extend(name.bytes());
        }
        bytes
    }

    fn check(bytes: &[u8], obstacle: Option<&str>, hostile: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "program", bytes, 0o755);
        let target = elf(&File::open(path).unwrap(), "x86_64").unwrap_or_default();
        let found = target.obstacle.as_deref();
        assert!(
            match (found, obstacle) {
                (Some(found), Some(part)) => found.contains(part),
                (found, part) => found == part,
            },
            "{found:?} instead of {obstacle:?}"
        );
        assert_eq!(target.hostile, hostile);
    }

    #[test]
    fn headers_tell() {
        check(&program(2, 62, Some("/lib64/ld-linux-x86-64.so.2\0")), None, false);
        check(&program(2, 62, Some("/lib/ld-musl-x86_64.so.1\0")), Some("musl"), true);
        check(&program(2, 62, None), Some("statically linked"), false);
        check(&program(1, 3, None), Some("32-bit"), true);
        check(&program(2, 183, Some("/lib/ld-linux-aarch64.so.1\0")), Some("another machine"), true);
    }

    #[test]
    fn a_cut_header_is_no_obstacle() {
        let whole = program(2, 62, Some("/lib64/ld-linux-x86-64.so.2\0"));
        for len in 4..whole.len() {
            check(&whole[..len], None, false);
        }
        let mut wild = whole;
        wild[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        check(&wild, None, false);
    }

    #[test]
    fn this_very_test_is_a_glibc_program() {
        assert_eq!(inspect(&std::env::current_exe().unwrap(), None), Target::default());
    }

    #[test]
    fn scripts_lead_to_their_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let musl = program(2, 62, Some("/lib/ld-musl-x86_64.so.1\0"));
        let python = write(folder.path(), "python", &musl, 0o755);
        let line = format!("#!{}  -u\nprint(1)\n", python.display());
        let script = write(folder.path(), "script", line.as_bytes(), 0o755);
        assert!(inspect(&script, None).hostile);
        let by_env = write(folder.path(), "by-env", b"#!/usr/bin/env python\n", 0o755);
        assert!(inspect(&by_env, Some(folder.path().as_os_str())).hostile);
        let line = format!("#!{0}\n", folder.path().join("loop").display());
        let circle = write(folder.path(), "loop", line.as_bytes(), 0o755);
        assert_eq!(inspect(&circle, None), Target::default());
    }

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "run", b"", 0o755);
        write(folder.path(), "data", b"", 0o644);
        let path = Some(folder.path().as_os_str().to_owned());
        assert_eq!(find(OsStr::new("run"), path.clone()), Ok(folder.path().join("run")));
        assert_eq!(find(OsStr::new("data"), path.clone()), Err(NotRunnable::NotExecutable));
        assert_eq!(find(OsStr::new("none"), path.clone()), Err(NotRunnable::NotFound));
        assert_eq!(find(OsStr::new(""), path), Err(NotRunnable::NotFound));
        assert_eq!(find(folder.path().join("data").as_os_str(), None), Err(NotRunnable::NotExecutable));
        assert_eq!(find(folder.path().as_os_str(), None), Err(NotRunnable::NotExecutable));
        assert_eq!(find(OsStr::new("/nowhere/x"), None), Err(NotRunnable::NotFound));
    }
}
