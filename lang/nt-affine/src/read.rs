//! From statements to operations on registers, block by block.
//!
//! ```text
//! mad.lo.s32 %r4, %r1, %r2, %r3;             %r4 = Mad(%r1, %r2, %r3), 32 bits
//! @%p1 ld.global.v2.u32 {%r5, %r6}, [%rd1];  %r5 = Load(%rd1) under %p1, %r6 likewise; an access at %rd1
//! ```
//!
//! An opcode that is not known here is a function of its inputs if the table of opcodes says that it computes, and else
//! anything; of one that the table lacks all registers that it names count as written.

use crate::operation::{Compare, Leaf, Operation};
use nt_ptx::opcode::{Class, Facts, Space, Type, TypeKind};
use nt_ptx::syntax::{Instruction, Kind, Module, Operand, OperandKind};
use nt_ptx::{ModuleInfo, Opcode};
use std::collections::HashMap;
use std::ops::Range;

/// A register, numbered.
pub(crate) type Register = u32;

/// What an operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Register(Register),
    Leaf(Leaf),
    /// Nothing is known.
    Unknown,
}

/// A register gets a value.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) register: Register,
    pub(crate) operation: Operation,
    pub(crate) inputs: Vec<Source>,
    /// Of the value.
    pub(crate) width: u32,
    pub(crate) guard: Option<Source>,
    /// Does a barrier of the whole block stand before it in its basic block, with no call between?
    pub(crate) is_synchronised: bool,
    /// Does a call stand before it in its basic block, with no barrier between?
    pub(crate) is_after_call: bool,
}

/// What happens in a block, in order.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Write(Write),
    /// A statement accesses memory where the source says.
    Access {
        statement: u32,
        address: Source,
    },
}

/// Why lanes may part at the end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parting {
    /// They do not.
    Never,
    /// Where the source differs.
    By(Source),
}

/// A basic block.
#[derive(Debug, Clone)]
pub(crate) struct BlockCode {
    pub(crate) events: Vec<Event>,
    pub(crate) parting: Parting,
    /// Is there a barrier that all lanes of a warp execute together?
    pub(crate) has_barrier: bool,
    /// Is there a call, from which lanes may come back apart?
    pub(crate) has_call: bool,
}

/// Reads the blocks of one function.
pub(crate) struct Reader<'a, 's> {
    module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    function: usize,
    is_entry: bool,
    registers: HashMap<(u32, u64), Register>,
    /// Their widths.
    pub(crate) widths: Vec<u32>,
}

/// Where a block stands: what has happened in it so far.
struct Place {
    code: BlockCode,
    is_synchronised: bool,
    is_after_call: bool,
}

impl<'a, 's> Reader<'a, 's> {
    pub(crate) fn new(module: &'a Module<'s>, info: &'a ModuleInfo<'s>, function: usize) -> Self {
        let is_entry = module.functions.get(function).is_some_and(|function| function.is_entry);
        Reader { module, info, function, is_entry, registers: HashMap::new(), widths: Vec::new() }
    }

    pub(crate) fn block(&mut self, statements: Range<u32>) -> BlockCode {
        let code =
            BlockCode { events: Vec::new(), parting: Parting::Never, has_barrier: false, has_call: false };
        let mut place = Place { code, is_synchronised: false, is_after_call: false };
        for index in statements {
            let Some(statement) = self.module.statements.get(index as usize) else { break };
            if let Kind::Instruction(instruction) = statement.kind {
                self.instruction(index, &instruction, &mut place);
            }
        }
        place.code
    }

