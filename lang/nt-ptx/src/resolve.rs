//! What the names of a module mean: scopes, registers, labels, who calls whom, who names which variable.

use crate::syntax::Module;
use nt_diag::{Found, Span};

/// What [`resolve`] found out about a module. Later stages ask here instead of guessing from text.
#[derive(Debug, Clone, Default)]
pub struct ModuleInfo<'s> {
    /// One for each of [`Module::functions`], in the same order.
    pub functions: Vec<FunctionInfo<'s>>,
    /// The module-level variables, in text order.
    pub variables: Vec<Variable<'s>>,
    /// The aliases, in text order.
    pub aliases: Vec<Alias<'s>>,
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
    /// Functions and entries whose address it takes: named by an operand other than a direct call's target.
    pub addresses: Vec<&'s str>,
    /// Module-level variables that it names, each once, by first occurrence.
    pub variables: Vec<Named<'s>>,
    /// Does it hold an `exit`, guarded or not?
    pub has_exit: bool,
    /// Does it hold a `ret`?
    pub has_ret: bool,
    /// Can control reach the closing brace?
    pub end_reachable: bool,
    /// Index of the first statement behind the leading declarations; the end of its statements if there is none.
    pub first: u32,
    /// Is its symbol an operand anywhere (its address taken, by any function or initialiser)?
    pub is_operand: bool,
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
    /// Indices into [`Module::functions`], rising; declarations included.
    pub functions: Vec<u32>,
    /// Indices into [`ModuleInfo::variables`], rising.
    pub variables: Vec<u32>,
    /// The functions among them that hold an `exit`, the roots left out.
    pub exits: Vec<u32>,
    /// The functions among them, roots included, that call through a register.
    pub indirect: Vec<u32>,
}

/// Finds out what the names of `module` mean.
pub fn resolve<'s>(module: &Module<'s>, found: &mut Found) -> ModuleInfo<'s> {
    let _ = (module, found);
    ModuleInfo::default()
}

impl<'s> ModuleInfo<'s> {
    /// The function of that name, as an index into [`Module::functions`]: its definition, else its first declaration.
    pub fn function(&self, _name: &str) -> Option<usize> {
        None
    }

    /// The module-level variable of that name, as an index into [`ModuleInfo::variables`].
    pub fn variable(&self, _name: &str) -> Option<usize> {
        None
    }

    /// The register that `name` means at `offset` of a function: innermost scope first, declared before `offset`.
    /// A special register is found only where the module shadows it.
    pub fn register_at(&self, _function: usize, _offset: u32, _name: &str) -> Option<Register<'s>> {
        None
    }

    /// What `name` means at `offset` of a function, if the function (or its parameter list) declares it.
    pub fn declared_at(&self, _function: usize, _offset: u32, _name: &str) -> Option<Declared<'s>> {
        None
    }

    /// The statement of the label that `name` means at `offset`: of the innermost scope that has one, before or behind.
    pub fn label_at(&self, _function: usize, _offset: u32, _name: &str) -> Option<u32> {
        None
    }

    /// Everything that the functions of `roots` need.
    pub fn reach(&self, _roots: &[usize]) -> Reach {
        Reach::default()
    }
}

/// The identifiers of the text that begin with `prefix`, after an optional `%` or `$`, each once, in order.
pub fn identifiers_with_prefix<'s>(_module: &Module<'s>, _prefix: &str) -> Vec<&'s str> {
    Vec::new()
}
