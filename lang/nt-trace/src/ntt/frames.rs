//! Finds the sound frames of a file, whatever else is in it.
//!
//! A frame is taken if its head's checksum and its body's hold. Where they do not, the reader looks for the next head:
//! first where the damaged one says, which is right where bytes were changed in place, then at every mark behind it,
//! which is right where bytes were lost or put in. What lies between is reported as one range.
//!
//! ```text
//! Start  Kernel  Launch  ▒▒▒▒▒▒▒▒  Data  End         damaged: bytes 576..11840; sequence 3 to 4 missing
//! Start  Kernel  Launch  Dat                          cut at frame 3
//! ```

use memchr::memmem::Finder;
use nt_wire::frame::{self, Body, Head, Kind, MARK};
use nt_wire::{Malformed, PROTOCOL, Reader};

/// What the iteration over a file gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'b> {
    /// A sound frame.
    Frame(Frame<'b>),
    /// Something that is not as it should be; what follows is read all the same.
    Trouble(Trouble),
}

/// A sound frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'b> {
    /// Where its head begins, in bytes of the file.
    pub at: u64,
    /// Its number in the file.
    pub sequence: u64,
    /// What it says.
    pub content: Content<'b>,
}

/// What a frame says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'b> {
    /// Who wrote the file.
    Start(frame::Start),
    /// A kernel whose launches follow.
    Kernel(frame::Kernel),
    /// A launch whose data follows.
    Launch(frame::Launch),
    /// One map of one launch.
    Data(frame::Data, &'b [u8]),
    /// A line of the coverage table.
    Count(frame::Count),
    /// A line of words.
    Note(frame::Note),
    /// The file ended as it should.
    End(frame::End),
}

/// What is wrong with a file. Each is a reason to end with exit code 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Bytes that are no sound frame: something else was written over or into the file.
    #[error("bytes {from}..{to} are damaged: {} bytes skipped", to - from)]
    Damaged {
        /// The first byte that was skipped.
        from: u64,
        /// The first that was not.
        to: u64,
    },
    /// Frames are missing, as far as their numbers tell.
    #[error("before byte {at}: frame {expected} expected, found {found}")]
    Gap {
        /// Where the frame behind the gap begins.
        at: u64,
        /// The number that should have come.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// The file has no end frame: its process was killed, or is still running.
    #[error("cut at frame {frame}, byte {at}: no end frame follows")]
    Cut {
        /// The number of the first frame that is not whole.
        frame: u64,
        /// Where it begins.
        at: u64,
    },
    /// A kind of frame that this version does not know.
    #[error("frame {sequence} at byte {at} is of unknown kind {kind}: a newer version wrote it")]
    Unknown {
        /// Where it begins.
        at: u64,
        /// Its number.
        sequence: u64,
        /// The kind.
        kind: u16,
    },
    /// The checksums hold and the body is not what its kind says; the writer is to blame.
    #[error("frame {sequence} at byte {at} contradicts itself")]
    Malformed {
        /// Where it begins.
        at: u64,
        /// Its number.
        sequence: u64,
    },
    /// Another protocol: nothing more is read of this file.
    #[error("protocol {protocol}, this version reads {PROTOCOL}: use the nt-map that came with the writer")]
    Version {
        /// The protocol of its start frame.
        protocol: u32,
    },
    /// A launch of a kernel, or data of a launch, that no sound frame told of.
    #[error("frame {sequence} at byte {at} belongs to a kernel or launch that is not in the file")]
    Stray {
        /// Where it begins.
        at: u64,
        /// Its number.
        sequence: u64,
    },
}

/// Iterates over the frames of a file.
#[derive(Debug, Clone)]
pub struct Frames<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The number that the next frame should have.
    next: u64,
    /// Was the last frame an end frame?
    ended: bool,
    /// Nothing more is to be given.
    done: bool,
    /// Checksum the bodies of data frames?
    check_data: bool,
    /// Bytes of bodies that were checksummed in vain.
    spent: usize,
    /// A frame that is given after the trouble found on the way to it.
    held: Option<Frame<'b>>,
    mark: Finder<'static>,
}

/// A body that is known whole, where it begins, and where the next frame should.
struct Whole<'b> {
    head: Head,
    body: &'b [u8],
    next: usize,
}

impl<'b> Frames<'b> {
    /// Reads `bytes` from their beginning.
    pub fn new(bytes: &'b [u8]) -> Self {
        Frames {
            bytes,
            at: 0,
            next: 0,
            ended: false,
            done: false,
            check_data: true,
            spent: 0,
            held: None,
            mark: Finder::new(&MARK),
        }
    }

    /// The same without the checksums of map data, so that a file is listed without reading all of it.
    pub fn skim(bytes: &'b [u8]) -> Self {
        Frames { check_data: false, ..Self::new(bytes) }
    }

