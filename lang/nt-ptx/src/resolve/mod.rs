//! What the names of a module mean: scopes, registers, labels, who calls whom, who names which variable.
//!
//! A module is resolved after it is read, always; later stages ask [`ModuleInfo`] instead of guessing from text.
//!
//! ```
//! let text = ".version 8.5 .target sm_90 .global .u32 g;
//! .func f() { exit; }
//! .entry k() { .reg .b32 %r<9>; { .reg .b64 %r1; mov.u64 %r1, g; } call f; }";
//! let (module, mut found) = nt_ptx::parse(text);
//! let info = nt_ptx::resolve(&module, &mut found);
//! let k = info.function("k").unwrap();
//! assert_eq!(info.functions[k].calls, ["f"]);
//! assert_eq!(info.functions[k].variables[0].space, ".global");
//! assert!(info.functions[k].end_reachable);
//! let inside = u32::try_from(text.find("mov").unwrap()).unwrap();
//! assert_eq!(info.register_at(k, inside, "%r1").unwrap().ty, ".b64");
//! assert_eq!(info.register_at(k, inside, "%r2").unwrap().ty, ".b32");
//! ```

mod name;
mod scope;

pub use name::identifiers_with_prefix;

use crate::flow::flow;
use crate::opcode::unknown_part;
use crate::syntax::{Function, Instruction, ItemKind, Kind, Module, Operand, OperandKind, Statement};
use crate::token::TokenKind;
use name::Symbols;
use nt_diag::{Diagnostic, Found, Span};
use scope::{Scopes, declarators};
use std::collections::BTreeSet;

/// How many findings of a text are kept; a text made to have millions gets no more.
const MOST_FOUND: usize = 1_000;

/// What [`resolve`] found out about a module.
#[derive(Debug, Clone, Default)]
pub struct ModuleInfo<'s> {
    /// One for each of [`Module::functions`], in the same order.
    pub functions: Vec<FunctionInfo<'s>>,
    /// The module-level variables, in text order.
    pub variables: Vec<Variable<'s>>,
    /// The aliases, in text order.
    pub aliases: Vec<Alias<'s>>,
    symbols: Symbols<'s>,
}

/// What is known of one function or entry.
#[derive(Debug, Clone, Default)]
pub struct FunctionInfo<'s> {
    /// Its name.
    pub name: &'s str,
    /// Functions that it calls by name, each once, by first occurrence.
    pub calls: Vec<&'s str>,
    /// Its calls through a register, as indices of statements.
    pub indirect_calls: Vec<u32>,
    /// Functions and entries that it names other than as the target of a direct call: their address is taken.
    pub addresses: Vec<&'s str>,
    /// Module-level variables that it names, each once, by first occurrence.
    pub variables: Vec<Named<'s>>,
    /// Does it hold an `exit`, guarded or not?
    pub has_exit: bool,
    /// Does it hold a `ret`, guarded or not?
    pub has_ret: bool,
    /// Can control reach the closing brace?
    pub end_reachable: bool,
    /// Index of the first statement behind the leading declarations; the end of its statements if there is none.
    pub first: u32,
    /// Is its symbol an operand anywhere: its address taken by a function, an initialiser or a list of targets?
    pub is_operand: bool,
    scopes: Scopes<'s>,
}

/// A module-level variable that a function names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'s> {
    /// Its name.
    pub name: &'s str,
    /// Its space: `.global`, `.const`, `.shared`, `.texref`, …
    pub space: &'s str,
}

/// A module-level variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable<'s> {
    /// Its name.
    pub name: &'s str,
    /// Its space: `.global`, `.const`, …
    pub space: &'s str,
    /// Index of its item in [`Module::items`]. One item may declare several.
    pub item: u32,
    /// Functions and variables that its initialiser names, in order.
    pub names: Vec<&'s str>,
}

