//! Choose, weave, verify, assemble, cache.

pub mod assemble;
pub mod cache;
pub mod choose;
mod image;
