//! The classes of instructions that probes name, as data: what they are, what narrows them, what they offer a body.
//!
//! ```text
//! inst:load.global.v4 { @[line] = sum(bytes) }       class `load`, qualifiers `global` and `v4`, operand `bytes`
//! ```
//!
//! The words are the probe language's, so that its compiler and this table can be compared word by word. Qualifiers
//! that only another vendor has (`scalar`) are not here.
//!
//! Source: the language reference, sections Tracepoints and Operands.

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is described once, by `Class::about`")]
pub enum Class {
    Load,
    Store,
    Atomic,
    Reduce,
    AsyncCopy,
    BulkCopy,
    TensorCopy,
    Prefetch,
    Texture,
    Mma,
    Barrier,
    Mbarrier,
    Commit,
    Wait,
    Fence,
    Sleep,
    Branch,
    Split,
    Call,
    Exit,
    Shuffle,
    Vote,
    Sfu,
    Convert,
    Int,
    Float,
    Logic,
    Compare,
    Move,
    Other,
}

/// What there is to say of a [`Class`].
#[derive(Debug, Clone, Copy)]
pub struct ClassInfo {
    /// Which.
    pub class: Class,
    /// Its word: `async_copy`.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// Words that narrow it.
    pub qualifiers: &'static [&'static [&'static str]],
    /// Operands that some of its instructions have, besides `pred`, which all have.
    pub operands: &'static [&'static str],
}

/// Several classes by one word.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Its word: `access`.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// What is in it.
    pub classes: &'static [Class],
}

/// `inst:access`, `inst:copy`, `inst:sync`.
pub const GROUPS: &[Group] = &[
    Group {
        name: "access",
        about: "load, store, atomic or reduce",
        classes: &[Class::Load, Class::Store, Class::Atomic, Class::Reduce],
    },
    Group {
        name: "copy",
        about: "async_copy, bulk_copy or tensor_copy",
        classes: &[Class::AsyncCopy, Class::BulkCopy, Class::TensorCopy],
    },
    Group {
        name: "sync",
        about: "barrier, mbarrier, commit, wait or fence",
        classes: &[Class::Barrier, Class::Mbarrier, Class::Commit, Class::Wait, Class::Fence],
    },
];

