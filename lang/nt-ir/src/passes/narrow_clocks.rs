//! Keeps differences of clocks in 32 bits: exact for launches of less than 2^32 cycles, which the program then states.
//!
//! ```text
//! map m: array<warp> { start: u64, ran: u64 }     map m: array<warp> { end: u64, ran: u64 }
//!                                                   show { start: u64 = end - ran, ran: u64 = ran }
//! %0: u64 uniform = state start                   %0: u64 uniform = state start
//! %1: u64 uniform = clock                    ->   %1: u64 uniform = clock
//! %2: u64 uniform = sub %1, %0                    %2: u64 uniform = sub %1, %0
//! save m(start = %0, ran = %2)                    %3: u32 uniform = cast %2
//!                                                 %4: u64 uniform = cast %3
//!                                                 save m(end = %1, ran = %4)
//! ```
//!
//! A state that holds a clock needs 64 bits only to be saved, or to be subtracted from a later clock when the two are 2^32
//! cycles or more apart. Where the state itself is saved beside such a difference, or beside the later clock, the record
//! stores what tells it without the upper half, and the column is derived by the reader. Here is only cut and widened; the
//! gain (a register less a thread, a smaller record) is made by `narrow_fields` and `narrow_values`, which need no limit.
//!
//! Sound, for a state, where
//! * every assignment is a clock, and one without a guard stands at the entry of every kernel at whose exit it is read;
//! * it is read at exits alone, and used there only in a difference with a clock read after its last assignment, or as the
//!   field of a map all of whose saves have the form above.

use crate::program::{
    BinaryOp, Builtin, Column, Inst, Limit, MapId, Op, Probe, Program, Source, StateId, Tracepoint, Type,
    Unit, Value, ValueId,
};
use nt_diag::Span;

/// Up to how many cycles a difference fits 32 bits.
const LIMIT: Limit = Limit::LaunchCycles(1 << 32);

pub(super) fn run(program: &mut Program) {
    let mut narrowed = false;
    for state in 0..program.states.len() {
        let state = StateId(state as u32);
        if let Some(derived) = plan(program, state) {
            for derived in &derived {
                derive(program, state, derived);
            }
            for probe in &mut program.probes {
                cut_differences(probe, state);
            }
            narrowed = true;
        }
    }
    if narrowed && !program.limits.contains(&LIMIT) {
        program.limits.push(LIMIT);
    }
}

/// A column that is no longer stored.
#[derive(Debug, Clone, Copy)]
struct Derived {
    map: MapId,
    /// The field that held the state.
    field: u32,
    /// The field that tells it, together with what takes its place.
    partner: u32,
    /// Is that field the later clock? Else it is the difference.
    partner_is_clock: bool,
}

/// The columns to derive so that `state` needs no upper half; `None` where that is not sound, or needs no limit.
fn plan(program: &Program, state: StateId) -> Option<Vec<Derived>> {
    if program.states[state.0 as usize].ty != Type::U64 || !is_set_at_entry(program, state) {
        return None;
    }
    let mut derived: Vec<Derived> = Vec::new();
    // Is a difference used as more than 32 bits?
    let mut wide = false;
    for probe in &program.probes {
        for inst in &probe.code {
            let Some(result) = inst.result.filter(|_| inst.op == Op::ReadState(state)) else { continue };
            for user in &probe.code {
                let uses = user.op.operands().contains(&result) || user.guard == Some(result);
                match &user.op {
                    _ if !uses => {}
                    Op::Binary(BinaryOp::Sub, clock, read) if *read == result && *clock != result => {
                        if !is_later_clock(probe, *clock, result, state) {
                            return None;
                        }
                        wide |= user.result.is_some_and(|difference| !only_cut(probe, difference));
                    }
                    Op::Save { map, values } => {
                        for (field, _) in values.iter().filter(|(_, value)| *value == result) {
                            let known =
                                derived.iter().any(|derived| (derived.map, derived.field) == (*map, *field));
                            if !known {
                                derived.push(derive_plan(program, *map, *field, state)?);
                            }
                        }
                    }
                    _ => return None,
                }
            }
        }
    }
    (wide || !derived.is_empty()).then_some(derived)
}

