//! Calls through pointers: which functions they may go to, where the text says so.
//!
//! ```text
//! selp.b64 %rd3, %rd1, %rd2, %p1;           %rd1 is nothing but the address of f, %rd2 that of g
//! call (retval0), %rd3, (param0), proto;    goes to f or g
//!
//! ld.global.u64 %rd4, [table];
//! call %rd4, (), targets;                   goes to what `targets: .calltargets f, g;` lists, which the program promises
//! ```
//!
//! A register is known where it is named by nothing but copies of addresses of functions and of registers that are known,
//! and calls through it; the order of instructions is not looked at. What is loaded from memory is not known. An
//! address that anything else is done with escapes: others may call the function by it.

use crate::resolve::ModuleInfo;
use crate::syntax::{Instruction, Kind, Module, Operand, OperandKind};
use crate::token::TokenKind;
use nt_diag::Span;
use std::collections::{BTreeMap, BTreeSet};

/// What a function does with addresses of functions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pointers<'s> {
    /// Its calls through registers, in text order.
    pub calls: Vec<PointerCall<'s>>,
    /// The functions whose address it gives away, and where, in text order.
    pub escapes: Vec<(&'s str, Span)>,
}

/// A call through a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointerCall<'s> {
    /// The call, as an index into [`Module::statements`].
    pub statement: u32,
    /// Where it may go to, by name; `None` if that cannot be told.
    pub targets: Option<BTreeSet<&'s str>>,
    /// Does the pointer come from the function's own text, and not from memory or a parameter?
    pub is_of_text: bool,
}

/// What is written to a register.
#[derive(Default)]
struct Written<'s> {
    functions: BTreeSet<&'s str>,
    registers: BTreeSet<&'s str>,
    /// What else it is named by, first: that may write to it, or give away what it holds.
    other: Option<Span>,
}

/// What a function, by its index in [`Module::functions`], does with addresses of functions.
pub fn pointers<'s>(module: &Module<'s>, info: &ModuleInfo<'s>, function: usize) -> Pointers<'s> {
    let mut found = Pointers::default();
    let (Some(declared), Some(known)) = (module.functions.get(function), info.functions.get(function)) else {
        return found;
    };
    // Most functions call none through a pointer and take no address.
    if known.indirect_calls.is_empty() && known.addresses.is_empty() {
        return found;
    }
    let mut reader = Reader {
        module,
        info,
        function,
        escapes: Vec::new(),
        written: BTreeMap::new(),
        lists: BTreeMap::new(),
    };
    let mut label = None;
    let start = declared.body.as_ref().map_or(0, |body| body.statements.start);
    let mut calls: Vec<(u32, &'s str, Option<&'s str>)> = Vec::new();
    for (number, statement) in (start..).zip(module.body(declared)) {
        match statement.kind {
            Kind::Label(name) => label = Some(module.at(name)),
            Kind::Table => {
                if let Some(label) = label {
                    reader.list(label, statement.span);
                }
            }
            Kind::Instruction(instruction) => {
                let operands = module.operands(&instruction);
                if known.indirect_calls.contains(&number) {
                    calls.extend(reader.call(&operands).map(|(target, table)| (number, target, table)));
                }
                reader.instruction(&instruction, &operands);
            }
            // What cannot be read may write anything.
            Kind::Unknown => reader.touch(statement.span),
            _ => {}
        }
    }
    for (statement, target, table) in calls {
        let of_text = reader.targets(target);
        let listed = table.and_then(|table| reader.lists.get(table)).cloned();
        let is_of_text = of_text.is_some();
        found.calls.push(PointerCall { statement, targets: of_text.or(listed), is_of_text });
    }
    found.escapes = reader.escaped();
    found
}

