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
use crate::plan::Keep;
use crate::sites::Kind;
use nt_ir::program::{Builtin, Inst, Op, StateId, Type, ValueId};

impl<'a> Span<'a> {
    /// The initial values of states, at the kernel's first span.
    pub(super) fn initialise_states(&mut self) {
        if self.site.kind != Kind::Entry {
            return;
        }
        for number in 0..self.plan.states.len() {
            let state = StateId(number as u32);
            if self.plan.states.get(number) != Some(&Keep::Register) || self.assigned_at_once(state) {
                continue;
            }
            let Some(declared) = self.probe.program.states.get(number) else { continue };
            let (register, initial) = (self.state(state), Operand::number(declared.ty, declared.init));
            self.copy(register, initial, declared.ty);
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
    pub(super) fn read_clocks(&mut self) {
        for p in 0..self.probes.len() {
            let live = self.live(p);
            for inst in self.code(p) {
                let (Op::Builtin(builtin), Some(result)) = (&inst.op, inst.result) else { continue };
                let (opcode, register) = match builtin {
                    Builtin::Clock => ("mov.u64", "%clock64"),
                    Builtin::ClockLow => ("mov.u32", "%clock"),
                    Builtin::Time => ("mov.u64", "%globaltimer"),
                    _ => continue,
                };
                if live.get(result.0 as usize) != Some(&true) {
                    continue;
                }
                let value = match self.lands_in(p, result) {
                    Some(state) => self.state(state),
                    None => self.temp(Class::of(builtin.ty())),
                };
                self.line(format_args!("{opcode} {value}, {register};"));
                self.set(p, result, value);
            }
        }
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
                    Op::ReadState(state) => {
                        let Some(result) = inst.result.filter(|r| live.get(r.0 as usize) == Some(&true))
                        else {
                            continue;
                        };
                        let read = self.read_state(state, self.changes_after(p, at, state));
                        self.set(p, result, read);
                    }
                    Op::WriteState(state, value) => self.write_state(p, inst, state, value)?,
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

    fn read_state(&mut self, state: StateId, changes: bool) -> Operand<'a> {
        let ty = self.probe.program.states.get(state.0 as usize).map_or(Type::U64, |s| s.ty);
        if self.plan.states.get(state.0 as usize) != Some(&Keep::Register) {
            let initial = self.probe.program.states.get(state.0 as usize).map_or(0, |s| s.init);
            return Operand::number(ty, initial);
        }
        let register = self.state(state);
        if !changes {
            return register;
        }
        let copy = self.temp(Class::of(ty));
        self.copy(copy, register, ty);
        copy
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
        let (register, value) = (self.state(state), self.value(p, value)?);
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

    /// Is the state assigned behind instruction `at` of probe `p`, in this span?
    fn changes_after(&self, p: usize, at: usize, state: StateId) -> bool {
        let writes = |inst: &Inst| matches!(inst.op, Op::WriteState(to, _) if to == state);
        let here = self.code(p).iter().skip(at + 1).any(writes);
        here || self.probes.iter().skip(p + 1).any(|probe| probe.code.iter().any(writes))
    }
}
