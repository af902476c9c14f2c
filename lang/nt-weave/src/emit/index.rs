//! Who am I: special registers, the linear indices of thread, warp and block, and who is elected to save.
//!
//! Indices are 64 bits: `x + nx·(y + ny·z)` for blocks, and a warp's is its block's times ⌈threads/32⌉ plus its own in
//! the block. Only the last step of each is wide: the sums before it fit 32 bits, since `nctaid.y` and `nctaid.z` are
//! at most 65,535 and a block has at most 1,024 threads (CUDA C++ programming guide, compute capabilities). `%warpid`
//! is no index: the hardware may change it.
//!
//! The order of the reads was tried: thread, block, then size of the block takes the fewest registers.

use super::operand::{Class, Operand};
use super::{Refusal, Span};
use crate::context::Fill;
use crate::sites::Kind;
use nt_ir::launch::Conditions;
use nt_ir::program::{Builtin, Type, Unit, ValueId};

/// What a span may have in a register already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    ThreadInBlock,
    ThreadsInBlock,
    WarpInBlock,
    WarpsInBlock,
    Index(Unit),
    /// The number of the multiprocessor, 64 bits.
    Sm,
    /// The address of the instruction at the site.
    Address,
    /// The word of the context block at an offset.
    Context(u32),
    /// The mask of active lanes, of probe `p` under its predicate.
    Mask(Option<(usize, ValueId)>),
    /// Those of them that are lower than this lane, where events asked for it.
    Lower(Option<(usize, ValueId)>),
    /// Does this lane save?
    Elected(Unit, Option<(usize, ValueId)>),
    /// Does it, of the last lanes of its warp to leave?
    Last,
    /// Does it, and is there room in the map? Of one where every lane that is elected saves.
    Room(u32),
    /// The address of its unit's record in a map.
    Record(u32),
}

/// Every special register that a span may read, so that a kernel that shadows one of them is refused.
pub(crate) const SPECIAL_REGISTERS: [&str; 13] = [
    "%clock",
    "%clock64",
    "%globaltimer",
    "%smid",
    "%laneid",
    "%lanemask_lt",
    "%tid",
    "%ntid",
    "%ctaid",
    "%nctaid",
    "%clusterid",
    "%nclusterid",
    "%cluster_ctarank",
];

const TID: [&str; 3] = ["%tid.x", "%tid.y", "%tid.z"];
const NTID: [&str; 3] = ["%ntid.x", "%ntid.y", "%ntid.z"];
const CTAID: [&str; 3] = ["%ctaid.x", "%ctaid.y", "%ctaid.z"];
const NCTAID: [&str; 3] = ["%nctaid.x", "%nctaid.y", "%nctaid.z"];
const CLUSTERID: [&str; 3] = ["%clusterid.x", "%clusterid.y", "%clusterid.z"];
const NCLUSTERID: [&str; 3] = ["%nclusterid.x", "%nclusterid.y", "%nclusterid.z"];

