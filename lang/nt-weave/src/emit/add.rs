//! Sums in tables: by whom, and how much.
//!
//! ```text
//!     activemask.b32 %nt_r0;                        all lanes that leave here, by a thread probe
//!     and.b32 %nt_r2, %nt_r1, 0x7ffffff;            their 64-bit counters in parts of which 32 fit 32 bits
//!     redux.sync.add.u32 %nt_r3, %nt_r2, %nt_r0;
//!     …
//!     setp.lt.and.u64 %nt_p1, %nt_d6, %nt_d7, %nt_p0;  the lowest of them, and room for its block
//!     @%nt_p1 red.global.add.u64 [%nt_d9], %nt_d8;
//! ```
//!
//! Where all lanes add the same, they all do: ptxas elects one by itself and multiplies. It does not add up 64-bit values
//! that differ, so that is done here where the target has `redux.sync` (sm_80), over exactly the lanes that stand here
//! together; before it, every lane adds its own. No lane waits for another.

use super::effects::Effect;
use super::operand::{Class, Operand};
use super::{Refusal, Span, When};
use crate::UsedTable;
use crate::bounds::Counter;
use nt_ir::layout::CELL;
use nt_ir::program::{Inst, Key, Op, Probe, Program, TableId, Type, Unit, ValueId};

/// The most lanes of a mask.
const LANES: u32 = 32;

/// Sums of 32 bits, and what one in each is worth.
type Sums<'a> = Vec<(Operand<'a>, u64)>;

/// One sum in a table.
#[derive(Clone, Copy)]
pub(super) struct Add<'a> {
    pub(super) probe: usize,
    pub(super) table: TableId,
    /// What each lane adds; `None` for 1.
    pub(super) value: Option<ValueId>,
    /// Where it happens, if not everywhere.
    pub(super) guard: Option<ValueId>,
    /// What all lanes add together, once that is known.
    pub(super) total: Option<Operand<'a>>,
}

/// Does a probe add what differs from lane to lane to a cell that lanes share?
pub(crate) fn adds_up_lanes(program: &Program, probe: &Probe) -> bool {
    probe.code.iter().any(|inst| is_of_lanes(program, probe, inst))
}

/// Is this such a sum?
pub(super) fn is_of_lanes(program: &Program, probe: &Probe, inst: &Inst) -> bool {
    let Op::Aggregate { table, value: Some(value) } = inst.op else { return false };
    let varies = probe.values.get(value.0 as usize).is_some_and(|value| !value.uniform);
    let keys = program.tables.get(table.0 as usize).map_or(&[][..], |table| &table.keys);
    probe.unit == Unit::Thread && varies && !keys.contains(&Key::Unit(Unit::Thread))
}

