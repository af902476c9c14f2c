//! A row of the table: all that is known of the instructions that begin with the same words.
//!
//! ```text
//! row("cp.async", Class::AsyncCopy, "9.7.9.25.3.1", &[Dst, Src, CopySize, In]).since(7, 0).on(80)
//! ```
//!
//! The first word of a row's name is the instruction's, the others are modifiers that must be there, in any order.
//! Of several rows that fit the one with the most words counts, and of as many words the one that stands first (it
//! then has a narrower choice of types or of the number of operands). Roles go with operands
//! from the left; further operands (cache policies, masks, hints) are read.

use super::class::Class;
use super::facts::{Completion, Needs, Space, Targets, Trait, Traits};
use super::types::TypeKind;
use crate::version::Arch;

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) class: Class,
    pub(super) section: &'static str,
    pub(super) roles: &'static [Role],
    /// Kinds of the last type that the opcode names, one bit each; 0 for any, and for none.
    pub(super) types: u8,
    /// How many operands there are; 0 for any number.
    pub(super) count: usize,
    pub(super) needs: Needs,
    /// What modifiers need beyond that.
    pub(super) also: &'static [&'static [Also]],
    pub(super) size: Size,
    pub(super) out: Out,
    /// The space where the text names none.
    pub(super) space: Option<Space>,
    pub(super) other_space: Option<Space>,
    pub(super) completes: Completion,
    pub(super) awaits: Option<Completion>,
    pub(super) traits: Traits,
    /// Does control not go on behind it, unless it has a guard?
    pub(super) leaves: bool,
}

/// What an operand is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Written.
    Out,
    /// Written, and read before.
    OutIn,
    /// Read.
    In,
    /// Read: what is stored, added, compared.
    Data,
    /// The address of the memory it touches.
    Address,
    /// A copy's destination.
    Dst,
    /// A copy's source.
    Src,
    /// A tensor and the coordinates in it: `[map, {x, y}]`.
    Tensor,
    /// The address of an mbarrier that is told of completion.
    Mbarrier,
    /// The number of bytes.
    Bytes,
    /// `cp.async`'s constant, and behind it the source's size.
    CopySize,
    /// A label or other name, no register.
    Label,
}

/// From which words width, elements and bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    None,
    /// Computing: the last type.
    Typed,
    /// Converting: the first type.
    First,
    /// Plain memory: the last type and `.vN`.
    Memory,
    /// `ldmatrix`, `stmatrix`: `.xN` matrices.
    Matrix,
    /// `wmma.load`, `wmma.store`: the shape and which matrix it is.
    Fragment,
    /// `tcgen05.ld`, `tcgen05.st`: the shape and `.xN`.
    TensorMemory,
    /// `tcgen05.cp`: the shape.
    TensorCopy,
    /// Multiply-adds by the shape, of a warp; the width is that of the factors.
    Shape,
    /// The same of four warps.
    WarpgroupShape,
}

/// The type of the first operand written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    /// None, or not told by the text.
    None,
    /// The last type.
    Last,
    /// The first type.
    First,
    /// This one.
    Is(&'static str),
    /// Twice as wide if `.wide` is among the modifiers, else the last type.
    MaybeWide,
}

/// What some modifiers together need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Also {
    /// `.v4.b64`: all of them.
    pub(super) words: &'static str,
    pub(super) needs: Needs,
}

pub(super) const BITS: u8 = TypeKind::Bits as u8;
pub(super) const INTEGER: u8 = TypeKind::Unsigned as u8 | TypeKind::Signed as u8;
pub(super) const FLOAT: u8 = TypeKind::Float as u8;
pub(super) const HALF: u8 = TypeKind::Half as u8;

pub(super) const D_A: &[Role] = &[Role::Out, Role::In];
pub(super) const D_A_B: &[Role] = &[Role::Out, Role::In, Role::In];
pub(super) const D_A_B_C: &[Role] = &[Role::Out, Role::In, Role::In, Role::In];

