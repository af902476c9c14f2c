//! Operands as PTX writes them.
//!
//! Registers have bit types: `.b32` holds every type of up to 32 bits, `.b64` the rest, and the instruction's own type
//! says what the bits mean. Values of 8 and 16 bits are kept extended to 32 by the sign of their type, always; `.b16`
//! registers stand only before a store of 16 bits, so that no instruction widens or narrows in silence.

use nt_ir::program::Type;
use std::fmt;

/// The kinds of registers that spans use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    B16,
    B32,
    B64,
    Pred,
}

impl Class {
    /// In the order in which they are declared.
    pub(crate) const ALL: [Class; 4] = [Class::B16, Class::B32, Class::B64, Class::Pred];

    /// The register that holds values of a type.
    pub(crate) fn of(ty: Type) -> Class {
        match ty {
            Type::Bool => Class::Pred,
            Type::U64 | Type::S64 | Type::F64 | Type::Ptr => Class::B64,
            Type::U8 | Type::U16 | Type::U32 | Type::S8 | Type::S16 | Type::S32 | Type::F32 => Class::B32,
        }
    }

    pub(crate) fn register_type(self) -> &'static str {
        match self {
            Class::B16 => ".b16",
            Class::B32 => ".b32",
            Class::B64 => ".b64",
            Class::Pred => ".pred",
        }
    }

    /// As in `mov.b32`.
    pub(crate) fn move_suffix(self) -> &'static str {
        match self {
            Class::B16 => "b16",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::Pred => "pred",
        }
    }

    /// As in `%nt_r0`.
    pub(crate) fn letter(self) -> char {
        match self {
            Class::B16 => 'h',
            Class::B32 => 'r',
            Class::B64 => 'd',
            Class::Pred => 'p',
        }
    }
}

/// What streams and arrays with a capacity keep at function level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own<'a> {
    /// `%nt_c_dmat`: the next slot of this lane in the stream of that name, or how many records it has taken of an array.
    Cursor(&'a str),
    /// `%nt_mask`: the lanes that came to a run of sites together.
    Mask,
    /// `%nt_lead`: is this the lane that leads them?
    Lead,
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand<'a> {
    /// `%nt_r3`
    Temp { prefix: &'a str, class: Class, number: u32 },
    /// `%nt_s_start`: no temporary is called so.
    State { prefix: &'a str, name: &'a str, class: Class },
    /// A register of the weaver's own at function level; no temporary and no state is called so.
    Own { prefix: &'a str, own: Own<'a> },
    /// A register or variable of the program that the instruction at the site reads.
    Program { name: &'a str },
    /// `%nt_v7_0`: what the instruction before span 7 overwrote, as it was.
    Saved { prefix: &'a str, number: u32, index: usize },
    /// A constant of a type, extended to 64 bits by its sign.
    Number { ty: Type, bits: u64 },
}

impl Operand<'_> {
    /// A constant: `bits` cut to the type.
    pub(crate) fn number(ty: Type, bits: u64) -> Self {
        let bits = ty.canonical(bits);
        Operand::Number { ty, bits }
    }

    /// A constant of type u32.
    pub(crate) fn word(bits: u32) -> Self {
        Operand::number(Type::U32, u64::from(bits))
    }

    /// A constant of type u64.
    pub(crate) fn long(bits: u64) -> Self {
        Operand::number(Type::U64, bits)
    }
}

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Operand::Temp { prefix, class, number } => write!(f, "%{prefix}{}{number}", class.letter()),
            Operand::State { prefix, name, .. } => write!(f, "%{prefix}s_{name}"),
            Operand::Own { prefix, own: Own::Cursor(name) } => write!(f, "%{prefix}c_{name}"),
            Operand::Own { prefix, own: Own::Mask } => write!(f, "%{prefix}mask"),
            Operand::Own { prefix, own: Own::Lead } => write!(f, "%{prefix}lead"),
            Operand::Program { name } => write!(f, "{name}"),
            Operand::Saved { prefix, number, index } => write!(f, "%{prefix}v{number}_{index}"),
            // PTX ISA, 4.5: integers are 64 bits, floats are written by their bits.
            Operand::Number { ty: Type::F32, bits } => write!(f, "0f{bits:08X}"),
            Operand::Number { ty: Type::F64, bits } => write!(f, "0d{bits:016X}"),
            Operand::Number { ty: Type::S8 | Type::S16 | Type::S32 | Type::S64, bits } => {
                let value = bits as i64;
                // The least number has no positive counterpart for a minus to stand before.
                if value == i64::MIN { write!(f, "0x{bits:X}") } else { write!(f, "{value}") }
            }
            Operand::Number { bits, .. } => {
                if bits <= i64::MAX as u64 {
                    write!(f, "{bits}")
                } else {
                    write!(f, "0x{bits:X}U")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cut_and_written_as_ptx_has_them() {
        let check = |ty, bits, expected: &str| assert_eq!(Operand::number(ty, bits).to_string(), expected);
        check(Type::U8, 0x1ff, "255");
        check(Type::S8, 0xff, "-1");
        check(Type::S16, 0x8000, "-32768");
        check(Type::U32, u64::MAX, "4294967295");
        check(Type::S32, u64::MAX, "-1");
        check(Type::U64, 1 << 63, "0x8000000000000000U");
        check(Type::S64, 1 << 63, "0x8000000000000000");
        check(Type::F32, u64::from(1.5f32.to_bits()), "0f3FC00000");
        check(Type::F64, (-2.0f64).to_bits(), "0dC000000000000000");
    }
}
