//! Who runs a body, and which values may leave it. Language reference, Who runs a body.
//!
//! In a warp probe all lanes compute, but one elected lane saves: a value that differs between lanes would be one lane's,
//! recorded as the warp's, without a sign. So it is refused where it would be saved.

use super::Checker;
use crate::checked::Expr;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::Unit;

impl Checker<'_, '_> {
    /// Refuses a varying value as the field of a record of a warp or block probe.
    pub(super) fn must_be_uniform(&mut self, expr: &Expr) {
        let lanes = format!("save it as `lanes<{}>`, ", expr.ty.word());
        self.uniform_effect(expr, "saves one lane's", &lanes);
    }

    /// Refuses a varying value as what a warp or block probe adds to a table.
    pub(super) fn must_be_uniform_to_be_added(&mut self, expr: &Expr) {
        self.uniform_effect(expr, "adds one lane's", "");
    }

    fn uniform_effect(&mut self, expr: &Expr, does: &str, otherwise: &str) {
        if self.scope.unit == Unit::Thread || !expr.varying {
            return;
        }
        let (name, span) = self.varying_part(expr);
        let unit = self.scope.unit.word();
        let diagnostic =
            Diagnostic::error("varying-value", span, format!("`{name}` differs from lane to lane"))
                .label(format!("a {unit} probe {does}"))
                .help(format!(
                    "reduce it (`first(x)`, `lane_sum(x)` …), {otherwise}or make this a thread probe"
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
            match part.operands().into_iter().find(|operand| operand.varying) {
                Some(operand) => part = operand,
                None => return (part.span.of(self.text).to_owned(), part.span),
            }
        }
    }
}
