//! What is known of a site, and the operands of its instruction: names, `has(x)`, comparisons with globs, and which
//! tracepoints can have which. Language reference, Predicates and Operands.
//!
//! Operands are looked for here by class; whether the very instruction has one is known when a kernel is woven. A part of
//! the program that a condition on the site decides (`if has(macs) { … }`, `/elems > 1/`) may ask for what some sites lack:
//! it is not there where it is asked.

use super::{Checker, Value};
use crate::ast::{Argument, BinaryOp, Expr, ExprKind};
use crate::checked::{self, Kind};
use crate::literal::unescape;
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Part, SiteKey, SiteValue, Tracepoint, Type};

impl<'s> Checker<'_, 's> {
    /// `width`, `macs`, `line` …
    pub(super) fn site_number(&mut self, number: SiteValue, word: Word<'_>) -> Value {
        if number.part().is_some() && !self.must_be_offered(word) {
            return Value::Bad;
        }
        self.of_site(Kind::Site(number), Type::U32, false, word.span)
    }

    /// `op`, `kernel` …
    pub(super) fn site_text(&mut self, key: SiteKey, word: Word<'_>) -> Value {
        if !self.must_be_told(key, word) {
            return Value::Bad;
        }
        Value::Text(key, word.span)
    }

    pub(super) fn of_site(&mut self, kind: Kind, ty: Type, varying: bool, span: Span) -> Value {
        Value::Typed(checked::Expr { kind, ty, varying, span })
    }

    /// `has(x)`
    pub(super) fn has(&mut self, function: Word<'_>, arguments: &[Argument<'s>], span: Span) -> Value {
        let word = match arguments {
            [Argument { value: Expr { kind: ExprKind::Name(word), .. }, .. }] => *word,
            _ => {
                let message = format!("`{}` takes the name of an operand", function.text);
                self.found.push(Diagnostic::error("type-mismatch", span, message).help("has(macs)"));
                return Value::Bad;
            }
        };
        let Some(part) = Part::from_word(word.text) else {
            let message = format!("`{}` is no operand", word.text);
            let known = Part::ALL.iter().map(|part| part.word());
            self.found.push(Diagnostic::error("unknown-name", word.span, message).suggest(word.text, known));
            return Value::Bad;
        };
        if self.scope.points.is_empty() {
            return self.wrong("not-constant", span, "`has` in a constant: it is asked of a site".to_owned());
        }
        self.of_site(Kind::Has(part), Type::Bool, false, span)
    }

    /// `op == "ld.*"`, `kernel != "gemm*"`
    pub(super) fn compare_text(&mut self, op: BinaryOp, what: SiteKey, glob: &str, span: Span) -> Value {
        let matches = self.of_site(Kind::Match(what, glob.to_owned()), Type::Bool, false, span);
        match op {
            BinaryOp::Eq => matches,
            BinaryOp::Ne => self.unary(crate::ast::UnaryOp::Not, matches, span),
            _ => {
                let diagnostic = Diagnostic::error("type-mismatch", span, "texts have no order")
                    .help("`==` and `!=` compare with a glob: op == \"ld.*\"");
                self.found.push(diagnostic);
                Value::Bad
            }
        }
    }

    /// A string, which only a comparison takes.
    pub(super) fn glob(word: Word<'_>) -> Value {
        // Escapes were checked with the tokens.
        Value::Glob(unescape(word.text).unwrap_or_default(), word.span)
    }

    /// A text of the site where a value is wanted.
    pub(super) fn text_as_value(&mut self, key: SiteKey, span: Span) {
        let message = format!("`{}` is a text, which is no value", key.word());
        let diagnostic = Diagnostic::error("type-mismatch", span, message).help(format!(
            "it may be a key (`@x[{0}] = count();`) or be compared (`{0} == \"a*\"`)",
            key.word()
        ));
        self.found.push(diagnostic);
    }

    /// Is every tracepoint told by `key`? Where not, it is told.
    pub(super) fn must_be_told(&mut self, key: SiteKey, word: Word<'_>) -> bool {
        if key.part().is_some() {
            return self.must_be_offered(word);
        }
        if self.scope.points.is_empty() {
            self.wrong("not-constant", word.span, format!("`{}` in a constant: it is of a site", word.text));
            return false;
        }
        let elsewhere = |point: &Tracepoint| !matches!(point, Tracepoint::Mark { .. });
        if key == SiteKey::Mark && self.scope.undecided == 0 && self.scope.points.iter().any(elsewhere) {
            let message = "`mark` is told of `mark:` points alone";
            let diagnostic = Diagnostic::error("operand-absent", word.span, message);
            self.found.push(diagnostic);
            return false;
        }
        let none = self.scope.points.iter().find_map(|point| match point {
            Tracepoint::KernelEntry { .. } | Tracepoint::KernelExit { .. } => {
                Some("the kernel's entry and exit are")
            }
            Tracepoint::Block { .. } => Some("basic blocks are"),
            Tracepoint::FuncEntry { .. } | Tracepoint::FuncExit { .. } => {
                Some("a function's entry and exit are")
            }
            Tracepoint::Mark { .. } => Some("marks are"),
            Tracepoint::Inst { .. } | Tracepoint::Ptx { .. } | Tracepoint::Line { .. } => None,
        });
        if let (true, Some(none), 0) = (key.is_of_instructions(), none, self.scope.undecided) {
            let message = format!("`{}` is told of instructions, and {none} none", word.text);
            let diagnostic = Diagnostic::error("operand-absent", word.span, message)
                .help("`kernel` and `func` are told of every site");
            self.found.push(diagnostic);
            return false;
        }
        true
    }
}
