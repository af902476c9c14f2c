//! Reads the operands of the instruction at a site, so far as a body may have them: its address, its size, its values.
//!
//! ```text
//! @%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+16];     addr: %rd1 + 16     out: %f1, %f2, of type f32
//! st.shared.u8 [%r4], %rs1;                        in1: %rs1, of type u8: the register is wider
//! add.s32 %r1, %r1, 4;                             in1: %r1, which is overwritten; in2: 4
//! ```
//!
//! The type of a value is the instruction's where the register is as wide, or an access of memory that may be narrower;
//! else the register's own. What PTX calls `.bN` is unsigned. What is no register and no number has no value here.
//!
//! Language reference, Operands; PTX ISA 9.0, 9.4.1 (operand size exceeding instruction-type size).

mod types;
mod values;
pub(crate) mod waits;

use nt_diag::Span;
use nt_ir::close::SiteType;
use nt_ptx::ModuleInfo;
use nt_ptx::opcode::{Bytes, Facts, Space};
use nt_ptx::syntax::{Instruction, Module, Operand, OperandKind};

/// Where an instruction's address comes from, its size and its values, as far as operands tell them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Access {
    /// The address that `addr` gives.
    pub(crate) address: Option<Address>,
    /// The address that `saddr` gives.
    pub(crate) shared: Option<Address>,
    /// How many bytes, where the opcode does not say.
    pub(crate) size: Option<Size>,
    /// What it gives; `None` where that cannot be read from where the body stands.
    pub(crate) out: Option<Vec<Element>>,
    /// The wait behind which the body stands, if what the instruction gives is there only then.
    pub(crate) wait: Option<u32>,
    /// Why there is no such wait, and where that is seen.
    pub(crate) late: Option<(Span, &'static str)>,
    /// What it takes, in the order of the language.
    pub(crate) inputs: Vec<Option<Vec<Element>>>,
    /// What a store overwrites.
    pub(crate) old: Option<Old>,
    /// Of a wait, the predicate that says whether it is over.
    pub(crate) done: Option<String>,
    /// The registers that it overwrites, if the body stands behind it.
    pub(crate) written: Vec<Written>,
}

/// `[%rd1+16]`, `[table+4]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The register or variable.
    pub(crate) base: String,
    /// Bits of the register; `None` of a variable.
    pub(crate) bits: Option<u32>,
    /// Is the variable one of the module, and not of a function?
    pub(crate) is_of_module: bool,
    /// What is added to it.
    pub(crate) displacement: i64,
    /// What it is an address in.
    pub(crate) space: Space,
}

/// A size that operands tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Size {
    /// As they stand in the text.
    Known(u32),
    /// What this register holds, 32 bits.
    Register(String),
    /// So many, but none where this predicate says to ignore the source.
    Unless { predicate: String, negated: bool, size: u32 },
}

/// The load of what a store overwrites, which is the store's own access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Old {
    /// `.global`, `.shared`; nothing where its text does not say.
    pub(crate) space: &'static str,
    pub(crate) address: Address,
    pub(crate) ty: SiteType,
    /// How many values.
    pub(crate) count: u8,
}

/// A value that the instruction gives or takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) ty: SiteType,
    pub(crate) source: Source,
}

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// In a register of the program: its name, its bits, and whether it is declared as no more than these.
    Register { name: String, bits: u32, is_plain: bool },
    /// In the text, as the bits of the type.
    Number(u64),
}

/// A register of the program that the instruction overwrites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) name: String,
    pub(crate) bits: u32,
}

/// The operands of one instruction.
pub(crate) struct Reader<'a, 's> {
    module: &'a Module<'s>,
    info: &'a ModuleInfo<'s>,
    function: usize,
    /// Where the instruction stands, which decides what its names mean.
    at: u32,
    opcode: &'s str,
    operands: Vec<Operand>,
}

impl<'a, 's> Reader<'a, 's> {
    pub(crate) fn new(
        module: &'a Module<'s>,
        info: &'a ModuleInfo<'s>,
        function: usize,
        instruction: &Instruction,
    ) -> Self {
        let operands = module.operands(instruction);
        let opcode = module.at(instruction.opcode);
        Reader { module, info, function, at: instruction.opcode.start, opcode, operands }
    }

    /// What a body before the instruction, or behind it, may have; values only if some are asked for.
    pub(crate) fn access(&self, facts: &Facts, is_after: bool, values: bool) -> Access {
        let mut access = Access { address: self.address(facts), size: self.size(facts), ..Access::default() };
        if is_after {
            access.written = self.written(facts);
        }
        if values {
            access.shared = self.shared(facts);
            access.inputs = self.inputs(facts);
            if is_after {
                access.out = self.out(facts);
                access.done = self.done(facts);
            } else {
                access.old = self.old(facts);
            }
        }
        access
    }

