//! The hook's end of the talk with `nt-run` ([`nt_wire::message`]).
//!
//! One connection a process, made at the first good `cuInit`; one question at a time. Descriptors are close-on-exec and
//! numbered high, out of the way of programs that count on the lowest free number; before each use the descriptor is
//! compared with what was opened, since programs exist that close everything they do not know.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nt_wire::message::{self, Body, Bye, Head, Hello, Image, Kernels, Kind, Need, Refused, Settings, Twin};
use nt_wire::{PROTOCOL, Reader};

use crate::env;
use crate::time::Deadline;

/// How long a question may take: weaving and assembling a large kernel is a matter of seconds.
const PATIENCE_MS: u32 = 60_000;

/// The first descriptor that ours may have.
const FIRST_FD: libc::c_int = 400;

/// An open talk.
pub(crate) struct Connection {
    socket: OwnFd,
    serial: u32,
}

/// What the parent says to [`Need`].
pub(crate) enum Answer {
    /// The layout, and the woven module, with a NUL after it.
    Twin(Twin, Vec<u8>),
    /// The kernel runs as it is.
    Refused(String),
}

/// The run folder.
pub(crate) fn folder() -> PathBuf {
    Path::new(std::ffi::OsStr::from_bytes(env::RUN.get())).to_owned()
}

/// Connects and says hello.
pub(crate) fn greet() -> Result<(Connection, Settings), String> {
    let failed = |error: io::Error| format!("nt-run could not be reached: {error}");
    let socket = UnixStream::connect(folder().join("sock")).map_err(failed)?;
    let mut connection = Connection { socket: OwnFd::new(socket.into()).map_err(failed)?, serial: 0 };
    let exe =
        std::fs::read_link("/proc/self/exe").map(|path| path.into_os_string().into_vec()).unwrap_or_default();
    let hello = Hello { protocol: PROTOCOL, pid: std::process::id(), start: start_ticks(), exe };
    let (settings, _): (Settings, _) = connection.ask(&hello, None).map_err(failed)?;
    if settings.protocol == PROTOCOL {
        Ok((connection, settings))
    } else {
        Err(format!("the hook speaks protocol {PROTOCOL}, nt-run {}: nothing was probed", settings.protocol))
    }
}

