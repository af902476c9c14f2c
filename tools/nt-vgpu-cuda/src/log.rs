//! The log of `NT_VGPU_LOG`: a line an event, fields separated by spaces, appended with one write each.
//!
//! ```text
//! launch PID vector_add grid=4,1,1 block=256,1,1 shared=0 stream=0x0 captured=0 params=00f0…,1000…
//! load PID 2 kernels
//! jit PID OPTION=VALUE…    (a load with options for the assembler, by their numbers in cuda.h)
//! dirty PID ADDRESS        (scribble: a segment that was not zero)
//! global PID NAME ADDRESS  (a variable was asked for)
//! sees PID KERNEL NAME=HEX (look: what a constant of its module held when a kernel ran)
//! call PID TID NAME        (calls: every call)
//! ran PID KERNEL steps=N lanes=N global=N ms=T   (executed: instructions of warps, and of threads; bytes accessed)
//! said PID TEXT            (what went to stderr)
//! ```

use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;

/// Logs a call, if all of them are wanted.
pub(crate) fn call(name: &str) {
    if crate::plan::plan().calls {
        // SAFETY: asks for a number.
        line(|| format!("call {} {} {name}", std::process::id(), unsafe { libc::gettid() }));
    }
}

/// Appends a line, if a log is wanted.
pub(crate) fn line(text: impl FnOnce() -> String) {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let path = std::env::var_os("NT_VGPU_LOG")?;
        File::options().append(true).create(true).open(path).ok()
    });
    if let Some(mut file) = file.as_ref() {
        let mut text = text();
        text.push('\n');
        // A log that cannot be written is no reason to fail a program.
        let _ = file.write_all(text.as_bytes());
    }
}
