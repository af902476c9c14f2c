//! States and clocks: what happens in every lane, at its moment, before any save.
//!
//! ```text
//!     mov.u32 %nt_s_start, %clock;         start = clock()
//!     @%nt_p0 mov.b32 %nt_s_n, %nt_r3;     n = n + 1, in lanes where a condition holds
//! ```
//!
//! A state is a register of each thread, declared at function level in the kernel's first span and set there before
//! any label. A clock whose value is only assigned to a state is read straight into its register.

use super::operand::{Class, Operand};
use super::{Refusal, Span, When};
use crate::clones::{Carried, Passed};
use crate::context::Fill;
use crate::plan::Keep;
use crate::sites::Kind;
use nt_ir::program::{BinaryOp, Builtin, Inst, Op, Probe, StateId, Type, ValueId};
use std::collections::BTreeMap;

impl<'a> Span<'a> {
    /// The initial values of states, at the kernel's first span.
    pub(super) fn initialise_states(&mut self) {
        if self.site.found.kind != Kind::Entry {
            return;
        }
        for number in 0..self.plan.states.len() {
            let state = StateId(number as u32);
            if self.plan.states.get(number) != Some(&Keep::Register) || self.assigned_at_once(state) {
                continue;
            }
            let Some(declared) = self.probe.program.states.get(number) else { continue };
            let ty = self.kept_type(state);
            if let Some(passed) =
                self.plan.context.passed.iter().find(|passed| passed.carried == Carried::State(state))
            {
                let (register, prefix, bits) = (self.state(state), self.plan.prefix, 8 * passed.size);
                self.line(format_args!("ld.param.b{bits} {register}, [{prefix}ctx+{}];", passed.offset));
                continue;
            }
            let (register, initial) = (self.state(state), self.kept(state, declared.init));
            self.copy(register, initial, ty);
        }
    }

    /// Is the state assigned in every lane before anything here reads it? Then its initial value is never seen.
    fn assigned_at_once(&self, state: StateId) -> bool {
        let mut code = self.probes.iter().flat_map(|probe| &probe.code);
        let first = code.find(|inst| match inst.op {
            Op::ReadState(read) => read == state,
            Op::WriteState(written, _) => written == state,
            _ => false,
        });
        first.is_some_and(|inst| matches!(inst.op, Op::WriteState(..)) && inst.guard.is_none())
    }

    /// Reads the clocks, before all else that takes time.
    pub(super) fn read_clocks(&mut self) -> Result<(), Refusal> {
        for p in 0..self.probes.len() {
            let live = self.live(p);
            for inst in self.code(p) {
                let Some(result) = inst.result.filter(|one| live.get(one.0 as usize) == Some(&true)) else {
                    continue;
                };
                let value = match inst.op {
                    Op::Builtin(builtin) => match clock(builtin) {
                        Some((opcode, register)) => {
                            let value = match self.lands_in(p, result) {
                                Some(state) => self.state(state),
                                None => self.temp(Class::of(builtin.ty())),
                            };
                            self.line(format_args!("{opcode} {value}, {register};"));
                            value
                        }
                        None => continue,
                    },
                    Op::ClockAfter(builtin, of) if !self.waits_for_state(p, of) => {
                        self.clock_after(p, builtin, of)?
                    }
                    _ => continue,
                };
                self.set(p, result, value);
            }
        }
        Ok(())
    }

    /// Is the value made of what is known only when the code before it has run?
    fn waits_for_state(&self, p: usize, of: ValueId) -> bool {
        let code = self.code(p);
        let needed = super::live::needed(code, &[of], &[]);
        code.iter().any(|inst| {
            let is_needed = inst.result.is_some_and(|value| needed.get(value.0 as usize) == Some(&true));
            is_needed && matches!(inst.op, Op::ReadState(_) | Op::Builtin(Builtin::Active))
        })
    }