/// Words of state spaces.
pub const SPACES: &[&str] = &["global", "shared", "local", "const", "param", "generic", "cluster", "tensor"];
/// Words of element widths.
pub const WIDTHS: &[&str] = &["b8", "b16", "b32", "b64", "b128"];
/// Words of vectors.
pub const VECTORS: &[&str] = &["v2", "v4", "v8"];
/// Words of types.
pub const TYPES: &[&str] =
    &["f16", "bf16", "f32", "f64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];

const MEMORY: &[&[&str]] = &[SPACES, WIDTHS, VECTORS, TYPES];
const MATRICES: &[&[&str]] = &[SPACES, WIDTHS, VECTORS, TYPES, &["matrix"]];
const COPY: &[&[&str]] = &[SPACES];
const ARITHMETIC: &[&[&str]] = &[WIDTHS, VECTORS, TYPES];
const COMPUTED: &[&str] = &["width", "elems", "out", "in"];

const fn class(
    class: Class,
    name: &'static str,
    about: &'static str,
    qualifiers: &'static [&'static [&'static str]],
    operands: &'static [&'static str],
) -> ClassInfo {
    ClassInfo { class, name, about, qualifiers, operands }
}

/// All classes, in the order of [`Class`].
#[rustfmt::skip]
pub const CLASSES: &[ClassInfo] = &[
    class(Class::Load, "load", "reads memory", MATRICES,
        &["addr", "bytes", "width", "elems", "space", "out"]),
    class(Class::Store, "store", "writes memory", MATRICES,
        &["addr", "bytes", "width", "elems", "space", "in", "old"]),
    class(Class::Atomic, "atomic", "reads and writes memory at once, and gives the old value", MEMORY,
        &["addr", "bytes", "width", "elems", "space", "in", "out"]),
    class(Class::Reduce, "reduce", "the same without a result", MEMORY,
        &["addr", "bytes", "width", "elems", "space", "in"]),
    class(Class::AsyncCopy, "async_copy", "copies into shared memory, a lane at a time", COPY,
        &["addr", "saddr", "bytes", "space"]),
    class(Class::BulkCopy, "bulk_copy", "copies a run of bytes", COPY,
        &["addr", "saddr", "bytes", "space"]),
    class(Class::TensorCopy, "tensor_copy", "copies a box of a tensor", COPY, &["saddr", "space", "in"]),
    class(Class::Prefetch, "prefetch", "asks for memory early", COPY, &["addr", "space"]),
    class(Class::Texture, "texture", "textures and surfaces", &[TYPES], &["width", "elems"]),
    class(Class::Mma, "mma", "matrix multiply-add", &[TYPES], &["out", "in", "macs"]),
    class(Class::Barrier, "barrier", "barriers of blocks, warps and clusters",
        &[&["block", "warp", "cluster", "arrive", "sync"]], &["in"]),
    class(Class::Mbarrier, "mbarrier", "barriers in memory",
        &[SPACES, &["init", "expect", "arrive"]], &["addr", "bytes", "space"]),
    class(Class::Commit, "commit", "ends a group of asynchronous work", &[], &[]),
    class(Class::Wait, "wait", "waits for asynchronous work", &[], &["done"]),
    class(Class::Fence, "fence", "orders memory", &[], &[]),
    class(Class::Sleep, "sleep", "does nothing for a while", &[], &["in"]),
    class(Class::Branch, "branch", "jumps", &[&["conditional", "uniform", "backward"]], &["taken"]),
    class(Class::Split, "split", "jumps that may part a warp",
        &[&["conditional", "uniform", "backward"]], &["taken"]),
    class(Class::Call, "call", "calls a function", &[], &["callee"]),
    class(Class::Exit, "exit", "returns or ends", &[], &[]),
    class(Class::Shuffle, "shuffle", "moves values between lanes", ARITHMETIC, COMPUTED),
    class(Class::Vote, "vote", "asks all lanes", ARITHMETIC, COMPUTED),
    class(Class::Sfu, "sfu", "sines, roots, logarithms …", ARITHMETIC, COMPUTED),
    class(Class::Convert, "convert", "changes types", ARITHMETIC, COMPUTED),
    class(Class::Int, "int", "integer arithmetic", ARITHMETIC, COMPUTED),
    class(Class::Float, "float", "floating-point arithmetic", ARITHMETIC, COMPUTED),
    class(Class::Logic, "logic", "bits", ARITHMETIC, COMPUTED),
    class(Class::Compare, "compare", "compares and selects", ARITHMETIC, COMPUTED),
    class(Class::Move, "move", "moves values", ARITHMETIC, COMPUTED),
    class(Class::Other, "other", "what is none of these", &[], &[]),
];

impl Class {
    /// What there is to say of it.
    pub fn info(self) -> &'static ClassInfo {
        // The table has the enum's order, which a test holds it to.
        &CLASSES[self as usize]
    }

    /// Its word in the probe language.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// One line on it.
    pub fn about(self) -> &'static str {
        self.info().about
    }

    /// Is an instruction of this class one that `inst:WORD` means? A split is a branch too, and a group means all
    /// of its classes; `*` means everything.
    pub fn is(self, word: &str) -> bool {
        self.name() == word
            || word == "*"
            || (self == Class::Split && word == "branch")
            || GROUPS.iter().any(|group| group.name == word && group.classes.contains(&self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_enum() {
        for (place, info) in CLASSES.iter().enumerate() {
            assert_eq!(info.class as usize, place, "{}", info.name);
        }
        assert_eq!(CLASSES.len(), Class::Other as usize + 1);
    }

    #[test]
    fn words_mean_classes() {
        assert!(Class::Load.is("load") && Class::Load.is("access") && Class::Load.is("*"));
        assert!(!Class::Load.is("copy") && !Class::Load.is("store"));
        assert!(Class::Split.is("branch") && Class::Split.is("split") && !Class::Branch.is("split"));
    }
}