    fn instruction(&mut self, statement: u32, instruction: &Instruction, place: &mut Place) {
        let opcode = self.module.opcode(instruction);
        let at = instruction.opcode.start;
        let guard = instruction.guard.map(|guard| self.name(at, self.module.at(guard.register)));
        let operands = self.module.operands(instruction);
        let Some(facts) = self.module.facts(instruction) else {
            self.unknown(at, &operands, guard, place);
            return;
        };
        if let Some(operand) = facts.address.and_then(|at| operands.get(usize::from(at))) {
            place.code.events.push(Event::Access { statement, address: self.address(at, operand) });
        }
        match opcode.base {
            "bra" if !opcode.has(".uni") => {
                place.code.parting = guard.map_or(Parting::Never, Parting::By);
                return;
            }
            "brx" if !opcode.has(".uni") => {
                let index = operands.first().map_or(Source::Unknown, |operand| self.source(at, operand));
                place.code.parting = Parting::By(if guard.is_some() { Source::Unknown } else { index });
                return;
            }
            "call" => {
                place.code.has_call = true;
                (place.is_after_call, place.is_synchronised) = (true, false);
            }
            // The old form is short for the aligned one.
            "bar" | "barrier" if guard.is_none() && is_aligned_barrier(opcode) => {
                place.code.has_barrier = true;
                (place.is_after_call, place.is_synchronised) = (false, true);
            }
            _ => (),
        }
        let mut read = Reading { reader: self, at, opcode, facts: &facts, operands: &operands };
        let writes = read.writes();
        for (register, operation, inputs, width) in writes {
            let (is_synchronised, is_after_call) = (place.is_synchronised, place.is_after_call);
            let write = Write { register, operation, inputs, width, guard, is_synchronised, is_after_call };
            place.code.events.push(Event::Write(write));
        }
    }

    /// All registers that the instruction names may hold anything behind it.
    fn unknown(&mut self, at: u32, operands: &[Operand], guard: Option<Source>, place: &mut Place) {
        let mut registers = Vec::new();
        operands.iter().for_each(|operand| self.registers_in(at, operand, &mut registers));
        for register in registers {
            let width = self.width(register).min(64);
            place.code.events.push(Event::Write(Write {
                register,
                operation: Operation::Varying { indirect: false },
                inputs: Vec::new(),
                width,
                guard,
                is_synchronised: false,
                is_after_call: false,
            }));
        }
    }

    pub(crate) fn width(&self, register: Register) -> u32 {
        self.widths.get(register as usize).copied().unwrap_or(64)
    }

    /// The registers that an operand consists of.
    fn registers_in(&mut self, at: u32, operand: &Operand, into: &mut Vec<Register>) {
        match &operand.kind {
            OperandKind::Name(name) | OperandKind::Address { base: Some(name), .. } => {
                if let Source::Register(register) = self.name(at, self.module.at(*name)) {
                    into.push(register);
                }
            }
            OperandKind::Vector(list) | OperandKind::List(list) => {
                list.iter().for_each(|one| self.registers_in(at, one, into));
            }
            OperandKind::Pair(a, b) => {
                self.registers_in(at, a, into);
                self.registers_in(at, b, into);
            }
            _ => (),
        }
    }

    /// What a name is at a place.
    fn name(&mut self, at: u32, name: &str) -> Source {
        let Some(declared) = self.info.declared_at(self.function, at, name) else {
            // Of `%v.x` the register is a vector, which is not followed.
            return if name.starts_with('%') { special(name) } else { Source::Leaf(Leaf::Uniform) };
        };
        if declared.space != ".reg" {
            return Source::Leaf(Leaf::Uniform);
        }
        if declared.lanes != 1 {
            return Source::Unknown;
        }
        // `%r<9>` declares `%r0` to `%r8`, and `%r07` is `%r7`.
        let number = name.strip_prefix(declared.name).and_then(|digits| digits.parse::<u64>().ok());
        let key = (declared.at.start, number.map_or(0, |number| number.saturating_add(1)));
        let widths = &mut self.widths;
        let register = *self.registers.entry(key).or_insert_with(|| {
            let width = declared.ty.strip_prefix('.').and_then(Type::named).map_or(64, |ty| ty.bits);
            widths.push(width);
            u32::try_from(widths.len() - 1).unwrap_or(u32::MAX)
        });
        Source::Register(register)
    }