/// `sm_90a`, `sm_100f`: the architecture alone, or a family.
pub(super) const fn arch(number: u16, suffix: char) -> Arch {
    Arch { number, suffix: Some(suffix) }
}

/// The fifth generation of tensor cores. `sm_101` was renamed `sm_110` in PTX 9.0.
pub(super) const TENSOR_CORES: Targets = Targets::Listed(&[arch(100, 'f'), arch(101, 'f'), arch(110, 'f')]);
/// What the families of data-centre and consumer Blackwell share.
pub(super) const BLACKWELL: Targets =
    Targets::Listed(&[arch(100, 'f'), arch(101, 'f'), arch(110, 'f'), arch(120, 'f')]);
/// What looks into tensor maps.
pub(super) const TENSOR_MAPS: Targets =
    Targets::Listed(&[arch(90, 'a'), arch(100, 'f'), arch(101, 'f'), arch(110, 'f'), arch(120, 'f')]);
/// Matrix operations with scales or formats below 8 bits.
pub(super) const CONSUMER: Targets = Targets::Listed(&[arch(120, 'f')]);
/// Warpgroups.
pub(super) const HOPPER: Targets = Targets::Listed(&[arch(90, 'a')]);

pub(super) const fn row(
    name: &'static str,
    class: Class,
    section: &'static str,
    roles: &'static [Role],
) -> Row {
    Row {
        name,
        class,
        section,
        roles,
        types: 0,
        count: 0,
        needs: Needs { version: (1, 0), target: Targets::From(10) },
        also: &[],
        size: Size::None,
        out: Out::None,
        space: None,
        other_space: None,
        completes: Completion::Here,
        awaits: None,
        traits: Traits::NONE,
        leaves: false,
    }
}

/// An instruction that computes: a width, and a result of the type named last.
pub(super) const fn computes(
    name: &'static str,
    class: Class,
    section: &'static str,
    roles: &'static [Role],
) -> Row {
    row(name, class, section, roles).size(Size::Typed).out(Out::Last)
}

/// `words` need this version and target.
pub(super) const fn also(words: &'static str, major: u16, minor: u16, target: u16) -> Also {
    Also { words, needs: Needs { version: (major, minor), target: Targets::From(target) } }
}

/// `words` need this version and one of these targets.
pub(super) const fn only(words: &'static str, major: u16, minor: u16, target: Targets) -> Also {
    Also { words, needs: Needs { version: (major, minor), target } }
}

impl Row {
    pub(super) const fn since(mut self, major: u16, minor: u16) -> Row {
        self.needs.version = (major, minor);
        self
    }

    pub(super) const fn on(mut self, target: u16) -> Row {
        self.needs.target = Targets::From(target);
        self
    }

    pub(super) const fn only_on(mut self, target: Targets) -> Row {
        self.needs.target = target;
        self
    }

    pub(super) const fn typed(mut self, types: u8) -> Row {
        self.types = types;
        self
    }

    /// Of the forms that differ in the number of their operands, the one with so many.
    pub(super) const fn operands(mut self, count: usize) -> Row {
        self.count = count;
        self
    }

    pub(super) const fn also(mut self, also: &'static [&'static [Also]]) -> Row {
        self.also = also;
        self
    }

    pub(super) const fn size(mut self, size: Size) -> Row {
        self.size = size;
        self
    }

    pub(super) const fn out(mut self, out: Out) -> Row {
        self.out = out;
        self
    }

    pub(super) const fn space(mut self, space: Space) -> Row {
        self.space = Some(space);
        self
    }

    pub(super) const fn other_space(mut self, space: Space) -> Row {
        self.other_space = Some(space);
        self
    }

    pub(super) const fn completes(mut self, by: Completion) -> Row {
        self.completes = by;
        self
    }

    pub(super) const fn awaits(mut self, what: Completion) -> Row {
        self.awaits = Some(what);
        self
    }

    pub(super) const fn is(mut self, one: Trait) -> Row {
        self.traits = self.traits.with(one);
        self
    }

    pub(super) const fn leaves(mut self) -> Row {
        self.leaves = true;
        self
    }
}