struct Reader<'m, 's> {
    escapes: Vec<(&'s str, Span)>,
    module: &'m Module<'s>,
    info: &'m ModuleInfo<'s>,
    function: usize,
    /// By register.
    written: BTreeMap<&'s str, Written<'s>>,
    /// Lists of targets, by label.
    lists: BTreeMap<&'s str, BTreeSet<&'s str>>,
}

impl<'s> Reader<'_, 's> {
    /// `targets: .calltargets f, g;`
    fn list(&mut self, label: &'s str, span: Span) {
        let mut words = self.module.code(span);
        if words.next().is_none_or(|(_, word)| self.module.at(word) != ".calltargets") {
            return;
        }
        let names = words.filter(|(kind, _)| *kind == TokenKind::Name).map(|(_, at)| self.module.at(at));
        // A label that two scopes declare lists what both do.
        self.lists.entry(label).or_default().extend(names);
    }

    /// The register that a call goes through, and the label of its prototype or targets.
    fn call(&self, operands: &[Operand]) -> Option<(&'s str, Option<&'s str>)> {
        let mut names = operands.iter().filter(|operand| !matches!(operand.kind, OperandKind::List(_)));
        let OperandKind::Name(target) = names.next()?.kind else { return None };
        let table = match names.next().map(|operand| &operand.kind) {
            Some(&OperandKind::Name(name)) => Some(self.module.at(name)),
            _ => None,
        };
        Some((self.module.at(target), table))
    }

    fn instruction(&mut self, instruction: &Instruction, operands: &[Operand]) {
        let opcode = self.module.opcode(instruction);
        let plain = |operand: &Operand| match operand.kind {
            OperandKind::Name(name) if name == operand.span => Some(name),
            _ => None,
        };
        let is_copy = match (opcode.base, operands) {
            ("mov", [to, from]) => plain(to).is_some() && plain(from).is_some(),
            ("selp", [to, one, other, _]) => {
                [to, one, other].into_iter().all(|operand| plain(operand).is_some())
            }
            _ => false,
        };
        if is_copy {
            let mut values = operands.iter().filter_map(plain);
            let Some(to) = values.next() else { return };
            let to = self.module.at(to);
            let count = if opcode.base == "selp" { 2 } else { 1 };
            for from in values.take(count) {
                let name = self.module.at(from);
                let function = self.is_function(name, from);
                let written = self.written.entry(to).or_default();
                match function {
                    true => written.functions.insert(name),
                    false => written.registers.insert(name),
                };
            }
            return;
        }
        match opcode.base {
            "call" => {
                for operand in operands.iter().filter(|operand| matches!(operand.kind, OperandKind::List(_)))
                {
                    self.touch(operand.span);
                }
            }
            _ => operands.iter().for_each(|operand| self.touch(operand.span)),
        }
    }

    /// All that a span names may be written here, and what of it is an address is given away.
    fn touch(&mut self, span: Span) {
        for (kind, at) in self.module.code(span) {
            if kind != TokenKind::Name {
                continue;
            }
            let name = self.module.at(at);
            if self.is_function(name, at) {
                self.escapes.push((name, at));
            } else {
                self.written.entry(name).or_default().other.get_or_insert(at);
            }
        }
    }

    /// Does a name stand for a function there?
    fn is_function(&self, name: &str, at: Span) -> bool {
        self.info.function(name).is_some() && self.info.declared_at(self.function, at.start, name).is_none()
    }

    /// The functions whose addresses a register may hold, if it can hold nothing else.
    fn targets(&self, register: &'s str) -> Option<BTreeSet<&'s str>> {
        let (targets, is_all) = self.held(register);
        (is_all && !targets.is_empty()).then_some(targets)
    }

    /// The functions whose addresses a register may hold; and is that all it can hold?
    fn held(&self, register: &'s str) -> (BTreeSet<&'s str>, bool) {
        let (mut held, mut is_all) = (BTreeSet::new(), true);
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![register]);
        while let Some(register) = waiting.pop() {
            if !seen.insert(register) {
                continue;
            }
            let Some(written) = self.written.get(register) else {
                is_all = false;
                continue;
            };
            is_all &= written.other.is_none();
            held.extend(&written.functions);
            waiting.extend(&written.registers);
        }
        (held, is_all)
    }

