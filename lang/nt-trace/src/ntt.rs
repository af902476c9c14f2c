//! The trace `.ntt`: frames of `nt-wire`, read over a slice and written one by one.
//!
//! Three layers, each usable alone. [`Frames`] finds sound frames in bytes that may be damaged and says what it had to
//! skip. [`Trace`] knows the kernels and launches seen so far and gives each data frame together with its launch and
//! its kernel's manifest. [`Records`] is the typed view of a map's data frame, rows and columns, [`Saves`] of one of an
//! array with a capacity, [`Cells`] of a table's, [`Streams`] and their [`Reader`]s of the parts of streams.
//!
//! ```text
//! bytes ──Frames──▶ Start, Kernel, Launch, Data … ──Trace──▶ Batch ──Records──▶ unit 7: start 1042, elapsed 31
//!                   and Trouble                              CellBatch ──Cells──▶ unit 7: 4096, 1024
//!                                                            StreamBatch ──Streams──▶ warp 7: at 1042, addresses
//! ```
//!
//! Promises: never a panic, whatever the bytes; a frame is given only if its checksums hold; what is not given is
//! named by its byte range; work is linear in the input, and memory is bounded by the kernels' manifests and
//! [`Trace::LAUNCHES`] launches.

mod cells;
mod frames;
mod records;
mod saves;
mod stream;
mod trace;
mod writer;

pub use cells::Cells;
pub use frames::{Content, Frame, Frames, Item, Trouble};
pub use records::{Mismatch, Records, Row, Rows, Value};
pub use saves::{Cursor, Save, Saves, Tally};
pub use stream::{
    Addresses, Cursors, Lanes, OpenPart, Part, Piece, Pieces, Reader, StreamEvent, StreamEvents, Streams,
    Unfit,
};
pub use trace::{Batch, CellBatch, Disagreement, Event, KnownKernel, StreamBatch, Trace};
pub use writer::FileWriter;
