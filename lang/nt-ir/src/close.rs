//! Closes a probe over one site: what is known of the site becomes constants, and what they decide is decided.
//!
//! ```text
//! probe warp inst:mma {                       of a site with macs 2048         of a site without
//!   %0: bool uniform = has macs
//!   %1: u64 uniform = state work              %0: u64 uniform = state work     no site: nothing is left
//!   %2: u32 uniform = site macs               %1: u64 uniform = const 2048
//!   %3: u64 uniform = cast %2                 %2: u64 uniform = add %0, %1
//!   %4: u64 uniform = add %1, %3              state work = %2
//!   state work = %4 if %0
//! }
//! ```
//!
//! What has the type of the instruction gets it here (`types.rs`): `out as u32` is a read of a `f32` and a cast, at one site.
//!
//! A predicate that comes to false is no site. What a branch needs that is never taken there is not asked for; what is left
//! and asks for an operand that the instruction lacks is an error. What comes out holds no [`Op::Site`], [`Op::Has`] and
//! [`Op::Match`]; its [`Op::Operand`]s are known only when the kernel runs. Pure: the same in, the same out, and nothing but
//! the probe and the facts is looked at. Language reference, Predicates.

mod facts;
mod types;

use crate::check::varying_states;
use crate::passes::{dead, fold};
use crate::program::{Inst, Key, Op, Operand, Probe, Program, Unit};
use nt_diag::Span;

pub use facts::{Elements, Fact, Facts, SiteType};

/// Why a probe cannot run at a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseError {
    /// What is wrong.
    pub kind: CloseErrorKind,
    /// The operand, as the language calls it.
    pub name: &'static str,
    /// Where the probe program asks for it.
    pub span: Span,
}

/// See [`CloseError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseErrorKind {
    /// The site does not have it, and no `has(x)` keeps the question from being asked.
    Absent,
    /// It differs from lane to lane there, and the probe does not run per thread.
    Varying,
    /// Its type there is not one with which that can be done.
    Type(SiteType),
}

/// Closes `probe`, one of `program` that the verifier accepts, over a site. `None`: it does nothing there.
///
/// # Errors
/// Something that it asks for is not there, or differs from lane to lane where that cannot be.
pub fn close(program: &Program, probe: &Probe, facts: &Facts<'_>) -> Result<Option<Probe>, CloseError> {
    let mut closed = probe.clone();
    let mut called_uniform = false;
    for inst in &mut closed.code {
        if let Some(bits) = facts.constant(&inst.op) {
            inst.op = Op::Const(bits);
        }
        if let (Op::Operand(Operand::Bytes), Some(result)) = (&inst.op, inst.result) {
            let value = &mut closed.values[result.0 as usize];
            called_uniform |= std::mem::replace(&mut value.uniform, false);
        }
    }
    types::give(&mut closed, facts);
    // Which states a kernel assigns is not known here, so none has its first value.
    fold::run_on(&mut closed, &vec![None; program.states.len()], &varying_states(program));
    let is_false = |inst: &Inst| inst.result == closed.predicate && inst.op == Op::Const(0);
    if closed.predicate.is_some() && closed.code.iter().any(is_false) {
        return Ok(None);
    }
    dead::sweep(&mut closed, &vec![true; program.states.len()]);
    if closed.code.is_empty() {
        return Ok(None);
    }
    asks_for_what_is_there(program, &closed, facts, called_uniform)?;
    Ok(Some(closed))
}

/// Is there what the code that is left asks for?
fn asks_for_what_is_there(
    program: &Program,
    probe: &Probe,
    facts: &Facts<'_>,
    called_uniform: bool,
) -> Result<(), CloseError> {
    for inst in &probe.code {
        let error = |kind, name| Err(CloseError { kind, name, span: inst.span });
        match &inst.op {
            Op::Site(value) => return error(CloseErrorKind::Absent, value.word()),
            Op::Match { what, .. } => return error(CloseErrorKind::Absent, what.word()),
            Op::CastOperand(operand)
            | Op::BitsOperand(operand)
            | Op::CompareOperands(_, operand, _)
            | Op::ClockAfterOperand(_, operand) => {
                let (kind, operand) = types::obstacle(&inst.op, *operand, facts);
                return error(kind, operand.word());
            }
            Op::Operand(operand) if operand.ty().is_none() => {
                let ty = inst.result.and_then(|id| probe.values.get(id.0 as usize)).map(|value| value.ty);
                match facts.site_type(*operand) {
                    None => return error(CloseErrorKind::Absent, operand.word()),
                    Some(found) if Some(found.held_in()) != ty => {
                        return error(CloseErrorKind::Type(found), operand.word());
                    }
                    Some(_) => {}
                }
            }
            Op::Operand(operand) if !facts.has(operand.part()) => {
                return error(CloseErrorKind::Absent, operand.word());
            }
            // The bytes of a load or store are the same in all lanes, unless its text leaves them open.
            Op::Operand(Operand::Bytes) if called_uniform && probe.unit != Unit::Thread => {
                return error(CloseErrorKind::Varying, Operand::Bytes.word());
            }
            Op::Aggregate { table, .. } => {
                let keys = program.tables.get(table.0 as usize).map_or(&[][..], |table| &table.keys);
                let absent = keys.iter().find_map(|key| match key {
                    Key::Site(key) => facts.name(*key).is_none().then_some(*key),
                    Key::Unit(_) | Key::Bounded(_) => None,
                });
                if let Some(key) = absent {
                    return error(CloseErrorKind::Absent, key.word());
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
