//! Constants: folded before anything else, in any order, each once.

use super::{Checker, Value};
use crate::ast::{Binding, Expr};
use crate::checked::Kind;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::Type;

/// How long a chain of constants may be, each defined by the next.
const CHAIN: usize = 100;

/// The constants of a program.
#[derive(Default)]
pub(super) struct Constants<'c, 's> {
    list: Vec<(&'c Binding<'s>, Progress)>,
    /// How many are being folded now.
    open: usize,
}

enum Progress {
    New,
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
    /// Folds all constants, used or not.
    pub(super) fn fold_constants(&mut self) {
        for index in 0..self.consts.list.len() {
            self.const_value(index, Span::default());
        }
    }

    /// The value of constant `index`, which is used at `span`.
    pub(super) fn const_value(&mut self, index: usize, span: Span) -> Value {
        let Some((binding, progress)) = self.consts.list.get_mut(index) else { return Value::Bad };
        let binding = *binding;
        match progress {
            Progress::Done(value) => return value.clone().at(span),
            Progress::Open => {
                let message = format!("`{}` is defined by itself", binding.name.text);
                self.found.push(
                    Diagnostic::error("not-constant", span, message).note_at(binding.span, "defined here"),
                );
                return Value::Bad;
            }
            Progress::New => *progress = Progress::Open,
        }
        let value = if self.consts.open < CHAIN {
            self.consts.open += 1;
            let value = self.fold(binding);
            self.consts.open -= 1;
            value
        } else {
            let message = format!("a chain of more than {CHAIN} constants, each defined by the next");
            self.found.push(Diagnostic::error("too-deep", binding.span, message));
            Value::Bad
        };
        if let Some((_, progress)) = self.consts.list.get_mut(index) {
            *progress = Progress::Done(value.clone());
        }
        value.at(span)
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
    fn at(self, span: Span) -> Self {
        match self {
            Value::Literal(literal) => Value::Literal(super::Literal { span, ..literal }),
            Value::Typed(expr) => Value::Typed(crate::checked::Expr { span, ..expr }),
            Value::Bad => Value::Bad,
        }
    }
}
