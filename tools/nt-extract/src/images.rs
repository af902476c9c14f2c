//! Images side by side: each stored stream is decompressed once, on as many threads as there are, and results come back
//! in the order of the entries.

use nt_object::{Entry, Error};
use rayon::prelude::*;

/// Below this many stored bytes threads cost more than they give.
const WORTH_THREADS: u64 = 1 << 19;

/// Calls `work` with the contents of each entry: PTX without NULs, cubins without padding.
///
/// Neighbours of one group are decompressed together. The result has an item for each entry, in their order.
pub(crate) fn each<'a, T: Send>(
    entries: &[&Entry<'a>],
    limit: usize,
    work: impl Fn(&Entry<'a>, &[u8]) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let chunk = |chunk: &[&Entry<'a>]| -> Vec<Result<T, Error>> {
        let stream = chunk.first().map(|entry| entry.stream(limit));
        let one = |entry: &&Entry<'a>| match &stream {
            Some(Ok(stream)) => work(entry, entry.contents(entry.image(stream)?)?),
            Some(Err(error)) => Err(error.clone()),
            // A chunk is never empty.
            None => work(entry, &[]),
        };
        chunk.iter().map(one).collect()
    };
    // Groups are told by their place: all images of one have the same.
    let same = |a: &&Entry<'a>, b: &&Entry<'a>| a.at() == b.at();
    let stored: u64 = entries.iter().map(|entry| entry.stored_size()).sum();
    if stored < WORTH_THREADS {
        return entries.chunk_by(same).flat_map(chunk).collect();
    }
    let all: Vec<Vec<_>> = entries.par_chunk_by(same).map(chunk).collect();
    all.into_iter().flatten().collect()
}
