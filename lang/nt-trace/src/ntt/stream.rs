//! The typed view of a stream: events in the order in which each lane saved them, and the lanes' values on demand.
//!
//! ```text
//! chunk 0   (owner slot) [base code mask at] [base code mask at][1042 1050 ..] ............    warp 0, lane 0
//! chunk 1   (owner slot) [base code mask at] ............                                      warp 1, lane 0
//! chunk 2   (owner 5)    [base code mask at] [base code mask at] ............                  warp 0, lane 4
//! ```
//!
//! A [`Reader`] knows how the events of one map of one launch are read: what each code means, with strides computed
//! from the launch's parameters. A part of the stream is walked twice. [`Reader::pieces`] goes over it in order, counts
//! events and numbers them within their lane's cursor; the [`Piece`]s that it gives are then read by [`Reader::events`],
//! each by itself, so side by side where that pays. [`Streams`] keeps readers and numbers from part to part.
//!
//! Promises: never a panic, whatever the bytes; an event is given only if it lies in its chunk whole and agrees with it,
//! and chunks with anything else in them are counted; memory is bounded by the pieces and by the lanes that have claimed.

mod open;
mod pieces;
mod reader;

pub use nt_wire::stream::Part;
pub use open::{OpenPart, Streams};
pub use pieces::{Cursors, Piece, Pieces, StreamEvents};
pub use reader::Reader;

use super::records::Value;
use super::trace::Disagreement;
use crate::ntm::{self, Assumption};

/// Why data is no part of a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// What it begins with contradicts itself, or it has another length.
    #[error("the part of a stream contradicts itself")]
    Malformed,
    /// The map is not a stream.
    #[error("the map is no stream")]
    NoStream,
    /// The manifest tells of another size of chunks.
    #[error("chunks of {found} slots, and the manifest tells of {expected}")]
    Chunk {
        /// The data's.
        found: u32,
        /// The manifest's.
        expected: u32,
    },
    /// It has another number of warps than the launch.
    #[error(transparent)]
    Units(#[from] Disagreement),
    /// Strides are made of parameters that the launch's frame does not have.
    #[error("strides are made of the launch's parameters, and the trace has {bytes} bytes of them")]
    Params {
        /// Bytes there are.
        bytes: usize,
    },
}

/// How the addresses of an event's lanes are had, those of the map's first field of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses<'r> {
    /// One is stored, and a proof tells the others, which takes this for granted.
    Proved(&'r [Assumption]),
    /// One and a stride are stored, that held when the event was.
    Tested,
    /// Each is stored.
    Listed,
}

/// One event of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamEvent<'r, 'b> {
    reader: &'r Reader,
    code: Option<&'r reader::Code>,
    warp: u64,
    lane: u32,
    sequence: u64,
    mask: u32,
    bytes: &'b [u8],
}

impl<'r> StreamEvent<'r, '_> {
    /// Whose event it is, counted over the launch.
    pub fn warp(&self) -> u64 {
        self.warp
    }

    /// The lane that has stored it, the lowest that took part: events are in order among those of one lane.
    pub fn lane(&self) -> u32 {
        self.lane
    }

    /// How many events this lane has stored in this stream before.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The lanes that took part; none in a stream that has no fields a lane.
    pub fn mask(&self) -> u32 {
        self.mask
    }

    /// The lanes of [`Self::mask`], ascending.
    pub fn lanes(&self) -> Lanes {
        Lanes(self.mask)
    }

    /// Where it was saved: an index into the kernel's sites. In a stream without fields a lane, known only where a
    /// column is called `site`.
    pub fn site(&self) -> Option<usize> {
        match self.code {
            Some(code) => code.site,
            None => {
                let number = self.value(self.reader.site_column()?)?.to_integer()?;
                self.reader.site_of(u32::try_from(number).ok()?)
            }
        }
    }

    /// What kind of event it is: an index into the manifest's codes. None in a stream without fields a lane.
    pub fn code(&self) -> Option<usize> {
        Some(self.code?.number)
    }

    /// Is a column the same in all events of its code?
    pub fn is_told(&self, column: usize) -> bool {
        self.code.is_some_and(|code| self.reader.is_told(column, code))
    }

    /// How its addresses are had; `None` in a stream without addresses of lanes.
    pub fn addresses(&self) -> Option<Addresses<'r>> {
        Some(match self.code?.addresses.as_ref()? {
            reader::How::Proved(assumes) => Addresses::Proved(assumes),
            reader::How::Tested => Addresses::Tested,
            reader::How::Listed => Addresses::Listed,
        })
    }

    /// The value of a column that has one for all lanes.
    pub fn value(&self, column: usize) -> Option<Value> {
        self.reader.value(column, self.code, self.bytes)
    }

    /// Where the values of a column are known to be on a line without a look at each: the bits of the leader's, and what is
    /// added from a lane to the next (modulo 2⁶⁴; 0 where all have one value).
    pub fn line(&self, column: usize) -> Option<(u64, i64)> {
        self.code?.line(self.reader, column, self.mask, self.bytes)
    }

    /// Puts the bits of a column's values, each at its lane of the mask; others are left alone. False, and nothing is
    /// put, if the column has no value a lane. [`Reader::typed`] makes values of bits.
    pub fn put_lanes(&self, column: usize, bits: &mut [u64; 32]) -> bool {
        let Some(code) = self.code else { return false };
        self.reader.put_lanes(column, code, self.mask, self.bytes, bits)
    }
}

/// Lanes of a mask, ascending.
#[derive(Debug, Clone, Copy)]
pub struct Lanes(u32);

impl Iterator for Lanes {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let lane = self.0.trailing_zeros();
        (lane < 32).then(|| {
            self.0 &= self.0 - 1;
            lane
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.0.count_ones() as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Lanes {}

/// The kernel's sites by their numbers.
fn site_index(kernel: &ntm::Kernel, id: u32) -> Option<usize> {
    kernel.sites.iter().position(|site| site.id == id)
}
