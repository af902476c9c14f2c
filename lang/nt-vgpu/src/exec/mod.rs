//! The instructions, a file a family: how each is decoded, and what it does, side by side.
//!
//! To add one: find the family, add the opcode here and its case there, with its section of the manual and a test whose
//! expected values come from the manual, from IEEE arithmetic or from a GPU.
//!
//! Source: PTX ISA 9.0, section 9.7.

pub(crate) mod asynchronous;
pub(crate) mod atomic;
pub(crate) mod barrier;
pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod logic;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub(crate) mod memory;
pub(crate) mod moves;
pub(crate) mod printf;
pub(crate) mod spaces;
pub(crate) mod warp_ops;

use crate::code::Op;
use crate::decode::{Decoded, Line, Targets, missing};
use crate::operation::{Family, Mbarriers};
use crate::types::Type;

/// The operation that an instruction is, and whose code decoded it.
pub(crate) fn decode(line: &mut Line<'_, '_>, targets: &Targets) -> Decoded<(Family, Op)> {
    if line.base == "bar" && line.flag(".warp") {
        return Ok((Family::Other, warp_ops::decode_barrier(line)?));
    }
    Ok(match line.base {
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max" => {
            match line.first_ty() {
                Some(Type::Float(32 | 64) | Type::SinglePair) => (Family::Float, float::decode(line)?),
                Some(Type::Float(_) | Type::Bfloat | Type::FloatPair | Type::BfloatPair) => {
                    (Family::Float, half::decode(line)?)
                }
                _ => (Family::Integer, integer::decode(line)?),
            }
        }
        base @ ("rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign" | "testp") => {
            let family = match base {
                "copysign" => Family::Float,
                "testp" => Family::Compare,
                _ => Family::Special,
            };
            match line.first_ty() {
                Some(Type::Float(32 | 64)) => (family, float::decode(line)?),
                _ => (family, half::decode(line)?),
            }
        }
        "addc" | "subc" | "madc" | "mul24" | "mad24" | "sad" | "popc" | "clz" | "bfind" | "brev" | "bfe"
        | "bfi" | "bmsk" | "dp4a" | "dp2a" => (Family::Integer, integer::decode(line)?),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "lop3" => {
            (Family::Logic, logic::decode(line)?)
        }
        // Bytes are moved; it stands with the logic because of what its code is like.
        "prmt" => (Family::Move, logic::decode(line)?),
        "setp" | "set" | "selp" | "slct" => (Family::Compare, compare::decode(line)?),
        "cvt" => (Family::Convert, convert::decode(line)?),
        "mov" | "mapa" | "getctarank" => (Family::Move, moves::decode(line)?),
        "cvta" => (Family::Convert, moves::decode(line)?),
        "isspacep" => (Family::Compare, moves::decode(line)?),
        "ld" | "ldu" => (Family::Load, memory::decode_load(line)?),
        "st" => (Family::Store, memory::decode_store(line)?),
        "atom" | "red" => (Family::Atomic, atomic::decode(line)?),
        "bra" => (Family::Branch, control::decode(line, targets)?),
        "brx" => (Family::Table, control::decode(line, targets)?),
        "call" => (Family::Call, control::decode(line, targets)?),
        "ret" | "exit" | "trap" => (Family::Other, control::decode(line, targets)?),
        "activemask" => (Family::Vote, warp_ops::decode_active_mask(line)?),
        "shfl" | "vote" | "match" | "redux" | "elect" => (Family::Other, warp_ops::decode(line)?),
        "bar" | "barrier" => (Family::Other, barrier::decode(line)?),
        "mbarrier" => (Family::Mbarrier(Mbarriers::default()), mbarrier::decode(line)?),
        "cp" => asynchronous::decode(line)?,
        "ldmatrix" | "stmatrix" => (Family::Other, matrix::decode_fragments(line)?),
        "mma" => (Family::Matrix, matrix::decode(line)?),
        // Memory is in order, all at once; registers are not handed out; nothing is fetched ahead.
        "fence" | "membar" => (Family::Fence, Op::Nothing),
        "griddepcontrol" => (if line.flag(".wait") { Family::Wait } else { Family::Other }, Op::Nothing),
        "setmaxnreg" | "pmevent" => (Family::Other, Op::Nothing),
        "prefetch" | "prefetchu" | "applypriority" => (Family::Prefetch, Op::Nothing),
        "nanosleep" => (Family::Pause, Op::Pause),
        other => return missing(format!("the instruction `{other}`")),
    })
}
