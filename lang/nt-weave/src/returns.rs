//! What comes back out of clones: cursors that they have moved and states, behind what the function returns.
//!
//! ```text
//! .func (.param .b32 r) f(…)                .func (.param .align 8 .b8 r[8] /*nt:out pos.ev@4:4*/) f__nt(…)
//! st.param.b32 [r], %r1;                    st.param.b32 [r], %r1;
//!                                           { st.param.b32 [r+4], %nt_c_ev; }
//! ret;                                      ret;
//!
//! .param .b32 retval0;                      .param .align 8 .b8 retval0[8];
//! call (retval0), f, (param0);              call (retval0), f__nt, (param0, nt_arg9);
//!                                           { ld.param.b32 %nt_c_ev, [retval0+4]; }
//! ld.param.b32 %r2, [retval0];              ld.param.b32 %r2, [retval0];
//! ```
//!
//! A function has one return parameter (PTX ISA 9.0, 10.1), so that grows: to bytes, of which the first are what they were,
//! and every access of the program stays as it is. ptxas keeps such a one in registers. A function that returns nothing gets
//! one, `nt_out`. The marks are left out above; `docs/injection.md`, Functions.

use crate::Refused;
use crate::callees::{Calls, Cloned};
use crate::choose::{self, places};
use crate::clones::{self, Carried, Parts, Passed, Targets};
use crate::place::replacement;
use nt_diag::{Diagnostic, Span};
use nt_ir::program::Program;
use nt_ptx::syntax::{Function, Instruction, Kind, Module, Param};
use nt_ptx::{Edits, ModuleInfo};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The return parameter of a clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Out {
    align: u32,
    bytes: u32,
    /// What stands behind the function's own result.
    passed: Vec<Passed>,
    /// The same, as the clone claims it.
    claim: String,
}

impl Out {
    /// What a clone gives back, if that is anything.
    pub(crate) fn of(
        module: &Module<'_>,
        program: &Program,
        function: usize,
        back: &[(Carried, u32)],
    ) -> Option<Out> {
        if back.is_empty() || never_returns(module, function) {
            return None;
        }
        let result = module.functions.get(function)?.results.first();
        let (mut end, align) = result.map_or((0u32, 1), |result| (result.size, result.align));
        let mut back = back.to_vec();
        back.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        let (mut passed, mut claim) = (Vec::new(), String::from("/*nt:out"));
        for (carried, size) in back {
            let offset = end.next_multiple_of(size);
            end = offset + size;
            passed.push(Passed { carried, offset, size });
            // Writing to a String cannot fail.
            let _ = write!(claim, " {}@{offset}:{size}", carried.word(program));
        }
        claim.push_str("*/");
        Some(Out { align: align.max(8), bytes: end.next_multiple_of(8), passed, claim })
    }

    /// `.param .align 8 .b8 retval0[16]`
    pub(crate) fn declaration(&self, name: &str) -> String {
        format!(".param .align {} .b8 {name}[{}]", self.align, self.bytes)
    }

    /// Widens the return parameter of one declaration of the function, or gives it one.
    pub(crate) fn edit(&self, module: &Module<'_>, function: &Function, prefix: &str, edits: &mut Edits) {
        match function.results.first() {
            Some(result) => {
                let text = format!("{} {}", self.declaration(module.at(result.name)), self.claim);
                edits.replace(result.span, replacement(module.at(result.span), &text));
            }
            None => {
                let text = format!("({} {}) ", self.declaration(&format!("{prefix}out")), self.claim);
                edits.insert(function.name.start, replacement("", &text));
            }
        }
    }
}

/// Is it declared `.noreturn`? Such a function may have no result (PTX ISA 9.0, 11.4.1), and nobody would take it.
fn never_returns(module: &Module<'_>, function: usize) -> bool {
    let Some(function) = module.functions.get(function) else { return false };
    let mut same = module.functions.iter().filter(|same| module.at(same.name) == module.at(function.name));
    same.any(|same| same.directives.iter().any(|directive| module.at(directive.name) == ".noreturn"))
}

/// The declaration of what takes the result of a call.
pub(crate) fn declaration(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    function: usize,
    result: Span,
) -> Option<Param> {
    let declared = info.declared_at(function, result.start, module.at(result))?;
    let at = module.statements.partition_point(|statement| statement.span.end <= declared.at.start);
    module.param(module.statements.get(at)?).filter(|param| param.name == declared.at)
}

/// The span behind a call that takes over what comes back. `ld.param` of a result may have no guard: under the guard of the
/// call it is moved on.
pub(crate) fn take(
    module: &Module<'_>,
    targets: &Targets<'_>,
    out: &Out,
    call: &Instruction,
    result: &str,
) -> String {
    let prefix = targets.prefix;
    let mut moves = String::new();
    let mut counts = [0u32; 2];
    for passed in &out.passed {
        let register = passed.carried.register(targets.program, prefix);
        let (bits, offset) = (8 * passed.size, passed.offset);
        // Writing to a String cannot fail.
        let Some(guard) = crate::instructions::guard(module, call) else {
            let _ = writeln!(moves, "\tld.param.b{bits} {register}, [{result}+{offset}];");
            continue;
        };
        let (letter, count) = if passed.size == 4 { ('r', &mut counts[0]) } else { ('d', &mut counts[1]) };
        let taken = format!("%{prefix}{letter}{count}");
        *count += 1;
        let not = if guard.negated { "!" } else { "" };
        let _ = writeln!(moves, "\tld.param.b{bits} {taken}, [{result}+{offset}];");
        let _ = writeln!(moves, "\t@{not}{} mov.b{bits} {register}, {taken};", guard.register);
    }
    format!("{{{}\n{moves}\t}}\n\t", clones::declared(prefix, counts))
}

