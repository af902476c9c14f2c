//! Symbols of a module, and what follows from who names whom.

use super::{Alias, ModuleInfo, Reach, Variable};
use crate::syntax::{Function, Module};
use crate::token::TokenKind;
use nt_diag::{Diagnostic, Found, Span};
use std::collections::{BTreeSet, HashMap};

/// The functions and variables of a module by name. Only ever asked by name, so that no order of hashes shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Symbols<'s> {
    by_name: HashMap<&'s str, Symbol<'s>>,
    /// Does any begin with `%`, as registers do?
    has_percent: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol<'s> {
    /// Of a variable.
    pub(super) space: Option<&'s str>,
    /// Into the module's functions or the info's variables.
    pub(super) index: usize,
}

impl<'s> Symbols<'s> {
    pub(super) fn of(module: &Module<'s>, variables: &[Variable<'s>], found: &mut Found) -> Self {
        let mut all = Symbols::default();
        for (index, variable) in variables.iter().enumerate() {
            let symbol = Symbol { space: Some(variable.space), index };
            all.by_name.entry(variable.name).or_insert(symbol);
        }
        for (index, function) in module.functions.iter().enumerate() {
            let name = module.at(function.name);
            let symbol = Symbol { space: None, index };
            match all.by_name.get(name).copied() {
                Some(Symbol { space: None, index: first }) if function.body.is_some() => {
                    let first = module.functions.get(first).filter(|first| first.body.is_some());
                    if let Some(first) = first {
                        twice(module, first, function, found);
                    } else {
                        all.by_name.insert(name, symbol);
                    }
                }
                Some(_) => (),
                None => {
                    all.by_name.insert(name, symbol);
                }
            }
        }
        all.has_percent = variables.iter().any(|variable| variable.name.starts_with('%'))
            || module.functions.iter().any(|function| module.at(function.name).starts_with('%'));
        all
    }

    pub(super) fn get(&self, name: &str) -> Option<Symbol<'s>> {
        self.by_name.get(name).copied()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The names of all functions, in text order.
    pub(super) fn functions<'m>(
        &self,
        module: &'m Module<'s>,
    ) -> impl Iterator<Item = &'s str> + use<'m, 's> {
        module.functions.iter().map(|function| module.at(function.name))
    }

    /// Can operands be passed over without a look at each name? Most name registers and numbers only, and no symbol
    /// that does not begin with `%` can be in a text all of whose words do.
    pub(super) fn cannot_be_in(&self, operands: &str) -> bool {
        if self.has_percent {
            return false;
        }
        let mut before = b' ';
        for &byte in operands.as_bytes() {
            let begins = byte.is_ascii_alphabetic() || byte == b'$' || byte == b'_' || byte == b'/';
            // Fields (`%tid.x`), and letters inside of names and numbers, begin nothing.
            let inside = before.is_ascii_alphanumeric() || matches!(before, b'%' | b'_' | b'$' | b'.');
            if begins && !inside {
                return false;
            }
            before = byte;
        }
        true
    }
}

fn twice(module: &Module<'_>, first: &Function, second: &Function, found: &mut Found) {
    if found.len() >= super::MOST_FOUND {
        return;
    }
    let message = format!("the function `{}` is defined twice", module.at(second.name));
    let d = Diagnostic::error("duplicate-name", second.name, message);
    found.push(d.note_at(first.name, "the first definition"));
}

impl<'s> ModuleInfo<'s> {
    /// Marks the functions whose symbol is an operand anywhere.
    pub(super) fn mark_operands(&mut self) {
        let taken = self.functions.iter().flat_map(|facts| &facts.addresses);
        let taken = taken.chain(self.variables.iter().flat_map(|variable| &variable.names));
        let mut taken: Vec<&str> = taken.copied().collect();
        taken.sort_unstable();
        for facts in &mut self.functions {
            facts.is_operand = taken.binary_search(&facts.name).is_ok();
        }
    }

    /// Everything that the functions of `roots` need, themselves included: what they call and name, what the
    /// initialisers of that name, and both ends of every alias of a function among it.
    pub fn reach(&self, roots: &[usize]) -> Reach {
        let mut functions = vec![false; self.functions.len()];
        let mut variables = vec![false; self.variables.len()];
        // A name may stand for a declaration and a definition.
        let mut by_name: Vec<(&str, usize)> = self.functions.iter().map(|f| f.name).zip(0..).collect();
        by_name.sort_unstable();
        let both = |alias: &Alias<'s>| [(alias.name, alias.target), (alias.target, alias.name)];
        let mut aliases: Vec<(&str, &str)> = self.aliases.iter().flat_map(both).collect();
        aliases.sort_unstable();
        let mut names: Vec<&str> =
            roots.iter().filter_map(|&root| Some(self.functions.get(root)?.name)).collect();
        while let Some(name) = names.pop() {
            if let Some(index) = self.variable(name)
                && let Some(seen) = variables.get_mut(index)
                && !std::mem::replace(seen, true)
            {
                names.extend(&self.variables[index].names);
            }
            // In a faulty text a function may have the same name.
            // `partition_point` is at most the length, and indices of `by_name` are those of `functions`.
            let first = by_name.partition_point(|entry| entry.0 < name);
            for &(_, index) in by_name[first..].iter().take_while(|entry| entry.0 == name) {
                if std::mem::replace(&mut functions[index], true) {
                    continue;
                }
                let facts = &self.functions[index];
                names.extend(&facts.calls);
                names.extend(&facts.addresses);
                names.extend(facts.variables.iter().map(|variable| variable.name));
                let first = aliases.partition_point(|alias| alias.0 < name);
                let same = aliases[first..].iter().take_while(|alias| alias.0 == name);
                names.extend(same.map(|alias| alias.1));
            }
        }
        let chosen =
            |marks: &[bool]| (0..).zip(marks).filter(|(_, mark)| **mark).map(|(index, _)| index).collect();
        let functions: Vec<u32> = chosen(&functions);
        let having = |test: &dyn Fn(usize) -> bool| -> Vec<u32> {
            functions.iter().copied().filter(|&index| test(index as usize)).collect()
        };
        Reach {
            exits: having(&|index| self.functions[index].has_exit && !roots.contains(&index)),
            indirect: having(&|index| !self.functions[index].indirect_calls.is_empty()),
            variables: chosen(&variables),
            functions,
        }
    }
}

/// The identifiers of the text that begin with `prefix`, after an optional `%` or `$`, each once, in order of first
/// occurrence. Comments and strings hold none.
pub fn identifiers_with_prefix<'s>(module: &Module<'s>, prefix: &str) -> Vec<&'s str> {
    let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
    // Nearly always the answer is none, and one search says so.
    if prefix.is_empty() || memchr::memmem::find(module.text.as_bytes(), prefix.as_bytes()).is_none() {
        return all;
    }
    for (kind, at) in module.code(Span::from(0..module.text.len())) {
        let name = module.at(at);
        let begins = kind == TokenKind::Name && name.trim_start_matches(['%', '$']).starts_with(prefix);
        if begins && seen.insert(name) {
            all.push(name);
        }
    }
    all
}
