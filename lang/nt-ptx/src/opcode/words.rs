//! An opcode cut into its words, with the types among them.
//!
//! ```text
//! mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32      base `mma`, nine words, types f32 f16 f16 f32
//! ```

use super::types::Type;
use crate::parse::Opcode;

/// The longest opcodes have some sixteen words, and five types.
const MOST_WORDS: usize = 32;
const MOST_TYPES: usize = 8;

/// The words of an opcode, without their dots.
#[derive(Debug)]
pub(super) struct Words<'s> {
    base: &'s str,
    words: [&'s str; MOST_WORDS],
    len: usize,
    /// The types among them, and none behind.
    types: [Option<Type>; MOST_TYPES],
}

impl<'s> Words<'s> {
    /// `None` for what has more words than an opcode can have.
    pub(super) fn of(opcode: Opcode<'s>) -> Option<Words<'s>> {
        let mut all = Words { base: opcode.base, words: [""; MOST_WORDS], len: 0, types: [None; MOST_TYPES] };
        let text = opcode.modifiers;
        // Blanks and comments between the words are legal and rare.
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:".contains(&byte)) {
            let mut words = text.split('.');
            // Before the first dot there is nothing.
            words.next();
            words.try_for_each(|word| all.push(word))?;
        } else {
            opcode.parts().try_for_each(|part| all.push(part.strip_prefix('.').unwrap_or(part)))?;
        }
        Some(all)
    }

    fn push(&mut self, word: &'s str) -> Option<()> {
        *self.words.get_mut(self.len)? = word;
        self.len += 1;
        if let Some(ty) = Type::named(word) {
            *self.types.iter_mut().find(|free| free.is_none())? = Some(ty);
        }
        Some(())
    }

    /// The first word: `ld`.
    pub(super) fn base(&self) -> &'s str {
        self.base
    }

    /// The other words, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'s str> {
        // By reference: to move the array would cost more than all else.
        self.words.iter().take(self.len).copied()
    }

    /// Is `word` (without a dot) among them?
    pub(super) fn has(&self, word: &str) -> bool {
        self.iter().any(|own| own == word)
    }

    /// The types, in order.
    pub(super) fn types(&self) -> impl Iterator<Item = Type> {
        self.types.iter().map_while(|ty| *ty)
    }

    pub(super) fn last_type(&self) -> Option<Type> {
        self.types().last()
    }

    /// N of `.vN`, else 1.
    pub(super) fn vector(&self) -> u32 {
        self.number("v").unwrap_or(1)
    }

    /// N of the first word that is `prefix` and a number.
    pub(super) fn number(&self, prefix: &str) -> Option<u32> {
        self.iter().find_map(|word| word.strip_prefix(prefix)?.parse().ok())
    }

    /// 16, 8 and 16 of `.m16n8k16`; without `k` that is 1.
    pub(super) fn shape(&self) -> Option<[u32; 3]> {
        self.iter().find_map(|word| {
            let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
            let (n, k) = rest.split_once('k').unwrap_or((rest, "1"));
            Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
        })
    }

    /// 16 and 256 of `.16x256b`.
    pub(super) fn tensor_shape(&self) -> Option<[u32; 2]> {
        self.iter().find_map(|word| {
            let (rows, bits) = word.split_once('x')?;
            let bits = bits.split_once('b')?.0;
            Some([rows.parse().ok()?, bits.parse().ok()?])
        })
    }
}
