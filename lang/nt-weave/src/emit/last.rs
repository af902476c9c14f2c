//! Which lane adds up for a warp that leaves: one of the last to leave.
//!
//! ```text
//!     activemask.b32 %nt_r0; …                     %nt_p0: the lowest lane of those that leave here
//!     popc.b32 %nt_r4, %nt_r0;
//!     …                                            %nt_r7: lanes of this warp; the last one of a block may have fewer than 32
//!     setp.ne.and.u32 %nt_p1, %nt_r4, %nt_r7, %nt_p0;
//!     setp.lt.and.u64 %nt_p2, %nt_d1, %nt_d2, %nt_p1;                  %nt_d1: index of the warp
//!     mov.b64 %nt_d4, 0;
//!     @%nt_p2 atom.global.add.u64 %nt_d4, [%nt_d3], %nt_d5;            how many have left before
//!     …
//!     setp.eq.and.u32 %nt_p3, %nt_r9, %nt_r7, %nt_p0;                  with these, all
//! ```
//!
//! A group that is the whole warp knows that it is the last. Only groups that leave apart count themselves in memory: each adds
//! its lanes, and the one whose sum is the warp's is the last.

use super::index::Known;
use super::operand::{Class, Operand};
use super::{Refusal, Span};
use crate::UsedTable;
use crate::context::Fill;
use nt_ir::layout::CELL;
use nt_ir::program::Unit;

impl<'a> Span<'a> {
    /// True in one lane of the last to leave of a warp.
    pub(super) fn last(&mut self) -> Result<Operand<'a>, Refusal> {
        if let Some((_, last)) = self.known.iter().find(|(known, _)| *known == Known::Last) {
            return Ok(*last);
        }
        let table = crate::tables::gone(&self.probe.program)
            .and_then(|table| self.plan.tables.iter().position(|used| used.table == table.0 as usize));
        let stride = table.and_then(|table| self.plan.tables.get(table)).map_or(CELL, UsedTable::stride);
        let number = table.and_then(|table| u32::try_from(self.plan.maps.len() + table).ok());
        let number = number.ok_or("its program counts no lanes that leave")?;
        let leads = self.elected(Unit::Warp, None)?.ok_or("it elects no lane of a warp")?;
        let mask = self.mask(None)?;
        let here = self.op(Class::B32, "popc.b32", &[mask]);
        let lanes = self.lanes_of_warp();
        let is_part = self.op(Class::Pred, "setp.ne.and.u32", &[here, lanes, leads]);
        let warp = self.index(Unit::Warp);
        let capacity = self.context_word(Fill::Capacity(number))?;
        let counts = self.op(Class::Pred, "setp.lt.and.u64", &[warp, capacity, is_part]);
        let base = self.context_word(Fill::Base(number))?;
        let address = self.scaled(warp, stride, base);
        let added = self.op(Class::B64, "cvt.u64.u32", &[here]);
        let before = self.op(Class::B64, "mov.b64", &[Operand::long(0)]);
        self.line(format_args!("@{counts} atom.global.add.u64 {before}, [{address}], {added};"));
        let before = self.op(Class::B32, "cvt.u32.u64", &[before]);
        let gone = self.op(Class::B32, "add.u32", &[before, here]);
        let last = self.op(Class::Pred, "setp.eq.and.u32", &[gone, lanes, leads]);
        self.known.push((Known::Last, last));
        Ok(last)
    }
}
