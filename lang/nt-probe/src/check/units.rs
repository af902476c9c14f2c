//! Who runs a body, and which values may leave it. Language reference, Who runs a body.
//!
//! In a warp probe all lanes compute, but one elected lane saves: a value that differs between lanes would be one lane's,
//! recorded as the warp's, without a sign. So it is refused where it would be saved.

use super::Checker;
use crate::checked::{Expr, Kind};
use nt_diag::{Diagnostic, Span};
use nt_ir::program::Unit;

impl Checker<'_, '_> {
    /// Refuses a varying value as an effect of a warp or block probe.
    pub(super) fn must_be_uniform(&mut self, expr: &Expr) {
        if self.scope.unit == Unit::Thread || !expr.varying {
            return;
        }
        let (name, span) = self.varying_part(expr);
        let unit = self.scope.unit.word();
        let diagnostic = Diagnostic::error(
            "varying-value",
            span,
            format!("`{name}` differs from lane to lane"),
        )
        .label(format!("a {unit} probe saves one lane's"))
        .help(format!(
            "reduce it (`first(x)`, `lane_sum(x)` …), save it as `lanes<{}>`, or make this a thread probe",
            expr.ty.word()
        ));
        self.found.push(diagnostic);
    }

    /// Refuses a varying condition of `if` in a warp or block probe.
    pub(super) fn must_be_uniform_condition(&mut self, expr: &Expr) {
        if self.scope.unit == Unit::Thread || !expr.varying {
            return;
        }
        let (name, span) = self.varying_part(expr);
        let unit = self.scope.unit.word();
        let diagnostic =
            Diagnostic::error("varying-value", span, format!("`{name}` differs from lane to lane"))
                .label(format!("`if` in a {unit} probe decides for all lanes"))
                .help("ask for `any(c)` or `all(c)`, or move the condition to the predicate: `/c/ { … }`");
        self.found.push(diagnostic);
    }

    /// The first part of `expr` that makes it vary: its text and place.
    fn varying_part(&self, expr: &Expr) -> (String, Span) {
        let mut part = expr;
        loop {
            let operands: Vec<&Expr> = match &part.kind {
                Kind::Const(_) | Kind::Builtin(_) | Kind::State(_) | Kind::Let(_) => Vec::new(),
                Kind::Unary(_, a) | Kind::Cast(a) | Kind::Bits(a) => vec![a],
                Kind::Binary(_, a, b) | Kind::Compare(_, a, b) => vec![a, b],
                Kind::Select(c, a, b) => vec![c, a, b],
            };
            match operands.into_iter().find(|operand| operand.varying) {
                Some(operand) => part = operand,
                None => return (part.span.of(self.text).to_owned(), part.span),
            }
        }
    }
}
