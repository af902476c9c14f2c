//! Operators: how operands meet, what is folded, what is refused. Language reference, Types and expressions.

use super::conversions::convert;
use super::types::{common, promoted};
use super::{Checker, Literal, Value};
use crate::ast::{BinaryOp, UnaryOp};
use crate::checked::{self, Kind};
use nt_diag::{Diagnostic, Span};
use nt_ir::eval;
use nt_ir::program::{self, CompareOp, Type};

const WIDE_DIVISIONS: &str = "divisions of 64 bits by what is no power of two";

/// The type in which two operands of arithmetic meet.
fn arithmetic(a: Type, b: Type) -> Option<Type> {
    common(a, b).filter(|ty| ty.is_integer()).map(promoted)
}

/// The same, where addresses stay addresses: `addr + 8`, `addr & ~127`.
fn address_arithmetic(a: Type, b: Type) -> Option<Type> {
    match (a, b) {
        (Type::Ptr, Type::Ptr) => Some(Type::U64),
        (Type::Ptr, other) | (other, Type::Ptr) if other.is_integer() => Some(Type::Ptr),
        _ => arithmetic(a, b),
    }
}

/// Addresses count as numbers.
fn plain_arithmetic(a: Type, b: Type) -> Option<Type> {
    let number = |ty| if ty == Type::Ptr { Type::U64 } else { ty };
    arithmetic(number(a), number(b))
}

impl Checker<'_, '_> {
    pub(super) fn unary(&mut self, op: UnaryOp, value: Value, span: Span) -> Value {
        let value = match (op, value) {
            (_, Value::Bad) => return Value::Bad,
            (UnaryOp::Neg, Value::Literal(a)) => return self.small(-a.value, a.complement, span),
            (UnaryOp::Complement, Value::Literal(a)) => return self.small(-a.value - 1, true, span),
            (_, value) => value,
        };
        if op == UnaryOp::Not {
            let Some(expr) = self.condition(value) else { return Value::Bad };
            return Value::Typed(unary(program::UnaryOp::Not, expr, span));
        }
        let Some(expr) = self.settle(value) else { return Value::Bad };
        if !expr.ty.is_integer() {
            let message = format!("`{}` of a bool", op.sign());
            self.found
                .push(Diagnostic::error("type-mismatch", span, message).help("`!` turns a condition round"));
            return Value::Bad;
        }
        let ty = plain_arithmetic(expr.ty, expr.ty).unwrap_or(expr.ty);
        let op = if op == UnaryOp::Neg { program::UnaryOp::Neg } else { program::UnaryOp::Not };
        Value::Typed(unary(op, convert(expr, ty), span))
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value, span: Span) -> Value {
        if let (Value::Literal(a), Value::Literal(b)) = (&a, &b) {
            return self.literals(op, *a, *b, span);
        }
        if let (Value::Text(what, _), Value::Glob(glob, _)) | (Value::Glob(glob, _), Value::Text(what, _)) =
            (&a, &b)
        {
            return self.compare_text(op, *what, glob, span);
        }
        match op {
            BinaryOp::LogicAnd => self.logic(program::BinaryOp::And, a, b, span),
            BinaryOp::LogicOr => self.logic(program::BinaryOp::Or, a, b, span),
            BinaryOp::Eq => self.compare(CompareOp::Eq, a, b, span),
            BinaryOp::Ne => self.compare(CompareOp::Ne, a, b, span),
            BinaryOp::Lt => self.compare(CompareOp::Lt, a, b, span),
            BinaryOp::Le => self.compare(CompareOp::Le, a, b, span),
            BinaryOp::Gt => self.compare(CompareOp::Gt, a, b, span),
            BinaryOp::Ge => self.compare(CompareOp::Ge, a, b, span),
            BinaryOp::Shl => self.shift(program::BinaryOp::Shl, a, b, span),
            BinaryOp::Shr => self.shift(program::BinaryOp::Shr, a, b, span),
            BinaryOp::Div => self.divide(program::BinaryOp::Div, a, b, span),
            BinaryOp::Rem => self.divide(program::BinaryOp::Rem, a, b, span),
            BinaryOp::Add => self.arithmetic(program::BinaryOp::Add, a, b, address_arithmetic, span),
            BinaryOp::Sub => self.arithmetic(program::BinaryOp::Sub, a, b, address_arithmetic, span),
            BinaryOp::And => self.arithmetic(program::BinaryOp::And, a, b, address_arithmetic, span),
            BinaryOp::Or => self.arithmetic(program::BinaryOp::Or, a, b, plain_arithmetic, span),
            BinaryOp::Xor => self.arithmetic(program::BinaryOp::Xor, a, b, plain_arithmetic, span),
            BinaryOp::Mul => self.arithmetic(program::BinaryOp::Mul, a, b, plain_arithmetic, span),
        }
    }

