//! The beginning at `cuInit`, and the ways out of a process.
//!
//! The driver shuts down in an exit handler that it registers at `cuInit`; handlers registered later run before it. So
//! ours is registered when the first good `cuInit` has returned: it lets the collector fetch what is under way, writes
//! the counts and the end frame, and says good-bye to the parent. `_exit` and `_Exit` run no handlers and are therefore
//! ours too; `quick_exit` has handlers of its own. Signals and `abort` are left alone: the trace is right up to its last
//! whole frame.
//!
//! None of this waits for a lock without an end: `_exit` may be called from a signal handler.

use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicUsize, Ordering};

use nt_wire::frame::{Count, End, Note};
use nt_wire::message::Bye;

use crate::boot::{self, RTLD_NEXT};
use crate::load::hook;
use crate::process::{self, Process, lock_until};
use crate::quiet::{SignalsBlocked, guard};
use crate::time::{Deadline, now_ns};
use crate::{Opaque, collect, kernel, notes};

// The flags are the program's; a good one means that there is a driver to stand in front of.
hook!(cuInit(flags: c_uint) then guard(process::start));

/// The next `_exit` behind us; 0 before [`register`].
static NEXT_EXIT: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}

/// Registers the handlers. The driver has registered its own by now.
pub(crate) fn register() {
    NEXT_EXIT.store(boot::dlsym(RTLD_NEXT, c"_exit") as usize, Ordering::Release);
    // SAFETY: this library is never unloaded.
    unsafe {
        libc::atexit(handler);
        at_quick_exit(handler);
    }
}

extern "C" fn handler() {
    guard(finish);
}

/// Ends the trace; in the process that began it, once.
fn finish() {
    let Some(process) = process::get() else { return };
    if !process::close() {
        return;
    }
    let _blocked = SignalsBlocked::new();
    let end_ns = now_ns() + u64::from(process.settings.exit_ms) * 1_000_000;
    collect::finish(end_ns);

    let deadline = Deadline::after_ms(500);
    let counts: Vec<Count> =
        kernel::launched(deadline).into_iter().map(|kernel| kernel.count(deadline)).collect();
    let sum = |each: fn(&Count) -> u64| counts.iter().map(each).sum();
    let end = End {
        launches: sum(|count| count.launches),
        probed: sum(|count| count.probed),
        collected: sum(|count| count.collected),
    };
    let mut lost = None;
    if end.collected < end.probed {
        lost = Some(format!("{} probed launches were not collected", end.probed - end.collected));
    }
    let notes: Vec<String> = notes::all(deadline).into_iter().chain(lost).collect();
    write(process, deadline, &counts, &notes, end);
    if let Some(mut parent) = lock_until(&process.parent, deadline)
        && let Some(parent) = parent.as_mut()
    {
        let End { launches, probed, collected } = end;
        // Nobody is left to tell if it fails.
        let _ = parent.bye(&Bye { launches, probed, collected, notes });
    }
}

fn write(process: &Process, deadline: Deadline, counts: &[Count], notes: &[String], end: End) {
    let Some(mut trace) = lock_until(&process.trace, deadline) else { return };
    let Some(trace) = trace.as_mut() else { return };
    let mut write = || {
        for count in counts {
            trace.frame(count)?;
        }
        for text in notes {
            trace.frame(&Note { text: text.clone() })?;
        }
        trace.frame(&end)
    };
    // A full disk: the file then ends where it ends, and readers say so.
    let _: std::io::Result<()> = write();
    trace.finish();
}

fn leave(status: c_int) -> ! {
    handler();
    let next = NEXT_EXIT.load(Ordering::Acquire);
    if next != 0 {
        // SAFETY: somebody's `_exit`, which does not return.
        unsafe { std::mem::transmute::<Opaque, extern "C" fn(c_int) -> !>(next as Opaque)(status) }
    }
    loop {
        // A child of `vfork`, or no driver was used: nothing to look up, nothing to end.
        // SAFETY: ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn _exit(status: c_int) -> ! {
    leave(status)
}

#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case, reason = "C's own name")]
extern "C" fn _Exit(status: c_int) -> ! {
    leave(status)
}
