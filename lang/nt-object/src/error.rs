//! What can be wrong with a container, told by offset and field.
//!
//! ```text
//! payload size at 0x18: 9223372036854775808 bytes needed, 96 are there
//! ```

/// Why a container, or a part of it, cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} at {at:#x}: {fault}")]
pub struct Error {
    /// Where: an offset into the file; inside a decompressed payload, into that payload.
    pub at: u64,
    /// Which field or table, in the words of `docs/extract.md`.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It reaches beyond the end of what holds it: a file cut by a download, or a size of 2^63.
    #[error("{needed} bytes needed, {there} are there")]
    Cut {
        /// How many bytes it wants.
        needed: u64,
        /// How many there are.
        there: u64,
    },
    /// It holds a value that it may not: a header size of 3.
    #[error("{found:#x}, expected {expected}")]
    Value {
        /// The value.
        found: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// It would decompress to more than the caller allows: a bomb, or a limit set too low.
    #[error("decompresses to {needed} bytes, over the limit of {limit}")]
    Limit {
        /// What the entry's header declares.
        needed: u64,
        /// What the caller allows.
        limit: u64,
    },
    /// A compressed stream that its decoder refuses, or that gives another size than declared.
    #[error("{scheme} stream is damaged: {why}")]
    Stream {
        /// `LZ4` or `zstd`.
        scheme: &'static str,
        /// The decoder's words.
        why: String,
    },
    /// `<module>\0\0junk`: a driver would stop at the NUL and lose the rest in silence.
    #[error("interior NUL at byte {byte}, and the text goes on after it")]
    InteriorNul {
        /// Its offset in the text.
        byte: u64,
    },
    /// A form that is known of but not read: compressed LTO-IR, a Windows cubin of 2007.
    #[error("{0}")]
    Unread(&'static str),
    /// What a reader of ELF or archives says of its input.
    #[error("{0}")]
    Reader(String),
}

impl Error {
    pub(crate) fn new(at: u64, field: &'static str, fault: Fault) -> Self {
        Error { at, field, fault }
    }

    pub(crate) fn value(at: u64, field: &'static str, found: impl Into<u64>, expected: &'static str) -> Self {
        Error::new(at, field, Fault::Value { found: found.into(), expected })
    }
}
