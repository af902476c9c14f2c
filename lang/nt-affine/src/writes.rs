//! What one instruction makes of the registers that it writes.
//!
//! ```text
//! mul.wide.s32 %rd1, %r1, 4;       Wide { from: 32, signed }, of %r1 and 4
//! ld.global.v2.u32 {%r1, %r2}, …   Load, twice
//! ex2.approx.f32 %f1, %f2;         Pure, of %f2: the same in all lanes if that is
//! ```

use crate::operation::{Compare, Leaf, Operation};
use crate::read::{Reader, Source, Written};
use nt_ptx::Opcode;
use nt_ptx::opcode::{Class, Facts, Space, Type, TypeKind};
use nt_ptx::syntax::{Operand, OperandKind};

/// One instruction, as it is read.
pub(crate) struct Reading<'r, 'a, 's> {
    pub(crate) reader: &'r mut Reader<'a, 's>,
    /// Where it stands in the text.
    pub(crate) at: u32,
    pub(crate) opcode: Opcode<'s>,
    pub(crate) facts: &'r Facts,
    pub(crate) operands: &'r [Operand],
}

impl Reading<'_, '_, '_> {
    fn source(&mut self, place: usize) -> Source {
        let Some(operand) = self.operands.get(place) else { return Source::Unknown };
        self.reader.source(self.at, operand)
    }

    /// The registers that it writes, each with what it becomes.
    pub(crate) fn writes(mut self) -> Vec<Written> {
        if self.facts.writes.is_empty() {
            return Vec::new();
        }
        if let Some(written) = self.split() {
            return written;
        }
        let mut registers = Vec::new();
        for place in self.facts.writes.iter() {
            if let Some(operand) = self.operands.get(place) {
                self.reader.registers_in(self.at, operand, &mut registers);
            }
        }
        let Some(&first) = registers.first() else { return Vec::new() };
        let declared = self.reader.width(first);
        let mut width = self.facts.out_ty.map_or(declared, |ty| ty.bits);
        let (mut operation, inputs) = self.operation();
        // Loads, and conversions, may have a wider destination, which is filled up by the type.
        if width < declared {
            let is_signed = self.facts.out_ty.is_some_and(|ty| ty.kind == TypeKind::Signed);
            let is_kept = match operation {
                Operation::Load { .. } | Operation::Leaf(Leaf::Parameter { .. }) => !is_signed,
                _ => false,
            };
            if !is_kept && !matches!(operation, Operation::Load { .. } | Operation::Varying { .. }) {
                operation = Operation::Pure;
            }
            if let (Operation::Load { bits, .. }, true) = (&mut operation, is_signed) {
                *bits = declared;
            }
            width = declared;
        }
        // What is wider is not followed further than that it is the same in all lanes.
        width = width.min(64);
        let one = registers.len() == 1;
        registers
            .into_iter()
            .map(|register| {
                let operation = match operation {
                    // A second result is not what the first is.
                    _ if one => operation,
                    Operation::Load { .. }
                    | Operation::Varying { .. }
                    | Operation::Pure
                    | Operation::Leaf(Leaf::Uniform) => operation,
                    Operation::Compare { .. } => Operation::Pure,
                    Operation::Leaf(Leaf::Parameter { .. }) => Operation::Leaf(Leaf::Uniform),
                    _ => Operation::Varying { indirect: false },
                };
                let width = if one { width } else { self.reader.width(register).min(64) };
                Written { register, operation, inputs: inputs.clone(), width }
            })
            .collect()
    }

    /// `mov.b64 {%r1, %r2}, %rd1;`
    fn split(&mut self) -> Option<Vec<Written>> {
        let OperandKind::Vector(parts) = &self.operands.first().filter(|_| self.opcode.base == "mov")?.kind
        else {
            return None;
        };
        let whole = self.facts.ty?.bits;
        let count = u32::try_from(parts.len()).ok().filter(|&count| count > 0 && whole <= 64)?;
        let part = whole.checked_div(count).filter(|&part| part >= 8)?;
        let from = self.source(1);
        let mut written = Vec::new();
        for (index, operand) in (0..).zip(parts) {
            let mut registers = Vec::new();
            self.reader.registers_in(self.at, operand, &mut registers);
            let operation = Operation::Unpack { part, index };
            written.extend(registers.into_iter().map(|register| Written {
                register,
                operation,
                inputs: vec![from],
                width: part,
            }));
        }
        Some(written)
    }

    /// What the first register written becomes, and of what.
    fn operation(&mut self) -> (Operation, Vec<Source>) {
        let anything = (Operation::Varying { indirect: false }, Vec::new());
        match self.facts.class {
            Class::Load => self.load(),
            Class::Atomic => (Operation::Varying { indirect: true }, Vec::new()),
            Class::Shuffle if self.opcode.base == "shfl" => {
                let sources = vec![self.source(1), self.source(2)];
                let constant = |source| match source {
                    Source::Leaf(Leaf::Constant(number)) => Some(number),
                    _ => None,
                };
                // All lanes, and no segments.
                let is_whole = self.opcode.has(".idx")
                    && constant(self.source(3)) == Some(31)
                    && constant(self.source(4)).is_some_and(|mask| mask & 0xffff_ffff == 0xffff_ffff);
                (Operation::Shuffle { by_index: is_whole }, sources)
            }
            Class::Vote => match self.opcode.base {
                "vote" | "redux" | "activemask" => (Operation::Common, Vec::new()),
                _ => anything,
            },
            Class::Int | Class::Float | Class::Logic | Class::Compare | Class::Convert | Class::Move => {
                self.computed()
            }
            _ => anything,
        }
    }

    fn load(&mut self) -> (Operation, Vec<Source>) {
        let address = self.facts.address.and_then(|place| self.operands.get(usize::from(place)));
        let (Some(address), Some(ty)) = (address, self.facts.ty) else {
            return (Operation::Varying { indirect: true }, Vec::new());
        };
        let source = self.reader.address(self.at, address);
        let is_weak = !["volatile", "relaxed", "acquire", "mmio"]
            .iter()
            .any(|word| self.opcode.parts().any(|part| part.strip_prefix('.') == Some(word)));
        let fixed = match self.facts.space {
            Some(Space::Param) if self.reader.is_entry => {
                if let Some(offset) = self.reader.parameter(self.at, address) {
                    let leaf = if self.facts.elems == 1 {
                        Leaf::Parameter { offset, bits: ty.bits }
                    } else {
                        Leaf::Uniform
                    };
                    return (Operation::Leaf(leaf), Vec::new());
                }
                // What a call gave back, or parameters through a pointer.
                let is_through_register = matches!(source, Source::Register(_));
                if !is_through_register {
                    return (Operation::Varying { indirect: false }, Vec::new());
                }
                true
            }
            Some(Space::Const) => true,
            Some(Space::Global) if self.opcode.has(".nc") || self.opcode.base == "ldu" => true,
            Some(Space::Global | Space::Shared | Space::Cluster) if is_weak && self.opcode.base == "ld" => {
                false
            }
            // Given by the caller.
            Some(Space::Param) => return (Operation::Varying { indirect: false }, Vec::new()),
            // Local memory is each lane's own, and so may be what a generic address points to.
            _ => return (Operation::Varying { indirect: true }, Vec::new()),
        };
        (Operation::Load { fixed, bits: ty.bits.min(64) }, vec![source])
    }

    /// A function of the operands that are read.
    fn computed(&mut self) -> (Operation, Vec<Source>) {
        let mut inputs: Vec<Source> = Vec::new();
        for place in self.facts.reads.iter() {
            match self.operands.get(place).map(|operand| &operand.kind) {
                Some(OperandKind::Vector(parts)) => {
                    inputs.extend(parts.iter().map(|part| self.reader.source(self.at, part)));
                }
                Some(_) => inputs.push(self.source(place)),
                None => (),
            }
        }
        let is_carried = matches!(self.opcode.base, "addc" | "subc" | "madc");
        if is_carried || self.facts.width > 64 {
            return (Operation::Varying { indirect: false }, Vec::new());
        }
        // What the list of exact operations lacks is a function all the same.
        (self.exact(inputs.len()).unwrap_or(Operation::Pure), inputs)
    }

    fn exact(&mut self, count: usize) -> Option<Operation> {
        let opcode = self.opcode;
        let ty = self.facts.ty?;
        if opcode.base == "mov" {
            let is_packed = matches!(self.operands.get(1)?.kind, OperandKind::Vector(_));
            let part = ty.bits.checked_div(u32::try_from(count).ok()?)?;
            return match (is_packed, part) {
                (false, _) => Some(Operation::Copy),
                (true, 8..) => Some(Operation::Pack { part }),
                (true, _) => None,
            };
        }
        if opcode.base == "cvta" {
            return Some(Operation::Copy);
        }
        let signed = ty.kind == TypeKind::Signed;
        let is_plain =
            matches!(ty.kind, TypeKind::Bits | TypeKind::Signed | TypeKind::Unsigned | TypeKind::Predicate);
        let is_whole = is_plain && ty.parts == 1 && !opcode.has(".sat");
        Some(match (opcode.base, count) {
            ("selp", 3) if ty.parts == 1 => Operation::Choose,
            _ if !is_whole => return None,
            ("add", 2) => Operation::Add,
            ("sub", 2) => Operation::Sub,
            ("neg", 1) => Operation::Neg,
            ("mul", 2) | ("mad", 3) if opcode.has(".wide") => Operation::Wide { from: ty.bits, signed },
            ("mul", 2) if opcode.has(".lo") => Operation::Mul,
            ("mad", 3) if opcode.has(".lo") => Operation::Mad,
            ("shl", 2) => Operation::Shl,
            ("shr", 2) => Operation::Shr { signed },
            ("and", 2) => Operation::Logic(0xc0),
            ("or", 2) => Operation::Logic(0xfc),
            ("xor", 2) => Operation::Logic(0x3c),
            ("not", 1) => Operation::Logic(0x0f),
            ("lop3", 4) => match nt_ptx::constant(self.reader.module.at(self.operands.get(4)?.span)) {
                Some(table @ 0..256) => Operation::Logic(table as u8),
                _ => return None,
            },
            ("bfe", 3) => Operation::Extract { signed },
            ("bfi", 4) => Operation::Insert,
            ("prmt", 3) if opcode.parts().count() == 1 => Operation::Permute,
            ("div", 2) => Operation::Div { signed },
            ("rem", 2) => Operation::Rem { signed },
            ("cvt", 1) => {
                let types: Vec<Type> =
                    opcode.parts().filter_map(|part| Type::named(part.strip_prefix('.')?)).collect();
                let [to, from] = types[..] else { return None };
                let is_integer = |ty: Type| matches!(ty.kind, TypeKind::Signed | TypeKind::Unsigned);
                if !is_integer(to) || !is_integer(from) {
                    return None;
                }
                Operation::Convert { from: from.bits, signed: from.kind == TypeKind::Signed }
            }
            ("setp", 2) if self.operands.len() == 3 => {
                let (how, is_unsigned) = opcode.parts().find_map(Compare::named)?;
                Operation::Compare { how, from: ty.bits, signed: signed && !is_unsigned }
            }
            _ => return None,
        })
    }
}
