//! What compiled probes (`.ntp`), manifests (`.ntm`) and traces (`.ntt`) hold, with their readers and writers.
//!
//! The one crate that knows serde and bincode. Other crates' types are not serializable: each file has plain structs
//! of its own here, and conversions from `nt-ir`, so that a change of the IR is a change here that one sees. What the
//! cells of aggregations come to, over launches and processes, is computed here too ([`Aggregates`]): `nt-run` says it
//! at the end of a run, `nt-map` of a trace.
//!
//! Promises: pure functions of bytes, no I/O; reading never panics, whatever the bytes, and never allocates more than
//! a small multiple of its input; the same values give the same bytes. `docs/formats.md` describes the three files so
//! that another program could read them.

pub mod aggregate;
mod distribution;
pub mod ntm;
pub mod ntp;
pub mod ntt;

pub use aggregate::Aggregates;
pub use distribution::Distribution;
pub use ntm::Manifest;
