//! The streams of a file that are being read: parts come one by one, and numbers of events go on from part to part.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::trace::StreamBatch;
use super::{Cursors, Part, Pieces, Reader, Unfit};

/// The streams of one file whose last part has not come yet.
#[derive(Debug, Default)]
pub struct Streams {
    /// By launch and map.
    open: BTreeMap<(u64, usize), (Arc<Reader>, Cursors)>,
}

/// A part of a stream, ready to be read.
#[derive(Debug)]
pub struct OpenPart<'s, 'b> {
    /// How its events are read.
    pub reader: Arc<Reader>,
    /// The part.
    pub part: Part<'b>,
    cursors: &'s mut Cursors,
}

/// As many streams may wait for their next part. A file that was written by a collector has one at a time; in one that
/// was damaged, numbers of events begin anew in a stream that was given up.
const OPEN: usize = 64;

impl Streams {
    /// Takes the next part of a stream.
    ///
    /// # Errors
    /// It does not fit its map or launch.
    pub fn open<'s, 'b>(&'s mut self, batch: &StreamBatch<'b>) -> Result<OpenPart<'s, 'b>, Unfit> {
        let key = (batch.launch.number, batch.index);
        let known = self.open.remove(&key);
        let (part, reader, mut cursors) = match known {
            Some((reader, cursors)) => (reader.part(batch.data)?, reader, cursors),
            None => {
                let (part, reader) = batch.open()?;
                (part, Arc::new(reader), Cursors::default())
            }
        };
        if part.head.part == 0 {
            // Where files were joined, numbers of launches come again.
            cursors = Cursors::default();
        }
        if self.open.len() >= OPEN {
            self.open.pop_first();
        }
        let (_, cursors) = self.open.entry(key).or_insert((Arc::clone(&reader), cursors));
        Ok(OpenPart { reader, part, cursors })
    }
}

impl<'b> OpenPart<'_, 'b> {
    /// Goes over its chunks; see [`Reader::pieces`].
    pub fn pieces(&mut self, bytes: usize) -> Pieces<'_, 'b> {
        self.reader.pieces(&self.part, self.cursors, bytes)
    }

    /// How many events each warp had no room for, by warps that had any.
    pub fn dropped(&self) -> impl Iterator<Item = (u64, u32)> + use<'b> {
        let (words, _) = self.part.drops.as_chunks::<4>();
        let counts = words.iter().map(|word| u32::from_le_bytes(*word));
        (0u64..).zip(counts).filter(|&(_, count)| count > 0)
    }
}