    /// A clock that is read once a value is there:
    ///
    /// ```text
    ///     and.b32 %nt_r1, %f1, %nt_r0;         the context's zero word: the instruction waits for the value
    ///     mov.u64 %nt_d0, %clock64;
    ///     add.u64 %nt_d2, %nt_d0, %nt_d1;      the zero that came of it
    /// ```
    fn clock_after(&mut self, p: usize, builtin: Builtin, of: ValueId) -> Result<Operand<'a>, Refusal> {
        let (opcode, register) = clock(builtin).ok_or("its program waits with what is no clock")?;
        self.demand(p, &[of])?;
        let nothing = match self.value(p, of)? {
            Operand::Number { .. } => None,
            value => {
                let low = match Class::of(self.ty(p, of)) {
                    Class::Pred => {
                        self.op(Class::B32, "selp.b32", &[Operand::word(1), Operand::word(0), value])
                    }
                    Class::B64 => self.op(Class::B32, "cvt.u32.u64", &[value]),
                    Class::B16 | Class::B32 => value,
                };
                let zero = self.temp(Class::B32);
                let offset = self.plan.offset(Fill::Zero).ok_or("its context has no zero")?;
                let prefix = self.plan.prefix;
                self.line(format_args!("ld.param.u32 {zero}, [{prefix}ctx+{offset}];"));
                Some(self.op(Class::B32, "and.b32", &[low, zero]))
            }
        };
        let class = Class::of(builtin.ty());
        let read = self.temp(class);
        self.line(format_args!("{opcode} {read}, {register};"));
        Ok(match (nothing, class) {
            (None, _) => read,
            (Some(nothing), Class::B64) => {
                let nothing = self.op(Class::B64, "cvt.u64.u32", &[nothing]);
                self.op(Class::B64, "add.u64", &[read, nothing])
            }
            (Some(nothing), _) => self.op(Class::B32, "add.u32", &[read, nothing]),
        })
    }

    /// The state that a value is assigned to, if that is all that happens to this state here: then it is computed
    /// there.
    fn lands_in(&self, p: usize, value: ValueId) -> Option<StateId> {
        let state = self.code(p).iter().find_map(|inst| match inst.op {
            Op::WriteState(state, from) if from == value && inst.guard.is_none() => Some(state),
            _ => None,
        })?;
        let touches = |inst: &&Inst| matches!(inst.op, Op::ReadState(s) | Op::WriteState(s, _) if s == state);
        let touched = self.probes.iter().flat_map(|probe| &probe.code).filter(touches).count();
        let kept = self.plan.states.get(state.0 as usize) == Some(&Keep::Register);
        (kept && touched == 1).then_some(state)
    }

    /// The code of all probes in order, for its states: assignments are done, and a value that is read is copied if
    /// it changes further on. The mask of active lanes is read here too, before any branch of ours parts them.
    pub(super) fn run_states(&mut self) -> Result<(), Refusal> {
        for p in 0..self.probes.len() {
            let live = self.live(p);
            for (at, inst) in self.code(p).iter().enumerate() {
                match inst.op {
                    // What a state is increased by is added to it where it is.
                    Op::ReadState(_) if self.is_increased(p, inst.result) => {}
                    // Widened where that is wanted.
                    Op::ReadState(state) if self.is_counter_then(p, at, state) => {}
                    Op::ReadState(state) => {
                        let Some(result) = inst.result.filter(|r| live.get(r.0 as usize) == Some(&true))
                        else {
                            continue;
                        };
                        let read = self.read_state(state, self.changes_after(p, at, state));
                        self.set(p, result, read);
                    }
                    Op::WriteState(state, value) => match self.increase(p, at) {
                        Some(by) => self.increase_state(p, inst, state, by)?,
                        None => self.write_state(p, inst, state, value)?,
                    },
                    Op::ClockAfter(builtin, of) if self.waits_for_state(p, of) => {
                        let Some(result) = inst.result.filter(|r| live.get(r.0 as usize) == Some(&true))
                        else {
                            continue;
                        };
                        let read = self.clock_after(p, builtin, of)?;
                        self.set(p, result, read);
                    }
                    Op::Builtin(Builtin::Active) => {
                        let Some(result) = inst.result.filter(|r| live.get(r.0 as usize) == Some(&true))
                        else {
                            continue;
                        };
                        let mask = self.active(p, result)?;
                        self.set(p, result, mask);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Is the state a counter that does not change behind instruction `at`?
    pub(super) fn is_counter_then(&self, p: usize, at: usize, state: StateId) -> bool {
        self.plan.states.get(state.0 as usize) == Some(&Keep::Register)
            && self.plan.bounds.counter(state).is_some()
            && !self.changes_after(p, at, state)
    }

    pub(super) fn read_state(&mut self, state: StateId, changes: bool) -> Operand<'a> {
        let ty = self.probe.program.states.get(state.0 as usize).map_or(Type::U64, |s| s.ty);
        if self.plan.states.get(state.0 as usize) != Some(&Keep::Register) {
            let initial = self.probe.program.states.get(state.0 as usize).map_or(0, |s| s.init);
            return Operand::number(ty, initial);
        }
        let register = self.counted(state);
        if let Some(counter) = self.plan.bounds.counter(state) {
            return self.in_units(register, counter.unit);
        }
        if ty == Type::Bool && self.kept_type(state) != ty {
            return self.op(Class::Pred, "setp.ne.u32", &[register, Operand::word(0)]);
        }
        if !changes || register != self.state(state) {
            return register;
        }
        let copy = self.temp(Class::of(ty));
        self.copy(copy, register, ty);
        copy
    }

    /// A state's register; where a clone returns, how much it has increased it.
    pub(super) fn counted(&mut self, state: StateId) -> Operand<'a> {
        let register = self.state(state);
        if self.site.found.kind != Kind::Return {
            return register;
        }
        let class = Class::of(self.kept_type(state));
        let Some(given) = self.given_state(state) else { return register };
        let opcode = if class == Class::B64 { "sub.u64" } else { "sub.u32" };
        self.op(class, opcode, &[register, given])
    }

    /// Where a clone is given a register of its caller.
    pub(super) fn passed(&self, carried: Carried) -> Option<Passed> {
        self.plan.context.passed.iter().find(|passed| passed.carried == carried).copied()
    }

    /// What a clone was given of a state.
    fn given_state(&mut self, state: StateId) -> Option<Operand<'a>> {
        let passed = self
            .plan
            .context
            .passed
            .iter()
            .find(|passed| passed.carried == Carried::State(state))
            .copied()?;
        let class = if passed.size == 8 { Class::B64 } else { Class::B32 };
        let (value, prefix, bits) = (self.temp(class), self.plan.prefix, 8 * passed.size);
        self.line(format_args!("ld.param.b{bits} {value}, [{prefix}ctx+{}];", passed.offset));
        Some(value)
    }

    fn write_state(&mut self, p: usize, inst: &Inst, state: StateId, value: ValueId) -> Result<(), Refusal> {
        if self.plan.states.get(state.0 as usize) != Some(&Keep::Register) {
            return Ok(());
        }
        let guard = match self.when(p, inst.guard)? {
            When::Never => return Ok(()),
            When::Always => None,
            When::If(guard) => Some(guard),
        };
        let ty = self.probe.program.states.get(state.0 as usize).map_or(Type::U64, |s| s.ty);
        self.demand(p, &[value])?;
        let (register, mut value) = (self.state(state), self.value(p, value)?);
        let (declared, ty) = (ty, if ty == Type::Bool { self.kept_type(state) } else { ty });
        if declared != ty {
            value = match value {
                Operand::Number { bits, .. } => Operand::word(u32::from(bits != 0)),
                holds => self.op(Class::B32, "selp.b32", &[Operand::word(1), Operand::word(0), holds]),
            };
        }
        match guard {
            // It was computed there.
            _ if value == register => {}
            None => self.copy(register, value, ty),
            Some(guard) => {
                let value = self.register(value, ty);
                let suffix = Class::of(ty).move_suffix();
                self.line(format_args!("@{guard} mov.{suffix} {register}, {value};"));
            }
        }
        Ok(())
    }

    /// A count in units of more than one, in 64 bits.
    pub(super) fn in_units(&mut self, count: Operand<'a>, unit: u32) -> Operand<'a> {
        match unit {
            1 => self.op(Class::B64, "cvt.u64.u32", &[count]),
            unit => self.op(Class::B64, "mul.wide.u32", &[count, Operand::word(unit)]),
        }
    }

    /// What instruction `at` increases a state by, if it does only that.
    fn increase(&self, p: usize, at: usize) -> Option<ValueId> {
        self.increases.get(p)?.get(at).copied().flatten()
    }

    /// Is the value a state's, read for nothing but to increase it?
    fn is_increased(&self, p: usize, read: Option<ValueId>) -> bool {
        let code = self.code(p);
        let sums = code.iter().enumerate().filter(|&(at, _)| self.increase(p, at).is_some());
        let mut reads = sums.filter_map(|(_, inst)| match inst.op {
            Op::WriteState(_, sum) => code.iter().find(|inst| inst.result == Some(sum)),
            _ => None,
        });
        reads.any(|sum| matches!(sum.op, Op::Binary(_, a, b) if Some(a) == read || Some(b) == read))
    }

    /// `@%p1 add.u64 %nt_s_sync, %nt_s_sync, 16;`
    fn increase_state(&mut self, p: usize, inst: &Inst, state: StateId, by: ValueId) -> Result<(), Refusal> {
        if self.plan.states.get(state.0 as usize) != Some(&Keep::Register) {
            return Ok(());
        }
        let guard = match (self.when(p, inst.guard)?, self.predicated) {
            (When::Never, _) => return Ok(()),
            (When::If(guard), _) => format!("@{guard} "),
            (When::Always, Some((negated, guard))) => format!("@{}{guard} ", if negated { "!" } else { "" }),
            (When::Always, None) => String::new(),
        };
        self.demand(p, &[by])?;
        let register = self.state(state);
        let by = match self.value(p, by)? {
            // All that is added to a counter is constant.
            Operand::Number { bits, .. } => self.kept(state, bits),
            by => by,
        };
        let opcode = if Class::of(self.kept_type(state)) == Class::B64 { "add.u64" } else { "add.u32" };
        self.line(format_args!("{guard}{opcode} {register}, {register}, {by};"));
        Ok(())
    }

    /// Does nothing happen here but that states are increased by constants, everywhere?
    pub(super) fn only_increases(&self) -> bool {
        self.site.bodies.iter().all(|body| body.asked.is_none())
            && self.probes.iter().enumerate().all(|(p, probe)| {
                probe.code.iter().enumerate().all(|(at, inst)| match inst.op {
                    Op::WriteState(..) => inst.guard.is_none() && self.increase(p, at).is_some(),
                    Op::Const(_) | Op::ReadState(_) | Op::Unary(..) | Op::Binary(..) | Op::Cast(_) => true,
                    _ => false,
                })
            })
    }

    /// Is the state assigned behind instruction `at` of probe `p`, in this span?
    pub(super) fn changes_after(&self, p: usize, at: usize, state: StateId) -> bool {
        let writes = |inst: &Inst| matches!(inst.op, Op::WriteState(to, _) if to == state);
        let here = self.code(p).iter().skip(at + 1).any(writes);
        here || self.probes.iter().skip(p + 1).any(|probe| probe.code.iter().any(writes))
    }
}

/// How a clock is read; `None` for what is no clock.
fn clock(builtin: Builtin) -> Option<(&'static str, &'static str)> {
    match builtin {
        Builtin::Clock => Some(("mov.u64", "%clock64")),
        Builtin::ClockLow => Some(("mov.u32", "%clock")),
        Builtin::Time => Some(("mov.u64", "%globaltimer")),
        _ => None,
    }
}

/// For each instruction of a probe: if it assigns to a state the sum of itself and a value, and neither the sum nor the
/// old state is used otherwise, that value.
///
/// ```text
/// %0: u64 = state sync     %1: u64 = const 16     %2: u64 = add %0, %1     state sync = %2       by %1
/// ```
pub(crate) fn increases(probe: &Probe) -> Vec<Option<ValueId>> {
    let mut uses = vec![0u32; probe.values.len()];
    let mut defined: Vec<Option<(usize, &Op)>> = vec![None; probe.values.len()];
    for (at, inst) in probe.code.iter().enumerate() {
        inst.op.operands().iter().chain(&inst.guard).chain(&probe.predicate).for_each(|value| {
            if let Some(count) = uses.get_mut(value.0 as usize) {
                *count += 1;
            }
        });
        if let Some(slot) = inst.result.and_then(|value| defined.get_mut(value.0 as usize)) {
            *slot = Some((at, &inst.op));
        }
    }
    let alone = |value: ValueId| uses.get(value.0 as usize) == Some(&1);
    let defined = |value: ValueId| defined.get(value.0 as usize).copied().flatten();
    // When each state was last assigned.
    let mut assigned: BTreeMap<StateId, usize> = BTreeMap::new();
    let mut increases = vec![None; probe.code.len()];
    for (at, inst) in probe.code.iter().enumerate() {
        let Op::WriteState(state, sum) = inst.op else { continue };
        let last = assigned.insert(state, at);
        let is_wide =
            probe.values.get(sum.0 as usize).is_some_and(|v| v.ty.is_integer() && 32 <= v.ty.bits());
        let Some((_, &Op::Binary(BinaryOp::Add, a, b))) = defined(sum).filter(|_| alone(sum) && is_wide)
        else {
            continue;
        };
        let is_old = |value: ValueId| {
            let read = matches!(defined(value), Some((read, Op::ReadState(s))) if *s == state && last.is_none_or(|last| last < read));
            read && alone(value)
        };
        let by = match (is_old(a), is_old(b)) {
            (true, false) => Some(b),
            (false, true) => Some(a),
            _ => None,
        };
        if let Some(slot) = increases.get_mut(at) {
            *slot = by;
        }
    }
    increases
}
