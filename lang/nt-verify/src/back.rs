//! V15: what clones give back to their callers, and what these take.
//!
//! ```text
//! .func (/*nt:edit 2e…72{*/.param .align 8 .b8 r[8] /*nt:out pos.ev@4:4*//*}nt:edit*/) f__nt(…)
//! { …  /*nt:6{*/{ st.param.b32 [r+4], %nt_c_ev; }/*}nt:6*/ ret; }           the last span before every `ret`
//! …
//! /*nt:edit 2e…30{*/.param .align 8 .b8 retval0[8]/*}nt:edit*/;
//! call (retval0), f__nt, (…);/*nt:10 after{*/{ ld.param.b32 %nt_c_ev, [retval0+4]; }/*}nt:10*/
//! ```
//!
//! The bytes of the function's own result stay where they were, so that every access of the original to them does what it did.

use crate::claim::{Back, OPEN_BACK, read_back};
use crate::clone::Cloned;
use crate::flow::opcode;
use crate::judge::Gave;
use crate::lex::{TokenKind, tokens};
use crate::pin::function_at;
use crate::program::Program;
use crate::undo::Inserted;
use crate::{Report, Rule};
use nt_diag::Span;
use nt_ptx::TokenKind as Token;
use nt_ptx::syntax::{Function, Kind, Module, Param};
use std::collections::{BTreeMap, BTreeSet};

/// The return parameter of a clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Out {
    /// What its own declaration calls it.
    pub(crate) name: String,
    align: u32,
    pub(crate) bytes: u32,
    pub(crate) fields: Vec<Back>,
}

impl Out {
    /// `.param .align 8 .b8 retval0[16]`
    pub(crate) fn declaration(&self, name: &str) -> String {
        format!(".param .align {} .b8 {name}[{}]", self.align, self.bytes)
    }

    /// The same but for the name, which declarations may choose.
    pub(crate) fn is_like(&self, other: &Out) -> bool {
        (self.align, self.bytes, &self.fields) == (other.align, other.bytes, &other.fields)
    }
}

/// Is it an edit of what a function returns?
pub(crate) fn is_of_result(function: &Function, edit: Span) -> bool {
    match function.returns {
        Some(returns) => returns.contains(edit),
        None => edit == Span::at(function.name.start),
    }
}

/// What a clone returns, by the edit of its head.
pub(crate) fn read(
    module: &Module<'_>,
    function: &Function,
    woven: &str,
    edit: &Inserted,
    prefix: &str,
) -> Result<Out, (Span, String)> {
    let fail = |message: &str| Err((edit.whole, message.to_owned()));
    let result = match (function.returns, function.results.as_slice()) {
        (None, _) => None,
        (Some(_), [result]) if edit.old == result.span && module.at(result.span).starts_with(".param") => {
            Some(result)
        }
        (Some(_), _) => return fail("an edit of what a function returns that is not of its one `.param`"),
    };
    let text = edit.inner.of(woven);
    let all = tokens(text, edit.inner.start).map_err(|error| (error.span, error.message.to_owned()))?;
    let (comments, code): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|token| token.kind == TokenKind::Comment);
    let [claim] = comments.as_slice() else {
        return fail("what a clone gives back does not have exactly one claim beside it");
    };
    let Some(fields) = read_back(claim.text) else {
        return Err((claim.span, format!("this is no claim `{OPEN_BACK}…*/`")));
    };
    let own = result.map_or(0, |result| result.size);
    let end = fields.last().map_or(0, |last| last.offset + last.size);
    if result.is_some_and(|result| result.size == 0) || fields.first().is_none_or(|first| first.offset < own)
    {
        return Err((
            claim.span,
            "what comes back lies in the bytes of the function's own result".to_owned(),
        ));
    }
    let name = result.map_or_else(|| format!("{prefix}out"), |result| module.at(result.name).to_owned());
    let align = result.map_or(1, |result| result.align).max(8);
    let out = Out { name, align, bytes: end.next_multiple_of(8), fields };
    let declaration = out.declaration(&out.name);
    let wanted = if result.is_some() { declaration } else { format!("({declaration})") };
    let is_same = tokens(&wanted, 0)
        .is_ok_and(|wanted| wanted.iter().map(|token| token.text).eq(code.iter().map(|token| token.text)));
    match is_same {
        true => Ok(out),
        false => Err((edit.inner, format!("expected `{wanted}` and the claim here"))),
    }
}

/// What spans give back, by the `ret` behind them; [`AT_END`] at the end of the body.
pub(crate) type Given<'w> = BTreeMap<u32, Vec<Gave<'w>>>;

/// In [`Given`].
pub(crate) const AT_END: u32 = u32::MAX;

