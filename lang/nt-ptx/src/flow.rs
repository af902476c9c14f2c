//! Control flow of a function: basic blocks and what may run after them.

use crate::resolve::ModuleInfo;
use crate::syntax::Module;
use std::ops::Range;

/// The basic blocks of a function, in text order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// They cover all statements of the body.
    pub blocks: Vec<Block>,
    /// Can control reach the closing brace?
    pub end_reachable: bool,
    /// Branches to a label at or before them: the branch's statement and the label's.
    pub backward: Vec<(u32, u32)>,
}

/// Statements that run one after the other, but for guards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Indices into [`Module::statements`].
    pub statements: Range<u32>,
    /// Blocks that may run next, as indices into [`Flow::blocks`], rising.
    pub successors: Vec<u32>,
    /// May control run from its end into the closing brace?
    pub falls_off: bool,
    /// Can it be reached from the function's start?
    pub reachable: bool,
}

/// The control flow of one function; no blocks for a declaration.
pub fn flow(_module: &Module<'_>, _info: &ModuleInfo<'_>, _function: usize) -> Flow {
    Flow::default()
}

impl Flow {
    /// Can the statement run? What follows an unconditional `trap`, `exit`, `ret` or `bra` in its block cannot.
    pub fn is_reachable(&self, _statement: u32) -> bool {
        true
    }
}
