//! Operands of the instruction at the site: which tracepoints offer them, and what can be done with those whose type is the
//! instruction's. Language reference, Operands.
//!
//! ```text
//! out as u32, in1 as bits f32     cast: the conversion depends on the site
//! old == in1                      compared: numbers, whatever their types are
//! clock(out)                      waited for
//! ```

use super::instructions::Lack;
use super::names::{self, Meaning};
use super::{Checker, Value, instructions};
use crate::ast::{Expr, ExprKind};
use crate::checked::Kind;
use crate::literal::integer;
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Builtin, CompareOp, Operand, Part, Type};

impl<'s> Checker<'_, 's> {
    /// `addr`, `bytes`, `taken` …
    pub(super) fn operand(&mut self, operand: Operand, word: Word<'_>) -> Value {
        let (true, Some(ty)) = (self.must_be_offered(word), operand.ty()) else { return Value::Bad };
        let varying = operand != Operand::Bytes || instructions::bytes_vary(&self.scope.points);
        self.of_site(Kind::Operand(operand), ty, varying, word.span)
    }

    /// `out`, `in1[2]`, `old`: whose type is the instruction's.
    pub(super) fn open(&mut self, part: Part, index: u8, word: Word<'_>, span: Span) -> Value {
        match (self.must_be_offered(word), Operand::of(part, index)) {
            (true, Some(operand)) => Value::Open(operand, span),
            _ => Value::Bad,
        }
    }

    /// `out[1]`: only operands of instructions have elements.
    pub(super) fn index(&mut self, base: &Expr<'s>, index: &Expr<'s>, span: Span) -> Value {
        if let ExprKind::Name(word) = &base.kind
            && let Some(Meaning::Open(part)) = names::find(word.text).map(|given| given.meaning)
        {
            let ExprKind::Int(number) = &index.kind else {
                let message = "the index of an element is a number: registers have no addresses".to_owned();
                return self.wrong("type-mismatch", index.span, message);
            };
            return match integer(number.text).map(u8::try_from) {
                Ok(Ok(index)) => self.open(part, index, *word, span),
                _ => self.wrong("type-mismatch", index.span, "no vector is that long".to_owned()),
            };
        }
        match self.expr(base) {
            Value::Bad => Value::Bad,
            _ => self.wrong(
                "type-mismatch",
                span,
                "only vectors that an instruction loads or stores have elements".to_owned(),
            ),
        }
    }

    /// An operand whose type is the instruction's, where a value of a type is wanted.
    pub(super) fn open_as_value(&mut self, span: Span) {
        let shown = span.of(self.text);
        let message = format!("`{shown}` has the type of the instruction, which differs from site to site");
        let diagnostic = Diagnostic::error("site-type", span, message).help(format!(
            "write `{shown} as u32`, or `{shown} as bits u32` for its bits; two such operands may be compared"
        ));
        self.found.push(diagnostic);
    }

    /// `out as u32`, `out as bits u32`
    pub(super) fn open_cast(&mut self, operand: Operand, bits: bool, ty: Type, span: Span) -> Value {
        if ty == Type::Bool {
            let message = "an operand is not cast to bool".to_owned();
            let diagnostic = Diagnostic::error("type-mismatch", span, message)
                .help(format!("write `{} as u32 != 0`", operand.word()));
            self.found.push(diagnostic);
            return Value::Bad;
        }
        let kind = if bits { Kind::BitsOperand(operand) } else { Kind::CastOperand(operand) };
        self.of_site(kind, ty, true, span)
    }

    /// `old == in1`
    pub(super) fn compare_open(&mut self, op: CompareOp, a: Operand, b: Operand, span: Span) -> Value {
        self.of_site(Kind::CompareOperands(op, a, b), Type::Bool, true, span)
    }

    /// `clock(x)`: when the clock is read depends on what varies, what it tells does not.
    pub(super) fn clock_after(&mut self, builtin: Builtin, awaited: Value, span: Span) -> Value {
        if let Value::Open(operand, _) = awaited {
            return self.of_site(Kind::ClockAfterOperand(builtin, operand), builtin.ty(), false, span);
        }
        let Some(awaited) = self.settle(awaited) else { return Value::Bad };
        self.of_site(Kind::ClockAfter(builtin, Box::new(awaited)), builtin.ty(), false, span)
    }

    /// Is there the operand that `word` names at every tracepoint, as far as classes tell? Where not, it is told.
    pub(super) fn must_be_offered(&mut self, word: Word<'_>) -> bool {
        if self.scope.points.is_empty() {
            self.wrong("not-constant", word.span, format!("`{}` in a constant: it is of a site", word.text));
            return false;
        }
        if self.scope.undecided > 0 {
            return true;
        }
        let Some(lack) = instructions::lacks(&self.scope.points, word.text) else { return true };
        let name = word.text;
        let error = |message: String| Diagnostic::error("operand-absent", word.span, message);
        let diagnostic = match lack {
            Lack::NoInstruction(which) => {
                error(format!("`{name}` is an operand of instructions, and {which} none"))
                    .help("instructions have tracepoints `inst:CLASS`")
            }
            Lack::Class(class) => {
                error(format!("`{name}` is an operand that no `{class}` has")).help(instead(class, name))
            }
            Lack::Early => error(format!("`{name}` is not there before the instruction has run"))
                .help("a tracepoint that ends in `:after` is behind the instruction"),
            Lack::Late => error(format!("`{name}` is not there behind the instruction"))
                .help("keep it in a `state`, by a probe before the instruction"),
        };
        self.found.push(diagnostic);
        false
    }
}

/// What to do where no instruction of a class has an operand.
fn instead(class: &str, name: &str) -> String {
    match (class, name) {
        ("async_copy" | "bulk_copy" | "tensor_copy", "out") => {
            "a copy gives no register, and is on its way still: what it wrote is there at `inst:wait:after`"
                .to_owned()
        }
        ("tensor_copy", "bytes") => {
            "its size lies in a descriptor: `inst:mbarrier.expect` has the bytes that are announced"
                .to_owned()
        }
        (_, "done") => "waits have it: `inst:wait:after`".to_owned(),
        _ => format!("ask first: `if has({name}) {{ … }}`, or `/has({name})/` for the whole probe"),
    }
}
