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

use crate::hash::Table;
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
    /// `[nt_arg+8]`
    Argument,
    /// `[%nt_a+8]` in global memory.
    Global,
    /// The address of the store at the site.
    Overwritten,
    /// What is loaded: one value of the last width, or a vector of 2 or 4 as the opcode says.
    Loaded,
    /// A label.
    Target,
    /// The membermask of a `.sync` operation.
    Mask,
}

/// What an instruction means to the abstract interpretation; arithmetic is of 32 bits or 64. [`Act::Other`] gives values that nothing is known of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// The same bits.
    Copy,
    /// From 32 bits to 64, with zeros.
    ZeroExtend,
    /// From 64 bits to the low 32.
    Low,
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
    /// Logical right shift.
    ShiftRight,
    /// Bits that are set in both.
    Mask,
    /// How many bits are set.
    Count,
    /// A comparison of integers, for an order unsigned ones, maybe joined to a third operand.
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
    /// Adds to a cell of a table, or to the drops of a stream.
    Reduce,
    /// Adds to the cursor of a stream, and gives what was there.
    Claim,
    /// Writes a word of an argument for a clone.
    Give,
    /// Loads what the store at the site overwrites.
    Old,
    Branch,
    Other,
}

/// An order between unsigned integers, or whether they are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
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
    /// The least version and target, where they need to be asked for.
    pub(crate) needs: Option<Level>,
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
    Argument, Context, From, FromBoth, FromPredicate, Global, Loaded, Mask, Overwritten, Pin, Stored, Target,
    To, ToBoth, ToPredicates,
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
    ("cvt.u32|s32.u64|s64", &[To(Before), From(Last)], Act::Low),
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
    ("add.u32|s32|u64|s64", &[To(Last), From(Last), From(Last)], Act::Add),
    ("add.u16|s16", &[To(Last), From(Last), From(Last)], Act::Other),
    ("sub.u64|s64", &[To(Last), From(Last), From(Last)], Act::Subtract),
    ("sub.u16|s16|u32|s32", &[To(Last), From(Last), From(Last)], Act::Other),
    ("mul.lo.u32|s32|u64|s64", &[To(Last), From(Last), From(Last)], Act::Multiply),
    ("mul.lo.u16|s16", &[To(Last), From(Last), From(Last)], Act::Other),
    ("mul.hi.u16|s16|u32|s32|u64|s64", &[To(Last), From(Last), From(Last)], Act::Other),
    ("mul.wide.u32", &[To(Wide), From(Last), From(Last)], Act::MultiplyWide),
    ("mul.wide.u16|s16|s32", &[To(Wide), From(Last), From(Last)], Act::Other),
    ("mad.lo.u32|s32|u64|s64", &[To(Last), From(Last), From(Last), From(Last)], Act::MultiplyAdd),
    ("mad.lo.u16|s16", &[To(Last), From(Last), From(Last), From(Last)], Act::Other),
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
    ("and.b32|b64", &[To(Last), From(Last), From(Last)], Act::Mask),
    ("and.b16", &[To(Last), From(Last), From(Last)], Act::Other),
    ("or|xor.b16|b32|b64", &[To(Last), From(Last), From(Last)], Act::Other),
    ("not.b16|b32|b64", &[To(Last), From(Last)], Act::Other),
    ("lop3.b32", &[To(Last), From(Last), From(Last), From(Last), From(Bits(32))], Act::Other),
    ("shl.b32|b64", &[To(Last), From(Last), From(Bits(32))], Act::ShiftLeft),
    ("shl.b16", &[To(Last), From(Last), From(Bits(32))], Act::Other),
    ("shr.b32|u32|b64|u64", &[To(Last), From(Last), From(Bits(32))], Act::ShiftRight),
    ("shr.b16|u16|s16|s32|s64", &[To(Last), From(Last), From(Bits(32))], Act::Other),
    ("popc.b32|b64", &[To(Bits(32)), From(Last)], Act::Count),
    ("clz.b32|b64", &[To(Bits(32)), From(Last)], Act::Other),
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
    ("setp.eq.b32|u32|s32|b64|u64|s64", COMPARE, Act::Compare(Comparison::Equal)),
    ("setp.ne.b32|u32|s32|b64|u64|s64", COMPARE, Act::Compare(Comparison::NotEqual)),
    ("setp.eq.and|or|xor.b32|u32|s32|b64|u64|s64", COMPARE_JOINED, Act::Compare(Comparison::Equal)),
    ("setp.ne.and|or|xor.b32|u32|s32|b64|u64|s64", COMPARE_JOINED, Act::Compare(Comparison::NotEqual)),
    ("setp.eq|ne.b16|u16|s16|f32|f64", COMPARE, Act::CompareOther),
    ("setp.eq|ne.and|or|xor.b16|u16|s16|f32|f64", COMPARE_JOINED, Act::CompareOther),
    ("setp.lt|le|gt|ge.u16|s16|s32|f32|s64|f64", COMPARE, Act::CompareOther),
    ("setp.lt|le|gt|ge.and|or|xor.u16|s16|u32|s32|f32|u64|s64|f64", COMPARE_JOINED, Act::CompareOther),
    // Addresses, the warp, memory, control.
    ("isspacep.global|shared|shared::cluster|local|const|param", &[To(Bits(1)), From(Bits(64))], Act::Other),
    // From the window of a space to a generic address: arithmetic, and no access.
    ("cvta.shared|shared::cluster|local|const.u64", &[To(Last), From(Last)], Act::Other),
    ("activemask.b32", &[To(Last)], Act::ActiveMask),
    ("ld.param.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64", &[To(Last), Context], Act::Load),
    ("ld.const.b64|u64", &[To(Last), Pin], Act::Load),
    ("st.global.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64", &[Global, Stored], Act::Store),
    ("st.global.v2|v4.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32", &[Global, Stored], Act::Store),
    ("st.global.v2.b64|u64|s64|f64", &[Global, Stored], Act::Store),
    ("st.param.b32|u32|s32|f32|b64|u64|s64|f64", &[Argument, From(Last)], Act::Give),
    // The same access as the store's behind it: no other address, no other bytes.
    (
        "ld.global|shared.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64",
        &[Loaded, Overwritten],
        Act::Old,
    ),
    ("ld.global|shared.v2|v4.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32", &[Loaded, Overwritten], Act::Old),
    ("ld.global|shared.v2.b64|u64|s64|f64", &[Loaded, Overwritten], Act::Old),
    ("ld.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64", &[Loaded, Overwritten], Act::Old),
    ("ld.v2|v4.b8|u8|s8|b16|u16|s16|b32|u32|s32|f32", &[Loaded, Overwritten], Act::Old),
    ("ld.v2.b64|u64|s64|f64", &[Loaded, Overwritten], Act::Old),
    // What is meant without words is `.relaxed.gpu`.
    ("red.global.add.u32|u64", &[Global, From(Last)], Act::Reduce),
    ("red.relaxed.gpu.global.add.u32|u64", &[Global, From(Last)], Act::Reduce),
    ("atom.global.add.u32|u64", &[To(Last), Global, From(Last)], Act::Claim),
    ("atom.relaxed.gpu.global.add.u32|u64", &[To(Last), Global, From(Last)], Act::Claim),
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