    fn source(&mut self, at: u32, operand: &Operand) -> Source {
        match &operand.kind {
            OperandKind::Name(name) => self.name(at, self.module.at(*name)),
            OperandKind::Number(_) | OperandKind::Other => {
                match nt_ptx::constant(self.module.at(operand.span)) {
                    Some(number) => Source::Leaf(Leaf::Constant(number.cast_unsigned())),
                    // A number with a point, or in the bits of one.
                    None if matches!(operand.kind, OperandKind::Number(_)) => Source::Leaf(Leaf::Uniform),
                    None => Source::Unknown,
                }
            }
            OperandKind::Offset(name) => match self.name(at, self.module.at(*name)) {
                Source::Leaf(Leaf::Uniform) => Source::Leaf(Leaf::Uniform),
                _ => Source::Unknown,
            },
            _ => Source::Unknown,
        }
    }

    /// What an address is but for its displacement.
    fn address(&mut self, at: u32, operand: &Operand) -> Source {
        match &operand.kind {
            OperandKind::Address { base: Some(base), offset } => {
                let is_constant =
                    offset.is_none_or(|offset| nt_ptx::constant(self.module.at(offset)).is_some());
                if is_constant { self.name(at, self.module.at(*base)) } else { Source::Unknown }
            }
            OperandKind::Address { base: None, offset: Some(_) } => Source::Leaf(Leaf::Uniform),
            // `ld.const.b32 %r2, c[2];`
            OperandKind::Offset(_) => self.source(at, operand),
            _ => Source::Unknown,
        }
    }

    /// The place of a kernel's own parameter that an address names.
    fn parameter(&self, at: u32, operand: &Operand) -> Option<u32> {
        let address = self.module.address(operand)?;
        let base = address.base?;
        let declared = self.info.declared_at(self.function, at, self.module.at(base))?;
        let function = self.module.functions.get(self.function).filter(|_| self.is_entry)?;
        let param = function.params.iter().find(|param| param.name == declared.at)?;
        u32::try_from(i64::from(param.offset).checked_add(address.displacement)?).ok()
    }
}

fn is_aligned_barrier(opcode: Opcode<'_>) -> bool {
    let waits = opcode.has(".sync") || opcode.has(".red");
    waits
        && !opcode.has(".warp")
        && !opcode.has(".cluster")
        && (opcode.base == "bar" || opcode.has(".aligned"))
}

/// What a special register is.
fn special(name: &str) -> Source {
    let axis = match name.rsplit_once('.') {
        Some((_, "x")) => 0,
        Some((_, "y")) => 1,
        Some((_, "z")) => 2,
        _ => 3,
    };
    let base = name.split('.').next().unwrap_or(name);
    let leaf = match (base, axis) {
        ("%tid", 0..3) => Leaf::Thread(axis),
        ("%ntid", 0..3) => Leaf::Threads(axis),
        ("%ctaid", 0..3) => Leaf::Block(axis),
        ("%nctaid", 0..3) => Leaf::Blocks(axis),
        ("%laneid", 3) => Leaf::Lane,
        ("%clusterid" | "%nclusterid" | "%cluster_ctaid" | "%cluster_nctaid", 0..3)
        | (
            "%cluster_ctarank"
            | "%cluster_nctarank"
            | "%is_explicit_cluster"
            | "%gridid"
            | "%nsmid"
            | "%nwarpid"
            | "%dynamic_smem_size"
            | "%total_smem_size"
            | "%aggr_smem_size",
            3,
        ) => Leaf::Uniform,
        _ if base.starts_with("%envreg") => Leaf::Uniform,
        _ => return Source::Unknown,
    };
    Source::Leaf(leaf)
}

type Written = (Register, Operation, Vec<Source>, u32);

/// One instruction, as it is read.
struct Reading<'r, 'a, 's> {
    reader: &'r mut Reader<'a, 's>,
    at: u32,
    opcode: Opcode<'s>,
    facts: &'r Facts,
    operands: &'r [Operand],
}

impl Reading<'_, '_, '_> {
    fn source(&mut self, place: usize) -> Source {
        let Some(operand) = self.operands.get(place) else { return Source::Unknown };
        self.reader.source(self.at, operand)
    }

    /// The registers that it writes, each with what it becomes.
    fn writes(&mut self) -> Vec<Written> {
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
                (register, operation, inputs.clone(), width)
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
            written.extend(registers.into_iter().map(|register| (register, operation, vec![from], part)));
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
