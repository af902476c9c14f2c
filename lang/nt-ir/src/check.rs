//! The IR's own verifier: what must hold of a program before a pass or a back end sees it.
//!
//! * Names of states, maps, and fields within a map are unique words; columns
//!   refer to fields that widen to them.
//! * Each value of a probe is defined once, before its uses, and has the type that its operation gives; arithmetic is on 32
//!   or 64 bits, constants are in the form of their type.
//! * Guards and the predicate are `bool` and stand on effects alone. A save gives every field, ascending, with its type.
//! * A value that is called uniform is made of uniform ones; what a warp or block probe saves is uniform, but for
//!   `lanes<T>` fields.
//! * `lanes<T>` fields stand in streams, whose events fit a chunk; a field that the code of an event tells is saved from what
//!   is known when a kernel is woven.
//! * A probe's unit is that of the maps it saves to; block probes have no state.
//! * A table's cell is told by sites and at most one key that is not; what a warp probe adds is the same in all lanes.
//!
//! Promise: after a check without errors, ids and operands may be used as indices freely.

mod maps;

use crate::program::{
    BinaryOp, Builtin, CompareOp, Func, Inst, Key, Op, Operand, Probe, Program, StateId, TableId, Tracepoint,
    Type, UnaryOp, Unit, Value, ValueId,
};
use nt_diag::{Diagnostic, Found, Span};
use std::collections::BTreeSet;

/// How long a probe may be, so that passes which look at each pair of instructions end soon. The front end's limit is a
/// quarter of it; passes add a little.
const LIMIT: usize = 1 << 14;
/// How many fields a record may have, how many states and tables a program, how many keys a table.
const FIELDS: usize = 64;

/// Holds `program` to the rules above.
pub fn check(program: &Program) -> Found {
    let mut checker = Checker { program, varying: varying_states(program), found: Found::new() };
    checker.states();
    checker.maps();
    checker.tables();
    for probe in &program.probes {
        checker.probe(probe);
    }
    checker.found
}

/// Which states may differ between lanes: those that a thread probe or a varying value assigns.
pub(crate) fn varying_states(program: &Program) -> Vec<bool> {
    let mut varying = vec![false; program.states.len()];
    for probe in &program.probes {
        for inst in &probe.code {
            if let Op::WriteState(StateId(state), value) = inst.op
                && let Some(state) = varying.get_mut(state as usize)
            {
                let uniform = probe.values.get(value.0 as usize).is_some_and(|value| value.uniform);
                *state |= !uniform || probe.unit == Unit::Thread;
            }
        }
    }
    varying
}

struct Checker<'p> {
    program: &'p Program,
    varying: Vec<bool>,
    found: Found,
}

