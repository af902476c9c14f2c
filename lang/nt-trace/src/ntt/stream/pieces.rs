//! The walk over the chunks of a part: first to count and to number, then to read.

use std::collections::HashMap;

use super::reader::{Reader, SLOT};
use super::{Part, StreamEvent};

/// How many events each lane has stored so far: carried from part to part of a stream, begun anew with a launch.
#[derive(Debug, Clone, Default)]
pub struct Cursors {
    /// By warp · 32 + lane; looked up, never walked over.
    stored: HashMap<u64, u64>,
}

/// A run of chunks whose events are counted.
#[derive(Debug, Clone)]
pub struct Piece<'b> {
    slots: &'b [u8],
    /// The number of the first chunk.
    first: u64,
    /// For each chunk, the number of its first event within its lane's cursor.
    sequences: Vec<u64>,
    /// Events in it.
    pub stored: u64,
    /// Chunks that hold something that cannot be: what is before it in them is given.
    pub torn: u64,
}

/// Iterates over the pieces of a part.
#[derive(Debug)]
pub struct Pieces<'r, 'b> {
    reader: &'r Reader,
    cursors: &'r mut Cursors,
    rest: &'b [u8],
    next: u64,
    /// Bytes a piece.
    length: usize,
}

/// Iterates over the events of a piece.
#[derive(Debug, Clone)]
pub struct StreamEvents<'r, 'b> {
    reader: &'r Reader,
    chunks: std::slice::ChunksExact<'b, u8>,
    number: u64,
    sequences: std::slice::Iter<'r, u64>,
    current: Chunk<'b>,
    sequence: u64,
}

/// What is left of a chunk.
#[derive(Debug, Clone, Copy, Default)]
struct Chunk<'b> {
    warp: u64,
    lane: u32,
    rest: &'b [u8],
}

/// An event, as far as its place in memory goes.
struct Place<'b> {
    code: Option<usize>,
    mask: u32,
    bytes: &'b [u8],
}

/// How a chunk goes on.
enum Next<'b> {
    Event(Place<'b>),
    /// No more, as it should be.
    End,
    /// Something that no save leaves.
    Torn,
}

impl Reader {
    /// Goes over the chunks of a part in order, and gives them in pieces of at most so many bytes, or one chunk. Parts of
    /// a launch must come in order, with the same `cursors`.
    pub fn pieces<'r, 'b>(
        &'r self,
        part: &Part<'b>,
        cursors: &'r mut Cursors,
        bytes: usize,
    ) -> Pieces<'r, 'b> {
        let next = part.head.first_slot / (self.chunk / SLOT).max(1) as u64;
        let length = (bytes / self.chunk).max(1) * self.chunk;
        Pieces { reader: self, cursors, rest: part.slots, next, length }
    }

    /// The events of a piece, in the order of its chunks.
    pub fn events<'r, 'b>(&'r self, piece: &'r Piece<'b>) -> StreamEvents<'r, 'b> {
        StreamEvents {
            reader: self,
            chunks: piece.slots.chunks_exact(self.chunk),
            number: piece.first,
            sequences: piece.sequences.iter(),
            current: Chunk::default(),
            sequence: 0,
        }
    }

