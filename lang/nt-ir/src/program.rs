//! The probe IR: what a checked probe program means, before it meets a kernel.
//!
//! Typed three-address code over unlimited values, no control flow, an optional predicate on each effect; eBPF in
//! spirit. A program is a list of states (registers of each thread that live from probe to probe), maps and probes;
//! a probe is a list of tracepoints and the straight-line code to run there.
//!
//! ```text
//! program "block_sched"
//! map block_sched: array<warp> { start: u64, elapsed: u64, cu: u32 }
//! state start: u64 = 0
//! probe warp kernel:entry {
//!   %0: u64 uniform = clock
//!   state start = %0
//! }
//! probe warp kernel:exit {
//!   %0: u64 uniform = state start
//!   %1: u64 uniform = clock
//!   %2: u64 uniform = sub %1, %0
//!   %3: u32 uniform = cu
//!   save block_sched(start = %0, elapsed = %2, cu = %3)
//! }
//! ```
//!
//! Semantics. All active lanes of the group at a site compute; in a `warp` probe the *effects* (saves) are those of
//! one elected lane, while `state` assignments are every active lane's own. Integers wrap in two's complement; a
//! shift by the width or more gives 0 (signed right shift: the sign). A guarded instruction whose guard is false has
//! no effect; its operands were computed all the same.

pub use crate::map::{Column, Field, MOST_RECORDS, Map, MapKind, Policy, Source, UnitRoom};
pub use crate::point::{Placement, Tracepoint};
pub use crate::site::{Operand, Part, SiteKey, SiteValue};
pub use crate::table::{Func, Key, Table};
use nt_diag::Span;

/// A whole probe program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// What messages and manifests call it: a shipped name or the file's stem.
    pub name: String,
    /// Per-thread registers.
    pub states: Vec<State>,
    /// Where records go.
    pub maps: Vec<Map>,
    /// Where sums go.
    pub tables: Vec<Table>,
    /// What runs where, in program order.
    pub probes: Vec<Probe>,
    /// Up to where the program is exact; a pass that relies on a limit states it here.
    pub limits: Vec<Limit>,
    /// What the program says of its own run.
    pub config: Config,
}

/// What `config { … }` says of the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Config {
    /// Bytes of a stream, for each launch and each map that is one.
    pub stream: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config { stream: 64 << 20 }
    }
}

/// A condition under which results are exact. The manifest states it, readers check it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    /// The launch lasts less than this many cycles of the SM's clock.
    LaunchCycles(u64),
}

/// A register of each thread, alive from probe to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Its name in the program.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its value at kernel entry, as the type's bits.
    pub init: u64,
    /// Where it was declared.
    pub span: Span,
}

/// Index into [`Program::states`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// Index into [`Program::maps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MapId(pub u32);

/// Index into [`Program::tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// Index into [`Probe::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// Who runs a probe, and whose slot a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Every active lane by itself.
    Thread,
    /// The lanes of one warp that come to the site together; effects by an elected one.
    Warp,
    /// A thread block.
    Block,
}

/// Types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// Unsigned, 8 bits. Arithmetic on narrow types is done in 32 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 8 bits.
    S8,
    /// Signed, 16 bits.
    S16,
    /// Signed, 32 bits.
    S32,
    /// Signed, 64 bits.
    S64,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// A predicate.
    Bool,
    /// An address: 64 bits, shown in hex.
    Ptr,
}

/// One probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Who runs it.
    pub unit: Unit,
    /// Where. A site that matches several of them fires once, as the first of those says.
    pub points: Vec<Tracepoint>,
    /// A `bool` value of this probe, its `/predicate/`: lanes in which it is false are not active, so the elected lane
    /// is the lowest in which it holds, and `active` is the mask of those in which it holds. The guards of effects
    /// and state assignments already include it.
    pub predicate: Option<ValueId>,
    /// The type and uniformity of every value, by [`ValueId`].
    pub values: Vec<Value>,
    /// The code, in order. Each value is defined once, before its uses.
    pub code: Vec<Inst>,
    /// Where its tracepoints stand, for messages.
    pub span: Span,
}

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// The same in every lane of a group? (A state is uniform in type even where lanes of a diverged warp differ.)
    pub uniform: bool,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inst {
    /// The value it defines; `None` for effects.
    pub result: Option<ValueId>,
    /// What it does.
    pub op: Op,
    /// A `bool` value under which an effect or state assignment happens. Pure instructions have none.
    pub guard: Option<ValueId>,
    /// The program text it comes from.
    pub span: Span,
}