    /// The functions whose addresses are given away, with those that registers hold.
    fn escaped(mut self) -> Vec<(&'s str, Span)> {
        let mut escapes = std::mem::take(&mut self.escapes);
        let others = self.written.iter().filter_map(|(register, written)| Some((*register, written.other?)));
        for (register, at) in others {
            // Most registers hold no address of a function.
            escapes.extend(self.held(register).0.into_iter().map(|function| (function, at)));
        }
        escapes.sort_by_key(|(function, at)| (at.start, *function));
        escapes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The targets of each call of `k`, and whether the text gives them; then what escapes.
    fn check(body: &str, calls: &[(Option<&[&str]>, bool)], escapes: &[&str]) {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.func f() {{ ret; }}\n.func g() {{ ret; }}\n.entry k(.param .u64 p) {{\n\
             .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<3>;\n{body}\nret; }}\n"
        );
        let (module, mut found) = crate::parse(&text);
        let info = crate::resolve(&module, &mut found);
        assert!(!found.has_errors(), "{body}: {found:?}");
        let pointers = pointers(&module, &info, 2);
        let told: Vec<(Option<Vec<&str>>, bool)> = pointers
            .calls
            .iter()
            .map(|call| (call.targets.as_ref().map(|t| t.iter().copied().collect()), call.is_of_text))
            .collect();
        let calls: Vec<(Option<Vec<&str>>, bool)> =
            calls.iter().map(|(targets, of)| (targets.map(<[&str]>::to_vec), *of)).collect();
        assert_eq!(told, calls, "{body}");
        let escaped: Vec<&str> = pointers.escapes.iter().map(|(name, _)| *name).collect();
        assert_eq!(escaped, escapes, "{body}");
    }

    #[test]
    fn where_calls_go() {
        let proto = "P: .callprototype _ ();";
        check(&format!("mov.u64 %d1, f; {proto} call %d1, (), P;"), &[(Some(&["f"]), true)], &[]);
        let both = "mov.u64 %d1, f; mov.u64 %d2, g; selp.b64 %d3, %d1, %d2, %p1; mov.b64 %d4, %d3;";
        check(&format!("{both} {proto} call %d4, (), P;"), &[(Some(&["f", "g"]), true)], &[]);
        check(
            &format!("@%p1 mov.u64 %d1, f; @!%p1 mov.u64 %d1, g; {proto} call %d1, (), P;"),
            &[(Some(&["f", "g"]), true)],
            &[],
        );
        check(&format!("ld.param.u64 %d1, [p]; {proto} call %d1, (), P;"), &[(None, false)], &[]);
        check(
            "ld.param.u64 %d1, [p]; T: .calltargets f, g; call %d1, (), T;",
            &[(Some(&["f", "g"]), false)],
            &[],
        );
        // Also where the order of things says otherwise.
        check(
            &format!("mov.u64 %d1, f; {proto} call %d1, (), P; ld.param.u64 %d1, [p];"),
            &[(None, false)],
            &["f"],
        );
        check(
            &format!("mov.u64 %d1, f; add.u64 %d1, %d1, 0; {proto} call %d1, (), P;"),
            &[(None, false)],
            &["f"],
        );
        check(&format!("mov.u64 %d1, f; mov.u64 %d1, %d2; {proto} call %d1, (), P;"), &[(None, false)], &[]);
        check(
            &format!("mov.u64 %d1, f; setp.eq.u64 %p1, %d1, %d2; {proto} call %d1, (), P;"),
            &[(None, false)],
            &["f"],
        );
    }

    #[test]
    fn what_is_given_away() {
        check("mov.u64 %d1, f; st.global.u64 [%d2], %d1;", &[], &["f"]);
        check("mov.u64 %d1, f; mov.u64 %d2, %d1; st.local.u64 [%d3], %d2;", &[], &["f"]);
        check("mov.u64 %d1, f; mov.b64 {%r1, %r2}, %d1;", &[], &["f"]);
        check("mov.u64 %d1, f; mov.u64 %d2, g;", &[], &[]);
        check("call f; call g;", &[], &[]);
    }
}
