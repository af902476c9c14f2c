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
//! A predicate that comes to false is no site. What a branch needs that is never taken there is not asked for; what is left
//! and asks for an operand that the instruction lacks is an error. What comes out holds no [`Op::Site`], [`Op::Has`] and
//! [`Op::Match`]; its [`Op::Operand`]s are known only when the kernel runs. Pure: the same in, the same out, and nothing but
//! the probe and the facts is looked at. Language reference, Predicates.

use crate::check::varying_states;
use crate::glob::glob_matches;
use crate::passes::{dead, fold};
use crate::program::{Inst, Key, Op, Operand, Part, Probe, Program, SiteKey, SiteValue, Unit};
use nt_diag::Span;

/// What is known of one site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts<'f> {
    /// The kernel that is woven.
    pub kernel: &'f str,
    /// The function that the site stands in.
    pub func: &'f str,
    /// The file of its line; the assembly's own where the compiler left no lines.
    pub file: &'f str,
    /// Its line.
    pub line: u32,
    /// Its number among the sites of the kernel, as the manifest lists them.
    pub site: u32,
    /// The opcode with its modifiers. A kernel's entry and exit have none.
    pub op: Option<&'f str>,
    /// The class: `load`.
    pub class: Option<&'f str>,
    /// The state space as the body sees it: `global` of a generic access too, where the body runs only if it goes there.
    pub space: Option<&'f str>,
    /// Bits an element.
    pub width: Option<u32>,
    /// Elements of a vector.
    pub elems: Option<u32>,
    /// Multiply-adds of the warp's share.
    pub macs: Option<u32>,
    /// How much is moved.
    pub bytes: Fact<u32>,
    /// The guard, for the lanes that run the body: known to hold but for [`Reach`](crate::program::Placement::Reach).
    pub pred: Fact<bool>,
    /// Does the instruction have an address that `addr` can give?
    pub addr: bool,
    /// What else `has(x)` finds, of the operands that have no field here.
    pub others: &'f [Part],
}

/// Something that a site may have, and that may be known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fact<T> {
    /// The site does not have it.
    #[default]
    Absent,
    /// The same each time it runs.
    Known(T),
    /// Told when it runs, and of each lane apart.
    Dynamic,
}

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
}

impl Facts<'_> {
    /// Does the site have this operand?
    pub fn has(&self, part: Part) -> bool {
        match part {
            Part::Addr => self.addr,
            Part::Bytes => self.bytes != Fact::Absent,
            Part::Width => self.width.is_some(),
            Part::Elems => self.elems.is_some(),
            Part::Space => self.space.is_some(),
            Part::Macs => self.macs.is_some(),
            Part::Pred => self.pred != Fact::Absent,
            other => self.others.contains(&other),
        }
    }

    /// What the site is called by `key`; `None` where it has no such name.
    pub fn name(&self, key: SiteKey) -> Option<String> {
        match key {
            SiteKey::Site => Some(self.site.to_string()),
            SiteKey::Line => Some(format!("{}:{}", self.file, self.line)),
            SiteKey::Op => self.op.map(str::to_owned),
            SiteKey::Class => self.class.map(str::to_owned),
            SiteKey::Space => self.space.map(str::to_owned),
            SiteKey::Func => Some(self.func.to_owned()),
            SiteKey::Kernel => Some(self.kernel.to_owned()),
        }
    }

    fn matches(&self, what: SiteKey, glob: &str) -> Option<bool> {
        self.name(what).map(|name| glob_matches(glob, &name))
    }

    fn value(&self, value: SiteValue) -> Option<u32> {
        match value {
            SiteValue::Width => self.width,
            SiteValue::Elems => self.elems,
            SiteValue::Macs => self.macs,
            SiteValue::Line => Some(self.line),
            SiteValue::Site => Some(self.site),
        }
    }

    /// The constant that `op` is at this site.
    fn constant(&self, op: &Op) -> Option<u64> {
        match op {
            Op::Site(value) => self.value(*value).map(u64::from),
            Op::Has(part) => Some(u64::from(self.has(*part))),
            Op::Match { what, glob } => self.matches(*what, glob).map(u64::from),
            Op::Operand(Operand::Bytes) => match self.bytes {
                Fact::Known(bytes) => Some(bytes.into()),
                Fact::Absent | Fact::Dynamic => None,
            },
            Op::Operand(Operand::Pred) => match self.pred {
                Fact::Known(holds) => Some(holds.into()),
                Fact::Absent | Fact::Dynamic => None,
            },
            _ => None,
        }
    }
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
