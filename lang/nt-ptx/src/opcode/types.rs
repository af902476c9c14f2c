//! The types that opcodes name, with their sizes.
//!
//! Source: PTX ISA 9.0, sections 5.2.1 (fundamental types), 5.2.3 (alternate floating-point formats), 5.2.4 (packed).

/// A type: `.f16x2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// Its word without the dot: `f16x2`.
    pub name: &'static str,
    /// Bits of all of it: 32.
    pub bits: u32,
    /// Elements packed into it: 2.
    pub parts: u32,
    /// What it holds.
    pub kind: TypeKind,
}

/// What a [`Type`] holds. Each is one bit, so that rows of the table can ask for one of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeKind {
    /// `.pred`
    Predicate = 1,
    /// `.b32`
    Bits = 2,
    /// `.u32`
    Unsigned = 4,
    /// `.s32`
    Signed = 8,
    /// `.f32`, `.f64`, `.f32x2`
    Float = 16,
    /// `.f16`, `.bf16` and their pairs
    Half = 32,
    /// `.tf32`, and formats of 8 bits and less, with their packed forms: only conversions and matrices have them.
    Small = 64,
}

impl Type {
    /// The type of that word, which has no dot.
    pub fn named(word: &str) -> Option<Type> {
        // Most words of opcodes are no types, and all types but one end in a digit.
        if !word.as_bytes().last()?.is_ascii_digit() && word != "pred" {
            return None;
        }
        TYPES.iter().copied().find(|ty| ty.name == word)
    }

    /// One of the packed elements; itself if it is not packed.
    pub fn element(self) -> Type {
        if self.parts == 1 {
            return self;
        }
        let word = self.name.strip_suffix("x2").or_else(|| self.name.strip_suffix("x4"));
        word.and_then(Type::named).unwrap_or(self)
    }
}

const fn ty(name: &'static str, bits: u32, parts: u32, kind: TypeKind) -> Type {
    Type { name, bits, parts, kind }
}

/// The commonest first, since they are looked for in this order.
const TYPES: &[Type] = &[
    ty("b32", 32, 1, TypeKind::Bits),
    ty("f32", 32, 1, TypeKind::Float),
    ty("s32", 32, 1, TypeKind::Signed),
    ty("u32", 32, 1, TypeKind::Unsigned),
    ty("b64", 64, 1, TypeKind::Bits),
    ty("u64", 64, 1, TypeKind::Unsigned),
    ty("s64", 64, 1, TypeKind::Signed),
    ty("f16", 16, 1, TypeKind::Half),
    ty("bf16", 16, 1, TypeKind::Half),
    ty("f16x2", 32, 2, TypeKind::Half),
    ty("bf16x2", 32, 2, TypeKind::Half),
    ty("b16", 16, 1, TypeKind::Bits),
    ty("f64", 64, 1, TypeKind::Float),
    ty("pred", 1, 1, TypeKind::Predicate),
    ty("u16", 16, 1, TypeKind::Unsigned),
    ty("s16", 16, 1, TypeKind::Signed),
    ty("b8", 8, 1, TypeKind::Bits),
    ty("u8", 8, 1, TypeKind::Unsigned),
    ty("s8", 8, 1, TypeKind::Signed),
    ty("b128", 128, 1, TypeKind::Bits),
    ty("f32x2", 64, 2, TypeKind::Float),
    ty("u16x2", 32, 2, TypeKind::Unsigned),
    ty("s16x2", 32, 2, TypeKind::Signed),
    ty("u8x4", 32, 4, TypeKind::Unsigned),
    ty("s8x4", 32, 4, TypeKind::Signed),
    ty("tf32", 32, 1, TypeKind::Small),
    ty("e4m3", 8, 1, TypeKind::Small),
    ty("e5m2", 8, 1, TypeKind::Small),
    ty("e3m2", 6, 1, TypeKind::Small),
    ty("e2m3", 6, 1, TypeKind::Small),
    ty("e2m1", 4, 1, TypeKind::Small),
    ty("e4m3x2", 16, 2, TypeKind::Small),
    ty("e5m2x2", 16, 2, TypeKind::Small),
    ty("e3m2x2", 16, 2, TypeKind::Small),
    ty("e2m3x2", 16, 2, TypeKind::Small),
    ty("e2m1x2", 8, 2, TypeKind::Small),
    ty("e4m3x4", 32, 4, TypeKind::Small),
    ty("e5m2x4", 32, 4, TypeKind::Small),
    ty("e3m2x4", 32, 4, TypeKind::Small),
    ty("e2m3x4", 32, 4, TypeKind::Small),
    ty("e2m1x4", 16, 4, TypeKind::Small),
    ty("ue8m0x2", 16, 2, TypeKind::Small),
    ty("ue8m0", 8, 1, TypeKind::Small),
    ty("ue4m3", 8, 1, TypeKind::Small),
    ty("s4", 4, 1, TypeKind::Signed),
    ty("u4", 4, 1, TypeKind::Unsigned),
    ty("s2", 2, 1, TypeKind::Signed),
    ty("u2", 2, 1, TypeKind::Unsigned),
    ty("b1", 1, 1, TypeKind::Bits),
    ty("b1024", 1024, 1, TypeKind::Bits),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// 5.2.4: a packed type is as wide as its elements, those of six bits each in a byte of their own.
    #[test]
    fn packed_types_are_as_wide_as_their_parts() {
        for ty in TYPES {
            let element = ty.element();
            let each = if element.bits == 6 && ty.parts > 1 { 8 } else { element.bits };
            assert_eq!(ty.bits, each * ty.parts, "{}", ty.name);
            assert_eq!(element.parts, 1, "{}", ty.name);
            assert_eq!(Type::named(ty.name), Some(*ty));
        }
        assert_eq!(Type::named("aligned"), None);
    }
}