/// Is every assignment of the state a clock, one of them at the entry of each kernel whose exit reads it?
fn is_set_at_entry(program: &Program, state: StateId) -> bool {
    let mut entries: Vec<&Option<String>> = Vec::new();
    for probe in &program.probes {
        for inst in &probe.code {
            let Op::WriteState(written, value) = inst.op else { continue };
            if written != state {
                continue;
            }
            if definition(probe, value) != Some(&Op::Builtin(Builtin::Clock)) {
                return false;
            }
            if inst.guard.is_none() && probe.unit != Unit::Block {
                entries.extend(probe.points.iter().filter_map(|point| match point {
                    Tracepoint::KernelEntry { kernel } => Some(kernel),
                    _ => None,
                }));
            }
        }
    }
    let is_read = |probe: &&Probe| probe.code.iter().any(|inst| inst.op == Op::ReadState(state));
    program.probes.iter().filter(is_read).flat_map(|probe| &probe.points).all(|point| match point {
        Tracepoint::KernelExit { kernel } => entries.iter().any(|entry| entry.is_none() || *entry == kernel),
        _ => false,
    })
}

/// The column for a saved state: which other field tells it, the same in every save of the map.
fn derive_plan(program: &Program, map: MapId, field: u32, state: StateId) -> Option<Derived> {
    let declared = &program.maps[map.0 as usize];
    let columns = &declared.columns;
    let own = columns.iter().filter(|column| match column.source {
        Source::Field(index) => index == field,
        Source::Difference(a, b) => a == field || b == field,
    });
    if !own.eq([&columns.get(field as usize).filter(|column| column.source == Source::Field(field))?.clone()])
    {
        return None;
    }
    // A column is derived of values that a record has one of.
    let scalar = |field: u32| declared.fields.get(field as usize).is_some_and(|field| !field.lanes);
    let partners = (0..declared.fields.len() as u32).filter(|partner| *partner != field && scalar(*partner));
    let forms = partners.filter(|_| scalar(field)).flat_map(|partner| {
        // The difference is preferred: it is stored in 32 bits.
        [false, true].map(|partner_is_clock| Derived { map, field, partner, partner_is_clock })
    });
    forms.into_iter().find(|derived| holds_everywhere(program, derived, state))
}

/// Does every save of the map have the form of `derived`?
fn holds_everywhere(program: &Program, derived: &Derived, state: StateId) -> bool {
    program.probes.iter().all(|probe| {
        probe.code.iter().all(|inst| match &inst.op {
            Op::Save { map, values } if *map == derived.map => {
                later_clock_of(probe, values, derived, state).is_some()
            }
            _ => true,
        })
    })
}

/// The later clock, as a save of this form has it.
fn later_clock_of(
    probe: &Probe,
    values: &[(u32, ValueId)],
    derived: &Derived,
    state: StateId,
) -> Option<ValueId> {
    let (_, read) = *values.get(derived.field as usize)?;
    let (_, partner) = *values.get(derived.partner as usize)?;
    if definition(probe, read) != Some(&Op::ReadState(state)) {
        return None;
    }
    let clock = match (derived.partner_is_clock, definition(probe, partner)?) {
        (true, Op::Builtin(Builtin::Clock)) => partner,
        (false, Op::Binary(BinaryOp::Sub, clock, start)) if *start == read => *clock,
        (false, Op::Cast(difference)) if probe.values[partner.0 as usize].ty == Type::U32 => {
            match definition(probe, *difference)? {
                Op::Binary(BinaryOp::Sub, clock, start) if *start == read => *clock,
                _ => return None,
            }
        }
        _ => return None,
    };
    is_later_clock(probe, clock, read, state).then_some(clock)
}

