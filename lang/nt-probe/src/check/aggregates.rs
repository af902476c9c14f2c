//! Aggregations, `@name[key, …] = f(…)`: tables declared by their first use. Language reference, Maps.
//!
//! One name has one function and one list of keys. A key is told by the site, the launch or the machine; keys that are
//! computed need a hash, which is not compiled yet.

use super::names::{self, Meaning};
use super::{Checker, Value};
use crate::ast::{Argument, Expr, ExprKind};
use crate::checked::{Expr as Checked, Stmt};
use crate::token::Word;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Builtin, Func, Key, SiteKey, SiteValue, Table, TableId, Type, Unit};

/// The tables that a program may have, and the keys of one.
const TABLES: usize = 64;
const KEYS: usize = 8;

// Constructs that are not compiled yet, as messages call them.
const COMPUTED_KEYS: &str = "keys of aggregations that are computed";
const SEVERAL_KEYS: &str = "aggregations with two keys that are told when the kernel runs";

/// What is not compiled yet of the functions, as messages call it.
pub(super) fn later(function: &str) -> Option<&'static str> {
    Some(match function {
        "min" => "`min` aggregations",
        "max" => "`max` aggregations",
        "avg" => "`avg` aggregations",
        "stats" => "`stats` aggregations",
        "hist" => "`hist` aggregations",
        "lhist" => "`lhist` aggregations",
        "topk" => "`topk` aggregations",
        "last" => "`last` aggregations",
        _ => return None,
    })
}

