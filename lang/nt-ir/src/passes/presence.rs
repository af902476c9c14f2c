//! Finds a field with a bit to spare, in which a record tells that it was written.
//!
//! ```text
//! %0: u32 uniform = cu
//! save m(at = %1, cu = %0)      bit 31 of `cu`: no machine has 2^31 compute units
//! ```
//!
//! Every save of the field must leave its top bit clear. Without such a field a record carries a byte more.

use crate::program::{BinaryOp, Builtin, MapId, Op, Probe, Program, Type, ValueId};

/// How far a chain of operations is followed.
const DEPTH: u32 = 8;

/// The first field of `map` whose top bit no value that is saved can reach.
pub(super) fn spare_top_bit(program: &Program, map: MapId) -> Option<u32> {
    let declared = program.maps.get(map.0 as usize)?;
    (0..declared.fields.len() as u32).find(|&field| {
        let ty = declared.fields[field as usize].ty;
        // Readers take the bit out before they look at the sign, but there is no sign to look at then.
        let plain = ty.is_unsigned() || ty == Type::Bool;
        plain
            && program.probes.iter().all(|probe| {
                probe.code.iter().all(|inst| match &inst.op {
                    Op::Save { map: saved, values } if *saved == map => {
                        values.get(field as usize).is_some_and(|(_, value)| is_clear(probe, *value, DEPTH))
                    }
                    _ => true,
                })
            })
    })
}

/// Is the top bit of the value, in memory, always clear?
fn is_clear(probe: &Probe, id: ValueId, depth: u32) -> bool {
    let ty = probe.values[id.0 as usize].ty;
    // A bool is a byte of 0 or 1.
    if ty == Type::Bool {
        return true;
    }
    let Some(inst) = probe.code.iter().find(|inst| inst.result == Some(id)) else { return false };
    if depth == 0 || !ty.is_unsigned() {
        return false;
    }
    let clear = |id: ValueId| is_clear(probe, id, depth - 1);
    let constant = |id: ValueId| {
        probe.code.iter().find(|inst| inst.result == Some(id)).and_then(|inst| match inst.op {
            Op::Const(bits) => Some(bits),
            _ => None,
        })
    };
    match inst.op {
        Op::Const(bits) => bits >> (ty.bits() - 1) == 0,
        // Of these the machine has far less than 2^31; a grid's x axis is at most 2^31 - 1 blocks long.
        Op::Builtin(
            Builtin::Cu
            | Builtin::Lane
            | Builtin::WarpSize
            | Builtin::WarpInBlock
            | Builtin::Tid(_)
            | Builtin::Ntid(_)
            | Builtin::Ctaid(_)
            | Builtin::Nctaid(_)
            | Builtin::ClusterRank,
        ) => true,
        Op::Cast(from) => {
            let from_ty = probe.values[from.0 as usize].ty;
            let widens = from_ty.bits() < ty.bits() && (from_ty.is_unsigned() || from_ty == Type::Bool);
            widens || (from_ty.bits() == ty.bits() && clear(from))
        }
        Op::Binary(BinaryOp::Shr, _, amount) => constant(amount).is_some_and(|amount| amount > 0),
        Op::Binary(BinaryOp::And | BinaryOp::Min, a, b) => clear(a) || clear(b),
        Op::Binary(BinaryOp::Or | BinaryOp::Xor | BinaryOp::Max, a, b) | Op::Select(_, a, b) => {
            clear(a) && clear(b)
        }
        // x / 0 is all ones, x % 0 is x: a known divisor that is not 0 tells more.
        Op::Binary(BinaryOp::Div, a, b) => clear(a) && constant(b).is_some_and(|divisor| divisor > 0),
        Op::Binary(BinaryOp::Rem, a, _) => clear(a),
        _ => false,
    }
}
