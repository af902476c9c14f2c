//! Clones of functions: the context that each gets, its text, and the calls that lead to it.
//!
//! ```text
//! .func (.param .b32 r) f(.param .b32 a) { … }
//! /*nt:clone f k{*/.func (.param .b32 r) f__nt__k(.param .b32 a, .param .align 8 .b8 nt_ctx[24]) { … }/*}nt:clone*/
//! …
//!     /*nt:9{*/.param .align 8 .b8 nt_arg9[24]; { …; st.param.b64 [nt_arg9], %nt_d0; … }/*}nt:9*/
//!     call (retval0), f__nt__k, (param0, nt_arg9);
//! ```
//!
//! The function itself stays as it is, for those who call it through a pointer: with one parameter more it would be called
//! with too few, and ptxas says nothing. A clone is of one kernel, whose cells and states it knows: a function that several
//! kernels call has one for each. Every declaration has its clones.

use crate::Refused;
use crate::callees::{Calls, Cloned, Needs};
use crate::choose::{self, Names};
use crate::context::{Context, Fill};
use crate::pins::Pins;
use crate::place::replacement;
use crate::plan::{Keep, Plan};
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{Program, StateId};
use nt_ptx::syntax::{Instruction, Kind, Module};
use nt_ptx::{Edits, TokenKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A state that a function is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) state: StateId,
    /// Bytes into the context.
    pub(crate) offset: u32,
    /// Bytes it takes.
    pub(crate) size: u32,
}

/// What calls need to know of the clones.
pub(crate) struct Targets<'a> {
    pub(crate) cloned: &'a Cloned,
    /// By function.
    pub(crate) contexts: &'a BTreeMap<usize, Context>,
    pub(crate) program: &'a Program,
    pub(crate) prefix: &'a str,
    /// The name of the kernel that they are for.
    pub(crate) kernel: &'a str,
}

/// What the clone of a function for a kernel is called.
pub(crate) fn name(function: &str, prefix: &str, kernel: &str) -> String {
    format!("{function}__{}__{kernel}", prefix.trim_end_matches('_'))
}

/// The names of all of them.
pub(crate) fn names(module: &Module<'_>, targets: &Targets<'_>) -> impl Iterator<Item = String> {
    targets
        .cloned
        .list
        .iter()
        .map(|needs| name(&choose::name(module, needs.function), targets.prefix, targets.kernel))
}

/// Redirects the calls in a function; spans are numbered from `next` on, which is given back.
pub(crate) fn redirect(
    module: &Module<'_>,
    targets: &Targets<'_>,
    calls: &Calls,
    function: usize,
    own: &Context,
    mut next: u32,
    edits: &mut Edits,
) -> u32 {
    let prefix = targets.prefix;
    for call in calls.within(function).iter().filter(|call| targets.cloned.has(call.callee)) {
        let Some(context) = targets.contexts.get(&call.callee) else { continue };
        let statement = module.statements.get(call.statement as usize);
        let Some(Kind::Instruction(instruction)) = statement.map(|statement| statement.kind) else {
            continue;
        };
        let Some((callee, at, list)) = parts(module, &instruction) else { continue };
        let Some((place, _)) = crate::instructions::place(module, call.statement) else { continue };
        let number = next;
        next += 1;
        let argument = format!("{prefix}arg{number}");
        let span = give(targets, own, context, &argument);
        edits.insert(place, format!("/*nt:{number}{{*/{span}/*}}nt:{number}*/"));
        edits.replace(
            callee,
            replacement(module.at(callee), &name(module.at(callee), prefix, targets.kernel)),
        );
        let new = match list {
            None => format!(", ({argument})"),
            Some(true) => argument,
            Some(false) => format!(", {argument}"),
        };
        edits.insert(at, replacement("", &new));
    }
    next
}

/// The span before a call: the argument, and what stands in it.
fn give(targets: &Targets<'_>, own: &Context, wanted: &Context, argument: &str) -> String {
    let prefix = targets.prefix;
    let mut moves = String::new();
    let mut counts = [0u32; 2];
    for slot in &wanted.slots {
        let Some(from) = own.slots.iter().find(|own| own.fill == slot.fill) else { continue };
        let (letter, bits, count) = match slot.size {
            4 => ('r', 32, &mut counts[0]),
            _ => ('d', 64, &mut counts[1]),
        };
        let register = format!("%{prefix}{letter}{count}");
        *count += 1;
        // Writing to a String cannot fail.
        let _ = writeln!(moves, "\tld.param.u{bits} {register}, [{prefix}ctx+{}];", from.offset);
        let _ = writeln!(moves, "\tst.param.b{bits} [{argument}+{}], {register};", slot.offset);
    }
    for passed in &wanted.states {
        let state = targets.program.states.get(passed.state.0 as usize).map_or("", |state| &state.name);
        let (bits, offset) = (8 * passed.size, passed.offset);
        let _ = writeln!(moves, "\tst.param.b{bits} [{argument}+{offset}], %{prefix}s_{state};");
    }
    let [words, longs] = counts;
    let mut declared = String::new();
    if 0 < words {
        let _ = write!(declared, " .reg .b32 %{prefix}r<{words}>;");
    }
    if 0 < longs {
        let _ = write!(declared, " .reg .b64 %{prefix}d<{longs}>;");
    }
    format!(".param .align 8 .b8 {argument}[{}]; {{{declared}\n{moves}\t}}\n\t", wanted.size)
}

