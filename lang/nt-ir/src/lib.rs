//! The probe IR: its types, its text form, its own checks, its passes, and the layout of maps.
//!
//! `program` says what the IR is and means; it is the contract between the front end (nt-probe), the back ends
//! (nt-weave) and the files (nt-trace).

pub mod layout;
pub mod program;
