//! Checked program to IR.
//!
//! Nothing is decided here that the checker has not decided; what is left is order and guards. `if` becomes predicates:
//! both sides are computed, effects and assignments are guarded, and a `let` assigned in a branch becomes a select.
//!
//! ```text
//! if c { n = n + 1; }      %1: u32 = state n
//!                          %2: u32 uniform = const 1
//!                          %3: u32 = add %1, %2
//!                          state n = %3 if %0
//! ```

mod sample;

use crate::checked::{self, Expr, Kind, LetId, Stmt};
use nt_diag::{Diagnostic, Found, Span};
use nt_ir::program::{BinaryOp, Inst, MapId, Op, Probe, Program, Type, UnaryOp, Unit, Value, ValueId};

/// The instructions that a probe may have before any pass: far more than a kernel bears at a site, and few enough for the
/// passes, some of which look at each pair.
pub(crate) const INSTRUCTIONS: usize = 4096;

/// Lowers a program in which no error was found.
pub(crate) fn lower(program: &checked::Program, name: &str, found: &mut Found) -> Program {
    let varying = varying_states(program);
    let phases = program
        .probes
        .iter()
        .filter_map(|probe| probe.sample.as_ref().map(|sample| sample::phase(probe, sample)));
    let probes = program.probes.iter().map(|probe| lower_probe(probe, &varying));
    let lowered = Program {
        name: name.to_owned(),
        states: program.states.clone(),
        maps: program.maps.clone(),
        tables: program.tables.clone(),
        probes: phases.chain(probes).collect(),
        limits: Vec::new(),
        config: program.config,
    };
    for probe in lowered.probes.iter().filter(|probe| probe.code.len() > INSTRUCTIONS) {
        let message = format!("a probe of {} instructions, of at most {INSTRUCTIONS}", probe.code.len());
        found.push(Diagnostic::error("budget", probe.span, message));
    }
    lowered
}

/// Which states differ between the lanes of a warp: those that a thread probe or a varying value assigns.
fn varying_states(program: &checked::Program) -> Vec<bool> {
    let mut varying = vec![false; program.states.len()];
    for probe in &program.probes {
        if let (Some(sample), Unit::Thread) = (&probe.sample, probe.unit) {
            varying[sample.state.0 as usize] = true;
        }
        let mut bodies = vec![probe.body.as_slice()];
        while let Some(body) = bodies.pop() {
            for stmt in body {
                match stmt {
                    Stmt::Write { state, value, .. } => {
                        varying[state.0 as usize] |= value.varying || probe.unit == Unit::Thread;
                    }
                    Stmt::If { then, otherwise, .. } => {
                        bodies.extend([then.as_slice(), otherwise.as_slice()]);
                    }
                    Stmt::Let { .. } | Stmt::Save { .. } | Stmt::Aggregate { .. } => {}
                }
            }
        }
    }
    varying
}

fn lower_probe(probe: &checked::Probe, varying_states: &[bool]) -> Probe {
    let mut lowering = Lowering { values: Vec::new(), code: Vec::new(), lets: Vec::new(), varying_states };
    let mut predicate = probe.predicate.as_ref().map(|predicate| lowering.expr(predicate));
    let mut branches = None;
    if let Some(sample) = &probe.sample {
        let hit = lowering.sample(sample, predicate);
        match probe.unit {
            Unit::Thread => predicate = Some(lowering.both(predicate, hit, sample.span)),
            Unit::Warp | Unit::Block => branches = Some(hit),
        }
    }
    lowering.body(&probe.body, Guards { predicate, branches });
    Probe {
        unit: probe.unit,
        points: probe.points.clone(),
        predicate,
        values: lowering.values,
        code: lowering.code,
        span: probe.span,
    }
}

/// Under what an effect happens.
#[derive(Debug, Clone, Copy)]
struct Guards {
    /// The probe's predicate.
    predicate: Option<ValueId>,
    /// The conditions of the branches around, joined.
    branches: Option<ValueId>,
}

struct Lowering<'p> {
    values: Vec<Value>,
    code: Vec<Inst>,
    /// The current value of each let, and the branch it was declared in.
    lets: Vec<Option<(ValueId, Option<ValueId>)>>,
    varying_states: &'p [bool],
}

