//! From one type to another: silently where nothing is lost, by a cast where something may be.
//! Language reference, Types and expressions.

use super::exprs::STRINGS;
use super::types::{fits, widens};
use super::{Checker, Choice, Literal, Value};
use crate::checked::{self, Kind};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::eval;
use nt_ir::program::Type;

impl Checker<'_, '_> {
    /// A literal that stands alone is a `u64`, a negative one an `s64`.
    pub(super) fn settle(&mut self, value: Value) -> Option<checked::Expr> {
        match value {
            Value::Literal(literal) if literal.value < 0 && !literal.complement => {
                self.literal(literal, Type::S64)
            }
            Value::Literal(literal) => self.literal(literal, Type::U64),
            Value::Choice(choice) => {
                let ty = if choice.is_negative() { Type::S64 } else { Type::U64 };
                self.coerce(Value::Choice(choice), ty)
            }
            Value::Typed(expr) => Some(expr),
            other => self.no_value(&other),
        }
    }

    /// A text where a value is wanted; what is wrong already has been told.
    fn no_value<T>(&mut self, value: &Value) -> Option<T> {
        match value {
            Value::Text(key, span) => self.text_as_value(*key, *span),
            Value::Open(_, span) => self.open_as_value(*span),
            Value::Glob(_, span) => self.not_yet(*span, STRINGS),
            Value::Literal(_) | Value::Choice(_) | Value::Typed(_) | Value::Bad => {}
        }
        None
    }

    /// `value` as `ty`, if nothing is lost.
    pub(super) fn coerce(&mut self, value: Value, ty: Type) -> Option<checked::Expr> {
        let expr = match value {
            Value::Literal(literal) => return self.literal(literal, ty),
            Value::Choice(choice) => {
                let Choice { condition, a, b, span } = *choice;
                let (a, b) = (self.coerce(a, ty)?, self.coerce(b, ty)?);
                let varying = condition.varying;
                let kind = Kind::Select(Box::new(condition), Box::new(a), Box::new(b));
                return Some(checked::Expr { kind, ty, varying, span });
            }
            Value::Typed(expr) => expr,
            other => return self.no_value(&other),
        };
        if expr.ty == ty {
            return Some(expr);
        }
        if widens(expr.ty, ty) {
            return Some(convert(expr, ty));
        }
        let (from, to) = (expr.ty.word(), ty.word());
        let shown = self.shown(expr.span);
        let diagnostic = match (expr.ty, ty) {
            (_, Type::Bool) => {
                Diagnostic::error("type-mismatch", expr.span, format!("expected bool, found {from}"))
                    .help(format!("write `{shown} != 0`"))
            }
            (Type::Bool, _) => {
                Diagnostic::error("type-mismatch", expr.span, format!("expected {to}, found bool"))
                    .help(format!("write `{shown} as {to}`, which is 0 or 1"))
            }
            _ => Diagnostic::error("lossy-conversion", expr.span, format!("not every {from} is a {to}"))
                .help(format!("write `{shown} as {to}` if that is meant")),
        };
        self.found.push(diagnostic);
        None
    }

    /// Conditions are bool, and nothing else is taken for one.
    pub(super) fn condition(&mut self, value: Value) -> Option<checked::Expr> {
        let (span, ty) = match &value {
            Value::Typed(expr) if expr.ty == Type::Bool => return self.settle(value),
            Value::Typed(expr) => (expr.span, expr.ty.word()),
            Value::Literal(literal) => (literal.span, "a number"),
            Value::Choice(choice) => (choice.span, "a number"),
            other => return self.no_value(other),
        };
        let shown = self.shown(span);
        let diagnostic = Diagnostic::error("not-bool", span, format!("a condition is a bool, this is {ty}"))
            .help(format!("write `{shown} != 0`"));
        self.found.push(diagnostic);
        None
    }

    fn literal(&mut self, literal: Literal, ty: Type) -> Option<checked::Expr> {
        let Literal { value, complement, span } = literal;
        if ty == Type::Bool {
            let diagnostic = Diagnostic::error("type-mismatch", span, "expected bool, found a number")
                .help("write `true`, `false` or a comparison");
            self.found.push(diagnostic);
            return None;
        }
        if !ty.is_integer() || !fits(value, complement, ty) {
            let message = format!("`{value}` does not fit {}", ty.word());
            self.found.push(Diagnostic::error("type-mismatch", span, message));
            return None;
        }
        // Two's complement: the low 64 bits are the value's.
        let bits = ty.canonical(value as u64);
        Some(checked::Expr { kind: Kind::Const(bits), ty, varying: false, span })
    }

    pub(super) fn cast(&mut self, value: Value, word: Word<'_>, span: Span) -> Value {
        let ty = self.type_named(word);
        if let Value::Open(operand, _) = value {
            return ty.map_or(Value::Bad, |ty| self.open_cast(operand, false, ty, span));
        }
        let (Some(ty), Some(expr)) = (ty, self.settle(value)) else { return Value::Bad };
        if ty == Type::Bool && expr.ty != Type::Bool {
            let help = format!("write `{} != 0`", self.shown(expr.span));
            self.found
                .push(Diagnostic::error("type-mismatch", span, "a number is not cast to bool").help(help));
            return Value::Bad;
        }
        Value::Typed(checked::Expr { span, ..convert(expr, ty) })
    }

    pub(super) fn bits(&mut self, value: Value, word: Word<'_>, span: Span) -> Value {
        let ty = self.type_named(word);
        if let Value::Open(operand, _) = value {
            return ty.map_or(Value::Bad, |ty| self.open_cast(operand, true, ty, span));
        }
        let (Some(ty), Some(expr)) = (ty, self.settle(value)) else { return Value::Bad };
        if ty.bits() != expr.ty.bits() {
            let message =
                format!("{} has {} bits, {} has {}", expr.ty.word(), expr.ty.bits(), ty.word(), ty.bits());
            let help = format!("`{} as {}` converts the value", self.shown(expr.span), ty.word());
            self.found.push(Diagnostic::error("type-mismatch", span, message).help(help));
            return Value::Bad;
        }
        let varying = expr.varying;
        let kind = match expr.kind {
            Kind::Const(bits) => Kind::Const(ty.canonical(bits)),
            _ => Kind::Bits(Box::new(expr)),
        };
        Value::Typed(checked::Expr { kind, ty, varying, span })
    }
}

impl Choice {
    /// Is one of the integers below zero?
    fn is_negative(&self) -> bool {
        [&self.a, &self.b].into_iter().any(|value| match value {
            Value::Literal(literal) => literal.value < 0 && !literal.complement,
            Value::Choice(choice) => choice.is_negative(),
            _ => false,
        })
    }
}

/// `expr` converted to `ty`, whatever is lost; folded where it is known.
pub(super) fn convert(expr: checked::Expr, ty: Type) -> checked::Expr {
    if expr.ty == ty {
        return expr;
    }
    let (varying, span) = (expr.varying, expr.span);
    let folded = expr.constant().and_then(|bits| eval::cast(expr.ty, ty, bits));
    let kind = folded.map_or_else(|| Kind::Cast(Box::new(expr)), Kind::Const);
    checked::Expr { kind, ty, varying, span }
}
