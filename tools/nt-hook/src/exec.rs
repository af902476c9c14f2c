//! `exec*` and `posix_spawn*`: a child whose environment the program made up is still ours.
//!
//! Each of them gets a copy of its environment, on the stack, in which `LD_PRELOAD` has us in front of the program's own
//! list and `NT_RUN` stands. They run in children of `vfork`, which share their parent's memory: no allocation, no lock,
//! no thread-local storage, and the copy is bounded; an environment that is too large stays as it is, and is counted.
//! `system`, `popen` and the `execl` family call libc's inner functions and hand `environ` on.
//!
//! Two kinds of programs must not get us: those of another C library (musl's loader dies of a glibc preload) and 32-bit
//! ones (ld.so complains on stderr). Static ones ignore the variable, and hand it on to their children.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::boot::{self, RTLD_NEXT};
use crate::{env, notes};

type Text = *const c_char;
type List = *const Text;

unsafe extern "C" {
    static environ: List;
}

/// The most variables that a copy holds.
const VARIABLES: usize = 1024;
/// The longest `LD_PRELOAD`, and the longest path.
const LONGEST: usize = 4096;

/// Where a copied environment lives.
struct Environment {
    list: MaybeUninit<[Text; VARIABLES + 3]>,
    preload: Line,
    run: Line,
}

/// `NAME=value` and a NUL, being written.
struct Line {
    bytes: MaybeUninit<[u8; LONGEST]>,
    len: usize,
}

impl Line {
    const fn new() -> Self {
        Line { bytes: MaybeUninit::uninit(), len: 0 }
    }

    /// Appends, with room kept for the NUL; false if it does not fit.
    fn push(&mut self, text: &[u8]) -> bool {
        if self.len + text.len() >= LONGEST {
            return false;
        }
        // SAFETY: it fits, as was just seen.
        unsafe {
            let to = self.bytes.as_mut_ptr().cast::<u8>().add(self.len);
            std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
        }
        self.len += text.len();
        true
    }

    fn text(&mut self) -> Text {
        let start = self.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: `push` keeps a byte.
        unsafe { start.add(self.len).write(0) };
        start.cast_const().cast()
    }
}

impl Environment {
    const fn new() -> Self {
        Environment { list: MaybeUninit::uninit(), preload: Line::new(), run: Line::new() }
    }

    /// The environment for a program: `given`, or a changed copy of it.
    fn for_program(&mut self, path: Text, given: List) -> List {
        if !env::wanted() || env::HOOK.get().is_empty() {
            return given;
        }
        self.copy(given, env::HOOK.get(), fits(path), env::RUN.get()).unwrap_or_else(|| {
            notes::ENVIRONMENT.count();
            given
        })
    }

    /// `given` with `hook` in front of its preloaded libraries, or without it if it does not fit, and with `NT_RUN`.
    fn copy(&mut self, given: List, hook: &[u8], fits: bool, run: &[u8]) -> Option<List> {
        let list = self.list.as_mut_ptr().cast::<Text>();
        let mut count = 0;
        let mut put = |text: Text| {
            // SAFETY: three places are kept for our own two and the end.
            unsafe { list.add(count).write(text) };
            count += 1;
        };
        let (mut preload, mut at): (&[u8], usize) = (b"", 0);
        // SAFETY: a list of texts, ended by a null pointer; Linux takes a null list as an empty one.
        while let Some(text) = unsafe { given.wrapping_add(at).as_ref() }.filter(|text| !text.is_null()) {
            // SAFETY: as above.
            let bytes = unsafe { CStr::from_ptr(*text) }.to_bytes();
            if let Some(value) = bytes.strip_prefix(b"LD_PRELOAD=") {
                preload = value;
            } else if !bytes.starts_with(b"NT_RUN=") {
                put(*text);
            }
            at += 1;
            if at > VARIABLES {
                return None;
            }
        }
        let others =
            preload.split(|&c| c == b':' || c == b' ').filter(|path| !path.is_empty() && *path != hook);
        let mut first = true;
        let mut line = |path: &[u8]| {
            let before: &[u8] = if std::mem::take(&mut first) { b"LD_PRELOAD=" } else { b":" };
            self.preload.push(before) && self.preload.push(path)
        };
        if fits && !line(hook) {
            return None;
        }
        for path in others {
            if !line(path) {
                return None;
            }
        }
        if self.preload.len != 0 {
            put(self.preload.text());
        }
        if !self.run.push(b"NT_RUN=") || !self.run.push(run) {
            return None;
        }
        put(self.run.text());
        put(std::ptr::null());
        Some(list.cast_const())
    }
}

