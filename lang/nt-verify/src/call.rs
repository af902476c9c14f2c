//! V15: calls of clones are direct calls of their functions, redirected, and give what the clones' claims say.
//!
//! ```text
//! /*nt:9{*/.param .align 8 .b8 nt_arg9[16]; { … st.param.b64 [nt_arg9], %nt_a; … }/*}nt:9*/
//! call.uni (retval0), /*nt:edit 66{*/f__nt__k/*}nt:edit*/, (param0/*nt:edit {*/, nt_arg9/*}nt:edit*/);
//! ```

use crate::back::Widened;
use crate::claim::{Back, Claim, FieldKind};
use crate::clone::Cloned;
use crate::flow::opcode;
use crate::judge::{Argument, Given, Took};
use crate::pin::function_at;
use crate::program::Program;
use crate::undo::Inserted;
use crate::{Report, Rule};
use nt_diag::Span;
use nt_ptx::TokenKind;
use nt_ptx::syntax::{Instruction, Kind};
use std::collections::BTreeMap;

/// What spans declare for the calls behind them, by the index of the call in [`nt_ptx::syntax::Module::statements`].
pub(crate) type Arguments<'w> = BTreeMap<u32, Vec<Argument<'w>>>;

/// A clone of each function that has any, by the names of the kernel and the function.
pub(crate) type Called<'c> = BTreeMap<(&'c str, &'c str), &'c Cloned>;

/// What the first span behind each call takes, likewise.
pub(crate) type Taken<'w> = BTreeMap<u32, Vec<Took<'w>>>;

/// Checks the edits that are of calls, in kernels or in a clone for `kernel`, and gives the others.
pub(crate) fn edits(
    program: &Program<'_, '_>,
    woven: &str,
    edits: &[Inserted],
    clones: (&Called<'_>, Option<&str>),
    (mut arguments, mut taken): (Arguments<'_>, Taken<'_>),
    report: &mut Report,
) -> Vec<Inserted> {
    let module = program.module;
    let mut others = Vec::new();
    let mut widened = Widened::default();
    // The edits of each call.
    let mut calls: BTreeMap<u32, Vec<Inserted>> = BTreeMap::new();
    for edit in edits {
        let place = function_at(module, edit.old.start).and_then(|(_, function)| {
            let all = module.body(function);
            let place = all.partition_point(|statement| statement.span.end <= edit.old.start);
            let Kind::Instruction(instruction) = all.get(place)?.kind else { return None };
            let is_call = opcode(module, &instruction).split('.').next() == Some("call");
            let first = function.body.as_ref()?.statements.start;
            is_call.then(|| first + u32::try_from(place).unwrap_or(u32::MAX - first))
        });
        match place {
            Some(place) => calls.entry(place).or_default().push(*edit),
            None if widened.take(module, edit) => {}
            None => others.push(*edit),
        }
    }
    for (place, edits) in calls {
        let given = arguments.remove(&place).unwrap_or_default();
        let all =
            Span::new(edits.first().map_or(0, |e| e.whole.start), edits.last().map_or(0, |e| e.whole.end));
        let hands = Hands { given, taken: taken.remove(&place).unwrap_or_default() };
        if let Err(message) = call(program, woven, place, &edits, clones, (&hands, &mut widened)) {
            report.add(Rule::V15, all, message);
        }
    }
    for argument in arguments.into_values().flatten() {
        let message = format!("`{}` is given to no call behind its span", argument.name);
        report.add(Rule::V15, argument.span, message);
    }
    for took in taken.into_values().flatten() {
        report.add(Rule::V15, took.span, "the call before this span gives nothing back");
    }
    widened.check(program, report);
    others
}

/// What the spans around a call do for it.
struct Hands<'w> {
    given: Vec<Argument<'w>>,
    taken: Vec<Took<'w>>,
}