/// Is `clock` a clock that was read after what `read` gives was assigned?
fn is_later_clock(probe: &Probe, clock: ValueId, read: ValueId, state: StateId) -> bool {
    if definition(probe, clock) != Some(&Op::Builtin(Builtin::Clock)) {
        return false;
    }
    // An assignment between the clock and the read would be of a later clock.
    let from = probe.code.iter().position(|inst| inst.result == Some(clock));
    let to = probe.code.iter().position(|inst| inst.result == Some(read));
    match (from, to) {
        (Some(from), Some(to)) if from < to => !probe.code[from..to]
            .iter()
            .any(|inst| matches!(inst.op, Op::WriteState(written, _) if written == state)),
        (Some(_), Some(_)) => true,
        _ => false,
    }
}

/// Is every use of `difference` a cut to 32 bits or less?
fn only_cut(probe: &Probe, difference: ValueId) -> bool {
    probe.code.iter().filter(|inst| inst.op.operands().contains(&difference)).all(|inst| {
        let cut = inst.result.is_some_and(|result| {
            let ty = probe.values[result.0 as usize].ty;
            ty.is_integer() && ty.bits() <= 32
        });
        cut && matches!(inst.op, Op::Cast(_))
    })
}

/// Stores the later clock, or the difference, in the place of the state.
fn derive(program: &mut Program, state: StateId, derived: &Derived) {
    for probe in &mut program.probes {
        for mut inst in std::mem::take(&mut probe.code) {
            let span = inst.span;
            if let Op::Save { map, values } = &mut inst.op
                && *map == derived.map
                && let Some(clock) = later_clock_of(probe, values, derived, state)
                && let Some((_, value)) = values.get_mut(derived.field as usize)
            {
                *value = match derived.partner_is_clock {
                    true => emit(probe, Type::U64, Op::Binary(BinaryOp::Sub, clock, *value), span),
                    false => clock,
                };
            }
            probe.code.push(inst);
        }
    }
    let map = &mut program.maps[derived.map.0 as usize];
    let field = derived.field as usize;
    let (word, source) = match derived.partner_is_clock {
        true => ("elapsed", Source::Difference(derived.partner, derived.field)),
        false => ("end", Source::Difference(derived.field, derived.partner)),
    };
    map.columns[field].source = source;
    map.fields[field].name = free_name(word, &map.columns, &map.columns[field].name);
}

/// A name for a field that no column has: `end`, else `start_end`, else with more of the same.
fn free_name(word: &str, columns: &[Column], column: &str) -> String {
    let mut name = word.to_owned();
    while columns.iter().any(|column| column.name == name) {
        name = if name == word { format!("{column}_{word}") } else { format!("{name}_") };
    }
    name
}

/// Cuts each difference with the state to 32 bits and widens it again, which the limit makes the same.
fn cut_differences(probe: &mut Probe, state: StateId) {
    let mut same: Vec<ValueId> = (0..probe.values.len() as u32).map(ValueId).collect();
    for mut inst in std::mem::take(&mut probe.code) {
        inst.for_each_use(&mut |id| *id = same.get(id.0 as usize).copied().unwrap_or(*id));
        let difference = match inst.op {
            Op::Binary(BinaryOp::Sub, _, read) if definition(probe, read) == Some(&Op::ReadState(state)) => {
                inst.result
            }
            _ => None,
        };
        let span = inst.span;
        probe.code.push(inst);
        if let Some(difference) = difference {
            let low = emit(probe, Type::U32, Op::Cast(difference), span);
            let wide = emit(probe, Type::U64, Op::Cast(low), span);
            same[difference.0 as usize] = wide;
        }
    }
}

fn emit(probe: &mut Probe, ty: Type, op: Op, span: Span) -> ValueId {
    let uniform = op.operands().iter().all(|id| probe.values[id.0 as usize].uniform);
    let id = ValueId(probe.values.len() as u32);
    probe.values.push(Value { ty, uniform });
    probe.code.push(Inst { result: Some(id), op, guard: None, span });
    id
}

/// The operation that defines `id`.
fn definition(probe: &Probe, id: ValueId) -> Option<&Op> {
    probe.code.iter().find(|inst| inst.result == Some(id)).map(|inst| &inst.op)
}