/// Ticks since boot at which this process started; 0 if `/proc` does not say.
pub(crate) fn start_ticks() -> u64 {
    let stat = std::fs::read("/proc/self/stat").unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    // The second field is the program's name in parentheses, and may hold anything.
    stat.rsplit_once(") ")
        .and_then(|(_, rest)| rest.split(' ').nth(19))
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

impl Connection {
    /// Shows an image, loaded with these options, and hears what is selected in it.
    pub(crate) fn show(&mut self, image: &[u8], options: &str) -> io::Result<Kernels> {
        let file = memory_file(image)?;
        let shown = Image { size: image.len() as u64, options: options.to_owned() };
        let (kernels, _) = self.ask(&shown, Some(&file))?;
        Ok(kernels)
    }

    /// Asks for a kernel's twin.
    pub(crate) fn need(&mut self, need: &Need) -> io::Result<Answer> {
        let (head, body, file) = self.question(need, None)?;
        match head.kind {
            Kind::Refused => Ok(Answer::Refused(decode::<Refused>(&body)?.reason)),
            Kind::Twin => {
                let twin: Twin = decode(&body)?;
                let file = file.ok_or_else(|| broken("a twin without a module"))?;
                let module = read_file(file.as_raw_fd(), twin.size)?;
                Ok(Answer::Twin(twin, module))
            }
            kind => Err(broken(&format!("{kind:?} in answer to a need"))),
        }
    }

    /// Takes leave; nothing comes back.
    pub(crate) fn bye(&mut self, bye: &Bye) -> io::Result<()> {
        self.serial += 1;
        self.send(&bye.message(self.serial), None, Deadline::after_ms(1000))
    }

    fn ask<Q: Body, A: Body>(
        &mut self,
        question: &Q,
        file: Option<&OwnedFd>,
    ) -> io::Result<(A, Option<OwnedFd>)> {
        let (head, body, file) = self.question(question, file)?;
        if head.kind == A::KIND {
            Ok((decode(&body)?, file))
        } else {
            Err(broken(&format!("{:?} in answer to {:?}", head.kind, Q::KIND)))
        }
    }

    fn question<Q: Body>(
        &mut self,
        question: &Q,
        file: Option<&OwnedFd>,
    ) -> io::Result<(Head, Vec<u8>, Option<OwnedFd>)> {
        let deadline = Deadline::after_ms(PATIENCE_MS);
        self.serial = self.serial.wrapping_add(1);
        self.send(&question.message(self.serial), file, deadline)?;
        let mut head = [0; Head::SIZE];
        let file = self.receive(&mut head, deadline)?;
        let head = Head::decode(&head).map_err(|_| broken("a malformed head"))?;
        if head.serial != self.serial {
            return Err(broken("an answer to another question"));
        }
        let mut body = vec![0; head.len as usize];
        self.receive(&mut body, deadline)?;
        Ok((head, body, file))
    }

    /// Sends all of `bytes`, with the descriptor beside the first.
    fn send(&self, bytes: &[u8], file: Option<&OwnedFd>, deadline: Deadline) -> io::Result<()> {
        let socket = self.socket.get()?;
        let mut sent = 0;
        while sent < bytes.len() {
            wait_for(socket, libc::POLLOUT, deadline)?;
            let mut control = Control::new();
            let mut iov = libc::iovec {
                iov_base: bytes[sent..].as_ptr().cast_mut().cast(),
                iov_len: bytes.len() - sent,
            };
            let mut header = control.header(&mut iov);
            match file {
                Some(file) if sent == 0 => control.put(&mut header, file.as_raw_fd()),
                _ => header.msg_controllen = 0,
            }
            // SAFETY: the header points at `iov` and `control`, which live here. MSG_NOSIGNAL: no SIGPIPE.
            let n =
                unsafe { libc::sendmsg(socket, &raw const header, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
            sent += progress(n)?;
        }
        Ok(())
    }

    /// Fills `bytes`, and returns a descriptor that came along.
    fn receive(&self, bytes: &mut [u8], deadline: Deadline) -> io::Result<Option<OwnedFd>> {
        let socket = self.socket.get()?;
        let (mut got, mut file) = (0, None);
        while got < bytes.len() {
            wait_for(socket, libc::POLLIN, deadline)?;
            let mut control = Control::new();
            let mut iov =
                libc::iovec { iov_base: bytes[got..].as_mut_ptr().cast(), iov_len: bytes.len() - got };
            let mut header = control.header(&mut iov);
            // SAFETY: as above.
            let n = unsafe {
                libc::recvmsg(socket, &raw mut header, libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT)
            };
            if n == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "nt-run is gone"));
            }
            let n = progress(n)?;
            if n != 0 {
                file = control.take(&header).or(file);
            }
            got += n;
        }
        Ok(file)
    }
}

/// Room for one descriptor beside a message.
#[repr(C, align(8))]
struct Control([u8; 64]);

impl Control {
    const fn new() -> Self {
        Control([0; 64])
    }

    fn header(&mut self, iov: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: plain data, and all zeros is an empty header.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = iov;
        header.msg_iovlen = 1;
        header.msg_control = self.0.as_mut_ptr().cast();
        header.msg_controllen = self.0.len() as _;
        header
    }

    fn put(&mut self, header: &mut libc::msghdr, fd: RawFd) {
        let size = size_of::<RawFd>() as u32;
        // SAFETY: 64 aligned bytes hold a control message with one descriptor (24 bytes).
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size) as _;
            let message = libc::CMSG_FIRSTHDR(header);
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SCM_RIGHTS;
            (*message).cmsg_len = libc::CMSG_LEN(size) as _;
            libc::CMSG_DATA(message).cast::<RawFd>().write_unaligned(fd);
        }
    }

    fn take(&self, header: &libc::msghdr) -> Option<OwnedFd> {
        // SAFETY: the kernel has filled the control bytes that the header points at; a descriptor in them is ours.
        unsafe {
            let message = libc::CMSG_FIRSTHDR(header).as_ref()?;
            if message.cmsg_level != libc::SOL_SOCKET || message.cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            Some(OwnedFd::from_raw_fd(libc::CMSG_DATA(message).cast::<RawFd>().read_unaligned()))
        }
    }
}

