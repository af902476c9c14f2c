//! PTX versions and what they and their targets allow, as data.

/// `(8, 7)`
pub type Pair = (u16, u16);

/// Bytes of parameters an entry may have: PTX ISA, section 5.1.6 (`.param`), 32,764 since version 8.1.
pub fn parameter_limit(version: Pair) -> u32 {
    if version >= (8, 1) { 32_764 } else { 4_352 }
}
