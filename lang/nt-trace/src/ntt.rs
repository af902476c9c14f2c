//! The trace `.ntt`: frames of `nt-wire`, read over a slice and written one by one.
//!
//! Three layers, each usable alone. [`Frames`] finds sound frames in bytes that may be damaged and says what it had to
//! skip. [`Trace`] knows the kernels and launches seen so far and gives each data frame together with its launch and
//! its kernel's manifest. [`Records`] is the typed view of a map's data frame, rows and columns, [`Cells`] of a table's.
//!
//! ```text
//! bytes ──Frames──▶ Start, Kernel, Launch, Data … ──Trace──▶ Batch ──Records──▶ unit 7: start 1042, elapsed 31
//!                   and Trouble                              CellBatch ──Cells──▶ unit 7: 4096, 1024
//! ```
//!
//! Promises: never a panic, whatever the bytes; a frame is given only if its checksums hold; what is not given is
//! named by its byte range; work is linear in the input, and memory is bounded by the kernels' manifests and
//! [`Trace::LAUNCHES`] launches.

mod cells;
mod frames;
mod records;
mod trace;
mod writer;

pub use cells::Cells;
pub use frames::{Content, Frame, Frames, Item, Trouble};
pub use records::{Mismatch, Records, Row, Rows, Value};
pub use trace::{Batch, CellBatch, Disagreement, Event, KnownKernel, Trace};
pub use writer::FileWriter;
