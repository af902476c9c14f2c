//! V9 and V10: what a span may read of the program, which is what the instruction behind it reads.
//!
//! ```text
//! /*nt:3{*/{ .reg .b64 %nt_a; add.u64 %nt_a, %rd4, 16; … }/*}nt:3*/  ld.global.f32 %f1, [%rd4+16];     %rd4, not %f1
//! ```
//!
//! Whatever the instruction at the site reads has its value there, in the original too: nothing is asked of where it
//! was assigned. Two things remain. Under a guard, the instruction reads it only where the guard holds; a register
//! that the kernel assigns under guards alone may be read under that guard alone (ptxas takes an undefined one in
//! silence). And asynchronous instructions write registers after they are done: what one of them writes is read only
//! where none of its kind can be on its way (`flow.rs`).
//!
//! A span after an instruction may read what that wrote, its destinations, and those of its sources that are no
//! destination too: these hold what they held. One after a wait may also read what the asynchronous instructions wrote
//! that it waits for, as far back as nothing jumps, ends, calls or has a label.
//!
//! Opcodes of the original are hardly known here. A destination is what stands in a first operand without brackets.

use crate::flow::{Flight, Flights, asynchronous, opcode, waited_for};
use crate::place::Place;
use nt_diag::Found;
use nt_ptx::syntax::{Function, Instruction, Kind, Module, OperandKind};
use nt_ptx::{ModuleInfo, TokenKind};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

/// What a name of the program is that a span may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its bits; 0 for the address of a variable, which is as wide as it is asked for.
    pub(crate) bits: u32,
    /// Has it a value only where the guard of the site holds?
    pub(crate) under_guard: bool,
}

/// Why a name may not be read: not of this site (V9), or at its own time (V10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Source(&'static str),
    Time(&'static str),
}

/// A plain store: what it overwrites may be loaded before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Store<'s> {
    /// `global`, `shared`; nothing where its text does not say.
    pub(crate) space: &'static str,
    /// The register or variable of its address, and what is added to it.
    pub(crate) base: &'s str,
    pub(crate) offset: i64,
    /// Bits of an element, and how many elements.
    pub(crate) bits: u32,
    pub(crate) lanes: u32,
}

/// The names of a module, found when they are asked for first.
pub(crate) struct Program<'m, 's> {
    pub(crate) module: &'m Module<'s>,
    info: OnceCell<ModuleInfo<'s>>,
    /// What the instruction asked for last names, since all spans around it and all their reads ask for the same.
    uses: RefCell<(Option<u32>, Uses<'s>)>,
}

/// How an instruction names something, other than as its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Reads,
    /// As the base of an address.
    Base,
    Writes,
}

/// The same of all places where it does.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    is_read: bool,
    is_base: bool,
    is_written: bool,
}

/// The names of an instruction, by name, and how it uses them.
type Uses<'s> = Vec<(&'s str, Use)>;

/// What is known of the registers of one function, by name, whatever scope declares it.
#[derive(Debug, Default)]
pub(crate) struct Writes<'s> {
    /// What an instruction without a guard assigns.
    always: HashSet<&'s str>,
    /// What asynchronous instructions name in a first operand, and of which kinds these are.
    asynchronous: HashMap<&'s str, Flight>,
    /// Where they may be on their way, if there is any.
    flights: Flights,
}

impl<'m, 's> Program<'m, 's> {
    pub(crate) fn new(module: &'m Module<'s>) -> Self {
        Program { module, info: OnceCell::new(), uses: RefCell::default() }
    }