/// Whether we can live in a program. What is no ELF file (a script, or nothing at all) is somebody else's to judge.
fn fits(path: Text) -> bool {
    const CLASS_64: u8 = 2;
    const INTERPRETER: u32 = 3;
    const HEADER: usize = 56;
    // SAFETY: the program's own argument, which the real call will read too.
    let fd = unsafe { libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return true;
    }
    let read = |to: &mut [u8], offset: u64| {
        // SAFETY: as many bytes as the slice has.
        let n = unsafe { libc::pread(fd, to.as_mut_ptr().cast(), to.len(), offset.cast_signed()) };
        n == to.len().cast_signed()
    };
    let judge = || {
        let mut file = [0u8; 64];
        if !read(&mut file, 0) || file[..4] != *b"\x7fELF" {
            return true;
        }
        if file[4] != CLASS_64 {
            return false;
        }
        let headers = u64::from_le_bytes([
            file[32], file[33], file[34], file[35], file[36], file[37], file[38], file[39],
        ]);
        let count = u64::from(u16::from_le_bytes([file[56], file[57]]));
        for i in 0..count {
            let mut header = [0u8; HEADER];
            if !read(&mut header, headers.wrapping_add(i * HEADER as u64)) {
                return true;
            }
            if header[..4] == INTERPRETER.to_le_bytes() {
                let offset = u64::from_le_bytes([
                    header[8], header[9], header[10], header[11], header[12], header[13], header[14],
                    header[15],
                ]);
                let mut loader = [0u8; 24];
                return !read(&mut loader, offset) || !loader.windows(7).any(|part| part == b"ld-musl");
            }
        }
        true
    };
    let fits = judge();
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
    fits
}

/// Where `execvp` would find a program: `file` itself if it has a slash, else the first in PATH that may be run.
fn in_path(file: Text, line: &mut Line) -> Text {
    // SAFETY: the program's own argument.
    let name = unsafe { CStr::from_ptr(file) }.to_bytes();
    if name.contains(&b'/') {
        return file;
    }
    let mut path: &[u8] = b"/bin:/usr/bin";
    // SAFETY: libc's list, ended by a null pointer.
    let mut entry = unsafe { environ };
    // SAFETY: as above.
    while let Some(text) = unsafe { entry.as_ref() }.filter(|text| !text.is_null()) {
        // SAFETY: as above.
        if let Some(value) = unsafe { CStr::from_ptr(*text) }.to_bytes().strip_prefix(b"PATH=") {
            path = value;
            break;
        }
        entry = entry.wrapping_add(1);
    }
    for folder in path.split(|&c| c == b':') {
        line.len = 0;
        if (folder.is_empty() || (line.push(folder) && line.push(b"/"))) && line.push(name) {
            let found = line.text();
            // SAFETY: a text that was just ended.
            if unsafe { libc::access(found, libc::X_OK) } == 0 {
                return found;
            }
        }
    }
    file
}

/// The next function of a name. Looked up at the first call, by the constructor's thread as a rule; a child of `vfork`
/// may repeat it.
fn next(slot: &AtomicUsize, name: &CStr) -> usize {
    match slot.load(Ordering::Acquire) {
        0 => {
            let found = boot::dlsym(RTLD_NEXT, name);
            let found = if found.is_null() { unsupported as *const () as usize } else { found as usize };
            slot.store(found, Ordering::Release);
            found
        }
        known => known,
    }
}

