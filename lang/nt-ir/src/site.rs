//! What a program may ask of a site: where it stands, what its instruction is, which operands it has.
//!
//! ```text
//! inst:load|store.global.v4:reach        a tracepoint: classes, spaces, qualifiers, placement
//! site width, match op "ld.*", has macs   known of every site when a kernel is woven, and gone after `close`
//! operand addr, operand bytes             parts of the instruction, of which some are known only when it runs
//! ```
//!
//! The words are those of the probe language (`words.rs` has the tables). Language reference, Tracepoints and Operands.

/// Where a body stands, seen from its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Placement {
    /// Before it, for the lanes whose guard holds.
    Before,
    /// After it, for the lanes whose guard held before it.
    After,
    /// Before it, for all lanes that get there.
    Reach,
}

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
            _ => None,
        }
    }

    /// Is it told of instructions alone, and not of a kernel's entry and exit?
    pub fn is_of_instructions(self) -> bool {
        matches!(self, SiteKey::Op | SiteKey::Class | SiteKey::Space)
    }
}
