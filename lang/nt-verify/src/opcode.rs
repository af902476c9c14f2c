//! V6: the instructions that may be inserted, in the forms in which they may be.
//!
//! ```text
//! mad.wide.u32  %nt_d64, %nt_a32, %nt_b32, %nt_c64;       "mad.wide.u16|s16|u32|s32"  [To(WIDE), From(LAST), From(LAST), From(WIDE)]
//! ```
//!
//! A list of this crate's own: what the weaver or the reader of PTX know of opcodes is not asked. A form is a pattern
//! of the dotted name and a slot for each operand; a register in a slot has exactly the slot's width, so that the
//! silent widenings of `ld`, `st` and `cvt` never enter (but for 8 bits, which no register has).
//!
//! Source: PTX ISA 9.0, chapter 9.7; what ptxas makes a call of was read from SASS.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How wide an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// That many bits; 1 is a predicate.
    Bits(u32),
    /// As the last word of the opcode says: of `cvt.u64.u32`, 32.
    Last,
    /// As the last but one says: of `cvt.u64.u32`, 64.
    Before,
    /// Twice the last.
    Wide,
    /// Half of the last.
    Half,
}

/// What an operand must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A register that is written.
    To(Width),
    /// A predicate that is written, or two: `p|q`.
    ToPredicates,
    /// Two registers that are written, `{a, b}`.
    ToBoth(Width),
    /// A register, special register or number that is read.
    From(Width),
    /// A predicate that is read, maybe negated.
    FromPredicate,
    /// Two that are read, `{a, b}`.
    FromBoth(Width),
    /// What a store stores: one value of the last width, or a vector of 2 or 4 as the opcode says.
    Stored,
    /// `[nt_ctx+8]`
    Context,
    /// `[nt_pin+8]`
    Pin,
    /// `[%nt_a+8]` in global memory.
    Global,
    /// A label.
    Target,
    /// The membermask of a `.sync` operation.
    Mask,
}

/// What an instruction means to the abstract interpretation; [`Act::Other`] gives values that nothing is known of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// The same bits.
    Copy,
    /// From 32 bits to 64, with zeros.
    ZeroExtend,
    /// Sum and difference.
    Add,
    Subtract,
    /// Low half of a product, and with an addend.
    Multiply,
    MultiplyAdd,
    /// Product of two 32-bit values in 64 bits, unsigned, and with an addend.
    MultiplyWide,
    MultiplyAddWide,
    /// Left shift by a constant.
    ShiftLeft,
    /// A comparison of unsigned integers, maybe joined to a third operand.
    Compare(Comparison),
    /// Any other comparison, joined or not.
    CompareOther,
    And,
    Or,
    Not,
    /// The lanes that are here.
    ActiveMask,
    /// Reads the context, or the address of a pinned variable.
    Load,
    /// Writes a map.
    Store,
    /// Adds to a cell of a table.
    Reduce,
    Branch,
    Other,
}

/// An order between unsigned integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// One form of an instruction: its opcode as found, and what its operands must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) slots: &'static [Slot],
    pub(crate) act: Act,
    /// Bits of the last type of the opcode, and of the last but one; 0 where there is none.
    pub(crate) last: u32,
    pub(crate) before: u32,
    /// Elements of a `.v2` or `.v4`, else 1.
    pub(crate) lanes: u32,
}

impl Form {
    /// The width of a slot in bits.
    pub(crate) fn bits(&self, width: Width) -> u32 {
        match width {
            Bits(bits) => bits,
            Last => self.last,
            Before => self.before,
            Wide => self.last * 2,
            Half => self.last / 2,
        }
    }
}

use Slot::{
    Context, From, FromBoth, FromPredicate, Global, Mask, Pin, Stored, Target, To, ToBoth, ToPredicates,
};
use Width::{Before, Bits, Half, Last, Wide};

/// A pattern of opcodes: words by dots, alternatives by bars.
type Pattern = &'static str;