/// `.alias name, target;`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias<'s> {
    /// The new name.
    pub name: &'s str,
    /// The function that it stands for.
    pub target: &'s str,
    /// Index of its item in [`Module::items`].
    pub item: u32,
}

/// A name that a function declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared<'s> {
    /// The name as declared; of `%r<9>`, `%r`.
    pub name: &'s str,
    /// `.reg`, `.shared`, `.local`, `.param`, …
    pub space: &'s str,
    /// Its type: `.b32`, `.pred`.
    pub ty: &'s str,
    /// Elements of a vector: 1, 2 or 4.
    pub lanes: u8,
    /// Where its name stands.
    pub at: Span,
}

/// The type of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register<'s> {
    /// `.b32`, `.pred`, `.f64`
    pub ty: &'s str,
    /// 1, or 2 or 4 for `.reg .v4 .f32`.
    pub lanes: u8,
}

/// What can be reached from some functions: called, their address taken, named, through aliases too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Indices into [`Module::functions`], rising, the roots among them; declarations included.
    pub functions: Vec<u32>,
    /// Indices into [`ModuleInfo::variables`], rising.
    pub variables: Vec<u32>,
    /// The functions among them that hold an `exit`, the roots left out.
    pub exits: Vec<u32>,
    /// The functions among them, roots included, that call through a register.
    pub indirect: Vec<u32>,
}

/// Finds out what the names of `module` mean. Adds errors for what ptxas refuses (a name declared twice, a branch to
/// no label) and notes for opcodes that no PTX so far has.
pub fn resolve<'s>(module: &Module<'s>, found: &mut Found) -> ModuleInfo<'s> {
    let mut info = ModuleInfo::default();
    for (index, item) in (0..).zip(&module.items) {
        match item.kind {
            ItemKind::Variable { .. } => variables(module, index, item.span, &mut info.variables),
            ItemKind::Alias => info.aliases.extend(alias(module, index, item.span)),
            _ => (),
        }
    }
    info.symbols = Symbols::of(module, &info.variables, found);
    for variable in &mut info.variables {
        variable.names.retain(|name| info.symbols.has(name));
    }

    // Opcodes that are not known are told once each.
    let mut strange: Vec<&'s str> = Vec::new();
    for function in &module.functions {
        let mut seen_names = BTreeSet::new();
        let mut facts = FunctionInfo {
            name: module.at(function.name),
            first: first_statement(module, function),
            scopes: Scopes::of(module, function, found),
            ..FunctionInfo::default()
        };
        let start = function.body.as_ref().map_or(0, |body| body.statements.start);
        for (index, statement) in (start..).zip(module.body(function)) {
            let mut seen = Seen {
                module,
                symbols: &info.symbols,
                index,
                statement,
                facts: &mut facts,
                names: &mut seen_names,
            };
            match &statement.kind {
                Kind::Instruction(instruction) => {
                    seen.instruction(instruction, found);
                    if let Some(opcode) = unknown_part(module, instruction)
                        && !strange.contains(&opcode)
                        && strange.len() < 20
                    {
                        strange.push(opcode);
                        let d = format!("unknown instruction `{opcode}`");
                        let d = Diagnostic::remark("unknown-instruction", instruction.opcode, d);
                        found.push(d.label("it passes through"));
                    }
                }
                Kind::Table => seen.table(found),
                _ => (),
            }
        }
        info.functions.push(facts);
    }
    info.mark_operands();
    for index in 0..module.functions.len() {
        let reachable =
            falls_through(module, index).unwrap_or_else(|| flow(module, &info, index).end_reachable);
        if let Some(facts) = info.functions.get_mut(index) {
            facts.end_reachable = reachable;
        }
    }
    info
}

/// The variables of one item, `.global .u32 a = 1, b[2];` having two.
fn variables<'s>(module: &Module<'s>, item: u32, span: Span, into: &mut Vec<Variable<'s>>) {
    for declarator in declarators(module, span) {
        let names = module.code(declarator.initialiser).filter(|(kind, _)| *kind == TokenKind::Name);
        let names = names.map(|(_, at)| module.at(at)).collect();
        into.push(Variable { name: declarator.declared.name, space: declarator.declared.space, item, names });
    }
}