    /// Both operands in the type in which `how` lets them meet; a literal takes the other's.
    pub(super) fn meet(
        &mut self,
        a: Value,
        b: Value,
        how: fn(Type, Type) -> Option<Type>,
        span: Span,
    ) -> (Option<checked::Expr>, Option<checked::Expr>) {
        let (a, b) = match (a, b) {
            (Value::Bad, _) | (_, Value::Bad) => return (None, None),
            (Value::Typed(a), b @ (Value::Literal(_) | Value::Choice(_))) => {
                let Some(b) = self.coerce(b, a.ty) else { return (None, None) };
                (a, b)
            }
            (a @ (Value::Literal(_) | Value::Choice(_)), Value::Typed(b)) => {
                let Some(a) = self.coerce(a, b.ty) else { return (None, None) };
                (a, b)
            }
            (a, b) => match (self.settle(a), self.settle(b)) {
                (Some(a), Some(b)) => (a, b),
                _ => return (None, None),
            },
        };
        // An address and a literal that took its type are an address and a number.
        let types = match (a.ty, b.ty) {
            (Type::Ptr, Type::Ptr) if b.constant().is_some() => (Type::Ptr, Type::U64),
            (Type::Ptr, Type::Ptr) if a.constant().is_some() => (Type::U64, Type::Ptr),
            types => types,
        };
        if let Some(ty) = how(types.0, types.1) {
            return (Some(convert(a, ty)), Some(convert(b, ty)));
        }
        let message = format!("{} and {} have no type in common", a.ty.word(), b.ty.word());
        let diagnostic = Diagnostic::error("type-mismatch", span, message);
        let diagnostic = match (a.ty, b.ty) {
            (Type::Bool, Type::Bool) => {
                diagnostic.help("conditions are joined by `&&`, `||`, `!`, and compared by `==`, `!=`")
            }
            (Type::Bool, other) => diagnostic.help(format!(
                "write `{} as {}`, which is 0 or 1",
                self.shown(a.span),
                other.word()
            )),
            (other, Type::Bool) => diagnostic.help(format!(
                "write `{} as {}`, which is 0 or 1",
                self.shown(b.span),
                other.word()
            )),
            (x, y) if x.is_signed() => diagnostic.help(format!(
                "write `{} as {}`, or `{} as {}`",
                self.shown(a.span),
                y.word(),
                self.shown(b.span),
                x.word()
            )),
            (x, y) => diagnostic.help(format!(
                "write `{} as {}`, or `{} as {}`",
                self.shown(b.span),
                x.word(),
                self.shown(a.span),
                y.word()
            )),
        };
        self.found.push(diagnostic);
        (None, None)
    }

    fn arithmetic(
        &mut self,
        op: program::BinaryOp,
        a: Value,
        b: Value,
        how: fn(Type, Type) -> Option<Type>,
        span: Span,
    ) -> Value {
        match self.meet(a, b, how, span) {
            (Some(a), Some(b)) => Value::Typed(binary(op, a, b, span)),
            _ => Value::Bad,
        }
    }

    pub(super) fn extreme(&mut self, op: program::BinaryOp, a: Value, b: Value, span: Span) -> Value {
        if let (Value::Literal(a), Value::Literal(b)) = (&a, &b) {
            let least = op == program::BinaryOp::Min;
            let literal = if (a.value < b.value) == least { *a } else { *b };
            return Value::Literal(Literal { span, ..literal });
        }
        self.arithmetic(op, a, b, plain_arithmetic, span)
    }

    fn logic(&mut self, op: program::BinaryOp, a: Value, b: Value, span: Span) -> Value {
        match (self.condition(a), self.condition(b)) {
            (Some(a), Some(b)) => Value::Typed(binary(op, a, b, span)),
            _ => Value::Bad,
        }
    }

