//! From resolved PTX to a program: every function's instructions, one behind the other.
//!
//! Each instruction of the text becomes one of the program, so that counts can be told by statement; behind each body
//! stands a `ret` for its closing brace. What the interpreter does not know is kept as such, and is a fault only where
//! it is executed.

mod declare;
mod layout;
mod line;

pub use layout::{Segment, Variable};

pub(crate) use layout::{Fixup, MOST_FRAME, Slice, Where, window};
pub(crate) use line::{Decoded, Line, Missing, missing};

use crate::code::{Guard, Instruction, Op};
use crate::exec;
use crate::operation::{Family, Operation, describe};
use crate::program::{FunctionCode, Kernel, KernelParam, Program};
use crate::stats::Place;
use crate::types::Type;
use layout::Layout;
use nt_diag::{Diagnostic, Found, Span};
use nt_ptx::ModuleInfo;
use nt_ptx::syntax::{Function, Kind, Module};

/// The most registers that a function may have.
const MOST_SLOTS: u32 = 1 << 20;

/// Where the instructions of the function being decoded are, by statement.
pub(crate) struct Targets {
    /// The first statement of the body.
    first: u32,
    /// For each statement the first instruction at or behind it.
    instructions: Vec<u32>,
}

impl Targets {
    pub(crate) fn of(&self, statement: u32) -> Decoded<u32> {
        let index = statement.checked_sub(self.first).map(|index| index as usize);
        match index.and_then(|index| self.instructions.get(index)) {
            Some(&target) => Ok(target),
            None => missing("a branch out of its function"),
        }
    }
}

impl Program {
    /// Decodes a module.
    ///
    /// # Errors
    /// For what no instruction is at fault for: variables too large, initial values that cannot be read. Instructions
    /// that the interpreter does not know are no error here; [`Program::missing`] lists them.
    pub fn load<'s>(module: &'s Module<'s>, info: &'s ModuleInfo<'s>) -> Result<Program, Found> {
        let mut found = Found::new();
        let mut layout = Layout::new(module, info, tag(module.text), &mut found);
        let signatures: Vec<_> = module.functions.iter().map(|function| layout.signature(function)).collect();
        let mut program = Program {
            code: Vec::new(),
            places: Vec::new(),
            operations: Vec::new(),
            functions: Vec::new(),
            kernels: Vec::new(),
            globals: Segment::default(),
            constants: Segment::default(),
            code_start: layout.code_address(0),
        };
        let mut lines = Lines { text: module.text, at: 0, line: 1 };
        for (index, (function, signature)) in module.functions.iter().zip(signatures).enumerate() {
            let entry = program.code.len() as u32;
            layout.begin(function, signature, &mut found);
            program.body(&mut layout, index, function, &mut lines);
            let frame = std::mem::take(&mut layout.frame);
            if frame.slots > MOST_SLOTS {
                let d = format!("{} registers", frame.slots);
                found.push(Diagnostic::error("too-large", function.name, d));
            }
            if function.is_entry && function.body.is_some() {
                let align = layout.dynamic_align as u32;
                program.kernels.push(kernel(module, function, index, align, &frame));
            }
            program.functions.push(FunctionCode {
                name: module.at(function.name).into(),
                has_body: function.body.is_some(),
                entry,
                slots: frame.slots,
                // Larger ones were found above.
                bytes: frame.bytes.min(MOST_FRAME) as u32,
                returns: frame.returns,
                params: frame.params,
            });
        }
        (program.globals, program.constants) = (layout.globals, layout.constants);
        if found.has_errors() { Err(found) } else { Ok(program) }
    }

    /// Decodes the statements of one function.
    fn body<'s>(
        &mut self,
        layout: &mut Layout<'s>,
        index: usize,
        function: &Function,
        lines: &mut Lines<'_>,
    ) {
        let module = layout.module;
        let Some(body) = &function.body else {
            return;
        };
        let mut next = self.code.len() as u32;
        let mut targets = Targets { first: body.statements.start, instructions: Vec::new() };
        for statement in module.body(function) {
            targets.instructions.push(next);
            next += u32::from(matches!(statement.kind, Kind::Instruction(_) | Kind::Unknown));
        }
        targets.instructions.push(next);
        for (number, statement) in (body.statements.start..).zip(module.body(function)) {
            let (opcode, (instruction, operation)) = match &statement.kind {
                Kind::Instruction(instruction) => {
                    let mut line = Line::new(layout, index, statement.span.start, instruction);
                    (module.at(instruction.opcode), decoded(&mut line, instruction, &targets))
                }
                Kind::Unknown => {
                    let op = Op::Missing("a statement that could not be read".into());
                    let operation = describe(Family::Missing, &[], &op, false);
                    ("?", (Instruction { guard: None, op }, operation))
                }
                _ => continue,
            };
            let line = lines.of(statement.span.start);
            self.code.push(instruction);
            self.operations.push(operation);
            self.places.push(Place { statement: number, span: statement.span, line, opcode: opcode.into() });
        }
        let brace = Span::new(body.span.end.saturating_sub(1), body.span.end);
        let line = lines.of(brace.start);
        self.code.push(Instruction { guard: None, op: Op::Return });
        self.operations.push(describe(Family::Return, &[], &Op::Return, false));
        self.places.push(Place { statement: body.statements.end, span: brace, line, opcode: "}".into() });
    }
}

