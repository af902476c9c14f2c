//! What a program may ask of a site: where it stands, what its instruction is, which operands it has.
//!
//! ```text
//! site width, match op "ld.*", has macs   known of every site when a kernel is woven, and gone after `close`
//! operand addr, operand bytes             parts of the instruction, of which some are known only when it runs
//! cast out[0], eq old[0], in1[0]          parts whose type is the instruction's
//! ```
//!
//! The words are those of the probe language (`words.rs` has the tables). Language reference, Operands.

/// What a site is called: a key of a table, or what a glob is held against. Each is a text known when a kernel is woven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SiteKey {
    /// The site itself.
    Site,
    /// File and line.
    Line,
    /// The opcode with its modifiers: `ld.global.f32`.
    Op,
    /// The class: `load`.
    Class,
    /// The state space.
    Space,
    /// The function it stands in.
    Func,
    /// The kernel.
    Kernel,
    /// The source file.
    File,
    /// The name of a mark.
    Mark,
    /// The function that a direct call goes to.
    Callee,
}

/// Numbers known of a site when a kernel is woven; all are `u32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SiteValue {
    /// `width`: bits an element.
    Width,
    /// `elems`: elements of a vector.
    Elems,
    /// `macs`: multiply-adds of the warp's share.
    Macs,
    /// `line`: the source line.
    Line,
    /// `site`: the site's number in its kernel, as the manifest lists them.
    Site,
}

/// Parts of the instruction that may be known only when it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operand {
    /// `addr`: `ptr`, varying; displacement included.
    Addr,
    /// `bytes`: `u32`; of loads, stores, atomics and reductions a lane's, known when woven; of copies varying.
    Bytes,
    /// `pred`: `bool`, varying; the guard before the instruction, true where there is none.
    Pred,
    /// `saddr`: `u32`, varying; the side of a copy that is in shared memory.
    Saddr,
    /// `taken`: `bool`, varying; does the branch go, in this lane?
    Taken,
    /// `done`: `bool`, varying; is the wait over?
    Done,
    /// `out[i]`: what the instruction gives, its type the instruction's; varying.
    Out(u8),
    /// `in2[i]`: what it takes, counted from 1, its type the instruction's; varying.
    In(u8, u8),
    /// `old[i]`: what a store overwrites, its type the instruction's; varying.
    Old(u8),
}

/// The operands that the language names: what `has(x)` may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the language reference, Operands, describes each once")]
pub enum Part {
    Addr,
    Saddr,
    Bytes,
    Width,
    Elems,
    Space,
    Out,
    /// `in1` … `in5`, counted from 1.
    In(u8),
    Old,
    Macs,
    Taken,
    Pred,
    Done,
    Callee,
}

impl SiteKey {
    /// The operand that a site must have to be told by this; `None` for what every site has.
    pub fn part(self) -> Option<Part> {
        match self {
            SiteKey::Space => Some(Part::Space),
            SiteKey::Callee => Some(Part::Callee),
            _ => None,
        }
    }

    /// Is it told of instructions alone, and not of a kernel's entry and exit?
    pub fn is_of_instructions(self) -> bool {
        matches!(self, SiteKey::Op | SiteKey::Class | SiteKey::Space | SiteKey::Callee)
    }
}
