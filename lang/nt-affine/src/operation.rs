//! What an instruction makes of values, as far as lanes are concerned: the opcodes that are exact on forms, and for all
//! others what they may be.

/// What a node of the data flow computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Known from the start.
    Leaf(Leaf),
    /// What came in over an edge of its block: an input an edge.
    Phi,
    /// Under a guard: inputs guard, new value, old value.
    Guarded,
    /// The input.
    Copy,
    Add,
    Sub,
    Neg,
    /// The low half of a product.
    Mul,
    /// Product and sum.
    Mad,
    /// All of a product, and a sum if there is a third input; `from` is the width of the factors.
    Wide {
        from: u32,
        signed: bool,
    },
    Shl,
    Shr {
        signed: bool,
    },
    /// By a table as that of `lop3`, of one to three inputs.
    Logic(u8),
    /// `bfe`
    Extract {
        signed: bool,
    },
    /// `bfi`
    Insert,
    /// `prmt` without a mode.
    Permute,
    Div {
        signed: bool,
    },
    Rem {
        signed: bool,
    },
    /// From `from` bits to those of the node.
    Convert {
        from: u32,
        signed: bool,
    },
    /// `selp`
    Choose,
    /// `setp` of integers of that many bits, with one result.
    Compare {
        how: Compare,
        from: u32,
        signed: bool,
    },
    /// Inputs of `part` bits side by side, the lowest first.
    Pack {
        part: u32,
    },
    /// Part of a wider input.
    Unpack {
        part: u32,
        index: u32,
    },
    /// Any other function of its inputs alone.
    Pure,
    /// A load from the address that is the input. `fixed` memory holds the same during all of a launch.
    Load {
        fixed: bool,
        bits: u32,
    },
    /// `shfl.sync`: inputs value and lane. `by_index` if all lanes take part and the lane is a number.
    Shuffle {
        by_index: bool,
    },
    /// One result for all lanes that execute it together.
    Common,
    /// Anything.
    Varying {
        indirect: bool,
    },
}

/// Values that need no input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Leaf {
    Constant(u64),
    /// The bytes of a kernel's parameters.
    Parameter {
        offset: u32,
        bits: u32,
    },
    /// `%tid`, by axis.
    Thread(u8),
    /// `%ntid`
    Threads(u8),
    /// `%ctaid`
    Block(u8),
    /// `%nctaid`
    Blocks(u8),
    /// `%laneid`
    Lane,
    /// The same in all lanes, always.
    Uniform,
}

/// How `setp` compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    /// By the modifier, which tells signed from unsigned by the type, but for `lo` and its kin.
    pub(crate) fn named(word: &str) -> Option<(Compare, bool)> {
        Some(match word {
            ".eq" => (Compare::Equal, false),
            ".ne" => (Compare::NotEqual, false),
            ".lt" => (Compare::Less, false),
            ".le" => (Compare::LessOrEqual, false),
            ".gt" => (Compare::Greater, false),
            ".ge" => (Compare::GreaterOrEqual, false),
            ".lo" => (Compare::Less, true),
            ".ls" => (Compare::LessOrEqual, true),
            ".hi" => (Compare::Greater, true),
            ".hs" => (Compare::GreaterOrEqual, true),
            _ => return None,
        })
    }

    /// With its sides exchanged.
    pub(crate) fn flipped(self) -> Compare {
        match self {
            Compare::Less => Compare::Greater,
            Compare::LessOrEqual => Compare::GreaterOrEqual,
            Compare::Greater => Compare::Less,
            Compare::GreaterOrEqual => Compare::LessOrEqual,
            same => same,
        }
    }
}
