//! Lossless PTX: read, resolved, edited.
//!
//! ```
//! let text = ".version 8.5\n.target sm_90\n.entry k { .reg .b32 %r<2>; mov.u32 %r1, %tid.x; ret; }";
//! let (module, mut found) = nt_ptx::parse(text);
//! let info = nt_ptx::resolve(&module, &mut found);
//! assert!(!found.has_errors());
//!
//! let mut edits = nt_ptx::Edits::new();
//! let first = info.functions[0].first;
//! edits.insert(module.statements[first as usize].span.start, "/* here */ ");
//! assert_eq!(
//!     edits.apply(text).unwrap(),
//!     ".version 8.5\n.target sm_90\n.entry k { .reg .b32 %r<2>; /* here */ mov.u32 %r1, %tid.x; ret; }"
//! );
//! ```
//!
//! [`parse()`] never fails and never panics: it gives a [`syntax::Module`] of byte spans and a list of what is wrong.
//! [`resolve()`] adds what names mean. [`flow()`] says what runs after what, [`pointers()`] where calls through registers go. [`Edits`] is the only way to write, and
//! touches nothing but what it is told to. [`version`] holds what PTX and its targets can do, as data.

pub mod syntax;

mod constant;
mod edit;
mod flow;
pub mod opcode;
mod parse;
mod pointers;
mod resolve;
mod spell;
mod token;
pub mod version;

pub use constant::constant;
pub use edit::{EditError, Edits};
pub use flow::{Block, Flow, flow};
pub use parse::{Address, Opcode, parse, parse_statements};
pub use pointers::{PointerCall, Pointers, pointers};
pub use resolve::{
    Alias, Declared, FunctionInfo, ModuleInfo, Named, Reach, Register, Variable, identifiers_with_prefix,
    resolve,
};
pub use spell::spell;
pub use token::{TokenKind, Tokens};
