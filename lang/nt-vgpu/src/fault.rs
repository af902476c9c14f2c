//! What ends a launch early, and where: kernel, PTX line, block and thread.
//!
//! ```text
//! kernel `vector_add`, line 187, `ld.global.f32`: block (3,0,0), thread (255,0,0): no memory at global address
//! 0x700000400 (4 bytes)
//! ```

use crate::memory::Refused;
use nt_diag::Span;
use std::fmt;

/// A launch that came to an end that its kernel did not mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// The kernel's name.
    pub kernel: String,
    /// The statement's bytes in the PTX text.
    pub span: Span,
    /// Its line there, from 1 on.
    pub line: u32,
    /// Its opcode.
    pub opcode: String,
    /// `%ctaid` of the first thread that it happened to.
    pub block: [u32; 3],
    /// `%tid` of that thread.
    pub thread: [u32; 3],
}

/// The kinds of [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An access that memory refused.
    Access {
        /// `global`, `shared`, …
        space: &'static str,
        /// Where, in that space.
        address: u64,
        /// How many bytes.
        size: usize,
        /// Why.
        reason: AccessError,
    },
    /// The interpreter does not know this instruction, or not in this form.
    NotExecuted(String),
    /// The instruction has no defined result here.
    Undefined(String),
    /// `trap`
    Trap,
    /// No thread can go on; the text says how many wait.
    Deadlock(String),
    /// [`crate::Options::max_steps`] were taken.
    Steps(u64),
    /// Calls nest too deep, or local memory is used up.
    Stack,
}

/// Why an access failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessError {
    /// The address is no multiple of the access's size.
    Misaligned,
    /// There is no memory.
    Unmapped,
    /// The memory may be read only.
    ReadOnly,
}

impl From<Refused> for AccessError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unmapped => AccessError::Unmapped,
            Refused::ReadOnly => AccessError::ReadOnly,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Access { space, address, size, reason } => {
                let what = match reason {
                    AccessError::Misaligned => "misaligned",
                    AccessError::Unmapped => "no memory at",
                    AccessError::ReadOnly => "memory may be read only at",
                };
                write!(f, "{what} {space} address {address:#x} ({size} bytes)")
            }
            FaultKind::NotExecuted(what) => write!(f, "not executed: {what}"),
            FaultKind::Undefined(what) => write!(f, "undefined: {what}"),
            FaultKind::Trap => write!(f, "the kernel trapped"),
            FaultKind::Deadlock(what) => write!(f, "deadlock: {what}"),
            FaultKind::Steps(steps) => write!(f, "not done after {steps} steps"),
            FaultKind::Stack => write!(f, "the stack is used up"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(
            f,
            "kernel `{}`, line {}, `{}`: block ({bx},{by},{bz}), thread ({tx},{ty},{tz}): {}",
            self.kernel, self.line, self.opcode, self.kind
        )
    }
}

impl std::error::Error for Fault {}

/// What an instruction could not do, and the lane that found out; the scheduler adds the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) kind: FaultKind,
    pub(crate) lane: u32,
}

impl Stop {
    pub(crate) fn undefined(lane: u32, what: impl Into<String>) -> Self {
        Stop { kind: FaultKind::Undefined(what.into()), lane }
    }
}