impl Checker<'_> {
    fn wrong(&mut self, span: Span, message: impl Into<String>) {
        self.found.push(Diagnostic::error("ir", span, message));
    }

    fn states(&mut self) {
        if self.program.states.len() > FIELDS {
            self.wrong(Span::default(), format!("more than {FIELDS} states"));
        }
        let mut names = BTreeSet::new();
        for state in &self.program.states {
            if !is_name(&state.name) || !names.insert(&state.name) {
                self.wrong(state.span, format!("state `{}` has no name of its own", state.name));
            }
            if state.ty.canonical(state.init) != state.init {
                self.wrong(state.span, format!("the initial value of `{}` is not of its type", state.name));
            }
        }
    }

    fn tables(&mut self) {
        if self.program.tables.len() > FIELDS {
            self.wrong(Span::default(), format!("more than {FIELDS} tables"));
        }
        let mut names = BTreeSet::new();
        for table in &self.program.tables {
            let name = &table.name;
            if !(name.is_empty() || is_name(name)) || !names.insert(name) {
                self.wrong(table.span, format!("table `@{name}` has no name of its own"));
            }
            let ty_fits = match table.func {
                Func::Count => table.ty == Type::U64,
                Func::Sum => matches!(table.ty, Type::U64 | Type::S64),
                Func::Gone => table.ty == Type::U64 && table.keys == [Key::Unit(Unit::Warp)],
            };
            if !ty_fits {
                self.wrong(table.span, format!("the cells of `@{name}` are not of 64 bits, or of a sign"));
            }
            let strides = table.keys.iter().filter(|key| !matches!(key, Key::Site(_))).count();
            let bounded = |key: &Key| !matches!(key, Key::Bounded(builtin) if *builtin != Builtin::Cu);
            if strides > 1 || table.keys.len() > FIELDS || !table.keys.iter().all(bounded) {
                self.wrong(table.span, format!("the keys of `@{name}` do not tell a cell"));
            }
        }
    }

    fn points(&mut self, probe: &Probe) {
        for point in &probe.points {
            if let Tracepoint::Line { first, last, .. } = point
                && first > last
            {
                self.wrong(probe.span, "a tracepoint of lines that names none");
            }
            let Tracepoint::Inst { classes, spaces, quals, .. } = point else { continue };
            let lists = std::iter::once(spaces).filter(|spaces| !spaces.is_empty()).chain(quals);
            let narrows = lists.clone().all(|list| !list.is_empty() && list.iter().all(|word| is_name(word)));
            let class = |word: &String| word == "*" || is_name(word);
            if classes.is_empty() || !classes.iter().all(class) || !narrows {
                self.wrong(probe.span, "a tracepoint of instructions that names none");
            }
        }
    }

    fn probe(&mut self, probe: &Probe) {
        if probe.code.len() > LIMIT {
            return self.wrong(probe.span, format!("a probe of more than {LIMIT} instructions"));
        }
        if probe.points.is_empty() {
            self.wrong(probe.span, "a probe without a tracepoint");
        }
        self.points(probe);
        let mut defined = vec![false; probe.values.len()];
        for inst in &probe.code {
            let operands = inst.op.operands();
            let undefined =
                operands.iter().chain(&inst.guard).find(|id| defined.get(id.0 as usize) != Some(&true));
            if let Some(ValueId(id)) = undefined {
                self.wrong(inst.span, format!("value %{id} is used before it is defined"));
                return;
            }
            match (inst.result, inst.op.is_effect()) {
                (Some(ValueId(id)), false) => {
                    match defined.get_mut(id as usize) {
                        Some(defined) if !*defined => *defined = true,
                        _ => {
                            self.wrong(inst.span, format!("value %{id} is defined twice, or has no type"));
                            return;
                        }
                    }
                    if inst.guard.is_some() {
                        self.wrong(inst.span, "a guard on what has no effect");
                    }
                    self.result(probe, inst, probe.values[id as usize]);
                }
                (None, true) => self.effect(probe, inst),
                _ => self.wrong(inst.span, "an effect has no result, and all else has one"),
            }
        }
        if let Some(id) = defined.iter().position(|defined| !defined) {
            self.wrong(probe.span, format!("value %{id} is never defined"));
        }
        self.saves_of_told(probe);
        if let Some(predicate) = probe.predicate
            && probe.values.get(predicate.0 as usize).is_none_or(|value| value.ty != Type::Bool)
        {
            self.wrong(probe.span, "a predicate that is not a bool of the probe");
        }
    }

    /// A value, whose operands are known to be defined.
    fn result(&mut self, probe: &Probe, inst: &Inst, result: Value) {
        let value = |id: ValueId| probe.values[id.0 as usize];
        let ty = |id: ValueId| value(id).ty;
        let wide = |ty: Type| ty.bits() >= 32;
        let holds = match inst.op {
            Op::Const(bits) => result.ty.canonical(bits) == bits,
            Op::Builtin(
                Builtin::Tid(axis) | Builtin::Ntid(axis) | Builtin::Ctaid(axis) | Builtin::Nctaid(axis),
            ) => axis < 3 && result.ty == Type::U32,
            Op::Builtin(builtin) => result.ty == builtin.ty(),
            Op::ReadState(StateId(state)) => {
                self.program.states.get(state as usize).is_some_and(|state| state.ty == result.ty)
                    && probe.unit != Unit::Block
            }
            Op::Unary(op, a) => {
                ty(a) == result.ty && (wide(result.ty) || (result.ty == Type::Bool && op == UnaryOp::Not))
            }
            Op::Binary(op, a, b) => {
                let (ty_b, logic) = (ty(b), matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor));
                let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
                let float = matches!(result.ty, Type::F32 | Type::F64);
                let type_fits = if result.ty == Type::Bool { logic } else { wide(result.ty) };
                let float_fits = !float || !(shift || logic || op == BinaryOp::Rem);
                ty(a) == result.ty
                    && type_fits
                    && float_fits
                    && ty_b == if shift { Type::U32 } else { result.ty }
            }
            Op::Compare(_, a, b) => result.ty == Type::Bool && ty(a) == ty(b) && wide(ty(a)),
            Op::Cast(_) => result.ty != Type::Bool,
            Op::Bits(a) => ty(a).bits() == result.ty.bits() && result.ty != Type::Bool,
            Op::Select(c, a, b) => ty(c) == Type::Bool && ty(a) == result.ty && ty(b) == result.ty,
            Op::Site(_) => result.ty == Type::U32,
            Op::Operand(operand) => is_operand(operand) && operand.ty().is_none_or(|ty| ty == result.ty),
            Op::CastOperand(operand) | Op::BitsOperand(operand) => {
                is_typed_by_site(operand) && result.ty != Type::Bool
            }
            Op::CompareOperands(_, a, b) => {
                is_typed_by_site(a) && is_typed_by_site(b) && result.ty == Type::Bool
            }
            Op::ClockAfter(builtin, _) => is_clock(builtin) && result.ty == builtin.ty(),
            Op::ClockAfterOperand(builtin, operand) => {
                is_clock(builtin) && is_typed_by_site(operand) && result.ty == builtin.ty()
            }
            Op::Has(_) | Op::Match { .. } => result.ty == Type::Bool,
            Op::WriteState(..) | Op::Save { .. } | Op::Aggregate { .. } => false,
        };
        if !holds {
            self.wrong(inst.span, format!("`{}` does not give {}", describe(&inst.op), result.ty.word()));
        }
        let is_uniform = match (inst.op.keeps_lanes_alike(), &inst.op) {
            (Some(false), _) => false,
            // When a clock is read depends on what varies, not what it tells.
            (_, Op::ClockAfter(..)) => true,
            (Some(true), op) => op.operands().into_iter().all(|id| value(id).uniform),
            (None, Op::ReadState(StateId(state))) => self.varying.get(*state as usize) == Some(&false),
            // Of loads and stores the bytes are known when the kernel is woven.
            (None, _) => true,
        };
        if result.uniform && !is_uniform {
            self.wrong(inst.span, format!("`{}` of what varies is called uniform", describe(&inst.op)));
        }
    }

    /// An effect, whose operands are known to be defined.
    fn effect(&mut self, probe: &Probe, inst: &Inst) {
        let value = |id: ValueId| probe.values[id.0 as usize];
        if inst.guard.is_some_and(|guard| value(guard).ty != Type::Bool) {
            self.wrong(inst.span, "a guard that is not a bool");
        }
        match &inst.op {
            Op::WriteState(StateId(state), new) => {
                let state = self.program.states.get(*state as usize);
                if state.is_none_or(|state| state.ty != value(*new).ty) || probe.unit == Unit::Block {
                    self.wrong(inst.span, "a state is assigned what is not of its type, or in a block probe");
                }
            }
            Op::Save { map, values } => self.save(probe, inst, *map, values),
            Op::Aggregate { table, value: added } => self.aggregate(probe, inst, *table, added.map(value)),
            _ => {}
        }
    }

    fn aggregate(&mut self, probe: &Probe, inst: &Inst, table: TableId, added: Option<Value>) {
        let Some(table) = self.program.tables.get(table.0 as usize) else {
            return self.wrong(inst.span, "a sum into no table");
        };
        let name = &table.name;
        let ty_fits = match table.func {
            Func::Count => added.is_none(),
            Func::Sum => added.is_some_and(|added| added.ty == table.ty),
            // Lanes add themselves.
            Func::Gone => false,
        };
        if !ty_fits {
            self.wrong(inst.span, format!("`@{name}` is added what is not of its type"));
        }
        if probe.unit == Unit::Thread {
            return;
        }
        if added.is_some_and(|added| !added.uniform) {
            self.wrong(inst.span, format!("`@{name}` is added what varies"));
        }
        if table.keys.contains(&Key::Unit(Unit::Thread)) {
            self.wrong(
                inst.span,
                format!("`@{name}` has cells of threads, the probe runs per {}", probe.unit.word()),
            );
        }
    }
}

