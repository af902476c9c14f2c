//! Emits a span: the code of all probes that run at a site, as PTX.
//!
//! ```text
//!     {
//!     .reg .b32 %nt_r<5>; .reg .b64 %nt_d<6>; .reg .pred %nt_p<2>;
//!     @!%p1 bra $nt_L1;              the site's guard: `@%p1 ret`
//!     …                              at an exit, where a warp's record goes: while the kernel waits for its loads
//!     mov.u64 %nt_d0, %clock64;      clocks then, so that what a probe costs is not in what it measures
//!     …                              assignments of states, in every lane
//!     @!%nt_p0 bra $nt_L1;           saves: by the elected lane, at an index below the capacity
//!     …
//!     st.global.b64 [%nt_d4], %nt_d0;
//! $nt_L1:
//!     }
//! ```
//!
//! Only what an effect depends on is computed, and where it is needed: what a save alone wants is computed behind the
//! branch to it. The things whose *moment* matters are done at their place instead: clocks at the top, then `active`,
//! reads of a state that is assigned later in the span, and assignments.
//!
//! Costs and alternatives were measured; `docs/injection.md` has the numbers.

mod add;
mod claim;
mod divide;
mod effects;
mod index;
mod instruction;
mod lanes;
mod last;
pub(crate) mod live;
mod operand;
mod ops;
mod save;
mod slots;
mod states;
mod stream;

use crate::bodies::Site;
use crate::plan::{Keep, Plan};
use crate::sites::Kind;
use nt_ir::Prepared;
use nt_ir::program::{Inst, Probe, StateId, Type, ValueId};
use operand::{Class, Operand};
use std::fmt::Write;

pub(crate) use add::adds_up_lanes;
pub(crate) use index::SPECIAL_REGISTERS;
pub(crate) use states::increases;

/// The most instructions of a span and the most registers, states among them: far beyond any sensible probe, and
/// within what the verifier reads.
const MOST_STATEMENTS: usize = 4000;
const MOST_REGISTERS: usize = 512;

/// Why code cannot be emitted: said behind "kernel `k` cannot be probed: ".
pub(crate) type Refusal = String;

