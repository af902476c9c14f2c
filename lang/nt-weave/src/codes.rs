//! Codes: what 16 bits of an event say, so that it need not be stored.
//!
//! ```text
//! code 2    dmat.save(…) at `ld.global.f32 %f1, [%rd4]`, told: site = 2
//!           addr: bits [4, 8, 16, 32, 64]      the lanes' addresses are 4 bytes apart
//!           bytes: known 4
//! ```
//!
//! A code is one save at one site in one form. Where the addresses of the lanes are proved to be a base and a stride for
//! each bit of the lane, only the base is stored; else the event itself is tested when it runs, and each outcome has a
//! code of its own.

use nt_affine::Linear;

/// What a code means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The site, as [`crate::Site::id`].
    pub site: u32,
    /// The fields that are the same in all its events, and their bits, extended by the sign of the type.
    pub told: Vec<(u32, u64)>,
    /// How each field with a value of each lane is had.
    pub lanes: Vec<(u32, Form)>,
}

/// How the values of the lanes are had. The leader is the lowest lane of the event's mask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Every lane has this value.
    Known(u64),
    /// base + Σ (bit i of the lane − bit i of the leader) · stride i.
    Bits([Linear; 5]),
    /// One slot, whose first word is a signed stride: base + (lane − leader) · stride.
    Stride,
    /// 4 bytes a lane of the mask: the signed distance from base, or of other fields the value.
    List32,
    /// 8 bytes a lane of the mask: the value.
    List64,
}
