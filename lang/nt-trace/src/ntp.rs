//! The compiled probe `.ntp`: a checked program's IR, and its source, whose lines later messages draw.
//!
//! ```text
//! 93 6e 74 70   01 00 00 00   crc-32c of the rest   bincode: tool, name, source name, source, IR text with places
//! ```
//!
//! The IR is stored as its text form: it has a definition of its own, a parser that distrusts it, and `strings` shows
//! it. bincode (standard configuration: little-endian, lengths of variable size) only joins the five texts.
//!
//! Promises: `decode(encode(x)) == x`; texts are borrowed from the input while it is read, so a false length allocates
//! nothing; a changed byte is found.

use nt_ir::program::Program;
use nt_wire::frame::checksum;
use serde::{Deserialize, Serialize};

/// Begins every file. No text in UTF-8 begins with this byte.
pub const MAGIC: [u8; 4] = *b"\x93ntp";

/// Raised with every change of the format or of the IR's text form. Until 1.0 only the same version is read.
pub const VERSION: u32 = 1;

/// The longest file that is read, in bytes.
pub const LIMIT: usize = 64 << 20;

/// Bytes before the texts: magic, version, checksum.
const HEAD: usize = 12;

/// A compiled probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The version of the tool that compiled it.
    pub tool: String,
    /// What messages call the source: a path as it was given, `<stdin>`.
    pub source_name: String,
    /// The source.
    pub source: String,
    /// What it means; its places are places in the source.
    pub program: Program,
}

/// Why bytes are no compiled probe that this version reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Anything else: `map heat: …`.
    #[error("not a compiled probe (.ntp)")]
    Foreign,
    /// Another version of nt made it: `\x93ntp\x02\0\0\0…`.
    #[error("a compiled probe of format {0}, this version reads {VERSION}: recompile it with nt-probec")]
    Version(u32),
    /// Bytes are missing or were changed.
    #[error("the compiled probe is damaged ({0}): recompile it with nt-probec")]
    Damaged(&'static str),
    /// The IR in it is refused, though the bytes are as they were written.
    #[error("the compiled probe holds IR that is refused: {0}")]
    Refused(String),
    /// More than [`LIMIT`] bytes.
    #[error("a compiled probe of {0} bytes: at most {LIMIT} are read")]
    Long(usize),
}

/// What bincode sees.
#[derive(Serialize, Deserialize)]
struct Stored<'b> {
    tool: &'b str,
    name: &'b str,
    source_name: &'b str,
    source: &'b str,
    ir: &'b str,
}

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<LIMIT>()
}

/// Are these the first bytes of a compiled probe, of whatever version?
pub fn is_ntp(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The file's bytes.
///
/// # Errors
/// The texts together are over [`LIMIT`].
pub fn encode(compiled: &Compiled) -> Result<Vec<u8>, Error> {
    let ir = nt_ir::text::print_with_spans(&compiled.program);
    let stored = Stored {
        tool: &compiled.tool,
        name: &compiled.program.name,
        source_name: &compiled.source_name,
        source: &compiled.source,
        ir: &ir,
    };
    let length = stored.source.len().saturating_add(ir.len());
    let texts = bincode::serde::encode_to_vec(&stored, config()).map_err(|_| Error::Long(length))?;
    if texts.len() > LIMIT - HEAD {
        return Err(Error::Long(texts.len()));
    }
    let mut bytes = Vec::with_capacity(HEAD + texts.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&checksum(&texts).to_le_bytes());
    bytes.extend_from_slice(&texts);
    Ok(bytes)
}

/// Reads a file back.
///
/// # Errors
/// It is no compiled probe, of another version, damaged, or too long.
pub fn decode(bytes: &[u8]) -> Result<Compiled, Error> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(Error::Foreign)?;
    let (version, rest) = rest.split_first_chunk().ok_or(Error::Damaged("cut"))?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err(Error::Version(version));
    }
    if bytes.len() > LIMIT {
        return Err(Error::Long(bytes.len()));
    }
    let (sum, texts) = rest.split_first_chunk().ok_or(Error::Damaged("cut"))?;
    if u32::from_le_bytes(*sum) != checksum(texts) {
        return Err(Error::Damaged("its checksum is another"));
    }
    let (stored, used): (Stored<'_>, usize) = bincode::serde::borrow_decode_from_slice(texts, config())
        .map_err(|_| Error::Damaged("not five texts"))?;
    if used != texts.len() {
        return Err(Error::Damaged("bytes behind its end"));
    }
    let (program, found) = nt_ir::text::parse(stored.ir);
    let program = match program {
        Some(program) if !found.has_errors() => program,
        _ => {
            let first = found.iter().next().map_or_else(String::new, |diagnostic| diagnostic.message.clone());
            return Err(Error::Refused(first));
        }
    };
    if program.name != stored.name {
        return Err(Error::Damaged("it names two programs"));
    }
    Ok(Compiled {
        tool: stored.tool.to_owned(),
        source_name: stored.source_name.to_owned(),
        source: stored.source.to_owned(),
        program,
    })
}