/// What an instruction does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Op {
    /// A constant, as the bits of the result's type (sign-extended to 64 for signed types; 0 or 1 for `bool`).
    Const(u64),
    /// A value that the machine or the launch gives.
    Builtin(Builtin),
    /// The state's value now.
    ReadState(StateId),
    /// `-x`, `!x` (bool), `~x`.
    Unary(UnaryOp, ValueId),
    /// Both operands have the result's type, except the amount of a shift, which is `u32`.
    Binary(BinaryOp, ValueId, ValueId),
    /// Both operands have one type; the result is `bool`.
    Compare(CompareOp, ValueId, ValueId),
    /// To the result's type: cut, or extended by the source's sign; `bool` gives 0 or 1.
    Cast(ValueId),
    /// The same bits as another type of the same width.
    Bits(ValueId),
    /// `c ? a : b`
    Select(ValueId, ValueId, ValueId),
    /// A number known of the site; a constant after [`crate::close()`].
    Site(SiteValue),
    /// A part of the instruction at the site. One whose type is the instruction's has it already: [`crate::close()`] refuses
    /// sites where that is another.
    Operand(Operand),
    /// An operand whose type is the instruction's, converted to the result's: `out as u32`. A cast after [`crate::close()`].
    CastOperand(Operand),
    /// The bits of such an operand as a type of the same width: `out as bits f32`.
    BitsOperand(Operand),
    /// Two such operands, in the narrowest type that holds both: `old == in1`.
    CompareOperands(CompareOp, Operand, Operand),
    /// Does the instruction have this operand? A constant after [`crate::close()`].
    Has(Part),
    /// Does what the site is called match a glob? A constant after [`crate::close()`].
    Match {
        /// What is held against the glob.
        what: SiteKey,
        /// `*` is anything, `?` one character.
        glob: String,
    },
    /// [`Builtin::Clock`] or [`Builtin::ClockLow`], read once the value is there: `clock(x)`.
    ClockAfter(Builtin, ValueId),
    /// The same for an operand whose type is the instruction's: `clock(out)`. [`Op::ClockAfter`] after [`crate::close()`].
    ClockAfterOperand(Builtin, Operand),
    /// Effect: the state's new value in every active lane.
    WriteState(StateId, ValueId),
    /// Effect: a record of a map, fields by index into [`Map::fields`] (all of them, ascending).
    Save {
        /// The map.
        map: MapId,
        /// A value for each field.
        values: Vec<(u32, ValueId)>,
    },
    /// Effect: adds to the table's cell for this site and unit; in a warp probe once, by the elected lane.
    Aggregate {
        /// The table.
        table: TableId,
        /// What is added, of the table's type; a count has none, and adds 1.
        value: Option<ValueId>,
    },
}

/// One operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// `-x`
    Neg,
    /// `!x` of a bool, `~x` of an integer.
    Not,
}

/// Two operands of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`, low half
    Mul,
    /// `/`; x/0 is all ones
    Div,
    /// `%`; x%0 is x
    Rem,
    /// `&` of integers, `&&` of bools
    And,
    /// `|`, `||`
    Or,
    /// `^`
    Xor,
    /// `<<`
    Shl,
    /// `>>`, by the sign of the type
    Shr,
    /// The smaller
    Min,
    /// The larger
    Max,
}

/// Comparisons, by the sign of the operands' type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompareOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// Values that machine and launch give (language reference, Builtins).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Builtin {
    /// `clock()`: u64 cycles of this SM.
    Clock,
    /// `clock32()`: its low half.
    ClockLow,
    /// `time()`: u64 ns, one clock for the device.
    Time,
    /// `cu`: u32, the SM.
    Cu,
    /// `lane`: u32.
    Lane,
    /// `warpsize`: u32.
    WarpSize,
    /// `active()`: u64 mask of the lanes that run the body here.
    Active,
    /// `thread`: u64, linear over the launch.
    Thread,
    /// `block`: u64, linear over the launch.
    Block,
    /// `warp`: u64, block × warps a block + warp in block.
    Warp,
    /// `wid`: u32, warp in its block.
    WarpInBlock,
    /// `tid.x` and its kin, u32: axis 0 is x.
    Tid(u8),
    /// `ntid.x`
    Ntid(u8),
    /// `ctaid.x`
    Ctaid(u8),
    /// `nctaid.x`
    Nctaid(u8),
    /// `cluster.id`: u32, linear over the launch; PTX 7.8, sm_90.
    ClusterId,
    /// `cluster.rank`: u32, of this block in its cluster; PTX 7.8, sm_90.
    ClusterRank,
    /// `launch`: u64, counted a process.
    Launch,
}
