//! What is known of one instruction, as the rest of the house asks for it.
//!
//! ```text
//! @%p ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1+16];
//! class load   space global   width 32   elems 4   bytes 16   address 1   writes {0}   reads {1}   needs 1.0 sm_10
//! ```
//!
//! Operands are meant by their place in [`crate::syntax::Module::operands`]. What the text does not say is not there:
//! the space of `ld.f32` is [`Space::Generic`], the bytes of a bulk copy are an operand.
//!
//! Source: PTX ISA 9.0, chapter 9.7; the section of each instruction is [`Facts::section`].

use super::class::Class;
use super::types::Type;
use crate::version::{Arch, Pair};
use std::fmt;

/// What is known of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// What it does.
    pub class: Class,
    /// The words of its opcode by which it was found: `cp.async.bulk.tensor`.
    pub name: &'static str,
    /// The section of the manual that describes it: `9.7.9.8`.
    pub section: &'static str,
    /// The least version and target under which it may stand, its modifiers considered.
    pub needs: Needs,

    /// The type of an element of memory, or of what is computed with: the last type that the opcode names. Of packed
    /// types (`.f16x2`) it is the pair.
    pub ty: Option<Type>,
    /// The type of the first operand written, where the opcode tells: `.u64` of `mul.wide.u32`, `.pred` of `setp`.
    pub out_ty: Option<Type>,
    /// Bits of an element: 16 of `.v2.b16`, of `.f16x2` and of a matrix of `.b16`. 0 where there are none.
    pub width: u32,
    /// Elements that a lane moves or computes: 4 of `.v4.f32`, 2 of `.f16x2`, 8 of `ldmatrix.x4`. 0 with no width.
    pub elems: u32,

    /// The memory it touches; of a copy, the destination.
    pub space: Option<Space>,
    /// Of a copy, the source.
    pub other_space: Option<Space>,
    /// How much it moves.
    pub bytes: Bytes,
    /// The operand that holds the address; of a copy, that of the global side. A copy between the shared memories of
    /// two blocks has none, nor has a tensor copy, whose place is coordinates.
    pub address: Option<u8>,
    /// Of a copy, the operand with the address of the shared side; from shared to shared memory, the source's.
    pub shared_address: Option<u8>,
    /// The operand that holds the address of the mbarrier that is told of completion.
    pub mbarrier: Option<u8>,
    /// Of stores, atomics and reductions, the operands that hold what is stored, added, compared …; of tensor
    /// copies, the one with the coordinates.
    pub data: Places,
    /// Operands whose registers are written; both halves of a `p|q`, all elements of a vector.
    pub writes: Places,
    /// Operands whose registers are read: sources, addresses, and accumulators that are also written.
    pub reads: Places,

    /// What must be waited for until what it writes (registers, memory) is there.
    pub completes: Completion,
    /// What it waits for itself.
    pub awaits: Option<Completion>,
    /// Multiply-adds of one warp, where the text has the shape: m·n·k; a quarter of it for `wgmma`, which is done by
    /// four warps. Of a sparse operation, those of the dense shape that it stands for.
    pub macs: Option<u32>,
    /// May control reach the next statement? Not after a `bra`, `brx`, `ret`, `exit` or `trap` without a guard. (A
    /// `call` may be of a function that never comes back, which [`crate::flow()`] knows.)
    pub falls_through: bool,
    /// The qualifiers, of those that narrow a class, which hold for it beyond space, width and type.
    pub traits: Traits,
}

/// A state space, as the text has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// `.global`
    Global,
    /// `.shared`, `.shared::cta`: the block's own.
    Shared,
    /// `.shared::cluster`: that of any block of the cluster.
    Cluster,
    /// `.local`
    Local,
    /// `.const`
    Const,
    /// `.param`, `.param::entry`, `.param::func`
    Param,
    /// `tcgen05`'s memory.
    Tensor,
    /// Where the text does not say.
    Generic,
}

impl Space {
    /// The word of the probe language.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Cluster => "cluster",
            Space::Local => "local",
            Space::Const => "const",
            Space::Param => "param",
            Space::Tensor => "tensor",
            Space::Generic => "generic",
        }
    }

    /// All of them, in the order of the reference.
    pub const ALL: [Space; 8] = [
        Space::Global,
        Space::Shared,
        Space::Local,
        Space::Const,
        Space::Param,
        Space::Generic,
        Space::Cluster,
        Space::Tensor,
    ];
}