/// The name that is called, where one argument more goes, and whether there is an empty list, one that is not, or none.
fn parts(module: &Module<'_>, instruction: &Instruction) -> Option<(Span, u32, Option<bool>)> {
    let all: Vec<(TokenKind, Span)> = module.code(instruction.operands).collect();
    let mut rest = all.as_slice();
    if let [(TokenKind::OpenParen, _), ..] = rest {
        let close = rest.iter().position(|(kind, _)| *kind == TokenKind::CloseParen)?;
        rest = rest.get(close + 2..)?;
    }
    match rest {
        [(TokenKind::Name, callee)] => Some((*callee, callee.end, None)),
        [
            (TokenKind::Name, callee),
            (TokenKind::Comma, _),
            (TokenKind::OpenParen, open),
            inner @ ..,
            (TokenKind::CloseParen, _),
        ] => {
            let at = inner.last().map_or(open.end, |(_, last)| last.end);
            Some((*callee, at, Some(inner.is_empty())))
        }
        _ => None,
    }
}

/// Can the functions be cloned for this kernel? `taken` are the names of the clones that there are.
pub(crate) fn check(
    module: &Module<'_>,
    program: &Program,
    cloned: &Cloned,
    calls: &Calls,
    kernel: usize,
    prefix: &str,
    taken: &BTreeSet<String>,
) -> Result<(), Refused> {
    let refusal = |slug: &'static str, at: Span, label: String| {
        let message = format!("kernel `{}` cannot be probed", choose::name(module, kernel));
        Diagnostic::error(slug, at, message).label(label)
    };
    for needs in &cloned.list {
        let at = module.functions.get(needs.function).map_or(Span::at(0), |function| function.name);
        let function = module.at(at);
        let clone = name(function, prefix, &choose::name(module, kernel));
        if taken.contains(&clone) || !is_free(module, &clone) {
            let what = format!("its clone would be called `{clone}`, as something of the module is");
            return Err(Box::new(refusal("name-taken", at, what)));
        }
        for state in &needs.states {
            let Some(state) = program.states.get(state.0 as usize).filter(|state| size(state.ty).is_none())
            else {
                continue;
            };
            let what = format!("the state `{}` is a bool, which is not given to functions yet", state.name);
            return Err(Box::new(refusal("not-yet", at, what)));
        }
        if let Some(at) = unsized_parameter(module, needs.function) {
            let what =
                format!("`{function}` takes as much as its caller gives, behind which nothing can be passed");
            return Err(Box::new(refusal("unsized-parameter", at, what)));
        }
        if let Some(at) = lasting(module, needs.function) {
            let what = format!(
                "`{function}` has a variable of its own that outlives it, and a clone would have another"
            );
            return Err(Box::new(
                refusal("static-in-function", at, what)
                    .help("declare the variable at module level, outside of the function"),
            ));
        }
        if let Some(at) = unclear(module, cloned, calls, needs.function) {
            return Err(Box::new(refusal("unclear-place", at, "this call cannot be read".to_owned())));
        }
    }
    match unclear(module, cloned, calls, kernel) {
        Some(at) => Err(Box::new(refusal("unclear-place", at, "this call cannot be read".to_owned()))),
        None => Ok(()),
    }
}

/// A parameter without a size: `.param .b8 rest[]`, the last one.
fn unsized_parameter(module: &Module<'_>, function: usize) -> Option<Span> {
    let parameters = &module.functions.get(function)?.params;
    parameters.iter().find(|parameter| parameter.size == 0).map(|parameter| parameter.span)
}

/// A variable that a function declares and that lives on when it returns, or that other lanes see.
fn lasting(module: &Module<'_>, function: usize) -> Option<Span> {
    let declared = module.functions.get(function)?;
    let mut spaces = module.body(declared).iter().filter_map(|statement| match statement.kind {
        Kind::Declaration(space) => Some((module.at(space), statement.span)),
        _ => None,
    });
    spaces.find(|(space, _)| matches!(*space, ".global" | ".shared" | ".const")).map(|(_, at)| at)
}

/// A call of a clone that cannot be redirected.
fn unclear(module: &Module<'_>, cloned: &Cloned, calls: &Calls, function: usize) -> Option<Span> {
    let is_clear = |statement: u32| match module.statements.get(statement as usize)?.kind {
        Kind::Instruction(instruction) => parts(module, &instruction),
        _ => None,
    };
    let mut all = calls.within(function).iter().filter(|call| cloned.has(call.callee));
    let call = all.find(|call| is_clear(call.statement).is_none())?;
    module.statements.get(call.statement as usize).map(|statement| statement.span)
}

