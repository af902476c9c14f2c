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
use crate::returns;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::{MapId, MapKind, Program, StateId};
use nt_ptx::syntax::{Instruction, Kind, Module};
use nt_ptx::{Edits, ModuleInfo, TokenKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A register at function level that calls hand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Carried {
    State(StateId),
    /// Of a map that lanes fill one slot after the other, which is next.
    Cursor(MapId),
}

/// One of them, where a function is given it or gives it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) carried: Carried,
    /// Bytes into the context, or into what the function returns.
    pub(crate) offset: u32,
    /// Bytes it takes.
    pub(crate) size: u32,
}

impl Carried {
    /// `%nt_s_n`, `%nt_c_ev`
    pub(crate) fn register(self, program: &Program, prefix: &str) -> String {
        match self {
            Carried::State(_) => format!("%{prefix}s_{}", self.name(program)),
            Carried::Cursor(_) => format!("%{prefix}c_{}", self.name(program)),
        }
    }

    /// What a claim calls it: `state.n`, `pos.ev`.
    pub(crate) fn word(self, program: &Program) -> String {
        match self {
            Carried::State(_) => format!("state.{}", self.name(program)),
            Carried::Cursor(_) => format!("pos.{}", self.name(program)),
        }
    }

    fn name(self, program: &Program) -> &str {
        match self {
            Carried::State(state) => program.states.get(state.0 as usize).map_or("", |state| &state.name),
            Carried::Cursor(map) => program.maps.get(map.0 as usize).map_or("", |map| &map.name),
        }
    }
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

/// What is put at the calls of a function.
#[derive(Debug, Default)]
pub(crate) struct Redirected {
    /// Behind all else that stands before a call.
    pub(crate) before: Edits,
    /// Before all else that stands behind one.
    pub(crate) behind: Edits,
}

/// Redirects the calls in a function; spans are numbered from `next` on, which is counted up.
pub(crate) fn redirect(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    targets: &Targets<'_>,
    calls: &Calls,
    function: usize,
    own: &Context,
    next: &mut u32,
) -> Redirected {
    let prefix = targets.prefix;
    let mut edits = Redirected::default();
    let mut widened = BTreeSet::new();
    for call in calls.within(function).iter().filter(|call| targets.cloned.has(call.callee)) {
        let Some(context) = targets.contexts.get(&call.callee) else { continue };
        let Some(statement) = module.statements.get(call.statement as usize) else { continue };
        let Kind::Instruction(instruction) = statement.kind else { continue };
        let Some(parts) = Parts::of(module, &instruction) else { continue };
        let Some((place, _)) = crate::instructions::place(module, call.statement) else { continue };
        let number = *next;
        *next += 1;
        let argument = format!("{prefix}arg{number}");
        let mut span = give(targets, own, context, &argument);
        if let Some(out) = &context.out {
            let result = match parts.result {
                Some(result) => {
                    // One declaration may be the result of several calls.
                    let declared = returns::declaration(module, info, function, result);
                    if let Some(param) = declared.filter(|param| widened.insert(param.span)) {
                        let (old, new) = (module.at(param.span), out.declaration(module.at(param.name)));
                        edits.before.replace(param.span, replacement(old, &new));
                    }
                    module.at(result).to_owned()
                }
                None => {
                    let result = format!("{prefix}ret{number}");
                    span = format!("{}; {span}", out.declaration(&result));
                    edits.before.insert(parts.callee.start, replacement("", &format!("({result}), ")));
                    result
                }
            };
            let taken = returns::take(module, targets, out, &instruction, &result);
            let number = *next;
            *next += 1;
            edits
                .behind
                .insert(statement.span.end, format!("/*nt:{number} after{{*/{taken}/*}}nt:{number}*/"));
        }
        edits.before.insert(place, format!("/*nt:{number}{{*/{span}/*}}nt:{number}*/"));
        let called = module.at(parts.callee);
        edits.before.replace(parts.callee, replacement(called, &name(called, prefix, targets.kernel)));
        let new = match parts.list {
            None => format!(", ({argument})"),
            Some(true) => argument,
            Some(false) => format!(", {argument}"),
        };
        edits.before.insert(parts.end, replacement("", &new));
    }
    edits
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
    for passed in &wanted.passed {
        let register = passed.carried.register(targets.program, prefix);
        let (bits, offset) = (8 * passed.size, passed.offset);
        let _ = writeln!(moves, "\tst.param.b{bits} [{argument}+{offset}], {register};");
    }
    let declared = declared(prefix, counts);
    format!(".param .align 8 .b8 {argument}[{}]; {{{declared}\n{moves}\t}}\n\t", wanted.size)
}

/// The declarations of so many registers of 32 bits and of 64.
pub(crate) fn declared(prefix: &str, [words, longs]: [u32; 2]) -> String {
    let mut declared = String::new();
    // Writing to a String cannot fail.
    if 0 < words {
        let _ = write!(declared, " .reg .b32 %{prefix}r<{words}>;");
    }
    if 0 < longs {
        let _ = write!(declared, " .reg .b64 %{prefix}d<{longs}>;");
    }
    declared
}

/// The operands of a direct call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// What takes its result, if it has one.
    pub(crate) result: Option<Span>,
    /// The name that is called.
    pub(crate) callee: Span,
    /// Where one argument more goes.
    end: u32,
    /// Is the list of arguments empty? `None` where there is no list.
    list: Option<bool>,
}

