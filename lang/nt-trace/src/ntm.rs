//! The manifest `.ntm`: what was woven into which kernels, and how to launch them and to read what they leave.
//!
//! JSON of the structs below, keys in their order, two spaces deep, a line feed at the end. `nt-inject` writes one
//! beside the woven text; `nt-run` puts a manifest of the one kernel ([`Manifest::entry`]) into a trace's kernel
//! frame, so that a trace needs nothing else to be read.
//!
//! ```text
//! { "schema": 4, "tool": "0.1.0", "probe": { "name": "block_sched", "hash": "9f…" }, "original": "51…",
//!   "target": "sm_90", "woven_bytes": 4711, "kernels": [ { "name": "fill_blocks", … } ], "refused": [] }
//! ```
//!
//! Promises: the same manifest gives the same bytes; one that was read has been checked ([`Manifest::parse`]), so a
//! field lies inside its record and an index names something.

mod check;
mod convert;
mod slots;
mod stream;

pub use slots::{Policy, Slots};
pub use stream::{Assumption, Code, Form, Lanes, Linear, Stream, Term, Told};

use serde::{Deserialize, Serialize};

/// Raised with every change of the structs here that an older reader would misread.
pub const SCHEMA: u32 = 4;

/// A whole manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the tool that wove.
    pub tool: String,
    /// The probe that was woven.
    pub probe: Probe,
    /// BLAKE3 of the image as it was before, in hex.
    pub original: String,
    /// What the text is for, as PTX has it: `sm_90`.
    pub target: String,
    /// Bytes of the woven text.
    pub woven_bytes: u64,
    /// The kernels that have probes now, in the order of the text.
    pub kernels: Vec<Kernel>,
    /// The kernels that were chosen and could not be probed, in the order of the text.
    pub refused: Vec<Refused>,
}

/// Which probe it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The program's name: a shipped one, or the file's stem.
    pub name: String,
    /// BLAKE3 of the compiled probe (`.ntp`), in hex.
    pub hash: String,
}

/// A kernel that stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its mangled name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// A kernel with probes in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kernel {
    /// Its mangled name.
    pub name: String,
    /// The parameters of the original. The woven kernel has one more, last: the context block.
    pub params: Vec<Param>,
    /// The context block.
    pub context: Context,
    /// One a map of the probe, in its order: a data frame's `map` counts these, and then the tables.
    pub maps: Vec<Map>,
    /// One a table of the probe, in its order.
    pub tables: Vec<Table>,
    /// Variables that the woven kernel shares with the original's module. A module that was woven as a whole has none.
    pub pins: Vec<Pin>,
    /// Variables of constant memory that it has copies of.
    pub constants: Vec<Constant>,
    /// Where something was put in.
    pub sites: Vec<Site>,
    /// Its calls of what is not probed, where the probe might have had sites: what it counts is a lower bound, unless only
    /// the driver's functions are called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<Uncovered>,
    /// What the weaver has relied on of a launch, by name: a launch that is otherwise must not be of this kernel.
    pub assumes: Vec<String>,
    /// Up to where the records are exact.
    pub limits: Limits,
    /// What the kernel took before, if an assembler was asked.
    pub before: Option<Resources>,
    /// What it takes with probes in it.
    pub after: Option<Resources>,
}

/// Calls into what is not probed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncovered {
    /// The function that holds the first of them, or the kernel.
    pub function: String,
    /// Where they go.
    pub kind: Callee,
    /// The functions, by name: those that a pointer may lead to, if that is known.
    pub names: Vec<String>,
    /// How many there are in the text.
    pub calls: u32,
    /// Line of the first in the assembly, from 1.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
}

/// What is called and not probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Callee {
    /// Whatever a pointer leads to.
    Pointer,
    /// A function of another module.
    Elsewhere,
    /// A function that the driver brings along.
    Driver,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Bytes into parameter space.
    pub offset: u32,
    /// Bytes it takes.
    pub size: u32,
}

/// The parameter that is appended: a block of words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Context {
    /// Bytes; a multiple of 8.
    pub size: u32,
    /// What stands in it; words that no slot names are zero.
    pub slots: Vec<ContextSlot>,
}

/// A word of the context block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSlot {
    /// Bytes into the block; a multiple of the size.
    pub offset: u32,
    /// Bytes it takes: 4 or 8.
    pub size: u32,
    /// What to put there.
    #[serde(flatten)]
    pub fill: Fill,
}