/// How many bytes an instruction moves: a lane's, but for bulk copies, which one lane does for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// It moves none, or its text does not say (a tensor copy's box lies in a descriptor).
    None,
    /// So many.
    Known(u32),
    /// What the operand at this place holds.
    Operand(u8),
    /// `cp.async`: `size` bytes are written, and so many of them read as operand `source` holds if there is one; it
    /// is a predicate that makes it 0, if its register is one. The size is an operand too, a constant.
    CopySize {
        /// 4, 8 or 16; `None` if the operand is no plain number.
        size: Option<u32>,
        /// Where it stands.
        operand: u8,
        /// Where the source size, or the predicate to ignore the source, stands.
        source: Option<u8>,
    },
}

/// What completes an asynchronous operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Nothing to wait for: the next instruction sees it.
    Here,
    /// `cp.async.commit_group` and `cp.async.wait_group`, `cp.async.wait_all`, or `cp.async.mbarrier.arrive`.
    CopyGroup,
    /// `cp.async.bulk.commit_group` and `cp.async.bulk.wait_group`.
    BulkGroup,
    /// The mbarrier that it names, by bytes or by arrivals.
    Mbarrier,
    /// `wgmma.commit_group` and `wgmma.wait_group`.
    MatrixGroup,
    /// `tcgen05.wait::ld`
    TensorLoad,
    /// `tcgen05.wait::st`
    TensorStore,
    /// `tcgen05.commit`, then the mbarrier that it names.
    TensorCommit,
    /// A barrier of blocks or clusters.
    Barrier,
    /// The grids before this one: `griddepcontrol.wait`.
    Grid,
}

/// The least version and the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The least `.version`.
    pub version: Pair,
    /// The targets.
    pub target: Targets,
}

/// Which targets have an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Targets {
    /// This and all later ones: 80 is `sm_80`.
    From(u16),
    /// These alone. One that ends in `f` is its family: `sm_100f` lets in `sm_100a`, `sm_103f` and `sm_103a`.
    Listed(&'static [Arch]),
}

impl Needs {
    /// May the instruction stand in a module of this version and target?
    pub fn allows(&self, version: Pair, arch: Arch) -> bool {
        version >= self.version && self.target.allows(arch)
    }
}

impl Targets {
    /// Does a target have it?
    pub fn allows(self, arch: Arch) -> bool {
        match self {
            Targets::From(least) => arch.number >= least,
            Targets::Listed(list) => list.iter().any(|listed| match listed.suffix {
                // A family is a decade: 100 and 103, 120 and 121.
                Some('f') => {
                    arch.suffix.is_some()
                        && arch.number / 10 == listed.number / 10
                        && arch.number >= listed.number
                }
                _ => *listed == arch,
            }),
        }
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Targets::From(least) => write!(f, "sm_{least}"),
            Targets::Listed(list) => {
                for (index, arch) in list.iter().enumerate() {
                    write!(f, "{}{arch}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} {}", self.version.0, self.version.1, self.target)
    }
}

/// A set of places in the list of operands. The 32nd and later ones are left out, which no instruction has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Places(u32);

impl Places {
    /// No place.
    pub const NONE: Places = Places(0);

    /// With `place` among them.
    #[must_use]
    pub const fn with(self, place: usize) -> Places {
        if place < 32 { Places(self.0 | 1 << place) } else { self }
    }

    /// Without `place`.
    #[must_use]
    pub const fn without(self, place: usize) -> Places {
        if place < 32 { Places(self.0 & !(1 << place)) } else { self }
    }

    /// Is `place` among them?
    pub const fn has(self, place: usize) -> bool {
        place < 32 && self.0 & 1 << place != 0
    }

    /// Are there none?
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The first of them.
    pub fn first(self) -> Option<usize> {
        self.iter().next()
    }

    /// The places, rising.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |&place| self.has(place))
    }
}

/// A set of [`Trait`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits(u16);

impl Traits {
    /// None of them.
    pub const NONE: Traits = Traits(0);

    /// With one more.
    #[must_use]
    pub const fn with(self, one: Trait) -> Traits {
        Traits(self.0 | 1 << one as u16)
    }

