//! The names that the language gives: what the machine tells, functions, reducers, operands of instructions.
//!
//! One table. The checker resolves by it, "did you mean" reads it, `--list` prints it.

use nt_ir::program::{Builtin, Operand, Part, SiteKey, SiteValue};

/// What a given name means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meaning {
    /// A value; its parentheses are optional.
    Machine(Builtin),
    /// A value for each of `.x .y .z`.
    Axes(fn(u8) -> Builtin),
    /// `cluster.id`, `cluster.rank`
    Cluster,
    /// `min(a, b)`, `max(a, b)`
    Extreme(nt_ir::program::BinaryOp),
    /// `select(c, a, b)`
    Select,
    /// Of the lanes of a warp; in warp probes only.
    Reducer,
    /// A part of the instruction at the site, known when it runs.
    Operand(Operand),
    /// A number known of the site.
    SiteNumber(SiteValue),
    /// A text known of the site, for keys and comparisons.
    SiteText(SiteKey),
    /// A part of the instruction whose type is the instruction's.
    Open(Part),
    /// `has(x)`
    Has,
    /// `sample(N)`
    Sample,
    /// Known to the language, refused by this compiler; called so in messages.
    NotYet(&'static str),
}

/// One name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) name: &'static str,
    pub(crate) meaning: Meaning,
    /// Its type, in words.
    pub(crate) ty: &'static str,
    /// What it is, for `--list`.
    pub(crate) about: &'static str,
}

const fn given(name: &'static str, meaning: Meaning, ty: &'static str, about: &'static str) -> Given {
    Given { name, meaning, ty, about }
}

const SITE: Meaning = Meaning::NotYet("some names of the site (`bb`, `isa`)");
const BITS: Meaning = Meaning::NotYet("functions on bits (`popc`, `clz`, `ctz`, `hash`)");
const FLOAT: Meaning = Meaning::NotYet(super::exprs::FLOATS);