/// The list. Where one opcode has several lines, they differ in the shapes of operands.
const FORMS: &[Line] = &[
    // Moves. `mov` also packs and unpacks halves.
    ("mov.b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64|pred", &[To(Last), From(Last)], Act::Copy),
    ("mov.b32|b64", &[To(Last), FromBoth(Half)], Act::Other),
    ("mov.b32|b64", &[ToBoth(Half), From(Last)], Act::Other),
    (
        "selp.b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64",
        &[To(Last), From(Last), From(Last), FromPredicate],
        Act::Other,
    ),
    // Conversions, none of them saturating.
    ("cvt.u64|s64.u32", &[To(Before), From(Last)], Act::ZeroExtend),
    ("cvt.u64|s64.u64|s64", &[To(Before), From(Last)], Act::Copy),
    ("cvt.u32|s32.u32|s32", &[To(Before), From(Last)], Act::Copy),
    (
        "cvt.u8|s8|u16|s16|u32|s32|u64|s64.u8|s8|u16|s16|u32|s32|u64|s64",
        &[To(Before), From(Last)],
        Act::Other,
    ),
    ("cvt.rn.f32|f64.u8|s8|u16|s16|u32|s32|u64|s64", &[To(Before), From(Last)], Act::Other),
    ("cvt.rzi|rni.u8|s8|u16|s16|u32|s32|u64|s64.f32|f64", &[To(Before), From(Last)], Act::Other),
    ("cvt.f64.f32", &[To(Before), From(Last)], Act::Other),
    ("cvt.rn.f32.f64", &[To(Before), From(Last)], Act::Other),
    // Integers.
    ("add.u64|s64", &[To(Last), From(Last), From(Last)], Act::Add),
    ("add.u16|s16|u32|s32", &[To(Last), From(Last), From(Last)], Act::Other),
    ("sub.u64|s64", &[To(Last), From(Last), From(Last)], Act::Subtract),
    ("sub.u16|s16|u32|s32", &[To(Last), From(Last), From(Last)], Act::Other),
    ("mul.lo.u64|s64", &[To(Last), From(Last), From(Last)], Act::Multiply),
    ("mul.lo.u16|s16|u32|s32", &[To(Last), From(Last), From(Last)], Act::Other),
    ("mul.hi.u16|s16|u32|s32|u64|s64", &[To(Last), From(Last), From(Last)], Act::Other),
    ("mul.wide.u32", &[To(Wide), From(Last), From(Last)], Act::MultiplyWide),
    ("mul.wide.u16|s16|s32", &[To(Wide), From(Last), From(Last)], Act::Other),
    ("mad.lo.u64|s64", &[To(Last), From(Last), From(Last), From(Last)], Act::MultiplyAdd),
    ("mad.lo.u16|s16|u32|s32", &[To(Last), From(Last), From(Last), From(Last)], Act::Other),
    ("mad.hi.u16|s16|u32|s32|u64|s64", &[To(Last), From(Last), From(Last), From(Last)], Act::Other),
    ("mad.wide.u32", &[To(Wide), From(Last), From(Last), From(Wide)], Act::MultiplyAddWide),
    ("mad.wide.u16|s16|s32", &[To(Wide), From(Last), From(Last), From(Wide)], Act::Other),
    ("min|max.u16|s16|u32|s32|u64|s64|f32|f64", &[To(Last), From(Last), From(Last)], Act::Other),
    ("neg|abs.s16|s32|s64|f32|f64", &[To(Last), From(Last)], Act::Other),
    // Inlined by ptxas, unlike the forms of 64 bits and of 16, of which ptxas 13.0 makes calls.
    ("div|rem.u32|s32", &[To(Last), From(Last), From(Last)], Act::Other),
    // Floats. `div.full.f32` is inlined, unlike `div.rn`.
    ("add|sub|mul.f32|f64", &[To(Last), From(Last), From(Last)], Act::Other),
    ("add|sub|mul.rn.f32|f64", &[To(Last), From(Last), From(Last)], Act::Other),
    ("fma.rn.f32|f64", &[To(Last), From(Last), From(Last), From(Last)], Act::Other),
    ("div.full.f32", &[To(Last), From(Last), From(Last)], Act::Other),
    // Logic and bits.
    ("and.pred", &[To(Last), FromPredicate, FromPredicate], Act::And),
    ("or.pred", &[To(Last), FromPredicate, FromPredicate], Act::Or),
    ("xor.pred", &[To(Last), FromPredicate, FromPredicate], Act::Other),
    ("not.pred", &[To(Last), FromPredicate], Act::Not),
    ("and|or|xor.b16|b32|b64", &[To(Last), From(Last), From(Last)], Act::Other),
    ("not.b16|b32|b64", &[To(Last), From(Last)], Act::Other),
    ("lop3.b32", &[To(Last), From(Last), From(Last), From(Last), From(Bits(32))], Act::Other),
    ("shl.b64", &[To(Last), From(Last), From(Bits(32))], Act::ShiftLeft),
    ("shl.b16|b32", &[To(Last), From(Last), From(Bits(32))], Act::Other),
    ("shr.b16|u16|s16|b32|u32|s32|b64|u64|s64", &[To(Last), From(Last), From(Bits(32))], Act::Other),
    ("popc|clz.b32|b64", &[To(Bits(32)), From(Last)], Act::Other),
    ("bfind.u32|s32|u64|s64", &[To(Bits(32)), From(Last)], Act::Other),
    ("bfind.shiftamt.u32|s32|u64|s64", &[To(Bits(32)), From(Last)], Act::Other),
    ("brev.b32|b64", &[To(Last), From(Last)], Act::Other),
    ("bfe.u32|s32|u64|s64", &[To(Last), From(Last), From(Bits(32)), From(Bits(32))], Act::Other),
    ("bfi.b32|b64", &[To(Last), From(Last), From(Last), From(Bits(32)), From(Bits(32))], Act::Other),
    ("prmt.b32", &[To(Last), From(Last), From(Last), From(Last)], Act::Other),
    // Comparisons.
    ("setp.lt|lo.u32|u64", COMPARE, Act::Compare(Comparison::Less)),
    ("setp.le|ls.u32|u64", COMPARE, Act::Compare(Comparison::LessEqual)),
    ("setp.gt|hi.u32|u64", COMPARE, Act::Compare(Comparison::Greater)),
    ("setp.ge|hs.u32|u64", COMPARE, Act::Compare(Comparison::GreaterEqual)),
    ("setp.lt|lo.and|or.u32|u64", COMPARE_JOINED, Act::Compare(Comparison::Less)),
    ("setp.le|ls.and|or.u32|u64", COMPARE_JOINED, Act::Compare(Comparison::LessEqual)),
    ("setp.gt|hi.and|or.u32|u64", COMPARE_JOINED, Act::Compare(Comparison::Greater)),
    ("setp.ge|hs.and|or.u32|u64", COMPARE_JOINED, Act::Compare(Comparison::GreaterEqual)),
    ("setp.eq|ne.b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64", COMPARE, Act::CompareOther),
    ("setp.eq|ne.and|or|xor.b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64", COMPARE_JOINED, Act::CompareOther),
    ("setp.lt|le|gt|ge.u16|s16|s32|f32|s64|f64", COMPARE, Act::CompareOther),
    ("setp.lt|le|gt|ge.and|or|xor.u16|s16|u32|s32|f32|u64|s64|f64", COMPARE_JOINED, Act::CompareOther),
    // Addresses, the warp, memory, control.
    ("isspacep.global|shared|local|const", &[To(Bits(1)), From(Bits(64))], Act::Other),
    ("activemask.b32", &[To(Last)], Act::ActiveMask),
    ("ld.param.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64", &[To(Last), Context], Act::Load),
    ("ld.const.b64|u64", &[To(Last), Pin], Act::Load),
    ("st.global.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64", &[Global, Stored], Act::Store),
    ("st.global.v2|v4.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32", &[Global, Stored], Act::Store),
    ("st.global.v2.b64|u64|s64|f64", &[Global, Stored], Act::Store),
    // What is meant without words is `.relaxed.gpu`.
    ("red.global.add.u32|u64", &[Global, From(Last)], Act::Reduce),
    ("red.relaxed.gpu.global.add.u32|u64", &[Global, From(Last)], Act::Reduce),
    ("bra", &[Target], Act::Branch),
    // V8: the lanes that stand here anyway.
    ("redux.sync.add|min|max.u32|s32", &[To(Last), From(Last), Mask], Act::Other),
    ("redux.sync.and|or|xor.b32", &[To(Last), From(Last), Mask], Act::Other),
    ("vote.sync.any|all|uni.pred", &[To(Last), FromPredicate, Mask], Act::Other),
    ("vote.sync.ballot.b32", &[To(Last), FromPredicate, Mask], Act::Other),
    ("match.any.sync.b32|b64", &[To(Bits(32)), From(Last), Mask], Act::Other),
    (
        "shfl.sync.up|down|bfly|idx.b32",
        &[To(Last), From(Last), From(Bits(32)), From(Bits(32)), Mask],
        Act::Other,
    ),
];

