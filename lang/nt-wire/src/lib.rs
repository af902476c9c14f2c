//! Frames of plain structs: what hook and parent say to each other, and what a trace file consists of.
//!
//! The hook lives in somebody else's process, so what it needs is here and small: little-endian structs, no serde,
//! one dependency. [`message`] is the talk over the socket of a run folder, [`frame`] the file format `.ntt`,
//! [`stream`] and [`slots`] what frames of events and of arrays with a capacity look like inside, [`codec`] the few lines all
//! are written with.
//!
//! Promises: decoding never panics and never allocates more than its input could hold; a frame is known whole by its
//! checksums; the same structs give the same bytes, held by goldens in `testdata/wire/`.

pub mod codec;
pub mod frame;
pub mod message;
pub mod slots;
pub mod stream;

pub use codec::{Malformed, Reader, Writer};

/// Raised with every change of [`message`] or [`frame`]. Hook and parent of different versions do not talk: the hook
/// stays passive and the parent says so.
pub const PROTOCOL: u32 = 4;
