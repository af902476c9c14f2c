//! What instructions do, as the interpreter decoded them: the other half of its counts.
//!
//! ```
//! use nt_vgpu::{Family, Program, Space};
//! let text = ".version 8.5\n.target sm_90\n.address_size 64
//! .entry k(.param .u64 p) {
//!     .reg .b32 %r<3>; .reg .b64 %rd<3>;
//!     ld.param.u64 %rd1, [p]; ld.v2.u32 {%r1, %r2}, [%rd1]; cvt.u64.u32 %rd2, %r1; ret;
//! }";
//! let (module, mut found) = nt_ptx::parse(text);
//! let info = nt_ptx::resolve(&module, &mut found);
//! let program = Program::load(&module, &info).unwrap();
//! let [param, generic, convert, ..] = program.operations() else { unreachable!() };
//! assert_eq!((param.family, param.space), (Family::Load, Some(Space::Param)));
//! assert_eq!((generic.elements, generic.space), (2, None));
//! assert_eq!((convert.family, convert.types[0].word), (Family::Convert, "u64"));
//! ```
//!
//! A family is the code that executes an instruction, not a word of a table: what loads memory here is a load. So it can
//! judge who sorts instructions by their text.

use crate::code::Op;
use crate::exec::barrier::Barrier;
use crate::exec::spaces::AddressSpace;
use crate::stats::Space;
use crate::types::Type;

/// Which code executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Reads memory into registers.
    Load,
    /// Writes registers to memory.
    Store,
    /// Changes memory, and gives what was there.
    Atomic,
    /// Changes memory, and gives nothing.
    Reduce,
    /// Copies a few bytes of memory, a lane at a time.
    Copy,
    /// Copies a run of bytes.
    BulkCopy,
    /// Does nothing here, and fetches ahead elsewhere.
    Prefetch,
    /// Multiplies matrices.
    Matrix,
    /// Meets others at a barrier.
    Barrier(Barriers),
    /// Does something to a barrier that lies in memory, but for waiting.
    Mbarrier(Mbarriers),
    /// Ends a group of copies.
    Commit,
    /// Waits for copies, a barrier in memory, or another grid.
    Wait,
    /// Orders memory.
    Fence,
    /// Lets others go first.
    Pause,
    /// Goes elsewhere.
    Branch,
    /// Goes elsewhere by an index.
    Table,
    /// Calls a function.
    Call,
    /// Leaves the function.
    Return,
    /// Ends the lane.
    Exit,
    /// Ends the launch.
    Trap,
    /// Moves values from lane to lane.
    Shuffle,
    /// Asks all lanes.
    Vote,
    /// Computes what the special function units do.
    Special,
    /// Makes another type of a value, or of an address.
    Convert,
    /// Computes with integers.
    Integer,
    /// Computes with floating-point numbers.
    Float,
    /// Computes with bits.
    Logic,
    /// Compares, or selects.
    Compare,
    /// Moves values.
    Move,
    /// None of these.
    Other,
    /// What is not executed.
    Missing,
}

/// What is done at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Barriers {
    /// Whose it is.
    pub of: Group,
    /// Do lanes go on only when all have come?
    pub waits: bool,
}

/// Who meets at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Lanes of a warp.
    Warp,
    /// Threads of a block.
    Block,
    /// Threads of a cluster.
    Cluster,
}

/// What is done to a barrier in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mbarriers {
    /// Is it made?
    pub init: bool,
    /// Are bytes announced to it?
    pub expect: bool,
    /// Does the lane arrive at it?
    pub arrive: bool,
}

/// A type that an instruction is executed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// One number: `f16` of `.f16x2`.
    pub word: &'static str,
    /// Its bits.
    pub bits: u32,
    /// How many are packed together.
    pub packed: u32,
}

/// What one instruction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Which code executes it.
    pub family: Family,
    /// The types that its decoding asked for, in the order of the text.
    pub types: Box<[Element]>,
    /// How many elements of the last type a lane moves.
    pub elements: u32,
    /// Where it accesses memory, the destination of a copy; `None` where that is asked anew for each lane, and where it
    /// accesses none.
    pub space: Option<Space>,
    /// Where a copy reads.
    pub source: Option<Space>,
    /// Is it an access to matrices, by a whole warp?
    pub is_matrix: bool,
    /// Where it may go on, other than behind it: indices of [`crate::Program::places`].
    pub targets: Box<[u32]>,
    /// The function that it calls, as an index into the module's.
    pub callee: Option<usize>,
    /// Has it a guard?
    pub is_guarded: bool,
}

