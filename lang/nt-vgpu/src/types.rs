//! Types of PTX as the interpreter computes with them, and the words that name them.
//!
//! A register is a slot of 64 bits a lane. Invariant: a slot holds the value of its register zero-extended, so that a
//! wider instruction reads what PTX says it reads and a narrower one takes the low bits.
//!
//! Source: PTX ISA 9.0, section 5.2 (types) and 9.4.1 (operand size exceeding instruction-type size).

/// A type of an instruction; the number is bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// `.b8` to `.b64`
    Bits(u32),
    /// `.u8` to `.u64`
    Unsigned(u32),
    /// `.s8` to `.s64`
    Signed(u32),
    /// `.f16`, `.f32`, `.f64`
    Float(u32),
    /// `.bf16`
    Bfloat,
    /// `.tf32`, kept in 32 bits
    Tfloat,
    /// `.f16x2`
    FloatPair,
    /// `.bf16x2`
    BfloatPair,
    /// `.f32x2`
    SinglePair,
    /// `.pred`
    Predicate,
}

impl Type {
    /// `.u32` and its kin.
    pub(crate) fn named(word: &str) -> Option<Type> {
        Some(match word {
            ".b8" => Type::Bits(8),
            ".b16" => Type::Bits(16),
            ".b32" => Type::Bits(32),
            ".b64" => Type::Bits(64),
            ".u8" => Type::Unsigned(8),
            ".u16" => Type::Unsigned(16),
            ".u32" => Type::Unsigned(32),
            ".u64" => Type::Unsigned(64),
            ".s8" => Type::Signed(8),
            ".s16" => Type::Signed(16),
            ".s32" => Type::Signed(32),
            ".s64" => Type::Signed(64),
            ".f16" => Type::Float(16),
            ".f32" => Type::Float(32),
            ".f64" => Type::Float(64),
            ".bf16" => Type::Bfloat,
            ".tf32" => Type::Tfloat,
            ".f16x2" => Type::FloatPair,
            ".bf16x2" => Type::BfloatPair,
            ".f32x2" => Type::SinglePair,
            ".pred" => Type::Predicate,
            _ => return None,
        })
    }

    /// How many bits a value has; a predicate has one.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Type::Bits(n) | Type::Unsigned(n) | Type::Signed(n) | Type::Float(n) => n,
            Type::Bfloat => 16,
            Type::Tfloat | Type::FloatPair | Type::BfloatPair => 32,
            Type::SinglePair => 64,
            Type::Predicate => 1,
        }
    }

    /// How many bytes a value takes in memory.
    pub(crate) fn bytes(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Type::Signed(_))
    }

    /// Integers and untyped bits.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Type::Bits(_) | Type::Unsigned(_) | Type::Signed(_))
    }
}

/// The low `bits` of a slot.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The low `bits` of a slot as a signed number.
pub(crate) fn signed(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    (value << unused).cast_signed() >> unused
}
