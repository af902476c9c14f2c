//! The trace `.ntt`: frames of `nt-wire`, read over a slice and written one by one.
//!
//! Three layers, each usable alone. [`Frames`] finds sound frames in bytes that may be damaged and says what it had to
//! skip. [`Trace`] knows the kernels and launches seen so far and gives each data frame together with its launch and
//! its kernel's manifest. [`Table`] is the typed view of one data frame: rows and columns.
//!
//! ```text
//! bytes ──Frames──▶ Start, Kernel, Launch, Data … and Trouble ──Trace──▶ Batch ──Table──▶ unit 7: start 1042, elapsed 31
//! ```
//!
//! Promises: never a panic, whatever the bytes; a frame is given only if its checksums hold; what is not given is
//! named by its byte range; work is linear in the input, and memory is bounded by the kernels' manifests and
//! [`Trace::LAUNCHES`] launches.

mod frames;
mod table;
mod trace;
mod writer;

pub use frames::{Content, Frame, Frames, Item, Trouble};
pub use table::{Mismatch, Row, Rows, Table, Value};
pub use trace::{Batch, Event, KnownKernel, Trace};
pub use writer::FileWriter;