impl<'s> Checker<'_, 's> {
    pub(super) fn aggregate(
        &mut self,
        name: Word<'s>,
        keys: &[Expr<'s>],
        function: Word<'s>,
        arguments: &[Argument<'s>],
        span: Span,
    ) -> Option<Stmt> {
        let func = self.function(function);
        let mut told = Some(Vec::new());
        for key in keys {
            match (self.key(key), &mut told) {
                (Some(key), Some(told)) => told.push(key),
                _ => told = None,
            }
        }
        let value = self.added(func, function, arguments);
        let (func, keys, value) = (func?, told?, value?);
        if keys.len() > KEYS {
            let message = format!("an aggregation has at most {KEYS} keys");
            self.found.push(Diagnostic::error("budget", name.span, message));
            return None;
        }
        if keys.iter().filter(|key| !matches!(key, Key::Site(_))).count() > 1 {
            self.not_yet(span, SEVERAL_KEYS);
            return None;
        }
        let table = self.table(name, func, keys, value.as_ref(), span)?;
        let ty = self.tables.get(table.0 as usize)?.ty;
        let value = match value {
            Some(value) => {
                let value = self.coerce(Value::Typed(value), ty)?;
                self.must_be_uniform_to_be_added(&value);
                Some(value)
            }
            None => None,
        };
        Some(Stmt::Aggregate { table, value, span })
    }

    fn function(&mut self, function: Word<'s>) -> Option<Func> {
        if let Some(func) = Func::from_word(function.text).filter(|&func| func != Func::Gone) {
            return Some(func);
        }
        match later(function.text) {
            Some(what) => self.not_yet(function.span, what),
            None => {
                let message = format!("unknown aggregation `{}`", function.text);
                let diagnostic = Diagnostic::error("unknown-name", function.span, message)
                    .suggest(function.text, names::AGGREGATIONS.iter().copied())
                    .note(format!("aggregations are {}", names::AGGREGATIONS.join(", ")));
                self.found.push(diagnostic);
            }
        }
        None
    }

    /// What is added: the inner is `None` of a count, the outer if it is wrong. Of a function that is not compiled the
    /// arguments are looked at all the same.
    #[allow(clippy::option_option, reason = "wrong, nothing and something are three answers")]
    fn added(
        &mut self,
        func: Option<Func>,
        function: Word<'s>,
        arguments: &[Argument<'s>],
    ) -> Option<Option<Checked>> {
        let mut values = Vec::new();
        for argument in arguments {
            let value = self.expr(&argument.value);
            values.push(self.settle(value));
        }
        match (func?, values.len()) {
            (Func::Count, 0) => Some(None),
            (Func::Sum, 1) => match values.pop().flatten() {
                Some(value) if value.ty == Type::Bool => {
                    let help = format!("write `{} as u32`, which is 0 or 1", self.shown(value.span));
                    let diagnostic =
                        Diagnostic::error("type-mismatch", value.span, "conditions are not added up")
                            .help(help);
                    self.found.push(diagnostic);
                    None
                }
                value => value.map(Some),
            },
            (func, given) => {
                let message = match func {
                    Func::Count => format!("`count` takes no arguments, {given} given"),
                    Func::Sum => format!("`sum` takes one argument, {given} given"),
                    // No program asks for it by name.
                    Func::Gone => return None,
                };
                let help = "`count()` counts how often the body runs, `sum(x)` adds x up";
                self.found.push(Diagnostic::error("type-mismatch", function.span, message).help(help));
                None
            }
        }
    }

    fn key(&mut self, key: &Expr<'s>) -> Option<Key> {
        let word = match &key.kind {
            ExprKind::Name(word) => Some(*word),
            ExprKind::Call(word, arguments) if arguments.is_empty() => Some(*word),
            _ => None,
        };
        // Nothing that a program declares has the name of what the language gives.
        let meaning = word.and_then(|word| names::find(word.text).map(|given| (word, given.meaning)));
        match meaning {
            Some((word, Meaning::SiteText(key))) => {
                return self.must_be_told(key, word).then_some(Key::Site(key));
            }
            Some((_, Meaning::SiteNumber(SiteValue::Line))) => return Some(Key::Site(SiteKey::Line)),
            Some((_, Meaning::SiteNumber(SiteValue::Site))) => return Some(Key::Site(SiteKey::Site)),
            Some((word, Meaning::Machine(builtin))) => {
                let unit = match builtin {
                    Builtin::Cu => return Some(Key::Bounded(Builtin::Cu)),
                    Builtin::Thread => Some(Unit::Thread),
                    Builtin::Warp => Some(Unit::Warp),
                    Builtin::Block => Some(Unit::Block),
                    _ => None,
                };
                if let Some(unit) = unit {
                    return self.unit_key(unit, word);
                }
            }
            _ => {}
        }
        match self.expr(key) {
            Value::Bad => {}
            _ => self.not_yet(key.span, COMPUTED_KEYS),
        }
        None
    }

    /// A cell of each thread is no cell of a warp.
    fn unit_key(&mut self, unit: Unit, word: Word<'_>) -> Option<Key> {
        if unit == Unit::Thread && self.scope.unit != Unit::Thread {
            let runs = self.scope.unit.word();
            let diagnostic =
                Diagnostic::error("varying-value", word.span, "`thread` differs from lane to lane")
                    .label(format!("a {runs} probe adds to one lane's cell"))
                    .help("use `warp` as the key, or make this a thread probe");
            self.found.push(diagnostic);
            return None;
        }
        Some(Key::Unit(unit))
    }

    /// The table called `name`, which its first use declares.
    fn table(
        &mut self,
        name: Word<'s>,
        func: Func,
        keys: Vec<Key>,
        value: Option<&Checked>,
        span: Span,
    ) -> Option<TableId> {
        let plain = name.text.trim_start_matches('@');
        let index = self.tables.iter().position(|table| table.name == plain);
        let Some((index, first)) = index.and_then(|index| Some((index, self.tables.get(index)?))) else {
            if self.tables.len() == TABLES {
                let message = format!("a program has at most {TABLES} aggregations");
                self.found.push(Diagnostic::error("budget", name.span, message));
                return None;
            }
            let signed = value.is_some_and(|value| value.ty.is_signed());
            let ty = if signed { Type::S64 } else { Type::U64 };
            self.tables.push(Table { name: plain.to_owned(), func, ty, keys, span });
            return Some(TableId(self.tables.len() as u32 - 1));
        };
        let wrong = if first.func != func {
            format!("`{}` is a {} here and a {} elsewhere", name.text, func.word(), first.func.word())
        } else if first.keys != keys {
            format!("`{}` has other keys elsewhere", name.text)
        } else {
            return Some(TableId(index as u32));
        };
        let diagnostic = Diagnostic::error("map-shape", span, wrong)
            .note_at(first.span, "first used here")
            .note(
                "one name has one function and one list of keys, so that its rows can be shown as one table",
            )
            .help("give one of them another name");
        self.found.push(diagnostic);
        None
    }
}
