//! Which types convert into which, and which type two operands meet in. Language reference, Types and expressions.

use nt_ir::program::Type;

/// Does every value of `from` have its like in `to`, so that the conversion is made silently?
pub(super) fn widens(from: Type, to: Type) -> bool {
    if from == to || (from == Type::Ptr && to == Type::U64) {
        return true;
    }
    let unsigned = |ty: Type| ty.is_unsigned() && ty != Type::Ptr;
    let wider = from.bits() < to.bits();
    wider && ((unsigned(from) && (unsigned(to) || to.is_signed())) || (from.is_signed() && to.is_signed()))
}

/// The narrowest type that holds both: `u32` and `s32` meet in `s64`; `u64` and `s64` in none.
pub(super) fn common(a: Type, b: Type) -> Option<Type> {
    const BY_WIDTH: [Type; 9] =
        [Type::U8, Type::S8, Type::U16, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64, Type::Ptr];
    if a == b {
        return Some(a);
    }
    BY_WIDTH.into_iter().find(|&ty| widens(a, ty) && widens(b, ty))
}

/// The type that arithmetic on `ty` is done in: neither machine has less than 32 bits.
pub(super) fn promoted(ty: Type) -> Type {
    match ty {
        Type::U8 | Type::U16 => Type::U32,
        Type::S8 | Type::S16 => Type::S32,
        other => other,
    }
}

/// Does the integer `value` fit `ty`? A value that a `~` had a part in may also be the bits of one.
pub(super) fn fits(value: i128, complement: bool, ty: Type) -> bool {
    let bits = ty.bits();
    let (low, high) =
        if ty.is_signed() { (-(1 << (bits - 1)), 1 << (bits - 1)) } else { (0, 1_i128 << bits) };
    (low..high).contains(&value) || (complement && (-(1_i128 << bits)..0).contains(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_loses_nothing_is_silent() {
        assert!(widens(Type::U8, Type::U64) && widens(Type::U32, Type::S64) && widens(Type::Ptr, Type::U64));
        assert!(
            !widens(Type::U32, Type::S32) && !widens(Type::S8, Type::U64) && !widens(Type::U64, Type::Ptr)
        );
        assert!(!widens(Type::Bool, Type::U32) && !widens(Type::U32, Type::Bool));
    }

    #[test]
    fn operands_meet_in_the_narrowest_type() {
        assert_eq!(common(Type::U32, Type::S32), Some(Type::S64));
        assert_eq!(common(Type::U8, Type::S8), Some(Type::S16));
        assert_eq!(common(Type::U8, Type::U32), Some(Type::U32));
        assert_eq!(common(Type::U64, Type::S64), None);
        assert_eq!(common(Type::U64, Type::S8), None);
        assert_eq!(common(Type::Ptr, Type::U32), Some(Type::U64));
        assert_eq!(common(Type::Bool, Type::U8), None);
    }

    #[test]
    fn literals_fit_or_do_not() {
        assert!(fits(255, false, Type::U8) && !fits(256, false, Type::U8) && !fits(-1, false, Type::U8));
        assert!(fits(-128, false, Type::S8) && !fits(128, false, Type::S8));
        assert!(fits(-128, true, Type::U64) && !fits(-257, true, Type::U8));
        assert!(fits(u64::MAX.into(), false, Type::U64) && !fits(1 << 64, false, Type::U64));
    }
}
