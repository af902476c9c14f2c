//! Differential tests: a kernel runs on the software GPU as it is and with a probe woven in; nothing may differ but
//! what the probe is for, and that must be what the software GPU counted.
//!
//! ```text
//! text ──────────────────────> run ──> memory, counts of every instruction ──┐
//!   └─ weave, verify ────────> run ──> memory, maps, tables ─────────────────┴─> equal?
//! ```
//!
//! The counts are those of the *original* run, taken by the interpreter where accesses are performed; what a probe
//! should have made of them is said here by hand (`judge.rs`), from opcodes and the language reference, without a
//! look into the tables of the weaver.
//!
//! | file | what is there |
//! |---|---|
//! | `sidecar.rs`, `random.rs` | how kernels of the corpora are launched (`testdata/ptx/*/*.launches`), and with what |
//! | `device.rs`, `probed.rs` | a run; a text with a probe in it |
//! | `counted.rs`, `records.rs` | what was counted, and what maps and tables hold, in the same form |
//! | `events.rs` | what streams hold, and the accesses that were seen |
//! | `classes.rs` | what probes at every tracepoint should count |
//! | `slots.rs` | what arrays with a capacity hold |
//! | `judge.rs`, `traced.rs`, `waits.rs` | what each shipped probe should show |
//! | `fuzz/` | kernels and probes made by chance, and what the latter should show |

pub mod classes;
pub mod counted;
pub mod device;
pub mod events;
pub mod fuzz;
pub mod judge;
pub mod probed;
pub mod random;
pub mod records;
pub mod sidecar;
pub mod slots;
mod traced;
mod waits;
