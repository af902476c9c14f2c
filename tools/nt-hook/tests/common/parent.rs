//! A parent for the hook to talk to: it answers as `nt-run` would, and does what a test wants to go wrong.
#![allow(unsafe_code, reason = "descriptors over a socket")]

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nt_wire::message::{
    Body, Bye, Fill, Head, Hello, Image, Kernels, Kind, MapShape, Need, Param, Refused, Settings, Slot, Twin,
    Unit,
};
use nt_wire::{PROTOCOL, Reader};

/// How the parent behaves.
#[derive(Clone)]
pub struct Fate {
    pub settings: Settings,
    /// Names that are selected in every image.
    pub selected: Vec<&'static str>,
    /// Answers a need with this.
    pub refuse: Option<&'static str>,
    /// Only where exactly this holds of the launch.
    pub refuse_where: Option<u8>,
    /// Only on devices of this architecture.
    pub refuse_arch: Option<u32>,
    /// What twins rely on, if it holds.
    pub relies: u8,
    /// The woven module; `None`: the usual one.
    pub module: Option<Vec<u8>>,
    /// Changes the layout.
    pub bend: fn(&mut Twin),
    /// Ends the talk in place of answering this kind of question.
    pub dies_at: Option<Kind>,
    /// Answers this kind of question with noise.
    pub babbles_at: Option<Kind>,
}

impl Default for Fate {
    fn default() -> Fate {
        Fate {
            settings: Settings {
                protocol: PROTOCOL,
                wait_ms: 1000,
                exit_ms: 2000,
                pool_bytes: 4 << 20,
                launch_bytes: 0,
            },
            selected: vec!["chosen", "bare"],
            refuse: None,
            refuse_where: None,
            refuse_arch: None,
            relies: 0,
            module: None,
            bend: |_| (),
            dies_at: None,
            babbles_at: None,
        }
    }
}

/// What came in.
#[derive(Default, Clone, Debug)]
pub struct Seen {
    pub hellos: Vec<Hello>,
    pub images: Vec<Vec<u8>>,
    /// What each was loaded with.
    pub options: Vec<String>,
    pub needs: Vec<Need>,
    pub byes: Vec<Bye>,
}

pub struct Parent {
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    talks: Arc<Mutex<Vec<UnixStream>>>,
}

/// The manifest is the hook's to pass on unread.
pub const MANIFEST: &[u8] = br#"{"kernel":"chosen"}"#;

/// The twin of `chosen`: a map of one 16-byte record a block.
pub fn twin(kernel: &str) -> (Twin, Vec<u8>) {
    let (params, text) = if kernel == "bare" {
        (vec![], "")
    } else {
        let params = vec![Param { offset: 0, size: 8 }, Param { offset: 8, size: 4 }];
        (params, ".param .u64 out, .param .u32 n, ")
    };
    let module = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry {kernel}({text}.param .align 8 .b8 nt_ctx[32])\n\
         {{ ret; }}\n"
    );
    let twin = Twin {
        size: module.len() as u64,
        params,
        context: 32,
        slots: vec![
            Slot { offset: 0, size: 8, fill: Fill::Zero },
            Slot { offset: 8, size: 8, fill: Fill::Base(0) },
            Slot { offset: 16, size: 8, fill: Fill::Capacity(0) },
            Slot { offset: 24, size: 8, fill: Fill::Launch },
        ],
        maps: vec![MapShape::records(Unit::Block, 16)],
        pins: vec![],
        constants: vec![],
        assumes: 0,
        wants_params: false,
        manifest: MANIFEST.to_vec(),
    };
    (twin, module.into_bytes())
}