/// The spans before each `ret` of a clone, and at its end, that give back what its callers take.
pub(crate) fn give_back(
    module: &Module<'_>,
    targets: &Targets<'_>,
    function: usize,
    out: &Out,
    next: &mut u32,
    edits: &mut Edits,
) {
    let Some(declared) = module.functions.get(function) else { return };
    let own = format!("{}out", targets.prefix);
    let name = declared.results.first().map_or(own.as_str(), |result| module.at(result.name));
    for (offset, _) in ends(module, declared) {
        let number = *next;
        *next += 1;
        let mut span = String::from("{\n");
        for passed in &out.passed {
            let register = passed.carried.register(targets.program, targets.prefix);
            let (bits, offset) = (8 * passed.size, passed.offset);
            // Writing to a String cannot fail.
            let _ = writeln!(span, "\tst.param.b{bits} [{name}+{offset}], {register};");
        }
        edits.insert(offset, format!("/*nt:{number}{{*/{span}\t}}\n\t/*}}nt:{number}*/"));
    }
}

/// Where a function returns: before each `ret`, and at its end if that might be reached; the bytes, and the statements there.
fn ends(module: &Module<'_>, function: &Function) -> Vec<(u32, u32)> {
    let Some(body) = &function.body else { return Vec::new() };
    let mut ends = Vec::new();
    let mut goes_on = true;
    for (number, statement) in (body.statements.start..).zip(module.body(function)) {
        match statement.kind {
            Kind::Instruction(instruction) => {
                let base = module.opcode(&instruction).base;
                if base == "ret" {
                    ends.extend(crate::instructions::place(module, number));
                }
                goes_on =
                    instruction.guard.is_some() || !matches!(base, "ret" | "exit" | "trap" | "bra" | "brx");
            }
            // Something may lead there.
            Kind::Label(_) => goes_on = true,
            _ => {}
        }
    }
    if goes_on {
        ends.push((body.span.end.saturating_sub(1), body.statements.end));
    }
    ends
}

/// Can all that has to come back from the clones come back?
pub(crate) fn check(
    module: &Module<'_>,
    info: &ModuleInfo<'_>,
    program: &Program,
    cloned: &Cloned,
    calls: &Calls,
    kernel: usize,
) -> Result<(), Refused> {
    let refusal = |at: Span, label: &str| {
        let message = format!("kernel `{}` cannot be probed", choose::name(module, kernel));
        Box::new(
            Diagnostic::error("unclear-result", at, message)
                .label(label)
                .note("what is saved or assigned in it must come back to its callers, behind its own result")
                .help("declare a `.param` of its own for the result of each call, or choose other kernels with `-k`"),
        )
    };
    let moves = |needs: &&crate::callees::Needs| {
        clones::comes_back(program, needs).next().is_some() && !never_returns(module, needs.function)
    };
    let moving: Vec<usize> = cloned.list.iter().filter(moves).map(|needs| needs.function).collect();
    if moving.is_empty() {
        return Ok(());
    }
    for &index in &moving {
        let Some(function) = module.functions.get(index) else { continue };
        let of_name = |other: &&Function| module.at(other.name) == module.at(function.name);
        for declared in module.functions.iter().filter(of_name) {
            let is_clear = match (declared.returns, declared.results.as_slice()) {
                (None, _) => true,
                (Some(_), [result]) => module.at(result.span).starts_with(".param") && result.size > 0,
                (Some(_), _) => false,
            };
            if !is_clear {
                return Err(refusal(
                    declared.name,
                    "what this function returns is no `.param` of known size",
                ));
            }
        }
        places(module, index, ends(module, function).into_iter().map(|(_, next)| next).collect())?;
    }
    for function in cloned.list.iter().map(|needs| needs.function).chain([kernel]) {
        // The functions whose results each declaration takes.
        let mut taken: BTreeMap<u32, Option<usize>> = BTreeMap::new();
        let Some(declared) = module.functions.get(function) else { continue };
        let first = declared.body.as_ref().map_or(0, |body| body.statements.start);
        for (number, statement) in (first..).zip(module.body(declared)) {
            let Kind::Instruction(instruction) = statement.kind else { continue };
            if module.opcode(&instruction).base != "call" {
                continue;
            }
            let call = calls.within(function).iter().find(|call| call.statement == number);
            let callee = call.map(|call| call.callee).filter(|callee| moving.contains(callee));
            let result = Parts::of(module, &instruction).and_then(|parts| parts.result);
            let Some(param) = result.and_then(|result| declaration(module, info, function, result)) else {
                let returns = callee.and_then(|callee| module.functions.get(callee)?.returns);
                match returns {
                    Some(_) => {
                        return Err(refusal(
                            statement.span,
                            "what takes the result of this call is not clear",
                        ));
                    }
                    None => continue,
                }
            };
            if *taken.entry(param.name.start).or_insert(callee) != callee {
                let label = "what takes the result of this call takes that of another function, too";
                return Err(refusal(statement.span, label));
            }
        }
    }
    Ok(())
}
