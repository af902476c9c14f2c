//! `/sample(N)/`: every Nth time that the rest of the predicate holds. Language reference, Predicates.
//!
//! ```text
//! warp bb:loop /sample(16) && lane < 4/ { … }
//! ```
//!
//! The count is kept in a hidden state of each lane, which is declared here; `lower/sample.rs` writes the code.

use super::{Checker, STATES, Value};
use crate::ast::{Argument, Expr, ExprKind, Probe};
use crate::checked::{self, Sample};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{State, StateId, Type};

impl<'s> Checker<'_, 's> {
    /// The predicate of a probe, without the `sample(N)` in it, which the scope then holds.
    pub(super) fn predicate(&mut self, probe: &Probe<'s>) -> Option<checked::Expr> {
        let expr = probe.predicate.as_ref()?;
        self.scope.conjunct = true;
        let value = self.expr(expr);
        if is_sample(expr) {
            return None;
        }
        self.condition(value)
    }

    /// `sample(N)`, which is a `conjunct` or misplaced.
    pub(super) fn sample(&mut self, conjunct: bool, arguments: &[Argument<'s>], span: Span) -> Value {
        if !conjunct {
            let message =
                "`sample` is one of the conditions of a predicate, and stands nowhere else".to_owned();
            let diagnostic = Diagnostic::error("type-mismatch", span, message)
                .help("`/sample(16)/`, or `/sample(16) && bytes > 4/`: every 16th time that the rest holds");
            self.found.push(diagnostic);
            return Value::Bad;
        }
        let [argument] = arguments else {
            return self.wrong(
                "type-mismatch",
                span,
                "`sample` takes one number: `sample(16)` is every 16th time".to_owned(),
            );
        };
        let Some(every) = self.constant_of(&argument.value, Type::U32) else { return Value::Bad };
        if every == 0 {
            return self.wrong("type-mismatch", argument.value.span, "a sample of every 0th time".to_owned());
        }
        if let Some((_, first)) = self.scope.sample {
            let diagnostic = Diagnostic::error("type-mismatch", span, "a predicate has one `sample`")
                .note_at(first, "first here")
                .help("the product of the two numbers samples as rarely as both together");
            self.found.push(diagnostic);
            return Value::Bad;
        }
        self.scope.sample = Some((every as u32, span));
        super::exprs::constant(1, Type::Bool, span)
    }

    /// The states in which samples are counted: one for each probe that samples, behind the program's own.
    pub(super) fn hidden_states(&mut self, states: &mut Vec<State>, probes: &mut [checked::Probe]) {
        for probe in probes {
            let Some(sample) = &mut probe.sample else { continue };
            if states.len() == STATES {
                let message =
                    format!("a program has at most {STATES} states, and a sample is counted in one");
                self.found.push(Diagnostic::error("budget", sample.span, message));
                return;
            }
            sample.state = StateId(states.len() as u32);
            // No program can call a state `sample`, which the language gives; what follows may be taken.
            let mut name = "sample".to_owned();
            let mut number = 1;
            while states.iter().any(|state| state.name == name) || self.globals.contains_key(name.as_str()) {
                number += 1;
                name = format!("sample{number}");
            }
            states.push(State { name, ty: Type::U32, init: 0, span: sample.span });
        }
    }

    /// What the scope holds, for the probe that was checked in it. Every time is no sample.
    pub(super) fn sampled(&self) -> Option<Sample> {
        let (every, span) = self.scope.sample?;
        (every > 1).then_some(Sample { every, state: StateId(0), span })
    }
}

pub(super) fn is_sample(expr: &Expr<'_>) -> bool {
    matches!(expr.kind, ExprKind::Call(Word { text: "sample", .. }, _))
}
