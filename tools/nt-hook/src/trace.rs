//! The process's trace file, `PID.START.ntt` in the run folder ([`nt_wire::frame`]).
//!
//! Each frame is one `pwritev`, so that a kill leaves whole frames and at most one cut at the end. Disk space is asked
//! for ahead, and always enough for the last counts: when it runs out data frames stop, and the file still says what was
//! lost.

use std::io;
use std::os::fd::RawFd;

use nt_wire::frame::{self, Body, Data, Start};
use nt_wire::{PROTOCOL, frame::padding};

use crate::parent::{OwnFd, folder, start_ticks};
use crate::time::{clock_ns, now_ns};

/// Kept in hand for the last frames.
const RESERVE: u64 = 64 << 10;
/// Asked for at a time.
const AHEAD: u64 = 16 << 20;

/// A file that is being written.
pub(crate) struct Trace {
    file: OwnFd,
    /// Where the next frame begins.
    offset: u64,
    /// Of the next frame.
    sequence: u64,
    /// Up to where disk space is ours; `u64::MAX` where the file system does not promise any.
    reserved: u64,
    /// Why no data is taken any more.
    full: Option<String>,
}

impl Trace {
    /// Makes the file and writes its first frame.
    pub(crate) fn create() -> io::Result<Trace> {
        let (pid, start) = (std::process::id(), start_ticks());
        let folder = folder();
        // `exec` keeps both numbers: what the program was before may have left a file of that name.
        let mut names = std::iter::once(format!("{pid}.{start}.ntt"))
            .chain((1..100).map(|again| format!("{pid}.{start}.{again}.ntt")));
        let file = loop {
            let name = names.next().ok_or(io::ErrorKind::AlreadyExists)?;
            match std::fs::OpenOptions::new().write(true).create_new(true).open(folder.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => break file?,
            }
        };
        let text = |path: &str| {
            let bytes = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).trim_end().to_owned()
        };
        let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let command = command.strip_suffix(&[0]).unwrap_or(&command);
        let first = Start {
            protocol: PROTOCOL,
            pid,
            start,
            wall_ns: clock_ns(libc::CLOCK_REALTIME),
            monotonic_ns: now_ns(),
            host: text("/proc/sys/kernel/hostname"),
            boot: text("/proc/sys/kernel/random/boot_id"),
            exe: std::fs::read_link("/proc/self/exe")
                .map(|exe| exe.to_string_lossy().into_owned())
                .unwrap_or_default(),
            command: command
                .split(|&c| c == 0)
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect(),
            version: concat!("nt ", env!("CARGO_PKG_VERSION")).into(),
        };
        let file = OwnFd::new(file.into())?;
        let mut trace = Trace { file, offset: 0, sequence: 0, reserved: 0, full: None };
        trace.frame(&first)?;
        Ok(trace)
    }

    /// Appends a small frame.
    pub(crate) fn frame(&mut self, body: &impl Body) -> io::Result<()> {
        let bytes = body.frame(self.sequence);
        self.append(&[&bytes])
    }

    /// Appends a map's data, in pieces; an error if the disk is full, now or before.
    pub(crate) fn data(&mut self, fixed: Data, data: &[&[u8]]) -> io::Result<()> {
        if let Some(why) = &self.full {
            return Err(io::Error::other(why.clone()));
        }
        let begin = fixed.begin_pieces(self.sequence, data);
        let zeros = [0; frame::ALIGN];
        let bytes: usize = data.iter().map(|piece| piece.len()).sum();
        let padding = zeros.get(..padding(Data::SIZE + bytes)).unwrap_or_default();
        let pieces = [&[begin.as_slice()], data, &[padding]].concat();
        let len = (begin.len() + bytes + padding.len()) as u64;
        let written = self.reserve(len).and_then(|()| self.append(&pieces));
        if let Err(error) = &written {
            self.full = Some(error.to_string());
        }
        written
    }

    /// Gives back disk space that was asked for and not used.
    pub(crate) fn finish(&mut self) {
        if let Ok(fd) = self.file.get() {
            // SAFETY: our own file.
            unsafe { libc::ftruncate(fd, self.offset.cast_signed()) };
        }
    }

    /// Makes sure that `len` bytes and the reserve behind them have room on the disk.
    fn reserve(&mut self, len: u64) -> io::Result<()> {
        if self.offset + len + RESERVE <= self.reserved {
            return Ok(());
        }
        let fd = self.file.get()?;
        for ahead in [AHEAD, 0] {
            let size = len + RESERVE + ahead;
            // SAFETY: our own file; its size stays as it is.
            let done = unsafe {
                libc::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, self.offset.cast_signed(), size.cast_signed())
            };
            if done == 0 {
                self.reserved = self.offset + size;
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) if ahead == 0 => return Err(error),
                Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::EINTR) => {}
                _ => self.reserved = u64::MAX,
            }
        }
        Ok(())
    }

    /// Writes the pieces of one frame, in one call unless the kernel takes fewer.
    fn append(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        let fd = self.file.get()?;
        let mut pieces: Vec<&[u8]> = pieces.to_vec();
        let mut at = self.offset;
        while pieces.iter().any(|piece| !piece.is_empty()) {
            match write_at(fd, &pieces, at) {
                Ok(0) => return Err(self.cut(fd, io::ErrorKind::WriteZero.into())),
                Ok(mut n) => {
                    at += n as u64;
                    for piece in &mut pieces {
                        let here = n.min(piece.len());
                        *piece = piece.get(here..).unwrap_or_default();
                        n -= here;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.cut(fd, error)),
            }
        }
        self.offset = at;
        self.sequence += 1;
        Ok(())
    }

    /// Takes back what was written of a frame that did not fit.
    fn cut(&self, fd: RawFd, error: io::Error) -> io::Error {
        // SAFETY: our own file.
        unsafe { libc::ftruncate(fd, self.offset.cast_signed()) };
        error
    }
}

fn write_at(fd: RawFd, pieces: &[&[u8]], offset: u64) -> io::Result<usize> {
    let iov: Vec<libc::iovec> = pieces
        .iter()
        .map(|piece| libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() })
        .collect();
    // SAFETY: the list points at slices that live in the caller.
    let n = unsafe { libc::pwritev(fd, iov.as_ptr(), iov.len() as libc::c_int, offset.cast_signed()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}
