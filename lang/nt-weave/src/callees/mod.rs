//! Who calls whom, of a kernel and what it reaches, and what comes of probes in functions.
//!
//! ```text
//! .entry k  { … call f; … }      f has a site, so k calls a clone of it, which knows the context
//! .func  f  { … call g; … }      g has none, and calls none: it stays
//! ```
//!
//! `cloned.rs` tells which functions are cloned for a kernel and what each must be given; `sums.rs`, how what is counted in a
//! clone gets out of it; `stale.rs`, where a state would be read that a function has assigned.
//!
//! Functions that are reached through pointers are not followed. docs/injection.md, Functions.

mod cloned;
mod stale;
mod sums;

use crate::choose::Names;
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::{Instruction, Kind as StatementKind, Module, OperandKind};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use cloned::{Cloned, Needs};

/// A direct call of a function that has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// The statement.
    pub(crate) statement: u32,
    /// The function, by index of its definition.
    pub(crate) callee: usize,
    /// Is it called by its own name, and not by an alias?
    pub(crate) is_by_name: bool,
}

/// Who calls whom, of a kernel and what it reaches by direct calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The calls in each function, by index of its definition; the kernel is among them.
    of: BTreeMap<usize, Vec<Call>>,
}

impl Calls {
    /// The calls of a kernel and of all that it reaches.
    pub(crate) fn of(module: &Module<'_>, info: &ModuleInfo<'_>, names: &Names<'_>, kernel: usize) -> Calls {
        let mut calls = Calls::default();
        let mut waiting = vec![kernel];
        while let Some(function) = waiting.pop() {
            if calls.of.contains_key(&function) {
                continue;
            }
            let found = calls_in(module, info, names, function);
            waiting.extend(found.iter().map(|call| call.callee));
            calls.of.insert(function, found);
        }
        calls
    }

    /// The calls in a function, in text order.
    pub(crate) fn within(&self, function: usize) -> &[Call] {
        self.of.get(&function).map_or(&[], Vec::as_slice)
    }

    /// What is reached beside the kernel, in text order.
    pub(crate) fn callees(&self, kernel: usize) -> Vec<usize> {
        self.of.keys().copied().filter(|&function| function != kernel).collect()
    }

    /// These functions and all that lead to them, but the kernel.
    fn leading_to(&self, mut some: BTreeSet<usize>, kernel: usize) -> BTreeSet<usize> {
        loop {
            let before = some.len();
            for (&function, calls) in &self.of {
                if function != kernel && calls.iter().any(|call| some.contains(&call.callee)) {
                    some.insert(function);
                }
            }
            if some.len() == before {
                return some;
            }
        }
    }
}

fn calls_in(module: &Module<'_>, info: &ModuleInfo<'_>, names: &Names<'_>, function: usize) -> Vec<Call> {
    let Some(known) = info.functions.get(function).filter(|known| !known.calls.is_empty()) else {
        return Vec::new();
    };
    let Some(declared) = module.functions.get(function) else { return Vec::new() };
    let start = declared.body.as_ref().map_or(0, |body| body.statements.start);
    let mut calls = Vec::new();
    for (statement, one) in (start..).zip(module.body(declared)) {
        let StatementKind::Instruction(instruction) = one.kind else { continue };
        let Some(called) = callee(module, &instruction).filter(|called| known.calls.contains(called)) else {
            continue;
        };
        let is_defined = |&index: &usize| {
            module.functions.get(index).is_some_and(|function| function.body.is_some() && !function.is_entry)
        };
        let defined = |name: &str| names.all(name).iter().copied().find(is_defined);
        let own = defined(called);
        if let Some(callee) = own.or_else(|| defined(names.target(called)?)) {
            calls.push(Call { statement, callee, is_by_name: own.is_some() });
        }
    }
    calls
}

/// The name that a call goes to.
pub(crate) fn callee<'s>(module: &Module<'s>, instruction: &Instruction) -> Option<&'s str> {
    if module.opcode(instruction).base != "call" {
        return None;
    }
    let operands = module.operands(instruction);
    let target = operands.iter().find(|operand| !matches!(operand.kind, OperandKind::List(_)))?;
    match target.kind {
        OperandKind::Name(name) => Some(module.at(name)),
        _ => None,
    }
}