    pub(crate) fn info(&self) -> &ModuleInfo<'s> {
        self.info.get_or_init(|| nt_ptx::resolve(self.module, &mut Found::new()))
    }

    /// What `name` is at a place.
    pub(crate) fn source(
        &self,
        place: &Place,
        writes: &OnceCell<Writes<'s>>,
        name: &str,
    ) -> Result<Source, Refused> {
        let statement = place.instruction.and_then(|index| self.module.statements.get(index as usize));
        let Some((at, instruction)) = statement.and_then(|statement| match statement.kind {
            Kind::Instruction(instruction) => Some((statement.span.start, instruction)),
            _ => None,
        }) else {
            return Err(Refused::Source(
                "is no register of this span, and no instruction follows that reads it",
            ));
        };
        let used = self.used(place.instruction, &instruction, name);
        if !used.is_read && !place.is_after {
            return Err(Refused::Source("is not what the instruction at the site reads"));
        }
        let is_waited_for = || self.is_waited_for(place, &instruction, name);
        if !used.is_read && !used.is_written && !is_waited_for() {
            return Err(Refused::Source("is not what the instruction before the span reads or writes"));
        }
        let declared = self.info().declared_at(place.function, at, name);
        if let Some(space) = self.variable_space(declared.map(|d| d.space), name) {
            let plain = used.is_base && matches!(space, ".global" | ".shared" | ".const");
            return match plain {
                true => Ok(Source { bits: 0, under_guard: false }),
                false => Err(Refused::Source("is a variable whose address is not taken at the site")),
            };
        }
        let Some(register) = declared.filter(|d| d.space == ".reg" && d.lanes == 1) else {
            return Err(Refused::Source("is no register that a span may read"));
        };
        let Some(bits) = bits(register.ty) else {
            return Err(Refused::Source("has a type that no instruction of a span takes"));
        };
        let function = self.module.functions.get(place.function);
        let writes = writes.get_or_init(|| function.map(|f| self.writes(f)).unwrap_or_default());
        let first =
            function.and_then(|function| function.body.as_ref()).map_or(0, |body| body.statements.start);
        let statement = place.instruction.map_or(usize::MAX, |index| (index - first) as usize);
        let flight = match place.is_after {
            true => writes.flights.behind(statement),
            false => writes.flights.before(statement),
        };
        if writes.asynchronous.get(name).is_some_and(|kinds| kinds & flight != 0) {
            return Err(Refused::Time("is written by an asynchronous instruction, and may not be there yet"));
        }
        Ok(Source { bits, under_guard: place.guard.is_some() && !writes.always.contains(name) })
    }

    /// Is a span behind a wait, and the name that of a register which an asynchronous instruction wrote that is over then?
    fn is_waited_for(&self, place: &Place, wait: &Instruction, name: &str) -> bool {
        let module = self.module;
        let waits = waited_for(&opcode(module, wait));
        if !place.is_after || wait.guard.is_some() || waits == 0 {
            return false;
        }
        let body = module.functions.get(place.function).and_then(|function| function.body.as_ref());
        let (Some(body), Some(at)) = (body, place.instruction) else { return false };
        let before = module.statements.get(body.statements.start as usize..at as usize).unwrap_or(&[]);
        for statement in before.iter().rev().take(FAR) {
            let instruction = match statement.kind {
                Kind::Instruction(instruction) => instruction,
                Kind::Label(_) => return false,
                _ => continue,
            };
            let opcode = opcode(module, &instruction);
            if matches!(opcode.split('.').next(), Some("bra" | "brx" | "ret" | "exit" | "trap" | "call")) {
                return false;
            }
            if asynchronous(&opcode).is_some_and(|kinds| kinds & waits != 0)
                && instruction.guard.is_none()
                && self.uses_of(&instruction).contains(&(name, Use::Writes))
            {
                let declared = |at: u32| self.info().declared_at(place.function, at, name);
                return declared(instruction.opcode.start) == declared(wait.opcode.start);
            }
        }
        false
    }

    /// The space of a variable of the function, or of the module if the function declares no such name.
    fn variable_space(&self, declared: Option<&'s str>, name: &str) -> Option<&'s str> {
        match declared {
            Some(".reg" | ".param") => None,
            Some(space) => Some(space),
            None => {
                let info = self.info();
                info.variable(name).and_then(|index| info.variables.get(index)).map(|variable| variable.space)
            }
        }
    }

    /// The store that a span stands before, if it is one that is nothing else: no order, no system, no cluster.
    pub(crate) fn store(&self, place: &Place) -> Option<Store<'s>> {
        let statement = self.module.statements.get(place.instruction? as usize)?;
        let Kind::Instruction(instruction) = statement.kind else { return None };
        let opcode = opcode(self.module, &instruction);
        let mut words = opcode.split('.');
        if place.is_after || words.next() != Some("st") {
            return None;
        }
        let (mut space, mut lanes, mut bits) = ("", 1, 0);
        for word in words {
            match word {
                "global" => space = "global",
                "shared" | "shared::cta" => space = "shared",
                "v2" => lanes = 2,
                "v4" => lanes = 4,
                "weak" | "wb" | "cg" | "cs" | "wt" => {}
                // The type; nothing else may stand there.
                _ => match crate::opcode::bits(word) {
                    0 => return None,
                    of_type => bits = of_type,
                },
            }
        }
        let operands = self.module.operands(&instruction);
        let address = self.module.address(operands.first()?)?;
        let base = self.module.at(address.base?);
        (bits >= 8).then_some(Store { space, base, offset: address.displacement, bits, lanes })
    }

    /// Does the instruction at a place leave the register of its own guard as it was?
    pub(crate) fn keeps_guard(&self, place: &Place) -> bool {
        let statement = place.instruction.and_then(|index| self.module.statements.get(index as usize));
        let Some(Kind::Instruction(instruction)) = statement.map(|statement| statement.kind) else {
            return true;
        };
        let guard = instruction.guard.map(|guard| self.module.at(guard.register));
        !place.is_after
            || guard.is_none_or(|guard| {
                let names = self.uses_of(&instruction);
                !names.contains(&(guard, Use::Writes))
            })
    }

    /// How an instruction uses `name`, other than as its guard.
    fn used(&self, index: Option<u32>, instruction: &Instruction, name: &str) -> Used {
        let (of, uses) = &mut *self.uses.borrow_mut();
        if *of != index {
            *of = index;
            *uses = self.uses_of(instruction);
            uses.sort_unstable();
        }
        let before = uses.partition_point(|&(used, _)| used < name);
        let all = uses.get(before..).unwrap_or(&[]).iter().take_while(|(used, _)| *used == name);
        all.fold(Used::default(), |used, (_, how)| match how {
            Use::Reads => Used { is_read: true, ..used },
            Use::Base => Used { is_read: true, is_base: true, ..used },
            Use::Writes => Used { is_written: true, ..used },
        })
    }

    /// Every name in the operands of an instruction.
    fn uses_of(&self, instruction: &Instruction) -> Uses<'s> {
        let mut uses = Uses::new();
        let mut first = First::of(&opcode(self.module, instruction));
        let mut opened = false;
        for (kind, at) in self.module.code(instruction.operands) {
            let is_destination = first.holds(kind);
            if kind == TokenKind::Name {
                let how = match (is_destination, opened) {
                    (true, _) => Use::Writes,
                    (false, true) => Use::Base,
                    (false, false) => Use::Reads,
                };
                uses.push((self.module.at(at), how));
            }
            opened = kind == TokenKind::OpenBracket;
        }
        uses
    }

    /// The registers of the second operand of `wgmma.mma_async`, the fragments of its first factor: like the accumulators, they are
    /// the warpgroup's own from the fence before it to the wait (PTX ISA 9.0, 9.7.15.7.1).
    fn given_over(&self, function: &Function, writes: &mut Writes<'s>) {
        if writes.asynchronous.is_empty() {
            return;
        }
        for statement in self.module.body(function) {
            let Kind::Instruction(instruction) = statement.kind else { continue };
            let opcode = opcode(self.module, &instruction);
            let Some(kinds) = asynchronous(&opcode).filter(|_| opcode.starts_with("wgmma.")) else {
                continue;
            };
            let operands = self.module.operands(&instruction);
            let Some(OperandKind::Vector(fragments)) = operands.get(1).map(|second| &second.kind) else {
                continue;
            };
            for fragment in fragments {
                *writes.asynchronous.entry(self.module.at(fragment.span)).or_default() |= kinds;
            }
        }
    }

    /// One walk over a function.
    fn writes(&self, function: &Function) -> Writes<'s> {
        let mut writes = Writes::default();
        for statement in self.module.body(function) {
            let Kind::Instruction(instruction) = statement.kind else { continue };
            let opcode = opcode(self.module, &instruction);
            let kinds = asynchronous(&opcode);
            if instruction.guard.is_some() && kinds.is_none() {
                continue;
            }
            let mut first = First::of(&opcode);
            for (kind, at) in self.module.code(instruction.operands) {
                if !first.holds(kind) {
                    break;
                }
                if kind != TokenKind::Name {
                    continue;
                }
                match kinds {
                    Some(kinds) => *writes.asynchronous.entry(self.module.at(at)).or_default() |= kinds,
                    None => _ = writes.always.insert(self.module.at(at)),
                }
            }
        }
        self.given_over(function, &mut writes);
        if !writes.asynchronous.is_empty() {
            writes.flights = Flights::find(self.module, self.module.body(function));
        }
        writes
    }
}

