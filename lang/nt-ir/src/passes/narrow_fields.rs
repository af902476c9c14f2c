//! Stores 32 bits of fields whose upper half is never set.
//!
//! ```text
//! map m: array<warp> { ran: u64 }          map m: array<warp> { ran: u32 }
//!                                            show { ran: u64 = ran }
//! %1: u64 uniform = cast %0           ->   %1: u64 uniform = cast %0
//! save m(ran = %1)                         save m(ran = %0)
//! ```
//!
//! A field of 64 bits is narrowed if every save of it was widened from 32 bits or less, all with or all without a sign, or
//! is a constant that fits. Readers widen it again by the column's type, so they show what they showed before.

use crate::program::{Inst, MapId, Op, Probe, Program, Type, Value, ValueId};

pub(super) fn run(program: &mut Program) {
    for index in 0..program.maps.len() {
        for field in 0..program.maps[index].fields.len() {
            narrow(program, MapId(index as u32), field);
        }
    }
}

fn narrow(program: &mut Program, map: MapId, field: usize) {
    let declared = &program.maps[map.0 as usize].fields[field];
    // An event's base is of a `lanes<ptr>`, and stays so.
    let is_base = declared.lanes && declared.ty == Type::Ptr;
    if declared.ty.bits() != 64 || !declared.ty.is_integer() || is_base {
        return;
    }
    // A signed field is not widened into an unsigned column.
    let candidates: &[Type] = if declared.ty.is_signed() { &[Type::U32, Type::S32] } else { &[Type::U32] };
    let Some(ty) = candidates.iter().copied().find(|&ty| all_fit(program, map, field, ty)) else { return };
    for probe in &mut program.probes {
        rewrite(probe, map, field, ty);
    }
    // The column keeps its type; it is the reader who widens. (A difference is taken of widened fields as well.)
    program.maps[map.0 as usize].fields[field].ty = ty;
}

/// The operation that defines `id`.
fn definition(probe: &Probe, id: ValueId) -> Option<&Op> {
    probe.code.iter().find(|inst| inst.result == Some(id)).map(|inst| &inst.op)
}

/// Is every save of the field, of which there is one, the widening of a value that `ty` holds?
fn all_fit(program: &Program, map: MapId, field: usize, ty: Type) -> bool {
    let wide = program.maps[map.0 as usize].fields[field].ty;
    let mut any = false;
    for probe in &program.probes {
        for inst in &probe.code {
            let Op::Save { map: saved, values } = &inst.op else { continue };
            if *saved != map {
                continue;
            }
            let Some((_, id)) = values.get(field) else { return false };
            let fits = match definition(probe, *id) {
                Some(Op::Cast(from)) => {
                    let from = probe.values[from.0 as usize].ty;
                    let narrow = from.bits() <= 32 && (from.is_integer() || from == Type::Bool);
                    // An unsigned value is widened with zeros, whatever it is widened to.
                    narrow && (from.is_signed() == ty.is_signed()) && (wide.is_signed() || !from.is_signed())
                }
                Some(Op::Const(bits)) => ty.canonical(*bits) == *bits,
                _ => false,
            };
            if !fits {
                return false;
            }
            any = true;
        }
    }
    any
}

fn rewrite(probe: &mut Probe, map: MapId, field: usize, ty: Type) {
    for mut inst in std::mem::take(&mut probe.code) {
        if let Op::Save { map: saved, values } = &mut inst.op
            && *saved == map
            && let Some((_, id)) = values.get_mut(field)
        {
            let Value { uniform, .. } = probe.values[id.0 as usize];
            let op = match definition(probe, *id) {
                Some(Op::Const(bits)) => Op::Const(*bits),
                // To be folded with the cast that widened it.
                _ => Op::Cast(*id),
            };
            let result = ValueId(probe.values.len() as u32);
            probe.values.push(Value { ty, uniform });
            probe.code.push(Inst { result: Some(result), op, guard: None, span: inst.span });
            *id = result;
        }
        probe.code.push(inst);
    }
}