/// What a word of the context block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fill", rename_all = "lowercase")]
pub enum Fill {
    /// Always 0: the woven text relies on it.
    Zero,
    /// The device address of this launch's part of a map, or of a persistent table.
    Base {
        /// Index into [`Kernel::maps`] and, counted on behind them, [`Kernel::tables`].
        map: u32,
    },
    /// How many units that part has room for; of an array with a capacity, records; of a stream, slots.
    Capacity {
        /// As of [`Fill::Base`].
        map: u32,
    },
    /// The device address of a word of 8 bytes that counts the chunks that were claimed of a stream.
    Cursor {
        /// Index into [`Kernel::maps`].
        map: u32,
    },
    /// The device address of words of 4 bytes, one a unit, that count the events that a stream had no room for.
    Drops {
        /// As of [`Fill::Cursor`].
        map: u32,
    },
    /// How many units the launch has.
    Units {
        /// As of [`Fill::Cursor`].
        map: u32,
    },
    /// The device address of an array's counts: of a map that has [`Slots`], 8 bytes a warp or 4 a thread.
    Counts {
        /// As of [`Fill::Cursor`].
        map: u32,
    },
    /// The number of the launch, counted a process from 0.
    Launch,
}

/// Where records of one kind lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// Its name in the probe.
    pub name: String,
    /// Whose slot a record is.
    pub unit: Unit,
    /// Structure of arrays? Then field `i` of record `n` is at `offset·capacity + n·size`; else at `n·stride + offset`.
    pub columnar: bool,
    /// Bytes a record takes.
    pub stride: u32,
    /// What is stored.
    pub fields: Vec<Field>,
    /// How a reader knows that a record was written.
    pub presence: Presence,
    /// What a reader shows.
    pub columns: Vec<Column>,
    /// Of a stream, how its events lie.
    pub stream: Option<Stream>,
    /// Of an array with a capacity, how many records a unit has. Where this and `stream` are `None`, it has one, its last.
    pub slots: Option<Slots>,
}

/// Where an aggregation's cells lie: those of unit `n` from `n·stride` on, 8 bytes each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its name in the probe, without the `@`; may be empty.
    pub name: String,
    /// What its cells are.
    pub func: Func,
    /// What a cell holds: `u64` or `s64`.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Who has cells of its own. Multiprocessors' are copies, which a reader adds up, unless [`KeyKind::Cu`] is a key.
    pub unit: Unit,
    /// Does it outlive launches? Its data frames name none, then.
    pub persistent: bool,
    /// Bytes a unit takes, a multiple of 8.
    pub stride: u32,
    /// In the order of the probe.
    pub keys: Vec<Key>,
    /// The cells of a unit: for each, a text for every key that the site tells, in their order.
    pub cells: Vec<Vec<String>>,
}

/// How what is aggregated comes together in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Func {
    /// How often.
    Count,
    /// The sum of the values, modulo 2⁶⁴.
    Sum,
    /// How many lanes of a warp left apart from others, by which the last ones were known: for no reader.
    Gone,
}

/// A key of an aggregation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// What tells it.
    pub kind: KeyKind,
    /// Its word in the language: `op`, `block`.
    pub name: String,
}

/// What tells a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// The site: a text of [`Table::cells`].
    Site,
    /// The index of the unit, which is a thread, a warp or a block.
    Unit,
    /// The index of the unit, which is a multiprocessor.
    Cu,
}

/// A variable that the woven kernel reaches through a table of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Its name in the original.
    pub symbol: String,
    /// Which entry of the table its address goes to.
    pub index: u32,
}

/// A variable of constant memory, copied from the original's before each launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    /// Its name, in both modules.
    pub symbol: String,
    /// Bytes it takes.
    pub size: u64,
}

/// Whose slot a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A thread: grid × block of them.
    Thread,
    /// A warp: grid × ⌈threads a block / 32⌉.
    Warp,
    /// A thread block.
    Block,
    /// A multiprocessor of the device: tables alone have them.
    Sm,
}

/// What is stored in memory, little-endian.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name, unique in the map.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// See [`Map::columnar`].
    pub offset: u32,
    /// Bytes it takes: its type's size.
    pub size: u32,
}

