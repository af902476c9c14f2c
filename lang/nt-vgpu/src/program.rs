//! A module ready to run: decoded once, launched as often as wanted, by as many threads as wanted.

use crate::code::Instruction;
use crate::decode::{Fixup, Segment, Where, window};
use crate::memory::{Memory, Refused};
use crate::operation::Operation;
use crate::stats::Place;
use std::fmt;

/// A decoded module.
pub struct Program {
    pub(crate) code: Vec<Instruction>,
    pub(crate) places: Vec<Place>,
    pub(crate) operations: Vec<Operation>,
    /// One for each of the module's, declarations included.
    pub(crate) functions: Vec<FunctionCode>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) globals: Segment,
    pub(crate) constants: Segment,
    /// The address of the first function.
    pub(crate) code_start: u64,
}

/// What the interpreter knows of a function.
#[derive(Debug, Clone, Default)]
pub(crate) struct FunctionCode {
    pub(crate) name: Box<str>,
    pub(crate) has_body: bool,
    pub(crate) entry: u32,
    /// Slots of a frame.
    pub(crate) slots: u32,
    /// Bytes of a frame in local memory.
    pub(crate) bytes: u32,
    pub(crate) returns: Vec<crate::decode::Slice>,
    pub(crate) params: Vec<crate::decode::Slice>,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelParam {
    /// Its name.
    pub name: String,
    /// Where its bytes begin.
    pub offset: u32,
    /// How many there are.
    pub size: u32,
}

/// A kernel, and what its launches must keep to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub params: Vec<KernelParam>,
    /// Bytes of all parameters.
    pub param_bytes: u32,
    /// `.reqntid`
    pub required_block: Option<[u32; 3]>,
    /// `.maxntid`, as threads of a block.
    pub most_threads: Option<u32>,
    /// `.reqnctapercluster`
    pub required_cluster: Option<[u32; 3]>,
    /// Bytes of shared memory that it declares.
    pub static_shared: u32,
    /// Bytes of local memory of its own frame.
    pub local: u32,
    pub(crate) dynamic_align: u32,
    pub(crate) function: usize,
}

impl Kernel {
    /// Where dynamic shared memory begins.
    pub(crate) fn dynamic_start(&self) -> u32 {
        self.static_shared.next_multiple_of(self.dynamic_align)
    }

    /// Bytes of shared memory of a block with that much of it dynamic.
    pub(crate) fn shared_bytes(&self, dynamic: u32) -> u64 {
        match dynamic {
            0 => u64::from(self.static_shared),
            _ => u64::from(self.dynamic_start()) + u64::from(dynamic),
        }
    }
}

impl Program {
    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// All kernels, in text order.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Global variables of the module. Whoever launches gives them memory, [`Program::initialise`]s it, and says in
    /// [`crate::Launch`] where it is.
    pub fn globals(&self) -> &Segment {
        &self.globals
    }

    /// Constant variables, likewise.
    pub fn constants(&self) -> &Segment {
        &self.constants
    }

    /// Where each instruction stands in the text; [`crate::Stats::counts`] are in this order.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// What each instruction does, in the order of [`Program::places`].
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The instruction that a statement of the module is, as an index into [`Program::places`].
    pub fn instruction(&self, statement: u32) -> Option<usize> {
        // In text order, closing braces counting as what follows their body.
        let first = self.places.partition_point(|place| place.statement < statement);
        let same =
            self.places.iter().enumerate().skip(first).take_while(|(_, place)| place.statement == statement);
        same.filter(|(_, place)| &*place.opcode != "}").map(|(index, _)| index).next()
    }

    /// The instructions that would end a launch as not executed, with the reason, in text order.
    pub fn missing(&self) -> impl Iterator<Item = (&Place, &str)> {
        self.code.iter().zip(&self.places).filter_map(|(instruction, place)| match &instruction.op {
            crate::code::Op::Missing(why) => Some((place, &**why)),
            _ => None,
        })
    }

    /// The function that an instruction belongs to.
    pub(crate) fn function_at(&self, pc: u32) -> &FunctionCode {
        // Functions are in the order of their code; a declaration begins where the next definition does, and ends there.
        let index = self.functions.partition_point(|function| function.entry <= pc);
        let before = self.functions[..index].iter().rev().find(|function| function.has_body);
        // Every instruction is in a body.
        before.unwrap_or(&self.functions[0])
    }

    /// Writes the initial values of the variables into zeroed memory.
    ///
    /// # Errors
    /// If the memory does not have room for them where it is said to.
    pub fn initialise(&self, memory: &dyn Memory, globals: u64, constants: u64) -> Result<(), Refused> {
        for (segment, base) in [(&self.globals, globals), (&self.constants, constants)] {
            for (offset, content) in &segment.content {
                memory.write(base.wrapping_add(*offset), content)?;
            }
            for Fixup { offset, bytes, to, addend, is_generic } in &segment.fixups {
                let address = match *to {
                    Where::Global(at) => globals.wrapping_add(at),
                    Where::Const(at) if *is_generic => window::CONST + at,
                    Where::Shared(at) if *is_generic => window::SHARED + at,
                    Where::Const(at) | Where::Shared(at) | Where::Code(at) => at,
                    _ => 0,
                };
                let address = address.wrapping_add_signed(*addend).to_le_bytes();
                // At most the 8 bytes of a type that is no f128.
                memory.write(base.wrapping_add(*offset), &address[..*bytes])?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("kernels", &self.kernels)
            .field("instructions", &self.code.len())
            .finish()
    }
}
