//! Branches, calls, returns and ends.
//!
//! A call pushes a frame: a window of slots behind the caller's, and bytes of local memory for parameters and
//! variables. Both are by lane, so that lanes may recurse to different depths. Arguments are bytes, copied in at the
//! call and out at the return, and their number and sizes must be those that the callee declares: where a GPU would
//! read garbage, this is a fault.
//!
//! Source: PTX ISA 9.0, section 9.7.12 (control flow), chapter 7 (the ABI).

use crate::code::{Op, Src, frame};
use crate::decode::{Decoded, Line, MOST_FRAME, Slice, Targets, Where, missing};
use crate::exec::printf;
use crate::fault::{FaultKind, Stop};
use crate::machine::{Machine, Next};
use crate::stats::lanes;
use crate::types::Type;
use crate::warp::Warp;
use nt_ptx::TokenKind;
use nt_ptx::syntax::{Kind, Operand, OperandKind};

/// How deep calls may nest.
const MOST_DEPTH: u32 = 1024;
/// Slots that a warp may have, in all frames.
const MOST_SLOTS: usize = 1 << 18;

pub(crate) fn decode(line: &mut Line<'_, '_>, targets: &Targets) -> Decoded<Op> {
    // That all lanes agree is a promise to the assembler.
    line.flag(".uni");
    match line.base {
        "bra" => {
            line.end(1)?;
            Ok(Op::Branch(targets.of(line.label(&line.operand(0)?)?)?))
        }
        "brx" => {
            line.flag(".idx");
            line.end(2)?;
            let list = line.label(&line.operand(1)?)?;
            Ok(Op::Table(line.src(0, Type::Unsigned(32))?, table(line, targets, list)?))
        }
        "call" => call(line),
        "ret" => {
            line.end(0)?;
            Ok(Op::Return)
        }
        "exit" => {
            line.end(0)?;
            Ok(Op::Exit)
        }
        _ => {
            line.end(0)?;
            Ok(Op::Trap)
        }
    }
}

/// The labels of the `.branchtargets` behind a label.
fn table(line: &Line<'_, '_>, targets: &Targets, label: u32) -> Decoded<Box<[u32]>> {
    let module = line.module;
    let Some(list) = module.statements.get(label as usize + 1).filter(|s| s.kind == Kind::Table) else {
        return missing("`brx.idx` without a list of labels behind its label");
    };
    let names = module.code(list.span).filter(|(kind, _)| *kind == TokenKind::Name);
    names
        .map(|(_, at)| match line.layout.info.label_at(line.function, list.span.start, module.at(at)) {
            Some(statement) => targets.of(statement),
            None => missing(format!("the label `{}`", module.at(at))),
        })
        .collect()
}

/// `call`
#[derive(Debug)]
pub(crate) struct Call {
    target: Target,
    pub(crate) returns: Box<[Slice]>,
    arguments: Box<[Slice]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// By index.
    Function(usize),
    /// Through an address.
    Address(Src),
}

fn call(line: &mut Line<'_, '_>) -> Decoded<Op> {
    if let Some(word) = line.rest().first() {
        return missing(format!("`call` with `{word}`"));
    }
    let is_list = |operand: &Operand| matches!(operand.kind, OperandKind::List(_));
    let Some(at) = line.operands.iter().position(|operand| !is_list(operand)) else {
        return missing("`call` without a target");
    };
    let slices = |line: &Line<'_, '_>, operand: Option<&Operand>| match operand.map(|o| &o.kind) {
        Some(OperandKind::List(all)) => all.iter().map(|operand| argument(line, operand)).collect(),
        _ => Ok(Box::default()),
    };
    let returns = slices(line, at.checked_sub(1).and_then(|before| line.operands.get(before)))?;
    let arguments = slices(line, line.operands.get(at + 1).filter(|operand| is_list(operand)))?;
    let operand = line.operand(at)?;
    let name = line.text(operand.span);
    let target = match line
        .layout
        .function(name)
        .filter(|_| line.layout.register(line.function, line.at, name).is_none())
    {
        Some(function) => Target::Function(function),
        None => Target::Address(line.src(at, Type::Unsigned(64))?),
    };
    Ok(Op::Call(Box::new(Call { target, returns, arguments })))
}