const COMPARE: &[Slot] = &[ToPredicates, From(Last), From(Last)];
const COMPARE_JOINED: &[Slot] = &[ToPredicates, From(Last), From(Last), FromPredicate];

/// One line of the list.
type Line = (Pattern, &'static [Slot], Act);

/// The lines of the list by the first word of their opcodes, in the order of the list. Spans ask for every
/// instruction, and the verifier is always on.
static BY_WORD: LazyLock<HashMap<&'static str, Vec<Line>>> = LazyLock::new(|| {
    let mut by_word: HashMap<&str, Vec<Line>> = HashMap::new();
    for line in FORMS {
        let words = line.0.split('.').next().unwrap_or("");
        words.split('|').for_each(|word| by_word.entry(word).or_default().push(*line));
    }
    by_word
});

/// The forms of `opcode` that may be inserted, none if it is not on the list.
pub(crate) fn forms(opcode: &str) -> impl Iterator<Item = Form> {
    let word = opcode.split('.').next().unwrap_or("");
    let lines = BY_WORD.get(word).map_or(&[][..], Vec::as_slice);
    lines.iter().filter(move |(pattern, ..)| matches(pattern, opcode)).map(move |&(_, slots, act)| {
        let mut words = opcode.rsplit('.');
        let last = words.next().map_or(0, bits);
        let before = words.next().unwrap_or("");
        let lanes = match before {
            "v2" => 2,
            "v4" => 4,
            _ => 1,
        };
        Form { slots, act, last, before: bits(before), lanes }
    })
}

