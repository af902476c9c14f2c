//! What operations give for known operands: the arithmetic of the IR, stated once.
//!
//! The front end folds constants with it, the passes fold code with it, and a judge can compare machines with it.
//! Operands and results are in the form of [`Op::Const`](crate::program::Op::Const): cut to the type's width and
//! extended by its sign ([`Type::canonical`]). Floats are not evaluated: `None`.

use crate::program::{BinaryOp, CompareOp, Type, UnaryOp};

/// `-a`, `~a`, `!a`, in type `ty`.
pub fn unary(op: UnaryOp, ty: Type, a: u64) -> Option<u64> {
    if !is_exact(ty) {
        return None;
    }
    Some(ty.canonical(match op {
        UnaryOp::Neg => a.wrapping_neg(),
        UnaryOp::Not => !a,
    }))
}

/// `a op b`, both and the result of type `ty`; the amount of a shift is a `u32`.
pub fn binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> Option<u64> {
    if !is_exact(ty) {
        return None;
    }
    let signed = ty.is_signed();
    let (sa, sb) = (a as i64, b as i64);
    let result = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div if b == 0 => u64::MAX,
        BinaryOp::Div if signed => sa.wrapping_div(sb) as u64,
        BinaryOp::Div => a / b,
        BinaryOp::Rem if b == 0 => a,
        BinaryOp::Rem if signed => sa.wrapping_rem(sb) as u64,
        BinaryOp::Rem => a % b,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl if b >= u64::from(ty.bits()) => 0,
        BinaryOp::Shl => a << b,
        BinaryOp::Shr if signed => (sa >> b.min(63)) as u64,
        BinaryOp::Shr if b >= u64::from(ty.bits()) => 0,
        BinaryOp::Shr => a >> b,
        BinaryOp::Min if signed => sa.min(sb) as u64,
        BinaryOp::Min => a.min(b),
        BinaryOp::Max if signed => sa.max(sb) as u64,
        BinaryOp::Max => a.max(b),
    };
    Some(ty.canonical(result))
}

/// `a op b`, both of type `ty`.
pub fn compare(op: CompareOp, ty: Type, a: u64, b: u64) -> Option<bool> {
    if !is_exact(ty) {
        return None;
    }
    let order = if ty.is_signed() { (a as i64).cmp(&(b as i64)) } else { a.cmp(&b) };
    Some(match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
    })
}

/// `a`, of type `from`, as a value of type `to`.
pub fn cast(from: Type, to: Type, a: u64) -> Option<u64> {
    // Constants are extended by their own type's sign already, so cutting is all there is to do.
    (is_exact(from) && is_exact(to) && to != Type::Bool).then(|| to.canonical(a))
}

fn is_exact(ty: Type) -> bool {
    ty.is_integer() || ty == Type::Bool
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(value: i64) -> u64 {
        value as u64
    }

    #[test]
    fn arithmetic_wraps_at_the_width() {
        assert_eq!(binary(BinaryOp::Add, Type::U32, 0xffff_ffff, 2), Some(1));
        assert_eq!(binary(BinaryOp::Sub, Type::U64, 0, 1), Some(u64::MAX));
        assert_eq!(
            binary(BinaryOp::Mul, Type::S32, s(i64::from(i32::MIN)), s(-1)),
            Some(s(i64::from(i32::MIN)))
        );
        assert_eq!(unary(UnaryOp::Not, Type::U32, 0), Some(0xffff_ffff));
        assert_eq!(unary(UnaryOp::Not, Type::Bool, 1), Some(0));
    }

    #[test]
    fn shifts_by_the_width_or_more() {
        assert_eq!(binary(BinaryOp::Shl, Type::U32, 1, 31), Some(0x8000_0000));
        assert_eq!(binary(BinaryOp::Shl, Type::U32, 1, 32), Some(0));
        assert_eq!(binary(BinaryOp::Shr, Type::U64, u64::MAX, 64), Some(0));
        assert_eq!(binary(BinaryOp::Shr, Type::S32, s(-8), 1), Some(s(-4)));
        assert_eq!(binary(BinaryOp::Shr, Type::S32, s(-8), 99), Some(s(-1)));
    }

    #[test]
    fn division_by_zero_has_a_meaning() {
        assert_eq!(binary(BinaryOp::Div, Type::U32, 7, 0), Some(0xffff_ffff));
        assert_eq!(binary(BinaryOp::Rem, Type::U32, 7, 0), Some(7));
        assert_eq!(binary(BinaryOp::Div, Type::S32, s(-7), 2), Some(s(-3)));
        assert_eq!(binary(BinaryOp::Rem, Type::S32, s(-7), 2), Some(s(-1)));
        assert_eq!(binary(BinaryOp::Div, Type::S64, s(i64::MIN), s(-1)), Some(s(i64::MIN)));
    }

    #[test]
    fn order_follows_the_sign() {
        assert_eq!(compare(CompareOp::Lt, Type::S32, s(-1), 0), Some(true));
        assert_eq!(compare(CompareOp::Lt, Type::U32, 0xffff_ffff, 0), Some(false));
        assert_eq!(binary(BinaryOp::Max, Type::S32, s(-1), 0), Some(0));
        assert_eq!(compare(CompareOp::Lt, Type::F32, 0, 0), None);
    }

    #[test]
    fn casts_cut_and_extend() {
        assert_eq!(cast(Type::S32, Type::U64, s(-1)), Some(u64::MAX));
        assert_eq!(cast(Type::U32, Type::S64, 0xffff_ffff), Some(0xffff_ffff));
        assert_eq!(cast(Type::U64, Type::S8, 0x80), Some(s(-128)));
        assert_eq!(cast(Type::Bool, Type::U32, 1), Some(1));
    }
}