    /// Whose chunk it is: `Ok(None)` for one that was never handed out.
    fn open<'b>(&self, number: u64, bytes: &'b [u8]) -> Result<Option<Chunk<'b>>, ()> {
        let (owner, rest) = bytes.split_at_checked(SLOT).ok_or(())?;
        let word = owner.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        if number < self.units {
            return if word == 0 { Ok(Some(Chunk { warp: number, lane: 0, rest })) } else { Err(()) };
        }
        match word.checked_sub(1) {
            Some(owner) if owner / 32 < self.units => {
                Ok(Some(Chunk { warp: owner / 32, lane: (owner % 32) as u32, rest }))
            }
            None if is_zero(rest) => Ok(None),
            Some(_) | None => Err(()),
        }
    }

    /// The next event of a chunk, which then has less left.
    fn next<'b>(&self, chunk: &mut Chunk<'b>) -> Next<'b> {
        let rest = chunk.rest;
        let Some(header) = rest.get(..self.header) else { return end(rest) };
        let (code, mask, length) = match self.presence {
            Some(load) => {
                if load.bits(header, 0) == 0 {
                    return end(rest);
                }
                (None, 0, self.header)
            }
            None => {
                // A header has at least one slot of 16 bytes.
                let Some((&first, second)) = header.split_first_chunk::<8>() else { return Next::Torn };
                let mask = second.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
                if mask == 0 {
                    return end(rest);
                }
                let number = (u64::from_le_bytes(first) >> 48) as usize;
                let Some(code) = self.codes.get(number) else { return Next::Torn };
                // The lowest lane that takes part stores, where its own cursor is.
                if mask.trailing_zeros() != chunk.lane {
                    return Next::Torn;
                }
                (Some(number), mask, self.header + code.behind(mask.count_ones()))
            }
        };
        match rest.split_at_checked(length) {
            Some((bytes, rest)) => {
                chunk.rest = rest;
                Next::Event(Place { code, mask, bytes })
            }
            None => Next::Torn,
        }
    }
}

/// Behind the last event of a chunk there is nothing.
fn end<'b>(rest: &[u8]) -> Next<'b> {
    if is_zero(rest) { Next::End } else { Next::Torn }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |all, &byte| all | byte) == 0
}

impl Cursors {
    /// Counts the events of one chunk; says how many there are, how many its lane had stored before, and whether the
    /// chunk is torn.
    fn count(&mut self, reader: &Reader, number: u64, bytes: &[u8]) -> (u64, u64, bool) {
        let mut chunk = match reader.open(number, bytes) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return (0, 0, false),
            Err(()) => return (0, 0, true),
        };
        let mut events = 0;
        let torn = loop {
            match reader.next(&mut chunk) {
                Next::Event(_) => events += 1,
                Next::End => break false,
                Next::Torn => break true,
            }
        };
        if events == 0 {
            return (0, 0, torn);
        }
        let stored = self.stored.entry(chunk.warp * 32 + u64::from(chunk.lane)).or_default();
        let before = *stored;
        *stored += events;
        (events, before, torn)
    }
}

impl<'b> Iterator for Pieces<'_, 'b> {
    type Item = Piece<'b>;

    fn next(&mut self) -> Option<Piece<'b>> {
        let chunk = self.reader.chunk;
        // A part is chunks as a whole, or `Reader::part` would not have taken it.
        let (slots, rest) = self.rest.split_at(self.length.min(self.rest.len()));
        if slots.is_empty() {
            return None;
        }
        self.rest = rest;
        let first = self.next;
        let mut piece =
            Piece { slots, first, sequences: Vec::with_capacity(slots.len() / chunk), stored: 0, torn: 0 };
        for bytes in slots.chunks_exact(chunk) {
            let (events, before, torn) = self.cursors.count(self.reader, self.next, bytes);
            piece.sequences.push(before);
            piece.stored += events;
            piece.torn += u64::from(torn);
            self.next += 1;
        }
        Some(piece)
    }
}

impl<'r, 'b> Iterator for StreamEvents<'r, 'b> {
    type Item = StreamEvent<'r, 'b>;

    fn next(&mut self) -> Option<StreamEvent<'r, 'b>> {
        loop {
            if let Next::Event(Place { code, mask, bytes }) = self.reader.next(&mut self.current) {
                let sequence = self.sequence;
                self.sequence += 1;
                let code = code.and_then(|number| self.reader.codes.get(number));
                let Chunk { warp, lane, .. } = self.current;
                return Some(StreamEvent { reader: self.reader, code, warp, lane, sequence, mask, bytes });
            }
            let bytes = self.chunks.next()?;
            let number = self.number;
            self.number += 1;
            self.sequence = self.sequences.next().copied().unwrap_or(0);
            self.current = match self.reader.open(number, bytes) {
                Ok(Some(chunk)) => chunk,
                Ok(None) | Err(()) => Chunk::default(),
            };
        }
    }
}