/// For a libc that lacks one of them.
extern "C" fn unsupported() -> c_int {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// libc's function of that name; it has that type.
macro_rules! real {
    ($name:literal as $ty:ty) => {{
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        std::mem::transmute::<usize, $ty>(next(&NEXT, $name))
    }};
}

type Execve = unsafe extern "C" fn(Text, List, List) -> c_int;
type Fexecve = unsafe extern "C" fn(c_int, List, List) -> c_int;
type Execveat = unsafe extern "C" fn(c_int, Text, List, List, c_int) -> c_int;
type Spawn = unsafe extern "C" fn(*mut libc::pid_t, Text, *const c_void, *const c_void, List, List) -> c_int;

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn execve(path: Text, arguments: List, given: List) -> c_int {
    let mut environment = Environment::new();
    let given = environment.for_program(path, given);
    // SAFETY: the program's own arguments, and a list that lives in this frame.
    unsafe { real!(c"execve" as Execve)(path, arguments, given) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn execv(path: Text, arguments: List) -> c_int {
    // SAFETY: as above.
    unsafe { execve(path, arguments, environ) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn execvpe(file: Text, arguments: List, given: List) -> c_int {
    let (mut environment, mut line) = (Environment::new(), Line::new());
    let given = environment.for_program(in_path(file, &mut line), given);
    // SAFETY: as above.
    unsafe { real!(c"execvpe" as Execve)(file, arguments, given) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn execvp(file: Text, arguments: List) -> c_int {
    // SAFETY: as above.
    unsafe { execvpe(file, arguments, environ) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn fexecve(fd: c_int, arguments: List, given: List) -> c_int {
    let mut environment = Environment::new();
    // A descriptor's program is not looked at: musl and 32-bit programs are not started this way.
    let given = environment.for_program(c"".as_ptr(), given);
    // SAFETY: as above.
    unsafe { real!(c"fexecve" as Fexecve)(fd, arguments, given) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn execveat(fd: c_int, path: Text, arguments: List, given: List, flags: c_int) -> c_int {
    let mut environment = Environment::new();
    let given = environment.for_program(path, given);
    // SAFETY: as above.
    unsafe { real!(c"execveat" as Execveat)(fd, path, arguments, given, flags) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: Text,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: List,
    given: List,
) -> c_int {
    let mut environment = Environment::new();
    let given = environment.for_program(path, given);
    // SAFETY: as above.
    unsafe { real!(c"posix_spawn" as Spawn)(pid, path, actions, attributes, arguments, given) }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn posix_spawnp(
    pid: *mut libc::pid_t,
    file: Text,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: List,
    given: List,
) -> c_int {
    let (mut environment, mut line) = (Environment::new(), Line::new());
    let given = environment.for_program(in_path(file, &mut line), given);
    // SAFETY: as above.
    unsafe { real!(c"posix_spawnp" as Spawn)(pid, file, actions, attributes, arguments, given) }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    fn check(given: &[&str], fits: bool, expected: Option<&[&str]>) {
        let texts: Vec<CString> = given.iter().map(|text| CString::new(*text).unwrap()).collect();
        let mut list: Vec<Text> = texts.iter().map(|text| text.as_ptr()).collect();
        list.push(std::ptr::null());
        let mut environment = Environment::new();
        let made = environment.copy(list.as_ptr(), b"/nt/hook.so", fits, b"/run");
        let made = made.map(|made| {
            (0..)
                // SAFETY: a list of texts, ended by a null pointer.
                .map_while(|i| unsafe { made.add(i).read().as_ref() })
                // SAFETY: as above.
                .map(|text| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        });
        assert_eq!(made, expected.map(|lines| lines.iter().map(|&line| line.to_owned()).collect()));
    }

    #[test]
    fn an_empty_environment() {
        check(&[], true, Some(&["LD_PRELOAD=/nt/hook.so", "NT_RUN=/run"]));
    }

    #[test]
    fn the_programs_own_libraries_come_behind_us() {
        let given = ["A=1", "LD_PRELOAD=x.so y.so:/nt/hook.so", "NT_RUN=elsewhere", "B=2"];
        let expected = ["A=1", "B=2", "LD_PRELOAD=/nt/hook.so:x.so:y.so", "NT_RUN=/run"];
        check(&given, true, Some(&expected));
    }

    #[test]
    fn where_we_cannot_live() {
        check(&["LD_PRELOAD=/nt/hook.so:x.so"], false, Some(&["LD_PRELOAD=x.so", "NT_RUN=/run"]));
        check(&["LD_PRELOAD=/nt/hook.so"], false, Some(&["NT_RUN=/run"]));
        check(&["A=1"], false, Some(&["A=1", "NT_RUN=/run"]));
    }

    #[test]
    fn what_is_too_large_stays_as_it_is() {
        let long = format!("LD_PRELOAD={}", "x".repeat(LONGEST));
        check(&[&long], true, None);
        let many: Vec<String> = (0..2000).map(|i| format!("V{i}=")).collect();
        check(&many.iter().map(String::as_str).collect::<Vec<_>>(), true, None);
    }

    #[test]
    fn programs_of_other_worlds() {
        let folder = tempfile::tempdir().unwrap();
        let judge = |change: fn(&mut Vec<u8>)| {
            let mut program = std::fs::read("/proc/self/exe").unwrap();
            change(&mut program);
            let path = folder.path().join("program");
            std::fs::write(&path, program).unwrap();
            fits(CString::new(path.to_str().unwrap()).unwrap().as_ptr())
        };
        assert!(judge(|_| ()));
        assert!(!judge(|program| program[4] = 1));
        assert!(judge(|program| program.truncate(3)));
        assert!(judge(|program| *program = b"#!/bin/sh\n".to_vec()));
        assert!(!judge(|program| {
            let at = program.windows(9).position(|part| part == b"/ld-linux").unwrap();
            program[at..at + 8].copy_from_slice(b"/ld-musl");
        }));
        assert!(fits(c"/nowhere".as_ptr()));
    }
}