    /// What a body behind the wait for the instruction may have.
    pub(crate) fn waited(&self, facts: &Facts, wait: u32) -> Access {
        Access { size: self.size(facts), out: self.given(facts), wait: Some(wait), ..Access::default() }
    }

    fn operand(&self, place: impl Into<usize>) -> Option<&Operand> {
        self.operands.get(place.into())
    }

    /// The space of the variable that an address names.
    pub(crate) fn declared(&self, facts: &Facts) -> Option<Space> {
        let base = self.module.address(self.operand(facts.address?)?)?.base?;
        match self.variable(self.module.at(base))? {
            ".global" => Some(Space::Global),
            ".shared" => Some(Space::Shared),
            ".local" => Some(Space::Local),
            ".const" => Some(Space::Const),
            ".param" => Some(Space::Param),
            _ => None,
        }
    }

    /// The space of a variable; `None` for a register and for what is not declared.
    fn variable(&self, name: &str) -> Option<&'s str> {
        match self.info.declared_at(self.function, self.at, name).map(|declared| declared.space) {
            Some(".reg") => None,
            Some(space) => Some(space),
            None => {
                let index = self.info.variable(name)?;
                self.info.variables.get(index).map(|variable| variable.space)
            }
        }
    }

    /// The address that a body may have: not of parameters, which have no address that all targets tell.
    pub(crate) fn address(&self, facts: &Facts) -> Option<Address> {
        let is_copy = facts.other_space.is_some();
        let space = match facts.space? {
            // The other side of a copy from or to the global side.
            Space::Shared | Space::Cluster if is_copy => facts.other_space?,
            space => space,
        };
        if matches!(space, Space::Param | Space::Tensor) {
            return None;
        }
        self.address_in(self.operand(facts.address?)?, space)
    }

    /// The side of a copy that is in shared memory.
    fn shared(&self, facts: &Facts) -> Option<Address> {
        facts.offers("saddr").then_some(())?;
        self.address_in(self.operand(facts.shared_address?)?, Space::Shared)
    }

    fn address_in(&self, operand: &Operand, space: Space) -> Option<Address> {
        let address = self.module.address(operand)?;
        let base = self.module.at(address.base?);
        let bits = match self.info.register_at(self.function, self.at, base) {
            Some(register) if register.lanes == 1 => match register.ty {
                ".b64" | ".u64" | ".s64" => Some(64),
                ".b32" | ".u32" | ".s32" if space != Space::Generic && space != Space::Global => Some(32),
                _ => return None,
            },
            Some(_) => return None,
            None => {
                self.variable(base).filter(|space| matches!(*space, ".global" | ".shared" | ".const"))?;
                None
            }
        };
        let is_of_module = bits.is_none() && self.info.declared_at(self.function, self.at, base).is_none();
        let (base, displacement) = (base.to_owned(), address.displacement);
        Some(Address { base, bits, is_of_module, displacement, space })
    }

    /// The register at a place, if it is of one of these types.
    fn register(&self, operand: &Operand, wanted: &[&str]) -> Option<String> {
        let OperandKind::Name(name) = operand.kind else { return None };
        let name = self.module.at(name);
        let register = self.info.register_at(self.function, self.at, name)?;
        (register.lanes == 1 && wanted.contains(&register.ty)).then(|| name.to_owned())
    }

    fn size(&self, facts: &Facts) -> Option<Size> {
        const WORDS: &[&str] = &[".b32", ".u32", ".s32"];
        match facts.bytes {
            Bytes::None | Bytes::Known(_) => None,
            Bytes::Operand(place) => self.register(self.operand(place)?, WORDS).map(Size::Register),
            Bytes::CopySize { size, source: None, .. } => size.map(Size::Known),
            Bytes::CopySize { size, source: Some(place), .. } => {
                let operand = self.operand(place)?;
                if let OperandKind::Number(number) = operand.kind {
                    let read = nt_ptx::constant(self.module.at(number))?;
                    return u32::try_from(read).ok().map(Size::Known);
                }
                if let Some(predicate) = self.register(operand, &[".pred"]) {
                    let negated = self.is_negated(operand);
                    return Some(Size::Unless { predicate, negated, size: size? });
                }
                self.register(operand, WORDS).map(Size::Register)
            }
        }
    }

    fn is_negated(&self, operand: &Operand) -> bool {
        self.module.at(operand.span).starts_with('!')
    }
}

/// How many bytes a lane moves, where the text says it.
pub(crate) fn known_bytes(facts: &Facts, access: &Access) -> Option<u32> {
    let bytes = match (facts.bytes, &access.size) {
        (Bytes::Known(bytes), _) => bytes,
        (_, Some(Size::Known(bytes))) => *bytes,
        _ => return None,
    };
    facts.offers("bytes").then_some(bytes)
}
