//! The instruction at the site: its address, its size, its values, and where its address leads.
//!
//! ```text
//!     add.s64 %nt_d0, %rd4, 16;              ld.f32 %f1, [%rd4+16]
//!     isspacep.global %nt_p0, %nt_d0;        does it go to global memory?
//!     @%nt_p0 add.u64 %nt_s_sync, %nt_s_sync, 4;
//! ```
//!
//! An address is generic, as a pointer of the program is: what the text has in the window of a space is converted
//! (`cvta`). Global addresses are the same either way. PTX ISA 9.0, 9.7.9 `isspacep` and `cvta`.
//!
//! For all lanes that get to a guarded instruction (`reach`), what the registers of the program hold is had under that
//! guard, and is 0 elsewhere: there they may never have been assigned.
//!
//! Behind the instruction, what it overwrote is had from registers in which a span before it saved that:
//!
//! ```text
//!     .reg .b64 %nt_v7_0; { mov.b64 %nt_v7_0, %rd1; }      before `ld.global.u64 %rd1, [%rd1+8];`
//!     add.s64 %nt_d0, %nt_v7_0, 8;                         behind it: `addr`
//!     st.global.b64 [%nt_d4], %rd1;                        `out`
//! ```

use super::index::Known;
use super::operand::{Class, Operand};
use super::{Refusal, Span};
use crate::bodies::Asked;
use crate::instructions::question;
use crate::operands::{Element, Size, Source};
use nt_ir::close::SiteType;
use nt_ir::program::{self, Inst, Op, Type};
use nt_ptx::opcode::Space;
use std::fmt::Write;

