//! The instruction at the site: its address, its size, and where its address leads.
//!
//! ```text
//!     add.s64 %nt_d0, %rd4, 16;              ld.f32 %f1, [%rd4+16]
//!     isspacep.global %nt_p0, %nt_d0;        does it go to global memory?
//!     @%nt_p0 add.u64 %nt_s_sync, %nt_s_sync, 4;
//! ```
//!
//! An address is generic, as a pointer of the program is: what the text has in the window of a space is converted
//! (`cvta`). Global addresses are the same either way. PTX ISA 9.0, 9.7.9 `isspacep` and `cvta`.

use super::index::Known;
use super::operand::{Class, Operand};
use super::{Refusal, Span};
use crate::instructions::Size;
use nt_ir::program::Type;
use nt_ptx::opcode::Space;

impl<'a> Span<'a> {
    /// Finds out, for each probe that asks, whether the address leads where it wants it.
    pub(super) fn find_spaces(&mut self) -> Result<(), Refusal> {
        let site = self.site;
        let mut known: Vec<(&[Space], Operand<'a>)> = Vec::new();
        for (p, body) in site.bodies.iter().enumerate() {
            let Some((value, spaces)) = &body.within else { continue };
            let test = match known.iter().find(|(other, _)| *other == spaces.as_slice()) {
                Some((_, test)) => *test,
                None => {
                    let test = self.leads_into(spaces)?;
                    known.push((spaces, test));
                    test
                }
            };
            self.set(p, *value, test);
        }
        Ok(())
    }

    fn leads_into(&mut self, spaces: &[Space]) -> Result<Operand<'a>, Refusal> {
        let address = self.address()?;
        let mut any: Option<Operand<'a>> = None;
        for space in spaces {
            let one = self.op(Class::Pred, &format!("isspacep.{}", space.name()), &[address]);
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
            let base = Operand::Program { name: &address.base };
            let pin = span.plan.pins.number(&address.base).filter(|_| address.is_of_module);
            let mut value = match (address.bits, pin) {
                (Some(32), _) => span.op(Class::B64, "cvt.u64.u32", &[base]),
                (Some(_), _) => base,
                (None, Some(pin)) => {
                    let (value, prefix) = (span.temp(Class::B64), span.plan.prefix);
                    span.line(format_args!("ld.const.b64 {value}, [{prefix}pin+{}];", 8 * pin));
                    value
                }
                (None, None) => span.op(Class::B64, "mov.u64", &[base]),
            };
            if address.displacement != 0 {
                let displacement = Operand::number(Type::S64, address.displacement as u64);
                value = span.op(Class::B64, "add.s64", &[value, displacement]);
            }
            let window = match address.space {
                Space::Shared => "cvta.shared.u64",
                Space::Cluster => "cvta.shared::cluster.u64",
                Space::Local => "cvta.local.u64",
                Space::Const => "cvta.const.u64",
                Space::Global | Space::Generic | Space::Param | Space::Tensor => return value,
            };
            span.op(Class::B64, window, &[value])
        }))
    }

    /// The guard of the instruction, before it.
    pub(super) fn guard_of_site(&mut self) -> Result<Operand<'a>, Refusal> {
        let site = self.site;
        let Some(guard) = &site.found.guard else {
            return Err("its program asks for a guard where there is none".into());
        };
        let register = Operand::Program { name: &guard.register };
        Ok(if guard.negated { self.op(Class::Pred, "not.pred", &[register]) } else { register })
    }

    /// How many bytes the instruction moves, where its opcode does not say it.
    pub(super) fn size(&mut self) -> Result<Operand<'a>, Refusal> {
        let site = self.site;
        Ok(match &site.found.access.size {
            Some(Size::Known(size)) => Operand::word(*size),
            Some(Size::Register(name)) => Operand::Program { name },
            Some(Size::Unless { predicate, negated, size }) => {
                let (ignored, taken) = (Operand::word(0), Operand::word(*size));
                let (yes, no) = if *negated { (taken, ignored) } else { (ignored, taken) };
                self.op(Class::B32, "selp.b32", &[yes, no, Operand::Program { name: predicate }])
            }
            None => return Err("its program asks for a size where there is none".into()),
        })
    }
}
