//! Constants: folded before anything else, in any order, each once.

use super::{Checker, Global, Value};
use crate::ast::{Binding, Expr, ExprKind};
use crate::checked::Kind;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::Type;

/// The constants of a program.
#[derive(Default)]
pub(super) struct Constants<'c, 's> {
    list: Vec<(&'c Binding<'s>, Progress)>,
}

enum Progress {
    New,
    /// What it is made of is being folded.
    Open,
    Done(Value),
}

impl<'c, 's> Constants<'c, 's> {
    pub(super) fn add(&mut self, binding: &'c Binding<'s>) -> usize {
        self.list.push((binding, Progress::New));
        self.list.len() - 1
    }
}

impl<'s> Checker<'_, 's> {
    /// Folds all constants, used or not, each after those it is made of. Chains of them may be long, so this is no recursion.
    pub(super) fn fold_constants(&mut self) {
        for first in 0..self.consts.list.len() {
            let mut open = vec![first];
            while let Some(&index) = open.last() {
                let Some((binding, progress)) = self.consts.list.get_mut(index) else { break };
                let binding = *binding;
                match progress {
                    Progress::New => {
                        *progress = Progress::Open;
                        open.extend(self.unfolded(binding));
                    }
                    Progress::Open => {
                        let value = self.fold(binding);
                        if let Some((_, progress)) = self.consts.list.get_mut(index) {
                            *progress = Progress::Done(value);
                        }
                        open.pop();
                    }
                    Progress::Done(_) => {
                        open.pop();
                    }
                }
            }
        }
    }

    /// The constants that `binding` is made of and that nobody has folded, or begun to fold, yet.
    fn unfolded(&self, binding: &Binding<'s>) -> Vec<usize> {
        let mut indices = Vec::new();
        let mut exprs: Vec<&Expr<'s>> = binding.value.iter().collect();
        while let Some(expr) = exprs.pop() {
            match &expr.kind {
                ExprKind::Name(word) => {
                    if let Some((Global::Const(index), _)) = self.globals.get(word.text)
                        && let Some((_, Progress::New)) = self.consts.list.get(*index)
                    {
                        indices.push(*index);
                    }
                }
                ExprKind::Call(_, arguments) => {
                    exprs.extend(arguments.iter().map(|argument| &argument.value));
                }
                ExprKind::Field(a, _)
                | ExprKind::Unary(_, a)
                | ExprKind::Cast(a, _)
                | ExprKind::Bits(a, _) => exprs.push(a),
                ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => exprs.extend([&**a, &**b]),
                ExprKind::Select(a, b, c) => exprs.extend([&**a, &**b, &**c]),
                ExprKind::Int(_)
                | ExprKind::Float(_)
                | ExprKind::Str(_)
                | ExprKind::Bool(_)
                | ExprKind::Param(_) => {}
            }
        }
        indices
    }

    /// The value of constant `index`, which is used at `span`.
    pub(super) fn const_value(&mut self, index: usize, span: Span) -> Value {
        match self.consts.list.get(index) {
            Some((_, Progress::Done(value))) => value.clone().at(span),
            Some((binding, _)) => {
                let message = format!("`{}` is defined by itself", binding.name.text);
                self.found.push(
                    Diagnostic::error("not-constant", span, message).note_at(binding.span, "defined here"),
                );
                Value::Bad
            }
            None => Value::Bad,
        }
    }

    fn fold(&mut self, binding: &Binding<'s>) -> Value {
        let Some(expr) = &binding.value else { return Value::Bad };
        let ty = match binding.ty {
            Some(word) => match self.type_named(word) {
                Some(ty) => Some(ty),
                None => return Value::Bad,
            },
            None => None,
        };
        let value = self.expr(expr);
        let value = match ty {
            Some(ty) => self.coerce(value, ty).map_or(Value::Bad, Value::Typed),
            None => value,
        };
        match value {
            Value::Typed(expr) if expr.constant().is_none() => {
                self.not_constant(expr.span);
                Value::Bad
            }
            Value::Choice(choice) => {
                self.not_constant(choice.span);
                Value::Bad
            }
            Value::Glob(_, span) => {
                self.not_yet(span, super::exprs::STRINGS);
                Value::Bad
            }
            value => value,
        }
    }

    /// `expr` as a constant of type `ty`, in canonical form.
    pub(super) fn constant_of(&mut self, expr: &Expr<'s>, ty: Type) -> Option<u64> {
        let value = self.expr(expr);
        let expr = self.coerce(value, ty)?;
        match expr.kind {
            Kind::Const(bits) => Some(bits),
            _ => {
                self.not_constant(expr.span);
                None
            }
        }
    }

    fn not_constant(&mut self, span: Span) {
        let diagnostic = Diagnostic::error(
            "not-constant",
            span,
            "only known when the kernel runs, where a constant is wanted",
        )
        .help("constants are made of literals and other constants");
        self.found.push(diagnostic);
    }
}

impl Value {
    /// The same value, used at `span`.
    pub(super) fn at(self, span: Span) -> Self {
        match self {
            Value::Literal(literal) => Value::Literal(super::Literal { span, ..literal }),
            Value::Typed(expr) => Value::Typed(crate::checked::Expr { span, ..expr }),
            Value::Choice(choice) => Value::Choice(Box::new(super::Choice { span, ..*choice })),
            Value::Text(key, _) => Value::Text(key, span),
            Value::Open(operand, _) => Value::Open(operand, span),
            Value::Glob(glob, _) => Value::Glob(glob, span),
            Value::Bad => Value::Bad,
        }
    }
}