impl<'a> Span<'a> {
    /// Finds out, for each probe that asks, whether the instruction is one that it means: whether its guard holds, and
    /// its address leads where the probe wants it.
    pub(super) fn find_asked(&mut self) -> Result<(), Refusal> {
        let site = self.site;
        let mut known: Vec<(&Asked, Operand<'a>)> = Vec::new();
        for (p, body) in site.bodies.iter().enumerate() {
            let Some((value, asked)) = &body.asked else { continue };
            let test = match known.iter().find(|(other, _)| *other == asked) {
                Some((_, test)) => *test,
                None => {
                    let test = self.is_meant(asked)?;
                    known.push((asked, test));
                    test
                }
            };
            self.set(p, *value, test);
        }
        Ok(())
    }

    fn is_meant(&mut self, asked: &Asked) -> Result<Operand<'a>, Refusal> {
        let guard = if asked.guard { Some(self.guard_of_site()?) } else { None };
        let inside = if asked.within.is_empty() { None } else { Some(self.leads_into(&asked.within)?) };
        match (guard, inside) {
            (Some(guard), Some(inside)) => Ok(self.op(Class::Pred, "and.pred", &[guard, inside])),
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) => Err("its program asks for nothing".into()),
        }
    }

    fn leads_into(&mut self, spaces: &[Space]) -> Result<Operand<'a>, Refusal> {
        let address = self.address()?;
        let mut any: Option<Operand<'a>> = None;
        for space in spaces {
            let mut one = self.op(Class::Pred, question(*space), &[address]);
            if *space == Space::Cluster {
                // The cluster's window holds the block's own memory too.
                let own = self.op(Class::Pred, question(Space::Shared), &[address]);
                let other = self.op(Class::Pred, "not.pred", &[own]);
                one = self.op(Class::Pred, "and.pred", &[one, other]);
            }
            any = Some(match any {
                None => one,
                Some(any) => self.op(Class::Pred, "or.pred", &[any, one]),
            });
        }
        any.ok_or_else(|| "its program asks for no space".into())
    }

    /// The address of the instruction, displacement included.
    pub(super) fn address(&mut self) -> Result<Operand<'a>, Refusal> {
        let site = self.site;
        let Some(address) = &site.found.access.address else {
            return Err("its program asks for an address where there is none".into());
        };
        Ok(self.once(Known::Address, |span| {
            let base = match address.bits {
                Some(32) => span.found(&address.base, Class::B32),
                Some(_) => span.found(&address.base, Class::B64),
                None => Operand::Program { name: &address.base },
            };
            let pin = span.plan.pins.number(&address.base).filter(|_| address.is_of_module);
            let mut value = match (address.bits, pin) {
                (Some(32), _) => span.op(Class::B64, "cvt.u64.u32", &[base]),
                (Some(_), _) => base,
                (None, Some(pin)) => span.pinned(pin),
                (None, None) => span.op(Class::B64, "mov.u64", &[base]),
            };
            if address.displacement != 0 {
                let displacement = Operand::number(Type::S64, address.displacement as u64);
                value = span.op(Class::B64, "add.s64", &[value, displacement]);
            }
            let window = match address.space {
                Space::Shared => Some("cvta.shared.u64"),
                Space::Cluster => Some("cvta.shared::cluster.u64"),
                Space::Local => Some("cvta.local.u64"),
                Space::Const => Some("cvta.const.u64"),
                Space::Global | Space::Generic | Space::Param | Space::Tensor => None,
            };
            if let Some(window) = window {
                value = span.op(Class::B64, window, &[value]);
            }
            span.where_it_runs(value, Class::B64)
        }))
    }

    /// The address of a variable that the original has.
    fn pinned(&mut self, pin: u32) -> Operand<'a> {
        let (value, prefix) = (self.temp(Class::B64), self.plan.prefix);
        self.line(format_args!("ld.const.b64 {value}, [{prefix}pin+{}];", 8 * pin));
        value
    }

    /// The guard of the instruction, before it.
    pub(super) fn guard_of_site(&mut self) -> Result<Operand<'a>, Refusal> {
        let site = self.site;
        let Some(guard) = &site.found.guard else {
            return Err("its program asks for a guard where there is none".into());
        };
        let register = self.before(&guard.register);
        Ok(if guard.negated { self.op(Class::Pred, "not.pred", &[register]) } else { register })
    }

    /// How many bytes the instruction moves, where its opcode does not say it.
    pub(super) fn size(&mut self) -> Result<Operand<'a>, Refusal> {
        let site = self.site;
        Ok(match &site.found.access.size {
            Some(Size::Known(size)) => Operand::word(*size),
            Some(Size::Register(name)) => self.found(name, Class::B32),
            Some(Size::Unless { predicate, negated, size }) => {
                let (ignored, taken) = (Operand::word(0), Operand::word(*size));
                let (yes, no) = if *negated { (taken, ignored) } else { (ignored, taken) };
                let predicate = self.found(predicate, Class::Pred);
                let size = self.op(Class::B32, "selp.b32", &[yes, no, predicate]);
                self.where_it_runs(size, Class::B32)
            }
            None => return Err("its program asks for a size where there is none".into()),
        })
    }

    /// Does the branch go, in this lane?
    pub(super) fn taken(&mut self) -> Result<Operand<'a>, Refusal> {
        match &self.site.found.guard {
            Some(_) => self.guard_of_site(),
            None => Ok(Operand::number(Type::Bool, 1)),
        }
    }

    /// Is the wait over? Those that come back only then do not say.
    pub(super) fn done(&self) -> Operand<'a> {
        match &self.site.found.access.done {
            Some(name) => Operand::Program { name },
            None => Operand::number(Type::Bool, 1),
        }
    }

    /// The address of a copy's side in shared memory.
    pub(super) fn shared_address(&mut self) -> Result<Operand<'a>, Refusal> {
        let Some(address) = &self.site.found.access.shared else {
            return Err("its program asks for an address in shared memory where there is none".into());
        };
        let base = match address.bits {
            Some(32) => self.found(&address.base, Class::B32),
            Some(_) => {
                let base = self.found(&address.base, Class::B64);
                self.op(Class::B32, "cvt.u32.u64", &[base])
            }
            None => self.op(Class::B32, "mov.u32", &[Operand::Program { name: &address.base }]),
        };
        let value = match address.displacement {
            0 => base,
            displacement => {
                let displacement = Operand::number(Type::S32, displacement as u64);
                self.op(Class::B32, "add.s32", &[base, displacement])
            }
        };
        Ok(self.where_it_runs(value, Class::B32))
    }

    /// An element of what the instruction gives.
    pub(super) fn given(&mut self, index: u8, ty: Type) -> Result<Operand<'a>, Refusal> {
        let list = self.site.found.access.out.as_deref();
        match list.and_then(|list| list.get(usize::from(index))) {
            Some(element) => self.element(element, ty, false),
            None => Err("its program asks for a result where there is none".into()),
        }
    }

    /// An element of what it takes, as it was before.
    pub(super) fn taken_in(&mut self, number: u8, index: u8, ty: Type) -> Result<Operand<'a>, Refusal> {
        let place = usize::from(number).checked_sub(1);
        let list = place.and_then(|place| self.site.found.access.inputs.get(place)?.as_deref());
        match list.and_then(|list| list.get(usize::from(index))) {
            Some(element) => self.element(element, ty, true),
            None => Err("its program asks for a source where there is none".into()),
        }
    }

    /// A value of the program's in a register that our instructions take: of bits, and narrow ones extended to 32.
    fn element(&mut self, element: &'a Element, ty: Type, before: bool) -> Result<Operand<'a>, Refusal> {
        let (name, bits, is_plain) = match &element.source {
            Source::Number(bits) => return Ok(Operand::number(ty, *bits)),
            Source::Register { name, bits, is_plain } => (name, *bits, *is_plain),
        };
        let class = match bits {
            1 => Class::Pred,
            16 => Class::B16,
            32 => Class::B32,
            _ => Class::B64,
        };
        let mut value = if before { self.found(name, class) } else { Operand::Program { name } };
        // What is copied has lost its type.
        let is_plain = is_plain || !matches!(value, Operand::Program { .. });
        if !is_plain {
            value = self.op(class, &format!("mov.{}", class.move_suffix()), &[value]);
        }
        match (class, Class::of(ty)) {
            (Class::B16, Class::B32) => {
                let opcode = if ty.is_signed() { "cvt.s32.s16" } else { "cvt.u32.u16" };
                let wide = self.op(Class::B32, opcode, &[value]);
                Ok(if ty.bits() < 16 { self.cut(ty, wide) } else { wide })
            }
            (Class::B64, Class::B32) => {
                let low = self.op(Class::B32, "cvt.u32.u64", &[value]);
                Ok(self.cut(ty, low))
            }
            (Class::B32, Class::B32) => Ok(self.cut(ty, value)),
            (one, other) if one == other => Ok(value),
            _ => Err("its program asks for more bits than a register has".into()),
        }
    }

    /// Loads what the store at the site overwrites, if a probe asks for it, by the store's own address, before any branch
    /// but that of its guard.
    pub(super) fn load_old(&mut self) {
        let asks = |inst: &Inst| matches!(inst.op, Op::Operand(program::Operand::Old(_)));
        let site = self.site;
        let Some(old) = &site.found.access.old else { return };
        if !self.probes.iter().flat_map(|probe| &probe.code).any(asks) {
            return;
        }
        let (bits, signed) = match old.ty {
            SiteType::Is(ty) => (ty.bits(), ty.is_signed()),
            SiteType::F16 | SiteType::Bf16 => (16, false),
        };
        let class = match bits {
            16 => Class::B16,
            64 => Class::B64,
            _ => Class::B32,
        };
        let loaded: Vec<Operand<'a>> = (0..old.count).map(|_| self.temp(class)).collect();
        let list: Vec<String> = loaded.iter().map(Operand::to_string).collect();
        let (vector, list) = match old.count {
            1 => (String::new(), list.concat()),
            count => (format!(".v{count}"), format!("{{{}}}", list.join(", "))),
        };
        let letter = if signed { 's' } else { 'u' };
        let (space, address) = (old.space, &old.address);
        let pin = self.plan.pins.number(&address.base).filter(|_| address.is_of_module);
        let base = match pin {
            Some(pin) => self.pinned(pin).to_string(),
            None => address.base.clone(),
        };
        let place = match address.displacement {
            0 => base,
            displacement => format!("{base}+{displacement}"),
        };
        let guard = match self.reach_guard() {
            None => String::new(),
            Some((not, guard)) => {
                for &value in &loaded {
                    self.line(format_args!("mov.{} {value}, 0;", class.move_suffix()));
                }
                format!("@{not}{guard} ")
            }
        };
        self.line(format_args!("{guard}ld{space}{vector}.{letter}{bits} {list}, [{place}];"));
        self.old = loaded
            .into_iter()
            .map(|value| match (class, signed) {
                (Class::B16, true) => self.op(Class::B32, "cvt.s32.s16", &[value]),
                (Class::B16, false) => self.op(Class::B32, "cvt.u32.u16", &[value]),
                _ => value,
            })
            .collect();
    }

    /// The guard of the instruction, where the span is for all lanes that get there: `!` or nothing, and its register.
    fn reach_guard(&self) -> Option<(&'static str, &'a str)> {
        let found = &self.site.found;
        let guard = found.guard.as_ref().filter(|_| found.reach)?;
        Some((if guard.negated { "!" } else { "" }, &guard.register))
    }

    /// A register of the program as the instruction at the site found it; nothing, 0, where its guard does not hold:
    /// there it may never have been assigned.
    fn found(&mut self, name: &'a str, class: Class) -> Operand<'a> {
        let Some((not, guard)) = self.reach_guard() else { return self.before(name) };
        let (value, suffix) = (self.temp(class), class.move_suffix());
        self.line(format_args!("@{not}{guard} mov.{suffix} {value}, {name};"));
        let other = if not.is_empty() { "!" } else { "" };
        match class {
            Class::Pred => self.line(format_args!("@{other}{guard} setp.ne.u32 {value}, 0, 0;")),
            _ => self.line(format_args!("@{other}{guard} mov.{suffix} {value}, 0;")),
        }
        value
    }

    /// What is computed of such registers; 0 where the guard does not hold.
    fn where_it_runs(&mut self, value: Operand<'a>, class: Class) -> Operand<'a> {
        let Some((not, guard)) = self.reach_guard() else { return value };
        let zero = Operand::number(if class == Class::B64 { Type::U64 } else { Type::U32 }, 0);
        let (yes, no) = if not.is_empty() { (value, zero) } else { (zero, value) };
        let opcode = if class == Class::B64 { "selp.b64" } else { "selp.b32" };
        self.op(class, opcode, &[yes, no, Operand::Program { name: guard }])
    }

    /// A register of the program as the instruction at the site found it.
    pub(super) fn before(&mut self, name: &'a str) -> Operand<'a> {
        let written = &self.site.found.access.written;
        match written.iter().position(|one| one.name == *name) {
            None => Operand::Program { name },
            Some(index) => {
                if let Some(slot) = self.saved.get_mut(index) {
                    *slot = true;
                }
                Operand::Saved { prefix: self.plan.prefix, number: self.number, index }
            }
        }
    }

    /// The span before the instruction, which saves what this one behind it needs; empty if that is nothing.
    pub(super) fn saves(&self) -> String {
        let (mut declared, mut copies) = (String::new(), String::new());
        let found = &self.site.found;
        let all = found.access.written.iter().zip(&self.saved).enumerate();
        for (index, (written, _)) in all.filter(|(_, (_, saved))| **saved) {
            let saved = Operand::Saved { prefix: self.plan.prefix, number: self.number, index };
            let (name, class) = (
                &written.name,
                match written.bits {
                    1 => Class::Pred,
                    16 => Class::B16,
                    32 => Class::B32,
                    _ => Class::B64,
                },
            );
            // Where the instruction does not run, what it reads may have no value.
            let guard = found.guard.as_ref().filter(|guard| guard.register != *name);
            let guard = guard.map_or_else(String::new, |guard| {
                format!("@{}{} ", if guard.negated { "!" } else { "" }, guard.register)
            });
            // Writing to a String cannot fail.
            let _ = write!(declared, ".reg {} {saved}; ", class.register_type());
            let _ = writeln!(copies, "\t{guard}mov.{} {saved}, {name};", class.move_suffix());
        }
        if copies.is_empty() { copies } else { format!("{declared}{{\n{copies}\t}}") }
    }
}
