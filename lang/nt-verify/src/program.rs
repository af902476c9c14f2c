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
//! Opcodes of the original are not known here. A destination is what stands in a first operand without brackets.

use crate::flow::{Flight, Flights, asynchronous, opcode};
use crate::place::Place;
use nt_diag::Found;
use nt_ptx::syntax::{Function, Instruction, Kind, Module};
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

/// The names of a module, found when they are asked for first.
pub(crate) struct Program<'m, 's> {
    pub(crate) module: &'m Module<'s>,
    info: OnceCell<ModuleInfo<'s>>,
    /// What the instruction asked for last reads, since all spans before it and all their reads ask for the same.
    reads: RefCell<(Option<u32>, Reads<'s>)>,
}

/// The names that an instruction reads, other than as its guard, by name; and whether as the base of an address.
type Reads<'s> = Vec<(&'s str, bool)>;

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
        Program { module, info: OnceCell::new(), reads: RefCell::default() }
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
        let Some(is_base) = self.reads(place.instruction, &instruction, name) else {
            return Err(Refused::Source("is not what the instruction at the site reads"));
        };
        let declared = self.info().declared_at(place.function, at, name);
        if let Some(space) = self.variable_space(declared.map(|d| d.space), name) {
            let plain = is_base && matches!(space, ".global" | ".shared" | ".const");
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
        if writes.asynchronous.get(name).is_some_and(|kinds| kinds & writes.flights.before(statement) != 0) {
            return Err(Refused::Time("is written by an asynchronous instruction, and may not be there yet"));
        }
        Ok(Source { bits, under_guard: place.guard.is_some() && !writes.always.contains(name) })
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

    /// Does an instruction read `name`, other than as its guard? If so: as the base of an address?
    fn reads(&self, index: Option<u32>, instruction: &Instruction, name: &str) -> Option<bool> {
        let (of, reads) = &mut *self.reads.borrow_mut();
        if *of != index {
            *of = index;
            reads.clear();
            let mut first = First::default();
            let mut opened = false;
            for (kind, at) in self.module.code(instruction.operands) {
                let is_destination = first.holds(kind);
                if kind == TokenKind::Name && !is_destination {
                    reads.push((self.module.at(at), opened));
                }
                opened = kind == TokenKind::OpenBracket;
            }
            reads.sort_unstable();
        }
        // Of equal names the one that is a base comes last.
        let behind = reads.partition_point(|&(read, _)| read <= name);
        let &(found, is_base) = reads.get(behind.checked_sub(1)?)?;
        (found == name).then_some(is_base)
    }

    /// One walk over a function.
    fn writes(&self, function: &Function) -> Writes<'s> {
        let mut writes = Writes::default();
        for statement in self.module.body(function) {
            let Kind::Instruction(instruction) = statement.kind else { continue };
            let kinds = asynchronous(&opcode(self.module, &instruction));
            if instruction.guard.is_some() && kinds.is_none() {
                continue;
            }
            let mut first = First::default();
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
        if !writes.asynchronous.is_empty() {
            writes.flights = Flights::find(self.module, self.module.body(function));
        }
        writes
    }
}

/// Follows the tokens of operands as long as they belong to a first one that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct First {
    depth: u32,
    over: bool,
}

impl First {
    fn holds(&mut self, kind: TokenKind) -> bool {
        match kind {
            TokenKind::OpenBrace | TokenKind::OpenParen => self.depth += 1,
            TokenKind::CloseBrace | TokenKind::CloseParen => self.depth = self.depth.saturating_sub(1),
            // An address is read, not written.
            TokenKind::OpenBracket | TokenKind::Comma => self.over |= self.depth == 0,
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