impl Lowering<'_> {
    fn body(&mut self, stmts: &[Stmt], guards: Guards) {
        for stmt in stmts {
            match stmt {
                Stmt::Let { id, value, span } => {
                    let value = self.expr(value);
                    self.set_let(*id, value, guards.branches, *span);
                }
                Stmt::Write { state, value, span } => {
                    let value = self.expr(value);
                    self.effect(Op::WriteState(*state, value), guards, *span);
                }
                Stmt::Save { map, values, span } => {
                    // Fields in their order, which for a save by name need not be the text's; only clocks could tell.
                    let values = values.iter().map(|value| self.expr(value)).collect::<Vec<_>>();
                    let values = (0..).zip(values).collect();
                    self.effect(Op::Save { map: MapId(*map), values }, guards, *span);
                }
                Stmt::Aggregate { table, value, span } => {
                    let value = value.as_ref().map(|value| self.expr(value));
                    self.effect(Op::Aggregate { table: *table, value }, guards, *span);
                }
                Stmt::If { condition, then, otherwise } => {
                    let span = condition.span;
                    let holds = self.expr(condition);
                    let then_branch = Some(self.both(guards.branches, holds, span));
                    self.body(then, Guards { branches: then_branch, ..guards });
                    if !otherwise.is_empty() {
                        let fails = self.emit(Type::Bool, Op::Unary(UnaryOp::Not, holds), span);
                        let else_branch = Some(self.both(guards.branches, fails, span));
                        self.body(otherwise, Guards { branches: else_branch, ..guards });
                    }
                }
            }
        }
    }

    /// A let declared outside of the branch keeps its old value where the branch is not taken.
    fn set_let(&mut self, id: LetId, new: ValueId, branches: Option<ValueId>, span: Span) {
        if self.lets.len() <= id.0 {
            self.lets.resize(id.0 + 1, None);
        }
        let entry = match (self.lets[id.0], branches) {
            (None, _) => (new, branches),
            (Some((_, declared)), _) if declared == branches => (new, declared),
            (Some((_, declared)), None) => (new, declared),
            (Some((old, declared)), Some(taken)) => {
                let ty = self.ty(new);
                (self.emit(ty, Op::Select(taken, new, old), span), declared)
            }
        };
        self.lets[id.0] = Some(entry);
    }

    fn effect(&mut self, op: Op, guards: Guards, span: Span) {
        let guard = match (guards.predicate, guards.branches) {
            (Some(predicate), Some(branches)) => Some(self.both(Some(predicate), branches, span)),
            (predicate, branches) => predicate.or(branches),
        };
        self.code.push(Inst { result: None, op, guard, span });
    }

    fn both(&mut self, outer: Option<ValueId>, inner: ValueId, span: Span) -> ValueId {
        match outer {
            Some(outer) => self.emit(Type::Bool, Op::Binary(BinaryOp::And, outer, inner), span),
            None => inner,
        }
    }

    fn expr(&mut self, expr: &Expr) -> ValueId {
        let op = match &expr.kind {
            Kind::Const(bits) => Op::Const(*bits),
            Kind::Builtin(builtin) => Op::Builtin(*builtin),
            Kind::Site(value) => Op::Site(*value),
            Kind::Operand(operand) => Op::Operand(*operand),
            Kind::CastOperand(operand) => Op::CastOperand(*operand),
            Kind::BitsOperand(operand) => Op::BitsOperand(*operand),
            Kind::CompareOperands(op, a, b) => Op::CompareOperands(*op, *a, *b),
            Kind::ClockAfter(builtin, a) => Op::ClockAfter(*builtin, self.expr(a)),
            Kind::ClockAfterOperand(builtin, operand) => Op::ClockAfterOperand(*builtin, *operand),
            Kind::Has(part) => Op::Has(*part),
            Kind::Match(what, glob) => Op::Match { what: *what, glob: glob.clone() },
            Kind::State(state) => Op::ReadState(*state),
            Kind::Let(id) => match self.lets.get(id.0) {
                Some(Some((value, _))) => return *value,
                // The checker lets no use stand before its declaration.
                _ => Op::Const(0),
            },
            Kind::Unary(op, a) => Op::Unary(*op, self.expr(a)),
            Kind::Binary(op, a, b) => Op::Binary(*op, self.expr(a), self.expr(b)),
            Kind::Compare(op, a, b) => Op::Compare(*op, self.expr(a), self.expr(b)),
            Kind::Cast(a) => Op::Cast(self.expr(a)),
            Kind::Bits(a) => Op::Bits(self.expr(a)),
            Kind::Select(c, a, b) => Op::Select(self.expr(c), self.expr(a), self.expr(b)),
        };
        let value = self.emit(expr.ty, op, expr.span);
        if let Kind::Operand(_) = expr.kind {
            self.values[value.0 as usize].uniform = !expr.varying;
        }
        value
    }

    fn emit(&mut self, ty: Type, op: Op, span: Span) -> ValueId {
        let uniform = |id: &ValueId| self.values[id.0 as usize].uniform;
        let uniform = match (op.keeps_lanes_alike(), &op) {
            (_, Op::ReadState(state)) => !self.varying_states[state.0 as usize],
            (_, Op::ClockAfter(..)) => true,
            (Some(true), op) => op.operands().iter().all(uniform),
            // Of bytes the checker knows the classes, on which it depends.
            (Some(false) | None, _) => false,
        };
        let id = ValueId(self.values.len() as u32);
        self.values.push(Value { ty, uniform });
        self.code.push(Inst { result: Some(id), op, guard: None, span });
        id
    }

    fn ty(&self, id: ValueId) -> Type {
        self.values[id.0 as usize].ty
    }
}
