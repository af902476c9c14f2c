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
use crate::types::Type;

/// The operation that an instruction is.
pub(crate) fn decode(line: &mut Line<'_, '_>, targets: &Targets) -> Decoded<Op> {
    if line.base == "bar" && line.flag(".warp") {
        return warp_ops::decode_barrier(line);
    }
    match line.base {
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max" => match line
            .first_ty()
        {
            Some(Type::Float(32 | 64) | Type::SinglePair) => float::decode(line),
            Some(Type::Float(_) | Type::Bfloat | Type::FloatPair | Type::BfloatPair) => half::decode(line),
            _ => integer::decode(line),
        },
        "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign" | "testp" => {
            match line.first_ty() {
                Some(Type::Float(32 | 64)) => float::decode(line),
                _ => half::decode(line),
            }
        }
        "addc" | "subc" | "madc" | "mul24" | "mad24" | "sad" | "popc" | "clz" | "bfind" | "brev" | "bfe"
        | "bfi" | "bmsk" | "dp4a" | "dp2a" => integer::decode(line),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "lop3" | "prmt" => {
            logic::decode(line)
        }
        "setp" | "set" | "selp" | "slct" => compare::decode(line),
        "cvt" => convert::decode(line),
        "mov" | "cvta" | "isspacep" | "mapa" | "getctarank" => moves::decode(line),
        "ld" | "ldu" => memory::decode_load(line),
        "st" => memory::decode_store(line),
        "atom" | "red" => atomic::decode(line),
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" => control::decode(line, targets),
        "activemask" => warp_ops::decode_active_mask(line),
        "shfl" | "vote" | "match" | "redux" | "elect" => warp_ops::decode(line),
        "bar" | "barrier" => barrier::decode(line),
        "mbarrier" => mbarrier::decode(line),
        "cp" => asynchronous::decode(line),
        "ldmatrix" | "stmatrix" => matrix::decode_fragments(line),
        "mma" => matrix::decode(line),
        // Memory is in order, all at once; registers are not handed out; nothing is fetched ahead.
        "fence" | "membar" | "griddepcontrol" | "setmaxnreg" | "prefetch" | "prefetchu" | "pmevent"
        | "applypriority" => Ok(Op::Nothing),
        "nanosleep" => Ok(Op::Pause),
        other => missing(format!("the instruction `{other}`")),
    }
}