fn alias<'s>(module: &Module<'s>, item: u32, span: Span) -> Option<Alias<'s>> {
    let mut names =
        module.code(span).filter(|(kind, _)| *kind == TokenKind::Name).map(|(_, at)| module.at(at));
    Some(Alias { name: names.next()?, target: names.next()?, item })
}

/// Where the leading declarations of a function end. Line marks and pragmas may stand among them.
fn first_statement(module: &Module<'_>, function: &Function) -> u32 {
    let start = function.body.as_ref().map_or(0, |body| body.statements.start);
    let leading = module.body(function).iter().take_while(|statement| {
        matches!(statement.kind, Kind::Declaration(_) | Kind::Loc | Kind::Pragma(_) | Kind::Directive)
    });
    let last =
        (start..).zip(leading).filter(|(_, statement)| matches!(statement.kind, Kind::Declaration(_))).last();
    last.map_or(start, |(index, _)| index + 1)
}

/// The short answer to "can the closing brace be reached": no, if the last instruction leaves for good and no label
/// follows, as in nearly all that compilers write. Else the flow must be asked.
fn falls_through(module: &Module<'_>, index: usize) -> Option<bool> {
    let function = module.functions.get(index)?;
    let mut last = module.body(function).iter().rev();
    let statement = last.find(|s| !matches!(s.kind, Kind::Close | Kind::Loc | Kind::Declaration(_)));
    match statement.map(|s| s.kind) {
        Some(Kind::Instruction(instruction)) if instruction.guard.is_none() => {
            matches!(module.opcode(&instruction).base, "ret" | "exit" | "trap" | "bra").then_some(false)
        }
        _ => None,
    }
}

/// One statement, as the walk over a function sees it.
struct Seen<'a, 's> {
    module: &'a Module<'s>,
    symbols: &'a Symbols<'s>,
    index: u32,
    statement: &'a Statement,
    facts: &'a mut FunctionInfo<'s>,
    /// What the facts hold already: names that are called, and names that are operands.
    names: &'a mut BTreeSet<(bool, &'s str)>,
}

