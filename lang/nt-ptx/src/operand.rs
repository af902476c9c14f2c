//! Operands and opcodes of an instruction, read on demand.

use crate::syntax::{Instruction, Module, Operand};

/// An opcode's parts: `ld` and `.global.v2.u32`.
///
/// Modifiers are an open list in any order (`cvt.f32.f64.rn` is the old order of `cvt.rn.f32.f64`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opcode<'s> {
    /// The first word: `ld`.
    pub base: &'s str,
    /// The rest, as written: `.global.v2.u32`. Blanks may stand between the parts.
    pub modifiers: &'s str,
}

impl<'s> Opcode<'s> {
    /// The modifiers one by one, each with its dot: `.global`, `.L2::128B`, `.u32`.
    pub fn parts(self) -> impl DoubleEndedIterator<Item = &'s str> {
        std::iter::empty()
    }

    /// Is `modifier` (with its dot) among them?
    pub fn has(self, modifier: &str) -> bool {
        self.parts().any(|part| part == modifier)
    }
}

impl<'s> Module<'s> {
    /// The parts of an instruction's opcode.
    pub fn opcode(&self, instruction: &Instruction) -> Opcode<'s> {
        Opcode { base: self.at(instruction.opcode), modifiers: "" }
    }

    /// The operands of an instruction, in order.
    pub fn operands(&self, _instruction: &Instruction) -> Vec<Operand> {
        Vec::new()
    }
}