impl<'a> Span<'a> {
    /// A value that machine or launch gives.
    pub(super) fn builtin(&mut self, builtin: Builtin) -> Result<Operand<'a>, Refusal> {
        let axis = |axis: u8, names: [&'static str; 3]| {
            names.get(usize::from(axis)).copied().ok_or_else(|| format!("its program names axis {axis}"))
        };
        Ok(match builtin {
            Builtin::Clock | Builtin::ClockLow | Builtin::Time | Builtin::Active => {
                return Err("its program reads a clock too late".into());
            }
            Builtin::Cu => self.special("%smid"),
            Builtin::Lane => self.special("%laneid"),
            Builtin::WarpSize => Operand::word(32),
            Builtin::Thread => self.index(Unit::Thread),
            Builtin::Block => self.index(Unit::Block),
            Builtin::Warp => self.index(Unit::Warp),
            Builtin::WarpInBlock => self.warp_in_block(),
            Builtin::Tid(n) => self.special(axis(n, TID)?),
            Builtin::Ntid(n) => self.special(axis(n, NTID)?),
            Builtin::Ctaid(n) => self.special(axis(n, CTAID)?),
            Builtin::Nctaid(n) => self.special(axis(n, NCTAID)?),
            Builtin::ClusterId => self.cluster(),
            Builtin::ClusterRank => self.special("%cluster_ctarank"),
            Builtin::Launch => self.context_word(Fill::Launch)?,
        })
    }

    /// The mask of the lanes that run this probe.
    pub(super) fn active(&mut self, p: usize, value: ValueId) -> Result<Operand<'a>, Refusal> {
        let predicate = self.predicate_of_active(p, value);
        let mask = self.mask(predicate)?;
        Ok(self.op(Class::B64, "cvt.u64.u32", &[mask]))
    }

    /// The predicate whose lanes `active` counts; none where the predicate itself is made of that value.
    fn predicate_of_active(&self, p: usize, value: ValueId) -> Option<(usize, ValueId)> {
        let predicate = self.probes.get(p)?.predicate?;
        let inside = super::live::needed(self.code(p), &[predicate], &[]);
        (inside.get(value.0 as usize) != Some(&true)).then_some((p, predicate))
    }

    /// A special register, read anew for each use: ptxas shares what is worth sharing, and takes more registers for
    /// texts that share first (block_sched on sm_90: +1.55 instead of +1.36).
    pub(super) fn special(&mut self, name: &str) -> Operand<'a> {
        let value = self.temp(Class::B32);
        self.line(format_args!("mov.u32 {value}, {name};"));
        value
    }

    /// What `make` makes, unless it is there.
    pub(super) fn once(&mut self, what: Known, make: impl FnOnce(&mut Self) -> Operand<'a>) -> Operand<'a> {
        if let Some((_, operand)) = self.known.iter().find(|(known, _)| *known == what) {
            return *operand;
        }
        let operand = make(self);
        self.known.push((what, operand));
        operand
    }

    /// A word of the context block. It lies in the constant bank, so ptxas makes an operand of it and no register.
    pub(super) fn context_word(&mut self, fill: Fill) -> Result<Operand<'a>, Refusal> {
        let offset = self.plan.offset(fill).ok_or("its context has no such word")?;
        Ok(self.once(Known::Context(offset), |span| {
            let (value, prefix) = (span.temp(Class::B64), span.plan.prefix);
            span.line(format_args!("ld.param.u64 {value}, [{prefix}ctx+{offset}];"));
            value
        }))
    }

    /// The linear index of a unit in the launch, u64.
    pub(super) fn index(&mut self, unit: Unit) -> Operand<'a> {
        self.once(Known::Index(unit), |span| match unit {
            Unit::Block => span.block(),
            Unit::Warp => {
                let warp = span.warp_in_block();
                let block = span.index(Unit::Block);
                let warps = span.warps_in_block();
                span.linear(block, warps, warp)
            }
            Unit::Thread => {
                let thread = span.thread_in_block();
                let block = span.index(Unit::Block);
                let threads = span.threads_in_block();
                span.linear(block, threads, thread)
            }
        })
    }

    /// The index of whose cells a table has: a unit's, or without one the multiprocessor's.
    pub(super) fn index_of(&mut self, unit: Option<Unit>) -> Operand<'a> {
        match unit {
            Some(unit) => self.index(unit),
            None => self.once(Known::Sm, |span| {
                let sm = span.special("%smid");
                span.op(Class::B64, "cvt.u64.u32", &[sm])
            }),
        }
    }

    /// `block·n + i` in 64 bits.
    fn linear(&mut self, block: Operand<'a>, n: Operand<'a>, i: Operand<'a>) -> Operand<'a> {
        let i = self.op(Class::B64, "cvt.u64.u32", &[i]);
        let n = match n {
            Operand::Number { bits, .. } => Operand::long(bits),
            n => self.op(Class::B64, "cvt.u64.u32", &[n]),
        };
        self.op(Class::B64, "mad.lo.u64", &[block, n, i])
    }

    fn block(&mut self) -> Operand<'a> {
        self.grid(CTAID, NCTAID)
    }

    fn cluster(&mut self) -> Operand<'a> {
        let id = self.grid(CLUSTERID, NCLUSTERID);
        self.op(Class::B32, "cvt.u32.u64", &[id])
    }

    /// `x + nx·(y + ny·z)`, the last step wide; `x` where there is one row.
    fn grid(&mut self, id: [&'static str; 3], n: [&'static str; 3]) -> Operand<'a> {
        let [x, y, z] = id;
        let [nx, ny, _] = n;
        if self.plan.relies_on(Conditions::FLAT_GRID) {
            let x = self.special(x);
            return self.op(Class::B64, "cvt.u64.u32", &[x]);
        }
        let (z, ny, y) = (self.special(z), self.special(ny), self.special(y));
        let rows = self.op(Class::B32, "mad.lo.u32", &[z, ny, y]);
        let (nx, x) = (self.special(nx), self.special(x));
        let x = self.op(Class::B64, "cvt.u64.u32", &[x]);
        self.op(Class::B64, "mad.wide.u32", &[rows, nx, x])
    }

    /// Has each block one row of threads? Where `.reqntid` says so, this needs no launch to be relied on.
    fn is_row(&self) -> bool {
        match self.plan.block {
            Some([_, y, z]) => y == 1 && z == 1,
            None => self.plan.relies_on(Conditions::FLAT_BLOCK),
        }
    }

    /// `%tid.x + ntid.x·(tid.y + ntid.y·tid.z)`, shorter where the block's shape is known.
    fn thread_in_block(&mut self) -> Operand<'a> {
        self.once(Known::ThreadInBlock, |span| {
            let [x, y, z] = TID;
            let [nx, ny, _] = NTID;
            if span.is_row() {
                return span.special(x);
            }
            let (flat, size) = match span.plan.block {
                Some([nx, ny, nz]) => (nz == 1, Some((nx, ny))),
                None => (false, None),
            };
            let rows = if flat {
                span.special(y)
            } else {
                let z = span.special(z);
                let ny = size.map_or_else(|| span.special(ny), |(_, ny)| Operand::word(ny));
                let y = span.special(y);
                span.op(Class::B32, "mad.lo.u32", &[z, ny, y])
            };
            let nx = size.map_or_else(|| span.special(nx), |(nx, _)| Operand::word(nx));
            let x = span.special(x);
            span.op(Class::B32, "mad.lo.u32", &[rows, nx, x])
        })
    }

    fn warp_in_block(&mut self) -> Operand<'a> {
        self.once(Known::WarpInBlock, |span| {
            let thread = span.thread_in_block();
            span.op(Class::B32, "shr.u32", &[thread, Operand::word(5)])
        })
    }

    fn threads_in_block(&mut self) -> Operand<'a> {
        self.once(Known::ThreadsInBlock, |span| {
            if let Some([x, y, z]) = span.plan.block {
                // Each is at most 1,024, so the product fits.
                return Operand::word(x * y * z);
            }
            let [x, y, z] = NTID;
            if span.is_row() {
                return span.special(x);
            }
            let (x, y) = (span.special(x), span.special(y));
            let area = span.op(Class::B32, "mul.lo.u32", &[x, y]);
            let z = span.special(z);
            span.op(Class::B32, "mul.lo.u32", &[area, z])
        })
    }

    /// How many lanes this lane's warp has: the last of a block may have fewer than 32.
    pub(super) fn lanes_of_warp(&mut self) -> Operand<'a> {
        let threads = self.threads_in_block();
        let threads = self.register(threads, Type::U32);
        let wid = self.warp_in_block();
        let first = self.op(Class::B32, "shl.b32", &[wid, Operand::word(5)]);
        let rest = self.op(Class::B32, "sub.u32", &[threads, first]);
        self.op(Class::B32, "min.u32", &[rest, Operand::word(32)])
    }

    /// ⌈threads / 32⌉, rounded up here as on the host and in readers.
    fn warps_in_block(&mut self) -> Operand<'a> {
        self.once(Known::WarpsInBlock, |span| {
            if let Some([x, y, z]) = span.plan.block {
                return Operand::word((x * y * z).div_ceil(32));
            }
            let [x, y, z] = NTID;
            let up = if span.is_row() {
                let x = span.special(x);
                span.op(Class::B32, "add.u32", &[x, Operand::word(31)])
            } else {
                let (x, y) = (span.special(x), span.special(y));
                let area = span.op(Class::B32, "mul.lo.u32", &[x, y]);
                let z = span.special(z);
                span.op(Class::B32, "mad.lo.u32", &[area, z, Operand::word(31)])
            };
            span.op(Class::B32, "shr.u32", &[up, Operand::word(5)])
        })
    }

    /// The lanes here, or those of them in which the predicate holds. No instruction of it waits for another lane.
    pub(super) fn mask(&mut self, predicate: Option<(usize, ValueId)>) -> Result<Operand<'a>, Refusal> {
        let Some((p, value)) = predicate else {
            return Ok(self.once(Known::Mask(None), |span| span.op(Class::B32, "activemask.b32", &[])));
        };
        self.demand(p, &[value])?;
        let predicate = self.value(p, value)?;
        let predicate = self.register(predicate, Type::Bool);
        Ok(self.once(Known::Mask(Some((p, value))), |span| {
            // Lanes outside see no one.
            let mask = span.temp(Class::B32);
            span.line(format_args!("mov.b32 {mask}, 0;"));
            span.line(format_args!("@{predicate} activemask.b32 {mask};"));
            mask
        }))
    }

    /// True in the lanes that save for their unit: all for threads (no register), the lowest active one of a warp,
    /// thread 0 of a block.
    pub(super) fn elected(
        &mut self,
        unit: Unit,
        predicate: Option<(usize, ValueId)>,
    ) -> Result<Option<Operand<'a>>, Refusal> {
        let what = Known::Elected(unit, predicate);
        if let Some((_, operand)) = self.known.iter().find(|(known, _)| *known == what) {
            return Ok(Some(*operand));
        }
        let elected = match unit {
            Unit::Thread => return Ok(None),
            // All lanes of the warp are here together, and lane 0 is among them.
            Unit::Warp if self.site.found.kind == Kind::Entry && predicate.is_none() => {
                let lane = self.special("%laneid");
                self.op(Class::Pred, "setp.eq.u32", &[lane, Operand::word(0)])
            }
            Unit::Warp => {
                let mask = self.mask(predicate)?;
                let below = self.special("%lanemask_lt");
                let lower = self.op(Class::B32, "and.b32", &[below, mask]);
                let lowest = self.op(Class::Pred, "setp.eq.u32", &[lower, Operand::word(0)]);
                match predicate {
                    None => lowest,
                    Some((p, value)) => {
                        let predicate = self.value(p, value)?;
                        let predicate = self.register(predicate, Type::Bool);
                        self.op(Class::Pred, "and.pred", &[lowest, predicate])
                    }
                }
            }
            Unit::Block if self.site.found.kind == Kind::Entry => {
                let [x, y, z] = TID;
                let any = if self.is_row() {
                    self.special(x)
                } else {
                    let (x, y, z) = (self.special(x), self.special(y), self.special(z));
                    let any = self.op(Class::B32, "or.b32", &[x, y]);
                    self.op(Class::B32, "or.b32", &[any, z])
                };
                self.op(Class::Pred, "setp.eq.u32", &[any, Operand::word(0)])
            }
            Unit::Block => {
                return Err("a `block` probe at `kernel:exit` must know the last thread to leave, \
                            which is not supported yet; use `warp kernel:exit`"
                    .into());
            }
        };
        self.known.push((what, elected));
        Ok(Some(elected))
    }
}
