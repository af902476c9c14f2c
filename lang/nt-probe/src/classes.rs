//! What `inst:` takes: classes of instructions, groups of them, what narrows each, and which operands it offers a body.
//!
//! ```text
//! inst:load.global.v4 { @[line] = sum(bytes) }       class `load`, qualifiers `global` and `v4`, operand `bytes`
//! ```
//!
//! The tables are the language's; that those of the opcodes (nt-ptx) have the same words is held by a test of nt-probec,
//! since neither crate may know the other. Language reference, Tracepoints and Operands.

/// A kind of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Its word: `async_copy`.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// Words that narrow it, a list a sort.
    pub qualifiers: &'static [&'static [&'static str]],
    /// Operands that some of its instructions have, besides `pred`, which all have; `in` is `in1`, `in2` ….
    pub operands: &'static [&'static str],
}

/// Several classes by one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Its word: `access`.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// The names of its classes.
    pub classes: &'static [&'static str],
}

/// Words of state spaces.
pub const SPACES: &[&str] = &["global", "shared", "local", "const", "param", "generic", "cluster", "tensor"];
/// Words of element widths.
pub const WIDTHS: &[&str] = &["b8", "b16", "b32", "b64", "b128"];
/// Words of vectors.
pub const VECTORS: &[&str] = &["v2", "v4", "v8"];
/// Words of types.
pub const TYPES: &[&str] =
    &["f16", "bf16", "f32", "f64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];
/// Words that only instructions of another vendor have.
pub const ELSEWHERE: &[&str] = &["scalar"];

/// Sorts of qualifiers, with what they say.
pub const SORTS: &[(&str, &[&str])] = &[
    ("where an access goes", SPACES),
    ("width of an element", WIDTHS),
    ("elements of a vector", VECTORS),
    ("type of an element", TYPES),
    ("a matrix, by a whole warp", &["matrix"]),
    ("whose barrier", &["block", "warp"]),
    ("what is done at a barrier", &["arrive", "sync", "init", "expect"]),
    ("how a branch jumps", &["conditional", "uniform", "backward"]),
    ("in scalar registers (AMD)", ELSEWHERE),
];

const MEMORY: &[&[&str]] = &[SPACES, WIDTHS, VECTORS, TYPES];
const MATRICES: &[&[&str]] = &[SPACES, WIDTHS, VECTORS, TYPES, &["matrix"]];
const COPY: &[&[&str]] = &[SPACES];
const ARITHMETIC: &[&[&str]] = &[WIDTHS, VECTORS, TYPES];
const JUMPS: &[&[&str]] = &[&["conditional", "uniform", "backward"]];
const COMPUTED: &[&str] = &["width", "elems", "out", "in"];

/// Several classes by one word each.
pub const GROUPS: &[Group] = &[
    Group {
        name: "access",
        about: "load, store, atomic or reduce",
        classes: &["load", "store", "atomic", "reduce"],
    },
    Group {
        name: "copy",
        about: "async_copy, bulk_copy or tensor_copy",
        classes: &["async_copy", "bulk_copy", "tensor_copy"],
    },
    Group {
        name: "sync",
        about: "barrier, mbarrier, commit, wait or fence",
        classes: &["barrier", "mbarrier", "commit", "wait", "fence"],
    },
];

const fn class(
    name: &'static str,
    about: &'static str,
    qualifiers: &'static [&'static [&'static str]],
    operands: &'static [&'static str],
) -> Class {
    Class { name, about, qualifiers, operands }
}

/// All classes, in the order of the language reference.
#[rustfmt::skip]
pub const CLASSES: &[Class] = &[
    class("load", "reads memory", MATRICES, &["addr", "bytes", "width", "elems", "space", "out"]),
    class("store", "writes memory", MATRICES, &["addr", "bytes", "width", "elems", "space", "in", "old"]),
    class("atomic", "reads and writes memory at once, and gives the old value", MEMORY,
        &["addr", "bytes", "width", "elems", "space", "in", "out"]),
    class("reduce", "the same without a result", MEMORY, &["addr", "bytes", "width", "elems", "space", "in"]),
    class("async_copy", "copies into shared memory, a lane at a time", COPY, &["addr", "saddr", "bytes", "space"]),
    class("bulk_copy", "copies a run of bytes", COPY, &["addr", "saddr", "bytes", "space"]),
    class("tensor_copy", "copies a box of a tensor", COPY, &["saddr", "space", "in"]),
    class("prefetch", "asks for memory early", COPY, &["addr", "space"]),
    class("texture", "textures and surfaces", &[TYPES], &["width", "elems"]),
    class("mma", "matrix multiply-add", &[TYPES], &["out", "in", "macs"]),
    class("barrier", "barriers of blocks, warps and clusters", &[&["block", "warp", "cluster", "arrive", "sync"]],
        &["in"]),
    class("mbarrier", "barriers in memory", &[SPACES, &["init", "expect", "arrive"]], &["addr", "bytes", "space"]),
    class("commit", "ends a group of asynchronous work", &[], &[]),
    class("wait", "waits for asynchronous work", &[], &["done"]),
    class("fence", "orders memory", &[], &[]),
    class("sleep", "does nothing for a while", &[], &["in"]),
    class("branch", "jumps", JUMPS, &["taken"]),
    class("split", "jumps that may part a warp", JUMPS, &["taken"]),
    class("call", "calls a function", &[], &["callee"]),
    class("exit", "returns or ends", &[], &[]),
    class("shuffle", "moves values between lanes", ARITHMETIC, COMPUTED),
    class("vote", "asks all lanes", ARITHMETIC, COMPUTED),
    class("sfu", "sines, roots, logarithms …", ARITHMETIC, COMPUTED),
    class("convert", "changes types", ARITHMETIC, COMPUTED),
    class("int", "integer arithmetic", ARITHMETIC, COMPUTED),
    class("float", "floating-point arithmetic", ARITHMETIC, COMPUTED),
    class("logic", "bits", ARITHMETIC, COMPUTED),
    class("compare", "compares and selects", ARITHMETIC, COMPUTED),
    class("move", "moves values", ARITHMETIC, COMPUTED),
    class("other", "what is none of these", &[], &[]),
];

/// Classes whose instructions have no place behind them.
pub(crate) const NOTHING_AFTER: &[&str] = &["branch", "split", "exit"];
/// Classes that a body sees with all lanes that get there, unless it says otherwise: a jump is of interest where it is not
/// taken, too.
pub(crate) const REACHED: &[&str] = &["branch", "split"];
/// Classes whose bytes may differ between lanes: an operand of the instruction tells them.
pub(crate) const DYNAMIC_BYTES: &[&str] = &["async_copy", "bulk_copy", "mbarrier"];

impl Class {
    /// Does `word` narrow it?
    pub(crate) fn takes(&self, word: &str) -> bool {
        self.qualifiers.iter().any(|sort| sort.contains(&word))
    }

    /// May its instructions have the operand that the language calls `name`?
    pub(crate) fn offers(&self, name: &str) -> bool {
        let name = if matches!(name, "in1" | "in2" | "in3" | "in4" | "in5") { "in" } else { name };
        name == "pred" || self.operands.contains(&name)
    }
}

/// The classes that a word of `inst:` means: one, a group's, or all.
pub(crate) fn meant_by(word: &str) -> impl Iterator<Item = &'static Class> {
    let group = GROUPS.iter().find(|group| group.name == word);
    CLASSES.iter().filter(move |class| {
        word == "*" || class.name == word || group.is_some_and(|group| group.classes.contains(&class.name))
    })
}

/// All words that may stand behind `inst:`.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().map(|class| class.name).chain(GROUPS.iter().map(|group| group.name))
}

/// All words that may narrow a class.
pub(crate) fn qualifiers() -> impl Iterator<Item = &'static str> {
    CLASSES
        .iter()
        .flat_map(|class| class.qualifiers.iter().copied().flatten().copied())
        .chain(ELSEWHERE.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_made_of_classes() {
        for group in GROUPS {
            assert_eq!(meant_by(group.name).count(), group.classes.len(), "{}", group.name);
        }
        assert_eq!(meant_by("load").count(), 1);
        assert_eq!(meant_by("*").count(), CLASSES.len());
        assert_eq!(meant_by("lod").count(), 0);
    }

    #[test]
    fn qualifiers_are_of_a_sort() {
        let mut sorted: Vec<&str> = SORTS.iter().flat_map(|(_, words)| words.iter().copied()).collect();
        let mut known: Vec<&str> = qualifiers().collect();
        sorted.sort_unstable();
        known.sort_unstable();
        known.dedup();
        assert_eq!(sorted, known);
    }

    #[test]
    fn words_are_unique() {
        let mut all: Vec<&str> = words().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), CLASSES.len() + GROUPS.len());
    }
}