    fn compare(&mut self, op: CompareOp, a: Value, b: Value, span: Span) -> Value {
        if let (Value::Open(a, _), Value::Open(b, _)) = (&a, &b) {
            return self.compare_open(op, *a, *b, span);
        }
        // Conditions are equal where they do not differ.
        let conditions = |value: &Value| matches!(value, Value::Typed(expr) if expr.ty == Type::Bool);
        if conditions(&a) && conditions(&b) && matches!(op, CompareOp::Eq | CompareOp::Ne) {
            let (Some(a), Some(b)) = (self.settle(a), self.settle(b)) else { return Value::Bad };
            let differ = binary(program::BinaryOp::Xor, a, b, span);
            return Value::Typed(match op {
                CompareOp::Eq => unary(program::UnaryOp::Not, differ, span),
                _ => differ,
            });
        }
        let (Some(a), Some(b)) = self.meet(a, b, plain_arithmetic, span) else { return Value::Bad };
        let (varying, folded) = (a.varying || b.varying, fold_compare(op, &a, &b));
        let kind = folded.map_or_else(
            || Kind::Compare(op, Box::new(a), Box::new(b)),
            |holds| Kind::Const(u64::from(holds)),
        );
        Value::Typed(checked::Expr { kind, ty: Type::Bool, varying, span })
    }

    /// The amount of a shift may be any integer, and one by the width or more shifts everything out. The IR's is a `u32`: a
    /// wider one is cut at 255, where nothing is left of any type.
    fn shift(&mut self, op: program::BinaryOp, a: Value, b: Value, span: Span) -> Value {
        if let Value::Literal(amount) = &b
            && amount.value < 0
        {
            let message = format!("a shift by {}", amount.value);
            self.found
                .push(Diagnostic::error("type-mismatch", amount.span, message).help("shift the other way"));
            return Value::Bad;
        }
        let (Some(a), Some(b)) = (self.settle(a), self.settle(b)) else { return Value::Bad };
        let Some(ty) = plain_arithmetic(a.ty, a.ty).filter(|_| b.ty.is_integer()) else {
            let message = "a shift takes two integers".to_owned();
            return self.wrong("type-mismatch", span, message);
        };
        let place = b.span;
        // Negative amounts, as bits, are very large ones.
        let amount = match promoted(b.ty) {
            Type::U32 => convert(b, Type::U32),
            Type::S32 => bits_of(convert(b, Type::S32), Type::U32),
            wide => {
                let wide = if wide == Type::U64 { b } else { bits_of(b, Type::U64) };
                let most =
                    checked::Expr { kind: Kind::Const(255), ty: Type::U64, varying: false, span: place };
                convert(binary(program::BinaryOp::Min, wide, most, place), Type::U32)
            }
        };
        Value::Typed(binary(op, convert(a, ty), amount, span))
    }

    /// Division by a variable is done in 32 bits only; 64 bits by what is known becomes a shift.
    fn divide(&mut self, op: program::BinaryOp, a: Value, b: Value, span: Span) -> Value {
        let (Some(a), Some(b)) = self.meet(a, b, plain_arithmetic, span) else { return Value::Bad };
        let wide = a.ty.bits() == 64;
        match b.constant() {
            Some(0) => {
                self.found.push(Diagnostic::error("divisor", b.span, "a division by zero"));
                return Value::Bad;
            }
            Some(divisor) if wide && a.constant().is_none() && !divisor.is_power_of_two() => {
                self.not_yet(span, WIDE_DIVISIONS);
                return Value::Bad;
            }
            None if wide && b.is_static() => {
                self.not_yet(span, WIDE_DIVISIONS);
                return Value::Bad;
            }
            None if wide => {
                let message = "a division of 64 bits by what is not a constant";
                let diagnostic = Diagnostic::error("divisor", b.span, message)
                    .note("GPUs have no such instruction, and a call may not be put into a kernel")
                    .help(format!(
                        "divide in 32 bits: `{} as u32`, `{} as u32`",
                        self.shown(a.span),
                        self.shown(b.span)
                    ))
                    .help("or save both and divide when reading");
                self.found.push(diagnostic);
                return Value::Bad;
            }
            _ => {}
        }
        Value::Typed(binary(op, a, b, span))
    }

