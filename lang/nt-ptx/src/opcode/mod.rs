//! What is known of opcodes, once for all who ask: parser notes, weaver, listings, docs.

mod class;
mod facts;
mod types;
mod words;

pub use class::{CLASSES, Class, ClassInfo, GROUPS, Group, SPACES, TYPES, VECTORS, WIDTHS};
pub use facts::{Bytes, Completion, Facts, Needs, Places, Space, Targets, Trait, Traits};
pub use types::{Type, TypeKind};
pub(crate) use words::is_known;
