//! From statements to operations on registers, block by block.
//!
//! ```text
//! mad.lo.s32 %r4, %r1, %r2, %r3;             %r4 = Mad(%r1, %r2, %r3), 32 bits
//! @%p1 ld.global.v2.u32 {%r5, %r6}, [%rd1];  %r5 = Load(%rd1) under %p1, %r6 likewise; an access at %rd1
//! ```
//!
//! An opcode that is not known here is a function of its inputs if the table of opcodes says that it computes, and else
//! anything; of one that the table lacks all registers that it names count as written.

use crate::operation::{Leaf, Operation};
use crate::writes::Reading;
use nt_ptx::opcode::Type;
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

/// What an instruction makes of a register.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) register: Register,
    pub(crate) operation: Operation,
    pub(crate) inputs: Vec<Source>,
    /// Of the value.
    pub(crate) width: u32,
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
    /// Is there a call, or a wait, from which lanes may come back apart?
    pub(crate) has_call: bool,
}

/// Reads the blocks of one function.
pub(crate) struct Reader<'a, 's> {
    pub(crate) module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    function: usize,
    pub(crate) is_entry: bool,
    registers: HashMap<(u32, u64), Register>,
    /// Their widths.
    pub(crate) widths: Vec<u32>,
}

/// What has been read of a block.
struct SoFar {
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
        let mut place = SoFar { code, is_synchronised: false, is_after_call: false };
        for index in statements {
            let Some(statement) = self.module.statements.get(index as usize) else { break };
            if let Kind::Instruction(instruction) = statement.kind {
                self.instruction(index, &instruction, &mut place);
            }
        }
        place.code
    }

    fn instruction(&mut self, statement: u32, instruction: &Instruction, place: &mut SoFar) {
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
            // Lanes may wait for different things, too.
            "call" | "mbarrier" if opcode.base == "call" || waits(opcode) => {
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
        let writes = Reading { reader: self, at, opcode, facts: &facts, operands: &operands }.writes();
        for Written { register, operation, inputs, width } in writes {
            let (is_synchronised, is_after_call) = (place.is_synchronised, place.is_after_call);
            let write = Write { register, operation, inputs, width, guard, is_synchronised, is_after_call };
            place.code.events.push(Event::Write(write));
        }
    }

    /// All registers that the instruction names may hold anything behind it.
    fn unknown(&mut self, at: u32, operands: &[Operand], guard: Option<Source>, place: &mut SoFar) {
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
    pub(crate) fn registers_in(&mut self, at: u32, operand: &Operand, into: &mut Vec<Register>) {
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

    pub(crate) fn source(&mut self, at: u32, operand: &Operand) -> Source {
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
    pub(crate) fn address(&mut self, at: u32, operand: &Operand) -> Source {
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
    pub(crate) fn parameter(&self, at: u32, operand: &Operand) -> Option<u32> {
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

/// A wait at an mbarrier.
fn waits(opcode: Opcode<'_>) -> bool {
    opcode.has(".try_wait") || opcode.has(".test_wait")
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
