//! The text form of the IR, printed and parsed: what `--emit=ir` shows, `.ntp` files store and the tests of passes read.
//!
//! ```text
//! program "block_sched"
//! limit launch_cycles 4294967296
//! config stream 16777216
//! map accesses: stream<warp> { site: u32 told, at: u32, addr: lanes<ptr> }
//! map last: array<thread>[8] wrap { at: u32 }
//! map block_sched: array<warp> { end: u64, elapsed: u32, cu: u32 } !12:72
//!   show { start: u64 = end - elapsed, elapsed: u64 = elapsed, cu: u32 = cu }
//! table @bytes: sum u64 [block, line]
//! state start: u32 = 0 !80:105
//! probe warp kernel:exit where %1 !120:136 {
//!   %0: u32 = lane
//!   %1: bool = lt %0, %2
//!   save block_sched(end = %3, elapsed = %4, cu = %5) if %1 !140:180
//! }
//! probe thread inst:load|store.global.v4:reach, ptx:"ld.global.nc*" {
//!   %0: u32 uniform = operand bytes
//!   %1: bool uniform = match op "*.f32"
//!   sum @bytes(%0) if %1
//! }
//! ```
//!
//! `show` is left out where each column is the field of its name and type; `where %1` is the predicate; `!a:b` is the
//! place in the program's source, printed by [`print_with_spans`] alone. `print(parse(x)) == x` for every `x` that was
//! printed, and `parse(print_with_spans(p)) == p` for every program that the verifier accepts.

mod lex;
mod parse;
mod parse_maps;
mod parse_sites;
mod print;

pub use parse::parse;
pub use print::{print, print_with_spans};

#[cfg(test)]
mod tests;
