//! Control flow, the stack and the rest: PTX ISA 9.0, sections 9.7.12, 9.7.17 and 9.7.19.
//!
//! The operands of a `call` are told apart by their shapes, when the instruction is described.

use super::class::Class::{Branch, Call, Exit, Other, Sleep};
use super::facts::Targets;
use super::row::Role::{In, Label, Out as Written};
use super::row::{Row, arch, row};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("bra", Branch, "9.7.12.3", &[Label]).leaves(),
    row("brx.idx", Branch, "9.7.12.4", &[In, Label]).since(6, 0).on(30).leaves(),
    row("call", Call, "9.7.12.5", &[]),
    row("ret", Exit, "9.7.12.6", &[]).leaves(),
    row("exit", Exit, "9.7.12.7", &[]).leaves(),

    row("stacksave", Other, "9.7.17.1", &[Written]).since(7, 3).on(52),
    row("stackrestore", Other, "9.7.17.2", &[In]).since(7, 3).on(52),
    row("alloca", Other, "9.7.17.3", &[Written, In, In]).since(7, 3).on(52),

    row("brkpt", Other, "9.7.19.1", &[]).on(11),
    row("nanosleep", Sleep, "9.7.19.2", &[In]).since(6, 3).on(70),
    row("pmevent", Other, "9.7.19.3", &[In]).since(1, 4),
    // What follows a trap is never run, yet a trap is no exit: the kernel is aborted.
    row("trap", Other, "9.7.19.4", &[]).leaves(),
    row("setmaxnreg", Other, "9.7.19.5", &[In]).since(8, 0).only_on(SETMAXNREG),
];

const SETMAXNREG: Targets =
    Targets::Listed(&[arch(90, 'a'), arch(100, 'f'), arch(101, 'f'), arch(110, 'f'), arch(120, 'f')]);