fn decoded(
    line: &mut Line<'_, '_>,
    instruction: &nt_ptx::syntax::Instruction,
    targets: &Targets,
) -> (Instruction, Operation) {
    let guard = match instruction.guard {
        None => Ok(None),
        Some(guard) => match line.layout.register(line.function, line.at, line.text(guard.register)) {
            Some((slot, Type::Predicate)) => Ok(Some(Guard { slot, negated: guard.negated })),
            _ => missing(format!("the guard `{}`", line.text(guard.span))),
        },
    };
    let decoded = guard.and_then(|guard| Ok((guard, exec::decode(line, targets)?)));
    let (guard, family, op) = match decoded {
        Ok((guard, (family, op))) => (guard, family, op),
        Err(Missing(why)) => (None, Family::Missing, Op::Missing(why.into())),
    };
    let operation = describe(family, &line.types, &op, guard.is_some());
    (Instruction { guard, op }, operation)
}

fn kernel(
    module: &Module<'_>,
    function: &Function,
    index: usize,
    dynamic_align: u32,
    frame: &layout::Frame,
) -> Kernel {
    let directive = |name: &str| {
        let found = function.directives.iter().find(|directive| module.at(directive.name) == name)?;
        let numbers = module.at(found.arguments).split(',').map(|n| n.trim().parse().unwrap_or(1u32));
        let mut of = [1; 3];
        for (axis, number) in of.iter_mut().zip(numbers) {
            *axis = number;
        }
        Some(of)
    };
    let params = function.params.iter();
    Kernel {
        name: module.at(function.name).to_owned(),
        params: params
            .map(|p| KernelParam { name: module.at(p.name).to_owned(), offset: p.offset, size: p.size })
            .collect(),
        param_bytes: function.params.last().map_or(0, |last| last.offset.saturating_add(last.size)),
        required_block: directive(".reqntid"),
        most_threads: directive(".maxntid").map(|of| of.iter().product()),
        required_cluster: directive(".reqnctapercluster"),
        static_shared: u32::try_from(frame.shared).unwrap_or(u32::MAX),
        local: frame.bytes.min(MOST_FRAME) as u32,
        dynamic_align,
        function: index,
    }
}

/// Line numbers of rising offsets.
struct Lines<'s> {
    text: &'s str,
    at: usize,
    line: u32,
}

impl Lines<'_> {
    fn of(&mut self, offset: u32) -> u32 {
        let offset = (offset as usize).min(self.text.len());
        if let Some(passed) = self.text.as_bytes().get(self.at..offset) {
            self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u32;
            self.at = offset;
        }
        self.line
    }
}

/// Sixteen bits that tell a module's functions from another's, where their addresses meet.
fn tag(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash ^ hash >> 32) >> 16 & 0xffff
}