/// Every given name, in the order of the language reference.
pub(crate) const GIVEN: &[Given] = &[
    given("clock", Meaning::Machine(Builtin::Clock), "u64", "cycles of this SM"),
    given("clock32", Meaning::Machine(Builtin::ClockLow), "u32", "the low half of `clock()`"),
    given("time", Meaning::Machine(Builtin::Time), "u64", "nanoseconds, one clock for the device"),
    given("cu", Meaning::Machine(Builtin::Cu), "u32", "the SM (compute unit) it runs on"),
    given("lane", Meaning::Machine(Builtin::Lane), "u32", "the lane within its warp; varying"),
    given("warpsize", Meaning::Machine(Builtin::WarpSize), "u32", "lanes a warp"),
    given("active", Meaning::Machine(Builtin::Active), "u64", "mask of the lanes that run the body together"),
    given(
        "thread",
        Meaning::Machine(Builtin::Thread),
        "u64",
        "linear index of the thread in the launch; varying",
    ),
    given("block", Meaning::Machine(Builtin::Block), "u64", "linear index of the block in the launch"),
    given("warp", Meaning::Machine(Builtin::Warp), "u64", "linear index of the warp in the launch"),
    given("wid", Meaning::Machine(Builtin::WarpInBlock), "u32", "index of the warp in its block"),
    given("tid", Meaning::Axes(Builtin::Tid), "u32", "`.x .y .z`: index of the thread in its block; varying"),
    given("ntid", Meaning::Axes(Builtin::Ntid), "u32", "`.x .y .z`: threads a block"),
    given("ctaid", Meaning::Axes(Builtin::Ctaid), "u32", "`.x .y .z`: index of the block in the launch"),
    given("nctaid", Meaning::Axes(Builtin::Nctaid), "u32", "`.x .y .z`: blocks of the launch"),
    given(
        "cluster",
        Meaning::Cluster,
        "u32",
        "`.id`: the cluster in the launch; `.rank`: the block in its cluster",
    ),
    given("launch", Meaning::Machine(Builtin::Launch), "u64", "launches of the process, counted"),
    given(
        "param",
        Meaning::NotYet("arguments of the kernel (`param(i)`)"),
        "site",
        "an argument of the kernel",
    ),
    given("banks", Meaning::NotYet("`banks` reads"), "u32", "banks of shared memory"),
    given("site", Meaning::SiteNumber(SiteValue::Site), "u32", "the site"),
    given("line", Meaning::SiteNumber(SiteValue::Line), "u32", "its source line"),
    given("file", Meaning::SiteText(SiteKey::File), "str", "its source file"),
    given("op", Meaning::SiteText(SiteKey::Op), "str", "its opcode"),
    given("class", Meaning::SiteText(SiteKey::Class), "str", "its class"),
    given("func", Meaning::SiteText(SiteKey::Func), "str", "its function"),
    given("kernel", Meaning::SiteText(SiteKey::Kernel), "str", "its kernel"),
    given("bb", SITE, "u32", "its basic block"),
    given("mark", Meaning::SiteText(SiteKey::Mark), "str", "its mark"),
    given("isa", SITE, "str", "the target"),
    given("min", Meaning::Extreme(nt_ir::program::BinaryOp::Min), "of both", "the smaller"),
    given("max", Meaning::Extreme(nt_ir::program::BinaryOp::Max), "of both", "the larger"),
    given("select", Meaning::Select, "of both", "`select(c, a, b)` is `c ? a : b`"),
    given("abs", Meaning::NotYet("`abs` calls"), "of it", "the magnitude"),
    given("popc", BITS, "u32", "bits that are set"),
    given("clz", BITS, "u32", "zeros from the top"),
    given("ctz", BITS, "u32", "zeros from the bottom"),
    given("hash", BITS, "u32", "a well mixed number"),
    given("isnan", FLOAT, "bool", "is it no number?"),
    given("isinf", FLOAT, "bool", "is it infinite?"),
    given("sample", Meaning::Sample, "bool", "every Nth time"),
    given("has", Meaning::Has, "bool", "does the instruction have this operand?"),
    given("any", Meaning::Reducer, "bool", "does it hold in an active lane?"),
    given("all", Meaning::Reducer, "bool", "does it hold in all active lanes?"),
    given("first", Meaning::Reducer, "of it", "the elected lane's"),
    given("lane_sum", Meaning::Reducer, "of it", "the sum over the active lanes"),
    given("lane_min", Meaning::Reducer, "of it", "the least of the active lanes"),
    given("lane_max", Meaning::Reducer, "of it", "the greatest of the active lanes"),
    given("lane_and", Meaning::Reducer, "of it", "the bits set in all active lanes"),
    given("lane_or", Meaning::Reducer, "of it", "the bits set in any active lane"),
    given("distinct", Meaning::Reducer, "u32", "different values among the active lanes"),
    given("crowd", Meaning::Reducer, "u32", "most lanes that share one value"),
    given("passes", Meaning::Reducer, "u32", "passes through shared memory"),
    given("addr", Meaning::Operand(Operand::Addr), "ptr", "the address accessed; varying"),
    given("saddr", Meaning::Operand(Operand::Saddr), "u32", "the shared-memory side of a copy; varying"),
    given("bytes", Meaning::Operand(Operand::Bytes), "u32", "bytes accessed"),
    given("width", Meaning::SiteNumber(SiteValue::Width), "u32", "bits an element"),
    given("elems", Meaning::SiteNumber(SiteValue::Elems), "u32", "elements of a vector"),
    given("space", Meaning::SiteText(SiteKey::Space), "str", "the state space"),
    given("out", Meaning::Open(Part::Out), "site", "what the instruction gives; varying"),
    given("in1", Meaning::Open(Part::In(1)), "site", "its first source; varying"),
    given("in2", Meaning::Open(Part::In(2)), "site", "its second source; varying"),
    given("in3", Meaning::Open(Part::In(3)), "site", "its third source; varying"),
    given("in4", Meaning::Open(Part::In(4)), "site", "its fourth source; varying"),
    given("in5", Meaning::Open(Part::In(5)), "site", "its fifth source; varying"),
    given("old", Meaning::Open(Part::Old), "site", "what a store overwrites; varying"),
    given("macs", Meaning::SiteNumber(SiteValue::Macs), "u32", "multiply-adds of a matrix instruction"),
    given("taken", Meaning::Operand(Operand::Taken), "bool", "does the branch go? varying"),
    given("pred", Meaning::Operand(Operand::Pred), "bool", "the instruction's guard; varying"),
    given("done", Meaning::Operand(Operand::Done), "bool", "is the wait over? varying"),
    given("callee", Meaning::SiteText(SiteKey::Callee), "str", "the function called"),
];

/// What the language means by `name`.
pub(crate) fn find(name: &str) -> Option<&'static Given> {
    GIVEN.iter().find(|given| given.name == name)
}

impl Given {
    /// What `--list` calls it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.meaning {
            Meaning::Reducer => "reducer",
            _ if Part::from_word(self.name).is_some() => "operand",
            _ => "builtin",
        }
    }
}

/// Functions of aggregations, for "did you mean" and habits.
pub(crate) const AGGREGATIONS: &[&str] =
    &["count", "sum", "min", "max", "avg", "stats", "hist", "lhist", "topk", "last"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = GIVEN.iter().map(|given| given.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), GIVEN.len());
    }
}
