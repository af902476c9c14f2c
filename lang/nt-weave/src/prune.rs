//! Prunes a module to one kernel and what it needs, before weaving: a twin module holds that kernel alone.
//!
//! ```text
//! .global .b32 table[4];            kept: `used` names it
//! .global .b32 other[4096];         dropped: ptxas would allocate it a second time, referenced or not
//! .func used() { … table … }        kept: `wanted` calls it
//! .entry wanted() { call used; }    kept
//! .entry unwanted() { … }           dropped
//! ```
//!
//! Nothing is dropped that anything kept names: by a call, an address, an initialiser, an alias, or in a debug section.
//! Headers, declarations of `.extern` functions, pragmas, `.file` and sections stay, and all declarations of one name
//! stay or go together. What is dropped is cut out from its first byte to its last; blanks and comments between items
//! stay as they are.

use nt_ptx::syntax::{ItemKind, Module};
use nt_ptx::{Edits, ModuleInfo, TokenKind};
use std::collections::BTreeSet;

/// The text of `module` without what the kernel `keep` (an index into [`Module::functions`]) does not need.
pub fn prune(module: &Module<'_>, info: &ModuleInfo<'_>, keep: usize) -> String {
    let kept = Kept::of(module, info, keep);
    let mut edits = Edits::new();
    for (number, item) in (0..).zip(&module.items) {
        let stays = match item.kind {
            ItemKind::Function(function) => module
                .functions
                .get(function as usize)
                .is_none_or(|f| kept.functions.contains(module.at(f.name))),
            ItemKind::Variable { .. } => kept.variable_items.contains(&number),
            ItemKind::Alias => {
                let aliases = || info.aliases.iter().filter(|alias| alias.item == number);
                aliases().all(|a| kept.functions.contains(a.name) && kept.functions.contains(a.target))
            }
            _ => true,
        };
        if !stays {
            edits.replace(item.span, "");
        }
    }
    // Items of one parse do not overlap.
    edits.apply(module.text).unwrap_or_else(|_| module.text.to_owned())
}

/// What stays.
#[derive(Default)]
struct Kept<'s> {
    /// Names of functions and entries.
    functions: BTreeSet<&'s str>,
    /// Indices of items that declare variables.
    variable_items: BTreeSet<u32>,
}

impl<'s> Kept<'s> {
    fn of(module: &Module<'s>, info: &ModuleInfo<'s>, keep: usize) -> Self {
        let mut roots = vec![keep];
        let mut variables = BTreeSet::new();
        for (number, function) in module.functions.iter().enumerate() {
            if !function.is_entry && function.linkage.is_some_and(|linkage| module.at(linkage) == ".extern") {
                roots.push(number);
            }
        }
        // Text that stays without being understood keeps what it names.
        for item in &module.items {
            if matches!(item.kind, ItemKind::Section | ItemKind::Other | ItemKind::Unknown) {
                for (_, at) in module.code(item.span).filter(|(kind, _)| *kind == TokenKind::Name) {
                    let name = module.at(at);
                    roots.extend(info.function(name));
                    variables.extend(info.variable(name));
                }
            }
        }

        // Functions need variables, whose initialisers need functions: until nothing is added.
        let mut kept = Kept::default();
        loop {
            roots.sort_unstable();
            roots.dedup();
            let before = (roots.len(), variables.len());
            let reach = info.reach(&roots);
            variables.extend(reach.variables.iter().map(|&variable| variable as usize));
            kept.variable_items =
                variables.iter().filter_map(|&v| info.variables.get(v)).map(|v| v.item).collect();
            for (number, variable) in info.variables.iter().enumerate() {
                // One item may declare several, and stays whole.
                if kept.variable_items.contains(&variable.item) {
                    variables.insert(number);
                    roots.extend(variable.names.iter().filter_map(|name| info.function(name)));
                    variables.extend(variable.names.iter().filter_map(|name| info.variable(name)));
                }
            }
            kept.functions = reach
                .functions
                .iter()
                .filter_map(|&f| info.functions.get(f as usize))
                .map(|f| f.name)
                .collect();
            roots.extend(reach.functions.iter().map(|&f| f as usize));
            roots.sort_unstable();
            roots.dedup();
            if (roots.len(), variables.len()) == before {
                return kept;
            }
        }
    }
}