/// The least `.version` and `sm_` number of the instructions of the list that are younger than all that this crate
/// reads: PTX ISA 9.0, sections 9.7.9 and 9.7.13, "PTX ISA Notes" and "Target ISA Notes".
pub(crate) fn needs(opcode: &str) -> Option<((u16, u16), u16)> {
    match opcode.split('.').next().unwrap_or("") {
        "activemask" => Some(((6, 2), 30)),
        "redux" => Some(((7, 0), 80)),
        "match" => Some(((6, 0), 70)),
        "vote" | "shfl" => Some(((6, 0), 30)),
        _ => None,
    }
}

/// Is it one of the operations by which lanes of a warp wait for each other?
pub(crate) fn is_sync(opcode: &str) -> bool {
    opcode.split('.').skip(1).any(|word| word == "sync")
}

fn matches(pattern: Pattern, opcode: &str) -> bool {
    let (mut wanted, mut words) = (pattern.split('.'), opcode.split('.'));
    loop {
        match (wanted.next(), words.next()) {
            (None, None) => return true,
            (Some(alternatives), Some(word)) if alternatives.split('|').any(|one| one == word) => {}
            _ => return false,
        }
    }
}

/// The bits of a type's name; 0 for other words.
fn bits(word: &str) -> u32 {
    match word {
        "pred" => 1,
        "b8" | "u8" | "s8" => 8,
        "b16" | "u16" | "s16" => 16,
        "b32" | "u32" | "s32" | "f32" => 32,
        "b64" | "u64" | "s64" | "f64" => 64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_list() {
        for opcode in [
            "mov.u32",
            "cvt.u64.u32",
            "mad.wide.u32",
            "setp.lt.and.u64",
            "ld.param.u64",
            "st.global.v4.b32",
            "bra",
            "activemask.b32",
            "div.u32",
            "div.full.f32",
            "and.pred",
            "setp.ge.u64",
            "st.global.u8",
            "ld.const.b64",
            "red.global.add.u64",
            "red.relaxed.gpu.global.add.u32",
            "redux.sync.add.u32",
            "vote.sync.ballot.b32",
            "match.any.sync.b64",
            "shfl.sync.idx.b32",
        ] {
            assert!(forms(opcode).next().is_some(), "{opcode}");
        }
    }

    #[test]
    fn what_is_not() {
        for opcode in [
            "add.cc.u32",
            "addc.u32",
            "subc.u32",
            "madc.lo.cc.u32",
            "div.u64",
            "div.s64",
            "div.u16",
            "rem.s16",
            "rem.u64",
            "rem.s64",
            "div.rn.f32",
            "div.rn.f64",
            "sqrt.rn.f32",
            "sqrt.rn.f64",
            "rcp.rn.f64",
            "call",
            "call.uni",
            "ret",
            "exit",
            "trap",
            "brkpt",
            "bar.sync",
            "barrier.sync",
            "barrier.cta.sync.aligned",
            "membar.gl",
            "fence.acq_rel.gpu",
            "fence.proxy.async",
            "st.shared.u32",
            "st.local.u32",
            "st.param.b32",
            "st.u32",
            "st.volatile.global.u32",
            "st.release.gpu.global.u32",
            "st.global.wt.u32",
            "st.async.u32",
            "ld.global.u32",
            "ld.global.nc.u32",
            "ld.shared.u32",
            "ld.u32",
            "ld.param.v2.u64",
            "ld.param::func.u32",
            "atom.global.add.u32",
            "ld.const.u32",
            "ld.volatile.const.u64",
            "red.add.u64",
            "red.shared.add.u64",
            "red.global.min.u64",
            "red.global.add.f32",
            "red.global.add.s64",
            "red.release.gpu.global.add.u64",
            "red.relaxed.sys.global.add.u64",
            "red.global.add.noftz.f16x2",
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32",
            "multimem.red.relaxed.gpu.global.add.u32",
            "redux.sync.add.f32",
            "redux.sync.min.abs.f32",
            "vote.sync.any.b32",
            "match.all.sync.b32",
            "cp.async.ca.shared.global",
            "mbarrier.init.b64",
            "setmaxnreg.dec.sync.aligned.u32",
            "elect.sync",
            "vote.ballot.b32",
            "shfl.idx.b32",
            "activemask",
            "bra.uni",
            "brx.idx",
            "cvta.param.u64",
            "cvta.to.global.u64",
            "st.global.v8.b32",
            "st.global.v4.b64",
            "mov",
            "mov.b128",
            "mov.u32.u32",
            "add",
            "nanosleep.u32",
            "prefetch.global.L1",
            "tex.2d.v4.f32.s32",
            "cvt.sat.u8.u32",
            "",
            ".",
            "mov.",
            "pmevent",
            "griddepcontrol.wait",
            "alloca.u32",
        ] {
            assert!(forms(opcode).next().is_none(), "{opcode}");
        }
    }

    #[test]
    fn widths_of_a_form() {
        let first = |opcode| forms(opcode).next().expect("is on the list");
        let wide = first("mad.wide.u32");
        assert_eq!((wide.bits(Wide), wide.bits(Last)), (64, 32));
        let cvt = first("cvt.u64.u32");
        assert_eq!((cvt.bits(Before), cvt.bits(Last), cvt.act), (64, 32, Act::ZeroExtend));
        let store = first("st.global.v4.f32");
        assert_eq!((store.lanes, store.last), (4, 32));
        // The second line of the list is not taken for a conversion that the first one names.
        assert_eq!(first("cvt.s64.s32").act, Act::Other);
    }

    #[test]
    fn every_pattern_ends_in_a_type_or_is_bare() {
        for (pattern, slots, _) in FORMS {
            let typed = pattern.rsplit('.').next().unwrap_or("").split('|').all(|word| bits(word) > 0);
            assert!(typed || !slots.iter().any(|s| matches!(s, To(Last) | From(Last))), "{pattern}");
        }
    }
}