/// One call: its name and its list are edited, and the list's new argument is as the clone claims.
fn call(
    program: &Program<'_, '_>,
    woven: &str,
    place: u32,
    edits: &[Inserted],
    (clones, kernel): (&Called<'_>, Option<&str>),
    (hands, widened): (&Hands<'_>, &mut Widened),
) -> Result<(), String> {
    let module = program.module;
    let statement = module.statements.get(place as usize);
    let Some((at, Kind::Instruction(instruction))) = statement.map(|s| (s.span.start, s.kind)) else {
        return Err("this is no call".into());
    };
    let parts = Parts::read(program, &instruction).ok_or("the operands of this call are not understood")?;
    let name = module.at(parts.callee);
    let caller = function_at(module, at);
    let is_hidden =
        caller.is_some_and(|(function, _)| program.info().declared_at(function, at, name).is_some());
    let own = caller.filter(|(_, caller)| caller.is_entry).map(|(_, caller)| module.at(caller.name));
    let kernel = kernel.or(own).unwrap_or_default();
    let Some(clone) = clones.get(&(kernel, name)).filter(|_| !is_hidden) else {
        return Err(format!("`{name}` is no function here that has a clone for the kernel `{kernel}`"));
    };
    let (result, edits) = match (edits, parts.result) {
        ([result, rest @ ..], None) if clone.out.is_some() => {
            (Some(result).filter(|edit| edit.old == Span::at(parts.callee.start)), rest)
        }
        (edits, _) => (None, edits),
    };
    let [callee, list] = edits else {
        return Err(
            "a call of a clone has two edits: its name, and the argument behind the others; and its \
                    result before them where the clone gives something back and the function does not"
                .into(),
        );
    };
    if callee.old != parts.callee || callee.inner.of(woven) != clone.name {
        return Err(format!("the call of `{name}` is not redirected to `{}`", clone.name));
    }
    let new = list.inner.of(woven);
    let argument = match parts.list {
        _ if !list.old.is_empty() || list.old.start < parts.from || parts.to < list.old.start => None,
        None => new.strip_prefix(", (").and_then(|rest| rest.strip_suffix(')')),
        Some(true) => Some(new),
        Some(false) => new.strip_prefix(", "),
    };
    let argument = argument.ok_or("the argument of a clone is not the last of the call's list")?;
    let Hands { given, taken } = hands;
    let declared = |name: &str| {
        let given = given.iter().find(|given| given.name == name);
        given.ok_or_else(|| format!("no span directly before this call declares `{name}` for it"))
    };
    gives(&clone.claim, declared(argument)?)?;
    let own = match (&clone.out, parts.result) {
        (None, _) => {
            return match (given.len(), taken.is_empty()) {
                (1, true) => Ok(()),
                (1, false) => Err(format!("`{name}` gives nothing back that could be taken")),
                _ => Err("the span before this call declares more than it is given".into()),
            };
        }
        (Some(out), Some(result)) => {
            widened.takes(program, woven, result, clone, out)?;
            takes(module.at(result), &out.fields, taken)?;
            1
        }
        (Some(out), None) => {
            let new = result.map_or("", |edit| edit.inner.of(woven));
            let name = new.strip_prefix('(').and_then(|rest| rest.strip_suffix("), "));
            let name =
                name.ok_or("the result of this call is not `(name), ` before the name of the clone")?;
            let is_it = name != argument
                && declared(name).is_ok_and(|given| given.bytes == out.bytes && given.given.is_empty());
            if !is_it {
                return Err(format!("no span directly before this call declares `{name}` for its result"));
            }
            takes(name, &out.fields, taken)?;
            2
        }
    };
    match given.len() == own {
        true => Ok(()),
        false => Err("the span before this call declares more than it is given".into()),
    }
}

/// Does the caller take all that comes back, in its registers of these names, and nothing else?
fn takes(result: &str, fields: &[Back], taken: &[Took<'_>]) -> Result<(), String> {
    let takes = |field: &Back| {
        taken.iter().any(|took| {
            took.base == result
                && (took.offset, took.bytes) == (i64::from(field.offset), field.size)
                && took.register == Some(field.register.as_str())
        })
    };
    match taken.len() == fields.len() && fields.iter().all(takes) {
        true => Ok(()),
        false => Err("the first span behind this call does not take what the clone gives back".into()),
    }
}

/// Has an argument all words of a claim, and nothing else?
fn gives(claim: &Claim, argument: &Argument<'_>) -> Result<(), String> {
    let name = argument.name;
    if argument.bytes != claim.size {
        return Err(format!("`{name}` has {} bytes, and the clone's claim {}", argument.bytes, claim.size));
    }
    for field in &claim.fields {
        let given =
            argument.given.iter().find(|(offset, bytes, _)| (*offset, *bytes) == (field.offset, field.size));
        let of_map = |map: u32, kind: FieldKind| match (given, claim.maps.get(map as usize)) {
            (Some((_, _, Given::OfMap(given, word))), Some(map)) => given == map && *word == kind,
            _ => false,
        };
        let is_it = match field.kind {
            FieldKind::Base(map) => of_map(map, FieldKind::Base(0)),
            FieldKind::Cap(map) => of_map(map, FieldKind::Cap(0)),
            FieldKind::Units(map) => of_map(map, FieldKind::Units(0)),
            FieldKind::Cursor(map) => of_map(map, FieldKind::Cursor(0)),
            FieldKind::Drops(map) => of_map(map, FieldKind::Drops(0)),
            FieldKind::Counts(map) => of_map(map, FieldKind::Counts(0)),
            FieldKind::State(state) => match (given, claim.states.get(state as usize)) {
                (Some((_, _, Given::States(states))), Some(state)) => states.contains(state),
                _ => false,
            },
            kind @ (FieldKind::Zero | FieldKind::Launch) => {
                given.is_some_and(|(_, _, given)| *given == Given::Word(kind))
            }
        };
        if !is_it {
            let end = field.offset + field.size;
            return Err(format!(
                "bytes {} to {end} of `{name}` are not what the clone's claim says",
                field.offset
            ));
        }
    }
    match argument.given.len() == claim.fields.len() {
        true => Ok(()),
        false => Err(format!("`{name}` holds more than the clone's claim has")),
    }
}

/// The operands of a direct call.
struct Parts {
    /// What takes its result, if it has one.
    result: Option<Span>,
    callee: Span,
    /// Is there a list of arguments, and if so, is it empty?
    list: Option<bool>,
    /// Where one more argument, or a list, may stand: from here to there.
    from: u32,
    to: u32,
}

impl Parts {
    /// `(ret), f, (a, b)`, `f, (a)`, `(ret), f`, `f`
    fn read(program: &Program<'_, '_>, instruction: &Instruction) -> Option<Parts> {
        let all: Vec<(TokenKind, Span)> = program.module.code(instruction.operands).collect();
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
        let [(TokenKind::Name, callee), rest @ ..] = rest else { return None };
        let callee = *callee;
        match rest {
            [] => Some(Parts { result, callee, list: None, from: callee.end, to: callee.end }),
            [
                (TokenKind::Comma, _),
                (TokenKind::OpenParen, open),
                inner @ ..,
                (TokenKind::CloseParen, close),
            ] => {
                let plain = inner
                    .iter()
                    .all(|(kind, _)| !matches!(kind, TokenKind::OpenParen | TokenKind::CloseParen));
                let from = inner.last().map_or(open.end, |(_, last)| last.end);
                plain.then_some(Parts { result, callee, list: Some(inner.is_empty()), from, to: close.start })
            }
            _ => None,
        }
    }
}