    /// Is it among them?
    pub const fn has(self, one: Trait) -> bool {
        self.0 & 1 << one as u16 != 0
    }
}

/// What narrows a class beyond space, width, vector and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trait {
    /// Loads and stores of matrices by a whole warp.
    Matrix,
    /// A barrier of the block.
    Block,
    /// A barrier of the warp.
    Warp,
    /// A barrier of the cluster.
    Cluster,
    /// It arrives, at a barrier or mbarrier.
    Arrive,
    /// It waits at a barrier.
    Sync,
    /// It makes an mbarrier.
    Init,
    /// It announces bytes to an mbarrier.
    Expect,
    /// A branch under a guard.
    Conditional,
    /// A branch (or call) that all lanes take alike, as `.uni` promises.
    Uniform,
}

impl Trait {
    /// The word of the probe language.
    pub const fn name(self) -> &'static str {
        match self {
            Trait::Matrix => "matrix",
            Trait::Block => "block",
            Trait::Warp => "warp",
            Trait::Cluster => "cluster",
            Trait::Arrive => "arrive",
            Trait::Sync => "sync",
            Trait::Init => "init",
            Trait::Expect => "expect",
            Trait::Conditional => "conditional",
            Trait::Uniform => "uniform",
        }
    }

    /// All of them.
    pub const ALL: [Trait; 10] = [
        Trait::Matrix,
        Trait::Block,
        Trait::Warp,
        Trait::Cluster,
        Trait::Arrive,
        Trait::Sync,
        Trait::Init,
        Trait::Expect,
        Trait::Conditional,
        Trait::Uniform,
    ];
}

impl Facts {
    /// The operands whose values a probe may have as `in1`, `in2` …, in this order: what a store or an atomic is
    /// given, a tensor copy's coordinates; of what computes, its sources. Of a matrix operation that completes later, not
    /// the accumulators, which others before it may still be writing; they come first.
    pub fn inputs(&self) -> Places {
        match self.class {
            Class::Store | Class::Atomic | Class::Reduce | Class::TensorCopy => self.data,
            Class::Mma if self.completes != Completion::Here => self.reads.without(0),
            _ => self.reads,
        }
    }

    /// Does the instruction have an operand of the probe language, such as `addr`, `bytes`, `out` or `in`? False for a
    /// word that is none, and for what its class lacks.
    ///
    /// What completes later has no `out`: its registers hold nothing before the wait.
    pub fn offers(&self, operand: &str) -> bool {
        if operand == "pred" {
            return true;
        }
        let is_there = match operand {
            "addr" => self.address.is_some(),
            "saddr" => self.shared_address.is_some(),
            "bytes" => self.bytes != Bytes::None,
            "width" | "elems" => self.width != 0,
            "space" => self.space.is_some(),
            "out" => !self.writes.is_empty() && self.completes == Completion::Here,
            "in" => !self.inputs().is_empty(),
            "old" => {
                matches!(self.space, Some(Space::Global | Space::Shared | Space::Generic)) && self.width != 0
            }
            "macs" => self.macs.is_some(),
            "taken" | "callee" => true,
            "done" => self.awaits.is_some(),
            _ => false,
        };
        is_there && self.class.info().operands.contains(&operand)
    }

    /// Does a word of the probe language that narrows a class hold for this instruction? `None` for what its text
    /// alone does not tell (`backward`) and for a word that is none of these.
    ///
    /// A space holds as the text has it, on either side of a copy: whether a generic address is global is for others
    /// to find out.
    pub fn qualifies(&self, word: &str) -> Option<bool> {
        if let Some(space) = Space::ALL.into_iter().find(|space| space.name() == word) {
            let is_cluster_barrier = word == "cluster" && self.traits.has(Trait::Cluster);
            return Some(self.space == Some(space) || self.other_space == Some(space) || is_cluster_barrier);
        }
        if let Some(one) = Trait::ALL.into_iter().find(|one| one.name() == word) {
            return Some(self.traits.has(one));
        }
        if let Some(count) = word.strip_prefix('v').and_then(|count| count.parse().ok()) {
            return matches!(count, 2 | 4 | 8).then_some(self.elems == count);
        }
        if let Some(bits) = word.strip_prefix('b').and_then(|bits| bits.parse().ok()) {
            return matches!(bits, 8 | 16 | 32 | 64 | 128).then_some(self.width == bits);
        }
        Type::named(word)?;
        Some([self.ty, self.out_ty].into_iter().flatten().any(|ty| ty.element().name == word))
    }
}