fn argument(line: &Line<'_, '_>, operand: &Operand) -> Decoded<Slice> {
    let text = line.text(operand.span);
    let place = line.layout.symbol(line.function, line.at, text);
    let bytes = line.layout.declared_bytes(line.function, line.at, text);
    match (place, bytes.and_then(|bytes| u32::try_from(bytes).ok())) {
        (Some(Where::Argument(offset)), Some(bytes)) => Ok(Slice { offset, bytes }),
        _ => missing(format!("the argument `{text}`, which is no `.param` variable")),
    }
}

impl Call {
    /// The function that it calls, if it says which.
    pub(crate) fn function(&self) -> Option<usize> {
        match self.target {
            Target::Function(function) => Some(function),
            Target::Address(_) => None,
        }
    }

    pub(crate) fn run(&self, machine: &mut Machine<'_>, warp: &mut Warp, active: u32) -> Result<Next, Stop> {
        let pc = warp.group.pc;
        let targets = match self.target {
            Target::Function(function) => [function as u64; 32],
            Target::Address(src) => {
                let start = machine.program.code_start;
                warp.row(machine, src).map(|address| address.wrapping_sub(start) >> 4 | (address & 0xf) << 60)
            }
        };
        warp.settle(pc + 1);
        for lane in lanes(active) {
            let index = usize::try_from(targets[lane]).unwrap_or(usize::MAX);
            let Some(function) = machine.program.functions.get(index) else {
                let is_code = targets[lane] < 1 << 32;
                let what = if is_code { "a function of another module" } else { "what is no function" };
                return Err(Stop::undefined(lane as u32, format!("a call of {what}")));
            };
            if !function.has_body {
                self.builtin(machine, warp, lane, &function.name)?;
                continue;
            }
            let same = |given: &[Slice], declared: &[Slice]| {
                given.len() == declared.len() && given.iter().zip(declared).all(|(a, b)| a.bytes == b.bytes)
            };
            if !same(&self.arguments, &function.params) || !same(&self.returns, &function.returns) {
                let what = format!(
                    "`{}` is called with arguments or results that it does not declare",
                    function.name
                );
                return Err(Stop::undefined(lane as u32, what));
            }
            self.enter(machine, warp, lane, index)?;
        }
        Ok(Next::Choose { backward: false })
    }

    /// Gives a lane a frame of the function, and its arguments.
    fn enter(&self, machine: &Machine<'_>, warp: &mut Warp, lane: usize, index: usize) -> Result<(), Stop> {
        let program = machine.program;
        let function = &program.functions[index];
        // The caller's frame ends where its function says.
        let caller = program.function_at(warp.group.pc);
        let base = warp.group.base + caller.slots;
        let local = (warp.local[lane] + caller.bytes).next_multiple_of(16);
        let slots = (base + function.slots) as usize;
        let bytes = (local + function.bytes) as usize;
        if warp.depth[lane] >= MOST_DEPTH || slots > MOST_SLOTS || bytes as u64 > MOST_FRAME {
            return Err(Stop { kind: FaultKind::Stack, lane: lane as u32 });
        }
        if warp.slots.len() < slots {
            warp.slots.resize(slots, [0; 32]);
        }
        let memory = &mut warp.memory[lane];
        if memory.len() < bytes {
            memory.resize(bytes, 0);
        }
        for (from, to) in self.arguments.iter().zip(&function.params) {
            let from = (warp.local[lane] + from.offset) as usize;
            memory.copy_within(from..from + to.bytes as usize, (local + to.offset) as usize);
        }
        warp.slots[(base + frame::LINK) as usize][lane] =
            u64::from(warp.group.pc + 1) << 32 | u64::from(warp.group.base);
        warp.slots[(base + frame::LOCAL) as usize][lane] = u64::from(warp.local[lane]);
        warp.pc[lane] = function.entry;
        warp.depth[lane] += 1;
        warp.base[lane] = base;
        warp.local[lane] = local;
        Ok(())
    }