impl<'a> Span<'a> {
    /// Adds up the lanes' values; gives the predicate of the lane that has to add the totals. The mask is read here,
    /// so that nothing stands between it and the lanes' meeting.
    pub(super) fn add_up(&mut self, effects: &mut [Effect<'a>]) -> Result<Operand<'a>, Refusal> {
        let mut values = Vec::with_capacity(effects.len());
        for effect in &*effects {
            let Effect::Add(Add { probe, value: Some(value), guard, .. }) = *effect else { continue };
            let when = self.when(probe, guard)?;
            let (value, counter, ty) = match self.counter(probe, value)? {
                Some((value, counter)) => (value, Some(counter), Type::U32),
                None => {
                    self.demand(probe, &[value])?;
                    let value = self.value(probe, value)?;
                    (self.register(value, Type::U64), None, Type::U64)
                }
            };
            let zero = Operand::number(ty, 0);
            let value = match when {
                When::Always => value,
                When::Never => self.register(zero, ty),
                When::If(guard) => {
                    let opcode = if counter.is_some() { "selp.b32" } else { "selp.b64" };
                    self.op(Class::of(ty), opcode, &[value, zero, guard])
                }
            };
            values.push((value, counter));
        }
        let mask = self.op(Class::B32, "activemask.b32", &[]);
        let mut sums = Vec::with_capacity(values.len());
        for (value, counter) in values {
            sums.push(match counter {
                Some(counter) => self.sums_of_counters(value, counter, mask),
                None => self.sums_of_lanes(value, mask),
            });
        }
        let below = self.special("%lanemask_lt");
        let lower = self.op(Class::B32, "and.b32", &[below, mask]);
        let first = self.op(Class::Pred, "setp.eq.u32", &[lower, Operand::word(0)]);
        for (effect, sums) in effects.iter_mut().zip(sums) {
            if let Effect::Add(add) = effect {
                add.total = Some(self.total(sums, lower));
            }
        }
        Ok(first)
    }

    /// A value in 32 bits, and what it never exceeds, where that is known: of a state that is kept so and has not changed
    /// since, and of what was widened.
    fn counter(&mut self, p: usize, value: ValueId) -> Result<Option<(Operand<'a>, Counter)>, Refusal> {
        let found = self.code(p).iter().enumerate().find(|(_, inst)| inst.result == Some(value));
        Ok(match found.map(|(at, inst)| (at, &inst.op)) {
            Some((at, &Op::ReadState(state))) => {
                let counter = self.plan.bounds.counter(state).filter(|_| self.is_counter_then(p, at, state));
                counter.map(|counter| (self.counted(state), counter))
            }
            Some((_, &Op::Cast(narrow))) => {
                let most = match self.ty(p, narrow) {
                    Type::U8 => u32::from(u8::MAX),
                    Type::U16 => u32::from(u16::MAX),
                    Type::U32 => u32::MAX,
                    _ => return Ok(None),
                };
                self.demand(p, &[narrow])?;
                let narrow = self.value(p, narrow)?;
                Some((self.register(narrow, Type::U32), Counter { unit: 1, most }))
            }
            _ => None,
        })
    }

    /// Counters of 32 bits summed over the lanes of a mask: at once if 32 of the largest fit, else by halves.
    fn sums_of_counters(&mut self, value: Operand<'a>, counter: Counter, mask: Operand<'a>) -> Sums<'a> {
        const HALF: u32 = 16;
        let unit = u64::from(counter.unit);
        if counter.most.checked_mul(LANES).is_some() {
            return vec![(self.redux(value, mask), unit)];
        }
        let low = self.op(Class::B32, "and.b32", &[value, Operand::word((1 << HALF) - 1)]);
        let high = self.op(Class::B32, "shr.u32", &[value, Operand::word(HALF)]);
        vec![(self.redux(low, mask), unit), (self.redux(high, mask), unit << HALF)]
    }

    /// A value of 64 bits summed over the lanes of a mask, modulo 2^64: in parts of 27, 27 and 10 bits, whose sums over
    /// 32 lanes fit 32 bits.
    fn sums_of_lanes(&mut self, value: Operand<'a>, mask: Operand<'a>) -> Sums<'a> {
        const PART: u32 = 27;
        let cut = Operand::word((1 << PART) - 1);
        let low = self.op(Class::B32, "cvt.u32.u64", &[value]);
        let low = self.op(Class::B32, "and.b32", &[low, cut]);
        let middle = self.op(Class::B64, "shr.u64", &[value, Operand::word(PART)]);
        let middle = self.op(Class::B32, "cvt.u32.u64", &[middle]);
        let middle = self.op(Class::B32, "and.b32", &[middle, cut]);
        let high = self.op(Class::B64, "shr.u64", &[value, Operand::word(2 * PART)]);
        let high = self.op(Class::B32, "cvt.u32.u64", &[high]);
        let parts = [(low, 1), (middle, 1 << PART), (high, 1 << (2 * PART))];
        parts.into_iter().map(|(part, worth)| (self.redux(part, mask), worth)).collect()
    }

    fn redux(&mut self, value: Operand<'a>, mask: Operand<'a>) -> Operand<'a> {
        self.op(Class::B32, "redux.sync.add.u32", &[value, mask])
    }

    /// What the lowest lane adds: the sums by their worth, modulo 2^64.
    ///
    /// `lower` is added too: the mask of the lanes below, 0 in the lane that adds. ptxas knows that the sums are the same in
    /// all lanes; if what is added were, it would elect a lane of its own and multiply, which is 8 to 10 instructions more.
    fn total(&mut self, sums: Sums<'a>, lower: Operand<'a>) -> Operand<'a> {
        let mut total = self.op(Class::B64, "cvt.u64.u32", &[lower]);
        for (sum, worth) in sums {
            total = match u32::try_from(worth) {
                Ok(worth) => self.op(Class::B64, "mad.wide.u32", &[sum, Operand::word(worth), total]),
                Err(_) => {
                    let sum = self.op(Class::B64, "cvt.u64.u32", &[sum]);
                    self.op(Class::B64, "mad.lo.u64", &[sum, Operand::long(worth), total])
                }
            };
        }
        total
    }

    /// How the context counts a table, bytes a unit of it takes, and where in them the cell of a site lies.
    pub(super) fn cell(&self, probe: usize, table: TableId) -> Result<(u32, u32, u32), Refusal> {
        let tables = &self.plan.tables;
        let number = tables.iter().position(|used| used.table == table.0 as usize);
        let body = self.site.bodies.get(probe);
        let cell = body.and_then(|body| body.cells.iter().find(|(known, _)| *known == table));
        let (Some(number), Some(&(_, cell))) = (number, cell) else {
            return Err("its program adds to a table that it does not have".into());
        };
        let stride = tables.get(number).map_or(CELL, UsedTable::stride);
        let number = u32::try_from(self.plan.maps.len() + number).unwrap_or(u32::MAX);
        Ok((number, stride, CELL * cell))
    }

    /// `@%nt_p0 red.global.add.u64 [%nt_d3+8], %nt_d1;`
    pub(super) fn add(
        &mut self,
        add: Add<'a>,
        address: Operand<'a>,
        cell: u32,
        under: &str,
    ) -> Result<(), Refusal> {
        let value = match (add.total, add.value) {
            (Some(total), _) => total,
            (None, None) => Operand::long(1),
            (None, Some(value)) => {
                self.demand(add.probe, &[value])?;
                self.value(add.probe, value)?
            }
        };
        let place = if cell == 0 { format!("[{address}]") } else { format!("[{address}+{cell}]") };
        self.line(format_args!("{under}red.global.add.u64 {place}, {value};"));
        Ok(())
    }
}
