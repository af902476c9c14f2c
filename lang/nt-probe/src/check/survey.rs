//! Names what is not compiled yet in bodies that are not checked, because their tracepoint is refused already: so that
//! `--list` tells all that a program waits for, and nobody removes one obstacle to meet the next.
//!
//! It only recognises; whether names and types hold is said once the tracepoint is compiled.

use super::Checker;
use super::names::{self, Meaning};
use crate::ast::{Argument, Expr, ExprKind, Probe, Stmt};

impl<'s> Checker<'_, 's> {
    pub(super) fn survey(&mut self, probe: &Probe<'s>) {
        if let Some(predicate) = &probe.predicate {
            self.survey_expr(predicate);
        }
        self.survey_body(&probe.body);
    }

    fn survey_body(&mut self, stmts: &[Stmt<'s>]) {
        for stmt in stmts {
            match stmt {
                Stmt::Let(binding) => binding.value.iter().for_each(|value| self.survey_expr(value)),
                Stmt::Assign { value, .. } => self.survey_expr(value),
                Stmt::Slot { value, span, .. } => {
                    self.not_yet(*span, super::stmts::SLOTS);
                    self.survey_expr(value);
                }
                Stmt::Method { arguments, .. } => self.survey_arguments(arguments),
                Stmt::Aggregate { keys, function, arguments, .. } => {
                    if let Some(what) = super::aggregates::later(function.text) {
                        self.not_yet(function.span, what);
                    }
                    keys.iter().for_each(|key| self.survey_expr(key));
                    self.survey_arguments(arguments);
                }
                Stmt::If { condition, then, otherwise, .. } => {
                    self.survey_expr(condition);
                    self.survey_body(then);
                    self.survey_body(otherwise);
                }
                Stmt::Asm { span, .. } => self.not_yet(*span, super::stmts::ASM),
                Stmt::Increment { .. } | Stmt::Bad(_) => {}
            }
        }
    }

    fn survey_arguments(&mut self, arguments: &[Argument<'s>]) {
        arguments.iter().for_each(|argument| self.survey_expr(&argument.value));
    }

    fn survey_expr(&mut self, expr: &Expr<'s>) {
        match &expr.kind {
            ExprKind::Name(word) | ExprKind::Call(word, _) => {
                match names::find(word.text).map(|given| given.meaning) {
                    Some(Meaning::NotYet(what)) => self.not_yet(expr.span, what),
                    Some(Meaning::Reducer) => self.not_yet(expr.span, super::exprs::REDUCERS),
                    _ => {}
                }
                if let ExprKind::Call(_, arguments) = &expr.kind {
                    self.survey_arguments(arguments);
                }
            }
            ExprKind::Float(_) => self.not_yet(expr.span, super::exprs::FLOATS),
            ExprKind::Str(_) => self.not_yet(expr.span, super::exprs::STRINGS),
            ExprKind::Param(_) => self.not_yet(expr.span, super::exprs::ARGUMENTS),
            ExprKind::Field(a, _) | ExprKind::Unary(_, a) => self.survey_expr(a),
            ExprKind::Cast(a, ty) | ExprKind::Bits(a, ty) => {
                self.survey_expr(a);
                if matches!(ty.text, "f16" | "bf16" | "f32" | "f64") {
                    self.not_yet(ty.span, super::exprs::FLOATS);
                }
            }
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => {
                self.survey_expr(a);
                self.survey_expr(b);
            }
            ExprKind::Select(a, b, c) => {
                self.survey_expr(a);
                self.survey_expr(b);
                self.survey_expr(c);
            }
            ExprKind::Int(_) | ExprKind::Bool(_) => {}
        }
    }
}