impl Parts {
    /// `(ret), f, (a, b)`, `f, (a)`, `(ret), f`, `f`
    pub(crate) fn of(module: &Module<'_>, instruction: &Instruction) -> Option<Parts> {
        let all: Vec<(TokenKind, Span)> = module.code(instruction.operands).collect();
        let (result, rest) = match all.as_slice() {
            [
                (TokenKind::OpenParen, _),
                (TokenKind::Name, result),
                (TokenKind::CloseParen, _),
                (TokenKind::Comma, _),
                rest @ ..,
            ] => (Some(*result), rest),
            rest => (None, rest),
        };
        match rest {
            [(TokenKind::Name, callee)] => {
                Some(Parts { result, callee: *callee, end: callee.end, list: None })
            }
            [
                (TokenKind::Name, callee),
                (TokenKind::Comma, _),
                (TokenKind::OpenParen, open),
                inner @ ..,
                (TokenKind::CloseParen, _),
            ] => {
                let end = inner.last().map_or(open.end, |(_, last)| last.end);
                Some(Parts { result, callee: *callee, end, list: Some(inner.is_empty()) })
            }
            _ => None,
        }
    }
}

/// Can the functions be cloned for this kernel? `taken` are the names of the clones that there are.
pub(crate) fn check(
    module: &Module<'_>,
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
        Kind::Instruction(instruction) => Parts::of(module, &instruction),
        _ => None,
    };
    let mut all = calls.within(function).iter().filter(|call| cloned.has(call.callee));
    let call = all.find(|call| is_clear(call.statement).is_none())?;
    module.statements.get(call.statement as usize).map(|statement| statement.span)
}

/// The contexts of the clones, by function.
pub(crate) fn contexts(
    module: &Module<'_>,
    plan: &Plan<'_>,
    program: &Program,
    cloned: &Cloned,
) -> BTreeMap<usize, Context> {
    let context = |needs: &Needs| {
        let of_map = |number: u32| match (number as usize).checked_sub(plan.maps.len()) {
            None => plan.maps.get(number as usize).is_some_and(|map| needs.maps.contains(map)),
            Some(table) => plan.tables.get(table).is_some_and(|table| needs.tables.contains(&table.table)),
        };
        let uses = |fill: Fill| match fill {
            Fill::Zero => needs.zero,
            Fill::Launch => needs.launch,
            Fill::Base(number)
            | Fill::Capacity(number)
            | Fill::Cursor(number)
            | Fill::Drops(number)
            | Fill::Units(number)
            | Fill::Counts(number) => of_map(number),
        };
        let sized = |carried: Carried| match carried {
            Carried::State(id) if plan.bounds.counter(id).is_none() => {
                Some((carried, size(program.states.get(id.0 as usize)?.ty)))
            }
            Carried::State(_) | Carried::Cursor(_) => Some((carried, 4)),
        };
        let states = needs.states.iter().map(|&id| Carried::State(id));
        let given: Vec<(Carried, u32)> = states.chain(cursors(program, needs)).filter_map(sized).collect();
        let back: Vec<(Carried, u32)> = comes_back(program, needs).filter_map(sized).collect();
        let out = returns::Out::of(module, program, needs.function, &back);
        (needs.function, plan.context.of_clone(program, plan.prefix, uses, &given, out))
    };
    cloned.list.iter().map(context).collect()
}

/// The cursors that a clone moves, itself or by what it calls: they go in and come out.
fn cursors(program: &Program, needs: &Needs) -> impl Iterator<Item = Carried> {
    let moves = |&&map: &&usize| program.maps.get(map).is_some_and(|map| map.kind != MapKind::Array);
    needs.maps.iter().filter(moves).map(|&map| Carried::Cursor(MapId(map as u32)))
}

/// What callers of a clone take back.
pub(crate) fn comes_back(program: &Program, needs: &Needs) -> impl Iterator<Item = Carried> {
    needs.back.iter().map(|&id| Carried::State(id)).chain(cursors(program, needs))
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
        if let Some(out) = &context.out {
            out.edit(module, function, targets.prefix, &mut own);
        }
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
        let (sites, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.sites).into_iter().partition(of_clone);
        self.sites = rest;
        let uses = |map: MapId| needs.maps.contains(&(map.0 as usize));
        let streams = self.streams.of_clone(uses, &sites);
        let slots = self.slots.of_clone(needs.function, uses);
        Plan {
            prefix: self.prefix,
            pins: self.pins,
            states,
            bounds: self.bounds.clone(),
            sites,
            context,
            maps: self.maps.clone(),
            tables: self.tables.clone(),
            streams,
            slots,
            block: self.block,
            assume: self.assume,
            relied: std::cell::Cell::new(self.relied.get()),
            redux: self.redux,
            has_clones: self.has_clones,
            needs: self.needs.clone(),
        }
    }
}

/// Bytes that a state takes where it is passed.
fn size(ty: nt_ir::program::Type) -> u32 {
    if ty.bits() == 64 { 8 } else { 4 }
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
