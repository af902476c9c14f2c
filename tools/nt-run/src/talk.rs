//! Messages over a socket, with descriptors beside them.
//!
//! What comes in comes from a program under test, whatever it did to its memory: a message that is not what it should
//! be ends the talk, never us. Bodies are bounded by [`nt_wire::message::LIMIT`] and grow as bytes arrive, images by
//! [`LARGEST`].

use nt_wire::Reader;
use nt_wire::message::{Body, Head, Kind};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
};
use rustix::net::{ReturnFlags, SendFlags};
use std::fs::File;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Read, Result, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

/// The largest image that is taken.
pub(crate) const LARGEST: u64 = 1 << 30;

/// A message that came in.
#[derive(Debug)]
pub(crate) struct Message {
    /// Its head.
    pub(crate) head: Head,
    /// Its body, not looked into.
    pub(crate) body: Vec<u8>,
    /// What came beside its first byte.
    pub(crate) descriptor: Option<OwnedFd>,
}

impl Message {
    /// The body, as what its kind says it is.
    pub(crate) fn read<B: Body>(&self) -> Result<B> {
        let kind: Kind = self.head.kind;
        if kind != B::KIND {
            return Err(odd(format!("a {kind:?} where a {:?} belongs", B::KIND)));
        }
        B::decode(&mut Reader::new(&self.body)).map_err(|_| odd(format!("a {kind:?} that is cut or wrong")))
    }

    /// The bytes of the image that came along.
    pub(crate) fn image(self, size: u64) -> Result<Vec<u8>> {
        let file = File::from(self.descriptor.ok_or_else(|| odd("an image without a descriptor"))?);
        let there = file.metadata()?.len();
        if size > LARGEST || size > there {
            return Err(odd(format!("an image of {size} bytes in {there}")));
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| odd("an image that is too large"))?];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

fn odd(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, what.into())
}

/// The next message; `None` where the other side has closed the talk.
pub(crate) fn receive(stream: &UnixStream) -> Result<Option<Message>> {
    let mut head = [0; Head::SIZE];
    let Some((len, descriptor)) = first(stream, &mut head)? else { return Ok(None) };
    let mut stream = stream;
    stream.read_exact(&mut head[len..])?;
    let head = Head::decode(&head).map_err(|_| odd("no message of ours, or of another version"))?;
    let mut body = Vec::new();
    stream.take(u64::from(head.len)).read_to_end(&mut body)?;
    if body.len() as u64 != u64::from(head.len) {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(Message { head, body, descriptor }))
}

/// The first bytes of a message, with what comes beside them.
fn first(stream: &UnixStream, bytes: &mut [u8]) -> Result<Option<(usize, Option<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut parts = [IoSliceMut::new(bytes)];
        match rustix::net::recvmsg(stream, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    // Descriptors that are not taken out here are closed with the buffer.
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if descriptors.len() > 1 || got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(odd("more descriptors than one"));
    }
    Ok((got.bytes > 0).then(|| (got.bytes, descriptors.pop())))
}

/// Sends a message, with a descriptor beside its first byte.
pub(crate) fn send(stream: &UnixStream, bytes: &[u8], descriptor: Option<&File>) -> Result<()> {
    let mut stream = stream;
    let Some(file) = descriptor else { return stream.write_all(bytes) };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let sent = loop {
        let descriptors = [file.as_fd()];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !beside.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(odd("no room for a descriptor"));
        }
        // A program that died must not take us along by SIGPIPE.
        match rustix::net::sendmsg(stream, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    stream.write_all(bytes.get(sent..).unwrap_or_default())
}

/// A file in memory that holds `bytes`, to be sent along.
pub(crate) fn memory_file(name: &str, bytes: &[u8]) -> Result<File> {
    let mut file = File::from(rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nt_wire::message::{Image, Need};

    #[test]
    fn an_image_travels_beside_its_message() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let bytes = vec![0x5a; 100_000];
        let file = memory_file("image", &bytes).unwrap();
        send(&theirs, &Image { size: 100_000, options: String::new() }.message(7), Some(&file)).unwrap();
        send(&theirs, &Need { image: 1, arch: 90, kernel: "k".into(), holds: 0 }.message(8), None).unwrap();
        drop(theirs);
        let image = receive(&ours).unwrap().unwrap();
        assert_eq!(image.head.serial, 7);
        let size = image.read::<Image>().unwrap().size;
        assert_eq!(image.image(size).unwrap(), bytes);
        let need: Need = receive(&ours).unwrap().unwrap().read().unwrap();
        assert_eq!(need.kernel, "k");
        assert!(receive(&ours).unwrap().is_none());
    }

    #[test]
    fn one_byte_at_a_time() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let bytes = Need { image: 1, arch: 90, kernel: "kernel".into(), holds: 0 }.message(1);
        let writer = std::thread::spawn(move || {
            for byte in bytes {
                theirs.write_all(&[byte]).unwrap();
            }
        });
        assert_eq!(receive(&ours).unwrap().unwrap().read::<Need>().unwrap().kernel, "kernel");
        writer.join().unwrap();
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let refused = |bytes: &[u8]| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(bytes).unwrap();
            drop(theirs);
            receive(&ours).unwrap_err()
        };
        refused(b"GET / HTTP/1.1\r\n\r\n");
        refused(b"ntm1");
        // A body that is promised and does not come.
        refused(&Head { kind: Kind::Need, len: 1000, serial: 0 }.encode());
        // Descriptors and sizes that do not fit.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let file = memory_file("image", b"short").unwrap();
        for descriptor in [None, Some(&file)] {
            send(&theirs, &Image { size: 1000, options: String::new() }.message(1), descriptor).unwrap();
            assert!(receive(&ours).unwrap().unwrap().image(1000).is_err());
        }
    }
}
