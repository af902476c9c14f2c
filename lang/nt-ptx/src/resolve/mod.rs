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
use crate::opcode::is_known;
use crate::syntax::{Function, Instruction, ItemKind, Kind, Module, Operand, OperandKind, Statement};
use crate::token::TokenKind;
use name::Symbols;
use nt_diag::{Diagnostic, Found, Span};
use scope::{Scopes, declarators};

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
        let mut facts = FunctionInfo {
            name: module.at(function.name),
            first: first_statement(module, function),
            scopes: Scopes::of(module, function, found),
            ..FunctionInfo::default()
        };
        let start = function.body.as_ref().map_or(0, |body| body.statements.start);
        for (index, statement) in (start..).zip(module.body(function)) {
            let seen = Seen { module, symbols: &info.symbols, index, statement };
            match &statement.kind {
                Kind::Instruction(instruction) => {
                    let opcode = seen.instruction(instruction, &mut facts, found);
                    if !is_known(opcode) && !strange.contains(&opcode) && strange.len() < 20 {
                        strange.push(opcode);
                        let d = format!("unknown instruction `{opcode}`");
                        let d = Diagnostic::remark("unknown-instruction", instruction.opcode, d);
                        found.push(d.label("it passes through"));
                    }
                }
                Kind::Table => seen.references(statement.span, None, &mut facts),
                _ => (),
            }
        }
        info.functions.push(facts);
    }
    info.mark_operands();
    for index in 0..module.functions.len() {
        let reachable = falls_through(module, index).unwrap_or_else(|| flow(module, &info, index).end_reachable);
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
    let mut names = module.code(span).filter(|(kind, _)| *kind == TokenKind::Name).map(|(_, at)| module.at(at));
    Some(Alias { name: names.next()?, target: names.next()?, item })
}

/// Where the leading declarations of a function end. Line marks and pragmas may stand among them.
fn first_statement(module: &Module<'_>, function: &Function) -> u32 {
    let start = function.body.as_ref().map_or(0, |body| body.statements.start);
    let leading = module.body(function).iter().take_while(|statement| {
        matches!(statement.kind, Kind::Declaration(_) | Kind::Loc | Kind::Pragma(_) | Kind::Directive)
    });
    let last = (start..).zip(leading).filter(|(_, statement)| matches!(statement.kind, Kind::Declaration(_))).last();
    last.map_or(start, |(index, _)| index + 1)
}

/// The short answer to "can the closing brace be reached": no, if the last instruction leaves for good and no label
/// follows; yes, if it is one of those that simply go on or are guarded and stands where control surely comes by: this
/// is left to the flow.
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
}

impl<'s> Seen<'_, 's> {
    /// What an instruction adds to the facts of its function; gives its opcode's first word.
    fn instruction(&self, instruction: &Instruction, facts: &mut FunctionInfo<'s>, found: &mut Found) -> &'s str {
        let opcode = self.module.opcode(instruction).base;
        let mut target = None;
        match opcode {
            "exit" => facts.has_exit = true,
            "ret" => facts.has_ret = true,
            "bra" => self.branch(instruction, facts, found),
            "call" => target = self.call(&self.module.operands(instruction), facts),
            _ => (),
        }
        self.references(instruction.operands, target, facts);
        opcode
    }

    /// A direct branch goes to a label that can be seen from it.
    fn branch(&self, instruction: &Instruction, facts: &FunctionInfo<'s>, found: &mut Found) {
        let name = self.module.at(instruction.operands);
        if facts.scopes.label_at(self.statement.span.start, name).is_some() {
            return;
        }
        // The operands may hold comments, or be none; then they are read as such.
        let operands = self.module.operands(instruction);
        let [Operand { kind: OperandKind::Name(at), .. }] = operands.as_slice() else {
            return;
        };
        let name = self.module.at(*at);
        if facts.scopes.label_at(self.statement.span.start, name).is_none() {
            let d = Diagnostic::error("unknown-label", *at, format!("no label `{name}` can be seen from here"));
            found.push(d.suggest(name, facts.scopes.labels()));
        }
    }

    /// The target of a direct call, whose name is then no operand.
    fn call(&self, operands: &[Operand], facts: &mut FunctionInfo<'s>) -> Option<Span> {
        // `call (returns), target, (arguments), prototype;`
        let target = operands.iter().find(|operand| !matches!(operand.kind, OperandKind::List(_)))?;
        let OperandKind::Name(at) = target.kind else {
            facts.indirect_calls.push(self.index);
            return None;
        };
        let name = self.module.at(at);
        let is_local = facts.scopes.declared_at(self.statement.span.start, name).is_some();
        if is_local || (name.starts_with('%') && !self.symbols.has(name)) {
            facts.indirect_calls.push(self.index);
            return None;
        }
        once(&mut facts.calls, name);
        Some(at)
    }

    /// Symbols of the module that a span names, but for the target of a direct call.
    fn references(&self, span: Span, target: Option<Span>, facts: &mut FunctionInfo<'s>) {
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
            let offset = self.statement.span.start;
            if facts.scopes.declared_at(offset, name).is_some() || facts.scopes.label_at(offset, name).is_some() {
                continue;
            }
            match symbol.space {
                Some(space) => {
                    if !facts.variables.iter().any(|named| named.name == name) {
                        facts.variables.push(Named { name, space });
                    }
                }
                None => once(&mut facts.addresses, name),
            }
        }
    }
}

fn once<'s>(list: &mut Vec<&'s str>, name: &'s str) {
    if !list.contains(&name) {
        list.push(name);
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