/// Types of fields and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// Unsigned, 8 bits.
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
    /// A byte, 0 or 1.
    Bool,
    /// An address, 64 bits, shown in hex.
    Ptr,
}

/// How a reader knows that a record was written. Memory is handed out cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// This bit of this field is set in every record; the field's value is what it is without the bit.
    Bit {
        /// Index into [`Map::fields`].
        field: u32,
        /// Which, from 0.
        bit: u32,
    },
    /// A byte of its own is 1. It lies as a field of size 1 would.
    Byte {
        /// See [`Field::offset`].
        offset: u32,
    },
    /// Of events with fields a lane: the mask of the lanes, 4 bytes from the eighth on, is never 0.
    Mask,
}

/// What a reader shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, as the probe declared it.
    pub name: String,
    /// Its declared type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// How to get it from what is stored.
    pub source: Source,
}

/// Where a column's value comes from; indices into [`Map::fields`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The field, widened to the column's type.
    Field(u32),
    /// The first field less the second, both widened to the column's type first, wrapping.
    Difference(u32, u32),
}

/// A place where something was put in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its number, as in the woven text's `/*nt:N{*/`.
    pub id: u32,
    /// The tracepoint, as the probe language has it: `kernel:entry`, `kernel:exit`.
    pub kind: String,
    /// The instruction it is at, with its modifiers: `ret`; empty where there is none.
    pub opcode: String,
    /// Line in the original text, from 1.
    pub line: u32,
    /// Column in the original text, in characters, from 1.
    pub column: u32,
    /// The source file that the text names for it.
    pub file: Option<String>,
    /// The line in that file.
    pub source_line: Option<u32>,
}

/// Up to where the records of a kernel are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Differences of clocks are exact in launches shorter than this many SM cycles; `None` where all are.
    pub launch_cycles: Option<u64>,
}

/// What an assembler says that a kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of spill stores.
    pub spill_stores: u32,
    /// Bytes of spill loads.
    pub spill_loads: u32,
    /// Bytes of static shared memory a block.
    pub shared: u32,
    /// Bytes of stack frame a thread.
    pub stack: u32,
}

/// Why bytes are no manifest that this version reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No JSON, or not of this shape: `{"schema": 4`.
    #[error("not a manifest: {0}")]
    Json(String),
    /// Another version wrote it: `{"schema": 99, …}`.
    #[error("the manifest has schema {0}, this version reads {SCHEMA}: weave again")]
    Schema(u32),
    /// It contradicts itself: a field of 8 bytes at offset 12 of a record of 16.
    #[error("the manifest contradicts itself: {0}")]
    Unsound(String),
}

impl Manifest {
    /// Reads and checks one.
    ///
    /// # Errors
    /// It is no JSON of this shape, of another schema, or an offset or index in it leads nowhere.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, Error> {
        /// The schema is read alone first: another one may not have the shape of this one.
        #[derive(Deserialize)]
        struct Schema {
            schema: u32,
        }
        let json = |error: serde_json::Error| Error::Json(error.to_string());
        let Schema { schema } = serde_json::from_slice(bytes).map_err(json)?;
        if schema != SCHEMA {
            return Err(Error::Schema(schema));
        }
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(json)?;
        manifest.kernels.iter().try_for_each(check::kernel).map_err(Error::Unsound)?;
        Ok(manifest)
    }

    /// Its text: JSON, indented, with a line feed at the end.
    pub fn to_json(&self) -> String {
        // Structs of numbers and strings always serialize; a map with keys that are no strings would not.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The manifest of `kernel` alone on one line, as it stands in a kernel frame; `None` if it is not among them.
    pub fn entry(&self, kernel: &str) -> Option<Vec<u8>> {
        let kernel = self.kernels.iter().find(|k| k.name == kernel)?;
        let alone = Manifest { kernels: vec![kernel.clone()], refused: Vec::new(), ..self.clone_head() };
        serde_json::to_vec(&alone).ok()
    }

    /// All but the kernels, which may be thousands.
    fn clone_head(&self) -> Manifest {
        Manifest {
            schema: self.schema,
            tool: self.tool.clone(),
            probe: self.probe.clone(),
            original: self.original.clone(),
            target: self.target.clone(),
            woven_bytes: self.woven_bytes,
            kernels: Vec::new(),
            refused: Vec::new(),
        }
    }
}
