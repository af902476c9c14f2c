//! A module back to text, from its nodes: the other half of the law `spell(parse(x)) == x`.
//!
//! The law could be had for nothing by copying [`Module::text`]. So this copies what nodes cover (items, and inside of
//! functions guards, opcodes, operands, labels and braces), and between two nodes only what may be lost without loss:
//! blanks, comments, the comma between operands, the `;` of a statement. A byte that no node covers is missing from the
//! result, one that two cover is there twice, and the law fails.

use crate::syntax::{Function, ItemKind, Kind, Module, Statement};
use nt_diag::Span;

/// The text of a module, put together from its nodes.
pub fn spell(module: &Module<'_>) -> String {
    let mut pen = Pen { module, out: String::with_capacity(module.text.len()), at: 0 };
    // Statements without a function, as `parse_statements` gives them.
    if module.functions.is_empty() {
        pen.statements(&module.statements);
    }
    for item in &module.items {
        match item.kind {
            ItemKind::Function(index) => {
                if let Some(function) = module.functions.get(index as usize) {
                    pen.function(function);
                }
            }
            _ => pen.node(item.span),
        }
    }
    pen.gap(u32::try_from(module.text.len()).unwrap_or(u32::MAX), "");
    pen.out
}

struct Pen<'a, 's> {
    module: &'a Module<'s>,
    out: String,
    /// How far the text was spelled.
    at: u32,
}

impl Pen<'_, '_> {
    /// Copies a node, and before it blanks and comments.
    fn node(&mut self, span: Span) {
        self.node_behind(span, "");
    }

    /// The same where signs of `besides` may stand before it.
    fn node_behind(&mut self, span: Span, besides: &str) {
        self.gap(span.start, besides);
        self.out.push_str(self.module.at(span));
        self.at = span.end;
    }

    /// Copies blanks, comments and signs of `besides` up to `end`, and nothing else.
    fn gap(&mut self, end: u32, besides: &str) {
        let mut rest = self.module.at(Span::new(self.at, end));
        while let Some(first) = rest.chars().next() {
            let comment = comment(rest);
            let len = if comment > 0 { comment } else { first.len_utf8() };
            let (head, tail) = rest.split_at(len);
            if comment > 0 || " \t\r\n".contains(first) || besides.contains(first) {
                self.out.push_str(head);
            }
            rest = tail;
        }
        self.at = end;
    }

    fn function(&mut self, function: &Function) {
        let Some(body) = &function.body else {
            return self.node(function.span);
        };
        self.node(Span::new(function.span.start, body.span.start + 1));
        self.statements(self.module.body(function));
        // The closing brace, unless the text ended before it.
        self.gap(body.span.end, "}");
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            let Kind::Instruction(instruction) = statement.kind else {
                self.node(statement.span);
                continue;
            };
            if let Some(guard) = instruction.guard {
                self.node(guard.span);
            }
            self.node(instruction.opcode);
            for operand in self.module.operands(&instruction) {
                self.node_behind(operand.span, ",");
            }
            self.gap(statement.span.end, ",;");
        }
    }
}

/// The length of the comment or line marker that `text` begins with, 0 if with none.
fn comment(text: &str) -> usize {
    if let Some(rest) = text.strip_prefix("/*") {
        rest.find("*/").map_or(0, |end| end + 4)
    } else if text.starts_with("//") || text.starts_with('#') {
        text.find(['\r', '\n']).unwrap_or(text.len())
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn what_no_node_covers_is_missed() {
        let text = ".version 8.5\n.target sm_90\n// c\n.entry k() { add.u32 a, /* , */ b, 1 ; ret; }\n";
        let (mut module, _) = parse(text);
        assert_eq!(spell(&module), text);

        let Kind::Instruction(mut add) = module.statements[0].kind else {
            panic!("{:?}", module.statements[0]);
        };
        add.operands.end -= 2;
        module.statements[0].kind = Kind::Instruction(add);
        assert_ne!(spell(&module), text, "an operand is lost");

        let (mut module, _) = parse(text);
        module.items.remove(1);
        assert_ne!(spell(&module), text, "an item is lost");

        let (mut module, _) = parse(text);
        module.statements[1].span = module.statements[0].span;
        assert_ne!(spell(&module), text, "a statement is there twice");
    }
}
