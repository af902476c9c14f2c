//! Expressions: literals, names, calls. Operators are in `operators.rs`, conversions in `conversions.rs`.

use super::names::{self, Meaning};
use super::sample::is_sample;
use super::types::common;
use super::{Checker, Choice, Global, Literal, Value};
use crate::ast::{Argument, BinaryOp, Expr, ExprKind};
use crate::checked::{self, Kind};
use crate::literal::integer;
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Builtin, Type, Unit};

// Constructs that are not compiled yet, as messages call them.
pub(super) const FLOATS: &str = "floating-point numbers";
pub(super) const STRINGS: &str = "strings";
pub(super) const ARGUMENTS: &str = "arguments (`arg`, `$1`)";
pub(super) const REDUCERS: &str = "reducers (`first`, `any`, `lane_sum` …)";

impl<'s> Checker<'_, 's> {
    pub(super) fn expr(&mut self, expr: &Expr<'s>) -> Value {
        let span = expr.span;
        let conjunct = std::mem::take(&mut self.scope.conjunct);
        match &expr.kind {
            ExprKind::Int(word) => match integer(word.text) {
                Ok(value) => Value::Literal(Literal { value: value.into(), complement: false, span }),
                Err(message) => self.wrong("bad-number", word.span, message),
            },
            ExprKind::Float(_) => self.refuse(span, FLOATS),
            ExprKind::Str(word) => Self::glob(*word),
            ExprKind::Param(_) => self.refuse(span, ARGUMENTS),
            ExprKind::Bool(value) => constant(u64::from(*value), Type::Bool, span),
            ExprKind::Name(word) => self.name(*word),
            ExprKind::Call(_, arguments) if is_sample(expr) => self.sample(conjunct, arguments, span),
            ExprKind::Call(function, arguments) => self.call(*function, arguments, span),
            ExprKind::Field(base, name) => self.field(base, *name, span),
            ExprKind::Index(base, index) => self.index(base, index, span),
            ExprKind::Unary(op, a) => {
                let a = self.expr(a);
                self.unary(*op, a, span)
            }
            ExprKind::Binary(op, a, b) => {
                let conjuncts = conjunct && *op == BinaryOp::LogicAnd;
                self.scope.conjunct = conjuncts;
                let left = self.expr(a);
                // What the right side of `has(x) && …` asks for need not be there where the left decides.
                let decides = matches!(op, BinaryOp::LogicAnd | BinaryOp::LogicOr) && asks_of_site(&left);
                self.scope.conjunct = conjuncts;
                let right = self.within(decides, |checker| checker.expr(b));
                match (is_sample(a) && conjuncts, is_sample(b) && conjuncts) {
                    // What is left of the predicate.
                    (true, _) => right,
                    (_, true) => left,
                    _ => self.binary(*op, left, right, span),
                }
            }
            ExprKind::Cast(a, ty) => {
                let a = self.expr(a);
                self.cast(a, *ty, span)
            }
            ExprKind::Bits(a, ty) => {
                let a = self.expr(a);
                self.bits(a, *ty, span)
            }
            ExprKind::Select(condition, a, b) => {
                let condition = self.expr(condition);
                let (a, b) =
                    self.within(asks_of_site(&condition), |checker| (checker.expr(a), checker.expr(b)));
                self.select(condition, a, b, span)
            }
        }
    }

    /// Checks what a condition on the site decides, if `decided`.
    fn within<T>(&mut self, decided: bool, check: impl FnOnce(&mut Self) -> T) -> T {
        self.scope.undecided += usize::from(decided);
        let checked = check(self);
        self.scope.undecided -= usize::from(decided);
        checked
    }

    fn name(&mut self, word: Word<'s>) -> Value {
        let span = word.span;
        if let Some((_, id)) = self.scope.visible.iter().find(|(name, _)| *name == word.text) {
            let id = *id;
            return match self.scope.lets.get(id.0) {
                Some(local) => match local.ty {
                    Some(ty) => {
                        let varying = local.varying;
                        Value::Typed(checked::Expr { kind: Kind::Let(id), ty, varying, span })
                    }
                    None => Value::Bad,
                },
                None => Value::Bad,
            };
        }
        match self.globals.get(word.text).map(|(global, _)| *global) {
            Some(Global::Const(index)) => return self.const_value(index, span),
            Some(Global::Arg) => return Value::Bad,
            Some(Global::State(id)) => {
                let Some(facts) = self.facts.get(id.0 as usize).copied() else {
                    // States have no value yet while constants are folded.
                    return self.wrong("not-constant", span, format!("state `{}` in a constant", word.text));
                };
                return match facts.ty {
                    Some(ty) => {
                        let varying = facts.varying;
                        Value::Typed(checked::Expr { kind: Kind::State(id), ty, varying, span })
                    }
                    None => Value::Bad,
                };
            }
            Some(Global::Map(_)) => return self.map_read(span, word.text),
            None => {}
        }
        let Some(given) = names::find(word.text) else { return self.unknown(word) };
        match given.meaning {
            Meaning::Machine(builtin) => machine(builtin, span),
            Meaning::Axes(_) => {
                let message = format!("`{}` has three axes", word.text);
                let help = format!(
                    "write `{0}.x`, `{0}.y` or `{0}.z`; `thread`, `block` and `warp` are linear",
                    word.text
                );
                self.found.push(Diagnostic::error("type-mismatch", span, message).help(help));
                Value::Bad
            }
            Meaning::Cluster => {
                let help = "write `cluster.id` or `cluster.rank`";
                self.found
                    .push(Diagnostic::error("type-mismatch", span, "`cluster` has two parts").help(help));
                Value::Bad
            }
            Meaning::Operand(operand) => self.operand(operand, word),
            Meaning::SiteNumber(number) => self.site_number(number, word),
            Meaning::SiteText(key) => self.site_text(key, word),
            Meaning::Open(part) => self.open(part, 0, word, span),
            Meaning::NotYet(what) => self.refuse(span, what),
            Meaning::Extreme(_) | Meaning::Select | Meaning::Reducer | Meaning::Has | Meaning::Sample => {
                let message = format!("`{0}` is a function: `{0}(…)`", word.text);
                self.wrong("type-mismatch", span, message)
            }
        }
    }

    fn unknown(&mut self, word: Word<'s>) -> Value {
        let known = self.scope.visible.iter().map(|(name, _)| *name);
        let known = known.chain(self.globals.keys().copied());
        let known = known.chain(names::GIVEN.iter().map(|given| given.name));
        let diagnostic =
            Diagnostic::error("unknown-name", word.span, format!("unknown name `{}`", word.text))
                .suggest(word.text, known);
        self.found.push(diagnostic);
        Value::Bad
    }

    fn map_read(&mut self, span: Span, name: &str) -> Value {
        let diagnostic = Diagnostic::error("map-read", span, format!("map `{name}` cannot be read"))
            .note("maps are written only, so that no probe depends on the order of another's stores")
            .help("keep what is needed again in a `state`");
        self.found.push(diagnostic);
        Value::Bad
    }

    fn call(&mut self, function: Word<'s>, arguments: &[Argument<'s>], span: Span) -> Value {
        let declared = self.globals.contains_key(function.text)
            || self.scope.visible.iter().any(|(name, _)| *name == function.text);
        let given = match names::find(function.text) {
            Some(given) => given,
            None if declared => {
                return self.wrong(
                    "type-mismatch",
                    function.span,
                    format!("`{}` is no function", function.text),
                );
            }
            None => return self.unknown_function(function),
        };
        if let Some(word) = arguments.iter().find_map(|argument| argument.name) {
            return self.wrong("syntax", word.span, format!("`{}` takes no named arguments", function.text));
        }
        match (given.meaning, arguments) {
            (Meaning::Machine(builtin), []) => machine(builtin, span),
            (Meaning::Machine(builtin @ (Builtin::Clock | Builtin::ClockLow)), [argument]) => {
                let awaited = self.expr(&argument.value);
                self.clock_after(builtin, awaited, span)
            }
            (Meaning::Machine(_), _) => {
                self.wrong("type-mismatch", span, format!("`{}` takes no arguments", function.text))
            }
            (
                Meaning::Operand(_) | Meaning::SiteNumber(_) | Meaning::SiteText(_) | Meaning::Open(_),
                [_, ..],
            ) => self.wrong("type-mismatch", span, format!("`{}` takes no arguments", function.text)),
            (
                Meaning::Axes(_)
                | Meaning::Cluster
                | Meaning::Operand(_)
                | Meaning::SiteNumber(_)
                | Meaning::SiteText(_)
                | Meaning::Open(_),
                _,
            ) => self.name(function),
            (Meaning::Has, _) => self.has(function, arguments, span),
            (Meaning::Sample, _) => self.sample(false, arguments, span),
            (Meaning::NotYet(what), _) => self.refuse(span, what),
            (Meaning::Reducer, _) if self.scope.unit == Unit::Thread => {
                let message = format!(
                    "`{}` is over the lanes of a warp, and this probe runs per thread",
                    function.text
                );
                let diagnostic = Diagnostic::error("unit-mismatch", function.span, message)
                    .help("write `warp` before the tracepoint");
                self.found.push(diagnostic);
                Value::Bad
            }
            (Meaning::Reducer, _) => self.refuse(span, REDUCERS),
            (Meaning::Extreme(op), [a, b]) => {
                let (a, b) = (self.expr(&a.value), self.expr(&b.value));
                self.extreme(op, a, b, span)
            }
            (Meaning::Select, [condition, a, b]) => {
                let condition = self.expr(&condition.value);
                let (a, b) = self.within(asks_of_site(&condition), |checker| {
                    (checker.expr(&a.value), checker.expr(&b.value))
                });
                self.select(condition, a, b, span)
            }
            (Meaning::Extreme(_), _) => {
                self.wrong("type-mismatch", span, format!("`{}` takes two arguments", function.text))
            }
            (Meaning::Select, _) => {
                self.wrong("type-mismatch", span, "`select` takes a condition and two values".to_owned())
            }
        }
    }

    fn unknown_function(&mut self, function: Word<'s>) -> Value {
        let mut diagnostic =
            Diagnostic::error("unknown-name", function.span, format!("unknown function `{}`", function.text))
                .suggest(function.text, names::GIVEN.iter().map(|given| given.name));
        if names::AGGREGATIONS.contains(&function.text) {
            diagnostic = diagnostic
                .help(format!("`{}` is an aggregation: `@name = {}(…);`", function.text, function.text));
        }
        self.found.push(diagnostic);
        Value::Bad
    }

    /// `tid.x`, `cluster.rank`
    fn field(&mut self, base: &Expr<'s>, name: Word<'s>, span: Span) -> Value {
        let ExprKind::Name(word) = &base.kind else {
            return self.wrong("type-mismatch", name.span, "only `tid` and its kin have parts".to_owned());
        };
        if let Some((Global::Map(_), _)) = self.globals.get(word.text) {
            return self.map_read(span, word.text);
        }
        let meaning = names::find(word.text).map(|given| given.meaning);
        let builtin = match (meaning, name.text) {
            (Some(Meaning::Axes(axis)), "x") => axis(0),
            (Some(Meaning::Axes(axis)), "y") => axis(1),
            (Some(Meaning::Axes(axis)), "z") => axis(2),
            (Some(Meaning::Axes(_)), _) => {
                return self.wrong(
                    "unknown-name",
                    name.span,
                    format!("`{}` has `.x`, `.y` and `.z`", word.text),
                );
            }
            (Some(Meaning::Cluster), "id") => Builtin::ClusterId,
            (Some(Meaning::Cluster), "rank") => Builtin::ClusterRank,
            (Some(Meaning::Cluster), _) => {
                return self.wrong("unknown-name", name.span, "`cluster` has `.id` and `.rank`".to_owned());
            }
            _ => {
                // If the name itself is wrong, that is all there is to say.
                return match self.name(*word) {
                    Value::Bad => Value::Bad,
                    _ => self.wrong("type-mismatch", name.span, format!("`{}` has no parts", word.text)),
                };
            }
        };
        machine(builtin, span)
    }

    pub(super) fn select(&mut self, condition: Value, a: Value, b: Value, span: Span) -> Value {
        let condition = self.condition(condition);
        let untyped = |value: &Value| matches!(value, Value::Literal(_) | Value::Choice(_));
        let (condition, a, b) = match condition {
            Some(condition) if untyped(&a) && untyped(&b) => match condition.constant() {
                Some(holds) => return (if holds == 0 { b } else { a }).at(span),
                None => return Value::Choice(Box::new(Choice { condition, a, b, span })),
            },
            condition => {
                let (Some(a), Some(b)) = self.meet(a, b, common, span) else { return Value::Bad };
                let Some(condition) = condition else { return Value::Bad };
                (condition, a, b)
            }
        };
        let (ty, varying) = (a.ty, condition.varying || a.varying || b.varying);
        let kind = match condition.constant() {
            Some(holds) => {
                let chosen = if holds == 0 { b } else { a };
                return Value::Typed(checked::Expr { span, ..chosen });
            }
            None => Kind::Select(Box::new(condition), Box::new(a), Box::new(b)),
        };
        Value::Typed(checked::Expr { kind, ty, varying, span })
    }

    /// The text at `span`, in parentheses if an operator after it could take a part of it.
    pub(super) fn shown(&self, span: Span) -> String {
        let text = span.of(self.text);
        let simple = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$'))
            || (text.ends_with(')') && !text.contains(' '));
        if simple || text.starts_with('(') { text.to_owned() } else { format!("({text})") }
    }

    pub(super) fn wrong(&mut self, slug: &'static str, span: Span, message: String) -> Value {
        self.found.push(Diagnostic::error(slug, span, message));
        Value::Bad
    }

    fn refuse(&mut self, span: Span, what: &'static str) -> Value {
        self.not_yet(span, what);
        Value::Bad
    }
}

/// Does it ask what is known of sites?
fn asks_of_site(value: &Value) -> bool {
    matches!(value, Value::Typed(expr) if expr.asks_of_site())
}

pub(super) fn constant(bits: u64, ty: Type, span: Span) -> Value {
    Value::Typed(checked::Expr { kind: Kind::Const(bits), ty, varying: false, span })
}

fn machine(builtin: Builtin, span: Span) -> Value {
    let varying = !builtin.is_uniform();
    Value::Typed(checked::Expr { kind: Kind::Builtin(builtin), ty: builtin.ty(), varying, span })
}
