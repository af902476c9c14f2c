//! The command: started, waited for, and sent the signals that were meant for it.
//!
//! nt-run is to be as if it were not there. A terminal sends Ctrl-C and Ctrl-\ to the command as well, since both are
//! one process group, so these are only survived; whatever somebody sends to nt-run alone is handed on. What was
//! ignored when nt-run started (`nohup`) stays ignored, here and in the command.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The command, as the thread that hands on signals sees it.
#[derive(Debug)]
enum State {
    /// It has not started; these came in and wait for it.
    Waiting(Vec<Signal>),
    Running(Pid),
    Ended,
}

type Shared = Arc<Mutex<State>>;

/// The signals that are handed on, from before the command starts until it has ended.
#[derive(Debug)]
pub(crate) struct Forwarding {
    state: Shared,
    handle: signal_hook::iterator::Handle,
}

impl Forwarding {
    /// Begins to catch signals; from now on they do not end nt-run.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn start() -> std::io::Result<Self> {
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        let all = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];
        let wanted = all.into_iter().filter(|&signal| ignored >> (signal - 1) & 1 == 0);
        let mut signals = Signals::new(wanted)?;
        let handle = signals.handle();
        let state = Arc::new(Mutex::new(State::Waiting(Vec::new())));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if matches!(signal, SIGINT | SIGQUIT) && in_foreground() {
                    continue;
                }
                let Some(signal) = Signal::from_named_raw(signal) else { continue };
                match &mut *lock(&shared) {
                    State::Waiting(signals) => signals.push(signal),
                    State::Running(child) => send(*child, signal),
                    State::Ended => {}
                }
            }
        });
        Ok(Forwarding { state, handle })
    }

    /// Waits for the command's end, handing on signals.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub(crate) fn wait(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return child.wait() };
        let before = std::mem::replace(&mut *lock(&self.state), State::Running(pid));
        if let State::Waiting(signals) = before {
            signals.into_iter().for_each(|signal| send(pid, signal));
        }
        // It is left a zombie until nobody can signal it any more: its number may not go to another process before.
        let ended = loop {
            match rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other,
            }
        };
        *lock(&self.state) = State::Ended;
        ended?;
        child.wait()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn send(child: Pid, signal: Signal) {
    // It may have ended this very moment, and waits to be waited for.
    let _ = rustix::process::kill_process(child, signal);
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// The signals that a process ignores, as the bits of `SigIgn` in its status.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Is this process' group the one that its terminal sends keys to?
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The exit code for a command's end: its own, or 128 and the signal that killed it.
pub(crate) fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code & 0xff).unwrap_or(125),
        (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(125),
        (None, None) => 125,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_as_shells_have_them() {
        // wait(2): the code is the second byte, a signal the low seven bits.
        assert_eq!(code(ExitStatus::from_raw(0)), 0);
        assert_eq!(code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code(ExitStatus::from_raw(255 << 8)), 255);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
        assert_eq!(code(ExitStatus::from_raw(11 | 0x80)), 139);
    }

    #[test]
    fn ignored_signals_are_read() {
        // As under `nohup`: bit 0 is SIGHUP.
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000000001\nSigCgt:\t00\n"), 1);
        assert_eq!(ignored(""), 0);
    }
}