    /// A function of CUDA's device library that the text only declares.
    fn builtin(
        &self,
        machine: &mut Machine<'_>,
        warp: &mut Warp,
        lane: usize,
        name: &str,
    ) -> Result<(), Stop> {
        match (name, &*self.arguments, &*self.returns) {
            ("vprintf", [format, values], [result])
                if (format.bytes, values.bytes, result.bytes) == (8, 8, 4) =>
            {
                let at = |slice: &Slice| (warp.local[lane] + slice.offset) as usize;
                let word =
                    |slice: &Slice| crate::exec::spaces::number(&warp.memory[lane][at(slice)..at(slice) + 8]);
                let (format, values, result) = (word(format), word(values), at(result));
                let count = printf::print(machine, warp, lane, format, values)?;
                warp.memory[lane][result..result + 4].copy_from_slice(&count.to_le_bytes());
                Ok(())
            }
            _ => {
                let kind = FaultKind::NotExecuted(format!("the function `{name}`, which has no body"));
                Err(Stop { kind, lane: lane as u32 })
            }
        }
    }
}

impl Machine<'_> {
    pub(crate) fn branch(&mut self, warp: &mut Warp, active: u32, target: u32) -> Next {
        if active == warp.group.lanes {
            return Next::Jump(target);
        }
        let pc = warp.group.pc;
        warp.settle(pc + 1);
        self.diverge(warp, active, target);
        Next::Choose { backward: target <= pc }
    }

    fn diverge(&mut self, warp: &mut Warp, some: u32, target: u32) {
        for lane in lanes(some) {
            warp.pc[lane] = target;
        }
        if let Some(random) = &mut self.random
            && random.below(2) == 0
        {
            warp.part(some);
        }
    }

    pub(crate) fn table(
        &mut self,
        warp: &mut Warp,
        active: u32,
        index: Src,
        targets: &[u32],
    ) -> Result<Next, Stop> {
        let indices = warp.row(self, index);
        let pc = warp.group.pc;
        warp.settle(pc + 1);
        let mut backward = false;
        for lane in lanes(active) {
            let index = indices[lane] & 0xffff_ffff;
            let Some(&target) = usize::try_from(index).ok().and_then(|index| targets.get(index)) else {
                let what = format!("index {index} of a list of {} labels", targets.len());
                return Err(Stop::undefined(lane as u32, what));
            };
            backward |= target <= pc;
            warp.pc[lane] = target;
        }
        Ok(Next::Choose { backward })
    }

    /// Returns lanes to their callers; from the kernel itself it ends them.
    pub(crate) fn ret(&mut self, warp: &mut Warp, active: u32) -> Next {
        let first = active.trailing_zeros() as usize;
        // Lanes of a group have the same depth.
        if warp.depth[first] == 0 {
            return self.exit(warp, active);
        }
        let program = self.program;
        let pc = warp.group.pc;
        warp.settle(pc + 1);
        let function = program.function_at(pc);
        for lane in lanes(active) {
            let (to, base, local) = warp.link(lane);
            // What is returned to stands behind a call.
            if let Op::Call(call) = &program.code[to as usize - 1].op {
                for (value, into) in function.returns.iter().zip(&call.returns) {
                    let from = (warp.local[lane] + value.offset) as usize;
                    let into = (local + into.offset) as usize;
                    warp.memory[lane].copy_within(from..from + value.bytes as usize, into);
                }
            }
            warp.pc[lane] = to;
            warp.depth[lane] -= 1;
            warp.base[lane] = base;
            warp.local[lane] = local;
        }
        Next::Choose { backward: false }
    }

    /// Ends lanes; whoever waits for them waits no longer.
    pub(crate) fn exit(&mut self, warp: &mut Warp, active: u32) -> Next {
        warp.settle(warp.group.pc + 1);
        warp.end(active);
        warp.release();
        self.outcome.stats.threads += u64::from(active.count_ones());
        // A warp's block is one of the machine's, and the warp one of the block's.
        let block = &mut self.blocks[warp.block];
        block.live[warp.index as usize] = warp.live;
        for barrier in &mut block.barriers {
            barrier.complete(&block.live);
        }
        self.complete_cluster(warp.block);
        self.meet(warp);
        Next::Choose { backward: false }
    }
}