/// Is it one that instructions have? They take up to five sources.
fn is_operand(operand: Operand) -> bool {
    !matches!(operand, Operand::In(number, _) if !(1..=5).contains(&number))
}

fn is_typed_by_site(operand: Operand) -> bool {
    is_operand(operand) && operand.ty().is_none()
}

fn is_clock(builtin: Builtin) -> bool {
    matches!(builtin, Builtin::Clock | Builtin::ClockLow)
}

/// The word of an operation, for messages.
fn describe(op: &Op) -> &'static str {
    match op {
        Op::Const(_) => "const",
        Op::Builtin(builtin) | Op::ClockAfter(builtin, _) | Op::ClockAfterOperand(builtin, _) => {
            builtin.word()
        }
        Op::ReadState(_) | Op::WriteState(..) => "state",
        Op::Unary(op, _) => op.word(),
        Op::Binary(op, ..) => op.word(),
        Op::Compare(op, ..) | Op::CompareOperands(op, ..) => CompareOp::word(*op),
        Op::Cast(_) | Op::CastOperand(_) => "cast",
        Op::Bits(_) | Op::BitsOperand(_) => "bits",
        Op::Select(..) => "select",
        Op::Site(_) => "site",
        Op::Operand(_) => "operand",
        Op::Has(_) => "has",
        Op::Match { .. } => "match",
        Op::Save { .. } => "save",
        Op::Aggregate { .. } => "sum",
    }
}

/// A word as the text form reads it.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests;
