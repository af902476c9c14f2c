//! Probes and statements. Language reference, State and let; Statements.

use super::{Checker, Global, Local, Scope, Value, duplicate, names, points};
use crate::ast::{BinaryOp, Binding, Expr, ExprKind, Probe, Stmt};
use crate::checked::{self, LetId};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{StateId, Type, Unit};

// Constructs that are not compiled yet, as messages call them.
pub(super) const SLOTS: &str = "stores of single fields (`map.field = …`)";
pub(super) const ASM: &str = "`asm` statements";

impl<'s> Checker<'_, 's> {
    /// One probe; `None` if nothing can be said about its body.
    pub(super) fn probe(&mut self, probe: &Probe<'s>) -> Option<checked::Probe> {
        let unit = probe.unit.map_or(Unit::Thread, |unit| unit.unit);
        let points = points::check(self, probe.unit, &probe.points);
        if unit == Unit::Block && !points.refused {
            self.not_yet(probe.span, "block probes (`block kernel:entry`)");
        }
        if points.refused || unit == Unit::Block {
            self.survey(probe);
            return None;
        }
        self.scope = Scope::new(unit, points.list.clone());
        let predicate = self.predicate(probe);
        let sample = self.sampled();
        self.scope.undecided = usize::from(predicate.as_ref().is_some_and(checked::Expr::asks_of_site));
        let body = self.body(&probe.body);
        Some(checked::Probe { unit, points: points.list, predicate, sample, body, span: probe.span })
    }

    fn body(&mut self, stmts: &[Stmt<'s>]) -> Vec<checked::Stmt> {
        let visible = self.scope.visible.len();
        let checked = stmts.iter().filter_map(|stmt| self.stmt(stmt)).collect();
        self.scope.visible.truncate(visible);
        checked
    }

    fn stmt(&mut self, stmt: &Stmt<'s>) -> Option<checked::Stmt> {
        match stmt {
            Stmt::Let(binding) => self.let_stmt(binding),
            Stmt::Assign { name, op: None, value, span } => {
                let value = self.expr(value);
                self.assign(*name, value, *span)
            }
            Stmt::Assign { name, op: Some(op), value, span } => self.update(*name, *op, value, *span),
            Stmt::Increment { name, span } => {
                let one = Value::Literal(super::Literal { value: 1, complement: false, span: *span });
                self.update_by(*name, BinaryOp::Add, one, *span)
            }
            Stmt::Method { map, method, arguments, span } => {
                if method.text == "save" {
                    return self.save(*map, arguments, *span);
                }
                if self.map_named(*map).is_some() {
                    let message = format!("maps have no `{}`", method.text);
                    let diagnostic = Diagnostic::error("unknown-name", method.span, message)
                        .suggest(method.text, ["save"])
                        .help("`save` is all that can be done to one");
                    self.found.push(diagnostic);
                }
                None
            }
            Stmt::Slot { map, span, .. } => {
                if self.map_named(*map).is_some() {
                    self.not_yet(*span, SLOTS);
                }
                None
            }
            Stmt::Aggregate { map, keys, function, arguments, span } => {
                self.aggregate(*map, keys, *function, arguments, *span)
            }
            Stmt::If { condition, then, otherwise, .. } => {
                let condition = self.expr(condition);
                let condition = self.condition(condition);
                if let Some(condition) = &condition {
                    self.must_be_uniform_condition(condition);
                }
                let asks = condition.as_ref().is_some_and(checked::Expr::asks_of_site);
                self.scope.undecided += usize::from(asks);
                let then = self.body(then);
                let otherwise = self.body(otherwise);
                self.scope.undecided -= usize::from(asks);
                Some(checked::Stmt::If { condition: condition?, then, otherwise })
            }
            Stmt::Asm { operands, span, .. } => {
                self.not_yet(*span, ASM);
                // What it gives is named further down.
                for operand in operands.iter().filter(|operand| operand.direction.text == "out") {
                    let id = LetId(self.scope.lets.len());
                    self.scope.lets.push(Local { name: operand.name, ty: None, varying: true });
                    self.scope.visible.push((operand.name.text, id));
                }
                None
            }
            Stmt::Bad(_) => None,
        }
    }

    fn let_stmt(&mut self, binding: &Binding<'s>) -> Option<checked::Stmt> {
        let name = binding.name;
        let value = self.expr(binding.value.as_ref()?);
        let value = match binding.ty {
            Some(word) => self.type_named(word).and_then(|ty| self.coerce(value, ty)),
            None => self.settle(value),
        };
        let first = self.scope.visible.iter().find(|(other, _)| *other == name.text);
        let first = first.and_then(|(_, id)| self.scope.lets.get(id.0)).map(|local| local.name.span);
        let first = first.or_else(|| self.globals.get(name.text).map(|(_, span)| *span));
        if let Some(given) = names::find(name.text) {
            self.given_twice(name, given);
        } else if let Some(first) = first {
            let diagnostic = duplicate(name, first);
            self.found.push(diagnostic);
        }
        if self.scope.lets.len() >= crate::lower::INSTRUCTIONS {
            if self.scope.lets.len() == crate::lower::INSTRUCTIONS {
                let message = format!("a probe has at most {} lets", crate::lower::INSTRUCTIONS);
                self.found.push(Diagnostic::error("budget", binding.span, message));
            }
            return None;
        }
        // Entered even if it is wrong, so that its uses are not unknown names.
        let id = LetId(self.scope.lets.len());
        let (ty, varying) =
            (value.as_ref().map(|value| value.ty), value.as_ref().is_some_and(|value| value.varying));
        self.scope.lets.push(Local { name, ty, varying });
        self.scope.visible.push((name.text, id));
        Some(checked::Stmt::Let { id, value: value?, span: binding.span })
    }

    /// `name op= value`: the value is taken into the variable's type, where the operation is done.
    fn update(
        &mut self,
        name: Word<'s>,
        op: BinaryOp,
        value: &Expr<'s>,
        span: Span,
    ) -> Option<checked::Stmt> {
        let value = self.expr(value);
        self.update_by(name, op, value, span)
    }

    fn update_by(&mut self, name: Word<'s>, op: BinaryOp, value: Value, span: Span) -> Option<checked::Stmt> {
        let target = self.variable(name)?;
        let Some(ty) = self.target_type(target) else {
            // Its first assignment: a counter of whatever is added.
            let value = self.settle(value)?;
            self.learn_type(target, super::types::promoted(value.ty));
            return None;
        };
        let is_shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        let value = if is_shift { value } else { Value::Typed(self.coerce(value, ty)?) };
        let old = self.expr(&Expr::new(ExprKind::Name(name), name.span));
        let new = self.binary(op, old, value, span);
        let new = match new {
            // Narrow types are widened for the operation, and the result cut back.
            Value::Typed(new) if new.ty != ty => {
                let varying = new.varying;
                Value::Typed(checked::Expr { kind: checked::Kind::Cast(Box::new(new)), ty, varying, span })
            }
            other => other,
        };
        self.assign(name, new, span)
    }

    fn assign(&mut self, name: Word<'s>, value: Value, span: Span) -> Option<checked::Stmt> {
        let target = self.variable(name)?;
        let Some(ty) = self.target_type(target) else {
            // The first assignment in the text gives a state its type.
            let value = self.settle(value)?;
            self.learn_type(target, value.ty);
            self.learn_varying(target, &value);
            return None;
        };
        let value = self.coerce(value, ty)?;
        self.learn_varying(target, &value);
        Some(match target {
            Target::State(state) => checked::Stmt::Write { state, value, span },
            Target::Let(id) => checked::Stmt::Let { id, value, span },
        })
    }

    /// What may be assigned: a state, or a let in sight.
    fn variable(&mut self, name: Word<'s>) -> Option<Target> {
        if let Some((_, id)) = self.scope.visible.iter().find(|(other, _)| *other == name.text) {
            return Some(Target::Let(*id));
        }
        let error = |message: String| Diagnostic::error("not-assignable", name.span, message);
        let diagnostic = match (self.globals.get(name.text), names::find(name.text)) {
            (Some((Global::State(id), _)), _) => return Some(Target::State(*id)),
            (Some((Global::Const(_) | Global::Arg, span)), _) => {
                error(format!("`{}` is constant", name.text)).note_at(*span, "declared here")
            }
            (Some((Global::Map(_), span)), _) => error(format!("`{}` is a map", name.text))
                .note_at(*span, "declared here")
                .help(format!("`{}.save(…);` stores a record", name.text)),
            (None, Some(given)) => {
                error(format!("`{}` is given, and cannot be set: {}", name.text, given.about))
                    .note("a probe cannot change the program it watches")
            }
            (None, None) => {
                let known =
                    self.scope.visible.iter().map(|(name, _)| *name).chain(self.globals.keys().copied());
                Diagnostic::error("unknown-name", name.span, format!("unknown name `{}`", name.text))
                    .label("not declared")
                    .suggest(name.text, known)
                    .help(format!(
                        "declare it: `state {0};` outside of probes lives as long as the thread, `let {0} = …;` to the end of the body",
                        name.text
                    ))
            }
        };
        self.found.push(diagnostic);
        None
    }

    fn target_type(&self, target: Target) -> Option<Type> {
        match target {
            Target::State(id) => self.facts.get(id.0 as usize)?.ty,
            // A let whose value was wrong takes anything: its error has been told.
            Target::Let(id) => self.scope.lets.get(id.0)?.ty,
        }
    }

    fn learn_type(&mut self, target: Target, ty: Type) {
        if let Target::State(id) = target
            && let Some(facts) = self.facts.get_mut(id.0 as usize)
        {
            facts.ty = Some(ty);
        }
    }

    /// A thread probe's assignment, or one of a varying value, makes a state differ between lanes.
    fn learn_varying(&mut self, target: Target, value: &checked::Expr) {
        match target {
            Target::State(id) => {
                let varying = value.varying || self.scope.unit == Unit::Thread;
                if let Some(facts) = self.facts.get_mut(id.0 as usize) {
                    facts.varying |= varying;
                }
            }
            Target::Let(id) => {
                if let Some(local) = self.scope.lets.get_mut(id.0) {
                    local.varying |= value.varying;
                }
            }
        }
    }
}

/// What an assignment changes.
#[derive(Debug, Clone, Copy)]
enum Target {
    State(StateId),
    Let(LetId),
}