    /// Two literals, in exact arithmetic.
    fn literals(&mut self, op: BinaryOp, a: Literal, b: Literal, span: Span) -> Value {
        let truth = |holds: bool| {
            Value::Typed(checked::Expr {
                kind: Kind::Const(u64::from(holds)),
                ty: Type::Bool,
                varying: false,
                span,
            })
        };
        let (x, y) = (a.value, b.value);
        // Literals are below 2^65 in magnitude, so only products and shifts can leave an i128.
        let shift = u32::try_from(y).unwrap_or(u32::MAX).min(127);
        let value = match op {
            BinaryOp::LogicAnd | BinaryOp::LogicOr => {
                self.condition(Value::Literal(a));
                self.condition(Value::Literal(b));
                return Value::Bad;
            }
            BinaryOp::Eq => return truth(x == y),
            BinaryOp::Ne => return truth(x != y),
            BinaryOp::Lt => return truth(x < y),
            BinaryOp::Le => return truth(x <= y),
            BinaryOp::Gt => return truth(x > y),
            BinaryOp::Ge => return truth(x >= y),
            BinaryOp::Shl | BinaryOp::Shr if y < 0 => {
                return self.shift(program::BinaryOp::Shl, Value::Literal(a), Value::Literal(b), span);
            }
            BinaryOp::Div | BinaryOp::Rem if y == 0 => {
                self.found.push(Diagnostic::error("divisor", b.span, "a division by zero"));
                return Value::Bad;
            }
            BinaryOp::Shl => {
                if x == 0 {
                    Some(0)
                } else {
                    x.checked_mul(1_i128.checked_shl(shift).filter(|_| shift < 64).unwrap_or(0))
                        .filter(|&shifted| shifted != 0)
                }
            }
            BinaryOp::Shr => Some(x >> shift),
            BinaryOp::Or => Some(x | y),
            BinaryOp::Xor => Some(x ^ y),
            BinaryOp::And => Some(x & y),
            BinaryOp::Add => Some(x + y),
            BinaryOp::Sub => Some(x - y),
            BinaryOp::Mul => x.checked_mul(y),
            BinaryOp::Div => Some(x / y),
            BinaryOp::Rem => Some(x % y),
        };
        match value {
            Some(value) => self.small(value, a.complement || b.complement, span),
            None => self.wrong("bad-number", span, "this does not fit 64 bits".to_owned()),
        }
    }

    /// A literal that still fits 64 bits, with or without a sign.
    fn small(&mut self, value: i128, complement: bool, span: Span) -> Value {
        if (-(1_i128 << 64)..1_i128 << 64).contains(&value) {
            return Value::Literal(Literal { value, complement, span });
        }
        self.wrong("bad-number", span, "this does not fit 64 bits".to_owned())
    }
}

fn unary(op: program::UnaryOp, a: checked::Expr, span: Span) -> checked::Expr {
    let (ty, varying) = (a.ty, a.varying);
    let folded = a.constant().and_then(|bits| eval::unary(op, ty, bits));
    let kind = folded.map_or_else(|| Kind::Unary(op, Box::new(a)), Kind::Const);
    checked::Expr { kind, ty, varying, span }
}

fn binary(op: program::BinaryOp, a: checked::Expr, b: checked::Expr, span: Span) -> checked::Expr {
    let (ty, varying) = (a.ty, a.varying || b.varying);
    let folded = match (a.constant(), b.constant()) {
        (Some(x), Some(y)) => eval::binary(op, ty, x, y),
        _ => None,
    };
    let kind = folded.map_or_else(|| Kind::Binary(op, Box::new(a), Box::new(b)), Kind::Const);
    checked::Expr { kind, ty, varying, span }
}

fn fold_compare(op: CompareOp, a: &checked::Expr, b: &checked::Expr) -> Option<bool> {
    eval::compare(op, a.ty, a.constant()?, b.constant()?)
}

fn bits_of(a: checked::Expr, ty: Type) -> checked::Expr {
    let (varying, span) = (a.varying, a.span);
    let kind = match a.kind {
        Kind::Const(bits) => Kind::Const(ty.canonical(bits)),
        _ => Kind::Bits(Box::new(a)),
    };
    checked::Expr { kind, ty, varying, span }
}