/// The contexts of the clones, by function.
pub(crate) fn contexts(plan: &Plan<'_>, program: &Program, cloned: &Cloned) -> BTreeMap<usize, Context> {
    let context = |needs: &Needs| {
        let of_map = |number: u32| match (number as usize).checked_sub(plan.maps.len()) {
            None => plan.maps.get(number as usize).is_some_and(|map| needs.maps.contains(map)),
            Some(table) => plan.tables.get(table).is_some_and(|table| needs.tables.contains(&table.table)),
        };
        let uses = |fill: Fill| match fill {
            Fill::Zero => needs.zero,
            Fill::Launch => needs.launch,
            Fill::Base(number) | Fill::Capacity(number) => of_map(number),
            Fill::Cursor(_) | Fill::Drops(_) | Fill::Units(_) | Fill::Counts(_) => false,
        };
        let states: Vec<(StateId, &str, u32)> = needs
            .states
            .iter()
            .filter_map(|&id| {
                let state = program.states.get(id.0 as usize)?;
                let size = if plan.bounds.counter(id).is_some() { Some(4) } else { size(state.ty) };
                Some((id, state.name.as_str(), size?))
            })
            .collect();
        (needs.function, plan.context.of_clone(plan.prefix, uses, &states))
    };
    cloned.list.iter().map(context).collect()
}

/// The clones of a function's declarations, each behind it; `inside` are the edits of the definition's body.
pub(crate) fn edit(
    module: &Module<'_>,
    names: &Names<'_>,
    (needs, context): (&Needs, &Context),
    targets: &Targets<'_>,
    inside: &Edits,
    edits: &mut Edits,
) -> Result<(), nt_ptx::EditError> {
    let Some(definition) = module.functions.get(needs.function) else { return Ok(()) };
    let of = module.at(definition.name);
    let clone = name(of, targets.prefix, targets.kernel);
    for &index in names.all(of) {
        let Some(function) = module.functions.get(index).filter(|function| !function.is_entry) else {
            continue;
        };
        let mut own = Edits::new();
        // Nobody else is to link with it; a weak one could become another module's.
        if let Some(linkage) = function.linkage {
            own.replace(linkage, replacement(module.at(linkage), ""));
        }
        own.replace(function.name, replacement(of, &clone));
        crate::context::parameter(function, context, &mut own);
        if index == needs.function {
            own.extend(inside.clone());
        }
        let text = own.apply(module.text)?;
        let tail = module.text.len() - function.span.range().end;
        let text = text.get(function.span.range().start..text.len() - tail).unwrap_or("");
        edits.insert(
            function.span.end,
            format!("/*nt:clone {of} {}{{*/\n{text}/*}}nt:clone*/", targets.kernel),
        );
    }
    Ok(())
}

impl<'a> Plan<'a> {
    /// The plan of a clone, which gets its own sites of the kernel's.
    pub(crate) fn of_clone(&mut self, needs: &Needs, context: Context) -> Plan<'a> {
        let states = (0u32..).zip(&self.states).map(|(state, keep)| match keep {
            Keep::Register if !needs.states.contains(&StateId(state)) => Keep::Nowhere,
            keep => *keep,
        });
        let states = states.collect();
        let of_clone = |site: &crate::bodies::Site<'_>| site.found.function == needs.function;
        let (sites, rest) = std::mem::take(&mut self.sites).into_iter().partition(of_clone);
        self.sites = rest;
        Plan {
            prefix: self.prefix,
            pins: self.pins,
            states,
            bounds: self.bounds.clone(),
            sites,
            context,
            maps: self.maps.clone(),
            tables: self.tables.clone(),
            streams: crate::streams::Streams::default(),
            slots: crate::slots::Slots::default(),
            block: self.block,
            assume: self.assume,
            relied: std::cell::Cell::new(self.relied.get()),
            redux: self.redux,
            needs: self.needs.clone(),
        }
    }
}

/// Bytes that a state takes where it is passed; `None` of a predicate, which is no word.
fn size(ty: nt_ir::program::Type) -> Option<u32> {
    match ty.bits() {
        1 => None,
        64 => Some(8),
        _ => Some(4),
    }
}

/// The pins of a function, once more for its clone.
pub(crate) fn pin(
    module: &Module<'_>,
    pins: &Pins,
    prefix: &str,
    function: usize,
    next: u32,
    edits: &mut Edits,
) -> u32 {
    let body = module.functions.get(function).and_then(|function| function.body.as_ref());
    body.map_or(next, |body| pins.edit_uses(module, prefix, &body.statements, next, edits))
}

/// Is nothing of the module called so?
fn is_free(module: &Module<'_>, name: &str) -> bool {
    // Most texts answer without being read token by token.
    !module.text.contains(name) || !nt_ptx::identifiers_with_prefix(module, name).contains(&name)
}
