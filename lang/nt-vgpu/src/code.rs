//! Decoded instructions: what the text means, looked up once.
//!
//! Arithmetic is a closure over 64-bit slots, chosen at decoding with its types and modifiers inside; everything that
//! touches memory, other lanes or control is an operation of its own, whose type lies beside its code in `exec`.

use crate::exec::asynchronous::Copy;
use crate::exec::atomic::Atomic;
use crate::exec::barrier::Barrier;
use crate::exec::compare::Compare;
use crate::exec::control::Call;
use crate::exec::integer::Carry;
use crate::exec::matrix::{Fragments, Mma};
use crate::exec::mbarrier::Mbarrier;
use crate::exec::memory::{Load, Store};
use crate::exec::moves::{Pack, Unpack};
use crate::exec::warp_ops::Exchange;
use crate::special::Special;

pub(crate) type One = Box<dyn Fn(u64) -> u64 + Send + Sync>;
pub(crate) type Two = Box<dyn Fn(u64, u64) -> u64 + Send + Sync>;
/// Few instructions have four, so that theirs come as an array.
pub(crate) type Four = Box<dyn Fn([u64; 4]) -> u64 + Send + Sync>;
pub(crate) type Three = Box<dyn Fn(u64, u64, u64) -> u64 + Send + Sync>;

/// A value that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Src {
    /// A slot of the frame.
    Slot(u32),
    /// A predicate's slot, read as its opposite.
    Not(u32),
    /// The same for all lanes.
    Immediate(u64),
    /// `%tid.x`
    Special(Special),
    /// The local address of a byte of the lane's frame.
    Frame(u32),
    /// The address of a byte of the module's global variables.
    Global(u64),
    /// The shared address of a byte behind the kernel's own shared variables.
    Dynamic(u64),
}

/// The slot that an instruction writes, and the bits that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dst {
    pub(crate) slot: u32,
    pub(crate) mask: u64,
}

/// The slots of every frame that are no registers.
pub(crate) mod frame {
    /// Where to go on in the caller, and its first slot.
    pub(crate) const LINK: u32 = 0;
    /// The caller's frame in local memory.
    pub(crate) const LOCAL: u32 = 1;
    /// What `_` is written to.
    pub(crate) const SINK: u32 = 2;
    /// The first register.
    pub(crate) const FIRST: u32 = 3;
}

/// An address operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: Src,
    pub(crate) displacement: i64,
    /// Is the base a register of 32 bits, in which the sum then wraps?
    pub(crate) is_narrow: bool,
}

/// `@%p` or `@!%p`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) slot: u32,
    pub(crate) negated: bool,
}

/// One instruction.
pub(crate) struct Instruction {
    pub(crate) guard: Option<Guard>,
    pub(crate) op: Op,
}

/// What an instruction does.
pub(crate) enum Op {
    One(One, Dst, Src),
    Two(Two, Dst, [Src; 2]),
    Three(Three, Dst, [Src; 3]),
    Four(Box<(Four, Dst, [Src; 4])>),
    Compare(Box<Compare>),
    Carry(Carry),
    Pack(Pack),
    Unpack(Unpack),
    ActiveMask(Dst),
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    Copy(Box<Copy>),
    Exchange(Box<Exchange>),
    Fragments(Box<Fragments>),
    Mma(Box<Mma>),
    Barrier(Box<Barrier>),
    Mbarrier(Box<Mbarrier>),
    /// `bra`, by the instruction it goes to.
    Branch(u32),
    /// `brx.idx`
    Table(Src, Box<[u32]>),
    Call(Box<Call>),
    Return,
    Exit,
    Trap,
    /// `nanosleep`: others first.
    Pause,
    /// Fences, hints: memory is in order here.
    Nothing,
    /// What the interpreter does not know; a fault only where it is executed.
    Missing(Box<str>),
}