/// A span while it is written.
struct Span<'a> {
    probe: &'a Prepared,
    plan: &'a Plan<'a>,
    site: &'a Site<'a>,
    /// The probes that run here, in order; the index into this is how the code below names them.
    probes: Vec<&'a Probe>,
    number: u32,
    /// What has been written.
    text: String,
    /// Temporaries handed out, by [`Class`].
    counts: [u32; 4],
    /// Branch targets handed out.
    labels: u32,
    /// Values computed so far, by probe and [`ValueId`].
    values: Vec<Vec<Option<Operand<'a>>>>,
    /// The order in which they were computed, so that those behind a branch can be forgotten.
    computed: Vec<(usize, ValueId)>,
    /// What else is in registers: special registers, indices, elections.
    known: Vec<(index::Known, Operand<'a>)>,
    /// What states are increased by, without being read first, by probe and instruction.
    increases: Vec<Vec<Option<ValueId>>>,
    /// The guard of the site, where effects stand under it one by one.
    predicated: Option<(bool, Operand<'a>)>,
    /// Which of the registers that the instruction overwrites are to be saved before it.
    saved: Vec<bool>,
    /// What the store at the site overwrites, once it is loaded.
    old: Vec<Operand<'a>>,
}

/// What is put in for a site.
#[derive(Debug, Default)]
pub(crate) struct Emitted {
    /// The span, without its brackets; empty if there is nothing to do.
    pub(crate) text: String,
    /// The span before the instruction of a site behind it; empty if nothing is to be saved there.
    pub(crate) saves: String,
}

/// The text of the span at `site`.
pub(crate) fn run(
    probe: &Prepared,
    plan: &Plan<'_>,
    site: &Site<'_>,
    number: u32,
) -> Result<Emitted, Refusal> {
    let probes: Vec<&Probe> = site.bodies.iter().map(|body| &*body.code).collect();
    let values = probes.iter().map(|p| vec![None; p.values.len()]).collect();
    let increases = probes.iter().map(|p| increases(p)).collect();
    let mut span = Span {
        probe,
        plan,
        site,
        probes,
        number,
        text: String::new(),
        counts: [0; 4],
        labels: 0,
        values,
        computed: Vec::new(),
        known: Vec::new(),
        increases,
        predicated: None,
        saved: vec![false; site.found.access.written.len()],
        old: Vec::new(),
    };

    let end = span.label();
    let guarded = span.guard(end);
    span.places_ahead()?;
    span.read_clocks()?;
    span.find_asked()?;
    span.load_old();
    span.initialise_states();
    span.initialise_streams()?;
    span.initialise_slots();
    span.share_election();
    span.run_states()?;
    span.store_counts()?;
    span.effects(end, guarded)?;
    let saves = span.saves();
    let text = span.finish()?;
    Ok(Emitted { saves: if text.is_empty() { String::new() } else { saves }, text })
}

impl<'a> Span<'a> {
    /// `@!%p1 bra end` before what stands before `@%p1 ret`; true if it is put there. ptxas makes predicated code of it;
    /// predicating each instruction costs more (a predicated clock read becomes a plain read and a select). Sums in
    /// states alone are predicated one by one, since nothing else is computed for them.
    fn guard(&mut self, end: u32) -> bool {
        let site = self.site;
        let Some(guard) = site.found.guard.as_ref().filter(|_| !site.found.reach) else { return false };
        let register = self.before(&guard.register);
        if !self.site.bodies.is_empty() && self.only_increases() {
            self.predicated = Some((guard.negated, register));
            return false;
        }
        let not = if guard.negated { "" } else { "!" };
        let target = self.target(end);
        self.line(format_args!("@{not}{register} bra {target};"));
        true
    }

    /// Scope, declarations and code in one.
    fn finish(self) -> Result<String, Refusal> {
        let statements = self.text.bytes().filter(|&byte| byte == b';').count();
        let states = self.plan.states.iter().filter(|keep| **keep == Keep::Register).count()
            + self.plan.streams.list.len()
            + self.plan.slots.list.len();
        let registers = self.counts.iter().sum::<u32>() as usize + states;
        if MOST_STATEMENTS < statements || MOST_REGISTERS < registers {
            return Err(format!(
                "its probes make {statements} instructions of one site, too many for a kernel to carry"
            ));
        }
        let mut out = String::with_capacity(self.text.len() + 128);
        let prefix = self.plan.prefix;
        if self.site.found.kind == Kind::Entry {
            for (number, state) in (0..).zip(&self.probe.program.states) {
                if self.plan.states.get(number as usize) == Some(&Keep::Register) {
                    let ty = Class::of(self.kept_type(StateId(number))).register_type();
                    let _ = write!(out, ".reg {ty} %{prefix}s_{}; ", state.name);
                }
            }
        }
        if self.site.found.kind == Kind::Entry {
            out.push_str(&self.stream_registers());
            out.push_str(&self.slot_registers());
        }
        if self.text.is_empty() {
            return Ok(out.trim_end().to_owned());
        }
        out.push_str("{\n");
        let mut declared = false;
        for (class, count) in Class::ALL.into_iter().zip(self.counts) {
            if 0 < count {
                out.push_str(if declared { " " } else { "\t" });
                let _ = write!(out, ".reg {} %{prefix}{}<{count}>;", class.register_type(), class.letter());
                declared = true;
            }
        }
        if declared {
            out.push('\n');
        }
        out.push_str(&self.text);
        out.push_str("\t}");
        Ok(out)
    }

    /// Computes the values that `roots` need, so far as they are not computed yet, in the order of the code.
    fn demand(&mut self, p: usize, roots: &[ValueId]) -> Result<(), Refusal> {
        let code = self.code(p);
        let known = self.values.get(p).map_or(&[][..], |values| values);
        let needed = live::needed(code, roots, known);
        for inst in code {
            let Some(result) = inst.result else { continue };
            if needed.get(result.0 as usize) == Some(&true) {
                let value = self.compute(p, inst, result)?;
                self.set(p, result, value);
            }
        }
        Ok(())
    }

    /// A value that was demanded.
    fn value(&self, p: usize, value: ValueId) -> Result<Operand<'a>, Refusal> {
        let known = self.values.get(p).and_then(|values| values.get(value.0 as usize)).copied().flatten();
        known.ok_or_else(|| format!("its program uses the value %{} before it is there", value.0))
    }

    fn set(&mut self, p: usize, value: ValueId, operand: Operand<'a>) {
        if let Some(slot) = self.values.get_mut(p).and_then(|values| values.get_mut(value.0 as usize)) {
            *slot = Some(operand);
            self.computed.push((p, value));
        }
    }

    /// The type of a value.
    fn ty(&self, p: usize, value: ValueId) -> Type {
        self.probes
            .get(p)
            .and_then(|probe| probe.values.get(value.0 as usize))
            .map_or(Type::U64, |value| value.ty)
    }

    fn code(&self, p: usize) -> &'a [Inst] {
        self.probes.get(p).map_or(&[], |probe| &probe.code)
    }

    fn live(&self, p: usize) -> Vec<bool> {
        self.probes.get(p).map_or_else(Vec::new, |probe| live::mark(probe, &self.plan.states))
    }

    /// When an effect with this guard happens; the guard is computed.
    fn when(&mut self, p: usize, guard: Option<ValueId>) -> Result<When<'a>, Refusal> {
        let Some(guard) = guard else { return Ok(When::Always) };
        self.demand(p, &[guard])?;
        Ok(match self.value(p, guard)? {
            Operand::Number { bits: 0, .. } => When::Never,
            Operand::Number { .. } => When::Always,
            register => When::If(register),
        })
    }

    /// What is computed from here on is known only until [`Span::leave`]: it stands behind a branch.
    fn enter(&self) -> Mark {
        Mark { computed: self.computed.len(), known: self.known.len() }
    }

    fn leave(&mut self, mark: Mark) {
        self.known.truncate(mark.known);
        for (p, value) in self.computed.split_off(mark.computed) {
            if let Some(slot) = self.values.get_mut(p).and_then(|values| values.get_mut(value.0 as usize)) {
                *slot = None;
            }
        }
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels - 1
    }

    /// The name of a label: `$nt_L3` of span 3, then `$nt_L3_1`.
    fn target(&self, label: u32) -> String {
        let (prefix, number) = (self.plan.prefix, self.number);
        if label == 0 { format!("${prefix}L{number}") } else { format!("${prefix}L{number}_{label}") }
    }

    fn place_label(&mut self, label: u32) {
        let target = self.target(label);
        let _ = writeln!(self.text, "{target}:");
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "\t{line}");
    }

    fn temp(&mut self, class: Class) -> Operand<'a> {
        let [b16, b32, b64, pred] = &mut self.counts;
        let count = match class {
            Class::B16 => b16,
            Class::B32 => b32,
            Class::B64 => b64,
            Class::Pred => pred,
        };
        let number = *count;
        *count += 1;
        Operand::Temp { prefix: self.plan.prefix, class, number }
    }

    /// The type in which a state is kept.
    fn kept_type(&self, state: StateId) -> Type {
        let declared = self.probe.program.states.get(state.0 as usize).map_or(Type::U64, |state| state.ty);
        match declared {
            Type::Bool if self.plan.has_clones => Type::U32,
            _ if self.plan.bounds.counter(state).is_some() => Type::U32,
            declared => declared,
        }
    }

    /// A constant of a state's, as it is kept.
    fn kept(&self, state: StateId, bits: u64) -> Operand<'a> {
        let unit = self.plan.bounds.counter(state).map_or(1, |counter| u64::from(counter.unit));
        Operand::number(self.kept_type(state), bits / unit)
    }

    fn state(&self, state: StateId) -> Operand<'a> {
        let declared = self.probe.program.states.get(state.0 as usize);
        let name = declared.map_or("", |s| s.name.as_str());
        Operand::State { prefix: self.plan.prefix, name, class: Class::of(self.kept_type(state)) }
    }

    /// `opcode d, a, b, …;` into a new temporary.
    fn op(&mut self, class: Class, opcode: &str, operands: &[Operand<'a>]) -> Operand<'a> {
        let result = self.temp(class);
        let _ = write!(self.text, "\t{opcode} {result}");
        for operand in operands {
            let _ = write!(self.text, ", {operand}");
        }
        self.text.push_str(";\n");
        result
    }

    /// `to = from`
    fn copy(&mut self, to: Operand<'a>, from: Operand<'a>, ty: Type) {
        let suffix = Class::of(ty).move_suffix();
        self.line(format_args!("mov.{suffix} {to}, {from};"));
    }

    /// The operand in a register: many instructions take a number only last.
    fn register(&mut self, operand: Operand<'a>, ty: Type) -> Operand<'a> {
        if !matches!(operand, Operand::Number { .. }) {
            return operand;
        }
        let register = self.temp(Class::of(ty));
        self.copy(register, operand, ty);
        register
    }
}

/// When an effect happens.
enum When<'a> {
    Always,
    Never,
    If(Operand<'a>),
}

/// See [`Span::enter`].
#[derive(Debug, Clone, Copy)]
struct Mark {
    computed: usize,
    known: usize,
}