    /// The frame at `at`, if its checksums hold.
    fn whole(&mut self, at: usize) -> Option<Whole<'b>> {
        let rest = self.bytes.get(at..)?;
        let head = Head::decode(rest).ok()?;
        let len = usize::try_from(head.len).ok()?;
        let body = rest.get(Head::SIZE..)?.get(..len)?;
        if (self.check_data || head.kind != Kind::Data) && frame::checksum(body) != head.body_crc {
            self.spent = self.spent.saturating_add(len);
            return None;
        }
        let next = usize::try_from(head.stride()).ok()?.saturating_add(at).min(self.bytes.len());
        Some(Whole { head, body, next })
    }

    /// The first sound frame behind `from`, where none is.
    fn resume(&mut self, from: usize) -> Option<(usize, Whole<'b>)> {
        // Where the damaged frame's head is sound it says where the next one should be, if none was lost.
        let claimed = self.bytes.get(from..).and_then(|rest| Head::decode(rest).ok());
        let behind =
            claimed.and_then(|head| usize::try_from(head.stride()).ok()).and_then(|n| from.checked_add(n));
        if let Some(at) = behind
            && let Some(found) = self.whole(at)
        {
            return Some((at, found));
        }
        let mut at = from.saturating_add(1);
        while let Some(offset) = self.bytes.get(at..).and_then(|rest| self.mark.find(rest)) {
            at += offset;
            let before = self.spent;
            if let Some(found) = self.whole(at) {
                return Some((at, found));
            }
            // Heads made up to lie in each other's bodies would have each body read again and again. Once more was
            // read in vain than a damaged file has any reason to, a body that failed is skipped as a whole.
            let failed = self.spent - before;
            at += if self.spent / 4 > self.bytes.len() { failed.max(1) } else { 1 };
        }
        None
    }

    /// Goes behind a sound frame and says what it means.
    fn take(&mut self, at: usize, whole: &Whole<'b>) -> (Option<Trouble>, Result<Frame<'b>, Trouble>) {
        let Whole { head, body, next } = *whole;
        let (position, sequence) = (at as u64, head.sequence);
        let gap = if head.kind == Kind::Start && sequence == 0 {
            // Files may be joined by `cat`: another one begins here.
            (self.next != 0 && !self.ended).then_some(Trouble::Cut { frame: self.next, at: position })
        } else {
            (sequence != self.next).then_some(Trouble::Gap {
                at: position,
                expected: self.next,
                found: sequence,
            })
        };
        self.at = next;
        self.next = sequence.wrapping_add(1);
        self.ended = head.kind == Kind::End;
        if let Kind::Unknown(kind) = head.kind {
            return (gap, Err(Trouble::Unknown { at: position, sequence, kind }));
        }
        let frame = match content(head.kind, body) {
            Ok(Content::Start(start)) if start.protocol != PROTOCOL => {
                self.done = true;
                Err(Trouble::Version { protocol: start.protocol })
            }
            Ok(content) => Ok(Frame { at: position, sequence, content }),
            Err(Malformed) => Err(Trouble::Malformed { at: position, sequence }),
        };
        (gap, frame)
    }
}

impl<'b> Iterator for Frames<'b> {
    type Item = Item<'b>;

    fn next(&mut self) -> Option<Item<'b>> {
        if let Some(frame) = self.held.take() {
            return Some(Item::Frame(frame));
        }
        if self.done {
            return None;
        }
        let at = self.at;
        if at >= self.bytes.len() {
            self.done = true;
            return (!self.ended).then_some(Item::Trouble(Trouble::Cut { frame: self.next, at: at as u64 }));
        }
        let Some(whole) = self.whole(at) else {
            // Damage is reported alone; the frame behind it is read again, and found sound, by the next call.
            let Some((to, _)) = self.resume(at) else {
                self.done = true;
                return Some(Item::Trouble(if self.ended {
                    Trouble::Damaged { from: at as u64, to: self.bytes.len() as u64 }
                } else {
                    Trouble::Cut { frame: self.next, at: at as u64 }
                }));
            };
            self.at = to;
            return Some(Item::Trouble(Trouble::Damaged { from: at as u64, to: to as u64 }));
        };
        match self.take(at, &whole) {
            (None, Ok(frame)) => Some(Item::Frame(frame)),
            (Some(gap), Ok(frame)) => {
                self.held = Some(frame);
                Some(Item::Trouble(gap))
            }
            // A gap before a frame that is skipped anyway needs no word of its own.
            (_, Err(trouble)) => Some(Item::Trouble(trouble)),
        }
    }
}

/// What the body of a frame says.
fn content(kind: Kind, body: &[u8]) -> Result<Content<'_>, Malformed> {
    fn all<B: Body>(body: &[u8]) -> Result<B, Malformed> {
        B::decode(&mut Reader::new(body))
    }
    Ok(match kind {
        Kind::Start => Content::Start(all(body)?),
        Kind::Kernel => Content::Kernel(all(body)?),
        Kind::Launch => Content::Launch(all(body)?),
        Kind::Data => {
            let (fixed, data) = frame::Data::decode(body)?;
            Content::Data(fixed, data)
        }
        Kind::Count => Content::Count(all(body)?),
        Kind::Note => Content::Note(all(body)?),
        Kind::End => Content::End(all(body)?),
        Kind::Unknown(_) => return Err(Malformed),
    })
}