/// Is what comes back there wherever a function returns?
pub(crate) fn gives(
    module: &Module<'_>,
    function: usize,
    out: Option<&Out>,
    mut given: Given<'_>,
    at: Span,
    report: &mut Report,
) {
    let Some(declared) = module.functions.get(function) else { return };
    let Some(out) = out else {
        for gave in given.into_values().flatten() {
            report.add(Rule::V15, gave.span, "nothing comes back from here");
        }
        return;
    };
    let first = declared.body.as_ref().map_or(0, |body| body.statements.start);
    let mut goes_on = true;
    let mut ends = Vec::new();
    for (number, statement) in (first..).zip(module.body(declared)) {
        match statement.kind {
            Kind::Instruction(instruction) => {
                let opcode = opcode(module, &instruction);
                let base = opcode.split('.').next().unwrap_or("");
                ends.extend((base == "ret").then_some(number));
                let leaves = matches!(base, "ret" | "exit" | "trap" | "bra" | "brx");
                goes_on = instruction.guard.is_some() || !leaves;
            }
            Kind::Label(_) => goes_on = true,
            _ => {}
        }
    }
    ends.extend((goes_on && declared.body.is_some()).then_some(AT_END));
    for end in ends {
        let gave = given.remove(&end).unwrap_or_default();
        let is_there = |field: &Back| {
            gave.iter().any(|gave| {
                gave.base == out.name
                    && (gave.offset, gave.bytes) == (i64::from(field.offset), field.size)
                    && gave.registers.contains(&field.register)
            })
        };
        if gave.len() != out.fields.len() || !out.fields.iter().all(is_there) {
            let place = gave.first().map_or(at, |gave| gave.span);
            let message =
                "the last span before each `ret` of a clone gives back what it claims, and nothing else";
            report.add(Rule::V15, place, message);
        }
    }
    for gave in given.into_values().flatten() {
        report.add(Rule::V15, gave.span, "this comes back from no `ret`");
    }
}

/// The declarations of results that are edited, by where their names stand.
#[derive(Default)]
pub(crate) struct Widened {
    all: BTreeMap<u32, (Inserted, Param)>,
    /// The results of calls that are as they should be, by where they stand.
    used: BTreeSet<u32>,
}

impl Widened {
    /// Takes an edit of one, or gives it back.
    pub(crate) fn take(&mut self, module: &Module<'_>, edit: &Inserted) -> bool {
        let at = module.statements.partition_point(|statement| statement.span.end <= edit.old.start);
        let param = module.statements.get(at).and_then(|statement| module.param(statement));
        let Some(param) = param.filter(|param| param.span == edit.old) else { return false };
        self.all.insert(param.name.start, (*edit, param)).is_none()
    }

    /// Is the declaration of that result of a call to a clone as wide as what the clone returns?
    pub(crate) fn takes(
        &mut self,
        program: &Program<'_, '_>,
        woven: &str,
        result: Span,
        clone: &Cloned,
        out: &Out,
    ) -> Result<(), String> {
        let module = program.module;
        let name = module.at(result);
        let declared = self.declared(program, result).and_then(|at| self.all.get(&at));
        let own = module.functions.get(clone.function).and_then(|function| function.results.first());
        match (declared, own) {
            (Some((edit, param)), Some(own))
                if edit.inner.of(woven) == out.declaration(name)
                    && param.size == own.size
                    && param.align <= own.align.max(8) =>
            {
                self.used.insert(result.start);
                Ok(())
            }
            _ => Err(format!("`{name}` is not declared as `{}`", out.declaration(name))),
        }
    }

    /// Where the name is declared that a call of a function has there.
    fn declared(&self, program: &Program<'_, '_>, name: Span) -> Option<u32> {
        let (function, _) = function_at(program.module, name.start)?;
        let declared = program.info().declared_at(function, name.start, program.module.at(name))?;
        Some(declared.at.start)
    }

    /// Does nothing else go into or come out of them?
    pub(crate) fn check(&self, program: &Program<'_, '_>, report: &mut Report) {
        let module = program.module;
        let names: BTreeSet<&str> = self.all.values().map(|(_, param)| module.at(param.name)).collect();
        let functions: BTreeSet<usize> =
            self.all.keys().filter_map(|&at| Some(function_at(module, at)?.0)).collect();
        let mut useless: BTreeMap<u32, Span> =
            self.all.iter().map(|(&at, (edit, _))| (at, edit.whole)).collect();
        for function in functions.into_iter().filter_map(|index| module.functions.get(index)) {
            for statement in module.body(function) {
                let Kind::Instruction(instruction) = statement.kind else { continue };
                if opcode(module, &instruction).split('.').next() != Some("call") {
                    continue;
                }
                for (kind, at) in module.code(instruction.operands) {
                    if kind != Token::Name || !names.contains(module.at(at)) {
                        continue;
                    }
                    let edit = self.declared(program, at).and_then(|at| self.all.get(&at));
                    let Some((edit, param)) = edit else { continue };
                    useless.remove(&param.name.start);
                    if !self.used.contains(&at.start) {
                        let message = format!("`{}` is used by another call, which has less", module.at(at));
                        report.add(Rule::V15, edit.whole, message);
                    }
                }
            }
        }
        for span in useless.into_values() {
            report.add(Rule::V15, span, "this takes the result of no call");
        }
    }
}
