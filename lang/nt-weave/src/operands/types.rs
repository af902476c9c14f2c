//! Types of values: of registers, of instructions, and numbers of the text as bits of a type.

use nt_ir::close::SiteType;
use nt_ir::program::Type;
use nt_ptx::opcode::{self, TypeKind};

/// The bits of a register that a span may read; 1 of a predicate.
pub(super) fn bits_of(ty: &str) -> Option<u32> {
    match ty {
        ".pred" => Some(1),
        ".b16" | ".u16" | ".s16" | ".f16" => Some(16),
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" => Some(32),
        ".b64" | ".u64" | ".s64" | ".f64" => Some(64),
        _ => None,
    }
}

/// The type that a register is declared with.
pub(super) fn own_type(ty: &str) -> Option<SiteType> {
    Some(SiteType::Is(match ty {
        ".pred" => Type::Bool,
        ".b16" | ".u16" => Type::U16,
        ".s16" => Type::S16,
        ".f16" => return Some(SiteType::F16),
        ".b32" | ".u32" | ".f16x2" => Type::U32,
        ".s32" => Type::S32,
        ".f32" => Type::F32,
        ".b64" | ".u64" => Type::U64,
        ".s64" => Type::S64,
        ".f64" => Type::F64,
        _ => return None,
    }))
}

/// The type of an instruction as the language has it; packed ones are words of bits.
pub(super) fn site_type(ty: opcode::Type) -> Option<SiteType> {
    let unsigned = match ty.bits {
        8 => Type::U8,
        16 => Type::U16,
        32 => Type::U32,
        64 => Type::U64,
        _ => return (ty.kind == TypeKind::Predicate).then_some(SiteType::Is(Type::Bool)),
    };
    Some(match (ty.kind, ty.name) {
        _ if ty.parts != 1 => SiteType::Is(unsigned),
        (_, "f16") => SiteType::F16,
        (_, "bf16") => SiteType::Bf16,
        (TypeKind::Float, "f32") => SiteType::Is(Type::F32),
        (TypeKind::Float, "f64") => SiteType::Is(Type::F64),
        (TypeKind::Signed, _) => SiteType::Is(match unsigned {
            Type::U8 => Type::S8,
            Type::U16 => Type::S16,
            Type::U32 => Type::S32,
            _ => Type::S64,
        }),
        _ => SiteType::Is(unsigned),
    })
}

/// A number of the text as the bits of a type: `4`, `-1`, `0f3F800000`, `0.5`.
pub(super) fn number_of(ty: Type, text: &str) -> Option<u64> {
    let (sign, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let float = |hex: &str, wide: bool| match wide {
        true => u64::from_str_radix(hex, 16).ok().map(f64::from_bits),
        false => u32::from_str_radix(hex, 16).ok().map(|bits| f64::from(f32::from_bits(bits))),
    };
    let value = match digits.get(..2) {
        Some("0f" | "0F") => float(digits.get(2..)?, false),
        Some("0d" | "0D") => float(digits.get(2..)?, true),
        _ if digits.contains('.') => digits.parse().ok(),
        _ => None,
    };
    match (ty, value) {
        (Type::F32, Some(value)) => {
            let value = if sign { -value } else { value };
            Some(u64::from((value as f32).to_bits()))
        }
        (Type::F64, Some(value)) => Some(if sign { -value } else { value }.to_bits()),
        (Type::F32 | Type::F64 | Type::Bool, _) | (_, Some(_)) => None,
        (ty, None) => nt_ptx::constant(text).map(|value| ty.canonical(value as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_their_type() {
        assert_eq!(number_of(Type::F32, "0f3F800000"), Some(0x3f80_0000));
        assert_eq!(number_of(Type::F64, "0d3FF0000000000000"), Some(0x3ff0_0000_0000_0000));
        assert_eq!(number_of(Type::F32, "-0.5"), Some(0xbf00_0000));
        assert_eq!(number_of(Type::S32, "-1"), Some(u64::MAX));
        assert_eq!(number_of(Type::U8, "-1"), Some(0xff));
        assert_eq!(number_of(Type::U32, "0f3F800000"), None);
        assert_eq!(number_of(Type::U32, "%r1"), None);
    }
}