impl Parent {
    pub fn start(folder: &Path, fate: Fate) -> Parent {
        let listener = UnixListener::bind(folder.join("sock")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let talks = Arc::new(Mutex::new(Vec::new()));
        let (seen_too, stop_too, talks_too) = (Arc::clone(&seen), Arc::clone(&stop), Arc::clone(&talks));
        let thread = std::thread::spawn(move || {
            let mut threads = Vec::new();
            loop {
                match listener.accept() {
                    Ok((socket, _)) => {
                        socket.set_nonblocking(false).unwrap();
                        talks_too.lock().unwrap().push(socket.try_clone().unwrap());
                        let (seen, fate) = (Arc::clone(&seen_too), fate.clone());
                        threads.push(std::thread::spawn(move || _ = talk(socket, &seen, &fate)));
                    }
                    Err(_) if stop_too.load(Ordering::Relaxed) => break,
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
            for thread in threads {
                thread.join().unwrap();
            }
        });
        Parent { seen, stop, thread: Some(thread), talks }
    }

    /// Hangs up on everybody, as a killed process does.
    pub fn kill(&self) {
        for socket in self.talks.lock().unwrap().iter() {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Waits until everybody has left.
    pub fn stop(mut self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        // A process that was killed has closed its end; one of its children may still have it.
        self.thread.take().unwrap().join().unwrap();
        self.seen.lock().unwrap().clone()
    }
}

fn talk(mut socket: UnixStream, seen: &Mutex<Seen>, fate: &Fate) -> std::io::Result<()> {
    loop {
        let mut head = [0; Head::SIZE];
        let file = receive(&mut socket, &mut head)?;
        let head = Head::decode(&head).unwrap();
        let mut body = vec![0; head.len as usize];
        socket.read_exact(&mut body)?;
        let mut body = Reader::new(&body);
        if fate.dies_at == Some(head.kind) {
            return socket.shutdown(std::net::Shutdown::Both);
        }
        if fate.babbles_at == Some(head.kind) {
            socket.write_all(&[0x55; 4096])?;
            continue;
        }
        match head.kind {
            Kind::Hello => {
                seen.lock().unwrap().hellos.push(Hello::decode(&mut body).unwrap());
                socket.write_all(&fate.settings.message(head.serial))?;
            }
            Kind::Image => {
                let image = Image::decode(&mut body).unwrap();
                let mut bytes = Vec::new();
                let mut file = std::fs::File::from(file.expect("an image comes with a descriptor"));
                std::io::Seek::rewind(&mut file)?;
                file.read_to_end(&mut bytes)?;
                assert_eq!(bytes.len() as u64, image.size);
                let mut seen = seen.lock().unwrap();
                // The same bytes with the same options are the same image.
                let mut known = seen.images.iter().zip(&seen.options);
                let number = known.position(|known| known == (&bytes, &image.options));
                let number = number.unwrap_or(seen.images.len());
                if number == seen.images.len() {
                    seen.images.push(bytes);
                    seen.options.push(image.options);
                }
                drop(seen);
                let selected = fate.selected.iter().map(|&name| name.to_owned()).collect();
                let kernels = Kernels { image: number as u32, reason: String::new(), selected };
                socket.write_all(&kernels.message(head.serial))?;
            }
            Kind::Need => {
                let need = Need::decode(&mut body).unwrap();
                let (mut twin, usual) = twin(&need.kernel);
                twin.assumes = need.holds & fate.relies;
                let here = fate.refuse_where.is_none_or(|holds| holds == need.holds)
                    && fate.refuse_arch.is_none_or(|arch| arch == need.arch);
                seen.lock().unwrap().needs.push(need);
                if let Some(reason) = fate.refuse.filter(|_| here) {
                    socket.write_all(&Refused { reason: reason.into() }.message(head.serial))?;
                    continue;
                }
                let module = fate.module.clone().unwrap_or(usual);
                twin.size = module.len() as u64;
                (fate.bend)(&mut twin);
                let mut file = tempfile::tempfile()?;
                file.write_all(&module)?;
                send(&socket, &twin.message(head.serial), file.as_raw_fd());
            }
            Kind::Bye => {
                seen.lock().unwrap().byes.push(Bye::decode(&mut body).unwrap());
                return Ok(());
            }
            kind => panic!("{kind:?} is not the hook's to send"),
        }
    }
}

#[repr(C, align(8))]
struct Control([u8; 64]);

/// Sends a message with a descriptor beside its first byte.
fn send(socket: &UnixStream, bytes: &[u8], fd: RawFd) {
    let mut control = Control([0; 64]);
    let mut iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a header that points at the two above, with room for one descriptor.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut iov;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        (*message).cmsg_level = libc::SOL_SOCKET;
        (*message).cmsg_type = libc::SCM_RIGHTS;
        (*message).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(message).cast::<RawFd>().write_unaligned(fd);
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    assert_eq!(sent, bytes.len() as isize);
}

/// Fills `bytes`; returns a descriptor that came along.
fn receive(socket: &mut UnixStream, bytes: &mut [u8]) -> std::io::Result<Option<OwnedFd>> {
    let mut control = Control([0; 64]);
    let mut iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: as above; a descriptor that comes is ours.
    let (n, file) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut iov;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len();
        let n = libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0);
        let message = if n > 0 { libc::CMSG_FIRSTHDR(&raw const header) } else { std::ptr::null_mut() };
        let file = message
            .as_ref()
            .map(|_| OwnedFd::from_raw_fd(libc::CMSG_DATA(message).cast::<RawFd>().read_unaligned()));
        (n, file)
    };
    let n = usize::try_from(n).map_err(|_| std::io::Error::last_os_error())?;
    if n == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    socket.read_exact(&mut bytes[n..])?;
    Ok(file)
}