/// Bytes of a `sendmsg` or `recvmsg`; 0 where it should be tried again.
fn progress(n: isize) -> io::Result<usize> {
    usize::try_from(n).or_else(|_| {
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Ok(0),
            _ => Err(error),
        }
    })
}

fn wait_for(fd: RawFd, events: i16, deadline: Deadline) -> io::Result<()> {
    let mut poll = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one pollfd.
    let ready = unsafe { libc::poll(&raw mut poll, 1, deadline.left_ms()) };
    if ready <= 0 && deadline.passed() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "nt-run did not answer in time"));
    }
    Ok(())
}

fn decode<B: Body>(body: &[u8]) -> io::Result<B> {
    let mut reader = Reader::new(body);
    B::decode(&mut reader).map_err(|_| broken(&format!("a malformed {:?}", B::KIND)))
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("nt-run sent {what}"))
}

/// A file without a name that holds `bytes`.
fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    // SAFETY: a valid name; the descriptor that comes back is ours.
    let fd = unsafe { libc::memfd_create(c"nt image".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    io::Write::write_all(&mut file, bytes)?;
    Ok(file.into())
}

/// All `size` bytes of a file, and a NUL, which PTX for the driver must end in.
fn read_file(fd: RawFd, size: u64) -> io::Result<Vec<u8>> {
    // SAFETY: plain data that fstat fills.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes one stat.
    if unsafe { libc::fstat(fd, &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // A false size may not make us allocate: the file must be as long.
    let size =
        usize::try_from(size).ok().filter(|&size| stat.st_size >= 0 && size as u64 <= stat.st_size as u64);
    let size = size.ok_or_else(|| broken("a module shorter than it should be"))?;
    let mut bytes = vec![0; size + 1];
    let mut got = 0;
    while got < size {
        let offset = got as libc::off_t;
        // SAFETY: at most `size - got` bytes into a buffer that has as many.
        let n = unsafe { libc::pread(fd, bytes[got..].as_mut_ptr().cast(), size - got, offset) };
        match progress(n)? {
            0 if n == 0 => return Err(broken("a module that was cut")),
            n => got += n,
        }
    }
    Ok(bytes)
}

/// A descriptor of ours in a process whose descriptors are not ours.
pub(crate) struct OwnFd {
    fd: RawFd,
    device: u64,
    inode: u64,
}

impl OwnFd {
    /// Moves it out of the way.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: duplicates a descriptor that we own.
        let high = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_FD) };
        // A low limit on descriptors leaves it where it is.
        let fd = if high < 0 { fd.into_raw_fd() } else { high };
        let (device, inode) = identity(fd)?;
        Ok(OwnFd { fd, device, inode })
    }

    /// The descriptor, if it is still what was opened.
    pub(crate) fn get(&self) -> io::Result<RawFd> {
        if identity(self.fd)? == (self.device, self.inode) {
            Ok(self.fd)
        } else {
            Err(io::Error::other("the program has closed the hook's descriptor"))
        }
    }
}

impl Drop for OwnFd {
    fn drop(&mut self) {
        if let Ok(fd) = self.get() {
            // SAFETY: it is ours, as was just seen.
            unsafe { libc::close(fd) };
        }
    }
}

fn identity(fd: RawFd) -> io::Result<(u64, u64)> {
    // SAFETY: plain data that fstat fills.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes one stat.
    if unsafe { libc::fstat(fd, &raw mut stat) } == 0 {
        Ok((stat.st_dev, stat.st_ino))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The longest body, so that a reader of this file sees the bound on what [`Connection::question`] allocates.
const _: () = assert!(message::LIMIT <= 64 << 20);
