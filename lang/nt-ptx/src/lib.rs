//! Lossless PTX: read, resolved, edited.

pub mod syntax;
