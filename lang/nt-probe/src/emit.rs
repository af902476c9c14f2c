//! Tokens and tree as text, for `--emit`: readable, one node a line, the same for the same program.
//!
//! ```text
//! probe warp kernel:entry                              120..137
//!   assign start =
//!     call clock
//! ```

use crate::ast::{Argument, Atom, Binding, Expr, ExprKind, Item, Part, Point, Stmt};
use crate::token::lex;
use nt_diag::Span;
use std::fmt::Write;

/// One token a line: place, kind, text.
pub(crate) fn tokens(source: &str) -> String {
    let mut out = String::new();
    for (token, span) in lex(source).0 {
        let place = format!("{}..{}", span.start, span.end);
        // Writing to a String cannot fail. A raw string may span lines.
        let _ = writeln!(out, "{place:<12} {:<13} {}", token.kind(), span.of(source).replace('\n', "\\n"));
    }
    out
}

/// One node a line, indented by two a level.
pub(crate) fn tree(items: &[Item<'_>]) -> String {
    let mut tree = Tree { out: String::new(), depth: 0 };
    items.iter().for_each(|item| tree.item(item));
    tree.out
}

struct Tree {
    out: String,
    depth: usize,
}

impl Tree {
    fn line(&mut self, text: &str, span: Span) {
        let line = format!("{:indent$}{text}", "", indent = 2 * self.depth);
        let _ = writeln!(self.out, "{line:<60} {}..{}", span.start, span.end);
    }

    fn within(&mut self, body: impl FnOnce(&mut Self)) {
        self.depth += 1;
        body(self);
        self.depth -= 1;
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Config { settings, span } => {
                self.line("config", *span);
                self.within(|tree| {
                    for (name, value) in settings {
                        tree.line(name.text, name.span);
                        tree.within(|tree| tree.expr(value));
                    }
                });
            }
            Item::Include { path, span } => self.line(&format!("include {}", path.text), *span),
            Item::Const(binding) => self.binding("const", binding),
            Item::Arg(binding) => self.binding("arg", binding),
            Item::State(binding) => self.binding("state", binding),
            Item::Records(records) => {
                let policy = records.policy.map_or(String::new(), |policy| format!(" {}", policy.text));
                let shape = format!("{}<{}>{policy}", records.kind.text, records.unit.word.text);
                self.line(&format!("map {}: {shape}", records.name.text), records.span);
                self.within(|tree| {
                    if let Some(capacity) = &records.capacity {
                        tree.line("capacity", capacity.span);
                        tree.within(|tree| tree.expr(capacity));
                    }
                    for field in &records.fields {
                        let of = field.of.map_or(String::new(), |of| format!("<{}>", of.text));
                        tree.line(
                            &format!("field {}: {}{of}", field.name.text, field.ty.text),
                            field.name.span,
                        );
                    }
                });
            }
            Item::Table(table) => {
                self.line(&format!("map {}: {}", table.name.text, table.kind.text), table.span);
                self.within(|tree| tree.expr(&table.capacity));
            }
            Item::Probe(probe) => {
                let unit = probe.unit.map_or(String::new(), |unit| format!(" {}", unit.word.text));
                self.line(&format!("probe{unit}"), probe.span);
                self.within(|tree| {
                    probe.points.iter().for_each(|point| tree.point(point));
                    if let Some(predicate) = &probe.predicate {
                        tree.line("predicate", predicate.span);
                        tree.within(|tree| tree.expr(predicate));
                    }
                    tree.body("body", &probe.body);
                });
            }
        }
    }

    fn binding(&mut self, word: &str, binding: &Binding<'_>) {
        let ty = binding.ty.map_or(String::new(), |ty| format!(": {}", ty.text));
        self.line(&format!("{word} {}{ty}", binding.name.text), binding.span);
        if let Some(value) = &binding.value {
            self.within(|tree| tree.expr(value));
        }
    }

    fn point(&mut self, point: &Point<'_>) {
        let mut text = format!("point {}", point.provider.text);
        for part in &point.parts {
            text.push(':');
            match part {
                Part::Path(path) => {
                    let alternatives = path.iter().map(|atoms| {
                        let words = atoms.iter().map(|atom| match atom {
                            Atom::Word(word) | Atom::Glob(word) => word.text,
                            Atom::Any(_) => "*",
                        });
                        words.collect::<Vec<_>>().join("|")
                    });
                    text.push_str(&alternatives.collect::<Vec<_>>().join("."));
                }
                Part::Lines(first, last) => {
                    text.push_str(first.text);
                    if let Some(last) = last {
                        let _ = write!(text, "-{}", last.text);
                    }
                }
                Part::Param(word) => text.push_str(word.text),
            }
        }
        self.line(&text, point.span);
    }

    fn body(&mut self, word: &str, stmts: &[Stmt<'_>]) {
        for (i, stmt) in stmts.iter().enumerate() {
            if i == 0 {
                self.line(word, stmt.span());
            }
            self.within(|tree| tree.stmt(stmt));
        }
    }

    fn stmt(&mut self, stmt: &Stmt<'_>) {
        match stmt {
            Stmt::Let(binding) => self.binding("let", binding),
            Stmt::Assign { name, op, value, span } => {
                self.line(&format!("assign {} {}=", name.text, op.map_or("", |op| op.sign())), *span);
                self.within(|tree| tree.expr(value));
            }
            Stmt::Increment { name, span } => self.line(&format!("increment {}", name.text), *span),
            Stmt::Slot { map, field, value, span } => {
                self.line(&format!("store {}.{}", map.text, field.text), *span);
                self.within(|tree| tree.expr(value));
            }
            Stmt::Method { map, method, arguments, span } => {
                self.line(&format!("method {}.{}", map.text, method.text), *span);
                self.within(|tree| tree.arguments(arguments));
            }
            Stmt::Aggregate { map, keys, function, arguments, span } => {
                self.line(&format!("aggregate {} {}", map.text, function.text), *span);
                self.within(|tree| {
                    for key in keys {
                        tree.line("key", key.span);
                        tree.within(|tree| tree.expr(key));
                    }
                    tree.arguments(arguments);
                });
            }
            Stmt::If { condition, then, otherwise, span } => {
                self.line("if", *span);
                self.within(|tree| {
                    tree.expr(condition);
                    tree.body("then", then);
                    tree.body("else", otherwise);
                });
            }
            Stmt::Asm { operands, templates, span } => {
                self.line("asm", *span);
                self.within(|tree| {
                    for operand in operands {
                        let ty = operand.ty.map_or(String::new(), |(ty, class)| {
                            format!(
                                ": {}{}",
                                ty.text,
                                class.map_or(String::new(), |class| format!(" {}", class.text))
                            )
                        });
                        let text = format!("{} {}{ty}", operand.direction.text, operand.name.text);
                        tree.line(&text, operand.name.span);
                        operand.value.iter().for_each(|value| tree.within(|tree| tree.expr(value)));
                    }
                    for template in templates {
                        let version =
                            template.version.map_or(String::new(), |version| format!(" {}", version.text));
                        let text = template.text.text.escape_debug();
                        tree.line(
                            &format!("{}{version} \"{text}\"", template.target.text),
                            template.text.span,
                        );
                    }
                });
            }
            Stmt::Bad(span) => self.line("bad", *span),
        }
    }

    fn arguments(&mut self, arguments: &[Argument<'_>]) {
        for argument in arguments {
            match argument.name {
                Some(name) => {
                    self.line(&format!("{} =", name.text), name.span);
                    self.within(|tree| tree.expr(&argument.value));
                }
                None => self.expr(&argument.value),
            }
        }
    }

    fn expr(&mut self, expr: &Expr<'_>) {
        let mut node = |text: &str, operands: &[&Expr<'_>]| {
            self.line(text, expr.span);
            self.within(|tree| operands.iter().for_each(|operand| tree.expr(operand)));
        };
        match &expr.kind {
            ExprKind::Int(word) => node(&format!("integer {}", word.text), &[]),
            ExprKind::Float(word) => node(&format!("float {}", word.text), &[]),
            ExprKind::Str(word) => node(&format!("string {}", word.text), &[]),
            ExprKind::Bool(value) => node(&value.to_string(), &[]),
            ExprKind::Param(word) => node(&format!("parameter {}", word.text), &[]),
            ExprKind::Name(word) => node(&format!("name {}", word.text), &[]),
            ExprKind::Field(a, name) => node(&format!(".{}", name.text), &[a]),
            ExprKind::Index(a, index) => node("index", &[a, index]),
            ExprKind::Unary(op, a) => node(op.sign(), &[a]),
            ExprKind::Binary(op, a, b) => node(op.sign(), &[a, b]),
            ExprKind::Cast(a, ty) => node(&format!("as {}", ty.text), &[a]),
            ExprKind::Bits(a, ty) => node(&format!("as bits {}", ty.text), &[a]),
            ExprKind::Select(c, a, b) => node("select", &[c, a, b]),
            ExprKind::Call(function, arguments) => {
                node(&format!("call {}", function.text), &[]);
                self.within(|tree| tree.arguments(arguments));
            }
        }
    }
}
