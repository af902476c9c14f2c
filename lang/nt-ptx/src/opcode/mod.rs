//! What is known of opcodes, once for all who ask: parser notes, weaver, listings, docs.
//!
//! ```
//! use nt_ptx::opcode::{Bytes, Class, Space};
//! use nt_ptx::syntax::Kind;
//!
//! let (module, _) = nt_ptx::parse_statements("ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1+16];");
//! let Kind::Instruction(load) = module.statements[0].kind else { unreachable!() };
//! let facts = module.facts(&load).unwrap();
//! assert_eq!((facts.class, facts.space), (Class::Load, Some(Space::Global)));
//! assert_eq!((facts.width, facts.elems, facts.bytes), (32, 4, Bytes::Known(16)));
//! assert!(facts.address == Some(1) && facts.writes.has(0));
//! ```
//!
//! [`crate::syntax::Module::facts`] describes an instruction, [`CLASSES`] and [`GROUPS`] what its classes are to a
//! probe. The table is data, a file for some of the manual's sections, a row for all opcodes that begin with the same
//! words and are alike in what is asked here. An opcode that it lacks passes through, with a note.
//!
//! To add an instruction: a row in the file of its section, and what its modifiers need beside it; a line in
//! `tests/opcodes/`, from the manual's own example, with the numbers worked out by hand; a line in `tests/needs.txt`,
//! which asks ptxas whether version and target are the least.
//!
//! Source: PTX ISA 9.0, chapter 9.7. Syntax says which operands are written and where addresses stand, "PTX ISA Notes"
//! and "Target ISA Notes" the needs. What came with PTX 9.1 to 9.5 is in `recent`, held to ptxas 13.5. Sections are held to the
//! manual's own titles, `tests/sections.txt`.

mod class;
mod describe;
mod facts;
mod row;
#[cfg(test)]
mod sections;
mod table;
mod types;
mod words;

// The table, a file for some sections.
mod control;
mod copies;
mod data_movement;
mod float;
mod integer;
mod logic;
mod matrix;
mod recent;
mod sync;
mod tensor;
mod texture;

pub use class::{CLASSES, Class, ClassInfo, GROUPS, Group, SPACES, TYPES, VECTORS, WIDTHS};
pub(crate) use describe::unknown_part;
pub use facts::{Bytes, Completion, Facts, Needs, Places, Space, Targets, Trait, Traits};
pub use types::{Type, TypeKind};