/// How many statements before a wait are looked over.
const FAR: usize = 4096;

/// Follows the tokens of operands as long as they belong to a first one that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct First {
    depth: u32,
    over: bool,
    /// `tcgen05.ld.red` writes two operands, up to the address.
    many: bool,
}

impl First {
    /// Of an instruction that writes nothing, it is over at once: its first operand is read.
    fn of(opcode: &str) -> First {
        let mut words = opcode.split('.');
        let over = match words.next().unwrap_or("") {
            "nanosleep" | "bra" | "brx" | "setmaxnreg" | "pmevent" => true,
            "bar" | "barrier" => !words.any(|word| word == "red"),
            _ => false,
        };
        First { depth: 0, over, many: opcode.starts_with("tcgen05.ld") }
    }

    fn holds(&mut self, kind: TokenKind) -> bool {
        match kind {
            TokenKind::OpenBrace | TokenKind::OpenParen => self.depth += 1,
            TokenKind::CloseBrace | TokenKind::CloseParen => self.depth = self.depth.saturating_sub(1),
            // An address is read, not written.
            TokenKind::OpenBracket => self.over |= self.depth == 0,
            TokenKind::Comma => self.over |= self.depth == 0 && !self.many,
            _ => {}
        }
        !self.over
    }
}

/// The bits of a register's type.
fn bits(ty: &str) -> Option<u32> {
    match ty {
        ".pred" => Some(1),
        ".b8" | ".u8" | ".s8" => Some(8),
        ".b16" | ".u16" | ".s16" | ".f16" => Some(16),
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" => Some(32),
        ".b64" | ".u64" | ".s64" | ".f64" => Some(64),
        _ => None,
    }
}
