//! The probe IR: its types, its text form, its own checks, its passes, and the layout of maps.
//!
//! `program` says what the IR is and means; it is the contract between the front end (nt-probe), the back ends
//! (nt-weave) and the files (nt-trace). A program comes from `nt_probe::compile` or from [`text::parse`], is held to
//! the rules by [`check()`], and made ready for a back end by [`prepare`]:
//!
//! ```text
//! probe text ── nt_probe ──> Program ── check, passes, layouts ──> Prepared ── nt_weave ──> PTX
//!                               │ ▲
//!                            text::print, text::parse (the form that .ntp files store)
//! ```

pub mod check;
pub mod close;
pub mod eval;
mod glob;
mod known;
pub mod launch;
pub mod layout;
mod map;
pub mod passes;
mod point;
pub mod program;
mod site;
mod table;
pub mod text;
mod uses;
mod words;

pub use check::check;
pub use close::close;
pub use glob::glob_matches;
pub use passes::{Broken, Options, Prepared, prepare, prepare_watched};