impl<'s> Seen<'_, 's> {
    /// What an instruction adds to the facts of its function; gives its opcode's first word.
    fn instruction(&mut self, instruction: &Instruction, found: &mut Found) {
        let opcode = self.module.opcode(instruction).base;
        let mut target = None;
        match opcode {
            "exit" => self.facts.has_exit = true,
            "ret" => self.facts.has_ret = true,
            "bra" | "brx" => self.branch(instruction, found),
            "call" => target = self.call(&self.module.operands(instruction), found),
            _ => (),
        }
        self.references(instruction.operands, target);
    }

    /// A branch goes to a label that can be seen from it, `brx.idx` to a list that such a label names.
    fn branch(&self, instruction: &Instruction, found: &mut Found) {
        let whole = self.module.at(instruction.operands);
        if self.facts.scopes.label_at(self.statement.span.start, whole).is_some() {
            return;
        }
        // The operands hold more than a name, or none that is known.
        if let Some(Operand { kind: OperandKind::Name(at), .. }) = self.module.operands(instruction).last() {
            self.label(*at, found);
        }
    }

    fn label(&self, at: Span, found: &mut Found) {
        let name = self.module.at(at);
        let scopes = &self.facts.scopes;
        if scopes.label_at(self.statement.span.start, name).is_none() && found.len() < MOST_FOUND {
            let d =
                Diagnostic::error("unknown-label", at, format!("no label `{name}` can be seen from here"));
            found.push(d.suggest(name, scopes.labels().take(1_000)));
        }
    }

    /// `.branchtargets A, B;`, `.calltargets f, g;`, `.callprototype _ (.param .b32 _);`
    fn table(&mut self, found: &mut Found) {
        let span = self.statement.span;
        match self.module.code(span).next() {
            Some((_, word)) if self.module.at(word) == ".branchtargets" => {
                for (_, at) in self.module.code(span).filter(|(kind, _)| *kind == TokenKind::Name) {
                    self.label(at, found);
                }
            }
            Some((_, word)) if self.module.at(word) == ".calltargets" => self.references(span, None),
            _ => (),
        }
    }

    /// The target of a direct call, whose name is then no operand.
    fn call(&mut self, operands: &[Operand], found: &mut Found) -> Option<Span> {
        // `call (returns), target, (arguments), prototype;`
        let target = operands.iter().find(|operand| !matches!(operand.kind, OperandKind::List(_)))?;
        let OperandKind::Name(at) = target.kind else {
            self.facts.indirect_calls.push(self.index);
            return None;
        };
        let name = self.module.at(at);
        let is_symbol = self.symbols.has(name);
        let is_local = self.facts.scopes.declared_at(self.statement.span.start, name).is_some();
        if is_local || (name.starts_with('%') && !is_symbol) {
            self.facts.indirect_calls.push(self.index);
            return None;
        }
        if !is_symbol && found.len() < MOST_FOUND {
            let d = Diagnostic::error("unknown-function", at, format!("no function `{name}` is declared"));
            found.push(d.suggest(name, self.symbols.functions(self.module).take(1_000)));
        }
        if self.names.insert((true, name)) {
            self.facts.calls.push(name);
        }
        Some(at)
    }

    /// Symbols of the module that a span names, but for the target of a direct call.
    fn references(&mut self, span: Span, target: Option<Span>) {
        if self.symbols.cannot_be_in(self.module.at(span)) {
            return;
        }
        for (kind, at) in self.module.code(span) {
            if kind != TokenKind::Name || Some(at) == target {
                continue;
            }
            let name = self.module.at(at);
            let Some(symbol) = self.symbols.get(name) else {
                continue;
            };
            let (scopes, offset) = (&self.facts.scopes, self.statement.span.start);
            if scopes.declared_at(offset, name).is_some()
                || scopes.label_at(offset, name).is_some()
                || !self.names.insert((false, name))
            {
                continue;
            }
            match symbol.space {
                Some(space) => self.facts.variables.push(Named { name, space }),
                None => self.facts.addresses.push(name),
            }
        }
    }
}

impl<'s> ModuleInfo<'s> {
    /// The function of that name, as an index into [`Module::functions`]: its definition, else its first declaration.
    pub fn function(&self, name: &str) -> Option<usize> {
        self.symbols.get(name).filter(|symbol| symbol.space.is_none()).map(|symbol| symbol.index)
    }

    /// The module-level variable of that name, as an index into [`ModuleInfo::variables`].
    pub fn variable(&self, name: &str) -> Option<usize> {
        self.symbols.get(name).filter(|symbol| symbol.space.is_some()).map(|symbol| symbol.index)
    }

    /// The register that `name` means at `offset` of a function: innermost scope first, declared before `offset`.
    /// A special register is found only where the function shadows it.
    pub fn register_at(&self, function: usize, offset: u32, name: &str) -> Option<Register<'s>> {
        let declared = self.declared_at(function, offset, name)?;
        (declared.space == ".reg").then_some(Register { ty: declared.ty, lanes: declared.lanes })
    }

    /// What `name` means at `offset` of a function, if the function (or its parameter list) declares it.
    pub fn declared_at(&self, function: usize, offset: u32, name: &str) -> Option<Declared<'s>> {
        self.functions.get(function)?.scopes.declared_at(offset, name)
    }

    /// The statement of the label that `name` means at `offset`: of the innermost scope that has one, before or
    /// behind.
    pub fn label_at(&self, function: usize, offset: u32, name: &str) -> Option<u32> {
        self.functions.get(function)?.scopes.label_at(offset, name)
    }
}