impl Type {
    fn element(self) -> Element {
        let (word, bits, packed) = match self {
            Type::Bits(8) => ("b8", 8, 1),
            Type::Bits(16) => ("b16", 16, 1),
            Type::Bits(32) => ("b32", 32, 1),
            Type::Bits(bits) => ("b64", bits, 1),
            Type::Unsigned(8) => ("u8", 8, 1),
            Type::Unsigned(16) => ("u16", 16, 1),
            Type::Unsigned(32) => ("u32", 32, 1),
            Type::Unsigned(bits) => ("u64", bits, 1),
            Type::Signed(8) => ("s8", 8, 1),
            Type::Signed(16) => ("s16", 16, 1),
            Type::Signed(32) => ("s32", 32, 1),
            Type::Signed(bits) => ("s64", bits, 1),
            Type::Float(16) => ("f16", 16, 1),
            Type::Float(32) => ("f32", 32, 1),
            Type::Float(bits) => ("f64", bits, 1),
            Type::Bfloat => ("bf16", 16, 1),
            Type::Tfloat => ("tf32", 32, 1),
            Type::FloatPair => ("f16", 16, 2),
            Type::BfloatPair => ("bf16", 16, 2),
            Type::SinglePair => ("f32", 32, 2),
            Type::Predicate => ("pred", 1, 1),
        };
        Element { word, bits, packed }
    }
}

impl AddressSpace {
    fn counted(self) -> Option<Space> {
        Some(match self {
            AddressSpace::Generic => return None,
            AddressSpace::Global => Space::Global,
            AddressSpace::Shared => Space::Shared,
            AddressSpace::Local => Space::Local,
            AddressSpace::Const => Space::Const,
            AddressSpace::Param | AddressSpace::Argument => Space::Param,
        })
    }
}

/// What an instruction does that was decoded to `op` by the code of `family`, with `types`.
pub(crate) fn describe(family: Family, types: &[Type], op: &Op, is_guarded: bool) -> Operation {
    let types: Box<[Element]> = types.iter().map(|ty| ty.element()).collect();
    let mut operation = Operation {
        family,
        types,
        elements: 1,
        space: None,
        source: None,
        is_matrix: false,
        targets: Box::default(),
        callee: None,
        is_guarded,
    };
    match op {
        Op::Load(load) => {
            (operation.space, operation.elements) = (load.space.counted(), load.dsts.len() as u32);
        }
        Op::Store(store) => {
            (operation.space, operation.elements) = (store.space.counted(), store.sources.len() as u32);
        }
        Op::Atomic(atomic) => {
            operation.family = if atomic.dst.is_some() { Family::Atomic } else { Family::Reduce };
            operation.space = atomic.space.counted();
        }
        Op::Copy(copy) => {
            operation.family = if copy.is_bulk { Family::BulkCopy } else { Family::Copy };
            (operation.space, operation.source) = (copy.to.0.counted(), copy.from.0.counted());
        }
        Op::Fragments(fragments) => {
            operation.family = if fragments.is_load() { Family::Load } else { Family::Store };
            (operation.space, operation.is_matrix) = (fragments.space.counted(), true);
            // Two halves a register.
            operation.elements = 2 * fragments.registers();
        }
        Op::Exchange(exchange) => operation.family = exchange.family(),
        Op::Barrier(barrier) => {
            let (of, waits) = match **barrier {
                Barrier::Block { waits, .. } => (Group::Block, waits),
                Barrier::ClusterArrive => (Group::Cluster, false),
                Barrier::ClusterWait => (Group::Cluster, true),
            };
            operation.family = Family::Barrier(Barriers { of, waits });
        }
        Op::Mbarrier(mbarrier) => {
            operation.family = mbarrier.family();
            operation.space = mbarrier.space.counted();
        }
        Op::Branch(target) => operation.targets = Box::new([*target]),
        Op::Table(_, targets) => operation.targets = targets.clone(),
        Op::Call(call) => operation.callee = call.function(),
        Op::Return => operation.family = Family::Return,
        Op::Exit => operation.family = Family::Exit,
        Op::Trap => operation.family = Family::Trap,
        Op::Missing(_) => operation.family = Family::Missing,
        _ => (),
    }
    operation
}