/// The forms by opcode, every pattern written out, in the order of the list. Spans ask for every instruction, and the
/// verifier is always on.
static FORMS_OF: LazyLock<Table<String, Vec<Form>>> = LazyLock::new(|| {
    let mut forms: Table<String, Vec<Form>> = Table::default();
    for &(pattern, slots, act) in FORMS {
        for opcode in written_out(pattern) {
            let mut words = opcode.rsplit('.');
            let last = words.next().map_or(0, bits);
            let before = words.next().unwrap_or("");
            let lanes = match before {
                "v2" => 2,
                "v4" => 4,
                _ => 1,
            };
            let form = Form { slots, act, last, before: bits(before), lanes, needs: needs(&opcode) };
            forms.entry(opcode).or_default().push(form);
        }
    }
    forms
});

/// `a|b.c` is `a.c` and `b.c`.
fn written_out(pattern: Pattern) -> Vec<String> {
    let mut all = vec![String::new()];
    for (place, alternatives) in pattern.split('.').enumerate() {
        let dot = if place == 0 { "" } else { "." };
        let longer = |begun: &String| {
            let begun = begun.clone();
            alternatives.split('|').map(move |word| format!("{begun}{dot}{word}"))
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The forms of `opcode` that may be inserted, none if it is not on the list.
pub(crate) fn forms(opcode: &str) -> &'static [Form] {
    FORMS_OF.get(opcode).map_or(&[], Vec::as_slice)
}

/// A `.version` and the number of an `sm_` target.
pub(crate) type Level = ((u16, u16), u16);

/// The least `.version` and `sm_` number of the instructions of the list that are younger than all that this crate
/// reads: PTX ISA 9.0, sections 9.7.9 and 9.7.13, "PTX ISA Notes" and "Target ISA Notes".
fn needs(opcode: &str) -> Option<Level> {
    match opcode.split('.').next().unwrap_or("") {
        "activemask" => Some(((6, 2), 30)),
        "redux" => Some(((7, 0), 80)),
        "match" => Some(((6, 0), 70)),
        "vote" | "shfl" => Some(((6, 0), 30)),
        "isspacep" if opcode.ends_with("::cluster") => Some(((7, 8), 90)),
        "isspacep" if opcode.ends_with(".param") => Some(((7, 7), 70)),
        _ => None,
    }
}

/// Is it one of the operations by which lanes of a warp wait for each other?
pub(crate) fn is_sync(opcode: &str) -> bool {
    opcode.split('.').skip(1).any(|word| word == "sync")
}

/// The bits of a type's name; 0 for other words.
pub(crate) fn bits(word: &str) -> u32 {
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
mod tests;
